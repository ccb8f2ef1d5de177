"""The six causes of a question: each with its evidence, a tagged default, what hangs on it and what could be answered.

**Invariant:** a question is never made up: each comes from one of six causes that can be shown in the inputs.
"""

from collections.abc import Container, Iterator
from typing import Literal, NamedTuple

from msgspec.structs import replace

from steersman.contracts.planning.decisions import RuleDecision
from steersman.contracts.planning.intent import PlannedCommand
from steersman.contracts.planning.questions import (
    AskedQuestion,
    DefaultAnswer,
    QuestionCause,
    QuestionImpact,
    SuggestedAnswer,
)
from steersman.contracts.planning.words import RISK_LEVELS, PlanPhase, QuestionKind, RiskLevel, RiskProfile
from steersman.judges.planning import choices as word
from steersman.judges.planning.evidence import CitableEvidence
from steersman.judges.planning.paths import WHOLE_PROJECT_TARGETS, describe_region, is_whole_project
from steersman.judges.planning.plan_inputs import (
    CHANGING_EFFECTS,
    PlanInputs,
    intent_boundary,
    planned_command_risk,
)
from steersman.judges.text import clip_text
from steersman.kernel.canonical import digest_of
from steersman.machines.coordinator.places import SelectedPhase, find_phaseless_commands

# ── purpose ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# What a phase is there for, and whether anything of that is left in it.
#
# **Invariant:** a phase that is there to change something is not served by commands that only look, nor by those that
# only record what others changed.


# The phases that leave something otherwise than it was; in all others looking can be the whole of it.
CHANGING_PHASES: tuple[PlanPhase, ...] = ("implementation", "release", "operations")


def is_purpose_unmet(inputs: PlanInputs, place: SelectedPhase, kept_ids: Container[str]) -> bool:
    """Whether nothing of what a phase is there for is left, when only some commands are kept."""
    commands = [command for command in place.commands if command.command_id in kept_ids]
    return not any(map(inputs.changes, commands)) if is_changing_phase(inputs, place) else not commands


def find_unmet_phases(
    inputs: PlanInputs, selected_phases: tuple[SelectedPhase, ...], kept_ids: Container[str]
) -> Iterator[SelectedPhase]:
    """The phases that have to show something and could not."""
    return (p for p in selected_phases if p.phase.needs_command and is_purpose_unmet(inputs, p, kept_ids))


def is_changing_phase(inputs: PlanInputs, place: SelectedPhase) -> bool:
    """Whether a phase is there to change something: one of those that do, and a command of it would."""
    listed = (inputs.command(id_) for id_ in place.phase.commands)
    return place.phase.phase in CHANGING_PHASES and (
        any(map(inputs.changes, place.commands))
        or any(spec and not spec.records and not CHANGING_EFFECTS.isdisjoint(spec.effects) for spec in listed)
    )


# ── causes ────────────────────────────────────────────────────────────────────────────────


HIGHEST_RISK_BY_PROFILE: dict[RiskProfile, RiskLevel] = {
    "safe": "medium",
    "aggressive_safe": "high",
    "aggressive": "critical",
}
_GRAVE_SEVERITIES = ("error", "block")

APPROVE_SUGGESTION = SuggestedAnswer(
    answer=word.ANSWER_APPROVE,
    meaning="It stays, and your answer takes the place of that review.",
    risk_change="higher",
)
STOP_SUGGESTION = SuggestedAnswer(
    answer=word.ANSWER_STOP, meaning="Stop here; there will be no plan.", risk_change="lower"
)


class _QuestionDraft(NamedTuple):
    """A question without its id and its place in the graph."""

    cause: QuestionCause
    about: str
    type: QuestionKind
    level: RiskLevel
    text: str
    context: str
    evidence: tuple[str, ...]
    default: DefaultAnswer
    answers: tuple[SuggestedAnswer, ...]
    nodes: tuple[str, ...]
    scope: Literal["entire_plan", "single_phase", "single_action"] = "single_action"
    within: tuple[str, ...] = WHOLE_PROJECT_TARGETS


