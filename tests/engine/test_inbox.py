"""What comes in from outside: in order, once, refused where it must be; gates and their deadlines."""

import asyncio

import pytest
from tests.support.small_machines import (
    PATIENCE_SECONDS,
    ErrandFacts,
    begin_run,
    budget_rows,
    drive_run,
    entry_kinds,
    fake_ports_with_machines,
    play_run,
    read_run_tape,
    settle_post,
    wait_until,
)

from steersman.app.runs import RunService
from steersman.engine.active_run import load_active_run
from steersman.engine.audit import verify_run
from steersman.engine.driver import Driver, RunBusy
from steersman.engine.run_writer import MAX_TAPED_REFUSALS
from steersman.errors import ContractError, UserError


async def waits(_call):
    await asyncio.sleep(60)


def stopped(ports, run):
    """Drives a run until nothing is in its inbox, and lets it go."""

    async def play():
        driver, before = Driver(ports), ports.journal.head(run).epoch
        drive = asyncio.create_task(driver.drive(run))
        await wait_until(lambda: ports.journal.head(run).epoch > before and not ports.journal.pending(run))
        driver.stop()
        return await drive

    return asyncio.run(play())


# ── events of people ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_event_is_taken(tmp_path):
    """Its verdict says where it is on tape; the entry says who and why."""
    ports = fake_ports_with_machines(tmp_path, waits)
    run = asyncio.run(begin_run(ports))
    posted = RunService(ports).send(run, "nudged", {"ok": True}, "ann", "too slow")
    stopped(ports, run)
    entry = next(e for e in read_run_tape(ports, run) if e.event == "nudged")
    assert ports.journal.verdict(posted) == {"result": "taken", "seq": entry.seq, "state": "out"}
    assert (entry.actor, entry.why, entry.cause) == ("person:ann", "too slow", f"inbox:{posted}")
    assert ports.journal.pending(run) == []


@pytest.mark.parametrize("reason", ["", "  ", "\u200b\u3164"], ids=ascii)
def test_an_override_says_why(tmp_path, reason):
    """Words that nobody can see are no reason."""
    ports = fake_ports_with_machines(tmp_path, waits)
    run = asyncio.run(begin_run(ports))
    posted = RunService(ports)._post(run, "override", {"to": "out", "reason": reason, "person": "ann"})
    stopped(ports, run)
    assert ports.journal.verdict(posted)["result"] == "refused"
    assert (
        next(e for e in read_run_tape(ports, run) if e.kind == "refused").why == "an override needs a reason"
    )


@pytest.mark.parametrize(
    ("event", "data", "words"),
    [
        ("nonsense", {}, "has no event 'nonsense'"),
        ("errand_done", {"ok": True}, "comes from an effect, never from a person"),
        ("nudged", {"ok": "very"}, "does not fit"),
        ("nudged", {"ok": True, "weight": 1.5}, "float"),
        ("nudged", {"ok": True, "weight": 2**60}, "beyond 2^53"),
        ("errand_given", {}, "no row accepts errand_given in out"),
    ],
)
def test_what_may_not_be_is_refused(tmp_path, event, data, words):
    """On tape, with what is legal; told to whoever sent it; nothing else happens."""
    ports = fake_ports_with_machines(tmp_path, waits)
    run = asyncio.run(begin_run(ports))
    posted = RunService(ports).send(run, event, data, "ann")
    head = stopped(ports, run)
    verdict = ports.journal.verdict(posted)
    assert (verdict["result"], head.state) == ("refused", "out")
    assert words in verdict["why"]
    entry = read_run_tape(ports, run)[verdict["seq"] - 1]
    assert (entry.kind, entry.why) == ("refused", verdict["why"])
    assert "nudged" in verdict["legal"]


def test_events_are_taken_in_order(tmp_path):
    """As they were posted, each once."""
    ports = fake_ports_with_machines(tmp_path, waits)
    run = asyncio.run(begin_run(ports))
    bridge = RunService(ports)
    posted = [bridge.send(run, "nudged", {"detail_ref": str(n)}, "ann") for n in range(5)]
    stopped(ports, run)
    stopped(ports, run)
    told = [e.data["detail_ref"] for e in read_run_tape(ports, run) if e.event == "nudged"]
    assert told == ["0", "1", "2", "3", "4"]
    assert [ports.journal.verdict(p)["result"] for p in posted] == ["taken"] * 5


def test_refusals_beyond_a_thousand_are_counted(tmp_path):
    """Not written, but told and counted, so that nobody fills the disk with nonsense."""
    ports = fake_ports_with_machines(tmp_path, waits)
    run = asyncio.run(begin_run(ports))
    bridge = RunService(ports)
    posted = [bridge.send(run, "nonsense", {}, "ann") for _ in range(MAX_TAPED_REFUSALS + 25)]
    stopped(ports, run)
    verdicts = [ports.journal.verdict(p) for p in posted]
    assert all(v["result"] == "refused" for v in verdicts)
    assert entry_kinds(ports, run).count("refused") == MAX_TAPED_REFUSALS
    assert budget_rows(ports, run)["refused"] == (25, 0, None)
    assert verdicts[-1].get("seq") is None
    assert load_active_run(ports, run).snapshot.seq == ports.journal.head(run).seq


