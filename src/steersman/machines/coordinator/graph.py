"""A plan as a graph: phases, proposals, decisions, reviews and questions, in lanes, with estimates.

A draft and the final graph are assembled by the same function; what differs is what answers have chosen, and that only
a draft has placeholders. **Invariant:** the same inputs and choices give the same ids, order and bytes.
"""

from typing import Literal, NamedTuple

from msgspec.structs import replace

from steersman.contracts.planning.decisions import RuleDecision
from steersman.contracts.planning.graph import Edge, EdgeType, ExecutionGraph, Node
from steersman.contracts.planning.intent import PlannedCommand
from steersman.contracts.planning.questions import AskedQuestion, Settled
from steersman.contracts.planning.words import Phase
from steersman.judges.planning.sequence import steps
from steersman.judges.text import clip
from steersman.kernel.canonical import digest_of
from steersman.machines.coordinator import nodes as make
from steersman.machines.coordinator.choices import NO_CHOICES, Choices, choices
from steersman.machines.coordinator.estimates import complexity, duration
from steersman.machines.coordinator.gates import Stand, stands
from steersman.machines.coordinator.inputs import Inputs
from steersman.machines.coordinator.lanes import lanes
from steersman.machines.coordinator.nodes import Desk, decided_by, desk
from steersman.machines.coordinator.places import Place
from steersman.machines.coordinator.uncertainties import raised


class _Parts(NamedTuple):
    """Nodes and edges by id, in the order in which they were put there."""

    nodes: dict[str, Node]
    edges: dict[str, Edge]
    linked: bool  # else nobody asks for edges, and there are none

    def node(self, node: Node) -> str:
        self.nodes[node.node_id] = node
        return node.node_id

    def edge(self, start: str, end: str, kind: EdgeType, condition: str = "", label: str = "") -> None:
        if not self.linked:
            return
        condition = clip(condition, 400)
        name = f"e_{digest_of([start, end, kind, condition, label])[:16]}"
        self.edges[name] = Edge(
            edge_id=name, from_node=start, to_node=end, edge_type=kind, condition=condition, label=label
        )


def draft(inputs: Inputs) -> ExecutionGraph:
    """The graph before anybody has answered: every uncertainty has a placeholder in it."""
    d = desk(inputs, NO_CHOICES)
    parts = _assembled(d)
    for question in raised(inputs, d.found, tuple(parts.nodes.values())):
        _placeholder(parts, question)
    return _graph(inputs, parts, "draft")


def finalize(inputs: Inputs, settled: Settled) -> ExecutionGraph:
    """The graph with what was settled worked in; a question that nothing settles keeps its placeholder."""
    d = desk(inputs, NO_CHOICES)
    questions = _asked(d)
    parts = _assembled(decided_by(d, choices(questions, settled)))
    answered = {answer.question_id for answer in settled.answers}
    for question in questions:
        if question.question_id not in answered:
            _placeholder(parts, question)
    return _graph(inputs, parts, "final", answers=digest_of(settled.answers))


def asked_of(inputs: Inputs) -> tuple[AskedQuestion, ...]:
    """Every question that these inputs raise."""
    return _asked(desk(inputs, NO_CHOICES))


def _asked(undecided: Desk) -> tuple[AskedQuestion, ...]:
    return raised(undecided.inputs, undecided.found, _assembled(undecided, linked=False).nodes.values())


def chosen_by(inputs: Inputs, settled: Settled) -> Choices:
    """What settled answers mean for these inputs."""
    return choices(asked_of(inputs), settled)


def _assembled(d: Desk, *, linked: bool = True) -> _Parts:
    parts = _Parts({}, {}, linked)
    exits: dict[tuple[str, Phase], tuple[str, ...]] = {}
    for place, stand in zip(d.found, stands(d), strict=True):
        exits[place.workflow.id, place.phase.phase] = _phase(d, parts, place, stand)
    for place in d.found:
        kind: EdgeType = "conditional" if place.phase.condition else "sequential"
        for phase in place.before:
            for end in exits[place.workflow.id, phase]:
                parts.edge(end, place.node, kind, place.phase.condition)
    _fallbacks(d, parts)
    for planned in d.nowhere:
        parts.node(make.action_node(d, planned, None))
    return parts


def _disputed(decision: RuleDecision) -> bool:
    """Whether any rule has objected, also one that another outweighs: an exception is seen in the plan."""
    return decision.decision != "allow" or any(
        r.outcome == "fired" and r.decision != "allow" for r in decision.rules
    )


