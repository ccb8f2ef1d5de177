"""steersman itself: the same table as machines of its own, with the chain, guards, ops and heads on.

Two forms. `PLAIN` does what the peers do: events are routed and folded, nothing is started; it is measured where the
peers are compared (memory). `WORKING` also has the work of states: build, review and test plan an effect, whose facts
come back and are named; it is measured wherever something is written (durable, concurrent, growth, many, parked).
Every step is recorded the way the runtime records it (`Live.append`).
"""

import asyncio
import os
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import msgspec
from workload import EMPTY, PARKED_AFTER, SCRIPT, check_end, endless, note

from steersman.kernel.build import machine
from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.definition import (
    Cap,
    EmptyEventData,
    Events,
    Guard,
    Origin,
    State,
    computed,
    do,
    effect,
    event,
    fold,
    naming,
    otherwise,
    resting,
    room,
    row,
    state,
    table,
)
from steersman.kernel.machine import Machine, definition_data
from steersman.kernel.ops import Log
from steersman.kernel.record import StepMeta, advance_run, create_run_entries
from steersman.kernel.step import EventOccurrence, name_facts


class Received(msgspec.Struct, frozen=True):
    task: str
    mode: str
    max_iterations: int
    tree: str


class Confirmed(msgspec.Struct, frozen=True):
    by: str
    contract: str


class Built(msgspec.Struct, frozen=True):
    tree: str
    tokens: int


class Reviewed(msgspec.Struct, frozen=True, omit_defaults=True):
    decision: str
    findings: list[dict[str, Any]]
    tokens: int
    must_fix: list[str] = []


class Checked(msgspec.Struct, frozen=True):
    command: str
    exit: int
    stderr: str


class Context(msgspec.Struct, kw_only=True):
    task: str = ""
    mode: str = ""
    max_iterations: int = 5
    contract: str = ""
    round: int = 0
    tree: str = ""
    findings: list[dict[str, Any]] = []
    must_fix: list[str] = []
    last_check: dict[str, Any] = {}
    tokens: int = 0
    outcome: str = ""
    growing: bool = False
    history: Log = Log()


CODE = effect("code", Built, "agent")
REVIEW = effect("review", Reviewed, "agent")
CHECK = effect("check", Checked, "checks")


def _input(c: Context) -> dict[str, Any]:
    return {"tree": c.tree, "round": c.round}


def _person(meaning: str, carries: type[msgspec.Struct] = EmptyEventData) -> Any:
    return event(meaning, Origin.PERSON, carries)


def _effect(meaning: str, carries: type[msgspec.Struct]) -> Any:
    return event(meaning, Origin.EFFECT, carries)


class PlainStates(State):
    intake = state("A task is here.", initial=True)
    plan = state("The loop begins.")
    build = state("The coder works.")
    review = state("The reviewer works.")
    test = state("The checks run.")
    iterate = state("A round did not suffice.")
    finalize = resting("The run has its outcome.")


class PlainEvents(Events):
    task_received = _person("A task.", Received)
    implementation_confirmed = _person("A person confirms.", Confirmed)
    start_coder = _person("A round begins.")
    start_reviewer = _person("The coder is done.", Built)
    review_changes_requested = _person("Changes are wanted.", Reviewed)
    review_approved = _person("The reviewer approves.", Reviewed)
    tests_failed = _person("A check failed.", Checked)
    tests_passed = _person("All checks passed.", Checked)


class WorkingStates(State):
    intake = state("A task is here.", initial=True)
    plan = state("The loop begins.")
    build = state("The coder works.", do(CODE, _input))
    review = state("The reviewer works.", do(REVIEW, _input))
    test = state("The checks run.", do(CHECK, _input))
    iterate = state("A round did not suffice.")
    finalize = resting("The run has its outcome.")


class WorkingEvents(Events):
    task_received = _person("A task.", Received)
    implementation_confirmed = _person("A person confirms.", Confirmed)
    start_coder = event("A round begins.", Origin.MACHINE)
    start_reviewer = _effect("The coder is done.", Built)
    review_changes_requested = _effect("Changes are wanted.", Reviewed)
    review_approved = _effect("The reviewer approves.", Reviewed)
    tests_failed = _effect("A check failed.", Checked)
    tests_passed = _effect("All checks passed.", Checked)


ROUNDS = Cap("rounds", 10**9)
REMAIN = room("remain", "iterations remaining", ROUNDS)
APPROVES = Guard("approves", "the reviewer approves", lambda _, e: e.decision == "approve")
PASSED = Guard("passed", "all commands pass", lambda _, e: e.exit == 0)


