"""Agents that do not want to end: three hundred of them, one that floods, the open vectors in a box.

    python proofs/processes.py [--quick]

Each program double-forks, hides, ignores, closes, leaves zombies, holds the pipe, runs away, or turns on its keeper.
It ends by itself, by a clock, by a line that was waited for, by a cancellation, or with the process that executes it
killed. Afterwards nothing of it is alive, nothing is unreaped, nothing is open, and there is a name for what happened.
"""

import asyncio
import itertools
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import hostile_programs
from figures import main, stamp
from hostile_programs import GROWTH, PATIENCE, PeakMemory, descriptors, own_zombies
from interrupted_run import proof_folder

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.runaway_programs import RUNAWAY_PROGRAMS, find_survivors, find_zombies, runaway_command

from steersman.adapters.process import cgroups, program_runner
from steersman.adapters.process.program_runner import ProgramClocks, ProgramResult
from steersman.adapters.sandbox.bubblewrap import probe_sandbox
from steersman.ports.sandbox import Sandbox, SandboxPolicy

SEED = 20260104
RUNS = 300
KILLS = 24
AT_ONCE = 4
ENDINGS = ("exit", "total", "idle", "line", "cancel")
OWNER = """
import asyncio, os, sys
from steersman.adapters.process import cgroups, program_runner
if sys.argv[1] == "keeper": cgroups.find_cgroup_hierarchies = lambda: ()
env = {"PATH": os.environ["PATH"]}
asyncio.run(program_runner.run_program(sys.argv[3:], os.path.dirname(sys.argv[-2]), env, 60, sys.argv[2]))
"""


class Case(NamedTuple):
    """One program, how it comes to its end, and what is around it: a box, a control group, or its keeper alone."""

    program: str
    ending: str
    fence: str


class Told(NamedTuple):
    """What became of it."""

    case: Case
    outcome: str
    late: float  # seconds from the moment it had to end until it was gone
    faults: list[str]


def fences(sandbox: Sandbox) -> tuple[str, ...]:
    """What this machine can put around a program."""
    group = (
        ("group",)
        if cgroups.create_program_cgroup("probe:0:0", "0").remove() and cgroups.find_cgroup_hierarchies()
        else ()
    )
    return ("keeper", *group, *(("box",) if sandbox.isolated else ()))


def cases(count: int, around: tuple[str, ...]) -> list[Case]:
    """Every combination once, in an order of the seed, then some again."""
    dice = random.Random(SEED)  # noqa: S311  a seed on purpose
    every = [Case(*one) for one in itertools.product(RUNAWAY_PROGRAMS, ENDINGS, around)]
    dice.shuffle(every)
    return [*every, *dice.choices(every, k=max(count - len(every), 0))][:count]


@contextmanager
def fenced(fence: str) -> Iterator[None]:
    """Without a control group where only the keeper is to hold; a box is tried without one too."""
    with mock.patch.object(
        cgroups, "find_cgroup_hierarchies", cgroups.find_cgroup_hierarchies if fence == "group" else tuple
    ):
        yield


async def executed(case: Case, token: Path, sandbox: Sandbox) -> ProgramResult | None:
    """The program to its end; None when it was cancelled."""
    argv = runaway_command(case.program, token, "exit" if case.ending == "exit" else "hang")
    clocks = {"total": ProgramClocks(60, 60, 1.5), "idle": ProgramClocks(2.5, 1.0, 60)}.get(
        case.ending, ProgramClocks(6, 6, 6)
    )
    env, listener = (
        {"PATH": os.environ["PATH"]},
        (lambda line: line == b"done") if case.ending == "line" else None,
    )
    effect = f"{token.name}:1:1"
    if case.fence != "box":
        work = program_runner.run_program(argv, token.parent, env, clocks, effect, lines=listener)
        return await ended(case, work)
    async with sandbox.wrap(argv, SandboxPolicy((str(token.parent),)), env, str(token.parent)) as boxed:
        work = program_runner.run_program(boxed.argv, token.parent, boxed.env, clocks, effect, lines=listener)
        return await ended(case, work)


async def ended(case: Case, work: Any) -> ProgramResult | None:
    task = asyncio.ensure_future(work)
    if case.ending == "cancel":
        await asyncio.wait({task}, timeout=1.0)
        task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


def outcome(done: ProgramResult | None) -> str:
    """The name of what happened; empty where there is none."""
    match done:
        case None:
            return "cancelled"
        case ProgramResult(expired=clock) if clock:
            return f"the {clock} clock"
        case ProgramResult(stopped=True):
            return "stopped by a line"
        case ProgramResult(exit_code=None, cause=cause):
            return f"not started: {cause}" if cause else ""
        case ProgramResult(exit_code=code):
            return f"signal {-code}" if code < 0 else f"exit {code}"


