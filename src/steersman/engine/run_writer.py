"""Appends to one run: the kernel decides an event, and one commit records it with its budget and inbox verdict."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.contracts.config import Config, find_role_settings
from steersman.engine.active_run import ActiveRun
from steersman.engine.ports import Ports
from steersman.errors import DefinitionError, OverBudget
from steersman.kernel.canonical import find_unacceptable_value
from steersman.kernel.definition import ChildEnded
from steersman.kernel.machine import Machine
from steersman.kernel.record import (
    RunAdvance,
    StepMeta,
    advance_run,
    record_late_result,
    record_note,
    record_refusal,
    run_outcome,
    run_status_word,
)
from steersman.kernel.snapshot import JobItem, Snapshot, runtime_field, state_hash
from steersman.kernel.step import EventOccurrence, StepRefused, name_facts
from steersman.kernel.tape import SealedEntry
from steersman.ports.journal import UNFINISHED_STATUSES, InboxItem, Spend

# ── budgets ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Reserves budget at a run and every ancestor when an agent starts, and settles it when the call is over.


DEFAULT_CALL_SHARE = 10  # a role without a ceiling of its own reserves a tenth of the limit per call


def budget_limits(config: Config) -> dict[str, int]:
    """Returns the limits that a budget sets, by figure."""
    budget = config.budget
    figures = {
        "turns": budget.turns,
        "tokens": budget.tokens,
        "micro_usd": budget.micro_usd,
        "ms": budget.seconds * 1000 if budget.seconds is not None else None,
    }
    return {name: value for name, value in figures.items() if value is not None}


def call_ceiling(config: Config, role: str) -> dict[str, int]:
    """Returns the most that one call of a role may cost, which is what it reserves."""
    configured = _configured_ceilings(config, role)
    return {
        name: configured.get(
            name, 1 if name == "turns" else 0 if name == "ms" else limit // DEFAULT_CALL_SHARE
        )
        for name, limit in budget_limits(config).items()
    }


def _configured_ceilings(config: Config, role: str) -> dict[str, int]:
    """Returns a role's own ceilings: `call_tokens` and `call_micro_usd` in its table."""
    options = find_role_settings(config, role).options
    return {
        name: int(options[key])
        for name, key in (("tokens", "call_tokens"), ("micro_usd", "call_micro_usd"))
        if key in options
    }


def budget_reservations(active_run: ActiveRun, item: JobItem, config: Config) -> tuple[Spend, ...]:
    """Returns the reservations that an effect needs before it starts; only agents need any."""
    return tuple(
        Spend(run, name, reserved=amount, bound=True)
        for run in active_run.ancestors
        for name, amount in _reserved_amounts(active_run, item, config).items()
    )


def budget_releases(active_run: ActiveRun, item: JobItem) -> tuple[Spend, ...]:
    """Returns what frees the reservations of an effect that is over; a held effect has none."""
    if item.held:
        return ()
    return tuple(
        Spend(run, name, reserved=-amount)
        for run in active_run.ancestors
        for name, amount in _reserved_amounts(active_run, item, active_run.config).items()
    )


def _reserved_amounts(active_run: ActiveRun, item: JobItem, config: Config) -> dict[str, int]:
    role, job = item.input.get("role"), active_run.machine.jobs.get(item.job)
    # A job that this version of the machine no longer has reserved budget by its role.
    if role is None or item.kind != "effect" or (job is not None and job.does != "agent"):
        return {}
    return call_ceiling(config, role)


def usage_spends(active_run: ActiveRun, spent: dict[str, int]) -> tuple[Spend, ...]:
    """Returns the spending of a call for the run and every ancestor."""
    return tuple(
        Spend(run, name, spent=amount) for run in active_run.ancestors for name, amount in spent.items()
    )


# ── run writer ────────────────────────────────────────────────────────────────────────────────


MAX_TAPED_REFUSALS = 1_000  # later refusals of a run are counted and not written

InboxPosts = tuple[tuple[str, str, dict[str, Any]], ...]


