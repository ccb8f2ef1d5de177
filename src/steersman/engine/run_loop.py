"""Drives one run: claims it, starts its effects, and takes results, inbox items, timers and children in one loop.

A resume after a crash begins with `claim`: it fences the last driver, stops what that driver left running, and starts
its open effects again (`_restart_open_effects`).

Effects run as tasks side by side; their results are queued, and the loop takes them in order.
**Invariant:** only that loop appends to the run.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from steersman.engine import inbox
from steersman.engine.active_run import ActiveRun
from steersman.engine.effects import EffectCall, RetryRequest, load_performer
from steersman.engine.machine_package import find_package
from steersman.engine.ports import isolation_warning
from steersman.engine.run_writer import RunWriter, find_tape_problem, usage_spends
from steersman.errors import BeyondLimitsError, JournalError, StaleError, SteersmanError, StoreFull, UserError
from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.definition import ChildEnded, TimerDue
from steersman.kernel.machine import definition_data
from steersman.kernel.record import RunAdvance, StepMeta, record_late_result, record_note
from steersman.kernel.snapshot import JobItem
from steersman.kernel.tape import EntryRetry
from steersman.ports.journal import Head

if TYPE_CHECKING:
    from steersman.engine.driver import Driver

STORE_POLL_SECONDS = 0.2  # between reads of what other processes have written
STALL_MS = 900_000  # with effects running and no entry for this long, the loop writes one note for people


class RunBusy(UserError):  # noqa: N818  a state of the run, not an action that failed
    """Another driver has this run."""

    exit_code = 4


class RunLoop:
    """The loop of one run."""

    def __init__(self, driver: "Driver", active_run: ActiveRun) -> None:
        self.driver, self.live, self.world = driver, active_run, driver.world
        self.moves = RunWriter(driver.world, active_run)
        self.wake = asyncio.Event()
        self.lost = False  # another driver owns the run: its processes are not ours to stop
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()  # drives children that have to stop
        self._arrived: deque[Callable[[], Any]] = deque()  # results of tasks, in the order in which they came
        self._alerted = 0  # the entry after which a note about a stall was written
        active_run.watch = driver.changed

    # ── beginning and end ───────────────────────────────────────────────────────────────────────────────────────────

    async def claim(self) -> None:
        """Takes the run over, also after a crash of its last driver: stops what that left running and restarts its effects.

        The fence comes first, so that an owner that still lives cannot record the stop as a failure.
        """
        snapshot_before = self.live.snapshot
        # The tape must name the current definition before an entry is decided under it.
        needs_claim = self._needed() or snapshot_before.definition != self.live.machine.digest
        if needs_claim:
            await self._fence_last_owner()
        await asyncio.to_thread(self.world.processes.stop_tree, f"{self.live.run}:", 2.0)
        if not needs_claim:
            return
        await inbox.take_inbox(self.moves)  # before effects begin again: an abort must start nothing
        if snapshot_before.epoch and not self.was_only_refused:  # epoch 0: no driver had it before
            begun_items = [
                i
                for i, item in snapshot_before.items.items()
                if not item.held and i in self.live.snapshot.items
            ]
            await self._restart_open_effects(begun_items)

    @property
    def was_only_refused(self) -> bool:
        """Whether the run refused the inbox item that this drive is for; the drive then starts nothing."""
        awaited_item = self.driver.heeds
        verdict = self.world.journal.verdict(awaited_item) if awaited_item is not None else None
        return verdict is not None and verdict["result"] == "refused"

    async def _fence_last_owner(self) -> None:
        """Raises the epoch, which voids later writes of the last owner."""
        machine, snapshot = self.live.machine, self.live.snapshot
        definition_change: dict[str, Any] = {}
        if snapshot.definition != machine.digest:
            definition_change = {
                "definition": machine.digest,
                "context": msgspec.to_builtins(snapshot.context),
                "context_version": machine.context_version,
            }
        # A run whose texts were pruned starts no program.
        note = "" if self.live.payloads.is_pruned else isolation_warning(self.world, self.live.config)
        claim_reason = "; ".join(filter(None, (self.driver.kind, note)))
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

    async def _restart_open_effects(self, begun_items: list[str]) -> None:
        """Records a restart for each open effect that the last driver may have begun; such an effect may run twice."""
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
        end = self._now() + self.driver.patience_ms
        items = self.live.snapshot.items.values()
        return any(
            i.due <= end if i.due is not None else i.kind in ("effect", "child") and not i.held for i in items
        )

    async def close(self) -> None:
        """Stops what this drive has started and waits until it has ended."""
        tasks = [*self._tasks.values(), *self._leaving, *self._ending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if tasks and not self.lost and self._still_ours():
            await asyncio.to_thread(self.world.processes.stop_tree, f"{self.live.run}:", 2.0)

    def _still_ours(self) -> bool:
        """Whether no other driver has taken the run over; also true where the store cannot be read."""
        try:
            head = self.world.journal.head(self.live.run)
        except JournalError:
            return True
        return head is None or head.epoch == self.live.stored[1]

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def loop(self) -> Head:
        """Takes results and inbox items and starts planned work, until this process has nothing to wait for."""
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
        """Returns the milliseconds until the next timer that the driver waits for; None without one."""
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
        """Cancels effects whose item is closed because the run left their state."""
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
                raise UserError(f"no performer is installed for {job.does!r}")  # noqa: TRY301  becomes facts like any failure
            result = await perform_effect(self._call(item))
        except Exception as error:
            result = error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            result = RuntimeError(f"the effect cancelled itself: {error!r}")
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
            return  # the effect was stopped in between
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
        """Whether the files that an effect read are unchanged when its facts go on tape."""
        seen_digests = getattr(facts, "seen", None)
        package = find_package(self.world.packages, self.live.machine)
        if not seen_digests or package.has_unchanged_files is None:
            return True
        return await asyncio.to_thread(
            package.has_unchanged_files, self.world.artifacts, self.live.run, seen_digests
        )

    async def _plan_attempt(self, item: JobItem, retry_request: RetryRequest, took: int) -> None:
        """Records a further attempt with its reason before it begins."""
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
        """Writes a note when a run makes no progress; `why` and `runs` show it."""
        quiet_ms = self._now() - self.live.snapshot.at
        if self._tasks and quiet_ms > STALL_MS and self._alerted != self.live.snapshot.seq:
            jobs = ", ".join(sorted(i.key for i in self.live.snapshot.items.values() if i.id in self._tasks))
            await self.moves.note(
                StepMeta(self._now()), "note", why=f"no progress for {quiet_ms // 60_000} minutes: {jobs}"
            )
            self._alerted = self.live.snapshot.seq

    def _time_out(self, item: JobItem, now: int) -> None:
        """Answers a gate with its default, which is never an approval; an earlier answer stays."""
        digest = item.input["digest"]
        body = {"choice": item.input["default"], "person": "", "digest": digest, "timed_out": True}
        self.world.journal.answer(item.id, digest, body, now)

    # ── children ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _child_can_go(self, item: JobItem, now: int) -> bool:
        """Whether a child does not exist yet, or would move if it were driven."""
        run = item.id.replace(":", ".")
        head = self.world.journal.head(run)
        if head is None:
            return True
        is_due = head.due is not None and head.due <= now + self.driver.patience_ms
        can_move = head.status == "working" or is_due or bool(self.world.journal.pending(run))
        return can_move and self.world.locks.owner(run) is None

    async def _drive_child(self, item: JobItem) -> None:
        from steersman.engine.start import start_child_run  # start imports the engine's other half

        try:
            await self.driver.drive(await start_child_run(self.world, self.live, item))
        except (StaleError, RunBusy):
            await asyncio.sleep(STORE_POLL_SECONDS)  # another driver has it; its end comes through the inbox
        except Exception as error:
            failure = error
            self._take_results(lambda: self._child_back(item, failure))
            return
        self._take_results(lambda: self._child_back(item, None))

    async def _child_back(self, item: JobItem, failure: Exception | None) -> None:
        """Records a child that cannot be driven as ended, so that its parent goes on; a full store or a limit stops both."""
        self._tasks.pop(item.id, None)
        if isinstance(failure, StoreFull | BeyondLimitsError):
            raise failure
        if failure is not None and item.id in self.live.snapshot.items:
            reason = inbox.sanitize_reason(self.world, self.live.run, str(failure))
            meta = StepMeta(self._now(), cause=item.id, closes=(item.id,), why=reason)
            await self.moves.event(item, ChildEnded(item.id.replace(":", "."), "broken"), meta)

    def _call_off(self) -> None:
        """Drives the children that an abort was posted to, so that they take it."""
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
        with contextlib.suppress(SteersmanError):  # another driver takes the abort, or none ever can
            await self.driver.drive(run)

    def _now(self) -> int:
        return self.world.clock.now()


def _ignores_deadline(item: JobItem) -> bool:
    """Whether a gate stays open past its deadline: it has no default, or its default is an approval."""
    return item.kind == "gate" and item.input.get("default", "") in ("", "approve")


def _retry_record(item: JobItem) -> EntryRetry | None:
    """Returns the retry behind a result that the first attempt did not bring."""
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
    """Returns what an effect cost; a call whose agent does not report its cost counts as `unknown`, never as zero."""
    spent = {"ms": took // 1000}
    if hasattr(facts, "micro_usd"):
        reported_cost = {"tokens": facts.tokens, "micro_usd": facts.micro_usd}
        spent |= {"turns": 1, **{k: v for k, v in reported_cost.items() if v is not None}}
        if None in reported_cost.values():
            spent["unknown"] = 1
    return spent