def _phase(d: Desk, parts: _Parts, place: Place, stand: Stand) -> tuple[str, ...]:
    """A phase with what is done in it, step by step, and its reviews; gives the nodes after which it is over."""
    parts.node(make.phase_node(d, place))
    ends: tuple[str, ...] = (place.node,)
    for step in steps((c for c in place.commands if c.command_id not in d.out), d.effects):
        if step[0].command_id == stand.before:
            ends = _reviewed(d, parts, place, stand, ends)
        how: EdgeType = "parallel" if len(step) > 1 else "sequential"
        ends = tuple(_action(d, parts, place, planned, ends, how) for planned in step)
    for planned in place.commands:
        if planned.command_id in d.out:
            _left_out(d, parts, place, planned)
    return ends if stand.before else _reviewed(d, parts, place, stand, ends)


def _action(
    d: Desk, parts: _Parts, place: Place, planned: PlannedCommand, after: tuple[str, ...], how: EdgeType
) -> str:
    """A command with its decision and its reviews before it."""
    decision, condition = d.decided.get(planned.command_id), ""
    if decision is not None and _disputed(decision):
        after = _joined(parts, after, make.decision_node(place, decision), how)
        how, condition = "conditional", f"{decision.decision}: {decision.reason}"
    for review in make.wanted_reviews(d, planned):
        after = _joined(parts, after, make.command_gate(d, place, planned, review), how, condition)
        how, condition = "sequential", ""
    return _joined(parts, after, make.action_node(d, planned, place), how, condition)[0]


def _left_out(d: Desk, parts: _Parts, place: Place, planned: PlannedCommand) -> None:
    """A command that is not proposed, with its decision: beside the steps, so that nothing waits for it."""
    decision, after, condition = d.decided.get(planned.command_id), (place.node,), "never"
    if decision is not None and _disputed(decision):
        after = _joined(parts, after, make.decision_node(place, decision), "sequential")
        condition = f"{decision.decision}: {decision.reason}"
    _joined(parts, after, make.action_node(d, planned, place), "conditional", condition, "left out")


def _reviewed(d: Desk, parts: _Parts, place: Place, stand: Stand, after: tuple[str, ...]) -> tuple[str, ...]:
    for review in stand.reviews:
        after = _joined(parts, after, make.phase_gate(d, place, review, stand.before), "sequential")
    return after


def _joined(
    parts: _Parts, after: tuple[str, ...], node: Node, how: EdgeType, condition: str = "", label: str = ""
) -> tuple[str]:
    """A node that comes after all of some others."""
    name = parts.node(node)
    for start in after:
        parts.edge(start, name, how, condition, label)
    return (name,)


def _fallbacks(d: Desk, parts: _Parts) -> None:
    """Ways on for a phase that does not succeed. One that leads back would close a circle: the phase's words have it."""
    at = {(p.workflow.id, str(p.phase.phase)): p.node for p in d.found}
    for place in d.found:
        target = at.get((place.workflow.id, place.phase.fallback))
        if target is not None and not d.leads_back(place):
            parts.edge(place.node, target, "fallback", f"{place.phase.phase} does not succeed")


def _placeholder(parts: _Parts, question: AskedQuestion) -> None:
    node = parts.node(make.question_node(question))
    there = [name for name in question.impact.affected_nodes if name in parts.nodes]
    phases = [name for name in there if parts.nodes[name].node_type == "phase"]
    for target in phases or there:
        parts.edge(node, target, "conditional", "once it is answered")


def _graph(
    inputs: Inputs, parts: _Parts, stage: Literal["draft", "final"], answers: str = ""
) -> ExecutionGraph:
    nodes, edges = tuple(parts.nodes.values()), tuple(parts.edges.values())
    swimlanes = lanes(inputs, nodes, edges)
    checksum = digest_of({"nodes": nodes, "edges": edges, "swimlanes": swimlanes})
    return ExecutionGraph(
        graph_id=f"graph_{digest_of([inputs.plan_id, stage, checksum])[:16]}",
        plan_id=inputs.plan_id,
        intent_id=inputs.intent.id,
        created_at=inputs.intent.created_at,
        stage=stage,
        execution_policy=inputs.effective.mode,
        nodes=nodes,
        edges=edges,
        swimlanes=swimlanes,
        lineage=replace(inputs.lineage, answers_digest=answers),
        estimated_duration=duration(inputs, nodes, edges),
        complexity=complexity(inputs, nodes),
        checksum=checksum,
    )