def _table(s: Any, e: Any) -> Any:
    return table(
        row(None, e.task_received, otherwise, s.intake, None, "new task", "§2"),
        row(s.intake, e.implementation_confirmed, otherwise, s.plan, None, "start the loop", "§2"),
        row(s.plan, e.start_coder, otherwise, s.build, ROUNDS, "run the coder", "§2"),
        row(s.build, e.start_reviewer, otherwise, s.review, None, "run the reviewer", "§2"),
        row(s.review, e.review_changes_requested, otherwise, s.iterate, None, "set must-fix", "§2"),
        row(s.review, e.review_approved, otherwise, s.test, None, "run the tester", "§2"),
        row(s.test, e.tests_failed, otherwise, s.iterate, None, "set must-fix", "§2"),
        row(
            s.test,
            e.tests_passed,
            otherwise,
            s.finalize,
            None,
            "approved",
            "§2",
            sets={"outcome": "approved"},
        ),
        row(s.iterate, e.start_coder, otherwise, s.build, ROUNDS, "next round", "§2"),
    )


def _grown(c: Context, ops: tuple) -> tuple:
    return (*ops, ("append", "history", note(c.history.count + 1))) if c.growing else ops


def _confirmed(c: Context, _e: Confirmed) -> tuple:
    return _grown(c, (("take", "contract", "contract"),))


def _started(c: Context, _e: Any) -> tuple:
    return _grown(c, (("add", "round", 1),))


def _built(c: Context, e: Built) -> tuple:
    return _grown(c, (("set", "tree", e.tree), ("add", "tokens", e.tokens)))


def _reviewed(c: Context, e: Reviewed) -> tuple:
    return _grown(
        c,
        (
            ("take", "findings", "findings"),
            ("set", "must_fix", []) if not e.must_fix else ("take", "must_fix", "must_fix"),
            ("add", "tokens", e.tokens),
        ),
    )


def _failed(c: Context, e: Checked) -> tuple:
    told = {"command": e.command, "exit": e.exit, "stderr": e.stderr}
    return _grown(c, (("set", "last_check", told), ("set", "must_fix", [f"{e.command}: {e.stderr}"])))


def _passed(c: Context, e: Checked) -> tuple:
    told = {"command": e.command, "exit": e.exit, "stderr": e.stderr}
    return _grown(c, (("set", "last_check", told), ("set", "must_fix", [])))


def _machine(name: str, s: Any, e: Any, **more: Any) -> Machine:
    return machine(
        name,
        "The implementation loop of the roundtable.",
        states=s,
        events=e,
        rows=_table(s, e),
        context=Context,
        folds=(
            fold(e.implementation_confirmed, _confirmed),
            fold(e.start_coder, _started),
            fold(e.start_reviewer, _built),
            fold(e.review_changes_requested, _reviewed),
            fold(e.review_approved, _reviewed),
            fold(e.tests_failed, _failed),
            fold(e.tests_passed, _passed),
        ),
        memory={"outcome": ("", "approved")},
        successes=("approved",),
        **more,
    )


PLAIN = _machine("plain", PlainStates, PlainEvents)
WORKING = _machine(
    "working",
    WorkingStates,
    WorkingEvents,
    namings=(
        naming(CODE, (otherwise, WorkingEvents.start_reviewer)),
        naming(
            REVIEW,
            (APPROVES, WorkingEvents.review_approved),
            (otherwise, WorkingEvents.review_changes_requested),
        ),
        naming(CHECK, (PASSED, WorkingEvents.tests_passed), (otherwise, WorkingEvents.tests_failed)),
    ),
    computes=(
        computed(WorkingStates.plan, (REMAIN, WorkingEvents.start_coder)),
        computed(WorkingStates.iterate, (REMAIN, WorkingEvents.start_coder)),
    ),
)
DEFINITION = (WORKING.digest, canonical_bytes(definition_data(WORKING)))
# What comes from outside, decoded once: agents hand the runtime typed facts.
GIVEN = [(name, msgspec.convert(payload, PLAIN.events[name].carries)) for name, payload in SCRIPT]
EVENTS = [EventOccurrence(PLAIN.events[name], data, Origin.PERSON) for name, data in GIVEN]


def _begun(m: Machine, run: str, at: int, growing: bool = False):
    received = GIVEN[0][1]
    context = Context(
        task=received.task,
        mode=received.mode,
        max_iterations=received.max_iterations,
        tree=received.tree,
        growing=growing,
    )
    return create_run_entries(
        m,
        run,
        EventOccurrence(m.events["task_received"], received, Origin.PERSON),
        context,
        StepMeta(at),
        title="bench",
    )


def _next(snapshot: Any, name: str, data: Any, at: int):
    """The step for one event of the script; None for one the machine has computed already."""
    known = WORKING.events[name]
    if known.origin is Origin.MACHINE:
        return None
    if known.origin is Origin.PERSON:
        return advance_run(WORKING, snapshot, EventOccurrence(known, data, Origin.PERSON), StepMeta(at))
    item = next(iter(snapshot.items.values()))
    happened = name_facts(WORKING, snapshot, item.job, data)
    return advance_run(WORKING, snapshot, happened, StepMeta(at, cause=item.id, closes=(item.id,), took=1))


def _checked(snapshot: Any) -> int:
    context = {name: getattr(snapshot.context, name) for name in EMPTY}
    return check_end(snapshot.state, context)


