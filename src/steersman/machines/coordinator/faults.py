"""What is wrong with a graph, each with the field of the intent that would mend it.

**Invariant:** linear in nodes and edges; a graph of any shape is looked at to the end.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import asdict

from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.graph import MOST_NODES, Edge, ExecutionGraph, Node
from steersman.judges.planning.ways import Ways
from steersman.judges.text import clip
from steersman.machines.coordinator.inputs import Inputs


class Faults(NamedTuple):
    """All that was found, by kind."""

    cycles: tuple[Problem, ...]
    unmapped: tuple[Problem, ...]
    unassigned: tuple[Problem, ...]
    unsupported: tuple[Problem, ...]
    incomplete: tuple[Problem, ...]
    placeholders: tuple[Problem, ...]

    def all(self) -> tuple[Problem, ...]:
        """Every problem, the gravest kind first."""
        return tuple(problem for kind in self for problem in kind)


def faults(graph: ExecutionGraph, inputs: Inputs) -> Faults:
    """Everything that keeps a graph from being a plan; placeholders are only wrong in a final graph."""
    return Faults(
        cycles=tuple(_cycles(graph)),
        unmapped=tuple(_unmapped(graph, inputs)),
        unassigned=tuple(_unassigned(graph, inputs)),
        unsupported=tuple(_unsupported(graph, inputs)),
        incomplete=tuple(_incomplete(graph)),
        placeholders=tuple(_placeholders(graph)) if graph.stage == "final" else (),
    )


def _cycles(graph: ExecutionGraph) -> Iterator[Problem]:
    paths = circles(tuple(node.node_id for node in graph.nodes), graph.edges)
    by_id = {node.node_id: node for node in graph.nodes} if paths else {}
    for path in paths:
        told = " → ".join(_named(by_id[name]) for name in path)
        yield Problem(
            field="selected_workflows",
            message=f"The order of the phases is a circle: {clip(told, 800)}",
            fix="Take one of these phases out of selected_workflows, or mend `after` in the workflow.",
        )


def _named(node: Node) -> str:
    where = f"{node.workflow_ref}/{node.phase_ref}" if node.workflow_ref else node.node_id
    return f"{where}/{node.command_ref}" if node.command_ref else where


def circles(names: tuple[str, ...], edges: tuple[Edge, ...]) -> tuple[tuple[str, ...], ...]:
    """One path for each knot of nodes that reach each other, its shortest circle through the first node; short ones first."""
    ways = Ways(names, edges)
    paths = (_shortest(knot, ways) for knot in _knots(ways))
    return tuple(sorted((tuple(names[n] for n in path) for path in paths if path), key=lambda p: (len(p), p)))


def _knots(ways: Ways) -> Iterator[list[int]]:
    """Strongly connected components, after Tarjan, without recursion: depth is not bounded by Python's."""
    size = len(ways.first)
    index = [-1] * size  # in which order a node was come to
    low = [-1] * size  # the earliest that it leads back to
    rest = list(ways.first)  # the edge that is followed next
    inside = bytearray(size)  # whether it is on the stack
    stack: list[int] = []
    met = 0
    for root in range(size):
        path = [root] if index[root] < 0 else []
        while path:
            node, edge = path[-1], rest[path[-1]]
            if index[node] < 0:
                index[node] = low[node] = met
                met += 1
                stack.append(node)
                inside[node] = True
            if edge >= 0:
                rest[node], following = ways.then[edge], ways.ends[edge]
                if index[following] < 0:
                    path.append(following)
                elif inside[following]:
                    low[node] = min(low[node], index[following])
                continue
            path.pop()
            if path:
                low[path[-1]] = min(low[path[-1]], low[node])
            if low[node] == index[node]:
                yield _taken(stack, inside, node)


def _taken(stack: list[int], inside: bytearray, last: int) -> list[int]:
    knot = [stack.pop()]
    while knot[-1] != last:
        knot.append(stack.pop())
    for node in knot:
        inside[node] = False
    return knot


