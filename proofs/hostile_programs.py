"""Runs hostile programs as agents in a sandbox, beside a repository, a store with a finished run, and a listener.

Every vector is a shell snippet that is started as the agent, through the `command` provider. `run_vector` judges what it
did: what is alive, what is open, what was changed, what outcome it was given.
"""

import asyncio
import gc
import hashlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from finished_run import FinishedRun
from interrupted_run import git_repository, proof_folder

from steersman.adapters.agents.command import CommandAgent, CommandOptions
from steersman.adapters.config import state_paths
from steersman.adapters.git.workspace import GitWorkspace
from steersman.adapters.process import cgroups, program_runner
from steersman.contracts.agent import AgentReply, AgentRequest
from steersman.contracts.workspace import Change, Checkout
from steersman.ports.sandbox import Sandbox, SandboxPolicy

CORPUS = Path(__file__).parents[1] / "tests" / "corpus" / "processes.json"
SECRET = "s3cret-of-the-driver"  # noqa: S105  nobody's
DANGEROUS = {"PRC-014"}  # only where a control group bounds the number of processes
MOST = 256  # processes that a bomb may start here: the bound is the product's, the number is smaller for the machine
FLOODS = {"PRC-001", "PRC-002", "PRC-003"}
PATIENCE = 5.0
GROWTH = 64 << 20


class Vector(NamedTuple):
    """One snippet, and what has to hold."""

    id: str
    input: str
    why: str
    check: str


class VectorResult(NamedTuple):
    """What became of one."""

    id: str
    outcome: str
    seconds: float
    faults: list[str]


def load_vectors() -> list[Vector]:
    """The open ones."""
    found = json.loads(CORPUS.read_text())["vectors"]
    return [Vector(v["id"], v["input"], v["why"], v["check"]) for v in found]


class AttackedProject:
    """The repository, store and listener that one vector after the other attacks."""

    def __init__(self, folder: Path, sandbox: Sandbox, port: int) -> None:
        self.name, self.port, self.sandbox = folder.name, port, sandbox
        self.folder = folder
        self.repo = git_repository(folder)
        self.state = Path(state_paths.state_directory_path(self.repo))
        self.state.mkdir(parents=True)
        (self.state / "token").write_text("the token")
        self.finished_run = FinishedRun(self.state, 1)
        self.workspace = GitWorkspace(self.repo, self.state)
        self.base = self.workspace.base(None).commit
        self.mark = folder / "mark"
        self.store = self._store()

    def tree(self, vector: Vector) -> Checkout:
        """A working tree of its own."""
        run = self.run(vector)
        return self.workspace.checkout(run, self.base, f"{run}:1:1")

    def run(self, vector: Vector) -> str:
        return f"260101-{vector.id.lower().replace('-', '')}"

    def snippet(self, vector: Vector, tree: Checkout) -> str:
        """Its text with our places in it."""
        held = {
            "{PORT}": str(self.port),
            "{RUN}": self.finished_run.run,
            "{GATE}": "1",
            "{JOURNAL}": str(self.state / "store.db"),
            "{TAPE}": str(self.state / "store.db"),
            "{WORKTREE}": tree.path,
            "{MARK}": str(self.mark),
            "{STATE_DIR}": str(self.state),
        }
        text = vector.input
        for name, value in held.items():
            text = text.replace(name, value)
        return text + "; sleep 2" * (vector.id in DANGEROUS)  # else it is stopped before it has met its bound

    async def called(self, vector: Vector, tree: Checkout) -> AgentReply:
        """The vector as an agent."""
        asked = AgentRequest(
            role="coder", mode="implementation", prompt="Do it.", workdir=tree.path, writes=True,
            effect=f"{self.run(vector)}:1:1", nonce="n", permissions="shell",
            seconds=4, start_seconds=3, idle_seconds=3,
        )  # fmt: skip
        options = CommandOptions(command=self._command(vector, tree))
        return await CommandAgent(self.folder / "homes", self.sandbox, options).call(asked)

    def _command(self, vector: Vector, tree: Checkout) -> tuple[str, ...]:
        if vector.id == "PRC-023":
            return (vector.input,)
        if vector.id == "PRC-024":
            own = Path(tree.path, "self")
            own.write_text("#!/bin/sh\n")
            own.chmod(0)
            return (str(own),)
        # The prompt in a file: standard input is closed then.
        return ("bash", "-c", self.snippet(vector, tree), "agent", "{prompt_file}")

    async def flooded(
        self, vector: Vector, tree: Checkout, seconds: float
    ) -> tuple[program_runner.ProgramResult, int]:
        """The same snippet in the box without a reader that stops it: what came, and by how much we grew."""
        argv = ("bash", "-c", self.snippet(vector, tree))
        lines: list[int] = []
        async with (
            self.sandbox.wrap(argv, SandboxPolicy((tree.path,)), _environment(), tree.path) as boxed,
            PeakMemory() as grown,
        ):
            done = await program_runner.run_program(
                boxed.argv, tree.path, boxed.env, seconds, f"{self.run(vector)}:1:2", doors=boxed.doors,
                lines=(lambda line: lines.append(len(line))) if vector.id == "PRC-003" else None,
            )  # fmt: skip
        if lines and max(lines) > program_runner.LINE_CAP + 100:
            return done, GROWTH
        return done, grown()

    def recorded(self, vector: Vector, tree: Checkout) -> list[Change]:
        """Rounds of our own git calls in the tree it left: recorded, checked out again; ten where it planted something."""
        run = self.run(vector)
        changes = []
        for n in range(10 if "{MARK}" in vector.input else 2):
            changes.append(self.workspace.capture(run, tree.path, self.base, f"round-{n}"))
            if n % 5 == 0:
                self.workspace.checkout(f"{run}-again", changes[-1].commit, f"{run}-again:{n}:1")
        subprocess.run(
            ["git", "-C", str(self.repo), "fsck", "--connectivity-only"], capture_output=True, check=True
        )
        return changes

    def alive(self) -> list[int]:
        """The processes that see the project mounted, and are not in our own view of the world."""
        ours = os.readlink("/proc/self/ns/mnt")
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._sees(pid, ours)]

    def _sees(self, pid: int, ours: str) -> bool:
        with suppress(OSError):
            elsewhere = os.readlink(f"/proc/{pid}/ns/mnt") != ours
            return elsewhere and self.name in Path(f"/proc/{pid}/mountinfo").read_text()
        return False

    def _store(self) -> str:
        return hashlib.sha256((self.state / "store.db").read_bytes()).hexdigest()

    def untouched(self) -> bool:
        """The store is byte for byte what it was and verifies; the token is what it was, with one name."""
        token = self.state / "token"
        same = self._store() == self.store and (token.read_text(), token.stat().st_nlink) == ("the token", 1)
        return same and self.finished_run.verify().ok


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


