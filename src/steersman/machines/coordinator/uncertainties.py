"""What a draft does not know, and which of it is asked: by mode, by policy, within the budget of all rounds.

**Invariant:** nothing is asked in full_auto; what is not asked is in `defaulted`, never forgotten.
"""

from collections.abc import Iterable
from typing import NamedTuple

from steersman.contracts.planning.graph import ExecutionGraph, Node
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.questions import (
    AskedQuestion,
    PolicyConstraintsUsed,
    QuestionPack,
    Settled,
)
from steersman.contracts.planning.words import RISKS
from steersman.judges.planning.intent import Effective
from steersman.kernel.canonical import digest_of
from steersman.machines.coordinator.causes import causes
from steersman.machines.coordinator.choices import APPROVING, default_word
from steersman.machines.coordinator.inputs import Inputs
from steersman.machines.coordinator.places import Place, places

MOST = 50  # questions of one pack


class Chosen(NamedTuple):
    """What is asked in this round, what takes its default, and what is wrong with it."""

    pack: QuestionPack | None
    defaulted: tuple[AskedQuestion, ...]
    over: tuple[AskedQuestion, ...]  # blockers that the budget does not cover
    unfit: tuple[AskedQuestion, ...]
    unevidenced: tuple[AskedQuestion, ...]
    undefaulted: tuple[AskedQuestion, ...]
    consumed: int  # of the budget, this round included


class Flaws(NamedTuple):
    """Questions that may not go out as they are, by what is wrong with them."""

    unfit: tuple[AskedQuestion, ...]
    unevidenced: tuple[AskedQuestion, ...]
    undefaulted: tuple[AskedQuestion, ...]


def find(inputs: Inputs, graph: ExecutionGraph) -> tuple[AskedQuestion, ...]:
    """Every uncertainty of a draft, by id; placeholders that are in the graph already change nothing."""
    return raised(inputs, places(inputs), graph.nodes)


def raised(inputs: Inputs, found: tuple[Place, ...], nodes: Iterable[Node]) -> tuple[AskedQuestion, ...]:
    """The same for the nodes that a graph will have; `found` are the places of the inputs."""
    by_command: dict[str, list[str]] = {}
    phases: list[str] = []
    for node in nodes:
        if node.command_ref:
            by_command.setdefault(node.command_ref, []).append(node.node_id)
        if node.node_type == "phase":
            phases.append(node.node_id)
    return tuple(sorted(causes(inputs, found, by_command, tuple(phases)), key=lambda q: q.question_id))


def askable(
    questions: Iterable[AskedQuestion], effective: Effective, policy: ExecutionPolicy
) -> tuple[AskedQuestion, ...]:
    """What may be asked at all, blockers first, then by level and id; nothing where nothing may be asked."""
    if effective.budget == 0:
        return ()
    fit = (q for q in questions if _allowed(q, effective, policy))
    return tuple(sorted(fit, key=_urgency))


def choose(
    questions: tuple[AskedQuestion, ...],
    effective: Effective,
    policy: ExecutionPolicy,
    *,
    consumed: int,
    round_: int,
    plan_id: str,
    intent: ExecutionIntent,
    settled: Settled | None = None,
) -> Chosen:
    """The pack of a round: what is settled is not asked again, and the budget is that of all rounds."""
    still = _unsettled(questions, settled)
    may = askable(still, effective, policy)
    left = max(0, effective.budget - consumed)
    known = frozenset(settled.asked) if settled else frozenset[str]()
    asked = _covered(may, left, known)
    spent = sum(q.question_id not in known for q in asked)
    going = {q.question_id for q in asked}
    over = tuple(q for q in may if q.question_id not in going and q.type == "blocker")
    going.update(q.question_id for q in over)
    defaulted = tuple(q for q in still if q.question_id not in going)
    flaws = flawed(asked, effective, policy)
    used = PolicyConstraintsUsed(
        execution_mode=effective.mode,
        question_budget=effective.budget,
        question_policy=effective.asking,
        budget_consumed=consumed + spent,
        budget_remaining=left - spent,
    )
    pack = _pack(asked, defaulted, used, round_, plan_id, intent) if asked else None
    return Chosen(pack, defaulted, over, *flaws, consumed=consumed + spent)


def _covered(may: tuple[AskedQuestion, ...], left: int, known: frozenset[str]) -> tuple[AskedQuestion, ...]:
    """What of some questions the budget covers, in their order: one that was asked before costs nothing again."""
    new = [q.question_id for q in may if q.question_id not in known]
    paid = known.union(new[:left])
    return tuple(q for q in may if q.question_id in paid)[:MOST]


def _unsettled(questions: tuple[AskedQuestion, ...], settled: Settled | None) -> tuple[AskedQuestion, ...]:
    answered = {answer.question_id for answer in settled.answers} if settled else set()
    return tuple(q for q in questions if q.question_id not in answered)


def flawed(asked: Iterable[AskedQuestion], effective: Effective, policy: ExecutionPolicy) -> Flaws:
    """What keeps questions from going out, whoever has put them together."""
    rules = policy.question_rules
    least = rules.min_evidence_count if rules.require_evidence else 1
    asked = tuple(asked)
    return Flaws(
        unfit=tuple(q for q in asked if not _allowed(q, effective, policy)),
        unevidenced=tuple(q for q in asked if len(q.evidence_refs) < least),
        undefaulted=tuple(q for q in asked if not _defaulted(q)),
    )


def _allowed(question: AskedQuestion, effective: Effective, policy: ExecutionPolicy) -> bool:
    if effective.asking == "never" or effective.mode == "full_auto":
        return False
    blockers = effective.asking == "blockers_only" or effective.mode == "semi_auto"
    return question.type in policy.question_rules.allowed_types and (
        question.type == "blocker" or not blockers
    )


def _defaulted(question: AskedQuestion) -> bool:
    """Whether a default holds: one of the suggested answers, and for a critical question none that approves."""
    word = default_word(question)
    if word not in {suggestion.answer for suggestion in question.suggested_answers}:
        return False
    return question.blocking_level != "critical" or word not in APPROVING


def _urgency(question: AskedQuestion) -> tuple[bool, int, str]:
    return question.type != "blocker", -RISKS.index(question.blocking_level), question.question_id


def _pack(
    asked: tuple[AskedQuestion, ...],
    defaulted: tuple[AskedQuestion, ...],
    used: PolicyConstraintsUsed,
    round_: int,
    plan_id: str,
    intent: ExecutionIntent,
) -> QuestionPack:
    named = [plan_id, round_, [q.question_id for q in asked], [q.question_id for q in defaulted]]
    return QuestionPack(
        pack_id=f"questions_{digest_of(named)[:16]}",
        plan_id=plan_id,
        intent_id=intent.id,
        round=round_,
        questions=asked,
        defaulted=defaulted,
        policy_constraints=used,
        created_at=intent.created_at,
    )
