"""What a person does with a task: the same deeds behind plain commands and behind the prompt.

A deed answers the gate that is open, or posts an event; what cannot be done now is said with what can.
**Invariant:** nothing that works for a run does a deed; the machine, not this module, decides what a deed leads to.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from steersman.contracts.task.words import PHASES
from steersman.errors import SteersmanError, UserError
from steersman.faces.deck import DONE, ENDED, REFUSED, WAITING, Deck
from steersman.faces.papers import touched
from steersman.faces.replies import complete, one_by_one
from steersman.faces.speech import insider
from steersman.faces.voyage import drive_on, spoken
from steersman.judges.text import one_line, visible
from steersman.kernel.snapshot import Snapshot, fields
from steersman.ports.journal import Gate, Head
from steersman.views.ways import AFTER, CALLED, DECIDES, TASK, Standing, Way, command, kept, waits_for, ways

REOPEN = "redo_accept"
AGAIN = PHASES[:-2]  # what can be done again: a revert is asked for anew, with its own word
NOTHING = "nothing: it has ended for good"
Named = Callable[[str, str], str]  # a word and a run -> what is typed for it here


class NotNowError(UserError):
    """It cannot be done now."""

    exit_code = REFUSED


def with_reason(reason: str) -> None:
    """Refuses to have a task begin without those that come first, where nobody says why."""
    if not visible(reason):
        raise NotNowError("a task that begins without the others needs a reason: say why it may")


def plain(deck: Deck) -> Named:
    """How the command line says what the prompt says in one word."""
    return lambda word, run: command(word, run, deck.me)


def standing(deck: Deck, run: str) -> Standing:
    """Where a run is now."""
    from steersman.kernel.record import outcome, status
    from steersman.runtime.projections import reading, stands_still
    from steersman.views.gates import gate_reason

    world = deck.sight.world
    live = deck.sight.live(run)
    m, s, gates = live.machine, live.snapshot, world.journal.gates(run)
    owner = world.locks.owner(run)
    moves = status(m, s) == "working" or bool(world.journal.pending(run))
    why = [stands_still(world, live), *(gate_reason(g, reading(live)) for g in gates if not g.answer)]
    alone = (Way("resume", "drive it on"),) if moves and owner is None else ()
    return Standing(
        run=run,
        machine=s.machine,
        title=live.title,
        phase=s.state,
        step="" if s.state in m.settled or s.ended else str(fields(s.context).get("step", "")),
        status=status(m, s),
        outcome=outcome(m, s),
        waits=" ".join(filter(None, (waits_for(s, gates, owner, world.clock.now()), *why))),
        next=(*alone, *ways(m, s, gates)),
        after=tuple(fields(s.context).get("after", ())),
    )


class Deeds:
    """A person's hand on one task."""

    def __init__(self, deck: Deck, run: str, named: Named | None = None) -> None:
        self.deck, self.run, self.named = deck, run, named or plain(deck)
        machine = deck.bridge.head(run).machine
        if machine != TASK:
            raise UserError(f"run {run} is no task but a {machine}: see `{deck.me} why {run}`")

    # ── what is there ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def snapshot(self) -> Snapshot:
        found: Snapshot = self.deck.bridge.live(self.run).snapshot
        return found

    def gate(self, *jobs: str) -> Gate | None:
        """The open gate, where it is one of these."""
        waiting = [g for g in self.deck.bridge.world.journal.gates(self.run) if not g.answer]
        return next((g for g in waiting if not jobs or g.job in jobs), None)

    def not_now(self, what: str) -> NotNowError:
        """Why it cannot be done, and what can."""
        now = standing(self.deck, self.run)
        waits = f" and waits: {now.waits}" if now.waits else ""
        fits = "; ".join(self.named(way.word, self.run) for way in now.next) or NOTHING
        return NotNowError(
            f"{what}: the task is in {now.phase} ({', '.join(filter(None, (now.step, now.status)))}){waits}\nlegal now: {fits}"
        )

    # ── going on ────────────────────────────────────────────────────────────────────────────────────────────────────

    def next(self) -> int:
        """The open gate's yes; a task that stands still because nobody drives it is driven on."""
        gate = self.gate("next", "others")
        if gate is not None:
            return self._answered(gate, "approve" if gate.job == "next" else "retry")
        moves = self.deck.bridge.head(self.run).status == "working"
        if self.gate() is None and (moves or self.deck.bridge.world.journal.pending(self.run)):
            return self.resume()
        raise self.not_now("there is no next")

    def resume(self) -> int:
        """Drives it on, unless somebody does."""
        owner = self.deck.bridge.world.locks.owner(self.run)
        if owner:
            raise self.not_now(f"{owner} drives it")
        return drive_on(self.deck, self.run)

    def begin(self, reason: str) -> int:
        """Has it begin though a task that comes first is missing, with why."""
        gate = self.gate("others")
        if gate is None:
            raise self.not_now("it waits for no other task")
        with_reason(reason)
        return self._answered(gate, "begin", reason=reason)

    def override(self, reason: str, to: str = "") -> int:
        """Waives the guard before the next phase, or has it refused, with why."""
        if not visible(reason):
            raise NotNowError('an override needs a reason: --override "why it may go on all the same"')
        refused = insider(self.deck, self.run, "override")
        if refused is not None:
            return refused
        target = to or AFTER[self.snapshot.state]
        posted = self.deck.bridge.override(self.run, target, self.deck.person, reason)
        self.deck.say(f"{self.deck.person}: override into {target}: {reason}")
        return spoken(self.deck, self.run, posted, legal=self._legal)

    def redo(self, phase: str, words: str = "") -> int:
        """A phase again: the open decision where that is what it asks, else the machine's own event."""
        if phase == "revert":
            raise UserError(
                f"nothing is taken back by doing it again: {self.named('revert', self.run)} does, with a reason"
            )
        if phase not in AGAIN:
            raise UserError(f"there is no phase {phase!r} to do again: one of {', '.join(AGAIN)}")
        if not self._may_redo(phase):
            raise self.not_now(f"{phase} cannot be done again now")
        self._tell_kept(phase)
        gate = self.gate("decide")
        if gate is not None and phase in ("planning", "codegen", "review"):
            return self._answered(gate, DECIDES[phase], text=self._text(words))
        gate = self.gate("evidence")
        if gate is not None and phase == "codegen":
            return self._answered(gate, "rework", text=self._text(words))
        return self._send(f"redo_{phase}", words)

    def _may_redo(self, phase: str) -> bool:
        return any(way.word in (f"redo {phase}", CALLED[phase]) for way in standing(self.deck, self.run).next)

    def note(self, words: str) -> None:
        """Words for whoever works next, where the run goes on at once: what it asks is not told in between."""
        mute, self.deck.mute = self.deck.mute, True
        try:
            self.say(words)
        finally:
            self.deck.mute = mute

    def say(self, words: str) -> int:
        """Words for whoever works next."""
        if not visible(words):
            raise UserError("say what? give words")
        if not any(way.word == "say" for way in standing(self.deck, self.run).next):
            raise self.not_now("nobody works on it who could be told")
        return self._send("words_given", words)

    def choose(self, choice: str, *, reason: str = "", text: str = "") -> int:
        """An open gate's own choice, such as restore, adopt or retry."""
        gate = self.gate()
        if gate is None or choice not in gate.choices:
            raise self.not_now(f"{choice} is no choice")
        if choice == "raise":
            raise UserError(f"give the new limit: {self.deck.me} answer {self.run} raise --tokens N")
        return self._answered(gate, choice, reason=reason, text=self._text(text))

    def restore(self, reason: str = "") -> int:
        """Recorded documents put back and what is made from the tape made again; where that is asked, as the answer."""
        from steersman.faces.mending import put_right, wrong

        gate = self.gate()
        if gate is not None and "restore" in gate.choices:
            return self.choose("restore", reason=reason)
        refused = insider(self.deck, self.run, "restore")
        if refused is not None:
            return refused
        owner = self.deck.bridge.world.locks.owner(self.run)
        if owner:
            raise self.not_now(f"{owner} drives it, and looks at its files")
        if not wrong(self.deck, self.run):
            pruned = self.deck.bridge.live(self.run).payloads.gone
            why = "its texts were pruned, its documents among them" if pruned else "its files are as recorded"
            raise self.not_now(f"there is nothing to restore, {why}")
        return ENDED if put_right(self.deck, self.run) else DONE

    # ── questions ───────────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, text: str = "") -> int:
        """Answers what the plan asks: one text for all of it, a JSON object by question, or one by one."""
        gate = self.gate("questions")
        if gate is None:
            raise self.not_now("nothing is asked")
        asked = self.asked()
        if not visible(text):
            text = one_by_one(asked)
        complete(text, asked)
        return self._answered(gate, "answer", text=self._text(text))

    def asked(self) -> tuple[Any, ...]:
        """The questions that are open."""
        import msgspec

        from steersman.contracts.task.documents import Plan
        from steersman.contracts.task.words import PLAN
        from steersman.judges.task.plan import open_questions

        found = self.document(PLAN)
        return open_questions(msgspec.json.decode(found, type=Plan)) if found else ()

    # ── the decision ────────────────────────────────────────────────────────────────────────────────────────────────

    def accept(
        self, reason: str = "", digest: str | None = None, *, sure: Callable[[], bool] | None = None
    ) -> int:
        """Shows exactly what is accepted, then accepts it; `sure` is asked in between."""
        gate = self.gate("decide")
        if gate is None:
            raise self.not_now("there is nothing to accept")
        for line in self.accepted(gate):
            self.deck.say(line)
        if sure is not None and not sure():
            self.deck.say("nothing was decided")
            return WAITING
        return self._answered(gate, "approve", reason=reason, digest=digest)

    def accepted(self, gate: Gate) -> list[str]:
        """What the decision is about."""
        from steersman.runtime.projections import picture
        from steersman.views.acceptance import acceptance

        seen = picture(self.deck.bridge.world, self.run)
        return acceptance(seen.snapshot, seen.status, gate, seen.text)

    def revert(self, reason: str = "") -> int:
        """Takes a delivered change back: the decision is reopened where it was made already."""
        gate = self.gate("decide")
        if gate is None:
            s = self.snapshot
            c = fields(s.context)
            if s.state == "done" and c["reverted_commit"]:
                raise self.not_now(f"it was taken back already, by commit {c['reverted_commit'][:12]}")
            if c["delivered"] == "yes" and s.state != "done":
                raise self.not_now(self._still_there(c))
            if s.state != "done" or c["delivered"] != "yes":
                raise self.not_now("there is nothing to take back")
            code = self._reopened(reason)
            if code is not None:
                return code
            gate = self.gate("decide")
        if gate is None:
            raise self.not_now("the decision is not open")
        return self._answered(gate, "revert", reason=reason)

    def _still_there(self, c: dict[str, Any]) -> str:
        """Why a change that was handed over cannot be taken back while its task is at work again."""
        made = " ".join(commit[:12] for commit in reversed(c["deliveries"]))
        return (
            f"what it handed over is still there, but the task was reopened and can take it back only from accept or done; "
            f"`git revert {made}` takes it back by hand"
        )

    def _reopened(self, reason: str) -> int | None:
        """The first half of a late revert; an exit code where it went no further."""
        self.deck.say(f"{self.deck.person}: {REOPEN}")
        mute, self.deck.mute = self.deck.mute, True
        try:
            code = self._send(REOPEN, "", reason)
        finally:
            self.deck.mute = mute
        return None if code == WAITING else code

    # ── documents ───────────────────────────────────────────────────────────────────────────────────────────────────

    def document(self, name: str) -> str:
        """A document as it was recorded; nothing where there is none."""
        from steersman.runtime.projections import reading

        live = self.deck.bridge.live(self.run)
        return reading(live)(fields(live.snapshot.context)["documents"].get(name, ""))

    # ── speaking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _answered(self, gate: Gate, choice: str, *, digest: str | None = None, **more: str) -> int:
        refused = insider(self.deck, self.run, choice)
        if refused is not None:
            return refused
        told = {name: value for name, value in more.items() if value}
        posted = self.deck.bridge.answer(gate, choice, self.deck.person, digest=digest, **told)
        self.deck.say(f"{self.deck.person}: {choice} · gate {gate.id}")
        return spoken(self.deck, self.run, posted, wanted_end=choice in ("revert", "stop"), legal=self._legal)

    def _send(self, event: str, words: str = "", reason: str = "") -> int:
        refused = insider(self.deck, self.run, event)
        if refused is not None:
            return refused
        data = {"text": self._text(words), "person": self.deck.person}
        posted = self.deck.bridge.send(self.run, event, data, self.deck.person, reason)
        return spoken(self.deck, self.run, posted, legal=self._legal)

    def _legal(self) -> list[str]:
        """What is legal now, as it is typed here."""
        return [self.named(way.word, self.run) for way in standing(self.deck, self.run).next]

    def _text(self, words: str) -> str:
        return self.deck.bridge.text(self.run, words.strip()) if visible(words) else ""

    def _tell_kept(self, phase: str) -> None:
        reused = kept(self.snapshot, phase)
        if reused:
            self.deck.say(f"{phase} again; reused: {', '.join(reused)}", dim=True)


