"""A step becomes entries: what the runtime appends, computed here without a clock or a store."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import structs

from steersman.errors import DefinitionError, UserError
from steersman.kernel.definition import Origin
from steersman.kernel.machine import Machine
from steersman.kernel.replay import apply_entry
from steersman.kernel.snapshot import JobItem, Snapshot, state_hash
from steersman.kernel.step import (
    MAX_COMPUTED_STEPS,
    EventOccurrence,
    PlannedJob,
    StepRefused,
    StepTaken,
    compute_event,
    plan_work,
    take_step,
)
from steersman.kernel.tape import GENESIS_HASH, Entry, EntryRetry, SealedEntry, seal_entry

BUDGET_GATE_JOB = "budget"  # the gate that no machine declares


class StepMeta(msgspec.Struct, frozen=True, gc=False):
    """What surrounds a step: when, who, because of what, at what cost."""

    at: int
    actor: str = "steersman"
    cause: str = ""
    closes: tuple[str, ...] = ()
    took: int | None = None
    spent: dict[str, int] | None = None
    retry: EntryRetry | None = None
    why: str = ""
    hold: str = ""  # the budget figure that is used up: agents planned now wait at a gate


class RunAdvance(msgspec.Struct, frozen=True, gc=False):
    """Entries to append in one commit, and the run after them."""

    entries: tuple[SealedEntry, ...]
    snapshot: Snapshot
    refused: StepRefused | None = None


def create_run_entries(
    machine: Machine,
    run: str,
    occurrence: EventOccurrence,
    context: Any,
    meta: StepMeta,
    *,
    root: str = "",
    parent: str = "",
    title: str = "",
    epoch: int = 0,
) -> RunAdvance:
    """The first entries of a run: its creation row, and the events that the machine computes from there."""
    _require_initial_context(machine, context)
    transition = take_step(machine, None, occurrence, context)
    if isinstance(transition, StepRefused):
        raise DefinitionError(f"{machine.name}: {transition.why}")
    entry = Entry(
        run=run,
        seq=1,
        at=meta.at,
        kind="created",
        prev=GENESIS_HASH,
        actor=meta.actor,
        event=occurrence.event.name,
        event_version=occurrence.event.version,
        data=occurrence.data,
        guards=transition.guards,
        to=transition.to,
        counts=transition.counts,
        planned=planned_items(machine, run, 1, 1, transition.planned, meta),
        why=meta.why,
        epoch=epoch,
        definition=machine.digest,
        machine=machine.name,
        context=msgspec.to_builtins(transition.context),
        context_version=machine.context_version,
        root=root or run,
        parent=parent,
        title=title,
    )
    stored = seal_entry(entry)
    snapshot = apply_entry(None, entry, stored.hash, transition.context, transition.tally)
    return advance_computed_steps(machine, [stored], snapshot, structs.replace(meta, why=""))  # said once


def _require_initial_context(machine: Machine, context: Any) -> None:
    """A run begins where the model check began: with a declared constant, with the first value of each memory."""
    for name, values in machine.constants.items():
        value = getattr(context, name)
        if value not in values:
            allowed = ", ".join(str(v) for v in values)
            raise UserError(f"{machine.name}: {name} is one of {allowed}, not {value!r}")
    for name, values in machine.memory.items():
        if getattr(context, name) != values[0]:
            raise DefinitionError(
                f"{machine.name}: a run begins with {name} {values[0]!r}, not {getattr(context, name)!r}"
            )


def advance_run(
    machine: Machine, snapshot: Snapshot, occurrence: EventOccurrence, meta: StepMeta
) -> RunAdvance:
    """One step with the computed ones that follow it; a refusal is an entry too."""
    transition = take_step(machine, snapshot, occurrence)
    if isinstance(transition, StepRefused):
        return record_refusal(snapshot, transition, meta)
    stored, snapshot = _build_step_entry(machine, snapshot, transition, meta)
    if snapshot.state not in machine.eventful:
        return RunAdvance((stored,), snapshot)
    return advance_computed_steps(machine, [stored], snapshot, meta)


def record_override(
    machine: Machine, snapshot: Snapshot, transition: StepTaken, meta: StepMeta
) -> RunAdvance:
    """The entries of a waived guard."""
    stored, snapshot = _build_step_entry(
        machine, snapshot, transition, structs.replace(meta, why=transition.waived), kind="override"
    )
    return advance_computed_steps(machine, [stored], snapshot, meta)


def migrate_run(machine: Machine, snapshot: Snapshot, meta: StepMeta) -> RunAdvance:
    """A paused run under the machine as it is now: jobs that it no longer has are over, the state's work is planned."""
    if snapshot.state not in machine.states:
        raise UserError(
            f"run {snapshot.run} is in {snapshot.state}, which this {machine.name} does not have: go on with the steersman that began it"
        )
    fresh = (
        ()
        if snapshot.ended
        else plan_work(machine, snapshot.state, snapshot.context, snapshot.counts, snapshot.planned)
    )
    stored, after = record_note(
        snapshot,
        meta,
        "migrated",
        definition=machine.digest,
        context=msgspec.to_builtins(snapshot.context),
        context_version=machine.context_version,
        closed=tuple(
            i.id for i in snapshot.items.values() if i.job not in machine.jobs and i.job != BUDGET_GATE_JOB
        ),
        planned=planned_items(machine, snapshot.run, snapshot.seq + 1, snapshot.visit, fresh, meta),
    )
    after.context = snapshot.context
    return (
        RunAdvance((stored,), after)
        if snapshot.ended
        else advance_computed_steps(machine, [stored], after, meta)
    )


