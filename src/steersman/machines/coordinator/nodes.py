"""One function per kind of node: what a phase, a proposal, a decision, a review and a question look like in a graph."""

from typing import NamedTuple

from steersman.contracts.planning.decisions import RuleDecision
from steersman.contracts.planning.graph import CONDITION_MARKER, GraphNode
from steersman.contracts.planning.intent import PlannedCommand
from steersman.contracts.planning.questions import AskedQuestion
from steersman.contracts.planning.words import CommandEffect, ReviewCategory
from steersman.judges.planning.choices import PlanChoices
from steersman.judges.planning.evidence import CitableEvidence
from steersman.judges.planning.plan_inputs import PlanInputs, planned_command_risk
from steersman.judges.text import clip_text
from steersman.machines.coordinator.places import (
    SelectedPhase,
    find_phaseless_commands,
    graph_node_id,
    select_phases,
)

# Who looks at a command that a rule wants reviewed without saying by whom: the first effect that it has.
REVIEW_BY_EFFECT: tuple[tuple[CommandEffect, ReviewCategory], ...] = (
    ("security", "security"),
    ("data", "data"),
    ("deploy", "release"),
    ("network", "architecture"),
    ("write", "architecture"),
    ("read", "architecture"),
)


class GraphSources(NamedTuple):
    """Everything that a graph is assembled from, looked up once."""

    inputs: PlanInputs
    chosen: PlanChoices
    found: tuple[SelectedPhase, ...]
    nowhere: tuple[PlannedCommand, ...]  # commands that belong to no selected phase
    decided: dict[str, RuleDecision]
    out: dict[str, str]  # commands that are not proposed, each with the reason
    shelf: CitableEvidence  # everything that can be cited
    does: dict[str, tuple[CommandEffect, ...]]  # by command: what it does to the world

    def effects(self, planned: PlannedCommand) -> tuple[CommandEffect, ...]:
        """What a planned command does to the world."""
        return self.does[planned.command_id]

    def leads_back(self, place: SelectedPhase) -> bool:
        """Whether a phase's fallback would close a circle."""
        return place.phase.fallback in {place.phase.phase, *place.earlier}


def gather_graph_sources(inputs: PlanInputs, chosen: PlanChoices) -> GraphSources:
    """The desk for some choices."""
    phases, decided = select_phases(inputs), inputs.decided()
    nowhere = find_phaseless_commands(inputs, phases)
    does = {c.command_id: inputs.effects(c) for c in inputs.intent.planned_commands}
    out = _exclusion_reasons(inputs, chosen, decided, {c.command_id for c in nowhere})
    return GraphSources(inputs, chosen, phases, nowhere, decided, out, inputs.shelf(), does)


def replace_graph_choices(sources: GraphSources, chosen: PlanChoices) -> GraphSources:
    """The same desk for other choices."""
    nowhere = {command.command_id for command in sources.nowhere}
    return sources._replace(
        chosen=chosen, out=_exclusion_reasons(sources.inputs, chosen, sources.decided, nowhere)
    )


def _exclusion_reasons(
    inputs: PlanInputs, chosen: PlanChoices, decided: dict[str, RuleDecision], nowhere: set[str]
) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for planned in sorted(inputs.intent.planned_commands, key=lambda c: c.command_id):
        id_, decision = planned.command_id, decided.get(planned.command_id)
        if decision is not None and decision.decision == "deny":
            reasons[id_] = f"denied: {decision.reason}"
        elif id_ in nowhere:
            reasons[id_] = "it belongs to no selected phase"
        elif id_ in chosen.left_out:
            reasons[id_] = chosen.left_out[id_]
        elif chosen.no_writes and "write" in inputs.effects(planned):
            reasons[id_] = chosen.no_writes
    return reasons


def reviews_required_by_rules(sources: GraphSources, planned: PlannedCommand) -> tuple[ReviewCategory, ...]:
    """Who has to look at a command before it is carried out, by its rules."""
    decision = sources.decided.get(planned.command_id)
    if decision is None or planned.command_id in sources.chosen.approved:
        return ()
    if decision.review or decision.decision != "require_review":
        return tuple(sorted(set(decision.review)))
    effects = sources.effects(planned)
    return tuple(review for effect, review in REVIEW_BY_EFFECT if effect in effects)[:1]


def phase_node(sources: GraphSources, place: SelectedPhase) -> GraphNode:
    """A phase; a way back that the graph cannot have is in its words, and so is its condition: a first phase has no edge."""
    phase, workflow = place.phase, place.workflow
    back = f" If it does not succeed: back to {phase.fallback}." if sources.leads_back(place) else ""
    only = f"{CONDITION_MARKER}{phase.condition}" if phase.condition else ""
    return GraphNode(
        node_id=place.node,
        node_type="phase",
        label=clip_text(f"{workflow.title}: {phase.phase}", 400),
        description=phase.purpose + back + only,
        phase_ref=phase.phase,
        workflow_ref=workflow.id,
        evidence_refs=(f"registry://workflow/{workflow.id}@{workflow.version}",),
        reason=sources.chosen.by_hand.get(f"{workflow.id}/{phase.phase}", ""),
    )