class RunWriter:
    """Appends to one run, one commit after the other."""

    def __init__(self, ports: Ports, active_run: ActiveRun) -> None:
        self.world, self.live = ports, active_run
        self.preferred = 0  # counts answers that were taken before a step that would have voided their gates
        self.called_off: set[str] = set()  # children that an abort was posted to

    def now(self) -> int:
        return self.world.clock.now()

    async def event(
        self,
        item: JobItem,
        facts: Any,
        meta: StepMeta,
        spends: tuple[Spend, ...] = (),
        taken: InboxItem | None = None,
    ) -> None:
        """Names the event of a job's facts and takes the step; records facts as late where no row waits for them."""
        active_run = self.live
        happened = name_facts(active_run.machine, active_run.snapshot, item.job, facts)
        if item.visit != active_run.snapshot.visit and self._unwanted(item, happened):
            await self.append(
                record_late_result(active_run.snapshot, meta, facts),
                spends,
                _inbox_verdict(taken, {"result": "late"}),
            )
            return
        await self.step(happened, meta, spends, taken)

    def _unwanted(self, item: JobItem, happened: EventOccurrence) -> bool:
        """Whether facts of an earlier visit are late: no row takes their event here, or this visit planned the job again."""
        snapshot = self.live.snapshot
        return (
            snapshot.state,
            happened.event.name,
        ) not in self.live.machine.lookup or item.key in snapshot.planned

    async def step(
        self,
        happened: EventOccurrence,
        meta: StepMeta,
        spends: tuple[Spend, ...] = (),
        taken: InboxItem | None = None,
        posts: InboxPosts = (),
    ) -> None:
        """Takes one step and reserves what it starts. Where the budget is used up, the run stops here: the same step opens
        the budget gate instead of starting its agents."""
        active_run = self.live
        if active_run.snapshot.ended:
            refusal = StepRefused(
                happened.event.name, f"the run is over: {active_run.snapshot.ended}", {}, ()
            )
            await self.refused(refusal, meta, taken, spends)
            return
        advanced = advance_run(active_run.machine, active_run.snapshot, happened, meta)
        if advanced.refused is not None:
            await self.refused(advanced.refused, meta, taken, spends)
            return
        if await self.answers_first(
            [c for s in advanced.entries for c in s.entry.closed if c != meta.cause], taken
        ):
            await self._after_answers(happened, meta, spends, taken, posts)
            return
        verdict = {"result": "taken", "seq": advanced.entries[0].entry.seq, "state": advanced.snapshot.state}
        try:
            await self.append(
                advanced,
                spends + self._reserve(advanced),
                _inbox_verdict(taken, verdict),
                posts + self._tell_parent(advanced),
            )
        except OverBudget as error:
            if meta.hold:
                raise
            await self.step(happened, replace(meta, hold=error.name), spends, taken, posts)

    async def answers_first(self, closing: Iterable[str], inbox_item: InboxItem | None = None) -> bool:
        """Takes a waiting answer to a gate that a step is about to close; returns whether there was one."""
        items = self.live.snapshot.items
        gates = {c for c in closing if c in items and items[c].kind == "gate"}
        if not gates:
            return False
        from steersman.engine.inbox import take_inbox_item  # the inbox moves runs too

        answers = [
            p for p in self.world.journal.pending(self.live.run) if p.kind == "answer" and p != inbox_item
        ]
        answer = next((p for p in answers if p.body["gate"] in gates), None)
        if answer is None:
            return False
        self.preferred += 1
        await take_inbox_item(self, answer)
        return True

    async def _after_answers(
        self,
        happened: EventOccurrence,
        meta: StepMeta,
        spends: tuple[Spend, ...],
        inbox_item: InboxItem | None,
        posts: InboxPosts,
    ) -> None:
        """Takes the step again after an answer, from the new state; records it as late where its item is closed."""
        if any(c not in self.live.snapshot.items for c in meta.closes):
            late_advance = record_late_result(self.live.snapshot, replace(meta, closes=()), happened.data)
            await self.append(late_advance, spends, _inbox_verdict(inbox_item, {"result": "late"}))
        else:
            await self.step(happened, meta, spends, inbox_item, posts)

    async def refused(
        self,
        refusal: StepRefused,
        meta: StepMeta,
        inbox_item: InboxItem | None = None,
        spends: tuple[Spend, ...] = (),
    ) -> None:
        """Records a refusal and writes it as the verdict of the inbox item."""
        active_run = self.live
        verdict = {"result": "refused", "why": refusal.why, "legal": list(refusal.legal)}
        if active_run.snapshot.refused < MAX_TAPED_REFUSALS or meta.closes:
            advanced = record_refusal(active_run.snapshot, refusal, meta)
            await self.append(
                advanced, spends, _inbox_verdict(inbox_item, {**verdict, "seq": advanced.snapshot.seq})
            )
            return
        counted_refusal = Spend(active_run.run, "refused", spent=1)
        await self.append(
            RunAdvance((), active_run.snapshot),
            (*spends, counted_refusal),
            _inbox_verdict(inbox_item, verdict),
        )

    async def note(
        self,
        meta: StepMeta,
        kind: str,
        inbox_item: InboxItem | None = None,
        spends: tuple[Spend, ...] = (),
        posts: InboxPosts = (),
        **fields: Any,
    ) -> None:
        """Appends an entry that takes no row; seals the run in the same commit where the entry ends it."""
        sealed_entry, snapshot = record_note(self.live.snapshot, meta, kind, **fields)
        entries: tuple[SealedEntry, ...] = (sealed_entry,)
        if fields.get("ended"):
            seal, snapshot = record_note(
                snapshot, StepMeta(meta.at), "sealed", state_hash=state_hash(snapshot)
            )
            entries = (sealed_entry, seal)
        verdict = {"result": "taken", "seq": sealed_entry.entry.seq, "state": snapshot.state}
        advanced = RunAdvance(entries, snapshot)
        await self.append(
            advanced, spends, _inbox_verdict(inbox_item, verdict), posts + self._tell_parent(advanced)
        )

    async def append(
        self, advanced: RunAdvance, spends: tuple[Spend, ...] = (), taken: Any = (), posts: InboxPosts = ()
    ) -> None:
        """Commits entries and frees the reservations of every item that they close."""
        items = self.live.snapshot.items
        closed_items = [items[i] for s in advanced.entries for i in s.entry.closed if i in items]
        released_spends = (
            tuple(s for i in closed_items for s in budget_releases(self.live, i)) if closed_items else ()
        )
        await self.live.append(advanced, spends=released_spends + spends, taken=taken, posts=posts)
        if posts:
            self.called_off |= {run for run, kind, _ in posts if kind == "abort"}
            self.world.bell.notify()

    def sound(self, item: JobItem, result: Any) -> Any:
        """Returns the facts of an effect; an exception or a wrong result becomes facts of the same type with an error.

        The naming's `otherwise` says what such facts mean.
        """
        returns = self.live.machine.jobs[item.job].returns
        error = result if isinstance(result, Exception) else None
        if error is None:
            problem = find_tape_problem(result) if isinstance(result, returns) else f"not {returns.__name__}"
            if problem is None:
                return result
            error = ValueError(problem)
        ref = self.live.payloads.add_text(f"{type(error).__name__}: {error}")
        text_fields = ("detail_ref", "first_ref", "told_ref", "error_ref")
        failure_fields = {"error": "provider_crashed", **dict.fromkeys(text_fields, ref)}
        try:
            return returns(**{k: v for k, v in failure_fields.items() if k in returns.__struct_fields__})
        except TypeError as type_error:
            message = f"{self.live.machine.name}: {item.job} broke ({error}), and its facts cannot say so"
            raise DefinitionError(f"{message}: give {returns.__name__} defaults") from type_error

    def _reserve(self, advanced: RunAdvance) -> tuple[Spend, ...]:
        planned = [i for s in advanced.entries for i in s.entry.planned if i.kind == "effect" and not i.held]
        return tuple(
            s
            for i in planned
            if i.id in advanced.snapshot.items
            for s in budget_reservations(self.live, i, self.live.config)
        )

    def _tell_parent(self, advanced: RunAdvance) -> InboxPosts:
        """Returns the inbox item for the parent of a child that this commit ends."""
        machine = self.live.machine
        if (
            not advanced.snapshot.parent
            or run_status_word(machine, self.live.snapshot) not in UNFINISHED_STATUSES
        ):
            return ()
        return child_ended_posts(machine, advanced.snapshot)


def child_ended_posts(machine: Machine, snapshot: Snapshot) -> InboxPosts:
    """Returns the inbox item for the parent of a run that is over."""
    if not snapshot.parent or run_status_word(machine, snapshot) in UNFINISHED_STATUSES:
        return ()
    result = run_outcome(machine, snapshot)
    tree, commit = runtime_field(snapshot.context, "tree"), runtime_field(snapshot.context, "commit")
    child_ended = ChildEnded(snapshot.run, result, result in machine.successes, tree, commit)
    item = ":".join(snapshot.run.rsplit(".", 2))
    return ((snapshot.parent, "child", {"item": item, "ended": msgspec.to_builtins(child_ended)}),)


def find_tape_problem(value: Any) -> str | None:
    """Returns why a value may not go on tape; None where it may."""
    try:
        return find_unacceptable_value(msgspec.to_builtins(value, builtin_types=(bytes, bytearray)))
    except (TypeError, ValueError, RecursionError) as error:
        return str(error)


def _inbox_verdict(item: InboxItem | None, verdict: dict[str, Any]) -> tuple[tuple[int, dict[str, Any]], ...]:
    return ((item.id, verdict),) if item is not None else ()
