"""What a draft does not know, and which of it is asked: by mode, by policy, within the budget of all rounds.

**Invariant:** nothing is asked in full_auto; what is not asked is in `defaulted`, never forgotten.
"""

from collections.abc import Iterable
from typing import NamedTuple

from steersman.contracts.planning.graph import ExecutionGraph, GraphNode
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.questions import (
    AskedQuestion,
    QuestionConstraints,
    QuestionPack,
    SettledQuestions,
)
from steersman.contracts.planning.words import RISK_LEVELS
from steersman.judges.planning.choices import APPROVING_ANSWERS, default_answer_word
from steersman.judges.planning.intent import EffectiveAsking
from steersman.judges.planning.plan_inputs import PlanInputs
from steersman.kernel.canonical import digest_of
from steersman.machines.coordinator.causes import raise_plan_questions
from steersman.machines.coordinator.places import SelectedPhase, select_phases

MAX_PACK_QUESTIONS = 50  # questions of one pack


class ChosenQuestions(NamedTuple):
    """What is asked in this round, what takes its default, and what is wrong with it."""

    pack: QuestionPack | None
    defaulted: tuple[AskedQuestion, ...]
    over: tuple[AskedQuestion, ...]  # blockers that the budget does not cover
    unfit: tuple[AskedQuestion, ...]
    unevidenced: tuple[AskedQuestion, ...]
    undefaulted: tuple[AskedQuestion, ...]
    consumed: int  # of the budget, this round included


class QuestionFlaws(NamedTuple):
    """Questions that may not go out as they are, by what is wrong with them."""

    unfit: tuple[AskedQuestion, ...]
    unevidenced: tuple[AskedQuestion, ...]
    undefaulted: tuple[AskedQuestion, ...]


def find_draft_uncertainties(inputs: PlanInputs, graph: ExecutionGraph) -> tuple[AskedQuestion, ...]:
    """Every uncertainty of a draft, by id; placeholders that are in the graph already change nothing."""
    return questions_for_nodes(inputs, select_phases(inputs), graph.nodes)


def questions_for_nodes(
    inputs: PlanInputs, selected_phases: tuple[SelectedPhase, ...], nodes: Iterable[GraphNode]
) -> tuple[AskedQuestion, ...]:
    """The same for the nodes that a graph will have; `found` are the places of the inputs."""
    by_command: dict[str, list[str]] = {}
    phases: list[str] = []
    for node in nodes:
        if node.command_ref:
            by_command.setdefault(node.command_ref, []).append(node.node_id)
        if node.node_type == "phase":
            phases.append(node.node_id)
    return tuple(
        sorted(
            raise_plan_questions(inputs, selected_phases, by_command, tuple(phases)),
            key=lambda q: q.question_id,
        )
    )


def askable_questions(
    questions: Iterable[AskedQuestion], effective: EffectiveAsking, policy: ExecutionPolicy
) -> tuple[AskedQuestion, ...]:
    """What may be asked at all, blockers first, then by level and id; nothing where nothing may be asked."""
    if effective.budget == 0:
        return ()
    fit = (q for q in questions if _is_question_allowed(q, effective, policy))
    return tuple(sorted(fit, key=_question_urgency))