def raise_plan_questions(
    inputs: PlanInputs,
    selected_phases: tuple[SelectedPhase, ...],
    nodes: dict[str, list[str]],
    phases: tuple[str, ...],
) -> Iterator[AskedQuestion]:
    """Every question that the inputs raise; `nodes` are those of each command, `phases` those of phases."""
    yield from map(_build_asked_question, _command_questions(inputs, selected_phases, nodes))
    yield from map(_build_asked_question, _missing_command_questions(inputs, selected_phases))
    yield from map(_build_asked_question, _ambiguous_scope_questions(inputs, selected_phases, phases))


def _denied_commands(inputs: PlanInputs) -> dict[str, RuleDecision]:
    """Commands that a rule denies, by id."""
    return {id_: d for id_, d in inputs.decided().items() if d.decision == "deny"}


def _allowed_command_ids(inputs: PlanInputs) -> set[str]:
    """The planned commands that no rule denies."""
    return {c.command_id for c in inputs.intent.planned_commands} - _denied_commands(inputs).keys()


def _command_questions(
    inputs: PlanInputs, selected_phases: tuple[SelectedPhase, ...], nodes: dict[str, list[str]]
) -> Iterator[_QuestionDraft]:
    decided = inputs.decided()
    nowhere = {command.command_id for command in find_phaseless_commands(inputs, selected_phases)}
    emptied, shelf = _emptied_phases_by_command(inputs, selected_phases), inputs.shelf()
    for id_, planned in {c.command_id: c for c in inputs.intent.planned_commands}.items():
        at, decision = tuple(nodes.get(id_, ())), decided.get(id_)
        if id_ in nowhere:
            yield _phaseless_command_question(inputs, planned, at)
        elif decision is not None and decision.decision == "deny":
            yield _denied_command_question(inputs, decision, at, emptied.get(id_, ()))
        else:
            yield from _unmet_evidence_questions(inputs, planned, at, shelf)
            yield from _excess_risk_questions(inputs, planned, at)
            if decision is not None and decision.decision == "require_review":
                yield _required_review_question(inputs, decision, at)


def _emptied_phases_by_command(
    inputs: PlanInputs, selected_phases: tuple[SelectedPhase, ...]
) -> dict[str, tuple[SelectedPhase, ...]]:
    """By command: phases that can do without one, and in which nothing is left because rules deny all of it."""
    denied, allowed = _denied_commands(inputs), _allowed_command_ids(inputs)
    empty = [
        p
        for p in selected_phases
        if p.commands and not p.phase.needs_command and is_purpose_unmet(inputs, p, allowed)
    ]
    by_command: dict[str, list[SelectedPhase]] = {}
    for place in empty:
        for command in place.commands:
            if command.command_id in denied:
                by_command.setdefault(command.command_id, []).append(place)
    return {id_: tuple(phases) for id_, phases in by_command.items()}


