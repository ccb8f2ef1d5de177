"""What the faces call: read runs, speak to them, drive them. It waits for verdicts; it never decides one."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from steersman.engine import inbox
from steersman.engine.active_run import ActiveRun, load_active_run, require_head
from steersman.engine.driver import Driver, RunBusy
from steersman.engine.inbox import sanitize_event_data
from steersman.engine.machine_package import GatePreview, MachinePackage, RunEnding, RunView, find_package
from steersman.engine.ports import Ports
from steersman.engine.projections import (
    build_run_view,
    payload_reader,
    read_overrides,
    read_run_view,
    render_view_report,
    write_projections,
)
from steersman.engine.start import StartRequest, fork_run, start_run
from steersman.errors import ContractError, UnknownRunError, UserError
from steersman.judges.text import clip_text, escape_surrogates, has_visible_text
from steersman.kernel.record import StepMeta
from steersman.kernel.tape import SealedEntry
from steersman.ports.journal import UNFINISHED_STATUSES, Gate, Head, Journal
from steersman.views.gates import GateView
from steersman.views.report import RecordedReview, TimelineStep, build_timeline, find_recorded_reviews
from steersman.views.run_summary import RunSummary, override_line
from steersman.views.why import WaitReason, find_wait_reasons

__all__ = [
    "ActiveRun",
    "Driver",
    "MachinePackage",
    "Ports",
    "RunBusy",
    "RunDetails",
    "RunEnding",
    "RunExplanation",
    "RunOutcome",
    "RunReport",
    "RunService",
    "RunView",
    "StartRequest",
    "build_run_view",
    "explain_run",
    "find_run",
    "payload_reader",
    "read_overrides",
    "read_run_details",
    "read_run_outcome",
    "read_run_report",
    "read_run_timeline",
    "read_run_view",
    "write_projections",
]


VERDICT_SECONDS = 30.0


def find_run(journal: Journal, prefix: str) -> str:
    """The run with this id or unique prefix."""
    prefix = escape_surrogates(prefix)
    run_ids = [prefix] if journal.head(prefix) else journal.find_runs(prefix) if prefix else []
    run_ids = [r for r in run_ids if "." not in r] or run_ids
    if not run_ids:
        raise UnknownRunError(prefix)
    if len(run_ids) > 1:
        raise UserError(f"{prefix!r} could be {', '.join(run_ids)}: write more of it")
    return run_ids[0]


class RunService:
    """One project, seen from the helm."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports

    # ── finding ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def find(self, prefix: str) -> str:
        """The run with this id or unique prefix."""
        return find_run(self.ports.journal, prefix)

    def head(self, run: str) -> Head:
        """The head row of a run."""
        return require_head(self.ports.journal, run)

    def live(self, run: str) -> ActiveRun:
        """A run's present state, for showing."""
        return load_active_run(self.ports, run, migrating=True)

    def gate(self, name: str) -> Gate:
        """An open gate by its id, or the only one of a run."""
        gate = self.ports.journal.gate(name)
        if gate is not None:
            return gate
        run = self.find(name.split(":", 1)[0])
        open_gates = [g for g in self.ports.journal.gates(run) if not g.answer]
        if not open_gates:
            raise UserError(f"run {run} has no open question. See `steersman why {run}`")
        if len(open_gates) > 1:
            raise UserError(
                f"run {run} has several open gates. Name one: {', '.join(g.id for g in open_gates)}"
            )
        return open_gates[0]

    # ── speaking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, run: str, event: str, data: dict[str, Any], person: str, reason: str = "") -> int:
        """Puts a person's event into the inbox; the kernel refuses what a person may not cause."""
        self.live(run).apply_limits()
        body = {
            "event": clip_text(sanitize_event_data(self.ports, run, event), 100),
            "data": sanitize_event_data(self.ports, run, data),
            "person": person,
            "reason": inbox.sanitize_reason(self.ports, run, reason),
        }
        return self._post(run, "event", body)

    def abort(self, run: str, person: str, reason: str = "") -> int:
        return self._post(
            run, "abort", {"person": person, "reason": inbox.sanitize_reason(self.ports, run, reason)}
        )

    def override(self, run: str, to: str, person: str, reason: str) -> int:
        """Asks for the guard before a phase to be waived; the kernel refuses what may not be."""
        self.live(run).apply_limits()
        body = {"to": clip_text(sanitize_event_data(self.ports, run, to), 100), "person": person}
        return self._post(run, "override", {**body, "reason": inbox.sanitize_reason(self.ports, run, reason)})

    def answer(
        self, gate: Gate, choice: str, person: str, *, digest: str | None = None, **answer_fields: Any
    ) -> int:
        """Answers a gate once; a second answer raises RunBusy with the name of the first person."""
        if choice not in gate.choices:
            raise UserError(
                f"gate {gate.id} has no choice {choice!r}. Choose one of {', '.join(gate.choices)}"
            )
        if digest is not None and digest != gate.digest:
            raise ContractError(
                f"gate {gate.id} is now about {gate.digest}, not {digest}. Look at it again with `steersman show {gate.run}`"
            )
        if (gate.job, choice) == ("evidence", "approve") and digest is None:
            raise ContractError(
                f"gate {gate.id} is about evidence, so an approval has to name the digest that you looked at: {gate.digest}"
            )
        self._in_time(gate)
        self.live(gate.run).apply_limits()
        body = {"choice": choice, "person": person, "digest": gate.digest, **answer_fields}
        if "reason" in body:
            body["reason"] = inbox.sanitize_reason(self.ports, gate.run, body["reason"])
        item_id = self.ports.journal.answer(gate.id, gate.digest, body, self.ports.clock.now())
        if item_id is None:
            current_gate = self.ports.journal.gate(gate.id)
            answered_by = (
                (current_gate.person or "no person answered in time, and steersman")
                if current_gate is not None
                else ""
            )
            gate_outcome = (
                f"{answered_by} chose {current_gate.answer}" if current_gate is not None else "it is closed"
            )
            raise RunBusy(f"gate {gate.id} is answered already: {gate_outcome}")
        self.ports.bell.notify()
        return item_id

    def _in_time(self, gate: Gate) -> None:
        """Raises an error for an answer after the deadline: the default counts, even if no driver has applied it yet."""
        now = self.ports.clock.now()
        if gate.due is None or now < gate.due or gate.default in ("", "approve"):
            return
        body = {"choice": gate.default, "person": "", "digest": gate.digest, "timed_out": True}
        self.ports.journal.answer(gate.id, gate.digest, body, now)
        self.ports.bell.notify()
        raise RunBusy(f"gate {gate.id} was to be answered before: its time is over, and {gate.default} holds")

    def text(self, run: str, text: str) -> str:
        """Keeps a person's longer words as a payload of a run and gives their name."""
        active_run = self.live(run)
        ref = active_run.payloads.add_text(text)
        pending = active_run.payloads.take()
        if pending:
            self.ports.journal.store_payloads(active_run.snapshot.root, pending)
        return ref

    def _post(self, run: str, kind: str, body: dict[str, Any]) -> int:
        item_id = self.ports.journal.post(run, kind, body, self.ports.clock.now())
        self.ports.bell.notify()
        return item_id

    # ── driving ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(
        self, order: StartRequest, watch: Callable[[ActiveRun, Sequence[SealedEntry]], None] | None = None
    ) -> tuple[Driver, Any, ActiveRun]:
        """A new run, durable, with the driver that will drive it."""
        active_run, lock = await start_run(self.ports, order)
        return Driver(self.ports, watch), lock, active_run

    async def settle(
        self,
        run: str,
        item_id: int,
        watch: Callable[[ActiveRun, Sequence[SealedEntry]], None] | None = None,
        driver: Driver | None = None,
    ) -> tuple[dict[str, Any], str]:
        """Waits for the verdict on what was posted; drives the run itself unless a live driver does, and says which."""
        driver = driver or Driver(self.ports, watch)
        driver.heeds = item_id
        driven_by = "another process"
        for _ in range(int(VERDICT_SECONDS / 0.05)):
            verdict = self.ports.journal.verdict(item_id)
            if verdict is not None:
                return verdict, driven_by
            driven_by = await self._driven(run, driver)
            if driver.stopping:
                break
        waiting_verdict = {
            "result": "waiting",
            "why": f"{driven_by} has not taken it yet; it is kept and will be",
        }
        return self.ports.journal.verdict(item_id) or waiting_verdict, driven_by

    async def _driven(self, run: str, driver: Driver) -> str:
        """Drives a run that has no driver; waits a moment if it has one. Returns who drives it."""
        owner = self.ports.locks.owner(run)
        if owner is None:
            try:
                await driver.drive(run)
            except RunBusy:
                owner = self.ports.locks.owner(run) or "another process"
            else:
                return "this command"
        await asyncio.sleep(0.05)
        return owner

    async def fork(self, run: str, at: int, person: str) -> str:
        return await fork_run(self.ports, run, at, person)

    async def migrate(self, run: str, person: str, reason: str) -> Head:
        """Takes a paused run over to the machine as it is now; on tape, with a reason."""
        from steersman.engine.run_writer import budget_releases, budget_reservations
        from steersman.kernel.canonical import canonical_bytes
        from steersman.kernel.machine import definition_data
        from steersman.kernel.record import migrate_run

        if not has_visible_text(reason):
            raise UserError("a migration needs --reason")
        lock = self.ports.locks.acquire(run)
        if lock is None:
            raise RunBusy(f"run {run} is driven by {self.ports.locks.owner(run)}: stop that first")
        try:
            active_run = load_active_run(self.ports, run, migrating=True)
            machine, snapshot = active_run.machine, active_run.snapshot
            if snapshot.definition == machine.digest:
                raise UserError(f"run {run} is on the current definition already")
            meta = StepMeta(
                self.ports.clock.now(),
                f"person:{person}",
                why=inbox.sanitize_reason(self.ports, run, reason),
            )
            advanced = migrate_run(machine, snapshot, meta)
            started_items = [
                i for e in advanced.entries for i in e.entry.planned if i.id in advanced.snapshot.items
            ]
            closed_items = [
                snapshot.items[c] for e in advanced.entries for c in e.entry.closed if c in snapshot.items
            ]
            spends = tuple(spend for i in closed_items for spend in budget_releases(active_run, i))
            spends += tuple(
                spend
                for i in started_items
                for spend in budget_reservations(active_run, i, active_run.config)
            )
            await active_run.append(
                advanced,
                spends=spends,
                definition=(machine.digest, canonical_bytes(definition_data(machine))),
            )
            return active_run.head()
        finally:
            lock.release()

    def resumable(self) -> list[Head]:
        """Returns the runs that would go on if a driver took them."""
        return [
            h
            for h in self.ports.journal.heads(unfinished=True)
            if h.status in UNFINISHED_STATUSES and self.ports.locks.owner(h.run) is None
        ]


