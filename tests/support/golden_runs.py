"""Parked runs of a released version, kept as text: how they are made, and the ports with which they go on.

`python -m tests.support.golden_runs` writes them for the version that is checked out; do that once per release, never again.
Clock, names and keys are fixed, and git's hashes depend on content alone: making them twice gives the same bytes.
"""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import apsw

import steersman
from steersman.adapters.git.workspace import GitWorkspace
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.app.runs import RunService
from steersman.contracts.config import Budget
from steersman.engine.audit import run_decision_hash
from steersman.engine.start import StartRequest
from steersman.kernel.machine import Machine
from steersman.machines.roundtable import MACHINE
from steersman.testing import (
    FakeAgent,
    FakeChance,
    FakeLocks,
    ScriptedCommands,
    fake_config,
    fake_ports,
    fake_reply,
)
from steersman.testing.files import passing_judge
from tests.support.packages import PACKAGES

GOLDEN_FOLDER = Path(__file__).resolve().parents[1] / "golden"
GIT_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "ann", "GIT_AUTHOR_EMAIL": "ann@example.org", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "ann", "GIT_COMMITTER_EMAIL": "ann@example.org", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
}  # fmt: skip
BASE_CODE = "def add(a, b):\n    return a - b\n"
FIXED_BY_ROUND = {1: "def add(a, b):\n    return a + b  # fixed\n", 2: "def add(a, b):\n    return a + b\n"}


def run_git(repo: Path, *argv: str, given: bytes = b"") -> bytes:
    """One git command with nothing of this machine in it."""
    env = {**os.environ, **GIT_ENVIRONMENT}
    done = subprocess.run(["git", *argv], cwd=repo, env=env, input=given, capture_output=True, check=True)
    return done.stdout


def answer_as_crew(request):
    """The crew: proposes, mends in two rounds, is strict in the first."""
    match request.role, request.mode:
        case "coder", "implementation":
            (Path(request.workdir) / "calc.py").write_text(FIXED_BY_ROUND[min(request.round, 2)])
            return fake_reply(request, "done")
        case "reviewer", "implementation":
            strict = {"decision": "changes_requested", "must_fix": ["remove the comment"]}
            verdict = strict if request.round == 1 else {"decision": "approve", "must_fix": []}
            return fake_reply(
                request, {**verdict, "summary": "read", "nice_to_have": [], "tests": [], "security": []}
            )
        case "tester", "implementation":
            return fake_reply(
                request, {"test_plan": "run them", "commands": [["true"]], "expected_results": ["ok"]}
            )
        case role, _:
            return fake_reply(request, f"{role}: add adds")


def open_run_service(
    folder: Path, journal: SqliteJournal, seed: str = "0", m: Machine = MACHINE
) -> RunService:
    """A bridge over a store and a real repository; only the agents, the checks, time and chance are not real."""
    repo = folder / "repository"
    ports = fake_ports(
        folder, {"roundtable": m}, journal=journal, chance=FakeChance(seed), locks=FakeLocks(), agent=FakeAgent(answer_as_crew),
        commands=ScriptedCommands(passing_judge(3), allow=(("true",),)), workspace=lambda _: GitWorkspace(repo, folder / "state"), packages=PACKAGES)  # fmt: skip
    return RunService(ports)


def restore_golden_run(folder: Path, name: str) -> SqliteJournal:
    """The store and the repository of a kept version, as they were."""
    repo = folder / "repository"
    repo.mkdir()
    run_git(repo, "init", "--quiet", "-b", "main")
    run_git(repo, "fast-import", "--quiet", given=(GOLDEN_FOLDER / f"{name}.repo").read_bytes())
    run_git(repo, "reset", "--hard", "--quiet")
    db = apsw.Connection(str(folder / "store.db"))
    db.execute((GOLDEN_FOLDER / f"{name}.sql").read_text(encoding="utf-8"))
    db.close()
    return SqliteJournal(folder / "store.db")


# ── making ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def make_golden_files(folder: Path) -> dict[str, bytes]:
    """The kept files, by name, for the version that is checked out."""
    repo = folder / "repository"
    repo.mkdir(parents=True)
    (repo / "calc.py").write_text(BASE_CODE)
    run_git(repo, "init", "--quiet", "-b", "main")
    run_git(repo, "add", "-A")
    run_git(repo, "commit", "--quiet", "-m", "base")
    journal = SqliteJournal(folder / "store.db")
    try:
        park_run(open_run_service(folder, journal, "waits"), "Fix add, after a proposal")
        park_run(
            open_run_service(folder, journal, "halfway"), "Fix add, half done", stop_in=("build", 2),
            mode="implementation",
        )  # fmt: skip
        park_run(
            open_run_service(folder, journal, "merge"), "Fix add, and merge it", mode="implementation",
            deliver="merge",
        )  # fmt: skip
        decided = {h.title: run_decision_hash(journal, h.run) for h in journal.heads()}
    finally:
        journal.close()
    name = f"roundtable-{steersman.__version__}"
    refs = (
        run_git(repo, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/steersman").decode().split()
    )
    exported = run_git(repo, "fast-export", "--reencode=no", *refs)
    return {
        f"{name}.sql": dump_store(folder / "store.db").encode(),
        f"{name}.repo": exported,
        f"{name}.json": json.dumps(decided, indent=1, sort_keys=True).encode() + b"\n",
    }


def park_run(bridge: RunService, task: str, stop_in: tuple[str, int] | None = None, **options: str) -> None:
    """Drives a new run until it waits for somebody, or lets it go in the middle of its nth visit to a state."""
    seen: list[str] = []

    def watch(live, entries) -> None:
        seen.extend(s.entry.to for s in entries if s.entry.kind == "transition" and not s.entry.stay)
        if stop_in is not None and seen.count(stop_in[0]) == stop_in[1]:
            driver.stop()

    async def go() -> None:
        nonlocal driver
        config = fake_config(budget=Budget(tokens=1_000_000))
        driver, lock, live = await bridge.start(
            StartRequest("roundtable", task, "ann", config, dict(options)), watch
        )
        await driver.drive(live.run, held=lock, live=live)

    driver = None
    asyncio.run(go())


def dump_store(path: Path) -> str:
    """A store as SQL text, readable where it holds text."""
    db = apsw.Connection(str(path))
    lines = [f"PRAGMA {name}={db.pragma(name)};" for name in ("application_id", "user_version")]
    made = db.execute(
        "SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY type DESC, name"
    ).fetchall()
    lines += [f"{sql};" for _, _, sql in made]
    for name, kind, _ in made:
        if kind == "table":
            rows = db.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608  a table of our own schema
            lines += [
                f"INSERT INTO {name} VALUES({', '.join(map(_sql, row))});" for row in sorted(rows, key=repr)
            ]
    db.close()
    return "BEGIN;\n" + "\n".join(lines) + "\nCOMMIT;\n"


def _sql(value: object) -> str:
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = "\0"
        return (
            f"CAST({_sql(text)} AS BLOB)"
            if text.isprintable() or ("\n" in text and "\0" not in text)
            else f"X'{value.hex()}'"
        )
    return str(apsw.format_sql_value(value))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        for file, content in make_golden_files(Path(scratch) / "golden").items():
            (GOLDEN_FOLDER / file).write_bytes(content)
            print(f"{file}: {len(content)} bytes")
