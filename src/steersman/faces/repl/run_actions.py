"""Carries out what a person's word to a run comes to, the same for plain commands and for the prompt.

A word answers the open gate, causes an event, waives a guard or drives the run on. What cannot be done now is refused
with what can. **Invariant:** no process that works for a run performs an action; the machine decides where it leads.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from steersman.app.principal import PostedMessage
from steersman.app.run_words import (
    ActionNotLegalNowError,
    ActionWording,
    AnswerGate,
    AnswerPlanQuestions,
    PersonMove,
    PrintNote,
    RefuseWord,
    RestoreFiles,
    ResumeRun,
    RunWords,
    SendEvent,
    WaiveGuard,
    list_run_status,
)
from steersman.contracts.machine_names import TASKS_MACHINE
from steersman.errors import UserError
from steersman.faces.cli.context import (
    EXIT_DONE,
    EXIT_ENDED,
    EXIT_WAITING,
    CommandContext,
    indent_stderr_text,
)
from steersman.faces.cli.drive import resume_and_drive
from steersman.faces.cli.person_events import post_and_drive, refuse_agent_caller
from steersman.faces.cli.typeahead import discard_typeahead
from steersman.judges.text import has_visible_text
from steersman.kernel.definition import EventDef
from steersman.views.legal_actions import RunStatus


class WordPerformer:
    """Carries out the words of one run's machine."""

    def __init__(self, context: CommandContext, run: str, name_action: ActionWording | None = None) -> None:
        self.context, self.run = context, run
        self._words = RunWords(context.runs, context.principal, run, name_action)

    def perform(self, word: str, text: str = "", **options: str | None) -> int:
        """Carries out a word of this run's machine."""
        move = self._words.read(word, text, options)
        return (
            self._perform_offered_word(word, text) if move is None else self._carry_out(move, text, options)
        )

    def perform_free_text(self, text: str) -> int:
        """Carries out text that a person typed without a word."""
        return self._carry_out(self._words.read_free_text(text), text, {})

    def list_completions(self, word: str) -> list[str]:
        """What may follow a word."""
        own_word = self._words.package.words.get(word)
        complete = own_word.complete if own_word is not None else None
        return list(complete(self._words.read_call())) if complete is not None else []

    # ── moves ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _carry_out(self, move: PersonMove, text: str, options: Mapping[str, str | None]) -> int:
        match move:
            case RefuseWord(problem, explain):
                raise self._words.explain_refusal(problem) if explain else ActionNotLegalNowError(problem)
            case PrintNote(lines):
                self._print_lines(lines)
                return EXIT_DONE
            case ResumeRun():
                return self._resume()
            case RestoreFiles():
                return self._restore_files()
            case AnswerPlanQuestions(defaults):
                return self._answer_plan_questions(text, defaults=defaults)
            case WaiveGuard(target, reason):
                return self._waive_guard(target, reason)
            case SendEvent():
                return self._send_event(move, text, options)
            case AnswerGate():
                return self._answer_gate(move, text, options)

    def _print_lines(self, lines: tuple[str, ...]) -> None:
        for line in lines:
            self.context.print(line)

    def _resume(self) -> int:
        """Drives the run on, unless another process does."""
        owner = self.context.runs.ports.locks.owner(self.run)
        if owner:
            raise self._words.explain_refusal(f"{owner} drives it")
        return resume_and_drive(self.context, self.run)

    def _send_event(self, move: SendEvent, text: str, options: Mapping[str, str | None]) -> int:
        self._print_lines(move.lines)
        if move.announce:
            self.context.print(f"{self.context.person}: {move.event}")
        event = self._words.package.machine.events[move.event]
        if move.then is None:
            return self._post_event(event, move.text, move.reason)
        was_mute, self.context.mute = self.context.mute, True
        try:
            code = self._post_event(event, move.text, move.reason)
        finally:
            self.context.mute = was_mute
        if code != EXIT_WAITING:
            return code
        return self._carry_out(move.then(self._words.read_call(text, options)), text, options)

    def _post_event(self, event: EventDef, text: str, reason: str) -> int:
        return self._post(lambda: self._words.post_event(event, text, reason))

    def _waive_guard(self, target: str, reason: str) -> int:
        from steersman.app.actions import post_override

        def post() -> PostedMessage:
            posted = post_override(self.context.runs, self.context.principal, self.run, target, reason)
            self.context.print(f"{self.context.person}: override into {target}: {reason}")
            return posted

        return self._post(post)

    def _answer_gate(self, move: AnswerGate, text: str, options: Mapping[str, str | None]) -> int:
        from steersman.app.gates import post_answer

        def post() -> PostedMessage:
            is_asked = bool(move.questions) and not has_visible_text(move.text)
            given = _ask_task_questions(move.questions) if is_asked else move.text
            answer = self._words.check_answer(move, given)
            self._print_lines((*move.lines, *answer.preview))
            if move.confirm and self.context.prompting and not self._confirm(move.confirm):
                raise _NotConfirmedError
            posted = post_answer(self.context.runs, self.context.principal, answer)
            self.context.print(f"{self.context.person}: {answer.word} · gate {move.gate.id}")
            return posted

        try:
            code = self._post(post)
        except _NotConfirmedError:
            self.context.print("nothing was decided")
            return EXIT_WAITING
        if move.then is not None and code == EXIT_WAITING:
            self._carry_out(move.then(self._words.read_call(text, options)), text, options)
        return code

    def _confirm(self, question: str) -> bool:
        """A yes that was typed after the question."""
        discard_typeahead()
        return self.context.confirm(question, "Answer y in the next line")

    def _answer_plan_questions(self, text: str, *, defaults: bool) -> int:
        from steersman.app.plans import find_plan_questions
        from steersman.faces.cli.plan_questions import answer_waiting_questions, ask_plan_questions

        questions = find_plan_questions(self.context.runs, self.context.principal, self.run)
        if text and not defaults:
            raise UserError(
                "the questions of a plan are answered one by one: type /answer alone, or /defaults"
            )
        answers = None if defaults else ask_plan_questions(self.context, questions.pack)
        return answer_waiting_questions(self.context, questions, answers)

    def _restore_files(self) -> int:
        from steersman.app.documents import list_wrong_files
        from steersman.faces.repl.document_status import restore_and_print

        refusal_code = refuse_agent_caller(self.context, self.run, "restore")
        if refusal_code is not None:
            return refusal_code
        ports = self.context.runs.ports
        owner = ports.locks.owner(self.run)
        if owner:
            raise self._words.explain_refusal(f"{owner} drives it, and looks at its files")
        if not list_wrong_files(ports, self.run):
            is_pruned = self.context.runs.live(self.run).payloads.is_pruned
            pruned_text = "its texts were pruned, its documents among them"
            raise self._words.explain_refusal(
                f"there is nothing to restore, {pruned_text if is_pruned else 'its files are as recorded'}"
            )
        return EXIT_DONE if restore_and_print(self.context, self.run) else EXIT_ENDED

    def _perform_offered_word(self, word: str, text: str) -> int:
        """Carries out a word that a gate or an event gives."""
        from steersman.faces.cli.commands.answers import answer_open_gate
        from steersman.faces.cli.commands.revert import revert_delivered_change

        if word == "revert":
            return revert_delivered_change(self.context, self.run, "", text)
        move = self._words.read_offered(word, text)
        if isinstance(move, SendEvent):
            return self._carry_out(move, text, {})
        return answer_open_gate(self.context, self.run, move)

    def _post(self, post: Callable[[], PostedMessage]) -> int:
        return post_and_drive(self.context, post, legal=self._words.list_typed_actions)