def _unmet_evidence_questions(
    inputs: PlanInputs, planned: PlannedCommand, nodes: tuple[str, ...], shelf: CitableEvidence
) -> Iterator[_QuestionDraft]:
    id_, refs = planned.command_id, planned.evidence_refs
    missing, speaking = shelf.missing(refs), tuple(filter(shelf.speaks, refs))
    question_text = f"Nothing known says that {id_} is right: "
    if missing and speaking:
        question_text = f"{_join_clipped(missing)}, cited for {id_}, leads nowhere; {_join_clipped(speaking)} can be found and speaks for it"
        why = f"Neither facts nor memory nor the registry has {_join_clipped(missing)}: something has changed since, or never was."
    elif missing:
        question_text += f"{_join_clipped(missing)} cannot be found"
        why = f"The intent cites {_join_clipped(missing)} for {id_}, and neither facts nor memory nor the registry has it."
    elif not speaking:
        question_text += f"{_join_clipped(refs)} says what it is, not why"
        why = f"What the intent cites for {id_} can be found, and no fact, memory, document or objective is among it."
    else:
        return
    yield _QuestionDraft(
        "unmet_evidence", id_, "blocker", "high",
        f"{question_text}. Leave the command out?",
        why,
        (_intent_field_ref(inputs, "planned_commands", id_), *sorted(set(planned.evidence_refs) - set(missing))),
        DefaultAnswer(strategy="exclude", reason="What is cited and not there speaks for nothing; nobody has looked."),
        (
            _leave_out_suggestion(id_),
            SuggestedAnswer(
                answer=word.ANSWER_ACCEPT_WITHOUT,
                meaning="Propose it all the same; your answer is the evidence, beside what is there.",
                risk_change="higher",
            ),
            STOP_SUGGESTION,
        ),
        nodes,
    )  # fmt: skip


def _excess_risk_questions(
    inputs: PlanInputs, planned: PlannedCommand, nodes: tuple[str, ...]
) -> Iterator[_QuestionDraft]:
    id_, profile = planned.command_id, inputs.bundle.policy.risk_profile
    risk = planned_command_risk(planned, inputs.command(id_))
    if RISK_LEVELS.index(risk) <= RISK_LEVELS.index(HIGHEST_RISK_BY_PROFILE[profile]):
        return
    yield _QuestionDraft(
        "risk_above_profile", id_, "risk_mitigation", "critical",
        f"{id_} is of {risk} risk, and the profile {profile} goes up to {HIGHEST_RISK_BY_PROFILE[profile]}. Accept the risk?",
        f"The policy's risk_profile is {profile}. The graver of intent and registry counts for {id_}: {risk}.",
        (_intent_field_ref(inputs, "planned_commands", id_), _registry_content_ref(inputs, "command", id_)),
        DefaultAnswer(strategy="exclude", reason="A risk above the profile is taken by a person or not at all."),
        (
            _leave_out_suggestion(id_),
            SuggestedAnswer(
                answer=word.ANSWER_ACCEPT_RISK, meaning="Keep it in the plan; you accept the risk.", risk_change="higher"
            ),
            STOP_SUGGESTION,
        ),
        nodes,
    )  # fmt: skip


def _required_review_question(
    inputs: PlanInputs, decision: RuleDecision, nodes: tuple[str, ...]
) -> _QuestionDraft:
    id_, grave = decision.command_id, decision.severity in _GRAVE_SEVERITIES
    return _QuestionDraft(
        "requires_review", id_, "blocker" if grave else "risk_mitigation", "critical" if grave else "medium",
        f"Rules want {id_} reviewed before it is carried out. Keep it behind its review?",
        f"Severity {decision.severity}: {decision.reason}",
        _rule_decision_refs(inputs, decision),
        DefaultAnswer(strategy="use", value=word.ANSWER_KEEP_WITH_REVIEW, reason="The review that the rules want stands in the plan."),
        (
            SuggestedAnswer(
                answer=word.ANSWER_KEEP_WITH_REVIEW, meaning="It stays, and its review gate before it.", risk_change="same"
            ),
            _leave_out_suggestion(id_),
            *(() if decision.severity == "block" else (APPROVE_SUGGESTION,)),
            STOP_SUGGESTION,
        ),
        nodes,
    )  # fmt: skip


def _denied_command_question(
    inputs: PlanInputs, decision: RuleDecision, nodes: tuple[str, ...], empty: tuple[SelectedPhase, ...]
) -> _QuestionDraft:
    id_ = decision.command_id
    where = _join_clipped(tuple(f"{p.workflow.id}/{p.phase.phase}" for p in empty))
    emptied_text = f" Nothing is left to do in {where}." if empty else ""
    return _QuestionDraft(
        "excluded_command", id_, "blocker" if empty else "clarification", "high" if empty else "low",
        f"Rules deny {id_}, so it is left out.{emptied_text} Is the plan right without it?",
        f"Severity {decision.severity}: {decision.reason}",
        _rule_decision_refs(inputs, decision),
        DefaultAnswer(strategy="use", value=word.ANSWER_LEAVE_OUT, reason="What a rule denies is left out."),
        (_leave_out_suggestion(id_), STOP_SUGGESTION),
        (*nodes, *(place.node for place in empty)),
        "single_phase" if empty else "single_action",
    )  # fmt: skip


