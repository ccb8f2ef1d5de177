"""Carries out what a person's word to a run comes to, the same for plain commands and for the prompt.

A word answers the open gate, causes an event, waives a guard or drives the run on. What cannot be done now is refused
with what can. **Invariant:** no process that works for a run performs an action; the machine decides where it leads.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from steersman.app.principal import PostedMessage
from steersman.contracts.machine_names import TASKS_MACHINE
from steersman.engine.machine_package import MachinePackage, find_package
from steersman.engine.person_words import (
    AnswerGate,
    AnswerPlanQuestions,
    PersonMove,
    PrintNote,
    RefuseWord,
    RestoreFiles,
    ResumeRun,
    RunView,
    SendEvent,
    WaiveGuard,
    WordCall,
)
from steersman.engine.projections import read_run_view
from steersman.errors import SteersmanError, UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_REFUSED, EXIT_WAITING, CommandContext
from steersman.faces.cli.drive import resume_and_drive
from steersman.faces.cli.person_events import post_and_drive, refuse_agent_caller
from steersman.faces.cli.plan_answers import ask_task_questions, require_complete_answers
from steersman.faces.cli.typeahead import discard_typeahead
from steersman.faces.repl.document_status import describe_touched_files
from steersman.judges.text import has_visible_text, printable_line
from steersman.kernel.definition import EventDef
from steersman.ports.journal import Head
from steersman.views.gates import GENERAL_CHOICES, choice_word, find_choice
from steersman.views.legal_actions import (
    ACCEPT_EVIDENCE,
    LegalAction,
    RunStatus,
    describe_run_wait,
    find_event_by_word,
)

NOTHING_LEGAL_TEXT = "nothing: it has ended for good"
ActionWording = Callable[[LegalAction], str]  # what is typed for an action here


class ActionNotLegalError(UserError):
    """The action is not legal now."""

    exit_code = EXIT_REFUSED


def command_line_wording(context: CommandContext) -> ActionWording:
    """How the command line says what the prompt says in one word."""
    return lambda action: f"{context.command_prefix} {action.command}"


def find_run_package(context: CommandContext, run: str) -> MachinePackage:
    """The package of the machine that a run belongs to."""
    packages = context.read_only_runs.ports.packages
    return packages[context.read_only_runs.head(run).machine]


# ── where a run is ──────────────────────────────────────────────────────────────────────────────────────────────────


def load_run_status(context: CommandContext, run: str) -> RunStatus:
    """Where a run is now."""
    return _build_run_status(context, read_run_view(context.read_only_runs.ports, run))


def _build_run_status(context: CommandContext, run_view: RunView) -> RunStatus:
    ports = context.read_only_runs.ports
    definition, snapshot, summary = run_view.machine, run_view.snapshot, run_view.status
    package, owner = find_package(ports.packages, definition), ports.locks.owner(snapshot.run)
    resume_actions = (
        (LegalAction("resume", "drive it on", f"resume {snapshot.run}"),)
        if _can_move(context, run_view) and owner is None
        else ()
    )
    wait = describe_run_wait(snapshot, summary.gates, owner, ports.clock.now())
    is_over = snapshot.state in definition.settled or bool(snapshot.ended)
    return RunStatus(
        run=snapshot.run,
        machine=snapshot.machine,
        title=summary.title,
        phase=snapshot.state,
        step="" if is_over or package.read_step is None else package.read_step(snapshot.context),
        status=summary.status,
        outcome=summary.outcome,
        waits=" ".join(filter(None, (wait, summary.cause))),
        next=(*resume_actions, *package.legal_actions(definition, snapshot, summary.gates)),
        after=package.read_earlier_runs(snapshot.context) if package.read_earlier_runs is not None else (),
    )


def _can_move(context: CommandContext, run_view: RunView) -> bool:
    status, journal = run_view.status, context.read_only_runs.ports.journal
    return status.status == "working" or bool(journal.pending(status.run))


# ── what a person does with it ──────────────────────────────────────────────────────────────────────────────────────


class RunWords:
    """The words of one run's machine, carried out."""

    def __init__(self, context: CommandContext, run: str, name_action: ActionWording | None = None) -> None:
        self.context, self.run = context, run
        self._name_action = name_action or command_line_wording(context)
        self._package = find_run_package(context, run)

    def perform(self, word: str, text: str = "", **options: str | None) -> int:
        """Carries out a word of this run's machine."""
        own_word = self._package.words.get(word)
        if own_word is None:
            return self._perform_general_word(word, text)
        read = own_word.read
        return self._carry_out(read(self.read_call(text, options)), text, options)

    def perform_free_text(self, text: str) -> int:
        """Carries out text that a person typed without a word."""
        if self._package.read_free_text is None:
            raise UserError(f"a {self._package.machine.name} takes no free text: type /help")
        return self._carry_out(self._package.read_free_text(self.read_call(text)), text, {})

    def read_call(self, text: str = "", options: Mapping[str, str | None] | None = None) -> WordCall:
        """Where the run is now, for a machine that reads a word."""
        run_view = read_run_view(self.context.runs.ports, self.run)
        return WordCall(
            run_view=run_view,
            legal=_build_run_status(self.context, run_view).next,
            can_move=_can_move(self.context, run_view),
            name_action=self._name_action,
            prompting=self.context.prompting,
            text=text,
            options=options or {},
        )

    def not_now(self, problem: str) -> ActionNotLegalError:
        """Why it cannot be done now, and what can."""
        status = load_run_status(self.context, self.run)
        waits_text = f" and waits: {status.waits}" if status.waits else ""
        legal_text = "; ".join(self._list_typed_actions()) or NOTHING_LEGAL_TEXT
        place = ", ".join(filter(None, (status.step, status.status)))
        return ActionNotLegalError(
            f"{problem}: the {status.machine} is in {status.phase} ({place}){waits_text}\nlegal now: {legal_text}"
        )

    def _list_typed_actions(self) -> list[str]:
        return [self._name_action(action) for action in load_run_status(self.context, self.run).next]

    # ── moves ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _carry_out(self, move: PersonMove, text: str, options: Mapping[str, str | None]) -> int:
        match move:
            case RefuseWord(problem, explain):
                raise self.not_now(problem) if explain else ActionNotLegalError(problem)
            case PrintNote(lines):
                self._print_lines(lines)
                return EXIT_DONE
            case ResumeRun():
                return self.resume()
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

    def resume(self) -> int:
        """Drives the run on, unless another process does."""
        owner = self.context.runs.ports.locks.owner(self.run)
        if owner:
            raise self.not_now(f"{owner} drives it")
        return resume_and_drive(self.context, self.run)

    def _send_event(self, move: SendEvent, text: str, options: Mapping[str, str | None]) -> int:
        self._print_lines(move.lines)
        if move.announce:
            self.context.print(f"{self.context.person}: {move.event}")
        event = self._package.machine.events[move.event]
        if move.then is None:
            return self._post_event(event, move.text, move.reason)
        was_mute, self.context.mute = self.context.mute, True
        try:
            code = self._post_event(event, move.text, move.reason)
        finally:
            self.context.mute = was_mute
        if code != EXIT_WAITING:
            return code
        return self._carry_out(move.then(self.read_call(text, options)), text, options)

    def _post_event(self, event: EventDef, text: str, reason: str) -> int:
        from steersman.app.actions import post_event

        word = event.action.word if event.action is not None else event.name
        known = {"choice": word, "person": self.context.person, "text": self._store_text(text)}
        data = {name: value for name, value in known.items() if name in event.carries.__struct_fields__}
        return self._post(
            lambda: post_event(self.context.runs, self.context.principal, self.run, event.name, data, reason)
        )

    def _waive_guard(self, target: str, reason: str) -> int:
        from steersman.app.actions import post_override

        def post() -> PostedMessage:
            posted = post_override(self.context.runs, self.context.principal, self.run, target, reason)
            self.context.print(f"{self.context.person}: override into {target}: {reason}")
            return posted

        return self._post(post)

    def _answer_gate(self, move: AnswerGate, text: str, options: Mapping[str, str | None]) -> int:
        from steersman.app.gates import AnswerRequest, check_answer, post_answer

        def post() -> PostedMessage:
            answer_text = self._read_answers(move) if move.questions else move.text
            request = AnswerRequest(
                choice=move.choice, reason=move.reason, text=answer_text, digest=move.digest
            )
            answer = check_answer(self.context.runs, self.context.principal, move.gate.id, request)
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
            self._carry_out(move.then(self.read_call(text, options)), text, options)
        return code

    def _confirm(self, question: str) -> bool:
        """A yes that was typed after the question."""
        discard_typeahead()
        return self.context.confirm(question, "Answer y in the next line")

    def _read_answers(self, move: AnswerGate) -> str:
        text = move.text if has_visible_text(move.text) else ask_task_questions(move.questions)
        require_complete_answers(text, move.questions)
        return text

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
        from steersman.faces.repl.document_status import list_wrong_files, restore_run_files

        refusal_code = refuse_agent_caller(self.context, self.run, "restore")
        if refusal_code is not None:
            return refusal_code
        owner = self.context.runs.ports.locks.owner(self.run)
        if owner:
            raise self.not_now(f"{owner} drives it, and looks at its files")
        if not list_wrong_files(self.context, self.run):
            is_pruned = self.context.runs.live(self.run).payloads.is_pruned
            pruned_text = "its texts were pruned, its documents among them"
            raise self.not_now(
                f"there is nothing to restore, {pruned_text if is_pruned else 'its files are as recorded'}"
            )
        return EXIT_ENDED if restore_run_files(self.context, self.run) else EXIT_DONE

    # ── words that gates and events give ────────────────────────────────────────────────────────────────────────────

    def _perform_general_word(self, word: str, text: str) -> int:
        from steersman.app.gates import AnswerRequest
        from steersman.faces.cli.commands.answers import accept_evidence_gate, answer_open_gate
        from steersman.faces.cli.commands.revert import revert_delivered_change

        if word == ACCEPT_EVIDENCE:
            digest, _, reason = text.partition(" ")
            return accept_evidence_gate(self.context, self.run, digest, reason.strip())
        if word == "revert":
            return revert_delivered_change(self.context, self.run, "", text)
        gate = self.read_call().find_open_gate()
        offered = gate.choices if gate is not None else ()
        choice = next((c for c in offered if gate is not None and word in (c, choice_word(gate, c))), "")
        event = find_event_by_word(self._package.machine, word)
        if not choice and event is not None:
            return self._send_own_event(event, text)
        words = find_choice(gate, choice) if gate is not None and choice else GENERAL_CHOICES.get(word)
        if words is not None and words.takes == "text":
            if words.required and not has_visible_text(text):
                raise UserError(words.required)
            return answer_open_gate(
                self.context, self.run, AnswerRequest(choice=choice or word, text=text.strip())
            )
        return answer_open_gate(self.context, self.run, AnswerRequest(choice=choice or word, reason=text))

    def _send_own_event(self, event: EventDef, text: str) -> int:
        if event.action is not None and event.action.required and not has_visible_text(text):
            raise UserError(event.action.required)
        takes_text = "text" in event.carries.__struct_fields__
        return self._post_event(event, text if takes_text else "", "" if takes_text else text)

    def _store_text(self, words: str) -> str:
        return self.context.runs.text(self.run, words.strip()) if has_visible_text(words) else ""

    def _post(self, post: Callable[[], PostedMessage]) -> int:
        return post_and_drive(self.context, post, legal=self._list_typed_actions)


class _NotConfirmedError(UserError):
    """The person has not said yes."""


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
    heads = [
        head
        for head in context.read_only_runs.ports.journal.heads(limit=100_000)
        if head.machine == TASKS_MACHINE
    ]
    return [_read_task_status(context, head) for head in heads[: None if everything else most]]


def _read_task_status(context: CommandContext, head: Head) -> RunStatus:
    from steersman.engine.projections import read_overrides

    try:
        status = load_run_status(context, head.run)
        override_count = len(read_overrides(context.read_only_runs.ports, head.run))
        return replace(
            status, overrides=override_count, files=tuple(describe_touched_files(context, head.run))
        )
    except SteersmanError as error:
        return RunStatus(
            run=head.run,
            machine=head.machine,
            title=head.title,
            phase=head.state,
            step="",
            status="broken",
            outcome="",
            waits=printable_line(str(error)),
            next=(),
        )