def _one_in_memory(run: str) -> int:
    made = _begun(PLAIN, run, 1)
    tape, snapshot = [*made.entries], made.snapshot
    for happened in EVENTS[1:]:
        step = advance_run(PLAIN, snapshot, happened, StepMeta(2))
        tape += step.entries
        snapshot = step.snapshot
    return _checked(snapshot)


def _live(journal: Any, run: str, growing: bool = False) -> Any:
    from steersman.engine.active_run import ActiveRun

    made = _begun(WORKING, run, 1_700_000_000_000, growing)
    live = ActiveRun(
        SimpleNamespace(journal=journal), WORKING, made.snapshot, "bench", 1_700_000_000_000, None
    )
    live.made = made
    return live


async def _one(journal: Any, run: str, together: bool, steps: Any = None) -> int:
    live = _live(journal, run)
    live.together = together
    await live.append(live.made, definition=DEFINITION)
    for name, data in GIVEN[1:steps]:
        step = _next(live.snapshot, name, data, 1_700_000_000_001)
        if step is not None:
            await live.append(step)
    return _checked(live.snapshot) if steps is None else 0


async def _many(journal: Any, names: Any, at_once: int, steps: Any = None) -> int:
    left = iter(names)

    async def lane() -> int:
        return sum([await _one(journal, run, True, steps) for run in left])

    return sum(await asyncio.gather(*(lane() for _ in range(at_once))))


class Growing:
    """One durable run that never ends."""

    def __init__(self, journal: Any, growing: bool) -> None:
        self._live = _live(journal, "endless", growing)
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._live.append(self._live.made, definition=DEFINITION))
        self._script = islice(endless(), 1, None)
        self._given = {
            (name, id(payload)): msgspec.convert(payload, WORKING.events[name].carries)
            for name, payload in SCRIPT
        }
        self._done = 1

    def go(self, transitions: int) -> int:
        return self._loop.run_until_complete(self._go(transitions))

    async def _go(self, transitions: int) -> int:
        before = self._live.snapshot.seq
        for name, payload in islice(self._script, transitions):
            step = _next(self._live.snapshot, name, self._given[name, id(payload)], 1_700_000_000_001)
            if step is not None:
                await self._live.append(step)
        done = self._live.snapshot.seq - before
        return done or transitions


class Steersman:
    name = "steersman"
    limits: ClassVar[dict[str, int]] = {}
    import_line = "import click, apsw, msgspec"

    def command(self, folder: Path) -> list[str]:
        code = "import os, sys; os.environ['XDG_STATE_HOME'] = sys.argv.pop(1); from steersman.wiring import run_steersman; run_steersman()"
        return ["-c", code, str(folder / "state"), "--project", str(folder), "runs"]

    @contextmanager
    def in_memory(self):
        yield lambda runs: sum(_one_in_memory(f"r{n}") for n in range(runs))

    @contextmanager
    def durable(self, folder: Path):
        with _opened(folder) as journal:
            names = (f"r{n}" for n in range(10**9))

            async def go(runs: int) -> int:
                return sum([await _one(journal, run, False) for run in islice(names, runs)])

            yield lambda runs: asyncio.run(go(runs))

    @contextmanager
    def concurrent(self, folder: Path, at_once: int):
        with _opened(folder) as journal:
            names = (f"r{n}" for n in range(10**9))
            yield lambda runs: asyncio.run(_many(journal, islice(names, runs), at_once))

    @contextmanager
    def growth(self, folder: Path, growing: bool):
        with _opened(folder) as journal:
            yield Growing(journal, growing).go

    def fill(self, folder: Path, runs: int, unfinished: int) -> None:
        with _opened(folder) as journal:
            ids = [f"{n:06}-bench" for n in range(runs)]
            asyncio.run(_many(journal, ids[: runs - unfinished], 64))
            asyncio.run(_many(journal, ids[runs - unfinished :], 64, PARKED_AFTER))

    @contextmanager
    def reader(self, folder: Path):
        with _opened(folder) as journal:
            world = SimpleNamespace(journal=journal, machines={"working": WORKING})
            yield _Reader(world)

    @contextmanager
    def waiting(self, folder: Path):
        from steersman.engine.driver import Driver

        with _opened(folder) as journal:
            yield Driver(SimpleNamespace(journal=journal, machines={"working": WORKING}))  # type: ignore[arg-type]  all it asks for


class _Reader:
    def __init__(self, world: Any) -> None:
        self._world = world

    def unfinished(self) -> list[str]:
        return [head.run for head in self._world.journal.heads(unfinished=True)]

    def load(self, run: str) -> str:
        from steersman.engine.active_run import load_active_run

        return load_active_run(self._world, run).snapshot.state


@contextmanager
def _opened(folder: Path):
    from steersman.adapters.storage.sqlite.store import SqliteJournal
    from steersman.wiring import project_state_directory

    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    journal = SqliteJournal(project_state_directory(folder) / "store.db")
    try:
        yield journal
    finally:
        journal.close()


CONTENDER = Steersman()