def test_what_a_newer_steersman_posted_is_refused(tmp_path):
    """It does not stand in the way of what came after it."""
    ports = fake_ports_with_machines(tmp_path, waits)
    run = asyncio.run(begin_run(ports))
    strange = ports.journal.post(run, "teleport", {"to": "x"}, 0)
    posted = RunService(ports).abort(run, "ann")
    stopped(ports, run)
    assert (ports.journal.verdict(strange)["result"], ports.journal.verdict(posted)["result"]) == (
        "refused",
        "taken",
    )


def test_a_command_waits_for_its_verdict(tmp_path):
    """It drives the run itself when nobody does, and says so."""
    ports = fake_ports_with_machines(tmp_path)
    run = asyncio.run(begin_run(ports))
    posted = RunService(ports).send(run, "nudged", {}, "ann")
    verdict, by = asyncio.run(RunService(ports).settle(run, posted))
    assert (verdict["result"], by) == ("taken", "this command")


def test_a_live_driver_takes_it(tmp_path):
    """Where somebody drives, the command only waits, and says who it was."""
    ports = fake_ports_with_machines(tmp_path, waits)

    async def play():
        run = await begin_run(ports)
        driver = Driver(ports)
        drive = asyncio.create_task(driver.drive(run))
        await wait_until(lambda: ports.journal.head(run).epoch > 1)
        verdict = await RunService(ports).settle(run, RunService(ports).send(run, "nudged", {}, "ann"))
        driver.stop()
        await drive
        return verdict

    verdict, by = asyncio.run(play())
    assert (verdict["result"], by) == ("taken", "driver")


# ── gates ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def asking(ports, **options):
    """A watch that has woken up and asks: its run and gate."""

    async def play():
        run = await begin_run(ports, "watch", **options)
        ports.clock.forward(1_000)
        return await drive_run(ports, run, patience_ms=0)

    head = asyncio.run(play())
    assert head.state == "asking"
    return head.run, RunService(ports).gate(head.run)


def test_a_gate_is_answered_once(tmp_path):
    """The first answer is taken; whoever comes second is told who was first."""
    ports = fake_ports_with_machines(tmp_path)
    run, gate = asking(ports)
    bridge = RunService(ports)
    posted = bridge.answer(gate, "approve", "ann", reason="fine")
    with pytest.raises(RunBusy, match=f"gate {gate.id} is answered already: ann chose approve"):
        bridge.answer(gate, "reject", "bob")
    assert settle_post(ports, run, posted)["result"] == "taken"
    with pytest.raises(RunBusy, match="it is closed"):
        bridge.answer(gate, "reject", "bob")
    entry = read_run_tape(ports, run)[-2]
    assert (entry.event, entry.actor, entry.why) == ("agreed", "person:ann", "fine")
    assert ports.journal.gates() == []


def test_an_answer_that_is_not_offered(tmp_path):
    """Only the gate's own choices, about the very thing it shows."""
    ports = fake_ports_with_machines(tmp_path)
    _, gate = asking(ports)
    with pytest.raises(UserError, match=r"has no choice 'maybe'. Choose one of approve, reject"):
        RunService(ports).answer(gate, "maybe", "ann")
    with pytest.raises(ContractError, match="is now about d, not e"):
        RunService(ports).answer(gate, "approve", "ann", digest="e")


def test_a_deadline_gives_the_default(tmp_path):
    """Which the tape shows as given by nobody, in time."""
    ports = fake_ports_with_machines(tmp_path)
    run, gate = asking(ports, default="reject")
    assert gate.due == ports.clock.now() + 1_000
    assert asyncio.run(drive_run(ports, run, patience_ms=0)).state == "asking"
    ports.clock.forward(1_000)
    head = asyncio.run(drive_run(ports, run))
    entry = read_run_tape(ports, run)[-2]
    assert (head.state, entry.data["timed_out"], entry.data.get("person", "")) == ("declined", True, "")


def test_an_answer_after_the_deadline_is_none(tmp_path):
    """Also where nobody was there when the time ran out: the default holds, and whoever comes late is told."""
    ports = fake_ports_with_machines(tmp_path)
    run, gate = asking(ports, default="reject")
    ports.clock.forward(1_000)
    with pytest.raises(RunBusy, match="its time is over, and reject holds"):
        RunService(ports).answer(gate, "approve", "ann")
    head = asyncio.run(drive_run(ports, run))
    assert (head.state, read_run_tape(ports, run)[-2].data["timed_out"]) == ("declined", True)


@pytest.mark.parametrize("default", ["", "approve"])
def test_no_answer_is_never_an_approval(tmp_path, default):
    """A gate without a default, or with one that would approve, waits for a person, long past its deadline."""
    ports = fake_ports_with_machines(tmp_path)
    run, gate = asking(ports, default=default)
    ports.clock.forward(10**9)

    async def play():
        return await asyncio.wait_for(drive_run(ports, run), PATIENCE_SECONDS)

    head = asyncio.run(play())
    assert (head.state, head.status) == ("asking", "waiting for you")
    posted = RunService(ports).answer(gate, "approve", "ann")
    assert settle_post(ports, run, posted)["state"] == "granted"


