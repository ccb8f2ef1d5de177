"""A session at the prompt: performs what a person types, one entry at a time.

The words are those of the current run's machine: the choices of its gates, its events, and the words of its package.
**Invariant:** commands come from the person's own lines alone. No word answers a gate that was not open when the prompt
was drawn.
"""

from collections.abc import Callable

from steersman.app.run_words import (
    ActionNotLegalNowError,
    MachinePackage,
    find_run_package,
    read_run_status,
)
from steersman.contracts.machine_names import TASKS_MACHINE
from steersman.errors import SteersmanError, UserError
from steersman.faces.cli.context import EXIT_DONE, CommandContext
from steersman.faces.repl.run_actions import WordPerformer, list_task_status, start_task
from steersman.faces.repl.vocabulary import (
    FREE_TEXT_HELP,
    GENERAL_WORD_HELP,
    READ_ONLY_WORDS,
    list_repl_words,
    repl_action_text,
    repl_banner_text,
    split_repl_entry,
    unknown_word_error,
)
from steersman.judges.text import has_visible_text, printable_line
from steersman.views.legal_actions import RunStatus


class ReplSession:
    """One person, one project, one run at a time."""

    def __init__(self, context: CommandContext, run: str = "") -> None:
        self.context, self.run = context, run
        self._drawn: tuple[str, tuple[str, ...]] = (
            "",
            (),
        )  # the run and its open gates, as the prompt had them
        context.prompting = True
        self.settle()

    def settle(self) -> None:
        """Without a run, the task that moved last."""
        if not self.run and self.context.has_store():
            tasks = list_task_status(self.context, everything=False)
            self.run = next((task.run for task in tasks if task.status != "broken"), "")

    # ── what the prompt says ────────────────────────────────────────────────────────────────────────────────────────

    def now(self) -> RunStatus | None:
        """Where the current run is; None without one."""
        return read_run_status(self.context.read_only_runs.ports, self.run) if self.run else None

    def banner(self) -> str:
        """The current run, its phase and what is legal next, in one line; for a run that cannot be read, its error."""
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
        gates = self.context.read_only_runs.ports.journal.gates(self.run) if self.run else ()
        return tuple(gate.id for gate in gates if not gate.answer)

    def commands(self) -> dict[str, str]:
        """What can be typed for a run of this machine, each word with its help."""
        status = self.now()
        if status is None:
            return list_repl_words(self.context.services.installed_packages()[TASKS_MACHINE])
        return list_repl_words(self._package(), status.next)

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
            case "raise":
                return ["turns", "tokens", "usd", "hours"]
            case "switch" if self.context.has_store():
                return [head.run for head in self.context.read_only_runs.ports.journal.heads(limit=1_000)]
            case "help":
                return list(self.commands())
            case "show" if self.run:
                from steersman.app.documents import PROJECTION_NAMES, list_document_status

                documents = list_document_status(self.context.read_only_runs.ports, self.run)
                return [*(document.name for document in documents), *PROJECTION_NAMES]
            case _ if self.run:
                return self._actions().list_completions(command)
            case _:
                return []

    # ── what is typed ───────────────────────────────────────────────────────────────────────────────────────────────

    def entry(self, text: str) -> int | None:
        """Performs one entry and returns its exit code; None ends the session."""
        if not text.startswith("/"):
            return self._say(text)
        word, rest = split_repl_entry(text)
        if word in ("quit", "exit"):
            return None
        if word in READ_ONLY_WORDS:
            return self._perform(word, rest)
        known_words = self.commands()
        if word not in known_words:
            raise self._unknown_word(word, known_words)
        self._still(word)
        if not self.run and word == "plan":
            return self._new(rest)
        return self._perform(word, rest) if word in GENERAL_WORD_HELP else self._actions().perform(word, rest)

    def _perform(self, word: str, rest: str) -> int:
        handler: Callable[[str], int | None] = getattr(self, f"_{word}")
        code = handler(rest)
        return EXIT_DONE if code is None else code

    def _unknown_word(self, word: str, known_words: dict[str, str]) -> UserError:
        """There is no such word, or a run of another machine has it."""
        packages = self.context.services.installed_packages()
        if self.run and any(word in list_repl_words(package) for package in packages.values()):
            machine = self.context.read_only_runs.head(self.run).machine
            return UserError(
                f"a {machine} has no /{word}: it has {', '.join(f'/{known}' for known in known_words)}"
            )
        return unknown_word_error(word, known_words)

    def _still(self, word: str) -> None:
        """Refuses a word that was typed before the person could see which gates are open now."""
        run, gates = self._drawn
        if self.run == run and word not in ("abort", "resume") and self._asked() != gates:
            raise ActionNotLegalNowError(
                f"run {run} has moved since the prompt appeared, so nothing was done. Look where it is, then type it again"
            )

    def _say(self, text: str) -> int:
        """Text without a word, as the run's machine reads it."""
        known_words = self.commands()
        if text in known_words:
            raise UserError(
                f"did you mean /{text}? Words for the planner are more than the name of a command"
            )
        if not self.run:
            return self._new(text)
        if self._package().read_free_text is None:
            raise UserError(
                f"a run of this machine takes no free text: {', '.join(f'/{word}' for word in known_words)}"
            )
        self._still("words")
        return self._actions().perform_free_text(text)

    # ── any machine ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _stop(self, reason: str) -> int:
        return self._actions().perform("stop", reason)

    def _raise(self, words: str) -> int:
        from steersman.faces.cli.commands.answers import answer_with_choice

        figure, _, amount = words.removeprefix("--").partition(" ")
        is_whole_number = figure in ("turns", "tokens") and amount.strip().isdecimal()
        if not is_whole_number and (figure not in ("usd", "hours") or not amount.strip()):
            raise UserError("raise what? /raise turns 20, or tokens, usd, hours")
        raised_limits = {figure: int(amount) if is_whole_number else amount.strip()}
        return answer_with_choice(self.context, self._here(), "raise", raised_limits)

    def _abort(self, reason: str) -> int:
        from steersman.faces.cli.commands.speak import abort_run

        return abort_run(self.context, self._here(), reason)

    def _resume(self, _: str) -> int:
        from steersman.faces.cli.drive import resume_and_drive

        return resume_and_drive(self.context, self._here())

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _status(self, _: str) -> None:
        from steersman.faces.cli.commands.show import print_run_details

        print_run_details(self.context, self._here())
        self._legal()

    def _legal(self) -> None:
        status = self.now()
        self.context.print("\nlegal now:")
        for action in status.next if status else ():
            self.context.print(f"  {repl_action_text(action.word)}: {action.what}")
        if status and not status.next:
            self.context.print("  nothing but to look: /new begins another task")

    def _show(self, file: str) -> None:
        from steersman.faces.repl.document_status import print_document, print_document_list

        if file:
            print_document(self.context, self._here(), file)
        else:
            print_document_list(self.context, self._here())

    def _diff(self, _: str) -> None:
        from steersman.faces.repl.document_status import print_run_diff

        print_run_diff(self.context, self._here())

    def _why(self, _: str) -> None:
        from steersman.faces.cli.commands.why import print_run_reasons

        print_run_reasons(self.context, self._here())
        self._legal()

    def _tasks(self, _: str) -> None:
        tasks = list_task_status(self.context, everything=True) if self.context.has_store() else []
        self.context.set_result(tasks)
        for task in tasks:
            mark = "*" if task.run == self.run else " "
            phase_text = f"{task.phase}:{task.step}" if task.step else task.phase
            override_text = f"  {task.overrides} overridden" if task.overrides else ""
            self.context.print(
                f"{mark} {task.run}  {phase_text}  {task.outcome or task.status}{override_text}  {printable_line(task.title)}"
            )
        if not tasks:
            self.context.print("there is no task here yet: /plan what to do")

    def _switch(self, run: str) -> None:
        if not run:
            raise UserError("switch to which run? /tasks lists them")
        self.run = self.context.runs.find(run)

    def _new(self, words: str) -> int:
        if not has_visible_text(words):
            raise UserError("a task needs words: /plan what to do")
        after_runs, words = _split_after_options(words)
        self.run, code = start_task(self.context, words, step=True, after=after_runs)
        return code

    def _help(self, command: str) -> None:
        known_words = self.commands()
        word = command.removeprefix("/").split(" ")[0]
        if word and word not in known_words:
            raise unknown_word_error(word, known_words)
        for name in (word,) if word else known_words:
            self.context.print(f"/{name} {known_words[name]}")
        if not word:
            self.context.print(FREE_TEXT_HELP)

    # ── the current run ─────────────────────────────────────────────────────────────────────────────────────────────

    def _here(self) -> str:
        if not self.run:
            raise UserError("there is no task yet: /plan what to do")
        return self.run

    def _package(self) -> MachinePackage:
        return find_run_package(self.context.read_only_runs, self.run)

    def _actions(self) -> WordPerformer:
        return WordPerformer(self.context, self._here(), lambda action: repl_action_text(action.word))


def _split_after_options(words: str) -> tuple[tuple[str, ...], str]:
    """The tasks that come first, and the words after them."""
    after_runs: list[str] = []
    while words.startswith("--after"):
        run, _, words = words.removeprefix("--after").lstrip(" =").partition(" ")
        after_runs, words = [*after_runs, run], words.lstrip()
    return tuple(after_runs), words