def _phaseless_command_question(
    inputs: PlanInputs, planned: PlannedCommand, nodes: tuple[str, ...]
) -> _QuestionDraft:
    id_ = planned.command_id
    spec = inputs.command(id_)
    wanted = _join_clipped(spec.phases) if spec else "none that the registry knows"
    return _QuestionDraft(
        "excluded_command", id_, "clarification", "low",
        f"{id_} belongs to no selected phase, so it is left out. Is the plan right without it?",
        f"The phases of {id_} are: {wanted}. None of them is among the selected phases.",
        (_intent_field_ref(inputs, "planned_commands", id_), _registry_content_ref(inputs, "command", id_)),
        DefaultAnswer(strategy="use", value=word.ANSWER_LEAVE_OUT, reason="There is no phase to do it in."),
        (_leave_out_suggestion(id_), STOP_SUGGESTION),
        nodes,
    )  # fmt: skip


def _missing_command_questions(
    inputs: PlanInputs, selected_phases: tuple[SelectedPhase, ...]
) -> Iterator[_QuestionDraft]:
    denied = _denied_commands(inputs)
    for place in find_unmet_phases(inputs, selected_phases, _allowed_command_ids(inputs)):
        where = f"{place.workflow.id}/{place.phase.phase}"
        ids = _join_clipped(tuple(c.command_id for c in place.commands if c.command_id in denied))
        what = "changed" if is_changing_phase(inputs, place) else "done"
        none = f"rules deny what was planned for it ({ids})" if ids else "no planned command does it"
        yield _QuestionDraft(
            "missing_command", where, "blocker", "high",
            f"Something has to be {what} in {where}, and {none}. Is it done by hand?",
            f"The phase is there to: {place.phase.purpose} It can use {_join_clipped(place.phase.commands) or 'any command'}.",
            (
                _intent_field_ref(inputs, "selected_workflows", place.workflow.id),
                _registry_content_ref(inputs, "workflow", place.workflow.id),
            ),
            DefaultAnswer(strategy="block", reason="A phase that has to show something is not passed over in silence."),
            (
                SuggestedAnswer(
                    answer=word.ANSWER_BY_HAND, meaning="A person does it and shows what was done.", risk_change="same"
                ),
                STOP_SUGGESTION,
            ),
            (place.node,),
            "single_phase",
        )  # fmt: skip


def _is_scope_open(inputs: PlanInputs) -> bool:
    """Whether the intent does not say what the plan is about: it names nothing, or everything."""
    targets = inputs.intent.scope.targets
    return any(map(is_whole_project, targets.files)) or not (
        targets.files or targets.modules or targets.areas
    )


