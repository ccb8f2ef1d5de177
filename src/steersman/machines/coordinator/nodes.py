"""One function per kind of node: what a phase, a proposal, a decision, a review and a question look like in a graph."""

from typing import NamedTuple

from steersman.contracts.planning.decisions import RuleDecision
from steersman.contracts.planning.graph import ONLY_IF, Node
from steersman.contracts.planning.intent import PlannedCommand
from steersman.contracts.planning.questions import AskedQuestion
from steersman.contracts.planning.words import Effect, Review
from steersman.judges.planning.evidence import Shelf
from steersman.judges.text import clip
from steersman.machines.coordinator.choices import Choices
from steersman.machines.coordinator.inputs import Inputs, risk_of
from steersman.machines.coordinator.places import Place, homeless, node_id, places

# Who looks at a command that a rule wants reviewed without saying by whom: the first effect that it has.
REVIEWER: tuple[tuple[Effect, Review], ...] = (
    ("security", "security"),
    ("data", "data"),
    ("deploy", "release"),
    ("network", "architecture"),
    ("write", "architecture"),
    ("read", "architecture"),
)


class Desk(NamedTuple):
    """Everything that a graph is assembled from, looked up once."""

    inputs: Inputs
    chosen: Choices
    found: tuple[Place, ...]
    nowhere: tuple[PlannedCommand, ...]  # commands that belong to no selected phase
    decided: dict[str, RuleDecision]
    out: dict[str, str]  # commands that are not proposed, each with the reason
    shelf: Shelf  # everything that can be cited
    does: dict[str, tuple[Effect, ...]]  # by command: what it does to the world

    def effects(self, planned: PlannedCommand) -> tuple[Effect, ...]:
        """What a planned command does to the world."""
        return self.does[planned.command_id]

    def leads_back(self, place: Place) -> bool:
        """Whether a phase's fallback would close a circle."""
        return place.phase.fallback in {place.phase.phase, *place.earlier}


def desk(inputs: Inputs, chosen: Choices) -> Desk:
    """The desk for some choices."""
    found, decided = places(inputs), inputs.decided()
    nowhere = homeless(inputs, found)
    does = {c.command_id: inputs.effects(c) for c in inputs.intent.planned_commands}
    out = _left_out(inputs, chosen, decided, {c.command_id for c in nowhere})
    return Desk(inputs, chosen, found, nowhere, decided, out, inputs.shelf(), does)


def decided_by(d: Desk, chosen: Choices) -> Desk:
    """The same desk for other choices."""
    nowhere = {command.command_id for command in d.nowhere}
    return d._replace(chosen=chosen, out=_left_out(d.inputs, chosen, d.decided, nowhere))