def choose_round_questions(
    questions: tuple[AskedQuestion, ...],
    effective: EffectiveAsking,
    policy: ExecutionPolicy,
    *,
    consumed: int,
    round_: int,
    plan_id: str,
    intent: ExecutionIntent,
    settled: SettledQuestions | None = None,
) -> ChosenQuestions:
    """The pack of a round: what is settled is not asked again, and the budget is that of all rounds."""
    unsettled = _unsettled_questions(questions, settled)
    candidates = askable_questions(unsettled, effective, policy)
    budget_left = max(0, effective.budget - consumed)
    known = frozenset(settled.asked) if settled else frozenset[str]()
    asked_questions = _questions_within_budget(candidates, budget_left, known)
    spent = sum(q.question_id not in known for q in asked_questions)
    going = {q.question_id for q in asked_questions}
    over = tuple(q for q in candidates if q.question_id not in going and q.type == "blocker")
    going.update(q.question_id for q in over)
    defaulted = tuple(q for q in unsettled if q.question_id not in going)
    flaws = find_question_flaws(asked_questions, effective, policy)
    used = QuestionConstraints(
        execution_mode=effective.mode,
        question_budget=effective.budget,
        question_policy=effective.asking,
        budget_consumed=consumed + spent,
        budget_remaining=budget_left - spent,
    )
    pack = (
        _build_question_pack(asked_questions, defaulted, used, round_, plan_id, intent)
        if asked_questions
        else None
    )
    return ChosenQuestions(pack, defaulted, over, *flaws, consumed=consumed + spent)


def _questions_within_budget(
    candidates: tuple[AskedQuestion, ...], budget_left: int, known: frozenset[str]
) -> tuple[AskedQuestion, ...]:
    """What of some questions the budget covers, in their order: one that was asked before costs nothing again."""
    new = [q.question_id for q in candidates if q.question_id not in known]
    paid = known.union(new[:budget_left])
    return tuple(q for q in candidates if q.question_id in paid)[:MAX_PACK_QUESTIONS]


def _unsettled_questions(
    questions: tuple[AskedQuestion, ...], settled: SettledQuestions | None
) -> tuple[AskedQuestion, ...]:
    answered = {answer.question_id for answer in settled.answers} if settled else set()
    return tuple(q for q in questions if q.question_id not in answered)


def find_question_flaws(
    asked_questions: Iterable[AskedQuestion], effective: EffectiveAsking, policy: ExecutionPolicy
) -> QuestionFlaws:
    """What keeps questions from going out, no matter which code has put them together."""
    rules = policy.question_rules
    least = rules.min_evidence_count if rules.require_evidence else 1
    asked_questions = tuple(asked_questions)
    return QuestionFlaws(
        unfit=tuple(q for q in asked_questions if not _is_question_allowed(q, effective, policy)),
        unevidenced=tuple(q for q in asked_questions if len(q.evidence_refs) < least),
        undefaulted=tuple(q for q in asked_questions if not _has_valid_default(q)),
    )


def _is_question_allowed(
    question: AskedQuestion, effective: EffectiveAsking, policy: ExecutionPolicy
) -> bool:
    if effective.asking == "never" or effective.mode == "full_auto":
        return False
    blockers = effective.asking == "blockers_only" or effective.mode == "semi_auto"
    return question.type in policy.question_rules.allowed_types and (
        question.type == "blocker" or not blockers
    )


def _has_valid_default(question: AskedQuestion) -> bool:
    """Whether a default holds: one of the suggested answers, and for a critical question none that approves."""
    word = default_answer_word(question)
    if word not in {suggestion.answer for suggestion in question.suggested_answers}:
        return False
    return question.blocking_level != "critical" or word not in APPROVING_ANSWERS


def _question_urgency(question: AskedQuestion) -> tuple[bool, int, str]:
    return question.type != "blocker", -RISK_LEVELS.index(question.blocking_level), question.question_id


def _build_question_pack(
    asked_questions: tuple[AskedQuestion, ...],
    defaulted: tuple[AskedQuestion, ...],
    used: QuestionConstraints,
    round_: int,
    plan_id: str,
    intent: ExecutionIntent,
) -> QuestionPack:
    identity = [plan_id, round_, [q.question_id for q in asked_questions], [q.question_id for q in defaulted]]
    return QuestionPack(
        pack_id=f"questions_{digest_of(identity)[:16]}",
        plan_id=plan_id,
        intent_id=intent.id,
        round=round_,
        questions=asked_questions,
        defaulted=defaulted,
        policy_constraints=used,
        created_at=intent.created_at,
    )