async def tried(case: Case, folder: Path, sandbox: Sandbox) -> Told:
    """One run, and what is wrong afterwards."""
    name = f"hostile-{uuid.uuid4().hex}"
    token = folder / name / name  # in a folder of its own: a box shows no other
    token.parent.mkdir()
    began = time.monotonic()
    done = await executed(case, token, sandbox)
    took = time.monotonic() - began
    deadline = time.monotonic() + PATIENCE
    while (find_survivors(token) or find_zombies(token)) and time.monotonic() < deadline:  # noqa: ASYNC110  processes ring no bell
        await asyncio.sleep(0.05)
    late = time.monotonic() - began - took
    told = {
        "survivors": find_survivors(token),
        "zombies": [] if case.fence == "box" else find_zombies(token),  # numbers in a box are not ours
        "fences": cgroups.find_leftover_cgroup(token.name).folders,
        "no name": not outcome(done),
        "could not be stopped": done.reason if done is not None else "",
    }
    faults = [f"{'/'.join(case)}: {what} {value}" for what, value in told.items() if value]
    return Told(case, outcome(done), late, faults)


async def many(chosen: list[Case], folder: Path, sandbox: Sandbox) -> list[Told]:
    """All of them, some at once; those behind the same kind of fence together."""
    told: list[Told] = []
    for fence, group in itertools.groupby(sorted(chosen, key=lambda c: c.fence), key=lambda c: c.fence):
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(case: Case, gate: asyncio.Semaphore = gate) -> Told:
            async with gate:
                return await tried(case, folder, sandbox)

        with fenced(fence):
            told += await asyncio.gather(*map(one, group))
    return told


async def held(chosen: list[Case], folder: Path, sandbox: Sandbox) -> dict[str, Any]:
    """The runs, with what this process has gained by them."""
    await many(chosen[:AT_ONCE], folder, sandbox)  # what is imported and cached once is not growth
    before = descriptors()
    async with PeakMemory() as grown:
        told = await many(chosen, folder, sandbox)
    await asyncio.sleep(0.1)
    faults = [fault for one in told for fault in one.faults]
    gained = {"descriptors": descriptors() - before, "zombies of our own": len(own_zombies())}
    faults += [f"{what}: {value}" for what, value in gained.items() if value]
    faults += [f"grew by {grown() >> 20} MiB"] * (grown() >= GROWTH)
    return {
        "runs": len(told),
        "programs": len({one.case.program for one in told}),
        "by_fence": dict(Counter(one.case.fence for one in told)),
        "by_ending": dict(Counter(one.case.ending for one in told)),
        "outcomes": dict(sorted(Counter(one.outcome for one in told).items())),
        "survivors": sum("survivors" in fault for fault in faults),
        "zombies": sum("zombies" in fault for fault in faults),
        "leaked_descriptors": gained["descriptors"],
        "growth_kib": grown() >> 10,
        "seconds_until_gone_at_most": round(max(one.late for one in told), 2),
        "faults": faults,
    }


async def flooded(gigabytes: float) -> dict[str, Any]:
    """So much on each stream, at once, none of it with a newline; both are read to their end."""
    count = int(gigabytes * (1 << 30))
    flood = f"head -c {count} /dev/zero | tr '\\0' a & head -c {count} /dev/zero | tr '\\0' b >&2; wait"
    heard: list[int] = []
    began = time.monotonic()
    async with PeakMemory() as grown:
        done = await program_runner.run_program(
            ("sh", "-c", flood), "/", {"PATH": os.environ["PATH"]}, 300, "flood:1:1", lines=lambda line: heard.append(len(line)),
        )  # fmt: skip
    checks = {
        "not read to its end": (done.exit_code, done.expired) == (0, ""),
        "grew too much": grown() < GROWTH,
        "kept too much": max(len(done.output), len(done.errors)) <= program_runner.OUTPUT_CAP,
        "does not say what is missing": all(b"bytes left out" in kept for kept in (done.output, done.errors)),
        "an unbounded line": heard != [] and max(heard) < program_runner.LINE_CAP + 100,
    }
    return {
        "bytes": 2 * count,
        "seconds": round(time.monotonic() - began, 1),
        "growth_kib": grown() >> 10,
        "kept_bytes": len(done.output) + len(done.errors),
        "faults": [f"flood: {claim}" for claim, holds in checks.items() if not holds],
    }


