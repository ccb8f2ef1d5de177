"""The one way a run moves: an event is decided by the kernel, written down in one commit, and nothing else."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.errors import DefinitionError, OverBudget
from steersman.kernel.canonical import unacceptable
from steersman.kernel.definition import ChildEnded
from steersman.kernel.machine import Machine
from steersman.kernel.record import Advance, Meta, advance, late, note, outcome, refuse, status
from steersman.kernel.snapshot import Item, Snapshot, state_hash
from steersman.kernel.step import Happened, Refused, name_facts
from steersman.kernel.tape import Sealed
from steersman.ports.journal import UNFINISHED, Posted, Spend
from steersman.runtime.budget import ceilings, freed
from steersman.runtime.live import Live
from steersman.runtime.world import World

REFUSALS = 1_000  # beyond this a run's refusals are counted, not written

Posts = tuple[tuple[str, str, dict[str, Any]], ...]


class Moves:
    """Everything that appends to one run goes through here, one after the other."""

    def __init__(self, world: World, live: Live) -> None:
        self.world, self.live = world, live
        self.preferred = 0  # answers that were taken before what would have voided their gates
        self.called_off: set[str] = set()  # children that were told to stop

    def now(self) -> int:
        return self.world.clock.now()

    async def event(
        self, item: Item, facts: Any, meta: Meta, spends: tuple[Spend, ...] = (), taken: Posted | None = None
    ) -> None:
        """Sound facts of a job: named, then stepped; journaled as late where its state is left and nothing waits for them."""
        live = self.live
        happened = name_facts(live.machine, live.snapshot, item.job, facts)
        if item.visit != live.snapshot.visit and self._unwanted(item, happened):
            await self.append(late(live.snapshot, meta, facts), spends, _verdict(taken, {"result": "late"}))
            return
        await self.step(happened, meta, spends, taken)

    def _unwanted(self, item: Item, happened: Happened) -> bool:
        """Of an earlier visit: no row waits for it here, or this visit has planned the same job anew."""
        here = self.live.snapshot
        return (here.state, happened.event.name) not in self.live.machine.lookup or item.key in here.planned

    async def step(
        self,
        happened: Happened,
        meta: Meta,
        spends: tuple[Spend, ...] = (),
        taken: Posted | None = None,
        posts: Posts = (),
    ) -> None:
        """One step with what it reserves; over budget, the same step with its agents held at a gate."""
        live = self.live
        if live.snapshot.ended:
            over = Refused(happened.event.name, f"the run is over: {live.snapshot.ended}", {}, ())
            await self.refused(over, meta, taken, spends)
            return
        done = advance(live.machine, live.snapshot, happened, meta)
        if done.refused is not None:
            await self.refused(done.refused, meta, taken, spends)
            return
        if await self.answers_first(
            [c for s in done.entries for c in s.entry.closed if c != meta.cause], taken
        ):
            await self._after_answers(happened, meta, spends, taken, posts)
            return
        told = {"result": "taken", "seq": done.entries[0].entry.seq, "state": done.snapshot.state}
        try:
            await self.append(
                done, spends + self._reserve(done), _verdict(taken, told), posts + self._tell_parent(done)
            )
        except OverBudget as error:
            if meta.hold:
                raise
            await self.step(happened, replace(meta, hold=error.name), spends, taken, posts)

    async def answers_first(self, closing: Iterable[str], taken: Posted | None = None) -> bool:
        """A step that would void a gate already answered takes the answer first; says whether one was."""
        items = self.live.snapshot.items
        gates = {c for c in closing if c in items and items[c].kind == "gate"}
        if not gates:
            return False
        from steersman.runtime.inbox import take_one  # the inbox moves runs too

        said = [p for p in self.world.journal.pending(self.live.run) if p.kind == "answer" and p != taken]
        first = next((p for p in said if p.body["gate"] in gates), None)
        if first is None:
            return False
        self.preferred += 1
        await take_one(self, first)
        return True

    async def _after_answers(
        self, happened: Happened, meta: Meta, spends: tuple[Spend, ...], taken: Posted | None, posts: Posts
    ) -> None:
        """The same once more, in the state that the answers have led to; late where its item is over."""
        if any(c not in self.live.snapshot.items for c in meta.closes):
            over = late(self.live.snapshot, replace(meta, closes=()), happened.data)
            await self.append(over, spends, _verdict(taken, {"result": "late"}))
        else:
            await self.step(happened, meta, spends, taken, posts)

    async def refused(
        self, refused: Refused, meta: Meta, taken: Posted | None = None, spends: tuple[Spend, ...] = ()
    ) -> None:
        """A refusal on tape, told to whoever sent it."""
        live = self.live
        told = {"result": "refused", "why": refused.why, "legal": list(refused.legal)}
        if live.snapshot.refused < REFUSALS or meta.closes:
            done = refuse(live.snapshot, refused, meta)
            await self.append(done, spends, _verdict(taken, {**told, "seq": done.snapshot.seq}))
            return
        counted = Spend(live.run, "refused", spent=1)
        await self.append(Advance((), live.snapshot), (*spends, counted), _verdict(taken, told))

    async def note(
        self,
        meta: Meta,
        kind: str,
        taken: Posted | None = None,
        spends: tuple[Spend, ...] = (),
        posts: Posts = (),
        **fields: Any,
    ) -> None:
        """An entry that takes no row; one that ends the run is sealed in the same commit."""
        stored, after = note(self.live.snapshot, meta, kind, **fields)
        entries: tuple[Sealed, ...] = (stored,)
        if fields.get("ended"):
            seal, after = note(after, Meta(meta.at), "sealed", state_hash=state_hash(after))
            entries = (stored, seal)
        told = {"result": "taken", "seq": stored.entry.seq, "state": after.state}
        done = Advance(entries, after)
        await self.append(done, spends, _verdict(taken, told), posts + self._tell_parent(done))

    async def append(
        self, done: Advance, spends: tuple[Spend, ...] = (), taken: Any = (), posts: Posts = ()
    ) -> None:
        """One commit; what was reserved for an item goes when the item does, however it ends."""
        items = self.live.snapshot.items
        gone = [items[i] for s in done.entries for i in s.entry.closed if i in items]
        back = tuple(s for i in gone for s in freed(self.live, i)) if gone else ()
        await self.live.append(done, spends=back + spends, taken=taken, posts=posts)
        if posts:
            self.called_off |= {run for run, kind, _ in posts if kind == "abort"}
            self.world.bell.ring()

    def sound(self, item: Item, result: Any) -> Any:
        """The facts an effect brought back; whatever else it brought or broke with is a fact too, in their form.

        The naming's `otherwise` says what that means.
        """
        returns = self.live.machine.jobs[item.job].returns
        error = result if isinstance(result, Exception) else None
        if error is None:
            problem = untapeable(result) if isinstance(result, returns) else f"not {returns.__name__}"
            if problem is None:
                return result
            error = ValueError(problem)
        ref = self.live.payloads.put(f"{type(error).__name__}: {error}")
        words = ("detail_ref", "first_ref", "told_ref", "error_ref")
        given = {"error": "provider_crashed", **dict.fromkeys(words, ref)}
        try:
            return returns(**{k: v for k, v in given.items() if k in returns.__struct_fields__})
        except TypeError as without:
            told = f"{self.live.machine.name}: {item.job} broke ({error}), and its facts cannot say so"
            raise DefinitionError(f"{told}: give {returns.__name__} defaults") from without

    def _reserve(self, done: Advance) -> tuple[Spend, ...]:
        planned = [i for s in done.entries for i in s.entry.planned if i.kind == "effect" and not i.held]
        return tuple(
            s
            for i in planned
            if i.id in done.snapshot.items
            for s in ceilings(self.live, i, self.live.config)
        )

    def _tell_parent(self, done: Advance) -> Posts:
        """When a child is over, with nothing more to do or to ask, its parent has it in the inbox by the same commit."""
        m = self.live.machine
        if not done.snapshot.parent or status(m, self.live.snapshot) not in UNFINISHED:
            return ()
        return ended(m, done.snapshot)


def ended(m: Machine, s: Snapshot) -> Posts:
    """What the parent of a run that is over is told."""
    if not s.parent or status(m, s) in UNFINISHED:
        return ()
    result = outcome(m, s)
    tree, commit = getattr(s.context, "tree", ""), getattr(s.context, "commit", "")
    told = ChildEnded(s.run, result, result in m.successes, tree, commit)
    item = ":".join(s.run.rsplit(".", 2))
    return ((s.parent, "child", {"item": item, "ended": msgspec.to_builtins(told)}),)


def untapeable(value: Any) -> str | None:
    """Why a value may not go on tape; None when it may."""
    try:
        return unacceptable(msgspec.to_builtins(value, builtin_types=(bytes, bytearray)))
    except (TypeError, ValueError, RecursionError) as error:
        return str(error)


def _verdict(posted: Posted | None, told: dict[str, Any]) -> tuple[tuple[int, dict[str, Any]], ...]:
    return ((posted.id, told),) if posted is not None else ()
