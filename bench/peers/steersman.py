"""steersman itself: the same table as a machine of its own, with the chain, guards, effects and heads on.

States have their work: build, review and test plan an effect, whose facts come back and are named. Every step is
recorded the way the runtime records it (`Live.append`); only the agents are missing, as they are for the peers.
"""

import asyncio
import os
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
from workload import EMPTY, PARKED_AFTER, SCRIPT, check_end, endless, note

from steersman.kernel.build import definition, machine
from steersman.kernel.canonical import canonical
from steersman.kernel.definition import (
    Cap,
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
from steersman.kernel.ops import Log
from steersman.kernel.record import Meta, advance, create
from steersman.kernel.step import Happened, name_facts


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


class S(State):
    intake = state("A task is here.", initial=True)
    plan = state("The loop begins.")
    build = state("The coder works.", do(CODE, _input))
    review = state("The reviewer works.", do(REVIEW, _input))
    test = state("The checks run.", do(CHECK, _input))
    iterate = state("A round did not suffice.")
    finalize = resting("The run has its outcome.")


class E(Events):
    task_received = event("A task.", Origin.PERSON, Received)
    implementation_confirmed = event("A person confirms.", Origin.PERSON, Confirmed)
    start_coder = event("A round begins.", Origin.MACHINE)
    start_reviewer = event("The coder is done.", Origin.EFFECT, Built)
    review_changes_requested = event("Changes are wanted.", Origin.EFFECT, Reviewed)
    review_approved = event("The reviewer approves.", Origin.EFFECT, Reviewed)
    tests_failed = event("A check failed.", Origin.EFFECT, Checked)
    tests_passed = event("All checks passed.", Origin.EFFECT, Checked)


ROUNDS = Cap("rounds", 10**9)
REMAIN = room("remain", "iterations remaining", ROUNDS)
APPROVES = Guard("approves", "the reviewer approves", lambda _, e: e.decision == "approve")
PASSED = Guard("passed", "all commands pass", lambda _, e: e.exit == 0)

TABLE = table(
    row(None, E.task_received, otherwise, S.intake, None, "new task", "§2"),
    row(S.intake, E.implementation_confirmed, otherwise, S.plan, None, "start the loop", "§2"),
    row(S.plan, E.start_coder, otherwise, S.build, ROUNDS, "run the coder", "§2"),
    row(S.build, E.start_reviewer, otherwise, S.review, None, "run the reviewer", "§2"),
    row(S.review, E.review_changes_requested, otherwise, S.iterate, None, "set must-fix", "§2"),
    row(S.review, E.review_approved, otherwise, S.test, None, "run the tester", "§2"),
    row(S.test, E.tests_failed, otherwise, S.iterate, None, "set must-fix", "§2"),
    row(S.test, E.tests_passed, otherwise, S.finalize, None, "approved", "§2", sets={"outcome": "approved"}),
    row(S.iterate, E.start_coder, otherwise, S.build, ROUNDS, "next round", "§2"),
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
        c, (("take", "findings", "findings"), ("set", "must_fix", []) if not e.must_fix else ("take", "must_fix", "must_fix"), ("add", "tokens", e.tokens))
    )


def _failed(c: Context, e: Checked) -> tuple:
    told = {"command": e.command, "exit": e.exit, "stderr": e.stderr}
    return _grown(c, (("set", "last_check", told), ("set", "must_fix", [f"{e.command}: {e.stderr}"])))


def _passed(c: Context, e: Checked) -> tuple:
    told = {"command": e.command, "exit": e.exit, "stderr": e.stderr}
    return _grown(c, (("set", "last_check", told), ("set", "must_fix", [])))


MACHINE = machine(
    "bench",
    "The implementation loop of the roundtable.",
    states=S,
    events=E,
    rows=TABLE,
    context=Context,
    namings=(
        naming(CODE, (otherwise, E.start_reviewer)),
        naming(REVIEW, (APPROVES, E.review_approved), (otherwise, E.review_changes_requested)),
        naming(CHECK, (PASSED, E.tests_passed), (otherwise, E.tests_failed)),
    ),
    computes=(computed(S.plan, (REMAIN, E.start_coder)), computed(S.iterate, (REMAIN, E.start_coder))),
    folds=(
        fold(E.implementation_confirmed, _confirmed),
        fold(E.start_coder, _started),
        fold(E.start_reviewer, _built),
        fold(E.review_changes_requested, _reviewed),
        fold(E.review_approved, _reviewed),
        fold(E.tests_failed, _failed),
        fold(E.tests_passed, _passed),
    ),
    memory={"outcome": ("", "approved")},
    successes=("approved",),
)
DEFINITION = (MACHINE.digest, canonical(definition(MACHINE)))
# What comes from outside, decoded once: agents hand the runtime typed facts.
GIVEN = [(name, msgspec.convert(payload, E.__dict__[name].carries)) for name, payload in SCRIPT]


def _begun(run: str, at: int, growing: bool = False):
    received = GIVEN[0][1]
    context = Context(
        task=received.task,
        mode=received.mode,
        max_iterations=received.max_iterations,
        tree=received.tree,
        growing=growing,
    )
    return create(
        MACHINE, run, Happened(E.task_received, received, Origin.PERSON), context, Meta(at), title="bench"
    )


def _next(snapshot: Any, name: str, data: Any, at: int):
    """The step for one event of the script; None for one the machine has computed already."""
    known = E.__dict__[name]
    if known.origin is Origin.MACHINE:
        return None
    if known.origin is Origin.PERSON:
        return advance(MACHINE, snapshot, Happened(known, data, Origin.PERSON), Meta(at))
    item = next(iter(snapshot.items.values()))
    happened = name_facts(MACHINE, snapshot, item.job, data)
    return advance(MACHINE, snapshot, happened, Meta(at, cause=item.id, closes=(item.id,), took=1))


def _checked(snapshot: Any) -> int:
    context = {name: getattr(snapshot.context, name) for name in EMPTY}
    return check_end(snapshot.state, context)


def _one_in_memory(run: str) -> int:
    made = _begun(run, 1)
    tape, snapshot = [*made.entries], made.snapshot
    for name, data in GIVEN[1:]:
        step = _next(snapshot, name, data, 2)
        if step is not None:
            tape += step.entries
            snapshot = step.snapshot
    return _checked(snapshot)


def _live(journal: Any, run: str, growing: bool = False) -> Any:
    from steersman.runtime.live import Live

    made = _begun(run, 1_700_000_000_000, growing)
    live = Live(SimpleNamespace(journal=journal), MACHINE, made.snapshot, "bench", 1_700_000_000_000, None)
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
            (name, id(payload)): msgspec.convert(payload, E.__dict__[name].carries)
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
        return done if done else transitions


class Steersman:
    name = "steersman"
    limits: dict[str, int] = {}
    import_line = "import click, apsw, msgspec"

    def command(self, folder: Path) -> list[str]:
        code = "import os, sys; os.environ['XDG_STATE_HOME'] = sys.argv.pop(1); from steersman.bootstrap import main; main()"
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
            world = SimpleNamespace(journal=journal, machines={"bench": MACHINE})
            yield _Reader(world)

    @contextmanager
    def waiting(self, folder: Path):
        from steersman.runtime.drive import Driver

        with _opened(folder) as journal:
            yield Driver(SimpleNamespace(journal=journal, machines={"bench": MACHINE}))  # type: ignore[arg-type]


class _Reader:
    def __init__(self, world: Any) -> None:
        self._world = world

    def unfinished(self) -> list[str]:
        return [head.run for head in self._world.journal.heads(unfinished=True)]

    def load(self, run: str) -> str:
        from steersman.runtime.live import load

        return load(self._world, run).snapshot.state


@contextmanager
def _opened(folder: Path):
    from steersman.adapters.sqlite import SqliteJournal
    from steersman.bootstrap import state_dir

    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    journal = SqliteJournal(state_dir(folder) / "store.db")
    try:
        yield journal
    finally:
        journal.close()


CONTENDER = Steersman()
