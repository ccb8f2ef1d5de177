"""A sitting at the prompt: what a person types, one entry at a time, becomes a deed.

The grammar is that of the current run's machine: its gates' choices and its legal events.
**Invariant:** commands come from the person's own lines alone; no word skips a phase.
"""

import shlex
import sys
from collections.abc import Callable
from typing import Protocol

from steersman.errors import SteersmanError, UserError
from steersman.faces.deck import DONE, REFUSED, Deck
from steersman.faces.deeds import Deeds, begin, listed, standing
from steersman.judges.text import one_line, visible
from steersman.views.ways import AFTER, CALLED, LAID_DOWN, TASK, TRIGGERS, Standing, Way

HELP = {
    "plan": "[words]: begin a task; in planning, plan again with these words",
    "review": "plan | code: go on to that review, or have it done again",
    "codegen": "[words]: go on to codegen, or have it done again",
    "test": "go on to the tests, or have them run again",
    "accept": "[reason]: see exactly what is accepted, say yes, have it delivered",
    "revert": "[reason]: take the change back",
    "next": '[--override "reason"]: go on to the next phase, or past its guard',
    "redo": "[phase] [words]: do a phase again; reopens a task that is done",
    "restore": "put the recorded documents back",
    "adopt": "take over a plan that was changed by hand",
    "retry": "try again what could not be done",
    "answer": "[text]: answer what the plan asks, one by one or all at once",
    "approve": "[reason]: answer the open gate: yes",
    "rework": "words: answer the open gate: again, and this is what to change",
    "reject": "[reason]: answer the open gate: no",
    "followup": "words: ask a run that has its outcome for more",
    "abort": "[reason]: stop the run for good",
    "resume": "drive the run on from where it was let go",
    "status": "where the run is, what it waits for, what is legal",
    "show": "[file]: the documents, or one of them",
    "diff": "the change",
    "why": "what the run waits for and what would move it",
    "tasks": "every task here",
    "switch": "run: go to another run",
    "new": "words: begin another task",
    "help": "[command]: this",
    "quit": "end the sitting (so does Ctrl-D)",
}
ALWAYS = ("status", "show", "diff", "why", "resume", "abort", "tasks", "switch", "new", "help", "quit")
OF_TASK = ("plan", "review", "codegen", "test", "accept", "revert", "next", "redo", "restore", "adopt", "retry", "answer", "approve", "rework")  # fmt: skip
OF_OTHERS = ("approve", "rework", "reject", "followup")
WORDS = (
    "free text goes to the planner, or answers what the plan asks; end a line with \\ to go on in the next"
)


class Reader(Protocol):
    """Where a person's entries come from."""

    def __call__(self, message: str) -> str | None:
        """The next entry; None at the end."""
        ...