# ── run status ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# Reads one run: its summary, why it waits, its report, its timeline, and its ending.


class RunDetails(msgspec.Struct, frozen=True):
    """The summary of a run, who drives it, and the moment of reading."""

    summary: RunSummary
    driven_by: str | None
    at: int


class RunExplanation(msgspec.Struct, frozen=True):
    """What a run waits for and what would move it, the nearest reason first."""

    run: str
    state: str
    status: str
    meaning: str  # of the state
    reasons: tuple[WaitReason, ...]


class RunReport(msgspec.Struct, frozen=True):
    """A run as Markdown, with the reviews that it recorded."""

    run: str
    report: str
    reviews: tuple[RecordedReview, ...]


class RunOutcome(msgspec.Struct, frozen=True, eq=False):
    """A run whose drive has ended, with what its machine says about that."""

    view: RunView
    package: MachinePackage
    ending: RunEnding

    def preview_gate(self, gate: GateView, max_change_lines: int) -> GatePreview:
        """What is shown above the question of a gate."""
        preview = self.package.preview_gate
        return (preview(self.view, gate, max_change_lines) if preview is not None else None) or GatePreview()


def read_run_details(ports: Ports, run: str) -> RunDetails:
    """Everything that a person asks about a run first."""
    summary = read_run_view(ports, run).status
    return RunDetails(summary, ports.locks.owner(run), ports.clock.now())


