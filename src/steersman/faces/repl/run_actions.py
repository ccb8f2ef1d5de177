"""What a person does with a task: the same deeds behind plain commands and behind the prompt.

A deed answers the gate that is open, or posts an event; what cannot be done now is said with what can.
**Invariant:** nothing that works for a run does a deed; the machine, not this module, decides what a deed leads to.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from steersman.contracts.task.words import TASK_PHASES
from steersman.errors import SteersmanError, UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_REFUSED, EXIT_WAITING, CommandContext
from steersman.faces.cli.drive import resume_and_drive, wait_for_verdict
from steersman.faces.cli.person_events import refuse_agent_caller
from steersman.faces.cli.plan_answers import ask_task_questions, require_complete_answers
from steersman.faces.repl.document_status import describe_touched_files
from steersman.judges.text import has_visible_text, printable_line
from steersman.kernel.snapshot import Snapshot, context_fields
from steersman.machines.task.views.actions import (
    DECISION_BY_PHASE,
    NEXT_PHASE,
    WORD_BY_PHASE,
    kept_document_lines,
)
from steersman.ports.journal import Gate, Head
from steersman.views.legal_actions import LegalAction, RunStatus, describe_run_wait

TASK_MACHINE = "task"
REOPEN_EVENT = "redo_accept"
REDOABLE_PHASES = TASK_PHASES[:-2]  # what can be done again: a revert is asked for anew, with its own word
NOTHING_LEGAL_TEXT = "nothing: it has ended for good"
ActionWording = Callable[[LegalAction], str]  # what is typed for an action here


class ActionNotLegalError(UserError):
    """It cannot be done now."""

    exit_code = EXIT_REFUSED


def require_begin_reason(reason: str) -> None:
    """Refuses to have a task begin without those that come first, where nobody says why."""
    if not has_visible_text(reason):
        raise ActionNotLegalError("a task that begins without the others needs a reason: say why it may")


def command_line_wording(context: CommandContext) -> ActionWording:
    """How the command line says what the prompt says in one word."""
    return lambda action: f"{context.command_prefix} {action.command}"


def load_run_status(context: CommandContext, run: str) -> RunStatus:
    """Where a run is now."""
    from steersman.engine.machine_package import find_package
    from steersman.engine.projections import read_run_view

    ports = context.read_only_runs.ports
    run_view = read_run_view(ports, run)
    definition, snapshot, summary = run_view.machine, run_view.snapshot, run_view.status
    owner = ports.locks.owner(run)
    can_move = summary.status == "working" or bool(ports.journal.pending(run))
    resume_actions = (
        (LegalAction("resume", "drive it on", f"resume {run}"),) if can_move and owner is None else ()
    )
    find_actions = find_package(ports.packages, definition).legal_actions
    return RunStatus(
        run=run,
        machine=snapshot.machine,
        title=summary.title,
        phase=snapshot.state,
        step=""
        if snapshot.state in definition.settled or snapshot.ended
        else str(context_fields(snapshot.context).get("step", "")),
        status=summary.status,
        outcome=summary.outcome,
        waits=" ".join(
            filter(
                None, (describe_run_wait(snapshot, summary.gates, owner, ports.clock.now()), summary.cause)
            )
        ),
        next=(*resume_actions, *find_actions(definition, snapshot, summary.gates)),
        after=tuple(context_fields(snapshot.context).get("after", ())),
    )


class RunActions:
    """A person's hand on one task."""

    def __init__(self, context: CommandContext, run: str, wording: ActionWording | None = None) -> None:
        self.deck, self.run, self.named = context, run, wording or command_line_wording(context)
        machine = context.runs.head(run).machine
        if machine != TASK_MACHINE:
            raise UserError(f"run {run} is no task but a {machine}: see `{context.command_prefix} why {run}`")

    # ── what is there ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def snapshot(self) -> Snapshot:
        snapshot: Snapshot = self.deck.runs.live(self.run).snapshot
        return snapshot

    def gate(self, *jobs: str) -> Gate | None:
        """The open gate, where it is one of these."""
        open_gates = [
            open_gate for open_gate in self.deck.runs.ports.journal.gates(self.run) if not open_gate.answer
        ]
        return next((open_gate for open_gate in open_gates if not jobs or open_gate.job in jobs), None)

    def not_now(self, problem_text: str) -> ActionNotLegalError:
        """Why it cannot be done, and what can."""
        status = load_run_status(self.deck, self.run)
        waits_text = f" and waits: {status.waits}" if status.waits else ""
        legal_text = "; ".join(self.named(action) for action in status.next) or NOTHING_LEGAL_TEXT
        return ActionNotLegalError(
            f"{problem_text}: the task is in {status.phase} ({', '.join(filter(None, (status.step, status.status)))}){waits_text}\nlegal now: {legal_text}"
        )

    # ── going on ────────────────────────────────────────────────────────────────────────────────────────────────────

    def next(self) -> int:
        """The open gate's yes; a task that stands still because nobody drives it is driven on."""
        gate = self.gate("next", "others")
        if gate is not None:
            return self._answered(gate, "approve" if gate.job == "next" else "retry")
        is_working = self.deck.runs.head(self.run).status == "working"
        if self.gate() is None and (is_working or self.deck.runs.ports.journal.pending(self.run)):
            return self.resume()
        raise self.not_now("there is no next")

    def resume(self) -> int:
        """Drives it on, unless somebody does."""
        owner = self.deck.runs.ports.locks.owner(self.run)
        if owner:
            raise self.not_now(f"{owner} drives it")
        return resume_and_drive(self.deck, self.run)

    def begin(self, reason: str) -> int:
        """Has it begin though a task that comes first is missing, with why."""
        gate = self.gate("others")
        if gate is None:
            raise self.not_now("it waits for no other task")
        require_begin_reason(reason)
        return self._answered(gate, "begin", reason=reason)

    def override(self, reason: str, target_phase: str = "") -> int:
        """Waives the guard before the next phase, or has it refused, with why."""
        if not has_visible_text(reason):
            raise ActionNotLegalError(
                'an override needs a reason: --override "why it may go on all the same"'
            )
        refusal_code = refuse_agent_caller(self.deck, self.run, "override")
        if refusal_code is not None:
            return refusal_code
        target = target_phase or NEXT_PHASE[self.snapshot.state]
        message_id = self.deck.runs.override(self.run, target, self.deck.person, reason)
        self.deck.print(f"{self.deck.person}: override into {target}: {reason}")
        return wait_for_verdict(self.deck, self.run, message_id, legal=self._legal)

    def redo(self, phase: str, words: str = "") -> int:
        """A phase again: the open decision where that is what it asks, else the machine's own event."""
        if phase == "revert":
            raise UserError(
                f"nothing is taken back by doing it again: {self.named(LegalAction('revert', '', f'tasks revert {self.run}'))} does, with a reason"
            )
        if phase not in REDOABLE_PHASES:
            raise UserError(f"there is no phase {phase!r} to do again: one of {', '.join(REDOABLE_PHASES)}")
        if not self._may_redo(phase):
            raise self.not_now(f"{phase} cannot be done again now")
        self._tell_kept(phase)
        gate = self.gate("decide")
        if gate is not None and phase in ("planning", "codegen", "review"):
            return self._answered(gate, DECISION_BY_PHASE[phase], text=self._text(words))
        gate = self.gate("evidence")
        if gate is not None and phase == "codegen":
            return self._answered(gate, "rework", text=self._text(words))
        return self._send(f"redo_{phase}", words)

    def _may_redo(self, phase: str) -> bool:
        return any(
            action.word in (f"redo {phase}", WORD_BY_PHASE[phase])
            for action in load_run_status(self.deck, self.run).next
        )

    def note(self, words: str) -> None:
        """Words for whoever works next, where the run goes on at once: what it asks is not told in between."""
        was_silent, self.deck.mute = self.deck.mute, True
        try:
            self.say(words)
        finally:
            self.deck.mute = was_silent

    def say(self, words: str) -> int:
        """Words for whoever works next."""
        if not has_visible_text(words):
            raise UserError("say what? give words")
        if not any(action.word == "say" for action in load_run_status(self.deck, self.run).next):
            raise self.not_now("nobody works on it who could be told")
        return self._send("words_given", words)

    def choose(self, choice: str, *, reason: str = "", text: str = "") -> int:
        """An open gate's own choice, such as restore, adopt or retry."""
        gate = self.gate()
        if gate is None or choice not in gate.choices:
            raise self.not_now(f"{choice} is no choice")
        if choice == "raise":
            raise UserError(
                f"give the new limit: {self.deck.command_prefix} answer {self.run} raise --tokens N"
            )
        return self._answered(gate, choice, reason=reason, text=self._text(text))

    def restore(self, reason: str = "") -> int:
        """Recorded documents put back and what is made from the tape made again; where that is asked, as the answer."""
        from steersman.faces.repl.document_repair import list_wrong_files, restore_run_files

        gate = self.gate()
        if gate is not None and "restore" in gate.choices:
            return self.choose("restore", reason=reason)
        refusal_code = refuse_agent_caller(self.deck, self.run, "restore")
        if refusal_code is not None:
            return refusal_code
        owner = self.deck.runs.ports.locks.owner(self.run)
        if owner:
            raise self.not_now(f"{owner} drives it, and looks at its files")
        if not list_wrong_files(self.deck, self.run):
            is_pruned = self.deck.runs.live(self.run).payloads.is_pruned
            nothing_reason = (
                "its texts were pruned, its documents among them"
                if is_pruned
                else "its files are as recorded"
            )
            raise self.not_now(f"there is nothing to restore, {nothing_reason}")
        return EXIT_ENDED if restore_run_files(self.deck, self.run) else EXIT_DONE

    # ── questions ───────────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, text: str = "") -> int:
        """Answers what the plan asks: one text for all of it, a JSON object by question, or one by one."""
        gate = self.gate("questions")
        if gate is None:
            raise self.not_now("nothing is asked")
        questions = self.asked()
        if not has_visible_text(text):
            text = ask_task_questions(questions)
        require_complete_answers(text, questions)
        return self._answered(gate, "answer", text=self._text(text))

    def asked(self) -> tuple[Any, ...]:
        """The questions that are open."""
        import msgspec

        from steersman.contracts.task.documents import TaskPlan
        from steersman.contracts.task.words import PLAN_FILE
        from steersman.judges.task.plan import find_open_plan_questions

        plan_text = self.document(PLAN_FILE)
        return find_open_plan_questions(msgspec.json.decode(plan_text, type=TaskPlan)) if plan_text else ()

    # ── the decision ────────────────────────────────────────────────────────────────────────────────────────────────

    def accept(
        self, reason: str = "", digest: str | None = None, *, sure: Callable[[], bool] | None = None
    ) -> int:
        """Shows exactly what is accepted, then accepts it; `sure` is asked in between."""
        gate = self.gate("decide")
        if gate is None:
            raise self.not_now("there is nothing to accept")
        for line in self.accepted(gate):
            self.deck.print(line)
        if sure is not None and not sure():
            self.deck.print("nothing was decided")
            return EXIT_WAITING
        return self._answered(gate, "approve", reason=reason, digest=digest)

    def accepted(self, gate: Gate) -> list[str]:
        """What the decision is about."""
        from steersman.engine.projections import read_run_view
        from steersman.machines.task.views.acceptance import acceptance_lines

        run_view = read_run_view(self.deck.runs.ports, self.run)
        return acceptance_lines(run_view.snapshot, run_view.status, gate, run_view.text)

    def revert(self, reason: str = "") -> int:
        """Takes a delivered change back: the decision is reopened where it was made already."""
        gate = self.gate("decide")
        if gate is None:
            snapshot = self.snapshot
            run_fields = context_fields(snapshot.context)
            if snapshot.state == "done" and run_fields["reverted_commit"]:
                raise self.not_now(
                    f"it was taken back already, by commit {run_fields['reverted_commit'][:12]}"
                )
            if run_fields["delivered"] == "yes" and snapshot.state != "done":
                raise self.not_now(self._still_there(run_fields))
            if snapshot.state != "done" or run_fields["delivered"] != "yes":
                raise self.not_now("there is nothing to take back")
            code = self._reopened(reason)
            if code is not None:
                return code
            gate = self.gate("decide")
        if gate is None:
            raise self.not_now("the decision is not open")
        return self._answered(gate, "revert", reason=reason)

    def _still_there(self, run_fields: dict[str, Any]) -> str:
        """Why a change that was handed over cannot be taken back while its task is at work again."""
        commits_text = " ".join(commit[:12] for commit in reversed(run_fields["deliveries"]))
        return (
            f"what it handed over is still there, but the task was reopened and can take it back only from accept or done; "
            f"`git revert {commits_text}` takes it back by hand"
        )

    def _reopened(self, reason: str) -> int | None:
        """The first half of a late revert; an exit code where it went no further."""
        self.deck.print(f"{self.deck.person}: {REOPEN_EVENT}")
        was_silent, self.deck.mute = self.deck.mute, True
        try:
            code = self._send(REOPEN_EVENT, "", reason)
        finally:
            self.deck.mute = was_silent
        return None if code == EXIT_WAITING else code

    # ── documents ───────────────────────────────────────────────────────────────────────────────────────────────────

    def document(self, name: str) -> str:
        """A document as it was recorded; nothing where there is none."""
        from steersman.engine.projections import payload_reader

        active_run = self.deck.runs.live(self.run)
        return payload_reader(active_run)(
            context_fields(active_run.snapshot.context)["documents"].get(name, "")
        )

    # ── speaking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _answered(self, gate: Gate, choice: str, *, digest: str | None = None, **optional_fields: str) -> int:
        refusal_code = refuse_agent_caller(self.deck, self.run, choice)
        if refusal_code is not None:
            return refusal_code
        answer_fields = {name: value for name, value in optional_fields.items() if value}
        message_id = self.deck.runs.answer(gate, choice, self.deck.person, digest=digest, **answer_fields)
        self.deck.print(f"{self.deck.person}: {choice} · gate {gate.id}")
        return wait_for_verdict(
            self.deck, self.run, message_id, wanted_end=choice in ("revert", "stop"), legal=self._legal
        )

    def _send(self, event: str, words: str = "", reason: str = "") -> int:
        refusal_code = refuse_agent_caller(self.deck, self.run, event)
        if refusal_code is not None:
            return refusal_code
        data = {"text": self._text(words), "person": self.deck.person}
        message_id = self.deck.runs.send(self.run, event, data, self.deck.person, reason)
        return wait_for_verdict(self.deck, self.run, message_id, legal=self._legal)

    def _legal(self) -> list[str]:
        """What is legal now, as it is typed here."""
        return [self.named(action) for action in load_run_status(self.deck, self.run).next]

    def _text(self, words: str) -> str:
        return self.deck.runs.text(self.run, words.strip()) if has_visible_text(words) else ""

    def _tell_kept(self, phase: str) -> None:
        reused_documents = kept_document_lines(self.snapshot, phase)
        if reused_documents:
            self.deck.print(f"{phase} again; reused: {', '.join(reused_documents)}", dim=True)


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
    from steersman.engine.start import StartRequest
    from steersman.faces.cli.commands.run import plan_run_start, warn_uncommitted_changes
    from steersman.faces.cli.drive import start_and_drive
    from steersman.faces.cli.issue_text import ISSUE_TASK_TEXT as RESOLVE
    from steersman.faces.cli.issue_text import read_issue_text

    issue_text = read_issue_text(issue)
    words = words if has_visible_text(words) or not issue_text else RESOLVE
    if not has_visible_text(words):
        raise UserError('a task needs words: steersman tasks new "what to do"')
    if context.services.find_calling_effect(context.project_root):
        raise ActionNotLegalError("this comes from inside a run: an agent never speaks for a person")
    config = context.load_config().config
    given = {"step": step, "plan": plan, "key": key, "after": after}
    start = plan_run_start(
        context, TASK_MACHINE, config, {name: value for name, value in given.items() if value}
    )
    warn_uncommitted_changes(context, config)
    context.create_runs()
    order = StartRequest(
        TASK_MACHINE, words, context.person, config, start.options, start.texts, start.roles, issue_text
    )
    return start_and_drive(context, order)


def list_task_status(context: CommandContext, *, everything: bool, most: int = 20) -> list[RunStatus]:
    """The tasks of the project, the last one that moved first; one that cannot be read is said to be so."""
    heads = [
        head
        for head in context.read_only_runs.ports.journal.heads(limit=100_000)
        if head.machine == TASK_MACHINE
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
