"""What is wrong with a graph, each with the field of the intent that would correct it.

**Invariant:** linear in nodes and edges; a graph of any shape is looked at to the end.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import asdict

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.graph import MAX_GRAPH_NODES, ExecutionGraph, GraphEdge, GraphNode
from steersman.judges.planning.adjacency import GraphAdjacency
from steersman.judges.planning.plan_inputs import PlanInputs
from steersman.judges.text import clip_text


class GraphFaults(NamedTuple):
    """All that was found, by kind."""

    cycles: tuple[DocumentProblem, ...]
    unmapped: tuple[DocumentProblem, ...]
    unassigned: tuple[DocumentProblem, ...]
    unsupported: tuple[DocumentProblem, ...]
    incomplete: tuple[DocumentProblem, ...]
    placeholders: tuple[DocumentProblem, ...]

    def all(self) -> tuple[DocumentProblem, ...]:
        """Every problem, the gravest kind first."""
        return tuple(problem for kind in self for problem in kind)


def find_graph_faults(graph: ExecutionGraph, inputs: PlanInputs) -> GraphFaults:
    """Everything that keeps a graph from being a plan; placeholders are only wrong in a final graph."""
    return GraphFaults(
        cycles=tuple(_find_phase_cycles(graph)),
        unmapped=tuple(_find_unmapped_phases(graph, inputs)),
        unassigned=tuple(_find_unassigned_nodes(graph, inputs)),
        unsupported=tuple(_find_unsupported_actions(graph, inputs)),
        incomplete=tuple(_find_incomplete_nodes(graph)),
        placeholders=tuple(_find_placeholder_nodes(graph)) if graph.stage == "final" else (),
    )


def _find_phase_cycles(graph: ExecutionGraph) -> Iterator[DocumentProblem]:
    paths = find_graph_cycles(tuple(node.node_id for node in graph.nodes), graph.edges)
    by_id = {node.node_id: node for node in graph.nodes} if paths else {}
    for path in paths:
        cycle_text = " → ".join(_graph_node_label(by_id[name]) for name in path)
        yield DocumentProblem(
            field="selected_workflows",
            message=f"The order of the phases is a circle: {clip_text(cycle_text, 800)}",
            fix="Take one of these phases out of selected_workflows, or correct `after` in the workflow.",
        )


def _graph_node_label(node: GraphNode) -> str:
    where = f"{node.workflow_ref}/{node.phase_ref}" if node.workflow_ref else node.node_id
    return f"{where}/{node.command_ref}" if node.command_ref else where


def find_graph_cycles(names: tuple[str, ...], edges: tuple[GraphEdge, ...]) -> tuple[tuple[str, ...], ...]:
    """One path for each knot of nodes that reach each other, its shortest circle through the first node; short ones first."""
    ways = GraphAdjacency(names, edges)
    paths = (_shortest_component_cycle(knot, ways) for knot in _strongly_connected_nodes(ways))
    return tuple(sorted((tuple(names[n] for n in path) for path in paths if path), key=lambda p: (len(p), p)))


def _strongly_connected_nodes(ways: GraphAdjacency) -> Iterator[list[int]]:
    """Strongly connected components, after Tarjan, without recursion: depth is not bounded by Python's."""
    size = len(ways.first)
    index = [-1] * size  # in which order a node was come to
    low = [-1] * size  # the earliest that it leads back to
    rest = list(ways.first)  # the edge that is followed next
    inside = bytearray(size)  # whether it is on the stack
    stack: list[int] = []
    visit_count = 0
    for root in range(size):
        path = [root] if index[root] < 0 else []
        while path:
            node, edge = path[-1], rest[path[-1]]
            if index[node] < 0:
                index[node] = low[node] = visit_count
                visit_count += 1
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
                yield _pop_component(stack, inside, node)


def _pop_component(stack: list[int], inside: bytearray, last: int) -> list[int]:
    knot = [stack.pop()]
    while knot[-1] != last:
        knot.append(stack.pop())
    for node in knot:
        inside[node] = False
    return knot


def _shortest_component_cycle(knot: list[int], ways: GraphAdjacency) -> list[int]:
    """The shortest way from the first node of a knot back to itself; empty where there is none."""
    start = min(knot)
    if len(knot) == 1:
        return [start, start] if start in ways.after(start) else []
    members = set(knot)
    predecessors: dict[int, int] = {}
    ready = deque([start])
    while start not in predecessors:
        node = ready.popleft()
        for following in ways.after(node):
            if following in members and following not in predecessors:
                predecessors[following] = node
                ready.append(following)
    return [*_trace_cycle_path(predecessors, start, predecessors[start]), start]