def action_node(sources: GraphSources, planned: PlannedCommand, place: SelectedPhase | None) -> GraphNode:
    """A command as a proposal, or as something that was left out and why."""
    id_ = planned.command_id
    spec, decision = sources.inputs.command(id_), sources.decided.get(id_)
    return GraphNode(
        node_id=place.action(id_) if place else graph_node_id("action", id_),
        node_type="action_proposal",
        label=spec.title if spec else id_,
        description=planned.intent,
        phase_ref=place.phase.phase if place else "",
        workflow_ref=place.workflow.id if place else "",
        command_ref=id_,
        effects=sources.effects(planned),
        risk_level=planned_command_risk(planned, spec),
        evidence_refs=_node_evidence_refs(sources, planned),
        rule_refs=_fired_rule_refs(decision) if decision else (),
        status="excluded" if id_ in sources.out else "proposed",
        reason=clip_text(sources.out.get(id_, sources.chosen.approved.get(id_, "")), 2000),
    )


def decision_node(place: SelectedPhase, decision: RuleDecision) -> GraphNode:
    """What the rules say about a command, where it is not simply yes."""
    id_ = decision.command_id
    return GraphNode(
        node_id=graph_node_id("decision", place.workflow.id, place.phase.phase, id_),
        node_type="decision_point",
        label=f"Rules on {id_}: {decision.decision}",
        description=clip_text("; ".join(decision.required_changes), 4000),
        phase_ref=place.phase.phase,
        workflow_ref=place.workflow.id,
        command_ref=id_,
        evidence_refs=tuple(sorted(set(decision.evidence_used))),
        rule_refs=_fired_rule_refs(decision),
        reason=clip_text(decision.reason, 2000),
    )


def command_gate_node(
    sources: GraphSources, place: SelectedPhase, planned: PlannedCommand, review: ReviewCategory
) -> GraphNode:
    """A review before a command is carried out."""
    id_ = planned.command_id
    return GraphNode(
        node_id=graph_node_id("gate", place.workflow.id, place.phase.phase, id_, review),
        node_type="review_gate",
        label=f"Review: {review}",
        description=f"Somebody looks at {id_} for {review} before it is carried out.",
        phase_ref=place.phase.phase,
        workflow_ref=place.workflow.id,
        command_ref=id_,
        evidence_refs=_node_evidence_refs(sources, planned),
        review_criteria=(review,),
    )


def phase_gate_node(
    sources: GraphSources, place: SelectedPhase, review: ReviewCategory, before: str
) -> GraphNode:
    """A review in a phase: before a command that cannot be undone, or before it is left."""
    workflow = place.workflow
    when = f"{before} is carried out: nobody can take it back" if before else "it is left"
    return GraphNode(
        node_id=graph_node_id("gate", workflow.id, place.phase.phase, review),
        node_type="review_gate",
        label=f"Review: {review}",
        description=f"Somebody looks at {place.phase.phase} for {review} before {when}.",
        phase_ref=place.phase.phase,
        workflow_ref=workflow.id,
        evidence_refs=(
            f"intent://{sources.inputs.intent.id}/risk/requires_review",
            f"registry://workflow/{workflow.id}@{workflow.version}",
        ),
        review_criteria=(review,),
    )


def question_node(question: AskedQuestion) -> GraphNode:
    """The place of something that is not known yet."""
    return GraphNode(
        node_id=graph_node_id("question", question.question_id),
        node_type="question",
        label=clip_text(question.question_text, 400),
        description=question.context,
        evidence_refs=question.evidence_refs,
        question_ref=question.question_id,
        status="placeholder",
    )


def _node_evidence_refs(sources: GraphSources, planned: PlannedCommand) -> tuple[str, ...]:
    """What can be found of what is cited for a command, what its rules went by, and an answer that stands beside it."""
    decision = sources.decided.get(planned.command_id)
    accepted = sources.chosen.accepted.get(planned.command_id)
    used = decision.evidence_used if decision else ()
    return tuple(sorted({*sources.shelf.leading(planned.evidence_refs), *used, *filter(None, (accepted,))}))


def _fired_rule_refs(decision: RuleDecision) -> tuple[str, ...]:
    return tuple(sorted({f"{r.rule_id}@{r.rule_version}" for r in decision.rules if r.outcome == "fired"}))
