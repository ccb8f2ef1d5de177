"""The questions of a plan that waits, and a person's answers to them: from a file, or one by one at a prompt."""

import json
import sys
from typing import Any

import click
import msgspec

from steersman.contracts.planning.questions import Answer, AskedQuestion, QuestionPack
from steersman.errors import UserError
from steersman.faces.deck import Deck, aside
from steersman.faces.voyage import spoken
from steersman.judges.text import clip, one_line
from steersman.ports.journal import Gate
from steersman.views.planning.questions import question_lines


def waiting_pack(deck: Deck, run: str) -> tuple[Gate, QuestionPack]:
    """The open gate of a planning run and the questions it is about."""
    from steersman.faces.commands.answers import open_gate
    from steersman.runtime.projections import reading

    gate = open_gate(deck, run)
    if gate.job != "answers":
        raise UserError(f"run {gate.run} asks no questions: see `{deck.me} why {gate.run}`")
    text = reading(deck.bridge.live(gate.run))(gate.shown["questions"])
    return gate, msgspec.json.decode(text, type=QuestionPack)


def template_of(pack: QuestionPack, *, plain: bool = False) -> Any:
    """An answer pack in which every question has its default, to be changed by whoever knows better; one whose default
    ends the run has no answer yet."""
    answers = [
        {"question_id": q.question_id, "answer": first_answer(q), "text": "", "rationale": ""}
        for q in pack.questions
    ]
    asked = {q.question_id: _in_one_line(q) for q in pack.questions}
    value = {
        "schema_version": "0.9.2",
        "question_pack_id": pack.pack_id,
        "questions": asked,
        "answers": answers,
    }
    return value if plain else json.dumps(value, indent=2, ensure_ascii=False)


def _in_one_line(q: AskedQuestion) -> str:
    choices = " | ".join(f"{s.answer}: {one_line(s.meaning)}" for s in q.suggested_answers)
    return clip(f"{one_line(q.question_text)} {choices}", 4000)


def first_answer(question: AskedQuestion) -> str:
    """The answer that a question's default stands for; nothing where that ends the run: a slip must not."""
    from steersman.machines.coordinator.choices import STOP, default_word

    word = default_word(question)
    return word if word != STOP and word in [s.answer for s in question.suggested_answers] else ""


def ask_each(deck: Deck, pack: QuestionPack) -> Any:
    """Asks at the terminal, beside the answer; whoever cannot be asked is told how to answer from a file."""
    if sys.stdin is None or not sys.stdin.isatty():
        told = f"`{deck.me} plan answer RUN --template > answers.json`, fill it in, and give the file"
        raise UserError(f"nobody is here to be asked: {told}")
    answers = [_asked(deck, q, n, len(pack.questions)) for n, q in enumerate(pack.questions, 1)]
    return {"schema_version": "0.9.2", "question_pack_id": pack.pack_id, "answers": answers}


def _asked(deck: Deck, q: AskedQuestion, n: int, of: int) -> dict[str, Any]:
    from steersman.machines.coordinator.answers import misfits
    from steersman.machines.coordinator.choices import TEXT

    for line in question_lines(q, n, of):
        click.echo(aside(line), file=sys.stderr)
    known = [s.answer for s in q.suggested_answers]
    first = first_answer(q)
    while True:
        word = _line(f"answer ({'/'.join(known)}){f' [{first}]' if first else ''}: ") or first
        if word not in known:
            deck.warn(f"{word!r} is none of {', '.join(known)}")
            continue
        text = _line("which? one a line, end with an empty line:\n", many=True) if word == TEXT else ""
        answer = Answer(
            question_id=q.question_id, answer=word, text=text, rationale=_line("why (may be empty): ")
        )
        wrong = misfits(q, answer)
        if not wrong:
            return {"question_id": q.question_id, "answer": word, "text": text, "rationale": answer.rationale}
        for p in wrong:
            deck.warn(f"{p.message} {p.fix}")


def _line(prompt: str, *, many: bool = False) -> str:
    lines: list[str] = []
    click.echo(prompt, nl=False, file=sys.stderr)
    while True:
        line = sys.stdin.readline()
        if not line:
            raise UserError("nobody answers any more; nothing was answered, the questions stay open")
        if not many:
            return line.strip()
        if not line.strip():
            return "\n".join(lines)
        lines.append(line.strip())


def answer_with(deck: Deck, gate: Gate, value: Any) -> int:
    """Answers the gate with a pack, or with every default; then the run is driven on."""
    choice = "answer" if value is not None else "defaults"
    more = (
        {"text": deck.bridge.text(gate.run, json.dumps(value, ensure_ascii=False))}
        if value is not None
        else {}
    )
    posted = deck.bridge.answer(gate, choice, deck.person, **more)
    deck.say(f"{deck.person}: {choice} · gate {gate.id}")
    return spoken(deck, gate.run, posted)
