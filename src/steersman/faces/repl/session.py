"""A sitting at the prompt: what a person types, one entry at a time, becomes a deed.

The grammar is that of the current run's machine: its gates' choices and its legal events.
**Invariant:** commands come from the person's own lines alone; no word skips a phase, and none answers a gate that was
not open when the prompt was drawn.
"""

from collections.abc import Callable

from steersman.errors import SteersmanError, UserError
from steersman.faces.cli.context import EXIT_DONE, CommandContext
from steersman.faces.cli.typeahead import discard_typeahead
from steersman.faces.repl.run_actions import (
    TASK_MACHINE,
    ActionNotLegalError,
    RunActions,
    list_task_status,
    load_run_status,
    start_task,
)
from steersman.faces.repl.vocabulary import (
    FREE_TEXT_HELP,
    READ_ONLY_WORDS,
    REPL_WORD_HELP,
    list_repl_words,
    parse_override_words,
    repl_action_text,
    repl_banner_text,
    split_repl_entry,
    unknown_word_error,
)
from steersman.judges.text import has_visible_text, printable_line
from steersman.machines.task.views.actions import (
    DOCUMENTS_BY_PHASE,
    NEXT_PHASE,
    PHASE_BY_WORD,
    WORD_BY_PHASE,
)
from steersman.views.legal_actions import RunStatus


