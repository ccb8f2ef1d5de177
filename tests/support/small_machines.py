"""Small machines and short words for the tests of the runtime."""

import asyncio
import time
from typing import Any

import msgspec

from steersman.app.runs import RunService
from steersman.engine.driver import Driver
from steersman.engine.start import StartRequest, start_run
from steersman.kernel.build import machine
from steersman.kernel.definition import (
    ANY,
    STAY,
    ChildEnded,
    Events,
    GateAnswer,
    Guard,
    Origin,
    State,
    TimerDue,
    child,
    do,
    effect,
    event,
    final,
    fold,
    gate,
    naming,
    otherwise,
    row,
    state,
    table,
    timer,
)
from steersman.kernel.replay import BadEntry, verify_chain
from steersman.machines.roundtable import MACHINE as ROUNDTABLE
from steersman.testing import fake_config, fake_ports

P, X = Origin.PERSON, Origin.EFFECT


class ErrandRequest(msgspec.Struct, frozen=True):
    """What a run begins with."""

    task_ref: str = ""


class ErrandFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What an errand brings back."""

    ok: bool = False
    error: str = ""
    detail_ref: str = ""
    weight: Any = None


class ErrandContext(msgspec.Struct, kw_only=True):
    """What a toy knows."""

    task_ref: str = ""
    config_ref: str = ""
    after: int = 1_000
    default: str = ""
    digest: str = "d"
    errands: int = 1
    child: str = "errand"
    options: dict[str, Any] = {}
    done: list[Any] = []
    last: Any = None


def _begin_with(first):
    def begin(request):
        known = {k: v for k, v in request.items() if k in ErrandContext.__struct_fields__}
        return first, ErrandRequest(request.get("task_ref", "")), ErrandContext(**known)

    return begin


ERRAND_OK = Guard("ok", "it went well", lambda _, e: e.ok)


# ── an errand: one effect, well or not; nobody can abort it by a row of its own ──────────────────────────────────────

RUN_ERRAND = effect("run_errand", ErrandFacts, "errand")


class ErrandStates(State):
    out = state("On its way.", do(RUN_ERRAND, lambda c: {"task": c.task_ref}), initial=True)
    home = final("It is done.")
    lost = final("It is not.")


class ErrandEvents(Events):
    errand_given = event("Somebody wants something.", P, ErrandRequest)
    errand_done = event("It was done.", X, ErrandFacts)
    errand_failed = event("It was not.", X, ErrandFacts)
    nudged = event("Somebody is impatient.", P, ErrandFacts)


ERRAND = machine(
    "errand",
    "One effect.",
    states=ErrandStates,
    events=ErrandEvents,
    rows=table(
        row(None, ErrandEvents.errand_given, otherwise, ErrandStates.out, None, "go", "toy"),
        row(ErrandStates.out, ErrandEvents.errand_done, otherwise, ErrandStates.home, None, "back", "toy"),
        row(ErrandStates.out, ErrandEvents.errand_failed, otherwise, ErrandStates.lost, None, "lost", "toy"),
        row(ErrandStates.out, ErrandEvents.nudged, otherwise, STAY, None, "hurry", "toy"),
    ),
    context=ErrandContext,
    namings=(
        naming(RUN_ERRAND, (ERRAND_OK, ErrandEvents.errand_done), (otherwise, ErrandEvents.errand_failed)),
    ),
    folds=(fold(ErrandEvents.errand_done, lambda _c, e: (("set", "last", e.weight),)),),
    successes=("home",),
    begin=_begin_with(ErrandEvents.errand_given),
)

# ── a watch: a timer, then a question with a deadline ────────────────────────────────────────────────────────────────

ALARM = timer("alarm")
ASK = gate("ask")


class WatchStates(State):
    asleep = state("Until the alarm.", do(ALARM, lambda c: {"after_ms": c.after}), initial=True)
    asking = state(
        "Somebody is asked.",
        do(
            ASK,
            lambda c: {
                "digest": c.digest,
                "choices": ["approve", "reject"],
                **({"default": c.default} if c.default else {}),
                "after_ms": c.after,
            },
        ),
    )
    granted = final("Yes.")
    declined = final("No.")


class WatchEvents(Events):
    began = event("A watch begins.", P, ErrandRequest)
    rang = event("The alarm rang.", Origin.TIMER, TimerDue)
    agreed = event("Yes.", Origin.GATE, GateAnswer)
    refused = event("No, or nothing.", Origin.GATE, GateAnswer)
    changed = event("Something else is to be asked about.", P, ErrandRequest)


YES = Guard("yes", "a person says yes", lambda _, e: e.choice == "approve" and not e.timed_out)
WATCH = machine(
    "watch",
    "A timer and a gate.",
    states=WatchStates,
    events=WatchEvents,
    rows=table(
        row(None, WatchEvents.began, otherwise, WatchStates.asleep, None, "begin", "toy"),
        row(WatchStates.asleep, WatchEvents.rang, otherwise, WatchStates.asking, None, "wake", "toy"),
        row(WatchStates.asking, WatchEvents.agreed, otherwise, WatchStates.granted, None, "yes", "toy"),
        row(WatchStates.asking, WatchEvents.refused, otherwise, WatchStates.declined, None, "no", "toy"),
        row(WatchStates.asking, WatchEvents.changed, otherwise, WatchStates.asking, None, "again", "toy"),
    ),
    context=ErrandContext,
    namings=(
        naming(ALARM, (otherwise, WatchEvents.rang)),
        naming(ASK, (YES, WatchEvents.agreed), (otherwise, WatchEvents.refused)),
    ),
    folds=(fold(WatchEvents.changed, lambda _c, e: (("set", "digest", e.task_ref),)),),
    successes=("granted",),
    begin=_begin_with(WatchEvents.began),
)

# ── a captain: as many children as wanted, each of another machine ───────────────────────────────────────────────────

MATE = child("mate")
SUCCESS = Guard("success", "the child succeeded", lambda _, e: e.success)


def _mates(c):
    return [(str(n), {"machine": c.child, "task_ref": c.task_ref, **c.options}) for n in range(c.errands)]


class CaptainStates(State):
    commanding = state("Others work.", do(MATE, each=_mates), initial=True)
    satisfied = final("All came back well.")
    angry = final("One did not.")
    stopped = final("Called off.")


class CaptainEvents(Events):
    ordered = event("A captain begins.", P, ErrandRequest)
    mate_back = event("One came back.", Origin.CHILD, ChildEnded)
    mate_lost = event("One did not.", Origin.CHILD, ChildEnded)
    called_off = event("A person stops it.", P, GateAnswer)
    all_back = event("All are back.", Origin.MACHINE)


def _captain(name, abort):
    from steersman.kernel.definition import computed

    all_done = Guard("all_done", "all are back", lambda c, _: len(c.done) >= c.errands)
    return machine(
        name,
        "Children.",
        states=CaptainStates,
        events=CaptainEvents,
        rows=table(
            row(None, CaptainEvents.ordered, otherwise, CaptainStates.commanding, None, "begin", "toy"),
            row(CaptainStates.commanding, CaptainEvents.mate_back, otherwise, STAY, None, "one", "toy"),
            row(
                CaptainStates.commanding, CaptainEvents.all_back, otherwise, CaptainStates.satisfied, None,
                "all", "toy",
            ),
            row(
                CaptainStates.commanding, CaptainEvents.mate_lost, otherwise, CaptainStates.angry, None,
                "bad", "toy",
            ),
            row(ANY, CaptainEvents.called_off, otherwise, CaptainStates.stopped, None, "stop", "toy"),
        ),
        context=ErrandContext,
        namings=(naming(MATE, (SUCCESS, CaptainEvents.mate_back), (otherwise, CaptainEvents.mate_lost)),),
        computes=(computed(CaptainStates.commanding, (all_done, CaptainEvents.all_back)),),
        folds=(fold(CaptainEvents.mate_back, lambda c, e: (("set", "done", [*c.done, e.run]),)),),
        abort=CaptainEvents.called_off if abort else None,
        successes=("satisfied",),
        begin=_begin_with(CaptainEvents.ordered),
    )  # fmt: skip


CAPTAIN = _captain("captain", abort=True)
ADMIRAL = _captain("admiral", abort=False)
MACHINES = {m.name: m for m in (ROUNDTABLE, ERRAND, WATCH, CAPTAIN, ADMIRAL)}

# ── a crowd: as many effects as wanted; the first that comes back is enough ───────────────────────────────────────────


def fan_out_machine(name, *, outlives):
    """A machine whose effects go on, or not, when their state is left."""
    part = effect("part", ErrandFacts, "errand", outlives=outlives)

    class States(State):
        waiting = state(
            "Any will do.",
            do(part, each=lambda c: [(str(n), {"n": n}) for n in range(c.errands)]),
            initial=True,
        )
        resting_ = state("One came.", do(ASK, lambda _: {"digest": "d", "choices": ["approve", "reject"]}))
        over = final("It is over.")
        dropped = final("Nobody wants it.")

    class Called(Events):
        called = event("A crowd begins.", P, ErrandRequest)
        came = event("One came.", X, ErrandFacts)
        failed = event("One did not.", X, ErrandFacts)
        again = event("Once more.", P, ErrandRequest)
        agreed = event("Yes.", Origin.GATE, GateAnswer)
        refused = event("No.", Origin.GATE, GateAnswer)

    return machine(
        name,
        "Many effects.",
        states=States,
        events=Called,
        rows=table(
            row(None, Called.called, otherwise, States.waiting, None, "begin", "toy"),
            row(States.waiting, Called.came, otherwise, States.resting_, None, "enough", "toy"),
            row(States.waiting, Called.failed, otherwise, STAY, None, "go on", "toy"),
            row(States.waiting, Called.again, otherwise, States.waiting, None, "anew", "toy"),
            row(States.resting_, Called.again, otherwise, States.waiting, None, "anew", "toy"),
            row(States.resting_, Called.agreed, otherwise, States.over, None, "yes", "toy"),
            row(States.resting_, Called.refused, otherwise, States.dropped, None, "no", "toy"),
        ),
        context=ErrandContext,
        namings=(
            naming(part, (ERRAND_OK, Called.came), (otherwise, Called.failed)),
            naming(ASK, (YES, Called.agreed), (otherwise, Called.refused)),
        ),
        folds=(fold(Called.came, lambda c, e: (("set", "done", [*c.done, e.weight]),)),),
        successes=("over",),
        begin=_begin_with(Called.called),
    )


OUTLIVING_CROWD, STOPPED_CROWD = (
    fan_out_machine("loyal", outlives=True),
    fan_out_machine("fickle", outlives=False),
)
MACHINES |= {m.name: m for m in (OUTLIVING_CROWD, STOPPED_CROWD)}

# ── short words ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def succeed(_call):
    """A performer that brings back good facts."""
    return ErrandFacts(ok=True)


def fake_ports_with_machines(tmp_path, errand=succeed, **instead):
    """Fake ports with the small machines in them."""
    return fake_ports(tmp_path, MACHINES, performers={"errand": errand}, **instead)


async def begin_run(ports, machine="errand", config=None, **options):
    """A run that was started and let go: its id."""
    live, lock = await start_run(
        ports, StartRequest(machine, "Fetch it", "ann", config or fake_config(), options)
    )
    lock.release()
    return live.run


async def drive_run(ports, run, **more):
    """The run's head after somebody has driven it."""
    return await Driver(ports, **more).drive(run)


