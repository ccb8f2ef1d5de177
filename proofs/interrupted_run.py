"""A whole roundtable that can be killed anywhere and resumed, for the crash and disk proofs.

Everything is decided by seeds; store and working trees are real files. `drive_to_end` starts the run if there is
none, drives it and answers its gate once, until it has its outcome. Whatever was acknowledged and whatever was
begun is noted outside the store, so that `judged` can hold the tape against it.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.packages import PACKAGES

from steersman.adapters.git.workspace import GitWorkspace
from steersman.adapters.process import program_runner
from steersman.adapters.process.run_locks import FileLocks
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.contracts.agent import AgentRequest
from steersman.contracts.config import Rules
from steersman.engine.audit import verify_run
from steersman.engine.driver import Driver
from steersman.engine.ports import Ports
from steersman.engine.start import StartRequest, start_run
from steersman.kernel.replay import BadEntry, decision_hash, verify_chain
from steersman.kernel.tape import Entry
from steersman.machines.roundtable import MACHINE
from steersman.ports.journal import UNFINISHED_STATUSES, Gate, Head
from steersman.testing import (
    FakeAgent,
    FakeChance,
    FakeClock,
    ScriptedCommands,
    fake_config,
    fake_ports,
    fake_reply,
)
from steersman.testing.files import fake_command_result

RUN = "260101-cross0"
SEED = "crossing"
FILES = {"calc.py": "def add(a, b):\n    return a - b\n", "README": "A sum.\n"}
FIRST, SECOND = "def add(a, b):\n    return a+b\n", "def add(a, b):\n    return a + b\n"
APPROVES = {
    "decision": "approve",
    "summary": "read",
    "must_fix": [],
    "nice_to_have": [],
    "tests": [],
    "security": [],
}
REQUESTS = {**APPROVES, "decision": "changes_requested", "must_fix": ["put spaces around the plus"]}
TESTS = {"test_plan": "run it", "commands": [["pytest", "-q"]], "expected_results": ["ok"]}


class InterruptedRun:
    """One run below one folder."""

    machine = MACHINE
    turns = 12  # of a stubborn person; this one needs three

    def __init__(self, folder: Path, trees: str = "fake", vfs: str | None = None) -> None:
        self.folder, self._trees = folder, trees
        folder.mkdir(parents=True, exist_ok=True)
        self.journal = SqliteJournal(folder / "state" / "store.db", vfs=vfs)
        self.ports = self._make_ports()

    def _make_ports(self) -> Ports:
        agent = FakeAgent(self.answer)
        commands = ScriptedCommands(self.checked, allow=(("pytest", "-q"),))
        instead: dict[str, Any] = {"processes": program_runner} if self._trees == "git" else {}
        if self._trees == "git":
            repo = git_repository(self.folder)
            workspace = GitWorkspace(repo, self.folder / "state")
            instead["workspace"] = lambda _config: workspace
        return fake_ports(
            self.folder,
            {self.machine.name: self.machine},
            files=FILES,
            journal=self.journal,
            clock=FakeClock(step=1),
            chance=FakeChance(SEED),
            locks=FileLocks(self.folder / "locks"),
            agent=agent,
            commands=commands,
            **instead,
            **self.port_overrides(),
            packages=PACKAGES,
        )

    def port_overrides(self) -> dict[str, Any]:
        """What else is put in place of fakes."""
        return {}

    def order(self) -> StartRequest:
        """What the person wants."""
        return StartRequest(self.machine.name, "Fix add", "ann", fake_config(rules=Rules(red_base="fix")))

    def choice(self, _gate: Gate) -> str:
        """What the person says at a gate."""
        return "approve"

    def seen(self) -> None:
        """The person looks at the run that has stopped."""

    def answer(self, request: AgentRequest) -> Any:
        self.note("begun", request.effect)
        match request.role, request.mode:
            case _, "proposal":
                return fake_reply(request, f"{request.role}: the plus is a minus")
            case "coder", _:
                Path(request.workdir, "calc.py").write_text(FIRST if request.round == 1 else SECOND)
                return fake_reply(request, "done")
            case "reviewer", _:
                return fake_reply(request, REQUESTS if request.round == 1 else APPROVES)
            case _:
                return fake_reply(request, TESTS)

    def checked(self, command: Any, workdir: str) -> Any:
        self.note("ran", f"{command.name} {Path(workdir, 'calc.py').read_text() == SECOND}")
        return fake_command_result(command, 0 if "a + b" in Path(workdir, "calc.py").read_text() else 1)

    def note(self, kind: str, words: str) -> None:
        """One write of one line: it outlives a kill."""
        fd = os.open(self.folder / kind, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(fd, f"{words}\n".encode())
        os.close(fd)

    def _acknowledged(self, _live: Any, entries: Any) -> None:
        for stored in entries:
            self.note("acknowledged", f"{stored.entry.seq} {stored.hash}")

    async def drive_to_end(self) -> Head:
        """Drives the run to its outcome, starting and answering whatever is still to be."""
        head = self.journal.head(RUN)
        for _ in range(self.turns):
            if head is None:
                live, lock = await start_run(self.ports, self.order(), run=RUN)
                self._acknowledged(live, live.made.entries if live.made else ())
                head = await Driver(self.ports, self._acknowledged).drive(RUN, held=lock, live=live)
            else:
                head = await Driver(self.ports, self._acknowledged).drive(RUN)
            self.seen()
            if head.status not in UNFINISHED_STATUSES:
                return head
            for gate in self.journal.gates(RUN):
                if not gate.answer:
                    said_ = {"choice": self.choice(gate), "person": "ann", "digest": gate.digest}
                    self.journal.answer(gate.id, gate.digest, said_, self.ports.clock.now())
        raise AssertionError(f"run {RUN} did not come to an end: {head}")

    # ── afterwards ──────────────────────────────────────────────────────────────────────────────────────────────────

    def judged(self) -> dict[str, Any]:
        """Everything that can be compared about a run that has come to its end."""
        links = list(verify_chain(self.journal.rows(RUN), RUN))
        entries = [link[0] for link in links if not isinstance(link, BadEntry)]
        there = {f"{entry.seq} {hash_}" for entry, hash_ in (k for k in links if not isinstance(k, BadEntry))}
        head = self.journal.head(RUN)
        audit = verify_run(self.journal, self.ports.machines, RUN)
        return {
            "whole": len(entries) == len(links) and audit.ok,
            "problems": list(audit.problems),
            "outcome": head.outcome if head else "",
            "decisions": decision_hash(entries),
            "transitions": [[e.source, e.event, e.to] for e in entries if e.event and e.kind == "transition"],
            "lost": [line for line in self.lines("acknowledged") if line not in there],
            "unmarked": self._unmarked(entries),
            "again": sum(_again(e) for e in entries),
            "answers": sum(e.event == "task_followup_received" for e in entries),
        }

    def _unmarked(self, entries: list[Entry]) -> list[str]:
        """Effects that were begun more often than the tape says they may have been."""
        begun = Counter(self.lines("begun"))
        starts = Counter({i.id: 1 for e in entries for i in e.planned})
        starts.update(e.cause for e in entries if e.kind == "effect_started")
        return [effect for effect, n in begun.items() if n > starts[effect]]

    @staticmethod
    def faults(told: dict[str, Any], reference: dict[str, Any]) -> list[str]:
        """What is wrong with a disturbed run of this kind."""
        return faults(told, reference)

    def lines(self, kind: str) -> list[str]:
        path = self.folder / kind
        return path.read_text().splitlines() if path.exists() else []

    def close(self) -> None:
        self.journal.close()


def _again(entry: Entry) -> bool:
    return (
        entry.kind == "effect_started"
        and entry.retry is not None
        and entry.retry.retry_reason == "interrupted"
    )


def git_repository(folder: Path) -> Path:
    """The same files in a real repository, made once; the same commit every time."""
    repo = folder / "repo"
    if (repo / "ready").exists():
        return repo
    shutil.rmtree(repo, ignore_errors=True)
    repo.mkdir(parents=True)
    for name, text in FILES.items():
        (repo / name).write_text(text)
    who = {f"GIT_{r}_{k}": v for r in ("AUTHOR", "COMMITTER") for k, v in
           (("NAME", "ann"), ("EMAIL", "ann@example.org"), ("DATE", "2026-01-01T00:00:00Z"))}  # fmt: skip
    for argv in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "base"]):
        subprocess.run(["git", *argv], cwd=repo, env={**os.environ, **who}, check=True)
    (repo / "ready").touch()
    return repo


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_in_child(work: Callable[[], Any]) -> int:
    """Runs `work` in a real child process; how it ended: 0, or minus the signal that killed it.

    The child starts from here, with everything imported and nothing open: the store is never opened in the parent.
    """
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            work()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def drive_in_child(
    folder: Path,
    trees: str,
    before: Callable[[], str | None] = lambda: None,
    after: Callable[[], Any] = lambda: None,
    kind: type[InterruptedRun] = InterruptedRun,
) -> int:
    """Drives the run in a folder to its end in a child process, which notes its result in `judged.json`.

    `before` may give the name of a disk (a VFS) to keep the store on.
    """

    def work() -> None:
        run = kind(folder, trees, vfs=before())
        asyncio.run(run.drive_to_end())
        note = {**run.judged(), "after": after()}
        run.close()
        (folder / "judged.json").write_text(json.dumps(note))

    return run_in_child(work)


def verdict(folder: Path) -> dict[str, Any]:
    """What the child that came to the end has noted."""
    told: dict[str, Any] = json.loads((folder / "judged.json").read_text())
    return told


def faults(told: dict[str, Any], reference: dict[str, Any]) -> list[str]:
    """What is wrong with a disturbed run, held against an undisturbed one; nothing: it is the same run."""
    wrong = [
        f"{k}: {told[k]!r}"
        for k in ("outcome", "decisions", "transitions", "answers")
        if told[k] != reference[k]
    ]
    wrong += [f"{k}: {told[k]}" for k in ("lost", "unmarked", "problems") if told[k]]
    return wrong if told["whole"] else [*wrong, "the tape is not whole"]


@contextmanager
def proof_folder(name: str, *, disk: bool = False) -> Iterator[Path]:
    """A temporary folder for a proof; in memory unless the disk itself matters, for a kill loses nothing that was written."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) and not disk else None  # noqa: S108  a folder of our own below it
    with tempfile.TemporaryDirectory(
        prefix=f"steersman-{name}-", dir=memory, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


KILLED = -signal.SIGKILL