def advance_computed_steps(
    machine: Machine, entries: list[SealedEntry], snapshot: Snapshot, meta: StepMeta
) -> RunAdvance:
    """Adds computed steps in the same commit, then the seal when the run has reached its outcome."""
    for _ in range(MAX_COMPUTED_STEPS + 1):
        occurrence = compute_event(machine, snapshot.context, snapshot.counts, snapshot.state)
        if occurrence is None:
            break
        transition = take_step(machine, snapshot, occurrence)
        if isinstance(transition, StepRefused):
            raise DefinitionError(
                f"{machine.name}: in {snapshot.state} the machine computes {transition.event}, but {transition.why}"
            )
        stored, snapshot = _build_step_entry(machine, snapshot, transition, StepMeta(meta.at, hold=meta.hold))
        entries.append(stored)
    else:
        raise DefinitionError(
            f"{machine.name}: more than {MAX_COMPUTED_STEPS} computed steps in a row, last in {snapshot.state}"
        )
    if snapshot.state in machine.settled and snapshot.visit >= entries[0].entry.seq:
        stored, snapshot = record_note(snapshot, StepMeta(meta.at), "sealed", state_hash=state_hash(snapshot))
        entries.append(stored)
    return RunAdvance(tuple(entries), snapshot)


def _build_step_entry(
    machine: Machine, snapshot: Snapshot, transition: StepTaken, meta: StepMeta, kind: Any = "transition"
) -> tuple[SealedEntry, Snapshot]:
    seq = snapshot.seq + 1
    visit = snapshot.visit if transition.stay else seq
    occurrence = transition.happened
    at = meta.at if meta.at > snapshot.at else snapshot.at  # noqa: FURB136  half the time of max()
    planned = (
        planned_items(machine, snapshot.run, seq, visit, transition.planned, meta)
        if transition.planned
        else ()
    )
    closed = _closed_item_ids(snapshot, transition, meta) if snapshot.items else ()
    # In the order of the fields: this is the one place that is as fast as it can be.
    entry = Entry(
        snapshot.run, seq, at, kind, snapshot.hash, meta.actor, meta.cause, transition.source, occurrence.event.name,
        occurrence.event.version, occurrence.data, transition.guards, transition.to, transition.stay, transition.ops, transition.counts, planned,
        closed, (), meta.spent or {}, meta.retry, meta.took, False, meta.why,
    )  # fmt: skip
    stored = seal_entry(entry)
    return stored, apply_entry(snapshot, entry, stored.hash, transition.context, transition.tally)


def _closed_item_ids(snapshot: Snapshot, transition: StepTaken, meta: StepMeta) -> tuple[str, ...]:
    if transition.stay:
        return meta.closes
    abandoned = [i.id for i in snapshot.items.values() if not i.outlives and i.id not in meta.closes]
    return (*meta.closes, *abandoned) if abandoned else meta.closes