def _shortest(knot: list[int], ways: Ways) -> list[int]:
    """The shortest way from the first node of a knot back to itself; empty where there is none."""
    start = min(knot)
    if len(knot) == 1:
        return [start, start] if start in ways.after(start) else []
    members = set(knot)
    came: dict[int, int] = {}
    ready = deque([start])
    while start not in came:
        node = ready.popleft()
        for following in ways.after(node):
            if following in members and following not in came:
                came[following] = node
                ready.append(following)
    return [*_way(came, start, came[start]), start]


def _way(came: dict[int, int], start: int, end: int) -> list[int]:
    path = [end]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


def _unmapped(graph: ExecutionGraph, inputs: Inputs) -> Iterator[Problem]:
    there = {(n.workflow_ref, n.phase_ref) for n in graph.nodes if n.node_type == "phase"}
    for n, selected in enumerate(inputs.intent.selected_workflows):
        for m, phase in enumerate(selected.phases):
            if (selected.workflow_id, phase) not in there:
                yield Problem(
                    field=f"selected_workflows[{n}].phases[{m}]",
                    message=f"{selected.workflow_id} has no phase {phase}, so nothing stands for it.",
                    fix=f"`steersman registry show {selected.workflow_id}` lists its phases.",
                )
    if len(graph.nodes) > MOST_NODES:
        yield Problem(
            field="selected_workflows",
            message=f"The graph would have {len(graph.nodes)} nodes; {MOST_NODES} are the most.",
            fix="Plan fewer workflows or commands at a time.",
        )


def _unassigned(graph: ExecutionGraph, inputs: Inputs) -> Iterator[Problem]:
    lanes = {lane.agent_id for lane in graph.swimlanes}
    for n, agent in enumerate(inputs.intent.selected_agents):
        if agent.agent_id not in lanes:
            yield Problem(
                field=f"selected_agents[{n}]",
                message=f"{agent.agent_id} has no lane: no selected phase asks for its role or is covered by it.",
                fix="Take it out, or select a phase that it covers.",
            )
    held: dict[str, int] = {}
    for lane in graph.swimlanes:
        for name in lane.node_refs:
            held[name] = held.get(name, 0) + 1
    for node in graph.nodes:
        if held.get(node.node_id, 0) != 1:
            yield Problem(
                field="selected_agents",
                message=f"{_named(node)} is in {held.get(node.node_id, 0)} lanes instead of one.",
                fix="Select an agent whose role or phases cover it.",
            )


def _unsupported(graph: ExecutionGraph, inputs: Inputs) -> Iterator[Problem]:
    fields = {c.command_id: n for n, c in enumerate(inputs.intent.planned_commands)}
    decided = inputs.decided()
    for node in graph.nodes:
        if node.node_type != "action_proposal" or node.status == "excluded":
            continue
        field = f"planned_commands[{fields.get(node.command_ref, 0)}].evidence_refs"
        if not node.evidence_refs:
            yield Problem(
                field=field,
                message=f"Nothing speaks for {_named(node)}: it has no evidence.",
                fix="Cite a fact, a memory or a document.",
            )
        if node.command_ref not in decided:
            yield Problem(
                field=field,
                message=f"No rule was asked about {_named(node)}.",
                fix="Plan again: every command has to have its verdict.",
            )


# What a node of each type cannot be without.
REQUIRED: dict[str, tuple[str, ...]] = {
    "phase": ("phase_ref", "workflow_ref"),
    "action_proposal": ("command_ref", "effects", "risk_level"),
    "decision_point": ("command_ref", "rule_refs", "reason"),
    "question": ("question_ref", "evidence_refs"),
    "review_gate": ("review_criteria", "phase_ref"),
}


def _incomplete(graph: ExecutionGraph) -> Iterator[Problem]:
    for node in graph.nodes:
        has = asdict(node)
        for name in REQUIRED[node.node_type]:
            if not has[name]:
                yield Problem(
                    field="planned_commands" if node.command_ref else "selected_workflows",
                    message=f"{_named(node)} is a {node.node_type} without {name}.",
                    fix="Mend the content of the registry that it comes from: `steersman registry check`.",
                )


def _placeholders(graph: ExecutionGraph) -> Iterator[Problem]:
    for node in graph.nodes:
        if node.status == "placeholder":
            yield Problem(
                field="interaction",
                message=f"Nothing settles {node.question_ref}: {clip(node.label, 600)}",
                fix="Answer it, or change what the question is about.",
            )