def explain_run(ports: Ports, run: str, command_prefix: str) -> RunExplanation:
    """Why a run is where it is, with the commands that would move it and what people have overridden."""
    view = read_run_view(ports, run)
    machine, head = view.machine, view.live.head()
    reasons = find_wait_reasons(
        machine,
        view.snapshot,
        view.status,
        pending=len(ports.journal.pending(run)),
        owner=ports.locks.owner(run),
        now=ports.clock.now(),
        command_prefix=command_prefix,
    )
    overrides = (
        WaitReason("override", f"overridden: {override_line(override)}") for override in view.status.overrides
    )
    meaning = machine.states[head.state].meaning
    return RunExplanation(run, head.state, head.status, meaning, (*reasons, *overrides))


def read_run_report(ports: Ports, run: str) -> RunReport:
    """What was asked, decided, changed and proven in a run, and by whom."""
    view = read_run_view(ports, run)
    reviews = find_recorded_reviews(view.entries, view.text)
    return RunReport(run, render_view_report(ports, view), tuple(reviews))


def read_run_timeline(ports: Ports, run: str) -> tuple[TimelineStep, ...]:
    """What happened in a run, in order."""
    view = read_run_view(ports, run)
    return tuple(build_timeline(view.entries, view.machine))


def read_run_outcome(ports: Ports, run: str) -> RunOutcome:
    """What a face shows when a run waits, stops or has its outcome."""
    view = read_run_view(ports, run)
    package = find_package(ports.packages, view.machine)
    ending = package.ending(view) if package.ending is not None else None
    return RunOutcome(view, package, ending or RunEnding())
