"""One run under way: its claim, the loop that takes what its effects bring, its timers and its children.

Effects run beside each other; what they bring back is taken by one loop, in order.
**Invariant:** everything that appends to the run happens in that loop.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from steersman.engine import inbox, person_text
from steersman.engine.active_run import ActiveRun
from steersman.engine.budgets import usage_spends
from steersman.engine.effect_call import EffectCall, RetryRequest
from steersman.engine.effects import load_performer
from steersman.engine.isolation_notice import isolation_warning
from steersman.engine.machine_package import find_package
from steersman.engine.run_writer import RunWriter, find_tape_problem
from steersman.errors import BeyondLimitsError, JournalError, StaleError, SteersmanError, StoreFull, UserError
from steersman.kernel.build import definition_data
from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.definition import ChildEnded, TimerDue
from steersman.kernel.record import RunAdvance, StepMeta, record_late_result, record_note
from steersman.kernel.snapshot import JobItem
from steersman.kernel.tape import EntryRetry
from steersman.ports.journal import Head

if TYPE_CHECKING:
    from steersman.engine.driver import Driver

STORE_POLL_SECONDS = 0.2  # seconds between looks at the store for what other processes have written
STALL_MS = 900_000  # nothing on tape for this long while something is under way: people are told, once


class RunBusy(UserError):  # noqa: N818  a state of the run, not an action that failed
    """Somebody else drives this run."""

    exit_code = 4


class RunLoop:
    """One run under way."""

    def __init__(self, driver: "Driver", active_run: ActiveRun) -> None:
        self.driver, self.live, self.world = driver, active_run, driver.world
        self.moves = RunWriter(driver.world, active_run)
        self.wake = asyncio.Event()
        self.lost = False  # somebody else owns the run: what works for it now is not ours to stop
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()  # children that were called off
        self._arrived: deque[Callable[[], Any]] = deque()  # what tasks bring back, to be taken in order
        self._alerted = 0  # the entry after which nothing had happened for too long
        active_run.watch = driver.changed

    # ── beginning and end ───────────────────────────────────────────────────────────────────────────────────────────

    async def claim(self) -> None:
        """Takes the run over: leftovers of the last owner are stopped, its begun effects are marked as begun again.

        The fence comes first: an owner that still lives must not record what it is stopped for as a failure.
        """
        snapshot_before = self.live.snapshot
        # Under another definition the run is taken over at once: nothing may be appended that the tape cannot explain.
        needs_claim = self._needed() or snapshot_before.definition != self.live.machine.digest
        if needs_claim:
            await self._fence_last_owner()
        await asyncio.to_thread(self.world.processes.stop_tree, f"{self.live.run}:", 2.0)
        if not needs_claim:
            return
        await inbox.take_inbox(
            self.moves
        )  # what a person has said meanwhile comes first: an abort begins nothing anew
        if snapshot_before.epoch and not self.was_only_refused:  # else nobody has driven it before
            begun_items = [
                i
                for i, item in snapshot_before.items.items()
                if not item.held and i in self.live.snapshot.items
            ]
            await self._begin_again(begun_items)

    @property
    def was_only_refused(self) -> bool:
        """Whether the run was only taken over for a word that is refused: nothing is begun for that."""
        awaited_item = self.driver.heeds
        verdict = self.world.journal.verdict(awaited_item) if awaited_item is not None else None
        return verdict is not None and verdict["result"] == "refused"

    async def _fence_last_owner(self) -> None:
        """From here on the last owner's writes are void."""
        machine, snapshot = self.live.machine, self.live.snapshot
        definition_change: dict[str, Any] = {}
        if snapshot.definition != machine.digest:
            definition_change = {
                "definition": machine.digest,
                "context": msgspec.to_builtins(snapshot.context),
                "context_version": machine.context_version,
            }
        # Nothing is started for a run whose texts are gone.
        isolation_note = (
            "" if self.live.payloads.is_pruned else isolation_warning(self.world, self.live.config)
        )
        claim_reason = "; ".join(filter(None, (self.driver.kind, isolation_note)))
        sealed_entry, snapshot_after = record_note(
            snapshot,
            StepMeta(self._now()),
            "claimed",
            epoch=snapshot.epoch + 1,
            why=claim_reason,
            **definition_change,
        )
        snapshot_after.context = snapshot.context
        await self.live.append(
            RunAdvance((sealed_entry,), snapshot_after),
            definition=(machine.digest, canonical_bytes(definition_data(machine))),
        )

    async def _begin_again(self, begun_items: list[str]) -> None:
        """Marks the effects that the last owner may have begun: they may run twice."""
        entries, snapshot = [], self.live.snapshot
        for item in [snapshot.items[i] for i in begun_items]:
            if item.kind != "effect" or item.held or item.due is not None:
                continue
            restarted_item = structs.replace(item, starts=item.starts + 1)
            meta = StepMeta(self._now(), cause=item.id, retry=EntryRetry(item.starts, "interrupted"))
            sealed_entry, snapshot = record_note(snapshot, meta, "effect_started", held=(restarted_item,))
            entries.append(sealed_entry)
        if entries:
            await self.moves.append(RunAdvance(tuple(entries), snapshot))

    def _needed(self) -> bool:
        if self.world.journal.pending(self.live.run):
            return True
        patience_end = self._now() + self.driver.patience_ms
        items = self.live.snapshot.items.values()
        return any(
            i.due <= patience_end if i.due is not None else i.kind in ("effect", "child") and not i.held
            for i in items
        )

    async def close(self) -> None:
        """Stops what this drive has started and waits until it is gone."""
        tasks = [*self._tasks.values(), *self._leaving, *self._ending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if tasks and not self.lost and self._still_ours():
            await asyncio.to_thread(self.world.processes.stop_tree, f"{self.live.run}:", 2.0)

    def _still_ours(self) -> bool:
        """Nobody has taken the run over: what works for it is ours to stop, also when the store cannot be asked."""
        try:
            head = self.world.journal.head(self.live.run)
        except JournalError:
            return True
        return head is None or head.epoch == self.live.stored[1]

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def loop(self) -> Head:
        """Takes what comes, starts what is planned, until there is nothing to wait for here."""
        while not self.driver.stopping:
            while self._arrived:
                await self._arrived.popleft()()
            await inbox.take_inbox(self.moves)
            await self._take_due()
            await self._alert()
            self._stop_left()
            self._call_off()
            self._start()
            if not self._arrived:
                if not self._tasks and not self._ending and self._time_until_due() is None:
                    break
                await self._wait()
        return self.live.head()

    def _time_until_due(self) -> int | None:
        """Milliseconds until something is due that is worth sitting out."""
        now = self._now()
        waits = [
            i.due - now
            for i in self.live.snapshot.items.values()
            if i.due is not None and not _ignores_deadline(i)
        ]
        return min((max(w, 1) for w in waits if w <= self.driver.patience_ms), default=None)

    async def _wait(self) -> None:
        due_ms = self._time_until_due()
        timeout = STORE_POLL_SECONDS if due_ms is None else min(STORE_POLL_SECONDS, due_ms / 1000)
        wake_timer = asyncio.get_running_loop().call_later(timeout, self.wake.set)
        await self.wake.wait()
        self.wake.clear()
        wake_timer.cancel()

    def _start(self) -> None:
        now = self._now()
        for item in self.live.snapshot.items.values():
            if item.id in self._tasks:
                continue
            if item.kind == "effect" and not item.held and item.due is None:
                self._tasks[item.id] = asyncio.create_task(self._perform(item))
            elif item.kind == "child" and self._child_can_go(item, now):
                self._tasks[item.id] = asyncio.create_task(self._drive_child(item))

    def _stop_left(self) -> None:
        """Cancels what belongs to a state that was left, unless it outlives it."""
        for item_id in [i for i in self._tasks if i not in self.live.snapshot.items]:
            task = self._tasks.pop(item_id)
            task.cancel()
            self._leaving.add(task)

    def _take_results(self, take_result: Callable[[], Any]) -> None:
        self._arrived.append(take_result)
        self.wake.set()

    # ── effects ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _perform(self, item: JobItem) -> None:
        job = self.live.machine.jobs[item.job]
        package = find_package(self.world.packages, self.live.machine)
        perform_effect = self.world.performers.get(job.does) or load_performer(package, job.does)
        started = self.world.clock.ticks()
        try:
            if perform_effect is None:
                raise UserError(f"nothing here performs {job.does!r}")  # noqa: TRY301  told like any failure of the effect
            result = await perform_effect(self._call(item))
        except Exception as error:
            result = error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            result = RuntimeError(f"it was cancelled from within: {error!r}")
        took = self.world.clock.ticks() - started
        self._take_results(lambda: self._finish(item, result, took))

    def _call(self, item: JobItem) -> EffectCall:
        async def part(key: str, facts: Any) -> None:
            recorded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._take_results(lambda: self._part(item.id, key, facts, recorded))
            await recorded

        return EffectCall(
            self.world,
            self.live.run,
            self.live.machine.name,
            item,
            self.live.config,
            self.live.payloads,
            part,
        )

    async def _part(self, item_id: str, key: str, facts: Any, recorded: "asyncio.Future[None]") -> None:
        item = self.live.snapshot.items.get(item_id)
        problem = find_tape_problem(facts)
        if item is not None and problem is None:
            updated_item = structs.replace(item, parts={**item.parts, key: facts})
            await self.moves.note(
                StepMeta(self._now(), cause=item_id), "part_finished", held=(updated_item,), data=facts
            )
        if recorded.done():
            return  # its effect was stopped meanwhile
        if problem is not None:
            recorded.set_exception(ValueError(f"part {key}: {problem}"))
        else:
            recorded.set_result(None)

    async def _finish(self, item: JobItem, result: Any, took: int) -> None:
        self._tasks.pop(item.id, None)
        current = self.live.snapshot.items.get(item.id)
        if isinstance(result, JournalError):
            raise result
        if isinstance(result, RetryRequest):
            if current is not None:
                await self._plan_attempt(current, result, took)
            return
        facts = self.moves.sound(item, result)
        spent = _effect_cost(facts, took)
        closes = (item.id,) if current is not None else ()
        meta = StepMeta(
            self._now(), _effect_actor(item, facts), item.id, closes, took, spent, _retry_record(item)
        )
        if current is None:
            await self.moves.append(
                record_late_result(self.live.snapshot, meta, facts), usage_spends(self.live, spent)
            )
        elif not await self._recheck_files(facts):
            await self._plan_attempt(current, RetryRequest("changed_meanwhile", 0), took)
        else:
            await self.moves.event(current, facts, meta, usage_spends(self.live, spent))

    async def _recheck_files(self, facts: Any) -> bool:
        """Files that were looked at are looked at again when that goes on tape."""
        seen_digests = getattr(facts, "seen", None)
        package = find_package(self.world.packages, self.live.machine)
        if not seen_digests or package.has_unchanged_files is None:
            return True
        return await asyncio.to_thread(
            package.has_unchanged_files, self.world.artifacts, self.live.run, seen_digests
        )

    async def _plan_attempt(self, item: JobItem, retry_request: RetryRequest, took: int) -> None:
        """A further attempt, recorded with its reason before it begins."""
        due = self._now() + retry_request.after_ms if retry_request.after_ms else None
        retried_item = structs.replace(
            item, attempt=item.attempt + 1, due=due, retry=retry_request.reason, hint=retry_request.hint_ref
        )
        spent = {**(retry_request.spent or {}), "ms": took // 1000}
        meta = StepMeta(
            self._now(),
            cause=item.id,
            took=took,
            spent=spent,
            retry=EntryRetry(item.attempt, retry_request.reason),
        )
        kind = "timer_set" if due is not None else "effect_started"
        await self.moves.note(meta, kind, spends=usage_spends(self.live, spent), held=(retried_item,))

    # ── time ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _take_due(self) -> None:
        now = self._now()
        for item in list(self.live.snapshot.items.values()):
            if item.due is None or item.due > now or item.id not in self.live.snapshot.items:
                continue
            if item.kind == "timer":
                await self.moves.event(
                    item, TimerDue(item.due), StepMeta(now, cause=item.id, closes=(item.id,))
                )
            elif item.kind == "effect":
                await self.moves.note(
                    StepMeta(now, cause=item.id), "timer_fired", held=(structs.replace(item, due=None),)
                )
            elif not _ignores_deadline(item):
                self._time_out(item, now)
                await inbox.take_inbox(self.moves)

    async def _alert(self) -> None:
        """A run without progress says so on tape; `why` and `runs` show it."""
        quiet_ms = self._now() - self.live.snapshot.at
        if self._tasks and quiet_ms > STALL_MS and self._alerted != self.live.snapshot.seq:
            running_jobs = ", ".join(
                sorted(i.key for i in self.live.snapshot.items.values() if i.id in self._tasks)
            )
            await self.moves.note(
                StepMeta(self._now()),
                "note",
                why=f"no progress for {quiet_ms // 60_000} minutes: {running_jobs}",
            )
            self._alerted = self.live.snapshot.seq

    def _time_out(self, item: JobItem, now: int) -> None:
        """A gate's deadline gives its default, which is never approval; somebody quicker has answered it already."""
        digest = item.input["digest"]
        body = {"choice": item.input["default"], "person": "", "digest": digest, "timed_out": True}
        self.world.journal.answer(item.id, digest, body, now)

    # ── children ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _child_can_go(self, item: JobItem, now: int) -> bool:
        """A child that is not there yet, or that would move if somebody drove it."""
        run = item.id.replace(":", ".")
        head = self.world.journal.head(run)
        if head is None:
            return True
        is_due = head.due is not None and head.due <= now + self.driver.patience_ms
        can_move = head.status == "working" or is_due or bool(self.world.journal.pending(run))
        return can_move and self.world.locks.owner(run) is None

    async def _drive_child(self, item: JobItem) -> None:
        from steersman.engine.start import start_child_run  # start needs the runtime's other half

        try:
            await self.driver.drive(await start_child_run(self.world, self.live, item))
        except (StaleError, RunBusy):
            await asyncio.sleep(STORE_POLL_SECONDS)  # somebody else has it; its end comes through the inbox
        except Exception as error:
            failure = error
            self._take_results(lambda: self._child_back(item, failure))
            return
        self._take_results(lambda: self._child_back(item, None))

    async def _child_back(self, item: JobItem, failure: Exception | None) -> None:
        """A child that cannot be driven at all has ended for its parent, which goes on; store trouble and a limit stop both."""
        self._tasks.pop(item.id, None)
        if isinstance(failure, StoreFull | BeyondLimitsError):
            raise failure
        if failure is not None and item.id in self.live.snapshot.items:
            reason = person_text.sanitize_reason(self.world, self.live.run, str(failure))
            meta = StepMeta(self._now(), cause=item.id, closes=(item.id,), why=reason)
            await self.moves.event(item, ChildEnded(item.id.replace(":", "."), "broken"), meta)

    def _call_off(self) -> None:
        """Children that were told to stop are driven there, also those whose job is over with the state it belonged to."""
        for run in self.moves.called_off:
            task = asyncio.create_task(self._end_child(run, set(self._leaving)))
            self._ending.add(task)
            task.add_done_callback(self._ended)
        self.moves.called_off = set()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._ending.discard(task)
        self.wake.set()

    async def _end_child(self, run: str, leaving: "set[asyncio.Task[None]]") -> None:
        await asyncio.gather(*leaving, return_exceptions=True)
        with contextlib.suppress(SteersmanError):  # somebody else drives it and takes it, or nobody ever can
            await self.driver.drive(run)

    def _now(self) -> int:
        return self.world.clock.now()


def _ignores_deadline(item: JobItem) -> bool:
    """A gate whose deadline means nothing by itself: without a default, or with one that no silence can give."""
    return item.kind == "gate" and item.input.get("default", "") in ("", "approve")


def _retry_record(item: JobItem) -> EntryRetry | None:
    """How an event came about that its first attempt did not bring."""
    if item.attempt > 1:
        return EntryRetry(item.attempt - 1, item.retry)
    return EntryRetry(item.starts - 1, "interrupted") if item.starts > 1 else None


def _effect_actor(item: JobItem, facts: Any) -> str:
    provider = getattr(facts, "provider", "")
    return (
        f"agent:{item.input.get('role', item.job)}/{provider}/{getattr(facts, 'model', '')}"
        if provider
        else "steersman"
    )


def _effect_cost(facts: Any, took: int) -> dict[str, int]:
    """What an effect cost; an agent's unknown cost is counted as unknown, never as nothing."""
    spent = {"ms": took // 1000}
    if hasattr(facts, "micro_usd"):
        reported_cost = {"tokens": facts.tokens, "micro_usd": facts.micro_usd}
        spent |= {"turns": 1, **{k: v for k, v in reported_cost.items() if v is not None}}
        if None in reported_cost.values():
            spent["unknown"] = 1
    return spent