def planned_items(
    machine: Machine, run: str, seq: int, visit: int, planned: Iterable[PlannedJob], meta: StepMeta
) -> tuple[JobItem, ...]:
    """Planned jobs as items of the entry that plans them. Once the budget is used up, agents wait at a gate."""
    items = tuple(
        [
            JobItem(
                f"{run}:{seq}:{n}",
                p.job,
                p.kind,
                p.key,
                p.input,
                visit,
                1,
                1,
                meta.at + int(p.input["after_ms"]) if "after_ms" in p.input else None,
                p.outlives,
            )
            for n, p in enumerate(planned, 1)
        ]
    )
    return items if not meta.hold else _hold_agent_items(machine, run, seq, visit, items, meta.hold)


def _hold_agent_items(
    machine: Machine, run: str, seq: int, visit: int, items: tuple[JobItem, ...], figure: str
) -> tuple[JobItem, ...]:
    item_list = [
        structs.replace(i, held=i.kind == "effect" and machine.jobs[i.job].does == "agent") for i in items
    ]
    if any(i.held for i in item_list):
        item_list.append(build_budget_gate(run, seq, len(item_list) + 1, visit, figure))
    return tuple(item_list)


def build_budget_gate(run: str, seq: int, n: int, visit: int, figure: str) -> JobItem:
    """The gate at which a used-up budget is raised, or the run stopped."""
    gate_input = {
        "digest": f"budget:{seq}:{figure}",
        "choices": ["raise", "stop"],
        "shown": {"figure": figure},
    }
    return JobItem(f"{run}:{seq}:{n}", BUDGET_GATE_JOB, "gate", BUDGET_GATE_JOB, gate_input, visit)


def record_refusal(snapshot: Snapshot, refused: StepRefused, meta: StepMeta) -> RunAdvance:
    """The entry of a refusal: what was tried, why it was refused, and what is legal now. It changes nothing else."""
    stored, after = record_note(
        snapshot,
        meta,
        "refused",
        event=refused.event,
        why=refused.why,
        guards=refused.guards,
        legal=refused.legal,
        source=snapshot.state,
    )
    return RunAdvance((stored,), after, refused)


def record_note(snapshot: Snapshot, meta: StepMeta, kind: Any, **fields: Any) -> tuple[SealedEntry, Snapshot]:
    """An entry that takes no row."""
    closed = (*meta.closes, *fields.pop("closed", ()))
    fields.setdefault("why", meta.why)
    entry = Entry(
        run=snapshot.run,
        seq=snapshot.seq + 1,
        at=max(meta.at, snapshot.at),
        kind=kind,
        prev=snapshot.hash,
        actor=meta.actor,
        cause=meta.cause,
        closed=closed,
        spent=meta.spent or {},
        took=meta.took,
        retry=meta.retry,
        **fields,
    )
    stored = seal_entry(entry)
    return stored, apply_entry(snapshot, entry, stored.hash)


def record_late_result(snapshot: Snapshot, meta: StepMeta, facts: Any) -> RunAdvance:
    """A result that came after its state was left: journaled, not folded."""
    stored, after = record_note(snapshot, meta, "effect_finished", data=facts, late=True)
    return RunAdvance((stored,), after)


def run_outcome(machine: Machine, snapshot: Snapshot) -> str:
    """The outcome a run has, or nothing."""
    if snapshot.ended:
        return snapshot.ended
    if snapshot.state not in machine.settled:
        return ""
    return str(getattr(snapshot.context, "outcome", None) or snapshot.state)


def run_status_word(machine: Machine, snapshot: Snapshot) -> str:
    """One of the six words that every machine shows beside its own state ('broken' is the store's to say)."""
    if snapshot.ended:
        return "stopped"
    items = snapshot.items.values()
    if any(i.kind in ("effect", "child") and i.due is None and not i.held for i in items):
        return "working"
    if any(i.kind == "gate" for i in items):
        return "waiting for you"
    if items:
        return "waiting until"
    if snapshot.state in machine.settled:
        return "done" if run_outcome(machine, snapshot) in machine.successes else "stopped"
    return "waiting for you"


__all__ = [
    "Origin",
    "RunAdvance",
    "StepMeta",
    "advance_computed_steps",
    "advance_run",
    "create_run_entries",
    "migrate_run",
    "planned_items",
    "record_late_result",
    "record_note",
    "record_override",
    "record_refusal",
    "run_outcome",
    "run_status_word",
]
