"""A sitting at the prompt: what a person types, one entry at a time, becomes a deed.

The grammar is that of the current run's machine: its gates' choices and its legal events.
**Invariant:** commands come from the person's own lines alone; no word skips a phase, and none answers a gate that was
not open when the prompt was drawn.
"""

from collections.abc import Callable

from steersman.errors import SteersmanError, UserError
from steersman.faces.deck import DONE, Deck
from steersman.faces.deeds import Deeds, NotNowError, begin, listed, standing
from steersman.faces.haste import forget_typed
from steersman.faces.lexicon import HELP, LOOKS, SAID, overriding, parted, short, slash, unknown, words_of
from steersman.judges.text import one_line, visible
from steersman.views.ways import AFTER, CALLED, LAID_DOWN, TASK, TRIGGERS, Standing


class Sitting:
    """One person, one project, one run at a time."""

    def __init__(self, deck: Deck, run: str = "") -> None:
        self.deck, self.run = deck, run
        self._drawn: tuple[str, tuple[str, ...]] = (
            "",
            (),
        )  # the run and its open gates, as the prompt had them
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
        """The current run, its phase and what is legal next, in one line; a run that cannot be read is said to be so."""
        self._drawn = ("", ())
        try:
            now = self.now()
            self._drawn = (self.run, self._asked())
        except SteersmanError as error:
            return f"{self.run}: {one_line(str(error))} · /tasks /switch /new"
        if now is None:
            return "no task yet: /plan what to do"
        where = f"{now.phase}:{now.step}" if now.step else now.phase
        plain = any(way.word == "next" for way in now.next)
        shown = [way for way in now.next if not (plain and way.word == "next --override")]
        legal = " ".join(short(way) for way in shown[:6]) or "/status /new /switch"
        return f"{now.run} {where} ({now.outcome or now.status}) · {legal}"

    def _asked(self) -> tuple[str, ...]:
        """The gates that are open now."""
        gates = self.deck.sight.world.journal.gates(self.run) if self.run else ()
        return tuple(gate.id for gate in gates if not gate.answer)

    def commands(self) -> tuple[str, ...]:
        """What can be typed for a run of this machine."""
        now = self.now()
        return words_of(now.machine, now.next) if now is not None else words_of(TASK)

    def completions(self, text: str) -> list[str]:
        """What the last word of an entry may become: commands, phases, runs, documents."""
        if not text.startswith("/") or "\n" in text:
            return []
        first, *rest = text[1:].split(" ")
        try:
            if not rest:
                return [f"/{name}" for name in self.commands() if name.startswith(first)]
            return [word for word in self._second(first) if len(rest) == 1 and word.startswith(rest[0])]
        except SteersmanError:  # a run that cannot be read completes nothing
            return []

    def _second(self, command: str) -> list[str]:
        match command:
            case "review":
                return ["plan", "code"]
            case "redo":
                now = self.now()
                legal = now.next if now else ()
                return [w.word.removeprefix("redo ") for w in legal if w.word.startswith("redo ")]
            case "next":
                return ["--override"]
            case "raise":
                return ["turns", "tokens", "usd", "hours"]
            case "switch" if self.deck.has_store():
                return [head.run for head in self.deck.sight.world.journal.heads(limit=1_000)]
            case "help":
                return list(self.commands())
            case "show" if self.run:
                from steersman.faces.papers import BESIDE, papers

                return [*(p.name for p in papers(self.deck, self.run)), *BESIDE]
            case _:
                return []

    # ── what is typed ───────────────────────────────────────────────────────────────────────────────────────────────

    def entry(self, text: str) -> int | None:
        """One entry of the person's, and what became of it; None ends the sitting."""
        if not text.startswith("/"):
            return self._say(text)
        word, rest = parted(text)
        if word in ("quit", "exit"):
            return None
        known = self.commands() if word not in LOOKS else LOOKS
        if word not in known and word not in HELP:
            raise unknown(word, known)
        if word not in known:
            machine = self.deck.sight.head(self.run).machine
            raise UserError(f"a {machine} has no /{word}: it has {', '.join(f'/{c}' for c in known)}")
        if word not in LOOKS:
            self._still(word)
        deed: Callable[[str], int | None] | None = getattr(self, f"_{word.replace('-', '_')}", None)
        code = deed(rest) if deed is not None and word in HELP else self._own(word, rest)
        return DONE if code is None else code

    def _still(self, word: str) -> None:
        """What was asked when the prompt was drawn is what is asked now: nobody answers what he has not seen."""
        run, gates = self._drawn
        if self.run == run and word not in ("abort", "resume") and self._asked() != gates:
            raise NotNowError(
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
                f"a run of this machine takes no free text: {', '.join(f'/{c}' for c in self.commands())}"
            )
        self._still("words")
        deeds = self._deeds()
        return deeds.answer(text) if deeds.gate("questions") is not None else deeds.say(text)

    # ── the phases ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _plan(self, words: str) -> int:
        return self._trigger("planning", words) if self.run else self._new(words)

    def _review(self, words: str) -> int:
        which, _, rest = words.partition(" ")
        phase = TRIGGERS.get(f"review {which}")
        if phase is None:
            raise UserError("review what? /review plan or /review code")
        return self._trigger(phase, rest)

    def _codegen(self, words: str) -> int:
        return self._trigger("codegen", words)

    def _test(self, words: str) -> int:
        return self._trigger("test", words)

    def _trigger(self, phase: str, words: str = "") -> int:
        """A phase's own word: go on to it from the one before, do it again where the task is in it; never skip."""
        deeds, here = self._deeds(), self._deeds().snapshot.state
        gate = deeds.gate()
        working = gate is None and self.deck.bridge.head(self.run).status == "working"
        if working and here == phase and not words:
            return deeds.resume()
        if gate is not None and gate.job == "decide" and phase in ("planning", "codegen", "review"):
            return deeds.redo(phase, words)
        if gate is not None and gate.job == "next" and AFTER[here] == phase:
            self._noted(deeds, words)
            return deeds.next()
        if gate is not None and gate.job == "again" and here == phase:
            self._noted(deeds, words)
            return deeds.choose("retry")
        if here == phase and (gate is None or gate.job in ("next", "questions", "evidence")):
            return deeds.redo(phase, words)
        other = ", and another task is begun by /new" if here == "done" else ""
        raise deeds.not_now(f"/{CALLED[phase]} is not next{other}")

    def _noted(self, deeds: Deeds, words: str) -> None:
        """Words for a phase that is about to begin are kept for whoever works there; in planning they plan again."""
        if words and deeds.snapshot.state == "planning":
            raise UserError("words to the planner plan again: say them first, then go on")
        if words:
            deeds.note(words)

    def _accept(self, reason: str) -> int:
        deeds = self._deeds()
        if deeds.gate("next") is not None and deeds.snapshot.state == "test":
            code = deeds.next()
            if deeds.gate("decide") is not None:
                said = f" {one_line(reason)}" if reason else ""
                self.deck.say(f"nothing is accepted yet: /accept{said or ' [reason]'} accepts exactly this")
            return code
        return deeds.accept(reason, sure=self._sure)

    def _sure(self) -> bool:
        """A yes that was typed after the question: what was typed ahead answers nothing."""
        forget_typed()
        return self.deck.agreed("accept exactly this?", "answer in the next line: y")

    def _revert(self, reason: str) -> int:
        if self._is_task():
            return self._deeds().revert(reason)
        from steersman.faces.commands.revert import take_back

        return take_back(self.deck, self._here(), "", reason)

    def _next(self, words: str) -> int:
        deeds = self._deeds()
        if not words:
            return deeds.next()
        reason, to = overriding(words)
        return deeds.override(reason, to)

    def _redo(self, words: str) -> int:
        deeds = self._deeds()
        phase, _, rest = words.partition(" ")
        if phase in LAID_DOWN:
            return deeds.redo(phase, rest)
        here = deeds.snapshot.state
        if words or here == "done":
            what = (
                f"there is no phase {phase!r} to do again"
                if words
                else "which phase is to be done again is not said"
            )
            raise deeds.not_now(what)
        return deeds.redo(here)

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
        from steersman.faces.questions import answer_with, ask_each, waiting_pack

        gate, pack = waiting_pack(self.deck, self._here())
        if text:
            raise UserError(
                "the questions of a plan are answered one by one: type /answer alone, or /defaults"
            )
        return answer_with(self.deck, gate, ask_each(self.deck, pack))

    def _defaults(self, _: str) -> int:
        from steersman.faces.questions import answer_with, waiting_pack

        return answer_with(self.deck, waiting_pack(self.deck, self._here())[0], None)

    # ── any machine ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _approve(self, reason: str) -> int:
        """A yes to the open gate; what would be delivered by it is shown first, and asked about."""
        if self._is_task() and self._deeds().gate("decide") is not None:
            return self._accept(reason)
        return self._choice("approve", reason=reason)

    def _accept_evidence(self, words: str) -> int:
        from steersman.faces.commands.answers import accept_looked_at

        digest, _, reason = words.partition(" ")
        return accept_looked_at(self.deck, self._here(), digest, reason.strip())

    def _rework(self, text: str) -> int:
        if not visible(text):
            raise UserError("rework needs words: /rework what to change")
        return self._choice("rework", text=self.deck.bridge.text(self._here(), text))

    def _reject(self, reason: str) -> int:
        return self._choice("reject", reason=reason)

    def _stop(self, reason: str) -> int:
        return self._choice("stop", reason=reason)

    def _raise(self, words: str) -> int:
        from steersman.faces.commands.answers import chosen

        figure, _, amount = words.removeprefix("--").partition(" ")
        whole = figure in ("turns", "tokens") and amount.strip().isdecimal()
        if not whole and (figure not in ("usd", "hours") or not amount.strip()):
            raise UserError("raise what? /raise turns 20, or tokens, usd, hours")
        given = {figure: int(amount) if whole else amount.strip()}
        return chosen(self.deck, self._here(), "raise", given)

    def _choice(self, choice: str, **more: str) -> int:
        from steersman.faces.commands.answers import answered

        return answered(self.deck, self._here(), choice, None, **more)

    def _own(self, word: str, reason: str) -> int:
        """A word that only this machine has: a choice of its open gate, or one of its events."""
        from steersman.faces.commands.speak import say_event

        gates = self.deck.bridge.world.journal.gates(self._here())
        if any(word in gate.choices for gate in gates if not gate.answer):
            return self._choice(word, reason=reason)
        return say_event(self.deck, self.run, word, {}, reason)

    def _followup(self, text: str) -> int:
        from steersman.faces.commands.speak import follow

        if not visible(text):
            raise UserError("a follow-up needs words: /followup what else")
        return follow(self.deck, self._here(), text)

    def _deliver(self, reason: str) -> int:
        return self._own("delivery_requested", reason)

    def _abort(self, reason: str) -> int:
        from steersman.faces.commands.speak import stop

        return stop(self.deck, self._here(), reason)

    def _resume(self, _: str) -> int:
        from steersman.faces.voyage import drive_on

        return drive_on(self.deck, self._here())

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _status(self, _: str) -> None:
        from steersman.faces.commands.show import tell_run

        tell_run(self.deck, self._here())
        self._legal()

    def _legal(self) -> None:
        now = self.now()
        self.deck.say("\nlegal now:")
        for way in now.next if now else ():
            self.deck.say(f"  {slash(way.word)}: {way.what}")
        if now and not now.next:
            self.deck.say("  nothing but to look: /new begins another task")

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
        self._legal()

    def _tasks(self, _: str) -> None:
        there = listed(self.deck, everything=True) if self.deck.has_store() else []
        self.deck.tell(there)
        for task in there:
            mark = "*" if task.run == self.run else " "
            where = f"{task.phase}:{task.step}" if task.step else task.phase
            waived = f"  {task.overrides} overridden" if task.overrides else ""
            self.deck.say(
                f"{mark} {task.run}  {where}  {task.outcome or task.status}{waived}  {one_line(task.title)}"
            )
        if not there:
            self.deck.say("there is no task here yet: /plan what to do")

    def _switch(self, run: str) -> None:
        if not run:
            raise UserError("switch to which run? /tasks lists them")
        self.run = self.deck.bridge.find(run)

    def _new(self, words: str) -> int:
        if not visible(words):
            raise UserError("a task needs words: /plan what to do")
        after, words = _after(words)
        self.run, code = begin(self.deck, words, step=True, after=after)
        return code

    def _help(self, command: str) -> None:
        word = command.removeprefix("/").split(" ")[0]
        if word and word not in HELP:
            raise unknown(word, HELP)
        for name in (word,) if word else self.commands():
            self.deck.say(f"/{name} {HELP.get(name, '[reason]: a word of this machine')}")
        if not word:
            self.deck.say(SAID)

    # ── the current run ─────────────────────────────────────────────────────────────────────────────────────────────

    def _here(self) -> str:
        if not self.run:
            raise UserError("there is no task yet: /plan what to do")
        return self.run

    def _is_task(self) -> bool:
        return self.deck.bridge.head(self._here()).machine == TASK

    def _deeds(self) -> Deeds:
        return Deeds(self.deck, self._here(), lambda word, _: slash(word))


def _after(words: str) -> tuple[tuple[str, ...], str]:
    """The tasks that come first, and the words after them."""
    found: list[str] = []
    while words.startswith("--after"):
        run, _, words = words.removeprefix("--after").lstrip(" =").partition(" ")
        found, words = [*found, run], words.lstrip()
    return tuple(found), words
