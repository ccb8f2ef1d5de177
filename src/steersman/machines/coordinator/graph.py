"""A plan as a graph: phases, proposals, decisions, reviews and questions, in lanes, with estimates.

A draft and the final graph are assembled by the same function; what differs is what answers have chosen, and that only
a draft has placeholders. **Invariant:** the same inputs and choices give the same ids, order and bytes.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from steersman.contracts.planning.decisions import RuleDecision
from steersman.contracts.planning.graph import Edge, EdgeType, ExecutionGraph, Node
from steersman.contracts.planning.questions import AskedQuestion, Settled
from steersman.contracts.planning.words import Phase, Review
from steersman.judges.text import clip
from steersman.kernel.canonical import digest_of
from steersman.machines.coordinator import nodes as make
from steersman.machines.coordinator.choices import NO_CHOICES, Choices, choices
from steersman.machines.coordinator.estimates import complexity, duration
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
    return _graph(inputs, parts, "final")


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
    for place, gates in zip(d.found, _gates(d), strict=True):
        parts.node(make.phase_node(d, place))
        actions = tuple(_actions(d, parts, place))
        exits[place.workflow.id, place.phase.phase] = _left_by(d, parts, place, actions, gates)
    for place in d.found:
        kind: EdgeType = "conditional" if place.phase.condition else "sequential"
        for phase in place.before:
            for end in exits[place.workflow.id, phase]:
                parts.edge(end, place.node, kind, place.phase.condition)
    _fallbacks(d, parts)
    for planned in d.nowhere:
        parts.node(make.action_node(d, planned, None))
    return parts


def _gates(d: Desk) -> Iterator[tuple[Review, ...]]:
    """By place: who looks before the phase is left. What the intent asks for stands where its workflow is reviewed."""
    asked = d.inputs.intent.risk.requires_review
    last = {place.workflow.id: place.node for place in d.found}
    last |= {place.workflow.id: place.node for place in d.found if place.phase.phase == "review"}
    for place in d.found:
        here = asked if last[place.workflow.id] == place.node else ()
        yield tuple(sorted({*place.phase.review, *here}))


def _disputed(decision: RuleDecision) -> bool:
    """Whether any rule has objected, also one that another outweighs: an exception is seen in the plan."""
    return decision.decision != "allow" or any(
        r.outcome == "fired" and r.decision != "allow" for r in decision.rules
    )


def _actions(d: Desk, parts: _Parts, place: Place) -> Iterator[str]:
    """Every command of a phase with its decision and reviews before it; yields those that are proposed."""
    several = sum(c.command_id not in d.out for c in place.commands) > 1
    beside: EdgeType = "parallel" if several else "sequential"
    for planned in place.commands:
        decision = d.decided.get(planned.command_id)
        node = make.action_node(d, planned, place)
        start, how, condition = place.node, beside, ""
        if decision is not None and _disputed(decision):
            start = parts.node(make.decision_node(place, decision))
            parts.edge(place.node, start, beside)
            how, condition = "conditional", f"{decision.decision}: {decision.reason}"
        if planned.command_id in d.out:
            parts.edge(start, parts.node(node), "conditional", condition or "never", "left out")
            continue
        for review in make.wanted_reviews(d, planned):
            gate = parts.node(make.command_gate(d, place, planned, review))
            parts.edge(start, gate, how, condition)
            start, how, condition = gate, "sequential", ""
        parts.edge(start, parts.node(node), how, condition)
        yield node.node_id


def _left_by(
    d: Desk, parts: _Parts, place: Place, actions: tuple[str, ...], gates: tuple[Review, ...]
) -> tuple[str, ...]:
    """The nodes after which a phase is over: its last gate, else all its actions, else itself."""
    ends = actions or (place.node,)
    for review in gates:
        gate = parts.node(make.phase_gate(d, place, review))
        for end in ends:
            parts.edge(end, gate, "sequential")
        ends = (gate,)
    return ends


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


def _graph(inputs: Inputs, parts: _Parts, stage: Literal["draft", "final"]) -> ExecutionGraph:
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
        lineage=inputs.lineage,
        estimated_duration=duration(inputs, nodes, edges),
        complexity=complexity(inputs, nodes),
        checksum=checksum,
    )
