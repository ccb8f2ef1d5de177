"""A person's answers to what a plan asks: one text for all of it, a JSON object by question, or one by one.

**Invariant:** an answer by question answers every one that blocks, and none that nobody has asked.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from steersman.errors import UserError
from steersman.faces.deck import aside
from steersman.faces.haste import forget_typed
from steersman.judges.text import clip, one_line, visible


def one_by_one(asked: Sequence[Any]) -> str:
    """Every question put to whoever sits here; the answers by question."""
    return json.dumps({q.id: _ask(q.text) for q in asked}, ensure_ascii=False)


def _ask(question: str) -> str:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UserError("nobody is here to be asked: give the answer as TEXT, or as JSON by question id")
    forget_typed()  # what was typed before a question answers another one
    while True:
        click.echo(f"{aside(question)}\n> ", nl=False, file=sys.stderr)
        line = sys.stdin.readline()
        if not line:
            raise UserError("nobody answers any more; nothing was answered, the questions stay open")
        if visible(line):
            return line.strip()


def complete(text: str, asked: Sequence[Any]) -> None:
    """Refuses answers by question that leave one open, or answer what nobody asks; any other text answers all of it."""
    if _is_list(text):
        raise UserError(
            "nothing was answered: a JSON list answers no question; give a JSON object by question id, or plain words"
        )
    if not text.lstrip().startswith("{"):
        return
    given = _by_question(text)
    names = {q.id for q in asked} | {q.text for q in asked}
    strange = sorted(set(given) - names)
    if strange or not all(isinstance(v, str) and visible(v) for v in given.values()):
        told = ", ".join(q.id for q in asked)
        raise UserError(f"answers are texts by question id, one of {told}" + (f"; not {', '.join(strange)}" if strange else ""))  # fmt: skip
    left = [q for q in asked if q.id not in given and q.text not in given]
    if left:
        told = "; ".join(f"{q.id}: {clip(one_line(q.text), 200)}" for q in left)
        raise UserError(f"nothing was answered: every question needs an answer, and these have none: {told}")


def _is_list(text: str) -> bool:
    """Whether it is JSON that is neither words nor answers by question; a number or `true` may be the word for one."""
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _by_question(text: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise UserError(
            f"that begins like answers by question, and is no JSON ({error}): mend it, or answer in plain words"
        ) from None
    return value
