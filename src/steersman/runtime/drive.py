"""Drives runs: claim → load → perform → append, until parked or ended.

One driver per run, held by a lock that dies with its process and fenced by an epoch in the store. Every event goes
through one queue per run; every append is one commit. Parked runs hold no memory and no thread.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import structs
from msgspec.structs import replace

from steersman.errors import JournalError, OverBudget, StaleError, UserError
from steersman.kernel.build import definition
from steersman.kernel.canonical import canonical, plain, unacceptable
from steersman.kernel.definition import ChildEnded, GateAnswer, Origin, TimerDue
from steersman.kernel.record import Advance, Meta, advance, late, note, outcome, refuse
from steersman.kernel.snapshot import Item
from steersman.kernel.step import Happened, Refused, legal, name_facts
from steersman.kernel.tape import Retry, Sealed
from steersman.ports.journal import UNFINISHED, Head, Posted, Spend
from steersman.runtime.budget import ceilings, settle
from steersman.runtime.call import Again, Call
from steersman.runtime.live import Live, load, released
from steersman.runtime.performers import PERFORMERS
from steersman.runtime.world import World

POLL = 0.2  # seconds between looks at the store for what other processes have written
PATIENCE_MS = 120_000  # a wait up to this long is sat out, a longer one parks the run
REFUSALS = 1_000  # beyond this a run's refusals are counted, not written

Watch = Callable[[Live, Sequence[Sealed]], None]


class Busy(UserError):
    """Somebody else drives this run."""

    exit_code = 4


class Driver:
    """Drives any number of runs in this process."""

    def __init__(
        self,
        world: World,
        watch: Watch | None = None,
        *,
        patience_ms: int = PATIENCE_MS,
        kind: str = "driver",
    ) -> None:
        self.world = world
        self.kind = kind
        self._watch = watch or (lambda *_: None)
        self._patience = patience_ms
        self._active: dict[str, _Drive] = {}
        self.stopping = False

    async def drive(
        self, run: str, *, take_over: bool = False, held: Any = None, live: Live | None = None
    ) -> Head:
        """Drives a run until it waits for somebody or has its outcome; returns its head."""
        lock = held or self.world.locks.acquire(run, take_over=take_over)
        if lock is None:
            raise Busy(
                f"run {run} is driven by {self.world.locks.owner(run) or 'another process'}; see `steersman watch {run}`, or stop that first"
            )
        drive = _Drive(self, live or load(self.world, run))
        self._active[run] = drive
        try:
            for other in self._active.values():
                other.live.together = len(self._active) > 1
            if live is None:
                await drive.claim()
            return await drive.loop()
        finally:
            self._active.pop(run, None)
            await drive.close()
            lock.release()

    def stop(self) -> None:
        """Lets go of every run as it is: what is under way is stopped and stays on tape as begun."""
        self.stopping = True
        for drive in self._active.values():
            drive.wake.set()

    def changed(self, live: Live, entries: Sequence[Sealed]) -> None:
        self._watch(live, entries)
        if self.world.sealed is not None and any(s.entry.kind == "sealed" for s in entries):
            last = next(s for s in reversed(entries) if s.entry.kind == "sealed")
            self.world.sealed(live.run, last.entry.seq, last.hash, last.entry.at)


class _Drive:
    """One run under way."""

    def __init__(self, driver: Driver, live: Live) -> None:
        self.driver, self.live, self.world = driver, live, driver.world
        self.wake = asyncio.Event()
        self.tasks: dict[str, asyncio.Task[Any]] = {}
        self.finished: asyncio.Queue[tuple[Item, Any, int]] = asyncio.Queue()
        live.watch = driver.changed
        self._children: dict[str, asyncio.Task[Any]] = {}

    # ── beginning and end ───────────────────────────────────────────────────────────────────────────────────────────

    async def claim(self) -> None:
        """Takes the run over: leftovers of the last owner are stopped, its begun effects are marked as begun again."""
        run, s = self.live.run, self.live.snapshot
        await asyncio.to_thread(self.world.processes.stop_tree, f"{run}:", 2.0)
        if not self._needed():
            return
        m = self.live.machine
        changed: dict[str, Any] = {}
        if s.definition != m.digest:
            changed = {
                "definition": m.digest,
                "context": msgspec.to_builtins(s.context),
                "context_version": m.context_version,
            }
        stored, after = note(
            s, Meta(self._now()), "claimed", epoch=s.epoch + 1, why=self.driver.kind, **changed
        )
        after.context = s.context
        entries = [stored]
        for item in [i for i in after.items.values() if i.kind == "effect" and not i.held and i.due is None]:
            again = structs.replace(item, starts=item.starts + 1)
            meta = Meta(self._now(), cause=item.id, retry=Retry(again.starts - 1, "interrupted"))
            stored, after = note(after, meta, "effect_started", held=(again,))
            entries.append(stored)
        await self.live.append(
            Advance(tuple(entries), after), definition=(m.digest, canonical(definition(m)))
        )

    def _needed(self) -> bool:
        s = self.live.snapshot
        if self.world.journal.pending(self.live.run):
            return True
        now = self._now()
        return any(
            i.kind in ("effect", "child") and not i.held and (i.due or 0) <= now + self.driver._patience
            for i in s.items.values()
        ) or any(  # noqa: SLF001  its own driver
            i.due is not None and i.due <= now + self.driver._patience
            for i in s.items.values()  # noqa: SLF001  the same
        )

    async def close(self) -> None:
        """Stops what this drive has started and waits until it is gone."""
        tasks = [*self.tasks.values(), *self._children.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.tasks:
            await asyncio.to_thread(self.world.processes.stop_tree, f"{self.live.run}:", 2.0)

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def loop(self) -> Head:
        while not self.driver.stopping:
            await self._take_inbox()
            await self._take_due()
            self._stop_left()
            self._start()
            if not self.tasks and not self._children and not self._soon() and self.finished.empty():
                if self.world.journal.pending(self.live.run):
                    continue
                break
            await self._wait()
        return self.live.head()

    def _soon(self) -> int | None:
        """Milliseconds until something is due that is worth sitting out."""
        now = self._now()
        waits = [i.due - now for i in self.live.snapshot.items.values() if i.due is not None]
        near = [max(w, 1) for w in waits if w <= self.driver._patience]  # noqa: SLF001  its own driver
        return min(near, default=None)

    async def _wait(self) -> None:
        timeout = min(POLL, (self._soon() or 10_000) / 1000)
        try:
            item, result, took = await asyncio.wait_for(self.finished.get(), timeout)
        except TimeoutError:
            return
        await self._finish(item, result, took)
        while not self.finished.empty():
            await self._finish(*self.finished.get_nowait())

    def _start(self) -> None:
        now = self._now()
        for item in self.live.snapshot.items.values():
            if (
                item.kind == "effect"
                and item.id not in self.tasks
                and not item.held
                and (item.due or 0) <= now
            ):
                self.tasks[item.id] = asyncio.create_task(self._perform(item))
            if item.kind == "child" and item.id not in self._children:
                self._children[item.id] = asyncio.create_task(self._drive_child(item))

    def _stop_left(self) -> None:
        """Cancels what belongs to a state that was left, unless it outlives it."""
        for item_id, task in list(self.tasks.items()):
            if item_id not in self.live.snapshot.items:
                task.cancel()
                del self.tasks[item_id]

    async def _perform(self, item: Item) -> None:
        job = self.live.machine.jobs[item.job]
        performer = self.world.performers.get(job.does) or PERFORMERS.get(job.does)
        started = self.world.clock.ticks()
        try:
            if performer is None:
                raise UserError(f"nothing here performs {job.does!r}")  # noqa: TRY301  told like any failure of the effect
            result = await performer(self._call(item))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            result = error
        await self.finished.put((item, result, self.world.clock.ticks() - started))

    def _call(self, item: Item) -> Call:
        async def part(key: str, facts: Any) -> None:
            await self._part(item.id, key, facts)

        return Call(
            self.world,
            self.live.run,
            self.live.machine.name,
            item,
            self.live.config,
            self.live.payloads,
            part,
        )

    # ── what comes back ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _part(self, item_id: str, key: str, facts: Any) -> None:
        item = self.live.snapshot.items.get(item_id)
        if item is None:
            return
        more = structs.replace(item, parts={**item.parts, key: facts})
        stored, after = note(
            self.live.snapshot, Meta(self._now(), cause=item_id), "part_finished", held=(more,), data=facts
        )
        await self._append(Advance((stored,), after))

    async def _finish(self, item: Item, result: Any, took: int) -> None:
        self.tasks.pop(item.id, None)
        current = self.live.snapshot.items.get(item.id)
        if isinstance(result, JournalError):
            raise result
        if isinstance(result, Again):
            if current is not None:
                await self._again(current, result, took)
            return
        facts = result if not isinstance(result, Exception) else self._broken(item, result)
        spent = _spent(facts, took)
        meta = Meta(
            self._now(), _actor(item, facts), item.id, (item.id,) if current is not None else (), took, spent
        )
        if current is None:
            await self._append(late(self.live.snapshot, meta, facts), settle(self.live, item, spent))
            return
        await self._event(current, facts, meta, settle(self.live, item, spent))

    def _broken(self, item: Item, error: Exception) -> Any:
        """An effect that broke is a fact too: the naming's `otherwise` says what it means."""
        returns = self.live.machine.jobs[item.job].returns
        ref = self.live.payloads.put(f"{type(error).__name__}: {error}")
        given = {"error": "provider_crashed", "detail_ref": ref, "first_ref": ref}
        return returns(**{k: v for k, v in given.items() if k in returns.__struct_fields__})

    async def _event(
        self, item: Item, facts: Any, meta: Meta, spends: tuple[Spend, ...] = (), taken: Any = ()
    ) -> None:
        live = self.live
        problem = unacceptable(plain(facts))
        if problem:
            facts = self._broken(item, ValueError(problem))
        happened = name_facts(live.machine, live.snapshot, item.job, facts)
        stranger = (
            item.visit != live.snapshot.visit
            and (live.snapshot.state, happened.event.name) not in live.machine.lookup
        )
        if stranger:
            await self._append(late(live.snapshot, meta, facts), spends)
            return
        await self._step(happened, meta, spends, taken)

    async def _again(self, item: Item, again: Again, took: int) -> None:
        """A further attempt, recorded with its reason before it begins."""
        due = self._now() + again.after_ms if again.after_ms else None
        more = structs.replace(
            item, attempt=item.attempt + 1, due=due, retry=again.reason, hint=again.hint_ref
        )
        meta = Meta(
            self._now(),
            cause=item.id,
            took=took,
            spent=_timed(again.spent, took),
            retry=Retry(item.attempt, again.reason),
        )
        kind = "timer_set" if due is not None else "effect_started"
        stored, after = note(self.live.snapshot, meta, kind, held=(more,))
        await self._append(Advance((stored,), after), settle(self.live, item, meta.spent or {}, again=True))

    async def _take_due(self) -> None:
        now = self._now()
        for item in list(self.live.snapshot.items.values()):
            if item.due is None or item.due > now or item.id not in self.live.snapshot.items:
                continue
            meta = Meta(now, cause=item.id, closes=(item.id,))
            if item.kind == "timer":
                await self._event(item, TimerDue(item.due), meta)
            elif item.kind == "gate" and item.input.get("default"):
                await self._time_out(item, meta)
            elif item.kind == "effect":
                stored, after = note(
                    self.live.snapshot,
                    Meta(now, cause=item.id),
                    "timer_fired",
                    held=(structs.replace(item, due=None),),
                )
                await self._append(Advance((stored,), after))

    async def _time_out(self, item: Item, meta: Meta) -> None:
        """A gate's deadline: its default, which is never approval. Somebody who was quicker has answered it already."""
        answer = GateAnswer(item.input["default"], "", item.input["digest"], timed_out=True)
        body = {"choice": answer.choice, "person": "", "digest": answer.digest, "timed_out": True}
        if self.world.journal.answer(item.id, answer.digest, body, meta.at) is not None:
            await self._take_inbox()

    # ── the inbox ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _take_inbox(self) -> None:
        for posted in self.world.journal.pending(self.live.run):
            await getattr(self, f"_on_{posted.kind}")(posted)

    async def _on_event(self, posted: Posted) -> None:
        m, body = self.live.machine, posted.body
        meta = Meta(self._now(), _person(body), f"inbox:{posted.id}", why=body.get("reason", ""))
        event = m.events.get(body["event"])
        if event is None:
            await self._refuse(posted, meta, body["event"], f"{m.name} has no event {body['event']!r}")
            return
        try:
            data = msgspec.convert(body.get("data", {}), event.carries)
        except msgspec.ValidationError as error:
            await self._refuse(posted, meta, event.name, f"what {event.name} carries does not fit: {error}")
            return
        await self._step(Happened(event, data, Origin.PERSON), meta, taken=posted)

    async def _on_answer(self, posted: Posted) -> None:
        body = posted.body
        item = self.live.snapshot.items.get(body["gate"])
        meta = Meta(self._now(), _person(body), body["gate"], (body["gate"],), why=body.get("reason", ""))
        if item is None or item.input["digest"] != body["digest"]:
            await self._refuse(
                posted,
                replace(meta, closes=()),
                "answer",
                "the gate is void: what it asked about has changed",
            )
            return
        if item.job == "budget":
            await self._on_budget(posted, item, meta)
            return
        answer = GateAnswer(
            body["choice"],
            body.get("person", ""),
            body["digest"],
            body.get("reason", ""),
            body.get("text", ""),
            body.get("timed_out", False),
        )
        await self._event(item, answer, meta, taken=posted)

    async def _on_budget(self, posted: Posted, gate: Item, meta: Meta) -> None:
        if posted.body["choice"] != "raise":
            await self._abort(posted, meta)
            return
        held = tuple(released(i) for i in self.live.snapshot.items.values() if i.held)
        limits = tuple(
            Spend(self.live.ancestors[-1], name, limit=value)
            for name, value in posted.body.get("limits", {}).items()
        )
        stored, after = note(
            self.live.snapshot,
            meta,
            "gate_answered",
            held=held,
            data={"choice": "raise", "limits": posted.body.get("limits", {})},
        )
        spends = limits + tuple(s for i in held for s in ceilings(self.live, i, self.live.config))
        verdict = {"result": "taken", "seq": after.seq, "state": after.state}
        try:
            await self.live.append(Advance((stored,), after), spends=spends, taken=((posted.id, verdict),))
        except OverBudget as error:
            refused = Refused(
                "raise", f"that is still not enough {error.name}: raise it further", {}, ("raise", "stop")
            )
            again = note(
                self.live.snapshot,
                replace(meta, closes=()),
                "refused",
                event="raise",
                why=refused.why,
                closed=(gate.id,),
                held=(_reopened(gate, self.live.snapshot.seq + 1),),
            )
            await self.live.append(
                Advance((again[0],), again[1]), taken=((posted.id, _told(refused, again[1].seq)),)
            )

    async def _on_abort(self, posted: Posted) -> None:
        await self._abort(
            posted,
            Meta(self._now(), _person(posted.body), f"inbox:{posted.id}", why=posted.body.get("reason", "")),
        )

    async def _abort(self, posted: Posted, meta: Meta) -> None:
        """The machine's own abort row where it has one, else canceled in place; children too."""
        m, s = self.live.machine, self.live.snapshot
        posts = tuple(
            (c.run, "abort", posted.body)
            for c in self.world.journal.children(s.run)
            if c.status in UNFINISHED
        )
        if m.abort is not None:
            answer = GateAnswer("abort", posted.body.get("person", ""), "", posted.body.get("reason", ""))
            await self._step(Happened(m.abort, answer, Origin.PERSON), meta, taken=posted, posts=posts)
            return
        if m.states[s.state].final or m.states[s.state].resting or s.ended:
            await self._refuse(posted, meta, "abort", "the run has its outcome already")
            return
        closed = tuple(i.id for i in s.items.values())
        stored, after = note(s, replace(meta, closes=closed), "note", ended="canceled")
        await self._append(
            Advance((stored,), after),
            taken=((posted.id, {"result": "taken", "seq": after.seq, "state": after.state}),),
            posts=posts,
        )

    async def _on_child(self, posted: Posted) -> None:
        item = self.live.snapshot.items.get(posted.body["item"])
        meta = Meta(self._now(), "steersman", posted.body["item"], (posted.body["item"],))
        ended = msgspec.convert(posted.body["ended"], ChildEnded)
        if item is None:
            stored, after = note(
                self.live.snapshot, replace(meta, closes=()), "child_ended", data=ended, late=True
            )
            await self._append(Advance((stored,), after), taken=((posted.id, {"result": "late"}),))
            return
        await self._event(item, ended, meta, taken=posted)

    async def _on_override(self, posted: Posted) -> None:
        from steersman.kernel.record import overridden
        from steersman.kernel.step import override

        body = posted.body
        meta = Meta(self._now(), _person(body), f"inbox:{posted.id}", why=body.get("reason", ""))
        taken = override(self.live.machine, self.live.snapshot, body["to"], body.get("reason", ""))
        if isinstance(taken, Refused):
            await self._refuse(posted, meta, "override", taken.why)
            return
        done = overridden(self.live.machine, self.live.snapshot, taken, meta)
        await self._append(
            done,
            taken=((posted.id, {"result": "taken", "seq": done.snapshot.seq, "state": done.snapshot.state}),),
        )

    async def _refuse(self, posted: Posted, meta: Meta, event: str, why: str) -> None:
        refused = Refused(event, why, {}, legal(self.live.machine, self.live.snapshot.state, Origin.PERSON))
        await self._append_refusal(refused, meta, posted)

    # ── the one way to move ─────────────────────────────────────────────────────────────────────────────────────────

    async def _step(
        self,
        happened: Happened,
        meta: Meta,
        spends: tuple[Spend, ...] = (),
        taken: Posted | tuple[()] = (),
        posts: Any = (),
    ) -> None:
        live = self.live
        try:
            done = advance(live.machine, live.snapshot, happened, meta)
            if done.refused is not None:
                await self._append_refusal(done.refused, meta, taken, spends)
                return
            await self._append(
                done, spends + self._reserve(done), _taken(taken, done), posts + self._tell_parent(done)
            )
        except OverBudget as error:
            if meta.hold:
                raise
            await self._step(happened, replace(meta, hold=error.name), spends, taken, posts)

    def _reserve(self, done: Advance) -> tuple[Spend, ...]:
        planned = [i for s in done.entries for i in s.entry.planned]
        if not planned:
            return ()
        return tuple(
            s
            for i in planned
            if i.kind == "effect" and not i.held and i.id in done.snapshot.items
            for s in ceilings(self.live, i, self.live.config)
        )

    def _tell_parent(self, done: Advance) -> tuple[tuple[str, str, dict[str, Any]], ...]:
        s = done.snapshot
        if not s.parent or not any(e.entry.kind == "sealed" for e in done.entries):
            return ()
        m = self.live.machine
        result = outcome(m, s)
        tree, commit = getattr(s.context, "tree", ""), getattr(s.context, "commit", "")
        ended = ChildEnded(s.run, result, result in m.successes, tree, commit)
        item = ":".join(s.run.rsplit(".", 2))
        return ((s.parent, "child", {"item": item, "ended": msgspec.to_builtins(ended)}),)

    async def _append_refusal(
        self, refused: Refused, meta: Meta, taken: Posted | tuple[()], spends: tuple[Spend, ...] = ()
    ) -> None:
        done = refuse(self.live.snapshot, refused, meta)
        verdict = ((taken.id, _told(refused, done.snapshot.seq)),) if isinstance(taken, Posted) else ()
        if self.live.snapshot.refused < REFUSALS or meta.closes:
            await self._append(done, spends, verdict)
        else:
            await self._append(Advance((), self.live.snapshot), spends, verdict)

    async def _append(
        self, done: Advance, spends: tuple[Spend, ...] = (), taken: Any = (), posts: Any = ()
    ) -> None:
        await self.live.append(done, spends=spends, taken=taken, posts=posts)
        if posts:
            self.world.bell.ring()

    # ── children ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _drive_child(self, item: Item) -> None:
        from steersman.runtime.start import start_child

        try:
            run = await start_child(self.world, self.live, item)
            head = self.world.journal.head(run)
            if head is not None and head.status in UNFINISHED and self.world.locks.owner(run) is None:
                await self.driver.drive(run)
        except (StaleError, Busy):
            return
        finally:
            await asyncio.sleep(POLL)
            self._children.pop(item.id, None)

    def _now(self) -> int:
        return self.world.clock.now()