@contextmanager
def open_attacked_project(name: str, sandbox: Sandbox) -> Iterator[tuple[AttackedProject, list[str]]]:
    """A project with its own state directory, and a list of the connections that reached its listener."""
    reached: list[str] = []
    with proof_folder(name) as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        state = str(folder / "state")
        with mock.patch.dict(os.environ, {"XDG_STATE_HOME": state, "PROOF_SECRET": SECRET}):
            yield AttackedProject(folder, sandbox, listener.getsockname()[1]), reached
            with suppress(BlockingIOError):
                while True:
                    reached.append(str(listener.accept()[1]))


class PeakMemory:
    """By how many bytes this process has grown at most while something ran."""

    async def __aenter__(self) -> Callable[[], int]:
        self._before = self._most = _resident()
        self._task = asyncio.create_task(self._watch())
        return lambda: self._most - self._before

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _watch(self) -> None:
        while True:
            self._most = max(self._most, _resident())
            await asyncio.sleep(0.02)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    """How many this process has open, without those of objects that nothing uses any more."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def own_zombies() -> list[int]:
    """Our own children that are dead and unreaped, from whomever they came."""
    found = []
    for task in os.listdir("/proc/self/task"):
        for pid in map(int, Path(f"/proc/self/task/{task}/children").read_text().split()):
            with suppress(OSError):
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                    found.append(pid)
    return found


# ── the vectors ───────────────────────────────────────────────────────────────────────────────────────────────────────

# What the outcome has to be, where the vector says so; the others only need one.
EXPECTED = {
    "provider_timeout": "PRC-001 PRC-002 PRC-003 PRC-004 PRC-008 PRC-009 PRC-022 PRC-025",
    "provider_crashed": "PRC-007 PRC-015 PRC-016 PRC-019 PRC-020 PRC-029 PRC-030 PRC-031 PRC-042 PRC-043",
    "provider_protocol_error": "PRC-001 PRC-003",
    "provider_not_found": "PRC-023",
    "provider_permission_denied": "PRC-024",
    "answered": "PRC-006 PRC-010 PRC-013 PRC-039 PRC-040 PRC-044",
}


def fits(vector: Vector, outcome: str) -> bool:
    """Whether this outcome may follow from it."""
    wanted = {name for name, ids in EXPECTED.items() if vector.id in ids.split()}
    return outcome in wanted or not wanted


async def run_vector(project: AttackedProject, vector: Vector) -> VectorResult:
    """One vector, and everything that is wrong afterwards."""
    tree = project.tree(vector)
    before, began = descriptors(), time.monotonic()
    seen = asyncio.create_task(_most_inside(project.run(vector)))
    reply = await project.called(vector, tree)
    seconds = time.monotonic() - began
    seen.cancel()
    faults = await _left(project, before)
    outcome = reply.error or "answered"
    if not fits(vector, outcome):
        faults.append(f"outcome {outcome}: {reply.detail[:200]}")
    if SECRET in reply.text + reply.detail:
        faults.append("a secret of the driver came out")
    if vector.id in DANGEROUS and not 1 < (most := await seen) <= MOST:
        faults.append(f"{most} processes at once")
    if vector.id in FLOODS:
        faults += await _flood(project, vector, tree)
    faults += await asyncio.to_thread(_judged, project, vector, tree)
    return VectorResult(vector.id, outcome, round(seconds, 2), [f"{vector.id}: {fault}" for fault in faults])


async def _left(project: AttackedProject, before: int) -> list[str]:
    """What is alive, unreaped or open after five seconds at most."""
    deadline = time.monotonic() + PATIENCE
    while project.alive() and time.monotonic() < deadline:  # noqa: ASYNC110  processes ring no bell
        await asyncio.sleep(0.05)
    told = {"alive": project.alive(), "zombies": own_zombies(), "descriptors": descriptors() - before}
    return [f"{what}: {value}" for what, value in told.items() if value]


async def _most_inside(run: str) -> int:
    """The most processes of a run at once, until cancelled."""
    most = 0
    with suppress(asyncio.CancelledError):
        while True:
            most = max(most, len(cgroups.find_leftover_cgroup(run).members()))
            await asyncio.sleep(0.05)
    return most


async def _flood(project: AttackedProject, vector: Vector, tree: Checkout) -> list[str]:
    endless = vector.id == "PRC-002"
    done, grown = await project.flooded(vector, tree, 15 if endless else 120)
    kept = len(done.output) + len(done.errors)
    checks = {
        "grew too much": grown < GROWTH,
        "kept too much": kept <= 2 * program_runner.OUTPUT_CAP,
        "does not say what is missing": b"bytes left out" in done.output + done.errors,
        "was not taken to its end": (done.expired == "total") if endless else (done.exit_code == 0),
    }
    return [f"flood {claim} ({grown >> 20} MiB)" for claim, holds in checks.items() if not holds]


def _judged(project: AttackedProject, vector: Vector, tree: Checkout) -> list[str]:
    """The store, the marks and the tree that was left, as our own git calls see it."""
    faults = []
    huge = [p.name for p in Path(tree.path).iterdir() if p.is_file() and p.stat().st_size > 9 << 30]
    if huge:
        faults.append(f"a file beyond the limit: {huge}")
    changes = project.recorded(vector, tree)
    if any("root:x:0:0" in change.patch or "the token" in change.patch for change in changes):
        faults.append("what is outside the tree was read")
    if project.mark.exists():
        faults.append("what it planted was executed by us")
    if not project.untouched():
        faults.append("the store or the token was touched")
    return faults


def run_all_vectors(sandbox: Sandbox, *, quick: bool) -> dict[str, Any]:
    """Every open vector in a box; what is left out is named."""
    bounded = any(
        os.path.exists(f"{place.own}/cgroup.procs")
        for place in cgroups.find_cgroup_hierarchies()
        if "pids" in place.root
    )
    chosen = [v for v in load_vectors() if bounded or v.id not in DANGEROUS]
    if quick:
        chosen = [v for v in chosen if v.id not in DANGEROUS | FLOODS]
    with (
        mock.patch.object(cgroups, "MAX_CGROUP_PROCESSES", MOST),
        open_attacked_project("hostile-programs", sandbox) as (project, reached),
    ):
        told = [asyncio.run(run_vector(project, vector)) for vector in chosen]
    faults = [fault for one in told for fault in one.faults]
    faults += [f"PRC-029: the listener was reached from {peer}" for peer in reached]
    return {
        "vectors": len(told),
        "left_out": sorted({v.id for v in load_vectors()} - {v.id for v in chosen}),
        "outcomes": {one.id: one.outcome for one in told},
        "slowest_seconds": max(one.seconds for one in told),
        "faults": faults,
    }
