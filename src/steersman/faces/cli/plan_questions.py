"""The questions of a plan that waits, and a person's answers to them: from a file, or one by one at a prompt."""

import json
import sys
from typing import Any

import click
import msgspec

from steersman.contracts.planning.questions import AskedQuestion, QuestionAnswer, QuestionPack
from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext, indent_stderr_text
from steersman.faces.cli.drive import wait_for_verdict
from steersman.judges.text import clip_text, printable_line
from steersman.ports.journal import Gate
from steersman.views.planning.questions import render_question_lines


def find_waiting_questions(context: CommandContext, run: str) -> tuple[Gate, QuestionPack]:
    """The open gate of a planning run and the questions it is about."""
    from steersman.app.gates import find_open_gate
    from steersman.engine.projections import payload_reader

    gate = find_open_gate(context.runs, context.principal, run)
    if gate.job != "answers":
        raise UserError(f"run {gate.run} asks no questions: see `{context.command_prefix} why {gate.run}`")
    text = payload_reader(context.runs.live(gate.run))(gate.shown["questions"])
    return gate, msgspec.json.decode(text, type=QuestionPack)


def build_answer_template(pack: QuestionPack, *, plain: bool = False) -> Any:
    """An answer pack in which every question has its default, to be changed by whoever knows better; one whose default
    ends the run has no answer yet."""
    answers = [
        {
            "question_id": question.question_id,
            "answer": default_plan_answer(question),
            "text": "",
            "rationale": "",
        }
        for question in pack.questions
    ]
    question_texts = {question.question_id: _summarize_plan_question(question) for question in pack.questions}
    value = {
        "schema_version": "0.9.2",
        "question_pack_id": pack.pack_id,
        "questions": question_texts,
        "answers": answers,
    }
    return value if plain else json.dumps(value, indent=2, ensure_ascii=False)


def _summarize_plan_question(question: AskedQuestion) -> str:
    choices = " | ".join(
        f"{suggestion.answer}: {printable_line(suggestion.meaning)}"
        for suggestion in question.suggested_answers
    )
    return clip_text(f"{printable_line(question.question_text)} {choices}", 4000)


def default_plan_answer(question: AskedQuestion) -> str:
    """The answer that a question's default stands for; nothing where that ends the run: a slip must not."""
    from steersman.judges.planning.choices import ANSWER_STOP, default_answer_word

    word = default_answer_word(question)
    return (
        word
        if word != ANSWER_STOP and word in [suggestion.answer for suggestion in question.suggested_answers]
        else ""
    )


def ask_plan_questions(context: CommandContext, pack: QuestionPack) -> Any:
    """Asks at the terminal, beside the answer; whoever cannot be asked is told how to answer from a file."""
    if sys.stdin is None or not sys.stdin.isatty():
        file_hint = f"`{context.command_prefix} plan answer RUN --template > answers.json`, fill it in, and give the file"
        raise UserError(f"nobody is here to be asked: {file_hint}")
    answers = [
        _ask_plan_question(context, question, number, len(pack.questions))
        for number, question in enumerate(pack.questions, 1)
    ]
    return {"schema_version": "0.9.2", "question_pack_id": pack.pack_id, "answers": answers}


def _ask_plan_question(
    context: CommandContext, question: AskedQuestion, number: int, total: int
) -> dict[str, Any]:
    from steersman.judges.planning.answers import find_answer_problems
    from steersman.judges.planning.choices import ANSWER_TEXT

    for line in render_question_lines(question, number, total):
        click.echo(indent_stderr_text(line), file=sys.stderr)
    allowed = [suggestion.answer for suggestion in question.suggested_answers]
    default_answer = default_plan_answer(question)
    while True:
        word = (
            _read_answer_text(
                f"answer ({'/'.join(allowed)}){f' [{default_answer}]' if default_answer else ''}: "
            )
            or default_answer
        )
        if word not in allowed:
            context.warn(f"{word!r} is none of {', '.join(allowed)}")
            continue
        text = (
            _read_answer_text("which? one a line, end with an empty line:\n", many=True)
            if word == ANSWER_TEXT
            else ""
        )
        answer = QuestionAnswer(
            question_id=question.question_id,
            answer=word,
            text=text,
            rationale=_read_answer_text("why (may be empty): "),
        )
        problem_list = find_answer_problems(question, answer)
        if not problem_list:
            return {
                "question_id": question.question_id,
                "answer": word,
                "text": text,
                "rationale": answer.rationale,
            }
        for answer_problem in problem_list:
            context.warn(f"{answer_problem.message} {answer_problem.fix}")


def _read_answer_text(prompt: str, *, many: bool = False) -> str:
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


def answer_plan_gate(context: CommandContext, gate: Gate, value: Any) -> int:
    """Answers the gate with a pack, or with every default; then the run is driven on."""
    choice = "answer" if value is not None else "defaults"
    answer_text = (
        {"text": context.runs.text(gate.run, json.dumps(value, ensure_ascii=False))}
        if value is not None
        else {}
    )
    message_id = context.runs.answer(gate, choice, context.person, **answer_text)
    context.print(f"{context.person}: {choice} · gate {gate.id}")
    return wait_for_verdict(context, gate.run, message_id)