def _taken(posted: Posted | tuple[()], done: Advance) -> tuple[tuple[int, dict[str, Any]], ...]:
    if not isinstance(posted, Posted):
        return ()
    return ((posted.id, {"result": "taken", "seq": done.entries[0].entry.seq, "state": done.snapshot.state}),)


def _told(refused: Refused, seq: int) -> dict[str, Any]:
    return {"result": "refused", "seq": seq, "why": refused.why, "legal": list(refused.legal)}


def _person(body: dict[str, Any]) -> str:
    return f"person:{body.get('person') or 'unknown'}"


def _actor(item: Item, facts: Any) -> str:
    provider = getattr(facts, "provider", "")
    return (
        f"agent:{item.input.get('role', item.job)}/{provider}/{getattr(facts, 'model', '')}"
        if provider
        else "steersman"
    )


def _spent(facts: Any, took: int) -> dict[str, int]:
    if not hasattr(facts, "micro_usd"):
        return {"ms": took // 1000}
    known = {"turns": 1, "tokens": facts.tokens, "micro_usd": facts.micro_usd}
    spent = {k: v for k, v in known.items() if v is not None}
    return _timed(spent if len(spent) == 3 else {**spent, "unknown": 1}, took)


def _timed(spent: dict[str, int] | None, took: int) -> dict[str, int]:
    return {**(spent or {}), "ms": took // 1000}


def _reopened(gate: Item, seq: int) -> Item:
    given = {**gate.input, "digest": f"budget:{seq}"}
    return structs.replace(gate, id=f"{gate.id.rsplit(':', 2)[0]}:{seq}:1", input=given)