class ReplSession:
    """One person, one project, one run at a time."""

    def __init__(self, context: CommandContext, run: str = "") -> None:
        self.deck, self.run = context, run
        self._drawn: tuple[str, tuple[str, ...]] = (
            "",
            (),
        )  # the run and its open gates, as the prompt had them
        context.prompting = True
        self.settle()

    def settle(self) -> None:
        """Without a run, the task that moved last."""
        if not self.run and self.deck.has_store():
            tasks = list_task_status(self.deck, everything=False)
            self.run = next((task.run for task in tasks if task.status != "broken"), "")

    # ── what the prompt says ────────────────────────────────────────────────────────────────────────────────────────

    def now(self) -> RunStatus | None:
        """Where the current run is; None without one."""
        return load_run_status(self.deck, self.run) if self.run else None

    def banner(self) -> str:
        """The current run, its phase and what is legal next, in one line; a run that cannot be read is said to be so."""
        self._drawn = ("", ())
        try:
            status = self.now()
            self._drawn = (self.run, self._asked())
        except SteersmanError as error:
            return f"{self.run}: {printable_line(str(error))} · /tasks /switch /new"
        if status is None:
            return "no task yet: /plan what to do"
        phase_text = f"{status.phase}:{status.step}" if status.step else status.phase
        has_plain_next = any(action.word == "next" for action in status.next)
        shown_actions = [
            action for action in status.next if not (has_plain_next and action.word == "next --override")
        ]
        legal_text = (
            " ".join(repl_banner_text(action) for action in shown_actions[:6]) or "/status /new /switch"
        )
        return f"{status.run} {phase_text} ({status.outcome or status.status}) · {legal_text}"

    def _asked(self) -> tuple[str, ...]:
        """The gates that are open now."""
        gates = self.deck.read_only_runs.ports.journal.gates(self.run) if self.run else ()
        return tuple(gate.id for gate in gates if not gate.answer)

    def commands(self) -> tuple[str, ...]:
        """What can be typed for a run of this machine."""
        status = self.now()
        return (
            list_repl_words(status.machine, status.next)
            if status is not None
            else list_repl_words(TASK_MACHINE)
        )

    def completions(self, text: str) -> list[str]:
        """What the last word of an entry may become: commands, phases, runs, documents."""
        if not text.startswith("/") or "\n" in text:
            return []
        command, *arguments = text[1:].split(" ")
        try:
            if not arguments:
                return [f"/{name}" for name in self.commands() if name.startswith(command)]
            return [
                word
                for word in self._second(command)
                if len(arguments) == 1 and word.startswith(arguments[0])
            ]
        except SteersmanError:  # a run that cannot be read completes nothing
            return []

    def _second(self, command: str) -> list[str]:
        match command:
            case "review":
                return ["plan", "code"]
            case "redo":
                status = self.now()
                legal_actions = status.next if status else ()
                return [
                    legal_action.word.removeprefix("redo ")
                    for legal_action in legal_actions
                    if legal_action.word.startswith("redo ")
                ]
            case "next":
                return ["--override"]
            case "raise":
                return ["turns", "tokens", "usd", "hours"]
            case "switch" if self.deck.has_store():
                return [head.run for head in self.deck.read_only_runs.ports.journal.heads(limit=1_000)]
            case "help":
                return list(self.commands())
            case "show" if self.run:
                from steersman.faces.repl.document_status import PROJECTION_NAMES, list_document_status

                return [
                    *(document.name for document in list_document_status(self.deck, self.run)),
                    *PROJECTION_NAMES,
                ]
            case _:
                return []

    # ── what is typed ───────────────────────────────────────────────────────────────────────────────────────────────

    def entry(self, text: str) -> int | None:
        """One entry of the person's, and what became of it; None ends the sitting."""
        if not text.startswith("/"):
            return self._say(text)
        word, rest = split_repl_entry(text)
        if word in ("quit", "exit"):
            return None
        known_words = self.commands() if word not in READ_ONLY_WORDS else READ_ONLY_WORDS
        if word not in known_words and word not in REPL_WORD_HELP:
            raise unknown_word_error(word, known_words)
        if word not in known_words:
            machine = self.deck.read_only_runs.head(self.run).machine
            raise UserError(
                f"a {machine} has no /{word}: it has {', '.join(f'/{known_word}' for known_word in known_words)}"
            )
        if word not in READ_ONLY_WORDS:
            self._still(word)
        handler: Callable[[str], int | None] | None = getattr(self, f"_{word.replace('-', '_')}", None)
        code = handler(rest) if handler is not None and word in REPL_WORD_HELP else self._own(word, rest)
        return EXIT_DONE if code is None else code

    def _still(self, word: str) -> None:
        """What was asked when the prompt was drawn is what is asked now: nobody answers what he has not seen."""
        run, gates = self._drawn
        if self.run == run and word not in ("abort", "resume") and self._asked() != gates:
            raise ActionNotLegalError(
                f"run {run} has moved meanwhile, and nothing was done: look where it is, then say it again"
            )

    def _say(self, text: str) -> int:
        """Free text: an answer where the plan asks, else words for the planner, or for whoever works next."""
        if text in self.commands():
            raise UserError(
                f"did you mean /{text}? Words for the planner are more than the name of a command"
            )
        if not self.run:
            return self._new(text)
        if not self._is_task():
            raise UserError(
                f"a run of this machine takes no free text: {', '.join(f'/{available_word}' for available_word in self.commands())}"
            )
        self._still("words")
        actions = self._deeds()
        return actions.answer(text) if actions.gate("questions") is not None else actions.say(text)

    # ── the phases ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _plan(self, words: str) -> int:
        return self._trigger("planning", words) if self.run else self._new(words)

    def _review(self, words: str) -> int:
        review_name, _, rest = words.partition(" ")
        phase = PHASE_BY_WORD.get(f"review {review_name}")
        if phase is None:
            raise UserError("review what? /review plan or /review code")
        return self._trigger(phase, rest)

    def _codegen(self, words: str) -> int:
        return self._trigger("codegen", words)

    def _test(self, words: str) -> int:
        return self._trigger("test", words)

    def _trigger(self, phase: str, words: str = "") -> int:
        """A phase's own word: go on to it from the one before, do it again where the task is in it; never skip."""
        actions, current_phase = self._deeds(), self._deeds().snapshot.state
        gate = actions.gate()
        is_working = gate is None and self.deck.runs.head(self.run).status == "working"
        if is_working and current_phase == phase and not words:
            return actions.resume()
        if gate is not None and gate.job == "decide" and phase in ("planning", "codegen", "review"):
            return actions.redo(phase, words)
        if gate is not None and gate.job == "next" and NEXT_PHASE[current_phase] == phase:
            self._noted(actions, words)
            return actions.next()
        if gate is not None and gate.job == "again" and current_phase == phase:
            self._noted(actions, words)
            return actions.choose("retry")
        if current_phase == phase and (gate is None or gate.job in ("next", "questions", "evidence")):
            return actions.redo(phase, words)
        new_task_hint = ", and another task is begun by /new" if current_phase == "done" else ""
        raise actions.not_now(f"/{WORD_BY_PHASE[phase]} is not next{new_task_hint}")

    def _noted(self, actions: RunActions, words: str) -> None:
        """Words for a phase that is about to begin are kept for whoever works there; in planning they plan again."""
        if words and actions.snapshot.state == "planning":
            raise UserError("words to the planner plan again: say them first, then go on")
        if words:
            actions.note(words)

    def _accept(self, reason: str) -> int:
        actions = self._deeds()
        if actions.gate("next") is not None and actions.snapshot.state == "test":
            code = actions.next()
            if actions.gate("decide") is not None:
                reason_text = f" {printable_line(reason)}" if reason else ""
                self.deck.print(
                    f"nothing is accepted yet: /accept{reason_text or ' [reason]'} accepts exactly this"
                )
            return code
        return actions.accept(reason, sure=self._sure)

    def _sure(self) -> bool:
        """A yes that was typed after the question: what was typed ahead answers nothing."""
        discard_typeahead()
        return self.deck.confirm("accept exactly this?", "answer in the next line: y")

    def _revert(self, reason: str) -> int:
        if self._is_task():
            return self._deeds().revert(reason)
        from steersman.faces.cli.commands.revert import revert_delivered_change

        return revert_delivered_change(self.deck, self._here(), "", reason)

    def _next(self, words: str) -> int:
        actions = self._deeds()
        if not words:
            return actions.next()
        reason, target_phase = parse_override_words(words)
        return actions.override(reason, target_phase)

    def _redo(self, words: str) -> int:
        actions = self._deeds()
        phase, _, rest = words.partition(" ")
        if phase in DOCUMENTS_BY_PHASE:
            return actions.redo(phase, rest)
        current_phase = actions.snapshot.state
        if words or current_phase == "done":
            problem_text = (
                f"there is no phase {phase!r} to do again"
                if words
                else "which phase is to be done again is not said"
            )
            raise actions.not_now(problem_text)
        return actions.redo(current_phase)

    def _begin(self, reason: str) -> int:
        return self._deeds().begin(reason)

    def _restore(self, reason: str) -> int:
        return self._deeds().restore(reason)

    def _adopt(self, reason: str) -> int:
        return self._deeds().choose("adopt", reason=reason)

    def _retry(self, reason: str) -> int:
        return self._deeds().choose("retry", reason=reason)

    def _answer(self, text: str) -> int:
        if self._is_task():
            return self._deeds().answer(text)
        from steersman.faces.cli.plan_questions import (
            answer_plan_gate,
            ask_plan_questions,
            find_waiting_questions,
        )

        gate, pack = find_waiting_questions(self.deck, self._here())
        if text:
            raise UserError(
                "the questions of a plan are answered one by one: type /answer alone, or /defaults"
            )
        return answer_plan_gate(self.deck, gate, ask_plan_questions(self.deck, pack))

    def _defaults(self, _: str) -> int:
        from steersman.faces.cli.plan_questions import answer_plan_gate, find_waiting_questions

        return answer_plan_gate(self.deck, find_waiting_questions(self.deck, self._here())[0], None)

    # ── any machine ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _approve(self, reason: str) -> int:
        """A yes to the open gate; what would be delivered by it is shown first, and asked about."""
        if self._is_task() and self._deeds().gate("decide") is not None:
            return self._accept(reason)
        return self._choice("approve", reason=reason)

    def _accept_evidence(self, words: str) -> int:
        from steersman.faces.cli.commands.answers import accept_evidence_gate

        digest, _, reason = words.partition(" ")
        return accept_evidence_gate(self.deck, self._here(), digest, reason.strip())

    def _rework(self, text: str) -> int:
        if not has_visible_text(text):
            raise UserError("rework needs words: /rework what to change")
        return self._choice("rework", text=text)

    def _reject(self, reason: str) -> int:
        return self._choice("reject", reason=reason)

    def _stop(self, reason: str) -> int:
        return self._choice("stop", reason=reason)

    def _raise(self, words: str) -> int:
        from steersman.faces.cli.commands.answers import answer_with_choice

        figure, _, amount = words.removeprefix("--").partition(" ")
        is_whole_number = figure in ("turns", "tokens") and amount.strip().isdecimal()
        if not is_whole_number and (figure not in ("usd", "hours") or not amount.strip()):
            raise UserError("raise what? /raise turns 20, or tokens, usd, hours")
        raised_limits = {figure: int(amount) if is_whole_number else amount.strip()}
        return answer_with_choice(self.deck, self._here(), "raise", raised_limits)

    def _choice(self, choice: str, *, reason: str = "", text: str = "") -> int:
        from steersman.app.gates import AnswerRequest
        from steersman.faces.cli.commands.answers import answer_open_gate

        return answer_open_gate(
            self.deck, self._here(), AnswerRequest(choice=choice, reason=reason, text=text)
        )

    def _own(self, word: str, reason: str) -> int:
        """A word that only this machine has: a choice of its open gate, or one of its events."""
        from steersman.faces.cli.commands.speak import send_person_event

        gates = self.deck.runs.ports.journal.gates(self._here())
        if any(word in gate.choices for gate in gates if not gate.answer):
            return self._choice(word, reason=reason)
        return send_person_event(self.deck, self.run, word, {}, reason)

    def _followup(self, text: str) -> int:
        from steersman.faces.cli.commands.speak import send_followup

        if not has_visible_text(text):
            raise UserError("a follow-up needs words: /followup what else")
        return send_followup(self.deck, self._here(), text)

    def _deliver(self, reason: str) -> int:
        return self._own("delivery_requested", reason)

    def _abort(self, reason: str) -> int:
        from steersman.faces.cli.commands.speak import abort_run

        return abort_run(self.deck, self._here(), reason)

    def _resume(self, _: str) -> int:
        from steersman.faces.cli.drive import resume_and_drive

        return resume_and_drive(self.deck, self._here())

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _status(self, _: str) -> None:
        from steersman.faces.cli.commands.show import print_run_details

        print_run_details(self.deck, self._here())
        self._legal()

    def _legal(self) -> None:
        status = self.now()
        self.deck.print("\nlegal now:")
        for action in status.next if status else ():
            self.deck.print(f"  {repl_action_text(action.word)}: {action.what}")
        if status and not status.next:
            self.deck.print("  nothing but to look: /new begins another task")

    def _show(self, file: str) -> None:
        from steersman.faces.repl.document_status import print_document, print_document_list

        if file:
            print_document(self.deck, self._here(), file)
        else:
            print_document_list(self.deck, self._here())

    def _diff(self, _: str) -> None:
        from steersman.faces.repl.document_status import print_run_diff

        print_run_diff(self.deck, self._here())

    def _why(self, _: str) -> None:
        from steersman.faces.cli.commands.why import print_run_reasons

        print_run_reasons(self.deck, self._here())
        self._legal()

    def _tasks(self, _: str) -> None:
        tasks = list_task_status(self.deck, everything=True) if self.deck.has_store() else []
        self.deck.set_result(tasks)
        for task in tasks:
            mark = "*" if task.run == self.run else " "
            phase_text = f"{task.phase}:{task.step}" if task.step else task.phase
            override_text = f"  {task.overrides} overridden" if task.overrides else ""
            self.deck.print(
                f"{mark} {task.run}  {phase_text}  {task.outcome or task.status}{override_text}  {printable_line(task.title)}"
            )
        if not tasks:
            self.deck.print("there is no task here yet: /plan what to do")

    def _switch(self, run: str) -> None:
        if not run:
            raise UserError("switch to which run? /tasks lists them")
        self.run = self.deck.runs.find(run)

    def _new(self, words: str) -> int:
        if not has_visible_text(words):
            raise UserError("a task needs words: /plan what to do")
        after_runs, words = _split_after_options(words)
        self.run, code = start_task(self.deck, words, step=True, after=after_runs)
        return code

    def _help(self, command: str) -> None:
        word = command.removeprefix("/").split(" ")[0]
        if word and word not in REPL_WORD_HELP:
            raise unknown_word_error(word, REPL_WORD_HELP)
        for name in (word,) if word else self.commands():
            self.deck.print(f"/{name} {REPL_WORD_HELP.get(name, '[reason]: a word of this machine')}")
        if not word:
            self.deck.print(FREE_TEXT_HELP)

    # ── the current run ─────────────────────────────────────────────────────────────────────────────────────────────

    def _here(self) -> str:
        if not self.run:
            raise UserError("there is no task yet: /plan what to do")
        return self.run

    def _is_task(self) -> bool:
        return self.deck.runs.head(self._here()).machine == TASK_MACHINE

    def _deeds(self) -> RunActions:
        return RunActions(self.deck, self._here(), lambda action: repl_action_text(action.word))


def _split_after_options(words: str) -> tuple[tuple[str, ...], str]:
    """The tasks that come first, and the words after them."""
    after_runs: list[str] = []
    while words.startswith("--after"):
        run, _, words = words.removeprefix("--after").lstrip(" =").partition(" ")
        after_runs, words = [*after_runs, run], words.lstrip()
    return tuple(after_runs), words