def _left_out(
    inputs: Inputs, chosen: Choices, decided: dict[str, RuleDecision], nowhere: set[str]
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


def wanted_reviews(d: Desk, planned: PlannedCommand) -> tuple[Review, ...]:
    """Who has to look at a command before it is carried out, by its rules."""
    decision = d.decided.get(planned.command_id)
    if decision is None or planned.command_id in d.chosen.approved:
        return ()
    if decision.review or decision.decision != "require_review":
        return tuple(sorted(set(decision.review)))
    effects = d.effects(planned)
    return tuple(review for effect, review in REVIEWER if effect in effects)[:1]


def phase_node(d: Desk, place: Place) -> Node:
    """A phase; a way back that the graph cannot have is in its words, and so is its condition: a first phase has no edge."""
    phase, workflow = place.phase, place.workflow
    back = f" If it does not succeed: back to {phase.fallback}." if d.leads_back(place) else ""
    only = f"{ONLY_IF}{phase.condition}" if phase.condition else ""
    return Node(
        node_id=place.node,
        node_type="phase",
        label=clip(f"{workflow.title}: {phase.phase}", 400),
        description=phase.purpose + back + only,
        phase_ref=phase.phase,
        workflow_ref=workflow.id,
        evidence_refs=(f"registry://workflow/{workflow.id}@{workflow.version}",),
        reason=d.chosen.by_hand.get(f"{workflow.id}/{phase.phase}", ""),
    )


def action_node(d: Desk, planned: PlannedCommand, place: Place | None) -> Node:
    """A command as a proposal, or as something that was left out and why."""
    id_ = planned.command_id
    spec, decision = d.inputs.command(id_), d.decided.get(id_)
    return Node(
        node_id=place.action(id_) if place else node_id("action", id_),
        node_type="action_proposal",
        label=spec.title if spec else id_,
        description=planned.intent,
        phase_ref=place.phase.phase if place else "",
        workflow_ref=place.workflow.id if place else "",
        command_ref=id_,
        effects=d.effects(planned),
        risk_level=risk_of(planned, spec),
        evidence_refs=_evidence(d, planned),
        rule_refs=_fired(decision) if decision else (),
        status="excluded" if id_ in d.out else "proposed",
        reason=clip(d.out.get(id_, d.chosen.approved.get(id_, "")), 2000),
    )


def decision_node(place: Place, decision: RuleDecision) -> Node:
    """What the rules say about a command, where it is not simply yes."""
    id_ = decision.command_id
    return Node(
        node_id=node_id("decision", place.workflow.id, place.phase.phase, id_),
        node_type="decision_point",
        label=f"Rules on {id_}: {decision.decision}",
        description=clip("; ".join(decision.required_changes), 4000),
        phase_ref=place.phase.phase,
        workflow_ref=place.workflow.id,
        command_ref=id_,
        evidence_refs=tuple(sorted(set(decision.evidence_used))),
        rule_refs=_fired(decision),
        reason=clip(decision.reason, 2000),
    )


def command_gate(d: Desk, place: Place, planned: PlannedCommand, review: Review) -> Node:
    """A review before a command is carried out."""
    id_ = planned.command_id
    return Node(
        node_id=node_id("gate", place.workflow.id, place.phase.phase, id_, review),
        node_type="review_gate",
        label=f"Review: {review}",
        description=f"Somebody looks at {id_} for {review} before it is carried out.",
        phase_ref=place.phase.phase,
        workflow_ref=place.workflow.id,
        command_ref=id_,
        evidence_refs=_evidence(d, planned),
        review_criteria=(review,),
    )


def phase_gate(d: Desk, place: Place, review: Review, before: str) -> Node:
    """A review in a phase: before a command that nobody can take back, or before it is left."""
    workflow = place.workflow
    when = f"{before} is carried out: nobody can take it back" if before else "it is left"
    return Node(
        node_id=node_id("gate", workflow.id, place.phase.phase, review),
        node_type="review_gate",
        label=f"Review: {review}",
        description=f"Somebody looks at {place.phase.phase} for {review} before {when}.",
        phase_ref=place.phase.phase,
        workflow_ref=workflow.id,
        evidence_refs=(
            f"intent://{d.inputs.intent.id}/risk/requires_review",
            f"registry://workflow/{workflow.id}@{workflow.version}",
        ),
        review_criteria=(review,),
    )


def question_node(question: AskedQuestion) -> Node:
    """The place of something that nobody has said yet."""
    return Node(
        node_id=node_id("question", question.question_id),
        node_type="question",
        label=clip(question.question_text, 400),
        description=question.context,
        evidence_refs=question.evidence_refs,
        question_ref=question.question_id,
        status="placeholder",
    )


def _evidence(d: Desk, planned: PlannedCommand) -> tuple[str, ...]:
    """What can be found of what is cited for a command, what its rules went by, and an answer that stands beside it."""
    decision, accepted = d.decided.get(planned.command_id), d.chosen.accepted.get(planned.command_id)
    used = decision.evidence_used if decision else ()
    return tuple(sorted({*d.shelf.leading(planned.evidence_refs), *used, *filter(None, (accepted,))}))


def _fired(decision: RuleDecision) -> tuple[str, ...]:
    return tuple(sorted({f"{r.rule_id}@{r.rule_version}" for r in decision.rules if r.outcome == "fired"}))
