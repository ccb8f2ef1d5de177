"""Refuses to drive a run that does not fit its own tape, until a named person says so on that tape.

It is the part of `audit verify` that needs no other run and no anchor, so that it costs little before each drive.
"""

from steersman.errors import StoreBroken, UserError
from steersman.judges.text import visible
from steersman.kernel.canonical import digest_of
from steersman.kernel.record import Advance, Meta, note
from steersman.kernel.replay import rebuilt, typed
from steersman.kernel.snapshot import Snapshot, fields
from steersman.kernel.tape import read
from steersman.ports.journal import Gate
from steersman.runtime import words
from steersman.runtime.audit.refs import refs_reader
from steersman.runtime.audit.verifying import verify_for_driving
from steersman.runtime.gate_rows import gate_row_problem
from steersman.runtime.live import Live, gate_row
from steersman.views.status import DESPITE_VERIFY

HEAVY = 1 << 30  # bytes since the last snapshot: the next commit writes one


async def check_before_driving(live: Live, despite: tuple[str, str] | None = None) -> None:
    """Raises StoreBroken with the first bad record, unless a person has accepted it: `despite` is who and why, now."""
    world, run = live.world, live.run
    on_a_tree = fields(live.snapshot.context).get("base_commit")
    refs = refs_reader(world, run) if on_a_tree else None
    verdict = verify_for_driving(world.journal, world.machines, run, refs)
    if verdict.ok:
        return
    marks = sorted({digest_of(problem)[:16] for problem in verdict.problems})
    if despite is not None:
        await _record_acceptance(live, marks, *despite)
    elif not set(marks) <= _accepted_marks(live):
        raise StoreBroken(
            f"run {run} is not driven, because it does not fit: {verdict.problems[0]}\n"
            f"Look at it with `steersman audit verify {run}`. To go on all the same: "
            f'`steersman resume {run} --despite-verify "why"`'
        )


def _accepted_marks(live: Live) -> set[str]:
    """The problems that people have accepted on tape."""
    sign = DESPITE_VERIFY.encode()
    entries = [read(body) for _, body, _ in live.world.journal.rows(live.run) if sign in body]
    return {mark for e in entries if e.event == DESPITE_VERIFY for mark in e.data["problems"]}


async def _record_acceptance(live: Live, marks: list[str], person: str, reason: str) -> None:
    """Says on tape who goes on and why; state and gate rows are what the entries give from here on."""
    if not visible(reason):
        raise UserError("--despite-verify needs a reason: say why the run may go on")
    from_tape = rebuilt(live.world.journal.rows(live.run), live.run)
    if isinstance(from_tape, Snapshot):
        live.snapshot = typed(live.machine, from_tape)
        live.weigh(HEAVY, 0)
    meta = Meta(live.world.clock.now(), f"person:{person}", why=words.reason(live.world, live.run, reason))
    stored, after = note(live.snapshot, meta, "note", event=DESPITE_VERIFY, data={"problems": marks})
    after.context = live.snapshot.context
    await live.append(Advance((stored,), after), restored=_gate_rows(live))


def _gate_rows(live: Live) -> tuple[Gate, ...]:
    """The rows of open gates that do not say what the tape gives, as it gives them."""
    journal, run = live.world.journal, live.run
    opened = {seq: read(body).at for seq, body, _ in journal.rows(run)}
    asked = {
        i.id: (i, opened[int(i.id.split(":")[-2])]) for i in live.snapshot.items.values() if i.kind == "gate"
    }
    return tuple(
        gate_row(run, item, at)
        for item, at in asked.values()
        if gate_row_problem(item, journal.gate(item.id), run, at)
    )