def orphaned(folder: Path, count: int, around: tuple[str, ...]) -> dict[str, Any]:
    """The process that executes is killed; nobody resumes, and what it had started is gone."""
    names = ("forks-twice", "hides", "ignores-sigterm", "holds-the-pipe", "runs-away", "leaves-zombies")
    plain = tuple(fence for fence in around if fence != "box")
    told, faults = [], []
    for name, fence in itertools.islice(itertools.cycle(itertools.product(names, plain)), count):
        token = folder / f"hostile-{uuid.uuid4().hex}"
        seconds, wrong = _killed(token, name, fence)
        told.append(seconds)
        faults += [f"owner killed, {name}/{fence}: {fault}" for fault in wrong]
    return {"kills": len(told), "seconds_until_gone_at_most": round(max(told), 2), "faults": faults}


def _killed(token: Path, name: str, fence: str) -> tuple[float, list[str]]:
    argv = [sys.executable, "-c", OWNER, fence, f"{token.name}:1:1", *runaway_command(name, token, "hang")]
    owner = subprocess.Popen(argv)
    noted, deadline = token.with_name(f"{token.name}.pids"), time.monotonic() + 30
    while not (noted.exists() and len(noted.read_text().split()) > 1) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)
    begun = bool(find_survivors(token))
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    killed = time.monotonic()
    while (
        left := find_survivors(token) or list(cgroups.find_leftover_cgroup(token.name).folders)
    ) and time.monotonic() - killed < PATIENCE:
        time.sleep(0.02)
    seconds = time.monotonic() - killed
    wrong = [f"left: {left}"] * bool(left) + ["nothing was under way"] * (not begun)
    return seconds, wrong


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when there is no fault and nothing is missing."""
    sandbox = probe_sandbox("auto")
    around = fences(sandbox)
    with proof_folder("processes") as folder:
        (folder / "runs").mkdir()
        runs = asyncio.run(held(cases(30 if quick else RUNS, around), folder / "runs", sandbox))
        kills = orphaned(folder, 4 if quick else KILLS, around)
    flood = asyncio.run(flooded(0.03 if quick else 1))
    caught = (
        hostile_programs.run_all_vectors(sandbox, quick=quick)
        if sandbox.isolated
        else {"faults": [f"no box: {sandbox.why}"]}
    )
    parts = {"runs": runs, "owner_killed": kills, "flood": flood, "vectors": caught}
    missing = [name for name in ("group", "box") if name not in around]
    faults = [fault for part in parts.values() for fault in part["faults"]]
    return {
        "ok": not faults and not missing and (quick or not caught["left_out"]),
        **stamp(quick, SEED),
        "machine": machine(),
        "fences": list(around),
        **parts,
        "missing": missing,
        "not_tried": [
            "version 2 control groups that bound the number of processes: here a hierarchy of version 1 does",
            "a user that is not root: there the box's own limit of processes binds too",
            "a program without group and box that kills its keeper and leaves environment and session: nothing tells it",
            "processes in an uninterruptible sleep",
            "macOS, where there are marks and sessions alone",
            f"a bomb against the bound as shipped ({cgroups.MAX_CGROUP_PROCESSES}); tried against {hostile_programs.MOST}",
            "a disk filled by many files below the size limit",
        ],
    }


def machine() -> dict[str, str]:
    """What the fences are made of here."""
    box = shutil.which("bwrap")
    said = (
        subprocess.run([box, "--version"], capture_output=True, text=True, check=False).stdout if box else ""
    )
    return {"kernel": platform.release(), "bubblewrap": said.removeprefix("bubblewrap ").strip()}


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    runs, kills, flood, caught = (result[name] for name in ("runs", "owner_killed", "flood", "vectors"))
    lines = [
        f"{runs['runs']} runs of {runs['programs']} programs: survivors {runs['survivors']}, zombies {runs['zombies']}",
        f"descriptors leaked {runs['leaked_descriptors']}, grown by {runs['growth_kib']} KiB",
        f"outcomes: {', '.join(f'{name} {n}' for name, n in runs['outcomes'].items())}",
        f"{kills['kills']} kills of who executes: gone after {kills['seconds_until_gone_at_most']} s at most",
        f"flood of {flood['bytes'] >> 20} MiB in {flood['seconds']} s: grown by {flood['growth_kib']} KiB",
        f"{caught.get('vectors', 0)} vectors in a box, left out: {', '.join(caught.get('left_out', [])) or 'none'}",
    ]
    faults = [fault for part in (runs, kills, flood, caught) for fault in part["faults"]]
    return [*(f"   {line}" for line in lines), *(f"   FAULT {fault}" for fault in faults[:20])]


if __name__ == "__main__":
    sys.exit(main(__name__))