def play_run(ports, machine="errand", config=None, **options):
    """A run from its start until it is parked or ended: its head.

    The clock stands still meanwhile, so that the driver waits for no timer; move it and call `drive_run`.
    """

    async def play():
        live, lock = await start_run(
            ports, StartRequest(machine, "Fetch it", "ann", config or fake_config(), options)
        )
        return await Driver(ports, patience_ms=0).drive(live.run, held=lock, live=live)

    return asyncio.run(play())


def read_run_tape(ports, run):
    """A run's entries, the chain checked."""
    links = list(verify_chain(ports.journal.rows(run), run))
    assert not any(isinstance(link, BadEntry) for link in links), links[-1]
    return [entry for entry, _ in links]


def entry_kinds(ports, run):
    """The kinds of a run's entries, in order."""
    return [e.kind for e in read_run_tape(ports, run)]


PATIENCE_SECONDS = 60  # seconds; how long this machine may be busy with something else


async def wait_until(condition):
    """Waits for something to become true."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.005)


def settle_post(ports, run, posted):
    """The verdict on something posted, after driving."""
    return asyncio.run(RunService(ports).settle(run, posted))[0]


def budget_rows(ports, run):
    """A run's figures: name → (spent, reserved, limit)."""
    return {row.name: (row.spent, row.reserved, row.limit) for row in ports.journal.budget(run)}
