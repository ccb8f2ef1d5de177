"""Asks a person the questions of a plan that waits, one by one, and answers them."""

import sys
from typing import Any

import click

from steersman.app.plans import PlanQuestions, answer_plan, default_plan_answer
from steersman.app.principal import PostedMessage
from steersman.contracts.planning.questions import AskedQuestion, QuestionAnswer, QuestionPack
from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext, indent_stderr_text
from steersman.faces.cli.person_events import post_and_drive
from steersman.judges.planning.places import NO_FIELD_LINES, FieldLines
from steersman.views.planning.questions import render_question_lines


def ask_plan_questions(context: CommandContext, pack: QuestionPack) -> Any:
    """Asks at the terminal, on standard error; without a terminal it says how to answer from a file."""
    if sys.stdin is None or not sys.stdin.isatty():
        file_hint = f"`{context.command_prefix} plan answer RUN --template > answers.json`, fill it in, and give the file"
        raise UserError(f"standard input is no terminal: {file_hint}")
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
            raise UserError("standard input ended. Nothing was answered, and the questions stay open")
        if not many:
            return line.strip()
        if not line.strip():
            return "\n".join(lines)
        lines.append(line.strip())


def answer_waiting_questions(
    context: CommandContext, questions: PlanQuestions, answers: Any, lines: FieldLines = NO_FIELD_LINES
) -> int:
    """Answers with a pack, or with every default; then the run is driven on."""

    def post() -> PostedMessage:
        posted = answer_plan(context.runs, context.principal, questions, answers, lines)
        choice = "defaults" if answers is None else "answer"
        context.print(f"{context.person}: {choice} · gate {questions.gate.id}")
        return posted

    return post_and_drive(context, post)