def begin(
    deck: Deck,
    words: str,
    *,
    step: bool,
    plan: str = "",
    key: str = "",
    after: tuple[str, ...] = (),
    issue: str = "",
) -> tuple[str, int]:
    """A new task, driven until it waits; its run and the exit code."""
    from steersman.faces.commands.run import told_dirty
    from steersman.faces.issue_text import TASK as RESOLVE
    from steersman.faces.issue_text import read_issue
    from steersman.faces.tasks import after_of, bounds_of, options_of, roles_of
    from steersman.faces.voyage import launched
    from steersman.runtime.start import Order

    issue_text = read_issue(issue)
    words = words if visible(words) or not issue_text else RESOLVE
    if not visible(words):
        raise UserError('a task needs words: steersman tasks new "what to do"')
    if deck.helm.inside(deck.top):
        raise NotNowError("this comes from inside a run: an agent never speaks for a person")
    config = deck.load_config().config
    options = options_of(config, pace="step" if step else "through", after=after_of(deck, after, config))
    texts = bounds_of(deck, plan, key, config)
    told_dirty(deck, config)
    deck.new_bridge()
    order = Order(TASK, words, deck.person, config, options, texts, roles_of(options), issue_text)
    return launched(deck, order)


def listed(deck: Deck, *, everything: bool, most: int = 20) -> list[Standing]:
    """The tasks of the project, the last one that moved first; one that cannot be read is said to be so."""
    heads = [h for h in deck.sight.world.journal.heads(limit=100_000) if h.machine == TASK]
    return [_stands(deck, h) for h in heads[: None if everything else most]]


def _stands(deck: Deck, head: Head) -> Standing:
    from steersman.runtime.projections import overrides

    try:
        found = standing(deck, head.run)
        waived = len(overrides(deck.sight.world, head.run))
        return replace(found, overrides=waived, files=tuple(touched(deck, head.run)))
    except SteersmanError as error:
        return Standing(
            run=head.run,
            machine=head.machine,
            title=head.title,
            phase=head.state,
            step="",
            status="broken",
            outcome="",
            waits=one_line(str(error)),
            next=(),
        )
