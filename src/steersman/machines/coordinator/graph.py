"""A plan as a graph: phases, proposals, decisions, reviews and questions, in lanes, with estimates.

A draft and the final graph are assembled by the same function; what differs is what answers have chosen, and that only
a draft has placeholders. **Invariant:** the same inputs and choices give the same ids, order and bytes.
"""

from typing import Literal, NamedTuple

from msgspec.structs import replace

from steersman.contracts.planning.decisions import RuleDecision
from steersman.contracts.planning.graph import EdgeType, ExecutionGraph, GraphEdge, GraphNode
from steersman.contracts.planning.intent import PlannedCommand
from steersman.contracts.planning.questions import AskedQuestion, SettledQuestions
from steersman.contracts.planning.words import PlanPhase
from steersman.judges.planning.choices import NO_CHOICES, PlanChoices, collect_plan_choices
from steersman.judges.planning.plan_inputs import PlanInputs
from steersman.judges.planning.sequence import group_command_steps
from steersman.judges.text import clip_text
from steersman.kernel.canonical import digest_of
from steersman.machines.coordinator import nodes as make
from steersman.machines.coordinator.estimates import estimate_complexity, estimate_duration
from steersman.machines.coordinator.gates import ReviewPlacement, place_reviews
from steersman.machines.coordinator.lanes import build_swimlanes
from steersman.machines.coordinator.nodes import GraphSources, gather_graph_sources, replace_graph_choices
from steersman.machines.coordinator.places import SelectedPhase
from steersman.machines.coordinator.uncertainties import questions_for_nodes


class _GraphParts(NamedTuple):
    """Nodes and edges by id, in the order in which they were put there."""

    nodes: dict[str, GraphNode]
    edges: dict[str, GraphEdge]
    linked: bool  # else no edges are wanted, and there are none

    def node(self, node: GraphNode) -> str:
        self.nodes[node.node_id] = node
        return node.node_id

    def edge(self, start: str, end: str, kind: EdgeType, condition: str = "", label: str = "") -> None:
        if not self.linked:
            return
        condition = clip_text(condition, 400)
        name = f"e_{digest_of([start, end, kind, condition, label])[:16]}"
        self.edges[name] = GraphEdge(
            edge_id=name, from_node=start, to_node=end, edge_type=kind, condition=condition, label=label
        )


def draft_plan_graph(inputs: PlanInputs) -> ExecutionGraph:
    """Returns the graph before any answer: every uncertainty has a placeholder in it."""
    sources = gather_graph_sources(inputs, NO_CHOICES)
    parts = _assemble_graph_parts(sources)
    for question in questions_for_nodes(inputs, sources.found, tuple(parts.nodes.values())):
        _add_question_placeholder(parts, question)
    return _build_execution_graph(inputs, parts, "draft")


def finalize_plan_graph(inputs: PlanInputs, settled: SettledQuestions) -> ExecutionGraph:
    """The graph with what was settled worked in; a question that nothing settles keeps its placeholder."""
    sources = gather_graph_sources(inputs, NO_CHOICES)
    questions = _undecided_questions(sources)
    parts = _assemble_graph_parts(replace_graph_choices(sources, collect_plan_choices(questions, settled)))
    answered = {answer.question_id for answer in settled.answers}
    for question in questions:
        if question.question_id not in answered:
            _add_question_placeholder(parts, question)
    return _build_execution_graph(inputs, parts, "final", answers=digest_of(settled.answers))


def questions_for_inputs(inputs: PlanInputs) -> tuple[AskedQuestion, ...]:
    """Every question that these inputs raise."""
    return _undecided_questions(gather_graph_sources(inputs, NO_CHOICES))


def _undecided_questions(undecided: GraphSources) -> tuple[AskedQuestion, ...]:
    return questions_for_nodes(
        undecided.inputs, undecided.found, _assemble_graph_parts(undecided, linked=False).nodes.values()
    )


def choices_from_settled(inputs: PlanInputs, settled: SettledQuestions) -> PlanChoices:
    """What settled answers mean for these inputs."""
    return collect_plan_choices(questions_for_inputs(inputs), settled)


def _assemble_graph_parts(sources: GraphSources, *, linked: bool = True) -> _GraphParts:
    parts = _GraphParts({}, {}, linked)
    exits: dict[tuple[str, PlanPhase], tuple[str, ...]] = {}
    for place, stand in zip(sources.found, place_reviews(sources), strict=True):
        exits[place.workflow.id, place.phase.phase] = _add_phase_nodes(sources, parts, place, stand)
    for place in sources.found:
        kind: EdgeType = "conditional" if place.phase.condition else "sequential"
        for phase in place.before:
            for end in exits[place.workflow.id, phase]:
                parts.edge(end, place.node, kind, place.phase.condition)
    _add_fallback_edges(sources, parts)
    for planned in sources.nowhere:
        parts.node(make.action_node(sources, planned, None))
    return parts