class Sitting:
    """One person, one project, one run at a time."""

    def __init__(self, deck: Deck, run: str = "") -> None:
        self.deck, self.run = deck, run
        deck.prompting = True
        self.settle()

    def settle(self) -> None:
        """Without a run, the task that moved last."""
        if not self.run and self.deck.has_store():
            tasks = listed(self.deck, everything=False)
            self.run = next((task.run for task in tasks if task.status != "broken"), "")

    # ── what the prompt says ────────────────────────────────────────────────────────────────────────────────────────

    def now(self) -> Standing | None:
        """Where the current run is; None without one."""
        return standing(self.deck, self.run) if self.run else None

    def banner(self) -> str:
        """The current run, its phase and what is legal next, in one line."""
        now = self.now()
        if now is None:
            return 'no task yet: /plan "what to do"'
        where = f"{now.phase}:{now.step}" if now.step else now.phase
        told = now.outcome or now.status
        plain = any(way.word == "next" for way in now.next)
        shown = [way for way in now.next if not (plain and way.word == "next --override")]
        legal = " ".join(_short(way) for way in shown[:6]) or "/status"
        return f"{now.run} {where} ({told}) · {legal}"

    def commands(self) -> tuple[str, ...]:
        """What can be typed for a run of this machine."""
        machine = self.deck.sight.head(self.run).machine if self.run else TASK
        return (*OF_TASK, *ALWAYS) if machine == TASK else (*OF_OTHERS, *ALWAYS)

    def completions(self, text: str) -> list[str]:
        """What the last word of an entry may become: commands, phases, runs, documents."""
        if not text.startswith("/") or "\n" in text:
            return []
        first, *rest = text[1:].split(" ")
        if not rest:
            return [f"/{name}" for name in self.commands() if name.startswith(first)]
        return [word for word in self._second(first) if len(rest) == 1 and word.startswith(rest[0])]

    def _second(self, command: str) -> list[str]:
        match command:
            case "review":
                return ["plan", "code"]
            case "redo":
                now = self.now()
                return (
                    [w.word.removeprefix("redo ") for w in now.next if w.word.startswith("redo ")]
                    if now
                    else []
                )
            case "next":
                return ["--override"]
            case "switch":
                return (
                    [task.run for task in listed(self.deck, everything=True)] if self.deck.has_store() else []
                )
            case "help":
                return list(self.commands())
            case "show" if self.run:
                from steersman.faces.papers import BESIDE, papers

                return [*(p.name for p in papers(self.deck, self.run)), *BESIDE]
            case _:
                return []

    # ── what is typed ───────────────────────────────────────────────────────────────────────────────────────────────

    def entry(self, text: str) -> bool:
        """One entry of the person's; whether the sitting goes on."""
        if not text.startswith("/"):
            self._say(text)
            return True
        word, _, rest = text[1:].partition(" ")
        if word in ("quit", "exit"):
            return False
        if word not in HELP:
            raise UserError(f"there is no /{word}: /help says what there is")
        if word not in self.commands():
            machine = self.deck.sight.head(self.run).machine
            raise UserError(
                f"a {machine} has no /{word}: it has {', '.join(f'/{c}' for c in self.commands())}"
            )
        deed: Callable[[str], object] = getattr(self, f"_{word}")
        deed(rest.strip())
        return True

    def _say(self, text: str) -> None:
        """Free text: an answer where the plan asks, else words for the planner, or for whoever works next."""
        if not self.run:
            self._new(text)
            return
        if self._is_task():
            deeds = self._deeds()
            if deeds.gate("questions") is not None:
                deeds.answer(text)
            else:
                deeds.say(text)
            return
        raise UserError(
            f"a run of this machine takes no free text: {', '.join(f'/{c}' for c in self.commands())}"
        )

    # ── the phases ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _plan(self, words: str) -> None:
        if not self.run:
            self._new(words)
        else:
            self._trigger("planning", words)

    def _review(self, words: str) -> None:
        which, _, rest = words.partition(" ")
        phase = TRIGGERS.get(f"review {which}")
        if phase is None:
            raise UserError("review what? /review plan or /review code")
        self._trigger(phase, rest)

    def _codegen(self, words: str) -> None:
        self._trigger("codegen", words)

    def _test(self, words: str) -> None:
        self._trigger("test", words)

    def _trigger(self, phase: str, words: str = "") -> None:
        """A phase's own word: go on to it from the one before, do it again where the task is in it; never skip."""
        deeds, here = self._deeds(), self._deeds().snapshot.state
        gate = deeds.gate()
        if (
            gate is None
            and self.deck.bridge.head(self.run).status == "working"
            and here == phase
            and not words
        ):
            deeds.resume()
        elif gate is not None and gate.job == "decide" and phase in ("planning", "codegen", "review"):
            deeds.redo(phase, words)
        elif gate is not None and gate.job == "next" and AFTER[here] == phase:
            self._noted(deeds, words)
            deeds.next()
        elif gate is not None and gate.job == "again" and here == phase:
            self._noted(deeds, words)
            deeds.choose("retry")
        elif here == phase and (gate is None or gate.job in ("next", "questions", "evidence")):
            deeds.redo(phase, words)
        else:
            raise deeds.not_now(f"/{CALLED[phase]} is not next")

    def _noted(self, deeds: Deeds, words: str) -> None:
        """Words for a phase that is about to begin are kept for whoever works there; in planning they plan again."""
        if words and deeds.snapshot.state == "planning":
            raise UserError("words to the planner plan again: say them first, then go on")
        if words:
            deeds.note(words)

    def _accept(self, reason: str) -> None:
        deeds = self._deeds()
        gate = deeds.gate("next")
        if gate is not None and deeds.snapshot.state == "test":
            deeds.next()  # what is accepted is shown before anybody is asked
            return
        question = "accept exactly this?"
        deeds.accept(reason, sure=lambda: self.deck.agreed(question, "answer in the next line: y"))

    def _revert(self, reason: str) -> None:
        self._deeds().revert(reason)

    def _next(self, words: str) -> None:
        deeds = self._deeds()
        given = _split(words)
        if not given:
            deeds.next()
        elif given[0] == "--override":
            deeds.override(" ".join(given[1:]))
        else:
            raise UserError('/next takes nothing, or --override "reason"')

    def _redo(self, words: str) -> None:
        deeds = self._deeds()
        phase, _, rest = words.partition(" ")
        if phase in LAID_DOWN:
            deeds.redo(phase, rest)
        else:
            here = deeds.snapshot.state
            if here == "done":
                raise deeds.not_now("redo which phase?")
            deeds.redo(here, words)

    def _restore(self, reason: str) -> None:
        self._deeds().choose("restore", reason=reason)

    def _adopt(self, reason: str) -> None:
        self._deeds().choose("adopt", reason=reason)

    def _retry(self, reason: str) -> None:
        self._deeds().choose("retry", reason=reason)

    def _answer(self, text: str) -> None:
        self._deeds().answer(text)

    # ── any machine ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _approve(self, reason: str) -> None:
        self._choice("approve", reason=reason)

    def _rework(self, text: str) -> None:
        if not visible(text):
            raise UserError("rework needs words: /rework what to change")
        self._choice("rework", text=self.deck.bridge.text(self._here(), text))

    def _reject(self, reason: str) -> None:
        self._choice("reject", reason=reason)

    def _choice(self, choice: str, **more: str) -> None:
        from steersman.faces.commands.answers import answered

        answered(self.deck, self._here(), choice, None, **more)

    def _followup(self, text: str) -> None:
        from steersman.faces.commands.speak import follow

        if not visible(text):
            raise UserError("a follow-up needs words: /followup what else")
        follow(self.deck, self._here(), text)

    def _abort(self, reason: str) -> None:
        from steersman.faces.commands.speak import stop

        stop(self.deck, self._here(), reason)

    def _resume(self, _: str) -> None:
        from steersman.faces.voyage import drive_on

        drive_on(self.deck, self._here())

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _status(self, _: str) -> None:
        from steersman.faces.commands.show import tell_run

        tell_run(self.deck, self._here())
        now = self.now()
        self.deck.say("legal now:")
        for way in now.next if now else ():
            self.deck.say(f"  {_slash(way.word)}: {way.what}")

    def _show(self, file: str) -> None:
        from steersman.faces.papers import tell_paper, tell_papers

        if file:
            tell_paper(self.deck, self._here(), file)
        else:
            tell_papers(self.deck, self._here())

    def _diff(self, _: str) -> None:
        from steersman.faces.papers import tell_diff

        tell_diff(self.deck, self._here())

    def _why(self, _: str) -> None:
        from steersman.faces.commands.why import tell_why

        tell_why(self.deck, self._here())

    def _tasks(self, _: str) -> None:
        for task in listed(self.deck, everything=True) if self.deck.has_store() else ():
            mark = "*" if task.run == self.run else " "
            where = f"{task.phase}:{task.step}" if task.step else task.phase
            self.deck.say(f"{mark} {task.run}  {where}  {task.outcome or task.status}  {task.title}")

    def _switch(self, run: str) -> None:
        if not run:
            raise UserError("switch to which run? /tasks lists them")
        self.run = self.deck.bridge.find(run)

    def _new(self, words: str) -> None:
        if not visible(words):
            raise UserError("a task needs words: /plan what to do")
        self.run, _ = begin(self.deck, words, step=True)

    def _help(self, command: str) -> None:
        word = command.removeprefix("/").split(" ")[0]
        if word and word not in HELP:
            raise UserError(f"there is no /{word}: /help says what there is")
        for name in (word,) if word else self.commands():
            self.deck.say(f"/{name} {HELP[name]}")
        if not word:
            self.deck.say(WORDS)

    # ── the current run ─────────────────────────────────────────────────────────────────────────────────────────────

    def _here(self) -> str:
        if not self.run:
            raise UserError("there is no task yet: /plan what to do")
        return self.run

    def _is_task(self) -> bool:
        return self.deck.bridge.head(self._here()).machine == TASK

    def _deeds(self) -> Deeds:
        return Deeds(self.deck, self._here(), lambda word, _: _slash(word))


