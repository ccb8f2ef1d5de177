"""What the faces call: read runs, speak to them, drive them. It waits for verdicts; it never decides one."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from steersman.errors import ContractError, UserError
from steersman.judges.text import clip, visible, well_formed
from steersman.kernel.record import Meta
from steersman.kernel.tape import Sealed
from steersman.ports.journal import UNFINISHED, Gate, Head
from steersman.runtime import words
from steersman.runtime.drive import Busy, Driver
from steersman.runtime.live import Live, load
from steersman.runtime.start import Order, fork, start
from steersman.runtime.words import carried
from steersman.runtime.world import World

VERDICT_SECONDS = 30.0


class Bridge:
    """One project, seen from the helm."""

    def __init__(self, world: World) -> None:
        self.world = world

    # ── finding ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def find(self, prefix: str) -> str:
        """The run with this id or unique prefix."""
        prefix = well_formed(prefix)
        found = (
            [prefix]
            if self.world.journal.head(prefix)
            else self.world.journal.matching(prefix)
            if prefix
            else []
        )
        found = [r for r in found if "." not in r] or found
        if not found:
            raise UserError(f"there is no run {prefix!r}: see `steersman runs --all`")
        if len(found) > 1:
            raise UserError(f"{prefix!r} could be {', '.join(found)}: write more of it")
        return found[0]

    def head(self, run: str) -> Head:
        head = self.world.journal.head(run)
        if head is None:
            raise UserError(f"there is no run {run!r}: see `steersman runs --all`")
        return head

    def live(self, run: str) -> Live:
        """A run's present state, for showing."""
        return load(self.world, run, migrating=True)

    def gate(self, name: str) -> Gate:
        """An open gate by its id, or the only one of a run."""
        gate = self.world.journal.gate(name)
        if gate is not None:
            return gate
        run = self.find(name.split(":", 1)[0])
        found = [g for g in self.world.journal.gates(run) if not g.answer]
        if not found:
            raise UserError(f"run {run} asks nothing now: see `steersman why {run}`")
        if len(found) > 1:
            raise UserError(f"run {run} has several gates, name one: {', '.join(g.id for g in found)}")
        return found[0]

    # ── speaking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, run: str, event: str, data: dict[str, Any], person: str, reason: str = "") -> int:
        """Puts a person's event into the inbox; the kernel refuses what a person may not cause."""
        self.live(run).apply_limits()
        said = {
            "event": clip(carried(self.world, run, event), 100),
            "data": carried(self.world, run, data),
            "person": person,
            "reason": words.reason(self.world, run, reason),
        }
        return self._post(run, "event", said)

    def abort(self, run: str, person: str, reason: str = "") -> int:
        return self._post(run, "abort", {"person": person, "reason": words.reason(self.world, run, reason)})

    def override(self, run: str, to: str, person: str, reason: str) -> int:
        """Asks for the guard before a phase to be waived; the kernel refuses what may not be."""
        self.live(run).apply_limits()
        said = {"to": clip(carried(self.world, run, to), 100), "person": person}
        return self._post(run, "override", {**said, "reason": words.reason(self.world, run, reason)})

    def answer(self, gate: Gate, choice: str, person: str, *, digest: str | None = None, **more: Any) -> int:
        """Answers a gate once; whoever comes second is told who was first."""
        if choice not in gate.choices:
            raise UserError(f"gate {gate.id} offers {' | '.join(gate.choices)}, not {choice}")
        if digest is not None and digest != gate.digest:
            raise ContractError(
                f"gate {gate.id} is about {gate.digest}, not {digest}: look at it again with `steersman show {gate.run}`"
            )
        if (gate.job, choice) == ("evidence", "approve") and digest is None:
            raise ContractError(
                f"gate {gate.id} is about evidence: an approval names the digest {gate.digest} that was looked at"
            )
        self._in_time(gate)
        self.live(gate.run).apply_limits()
        body = {"choice": choice, "person": person, "digest": gate.digest, **more}
        if "reason" in body:
            body["reason"] = words.reason(self.world, gate.run, body["reason"])
        posted = self.world.journal.answer(gate.id, gate.digest, body, self.world.clock.now())
        if posted is None:
            now = self.world.journal.gate(gate.id)
            who = (now.person or "nobody in time, so that steersman") if now is not None else ""
            told = f"{who} has answered {now.answer}" if now is not None else "it is closed"
            raise Busy(f"gate {gate.id} was answered already: {told}")
        self.world.bell.ring()
        return posted

    def _in_time(self, gate: Gate) -> None:
        """Whoever does not answer in time has chosen the default, also where nobody was there to say so."""
        now = self.world.clock.now()
        if gate.due is None or now < gate.due or gate.default in ("", "approve"):
            return
        body = {"choice": gate.default, "person": "", "digest": gate.digest, "timed_out": True}
        self.world.journal.answer(gate.id, gate.digest, body, now)
        self.world.bell.ring()
        raise Busy(f"gate {gate.id} was to be answered before: its time is over, and {gate.default} holds")

    def text(self, run: str, said: str) -> str:
        """Keeps a person's longer words as a payload of a run and gives their name."""
        live = self.live(run)
        ref = live.payloads.put(said)
        waiting = live.payloads.take()
        if waiting:
            self.world.journal.keep(live.snapshot.root, waiting)
        return ref

    def _post(self, run: str, kind: str, body: dict[str, Any]) -> int:
        posted = self.world.journal.post(run, kind, body, self.world.clock.now())
        self.world.bell.ring()
        return posted

    # ── driving ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(
        self, order: Order, watch: Callable[[Live, Sequence[Sealed]], None] | None = None
    ) -> tuple[Driver, Any, Live]:
        """A new run, durable, with the driver that will drive it."""
        live, lock = await start(self.world, order)
        return Driver(self.world, watch), lock, live

    async def settle(
        self,
        run: str,
        posted: int,
        watch: Callable[[Live, Sequence[Sealed]], None] | None = None,
        driver: Driver | None = None,
    ) -> tuple[dict[str, Any], str]:
        """Waits for the verdict on what was posted; drives the run itself unless a live driver does, and says which."""
        driver = driver or Driver(self.world, watch)
        driver.heeds = posted
        by = "another process"
        for _ in range(int(VERDICT_SECONDS / 0.05)):
            verdict = self.world.journal.verdict(posted)
            if verdict is not None:
                return verdict, by
            by = await self._driven(run, driver)
            if driver.stopping:
                break
        kept = {"result": "waiting", "why": f"{by} has not taken it yet; it is kept and will be"}
        return self.world.journal.verdict(posted) or kept, by

    async def _driven(self, run: str, driver: Driver) -> str:
        """Drives a run that nobody drives; waits a moment where somebody does. Says who."""
        owner = self.world.locks.owner(run)
        if owner is None:
            try:
                await driver.drive(run)
            except Busy:
                owner = self.world.locks.owner(run) or "another process"
            else:
                return "this command"
        await asyncio.sleep(0.05)
        return owner

    async def fork(self, run: str, at: int, person: str) -> str:
        return await fork(self.world, run, at, person)

    async def migrate(self, run: str, person: str, reason: str) -> Head:
        """Takes a paused run over to the machine as it is now; on tape, with a reason."""
        from steersman.kernel.build import definition
        from steersman.kernel.canonical import canonical
        from steersman.kernel.record import migrated
        from steersman.runtime.budget import ceilings, freed

        if not visible(reason):
            raise UserError("a migration needs --reason")
        lock = self.world.locks.acquire(run)
        if lock is None:
            raise Busy(f"run {run} is driven by {self.world.locks.owner(run)}: stop that first")
        try:
            live = load(self.world, run, migrating=True)
            m, s = live.machine, live.snapshot
            if s.definition == m.digest:
                raise UserError(f"run {run} is on the current definition already")
            meta = Meta(self.world.clock.now(), f"person:{person}", why=words.reason(self.world, run, reason))
            done = migrated(m, s, meta)
            started = [i for e in done.entries for i in e.entry.planned if i.id in done.snapshot.items]
            over = [s.items[c] for e in done.entries for c in e.entry.closed if c in s.items]
            spends = tuple(spend for i in over for spend in freed(live, i))
            spends += tuple(spend for i in started for spend in ceilings(live, i, live.config))
            await live.append(done, spends=spends, definition=(m.digest, canonical(definition(m))))
            return live.head()
        finally:
            lock.release()

    def resumable(self) -> list[Head]:
        """Runs that would go on if somebody drove them."""
        return [
            h
            for h in self.world.journal.heads(unfinished=True)
            if h.status in UNFINISHED and self.world.locks.owner(h.run) is None
        ]
