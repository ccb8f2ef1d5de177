"""The words that answers are made of, and what settled answers mean for a plan.

**Invariant:** a word that is not here changes nothing; silence means what the question's own default says.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.questions import Answer, AskedQuestion, Settled

LEAVE_OUT = "leave_out"
STOP = "stop"
TEXT = "text"  # the answer is in words of one's own
KEEP = "keep_with_review"
APPROVE = "approve"
ACCEPT_RISK = "accept_risk"
ACCEPT_WITHOUT = "accept_without"
WHOLE_PROJECT = "whole_project"
BY_HAND = "by_hand"

# Answers by which somebody takes something upon themselves; no default of a critical question may be one of them.
APPROVING = frozenset({APPROVE, ACCEPT_RISK, ACCEPT_WITHOUT, WHOLE_PROJECT})


class Choices(NamedTuple):
    """What holds for a plan now, by command or phase; each with why."""

    left_out: Mapping[str, str] = {}
    approved: Mapping[str, str] = {}  # whose review somebody has taken upon themselves
    accepted: Mapping[str, str] = {}  # by command: the answer that stands beside what evidence it has
    by_hand: Mapping[str, str] = {}  # phases without a command
    no_writes: str = ""  # why every command that writes is left out
    scope: tuple[str, ...] = ()  # files and directories that an answer has named
    whole: str = ""  # the answer by which everything may be changed that is `within`
    within: tuple[str, ...] = ()


NO_CHOICES = Choices()


def default_word(question: AskedQuestion) -> str:
    """The answer that a question's default stands for."""
    default = question.default_strategy
    return {"use": default.value, "exclude": LEAVE_OUT, "block": STOP}[default.strategy]


def choices(questions: Iterable[AskedQuestion], settled: Settled) -> Choices:
    """Every settled answer as what it does to the plan."""
    said = {answer.question_id: answer for answer in settled.answers}
    pairs = [(q, said[q.question_id]) for q in questions if q.question_id in said]
    whole = next(((q, a) for q, a in pairs if a.answer == WHOLE_PROJECT), None)
    scopes = [(q, a) for q, a in pairs if q.cause == "ambiguous_scope"]
    commands = [(q, a) for q, a in pairs if q.cause not in ("ambiguous_scope", "missing_command")]
    return Choices(
        left_out=_those(commands, LEAVE_OUT),
        approved=_those(commands, APPROVE),
        accepted={
            q.about: f"answer://{a.question_id}"
            for q, a in commands
            if q.cause == "unmet_evidence" and a.answer == ACCEPT_WITHOUT
        },
        by_hand={
            q.about: why(q, a) for q, a in pairs if q.cause == "missing_command" and a.answer == BY_HAND
        },
        no_writes=next((why(q, a) for q, a in scopes if a.answer == LEAVE_OUT), ""),
        scope=next((named(a.text) for _, a in scopes if a.answer == TEXT), ()),
        whole=f"answer://{whole[1].question_id}" if whole else "",
        within=whole[0].within if whole else (),
    )


def scoped(intent: ExecutionIntent, chosen: Choices) -> ExecutionIntent:
    """The intent with the files that an answer has named in place of its own."""
    if not chosen.scope:
        return intent
    targets = replace(intent.scope.targets, files=chosen.scope)
    return replace(intent, scope=replace(intent.scope, targets=targets))


def judged_scope(intent: ExecutionIntent, chosen: Choices) -> ExecutionIntent:
    """The intent as rules see it: who may change anything has named everything that the plan may reach."""
    return scoped(intent, chosen._replace(scope=chosen.within) if chosen.whole else chosen)


def named(text: str) -> tuple[str, ...]:
    """The files and directories that words name, one a line."""
    return tuple(sorted({line.strip() for line in text.splitlines() if line.strip()}))


def why(question: AskedQuestion, answer: Answer) -> str:
    """Who has said what to which question, in one line."""
    return f"{question.cause}, {_source(answer)}: {answer.answer} ({question.question_id})"


def _source(answer: Answer) -> str:
    """Where an answer comes from; only a timeout means that nobody answered."""
    match answer.provided_by:
        case "human":
            return f"answered by {answer.answered_by}"
        case "fallback" if answer.answered_by:
            return f"left to its default by {answer.answered_by}"
        case "fallback":
            return "nobody answered in time"
        case _:
            return "not asked"


def _those(pairs: list[tuple[AskedQuestion, Answer]], word: str) -> dict[str, str]:
    return {q.about: why(q, a) for q, a in pairs if a.answer == word}