class _NotConfirmedError(UserError):
    """The person has not said yes."""


def _ask_task_questions(questions: Sequence[Any]) -> str:
    """Asks the person every question and returns the answers by question."""
    return json.dumps(
        {question.id: _ask_task_question(question.text) for question in questions}, ensure_ascii=False
    )


def _ask_task_question(question: str) -> str:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UserError("standard input is no terminal. Give the answer as TEXT, or as JSON by question id")
    discard_typeahead()  # what was typed before a question answers another one
    while True:
        click.echo(f"{indent_stderr_text(question)}\n> ", nl=False, file=sys.stderr)
        line = sys.stdin.readline()
        if not line:
            raise UserError("standard input ended. Nothing was answered, and the questions stay open")
        if has_visible_text(line):
            return line.strip()


# ── tasks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def start_task(
    context: CommandContext,
    words: str,
    *,
    step: bool,
    plan: str = "",
    key: str = "",
    after: tuple[str, ...] = (),
    issue: str = "",
) -> tuple[str, int]:
    """A new task, driven until it waits; its run and the exit code."""
    from steersman.app.principal import require_person
    from steersman.app.start import RunOrder, check_order
    from steersman.faces.cli.commands.run import plan_run_start, warn_unused_changes
    from steersman.faces.cli.drive import start_and_drive
    from steersman.faces.cli.issue_text import read_issue_text

    given = {"step": step, "plan": plan, "key": key, "after": after}
    order = RunOrder(
        machine=TASKS_MACHINE,
        task=words,
        issue=read_issue_text(issue),
        given={name: value for name, value in given.items() if value},
    )
    order = check_order(context.services.installed_packages(), order, context.command_prefix)
    require_person(context.principal)
    config = context.load_config().config
    request = plan_run_start(context, config, order)
    warn_unused_changes(context, config)
    context.create_runs()
    return start_and_drive(context, request)


def list_task_status(context: CommandContext, *, everything: bool, most: int = 20) -> list[RunStatus]:
    """The tasks of the project, the last one that moved first; one that cannot be read has the status broken."""
    prefix = "" if context.prompting else context.command_prefix
    limit = None if everything else most
    return list_run_status(context.read_only_runs.ports, TASKS_MACHINE, prefix, limit)
