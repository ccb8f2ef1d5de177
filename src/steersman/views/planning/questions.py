"""Renders the planner's questions, problems with answers, and conflicts."""

from typing import Any

import msgspec

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.questions import AnswerConflict, AskedQuestion, QuestionPack
from steersman.judges.text import printable_line


def render_answer_gate_items(name: str, document: str) -> list[str]:
    """Returns what an answer gate shows, one item for each question, problem or conflict; nothing for other documents."""
    shapes: dict[str, Any] = {
        "questions": QuestionPack,
        "problems": tuple[DocumentProblem, ...],
        "conflicts": tuple[AnswerConflict, ...],
    }
    try:
        items = msgspec.json.decode(document, type=shapes[name])
    except (KeyError, msgspec.MsgspecError):
        return []
    match items:
        case QuestionPack():
            total = len(items.questions)
            return [
                "\n".join(render_question_lines(q, n, total)[n == 1 :])
                for n, q in enumerate(items.questions, 1)
            ]
        case _:
            return [_render_gate_item(item) for item in items]


def _render_gate_item(item: DocumentProblem | AnswerConflict) -> str:
    if isinstance(item, DocumentProblem):
        return printable_line(f"{item.field}: {item.message} {item.fix}")
    return printable_line(f"{item.question_id}: {item.reason} ({item.command_id or 'the plan'})")


def render_question_lines(question: AskedQuestion, number: int, total: int) -> list[str]:
    """Renders a question: text, context, evidence, suggested answers, and its default."""
    default = question.default_strategy
    default_text = f"{default.strategy} {default.value}".strip()
    return [
        "",
        f"{number} of {total} · {question.type} · {question.blocking_level} · {question.question_id}",
        printable_line(question.question_text),
        f"  {printable_line(question.context)}",
        f"  evidence: {printable_line(', '.join(question.evidence_refs))}",
        *(
            f"  {s.answer}: {printable_line(s.meaning)} (risk: {s.risk_change})"
            for s in question.suggested_answers
        ),
        f"  without an answer: {default_text} ({printable_line(default.reason)})",
    ]