def test_an_answer_in_time_beats_the_deadline(tmp_path):
    """Answered before anybody looked at the clock: the answer counts."""
    ports = fake_ports_with_machines(tmp_path)
    run, gate = asking(ports, default="reject")
    posted = RunService(ports).answer(gate, "approve", "ann")
    ports.clock.forward(10_000)
    assert settle_post(ports, run, posted)["state"] == "granted"


def test_a_gate_about_something_else_is_void(tmp_path):
    """When what it asked about has changed it is closed, a new one asks, and the old answer is refused."""
    ports = fake_ports_with_machines(tmp_path)
    run, old = asking(ports)
    posted = RunService(ports).send(run, "changed", {"task_ref": "e"}, "ann")
    assert settle_post(ports, run, posted)["result"] == "taken"
    with pytest.raises(RunBusy, match="it is closed"):
        RunService(ports).answer(old, "approve", "ann")
    new = RunService(ports).gate(run)
    assert (new.digest, new.id != old.id) == ("e", True)


def test_an_answer_given_first_counts_first(tmp_path):
    """A step that would void a gate already answered takes the answer first: nobody's answer is lost to a race."""
    ports = fake_ports_with_machines(tmp_path)
    run, gate = asking(ports)
    bridge = RunService(ports)
    first = bridge.send(run, "changed", {"task_ref": "e"}, "bob")
    second = bridge.answer(gate, "approve", "ann")
    assert settle_post(ports, run, second) == {
        "result": "taken", "seq": ports.journal.head(run).seq - 2, "state": "granted",
    }  # fmt: skip
    assert ports.journal.verdict(first)["result"] == "refused"
    assert ports.journal.head(run).state == "granted"


@pytest.mark.parametrize(
    ("gate", "digest", "why"),
    [("9:1", "", "void"), ("", "", "its row has none"), ("", "old", "its row has none")],
)
def test_an_answer_that_its_gate_does_not_have_is_refused(tmp_path, gate, digest, why):
    """An answer in the inbox whose gate the tape does not know, or whose gate's row was never answered, moves nothing;
    `audit verify` says the same of it, and the run goes on."""
    ports = fake_ports_with_machines(tmp_path)
    run, asked = asking(ports)
    said = {
        "gate": f"{run}:{gate}" if gate else asked.id,
        "choice": "approve",
        "digest": digest or asked.digest,
    }
    posted = ports.journal.post(run, "answer", said, 0)
    before = verify_run(ports.journal, ports.machines, run)
    assert "refused" in before.waiting[0] if gate else why in before.problems[0]
    verdict = settle_post(ports, run, posted)
    assert (verdict["result"], ports.journal.head(run).state) == ("refused", "asking")
    assert why in verdict["why"]
    assert verify_run(ports.journal, ports.machines, run).ok
    assert settle_post(ports, run, RunService(ports).answer(asked, "approve", "ann"))["state"] == "granted"


# ── timers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_timer_parks_a_run_that_would_wait_too_long(tmp_path):
    """Its head says until when; nobody sits there; when the time has come whoever drives it goes on."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports, "watch", after=10**6)
    assert (head.status, head.due) == ("waiting until", ports.clock.now() + 10**6)
    assert ports.journal.due(ports.clock.now()) == []
    ports.clock.forward(10**6)
    assert [h.run for h in ports.journal.due(ports.clock.now())] == [head.run]
    again = asyncio.run(drive_run(ports, head.run, patience_ms=0))
    assert (again.state, again.status) == ("asking", "waiting for you")
    rang = next(e for e in read_run_tape(ports, head.run) if e.event == "rang")
    assert rang.data == {"due": head.due}


def test_a_short_wait_is_sat_out(tmp_path):
    """A timer within the driver's patience is waited for."""
    ports = fake_ports_with_machines(tmp_path)

    async def play():
        run = await begin_run(ports, "watch", after=500)
        drive = asyncio.create_task(drive_run(ports, run, patience_ms=1_000))
        await wait_until(lambda: ports.journal.head(run).epoch > 1)
        assert not drive.done()
        ports.clock.forward(500)
        return await asyncio.wait_for(drive, PATIENCE_SECONDS)

    assert asyncio.run(play()).state == "asking"


def test_time_never_runs_backwards_on_tape(tmp_path):
    """A clock that is set back does not make an entry older than the one before it."""
    ports = fake_ports_with_machines(tmp_path)
    run = asyncio.run(begin_run(ports))
    ports.clock.forward(-50_000)
    asyncio.run(drive_run(ports, run))
    at = [e.at for e in read_run_tape(ports, run)]
    assert at == sorted(at)


def test_nothing_is_left_when_a_run_has_ended(tmp_path):
    """An ended run takes no more events, and says so."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports)
    posted = RunService(ports).send(head.run, "nudged", {}, "ann")
    assert settle_post(ports, head.run, posted)["result"] == "refused"
    assert (ports.journal.head(head.run).state, ErrandFacts().ok) == ("home", False)