def _is_decision_disputed(decision: RuleDecision) -> bool:
    """Whether any rule has objected, also one that another outweighs: an exception is seen in the plan."""
    return decision.decision != "allow" or any(
        r.outcome == "fired" and r.decision != "allow" for r in decision.rules
    )


def _add_phase_nodes(
    sources: GraphSources, parts: _GraphParts, place: SelectedPhase, stand: ReviewPlacement
) -> tuple[str, ...]:
    """A phase with what is done in it, step by step, and its reviews; gives the nodes after which it is over."""
    parts.node(make.phase_node(sources, place))
    ends: tuple[str, ...] = (place.node,)
    for step in group_command_steps(
        (c for c in place.commands if c.command_id not in sources.out), sources.effects
    ):
        if step[0].command_id == stand.before:
            ends = _add_phase_reviews(sources, parts, place, stand, ends)
        how: EdgeType = "parallel" if len(step) > 1 else "sequential"
        ends = tuple(_add_action_nodes(sources, parts, place, planned, ends, how) for planned in step)
    for planned in place.commands:
        if planned.command_id in sources.out:
            _add_excluded_action(sources, parts, place, planned)
    return ends if stand.before else _add_phase_reviews(sources, parts, place, stand, ends)


def _add_action_nodes(
    sources: GraphSources,
    parts: _GraphParts,
    place: SelectedPhase,
    planned: PlannedCommand,
    after: tuple[str, ...],
    how: EdgeType,
) -> str:
    """A command with its decision and its reviews before it."""
    decision, condition = sources.decided.get(planned.command_id), ""
    if decision is not None and _is_decision_disputed(decision):
        after = _add_joined_node(parts, after, make.decision_node(place, decision), how)
        how, condition = "conditional", f"{decision.decision}: {decision.reason}"
    for review in make.reviews_required_by_rules(sources, planned):
        after = _add_joined_node(
            parts, after, make.command_gate_node(sources, place, planned, review), how, condition
        )
        how, condition = "sequential", ""
    return _add_joined_node(parts, after, make.action_node(sources, planned, place), how, condition)[0]


def _add_excluded_action(
    sources: GraphSources, parts: _GraphParts, place: SelectedPhase, planned: PlannedCommand
) -> None:
    """A command that is not proposed, with its decision: beside the steps, so that nothing waits for it."""
    decision, after, condition = sources.decided.get(planned.command_id), (place.node,), "never"
    if decision is not None and _is_decision_disputed(decision):
        after = _add_joined_node(parts, after, make.decision_node(place, decision), "sequential")
        condition = f"{decision.decision}: {decision.reason}"
    _add_joined_node(
        parts, after, make.action_node(sources, planned, place), "conditional", condition, "left out"
    )


def _add_phase_reviews(
    sources: GraphSources,
    parts: _GraphParts,
    place: SelectedPhase,
    stand: ReviewPlacement,
    after: tuple[str, ...],
) -> tuple[str, ...]:
    for review in stand.reviews:
        after = _add_joined_node(
            parts, after, make.phase_gate_node(sources, place, review, stand.before), "sequential"
        )
    return after


def _add_joined_node(
    parts: _GraphParts,
    after: tuple[str, ...],
    node: GraphNode,
    how: EdgeType,
    condition: str = "",
    label: str = "",
) -> tuple[str]:
    """A node that comes after all of some others."""
    name = parts.node(node)
    for start in after:
        parts.edge(start, name, how, condition, label)
    return (name,)


def _add_fallback_edges(sources: GraphSources, parts: _GraphParts) -> None:
    """Ways on for a phase that does not succeed. One that leads back would close a circle: the phase's words have it."""
    at = {(p.workflow.id, str(p.phase.phase)): p.node for p in sources.found}
    for place in sources.found:
        target = at.get((place.workflow.id, place.phase.fallback))
        if target is not None and not sources.leads_back(place):
            parts.edge(place.node, target, "fallback", f"{place.phase.phase} does not succeed")


def _add_question_placeholder(parts: _GraphParts, question: AskedQuestion) -> None:
    node = parts.node(make.question_node(question))
    there = [name for name in question.impact.affected_nodes if name in parts.nodes]
    phases = [name for name in there if parts.nodes[name].node_type == "phase"]
    for target in phases or there:
        parts.edge(node, target, "conditional", "once it is answered")


def _build_execution_graph(
    inputs: PlanInputs, parts: _GraphParts, stage: Literal["draft", "final"], answers: str = ""
) -> ExecutionGraph:
    nodes, edges = tuple(parts.nodes.values()), tuple(parts.edges.values())
    swimlanes = build_swimlanes(inputs, nodes, edges)
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
        estimated_duration=estimate_duration(inputs, nodes, edges),
        complexity=estimate_complexity(inputs, nodes),
        checksum=checksum,
    )
