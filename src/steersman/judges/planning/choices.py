"""The words of answers, and what settled answers mean for a plan.

**Invariant:** an unknown word changes nothing. A question without an answer takes its own default.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.questions import AskedQuestion, QuestionAnswer, SettledQuestions

ANSWER_LEAVE_OUT = "leave_out"
ANSWER_STOP = "stop"
ANSWER_TEXT = "text"  # the answer is in words of one's own
ANSWER_KEEP_WITH_REVIEW = "keep_with_review"
ANSWER_APPROVE = "approve"
ANSWER_ACCEPT_RISK = "accept_risk"
ANSWER_ACCEPT_WITHOUT = "accept_without"
ANSWER_WHOLE_PROJECT = "whole_project"
ANSWER_BY_HAND = "by_hand"

# Answers by which a person takes responsibility. No default of a critical question may be one of them.
APPROVING_ANSWERS = frozenset(
    {ANSWER_APPROVE, ANSWER_ACCEPT_RISK, ANSWER_ACCEPT_WITHOUT, ANSWER_WHOLE_PROJECT}
)


class PlanChoices(NamedTuple):
    """What holds for a plan now, by command or phase; each with why."""

    left_out: Mapping[str, str] = {}
    approved: Mapping[str, str] = {}  # a person took responsibility for their review
    accepted: Mapping[str, str] = {}  # by command: the answer that stands beside what evidence it has
    by_hand: Mapping[str, str] = {}  # phases without a command
    no_writes: str = ""  # why every command that writes is left out
    scope: tuple[str, ...] = ()  # files and directories that an answer has named
    whole: str = ""  # the answer by which everything may be changed that is `within`
    within: tuple[str, ...] = ()


NO_CHOICES = PlanChoices()


def default_answer_word(question: AskedQuestion) -> str:
    """The answer that a question's default stands for."""
    default = question.default_strategy
    return {"use": default.value, "exclude": ANSWER_LEAVE_OUT, "block": ANSWER_STOP}[default.strategy]


def collect_plan_choices(questions: Iterable[AskedQuestion], settled: SettledQuestions) -> PlanChoices:
    """Every settled answer as what it does to the plan."""
    answers_by_id = {answer.question_id: answer for answer in settled.answers}
    pairs = [(q, answers_by_id[q.question_id]) for q in questions if q.question_id in answers_by_id]
    whole_project = next(((q, a) for q, a in pairs if a.answer == ANSWER_WHOLE_PROJECT), None)
    scopes = [(q, a) for q, a in pairs if q.cause == "ambiguous_scope"]
    commands = [(q, a) for q, a in pairs if q.cause not in ("ambiguous_scope", "missing_command")]
    return PlanChoices(
        left_out=_reasons_by_subject(commands, ANSWER_LEAVE_OUT),
        approved=_reasons_by_subject(commands, ANSWER_APPROVE),
        accepted={
            q.about: f"answer://{a.question_id}"
            for q, a in commands
            if q.cause == "unmet_evidence" and a.answer == ANSWER_ACCEPT_WITHOUT
        },
        by_hand={
            q.about: explain_settled_answer(q, a)
            for q, a in pairs
            if q.cause == "missing_command" and a.answer == ANSWER_BY_HAND
        },
        no_writes=next((explain_settled_answer(q, a) for q, a in scopes if a.answer == ANSWER_LEAVE_OUT), ""),
        scope=next((parse_named_files(a.text) for _, a in scopes if a.answer == ANSWER_TEXT), ()),
        whole=f"answer://{whole_project[1].question_id}" if whole_project else "",
        within=whole_project[0].within if whole_project else (),
    )


def narrow_intent_scope(intent: ExecutionIntent, chosen: PlanChoices) -> ExecutionIntent:
    """The intent with the files that an answer has named in place of its own."""
    if not chosen.scope:
        return intent
    targets = replace(intent.scope.targets, files=chosen.scope)
    return replace(intent, scope=replace(intent.scope, targets=targets))


def intent_as_rules_see_it(intent: ExecutionIntent, chosen: PlanChoices) -> ExecutionIntent:
    """The intent as rules see it: permission to change anything counts as naming everything that the plan may reach."""
    return narrow_intent_scope(intent, chosen._replace(scope=chosen.within) if chosen.whole else chosen)


def parse_named_files(text: str) -> tuple[str, ...]:
    """The files and directories that words name, one a line."""
    return tuple(sorted({line.strip() for line in text.splitlines() if line.strip()}))


def explain_settled_answer(question: AskedQuestion, answer: QuestionAnswer) -> str:
    """One line: the question, the answer, and who gave it."""
    return f"{question.cause}, {_answer_source(answer)}: {answer.answer} ({question.question_id})"


def _answer_source(answer: QuestionAnswer) -> str:
    """Where an answer comes from. Only a timeout means that no person answered."""
    match answer.provided_by:
        case "human":
            return f"answered by {answer.answered_by}"
        case "fallback" if answer.answered_by:
            return f"left to its default by {answer.answered_by}"
        case "fallback":
            return "nobody answered in time"
        case _:
            return "not asked"


def _reasons_by_subject(pairs: list[tuple[AskedQuestion, QuestionAnswer]], word: str) -> dict[str, str]:
    return {q.about: explain_settled_answer(q, a) for q, a in pairs if a.answer == word}
