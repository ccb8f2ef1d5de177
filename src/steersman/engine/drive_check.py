"""Refuses to drive a run that does not fit its tape, unless a named person accepts that on the tape.

The check is the part of `audit verify` that reads no other run and no anchor, so that it is cheap enough for each drive.
"""

from steersman.engine import inbox
from steersman.engine.active_run import ActiveRun, gate_row
from steersman.engine.audit.refs import make_refs_reader
from steersman.engine.audit.verifying import verify_for_driving
from steersman.engine.inbox import gate_row_problem
from steersman.errors import StoreBroken, UserError
from steersman.judges.text import has_visible_text
from steersman.kernel.canonical import digest_of
from steersman.kernel.record import RunAdvance, StepMeta, record_note
from steersman.kernel.replay import convert_context, rebuild_snapshot
from steersman.kernel.snapshot import Snapshot, runtime_field
from steersman.kernel.tape import read_entry
from steersman.ports.journal import Gate
from steersman.views.run_summary import DRIVEN_DESPITE_VERIFY

FORCE_SNAPSHOT_BYTES = 1 << 30  # bytes since the last snapshot: the next commit writes one


async def check_before_driving(active_run: ActiveRun, despite: tuple[str, str] | None = None) -> None:
    """Raises StoreBroken with the first bad record, unless a person accepts it; `despite` is that person and the reason."""
    ports, run = active_run.world, active_run.run
    base_commit = runtime_field(active_run.snapshot.context, "base_commit")
    refs = make_refs_reader(ports, run) if base_commit else None
    verdict = verify_for_driving(ports.journal, ports.machines, run, refs)
    if verdict.ok:
        return
    marks = sorted({digest_of(problem)[:16] for problem in verdict.problems})
    if despite is not None:
        await _record_acceptance(active_run, marks, *despite)
    elif not set(marks) <= _accepted_marks(active_run):
        raise StoreBroken(
            f"run {run} is not driven, because its tape is not intact: {verdict.problems[0]}\n"
            f"Check it with `steersman audit verify {run}`. To continue anyway: "
            f'`steersman resume {run} --despite-verify "why"`'
        )


def _accepted_marks(active_run: ActiveRun) -> set[str]:
    """Returns the marks of problems that people have accepted on tape."""
    event_bytes = DRIVEN_DESPITE_VERIFY.encode()
    entries = [
        read_entry(body)
        for _, body, _ in active_run.world.journal.rows(active_run.run)
        if event_bytes in body
    ]
    return {mark for e in entries if e.event == DRIVEN_DESPITE_VERIFY for mark in e.data["problems"]}


async def _record_acceptance(active_run: ActiveRun, marks: list[str], person: str, reason: str) -> None:
    """Records who continues the run and why; from here on, state and gate rows are rebuilt from the entries."""
    if not has_visible_text(reason):
        raise UserError("--despite-verify needs a reason: write why the run may continue")
    from_tape = rebuild_snapshot(active_run.world.journal.rows(active_run.run), active_run.run)
    if isinstance(from_tape, Snapshot):
        active_run.snapshot = convert_context(active_run.machine, from_tape)
        active_run.note_stored_sizes(FORCE_SNAPSHOT_BYTES, 0)
    meta = StepMeta(
        active_run.world.clock.now(),
        f"person:{person}",
        why=inbox.sanitize_reason(active_run.world, active_run.run, reason),
    )
    entry, snapshot_after = record_note(
        active_run.snapshot, meta, "note", event=DRIVEN_DESPITE_VERIFY, data={"problems": marks}
    )
    snapshot_after.context = active_run.snapshot.context
    await active_run.append(RunAdvance((entry,), snapshot_after), restored=_differing_gate_rows(active_run))


def _differing_gate_rows(active_run: ActiveRun) -> tuple[Gate, ...]:
    """Returns the rows of open gates that differ from the tape, as the tape gives them."""
    journal, run = active_run.world.journal, active_run.run
    entry_times = {seq: read_entry(body).at for seq, body, _ in journal.rows(run)}
    open_gates = {
        i.id: (i, entry_times[int(i.id.split(":")[-2])])
        for i in active_run.snapshot.items.values()
        if i.kind == "gate"
    }
    return tuple(
        gate_row(run, item, at)
        for item, at in open_gates.values()
        if gate_row_problem(item, journal.gate(item.id), run, at)
    )