def _short(way: Way) -> str:
    """A way in the prompt; of `next`, where it leads."""
    return f"/next→{way.what.rpartition(' ')[2]}" if way.word == "next" else _slash(way.word)


def _slash(word: str) -> str:
    return "words" if word == "say" else f"/{word}"


def _split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError as error:
        raise UserError(f"that cannot be read: {error}") from None


def sit(deck: Deck, run: str) -> int:
    """Reads entries until there are no more; what goes wrong is said, and the next one is read."""
    effect = deck.helm.inside(deck.top)
    if effect:
        deck.warn(
            f"refused: this comes from inside, from effect {effect}: an agent never speaks for a person",
            fg="red",
        )
        return REFUSED
    sitting = Sitting(deck, deck.bridge.find(run) if run else "")
    read = _reader(deck, sitting)
    while True:
        try:
            text = read(_banner(sitting))
            if text is None or not _taken(sitting, text.strip()):
                return DONE
            deck.answer(DONE)
        except KeyboardInterrupt:
            deck.say("\n(Ctrl-D ends the sitting)")
            sitting.settle()
        except SteersmanError as error:
            deck.warn(str(error), fg="red")


def _banner(sitting: Sitting) -> str:
    """A run that cannot be read is said to be so; another one can still be gone to."""
    try:
        return sitting.banner()
    except SteersmanError as error:
        return f"{sitting.run}: {one_line(str(error))} · /tasks /switch /new"


def _taken(sitting: Sitting, text: str) -> bool:
    return sitting.entry(text) if text else True


def _reader(deck: Deck, sitting: Sitting) -> Reader:
    """From a terminal with editing, completion and a history; else plain lines."""
    if sys.stdin is None:
        return lambda _: None
    if deck.as_json or not sys.stdin.isatty() or not sys.stdout.isatty():
        return _lines(deck)
    from steersman.faces.prompt import prompt_for

    deck.say("free text goes to the planner; /help says what can be typed, Ctrl-D ends it", dim=True)
    return prompt_for(deck, sitting.completions)


def _lines(deck: Deck) -> Reader:
    def read(message: str) -> str | None:
        deck.say(f"[{message}]", dim=True)
        text = sys.stdin.readline()
        while text.endswith("\\\n"):
            text = f"{text[:-2]}\n{sys.stdin.readline()}"
        return text or None

    return read