def _ambiguous_scope_questions(
    inputs: PlanInputs, selected_phases: tuple[SelectedPhase, ...], phases: tuple[str, ...]
) -> Iterator[_QuestionDraft]:
    if not _is_scope_open(inputs):
        return
    allowed, within = _allowed_command_ids(inputs), intent_boundary(inputs.intent)
    planned = {c.command_id for c in inputs.intent.planned_commands if "write" in inputs.effects(c)}
    writes, writing_commands = planned & allowed, _join_clipped(tuple(sorted(planned)))
    lost = {p.node for p in find_unmet_phases(inputs, selected_phases, allowed - planned)}
    spare = lost <= {p.node for p in find_unmet_phases(inputs, selected_phases, allowed)}
    everything = bool(inputs.intent.scope.targets.files)
    where = clip_text(describe_region(within), 300)
    text = SuggestedAnswer(
        answer=word.ANSWER_TEXT,
        meaning=f"Only what you name in {where}: files, or directories with a slash at the end, one a line.",
        risk_change="lower",
    )
    anything = SuggestedAnswer(
        answer=word.ANSWER_WHOLE_PROJECT,
        meaning=f"Anything in {where}.",
        risk_change="higher" if writes else "same",
    )
    without = SuggestedAnswer(
        answer=word.ANSWER_LEAVE_OUT, meaning="Every command that writes is left out.", risk_change="lower"
    )
    writes_text = f"{writing_commands} would write." if writes else "No planned command writes."
    yield _QuestionDraft(
        "ambiguous_scope", "scope.targets",
        "blocker" if writes else "clarification", "high" if writes else "medium",
        f"The intent names {'the whole project' if everything else 'no file, module or area'}. What is the plan about?",
        f"scope.targets {'leaves nothing out' if everything else 'is empty'}. {writes_text}",
        (_intent_field_ref(inputs, "scope", "targets"),),
        DefaultAnswer(strategy="block", reason="Nobody has said what may be changed.")
        if writes
        else DefaultAnswer(
            strategy="use", value=word.ANSWER_WHOLE_PROJECT, reason="Nothing is written, so nothing is at stake."
        ),
        (text, anything, *((without,) if writes and spare else ()), STOP_SUGGESTION),
        phases,
        "entire_plan",
        within,
    )  # fmt: skip


def _leave_out_suggestion(id_: str) -> SuggestedAnswer:
    return SuggestedAnswer(
        answer=word.ANSWER_LEAVE_OUT, meaning=f"{id_} is not in the plan.", risk_change="lower"
    )


def _intent_field_ref(inputs: PlanInputs, *path: str) -> str:
    return f"intent://{inputs.intent.id}/{'/'.join(path)}"


def _registry_content_ref(inputs: PlanInputs, kind: str, id_: str) -> str:
    versions = inputs.lineage.registry_versions
    known = versions.workflows if kind == "workflow" else versions.commands
    return f"registry://{kind}/{id_}@{known.get(id_, '0.0.0')}"


def _rule_decision_refs(inputs: PlanInputs, decision: RuleDecision) -> tuple[str, ...]:
    rules = (f"rule://{r.rule_id}@{r.rule_version}" for r in decision.rules if r.outcome == "fired")
    return (
        _intent_field_ref(inputs, "planned_commands", decision.command_id),
        *rules,
        *decision.evidence_used,
    )


def _join_clipped(things: tuple[str, ...]) -> str:
    return clip_text(", ".join(things), 800)


def _build_asked_question(draft: _QuestionDraft) -> AskedQuestion:
    impact_text = f"{len(draft.nodes)} nodes of the graph depend on it."
    question = AskedQuestion(
        question_id="",
        cause=draft.cause,
        about=draft.about,
        type=draft.type,
        blocking_level=draft.level,
        question_text=clip_text(draft.text, 2000),
        context=clip_text(draft.context, 4000),
        evidence_refs=tuple(sorted(set(draft.evidence))),
        default_strategy=draft.default,
        impact=QuestionImpact(scope=draft.scope, description=impact_text, affected_nodes=draft.nodes),
        suggested_answers=draft.answers,
        within=draft.within,
    )
    return replace(question, question_id=f"q_{digest_of(_question_identity(question))[:16]}")


def _question_identity(question: AskedQuestion) -> list[object]:
    """What makes a question the same one. Its context and nodes may gain a warning that only the rest of a plan calls
    for, and an answer to it still holds."""
    asked_question = question
    words = [
        asked_question.cause,
        asked_question.about,
        asked_question.type,
        asked_question.blocking_level,
        asked_question.question_text,
    ]
    return [*words, asked_question.default_strategy, asked_question.suggested_answers, asked_question.within]
