"""A person's answers to what a plan asks: one text for all of it, a JSON object by question, or one by one.

**Invariant:** an answer by question answers every one that blocks, and none that nobody has asked.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from steersman.errors import UserError
from steersman.faces.cli.context import indent_stderr_text
from steersman.faces.cli.typeahead import discard_typeahead
from steersman.judges.text import clip_text, has_visible_text, printable_line


def ask_task_questions(questions: Sequence[Any]) -> str:
    """Every question put to whoever sits here; the answers by question."""
    return json.dumps(
        {question.id: _ask_task_question(question.text) for question in questions}, ensure_ascii=False
    )


def _ask_task_question(question: str) -> str:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UserError("nobody is here to be asked: give the answer as TEXT, or as JSON by question id")
    discard_typeahead()  # what was typed before a question answers another one
    while True:
        click.echo(f"{indent_stderr_text(question)}\n> ", nl=False, file=sys.stderr)
        line = sys.stdin.readline()
        if not line:
            raise UserError("nobody answers any more; nothing was answered, the questions stay open")
        if has_visible_text(line):
            return line.strip()


def require_complete_answers(text: str, questions: Sequence[Any]) -> None:
    """Refuses answers by question that leave one open, or answer what nobody asks; any other text answers all of it."""
    if _is_json_list(text):
        raise UserError(
            "nothing was answered: a JSON list answers no question; give a JSON object by question id, or plain words"
        )
    if not text.lstrip().startswith("{"):
        return
    answers = _parse_answers_by_question(text)
    names = {question.id for question in questions} | {question.text for question in questions}
    unknown_ids = sorted(set(answers) - names)
    if unknown_ids or not all(
        isinstance(answer_value, str) and has_visible_text(answer_value) for answer_value in answers.values()
    ):
        question_list = ", ".join(question.id for question in questions)
        raise UserError(f"answers are texts by question id, one of {question_list}" + (f"; not {', '.join(unknown_ids)}" if unknown_ids else ""))  # fmt: skip
    unanswered = [
        question for question in questions if question.id not in answers and question.text not in answers
    ]
    if unanswered:
        question_list = "; ".join(
            f"{question.id}: {clip_text(printable_line(question.text), 200)}" for question in unanswered
        )
        raise UserError(
            f"nothing was answered: every question needs an answer, and these have none: {question_list}"
        )


def _is_json_list(text: str) -> bool:
    """Whether it is JSON that is neither words nor answers by question; a number or `true` may be the word for one."""
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _parse_answers_by_question(text: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise UserError(
            f"that begins like answers by question, and is no JSON ({error}): mend it, or answer in plain words"
        ) from None
    return value