def _trace_cycle_path(predecessors: dict[int, int], start: int, end: int) -> list[int]:
    path = [end]
    while path[-1] != start:
        path.append(predecessors[path[-1]])
    return path[::-1]


def _find_unmapped_phases(graph: ExecutionGraph, inputs: PlanInputs) -> Iterator[DocumentProblem]:
    there = {(n.workflow_ref, n.phase_ref) for n in graph.nodes if n.node_type == "phase"}
    for n, selected in enumerate(inputs.intent.selected_workflows):
        for phase_index, phase in enumerate(selected.phases):
            if (selected.workflow_id, phase) not in there:
                yield DocumentProblem(
                    field=f"selected_workflows[{n}].phases[{phase_index}]",
                    message=f"{selected.workflow_id} has no phase {phase}, so nothing stands for it.",
                    fix=f"`steersman registry show {selected.workflow_id}` lists its phases.",
                )
    if len(graph.nodes) > MAX_GRAPH_NODES:
        yield DocumentProblem(
            field="selected_workflows",
            message=f"The graph would have {len(graph.nodes)} nodes; {MAX_GRAPH_NODES} are the most.",
            fix="Plan fewer workflows or commands at a time.",
        )


def _find_unassigned_nodes(graph: ExecutionGraph, inputs: PlanInputs) -> Iterator[DocumentProblem]:
    lanes = {lane.agent_id for lane in graph.swimlanes}
    for n, agent in enumerate(inputs.intent.selected_agents):
        if agent.agent_id not in lanes:
            yield DocumentProblem(
                field=f"selected_agents[{n}]",
                message=f"{agent.agent_id} has no lane: no selected phase asks for its role or is covered by it.",
                fix="Take it out, or select a phase that it covers.",
            )
    lane_counts: dict[str, int] = {}
    for lane in graph.swimlanes:
        for name in lane.node_refs:
            lane_counts[name] = lane_counts.get(name, 0) + 1
    for node in graph.nodes:
        if lane_counts.get(node.node_id, 0) != 1:
            yield DocumentProblem(
                field="selected_agents",
                message=f"{_graph_node_label(node)} is in {lane_counts.get(node.node_id, 0)} lanes instead of one.",
                fix="Select an agent whose role or phases cover it.",
            )


def _find_unsupported_actions(graph: ExecutionGraph, inputs: PlanInputs) -> Iterator[DocumentProblem]:
    fields = {c.command_id: n for n, c in enumerate(inputs.intent.planned_commands)}
    decided = inputs.decided()
    for node in graph.nodes:
        if node.node_type != "action_proposal" or node.status == "excluded":
            continue
        field = f"planned_commands[{fields.get(node.command_ref, 0)}].evidence_refs"
        if not node.evidence_refs:
            yield DocumentProblem(
                field=field,
                message=f"Nothing speaks for {_graph_node_label(node)}: it has no evidence.",
                fix="Cite a fact, a memory or a document.",
            )
        if node.command_ref not in decided:
            yield DocumentProblem(
                field=field,
                message=f"No rule was asked about {_graph_node_label(node)}.",
                fix="Plan again: every command has to have its verdict.",
            )


# What a node of each type cannot be without.
REQUIRED_NODE_FIELDS: dict[str, tuple[str, ...]] = {
    "phase": ("phase_ref", "workflow_ref"),
    "action_proposal": ("command_ref", "effects", "risk_level"),
    "decision_point": ("command_ref", "rule_refs", "reason"),
    "question": ("question_ref", "evidence_refs"),
    "review_gate": ("review_criteria", "phase_ref"),
}


def _find_incomplete_nodes(graph: ExecutionGraph) -> Iterator[DocumentProblem]:
    for node in graph.nodes:
        has = asdict(node)
        for name in REQUIRED_NODE_FIELDS[node.node_type]:
            if not has[name]:
                yield DocumentProblem(
                    field="planned_commands" if node.command_ref else "selected_workflows",
                    message=f"{_graph_node_label(node)} is a {node.node_type} without {name}.",
                    fix="Correct the content of the registry that it comes from: `steersman registry check`.",
                )


def _find_placeholder_nodes(graph: ExecutionGraph) -> Iterator[DocumentProblem]:
    for node in graph.nodes:
        if node.status == "placeholder":
            yield DocumentProblem(
                field="interaction",
                message=f"Nothing settles {node.question_ref}: {clip_text(node.label, 600)}",
                fix="Answer it, or change what the question is about.",
            )
