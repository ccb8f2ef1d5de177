"""Questions, problems with answers and conflicts as people read them."""

from typing import Any

import msgspec

from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.questions import AskedQuestion, Conflict, QuestionPack
from steersman.judges.text import one_line


def in_words(name: str, document: str) -> list[str]:
    """What a gate for answers shows, each question, problem or conflict by itself; nothing where it cannot be read."""
    shapes: dict[str, Any] = {
        "questions": QuestionPack,
        "problems": tuple[Problem, ...],
        "conflicts": tuple[Conflict, ...],
    }
    try:
        found = msgspec.json.decode(document, type=shapes[name])
    except (KeyError, msgspec.MsgspecError):
        return []
    match found:
        case QuestionPack():
            of = len(found.questions)
            return ["\n".join(question_lines(q, n, of)[n == 1 :]) for n, q in enumerate(found.questions, 1)]
        case _:
            return [_one(item) for item in found]


def _one(item: Problem | Conflict) -> str:
    if isinstance(item, Problem):
        return one_line(f"{item.field}: {item.message} {item.fix}")
    return one_line(f"{item.question_id}: {item.reason} ({item.command_id or 'the plan'})")


def question_lines(q: AskedQuestion, n: int, of: int) -> list[str]:
    """A question: what, why, on what evidence, what happens without an answer."""
    default = q.default_strategy
    held = f"{default.strategy} {default.value}".strip()
    return [
        "",
        f"{n} of {of} · {q.type} · {q.blocking_level} · {q.question_id}",
        one_line(q.question_text),
        f"  {one_line(q.context)}",
        f"  evidence: {one_line(', '.join(q.evidence_refs))}",
        *(f"  {s.answer}: {one_line(s.meaning)} (risk: {s.risk_change})" for s in q.suggested_answers),
        f"  without an answer: {held} ({one_line(default.reason)})",
    ]
