"""The same plan again, elsewhere, at another time: what the proof of determinism and its sample in the suite share."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.command_launcher import CommandCall
from tests.support.plan_project import PlanProject
from tests.support.sample_project import Project

# What may differ between two plannings without making a difference.
SURROUNDINGS = (
    {"PYTHONHASHSEED": "1", "LANG": "C.UTF-8"},
    {"PYTHONHASHSEED": "4242", "LC_ALL": "C", "TZ": "Asia/Tokyo"},
    {"PYTHONHASHSEED": "7", "LC_ALL": "de_DE.UTF-8", "TZ": "America/New_York", "COLUMNS": "20"},
)
# The clock of the whole process is ahead by so many seconds.
SHIFTED_CLOCK = """
import sys, time
ahead = int(sys.argv.pop(1))
now, now_ns = time.time, time.time_ns
time.time = lambda: now() + ahead
time.time_ns = lambda: now_ns() + ahead * 10**9
sys.argv[0] = "steersman"
from steersman.__main__ import main
sys.exit(main())
"""


def write_plan_inputs(project: Project) -> str:
    """An intent, sealed, and a memory of a fixed day: everything a plan depends on beside the repository."""
    plans = PlanProject(project, remembers=False)
    added = _run_later(project, 0, "memory", "add", "Discounts count from ten pieces on.")
    assert added.returncode == 0, added.stderr
    return plans.write(plans.intent(mode="full_auto"))


def copy_project(source: Project, place: Path) -> Project:
    """The same repository, intent and memory in another directory, with a state of its own."""
    project = Project(place, source.repo)
    assert _run_later(project, 0, "memory", "add", "x").returncode == 0  # so that there is a state directory
    for name in ("memory.db", "memory.db-wal", "memory.db-shm", "registries"):
        (project.state / name).unlink(missing_ok=True)
        kept = source.state / name
        if kept.is_file():
            shutil.copy(kept, project.state / name)
    shutil.copy(source.place / "intent.json", place)
    return project


def digest_frozen_plan(
    project: Project, intent: str, out: str, *, ahead: int = 0, **env: str
) -> dict[str, str]:
    """Plans it and gives the digest of every frozen file, the signature left out."""
    done = _run_later(project, ahead, "plan", intent, "--out", out, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    files = (p for p in (project.repo / out).iterdir() if p.name != "plan.dsse.json")
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(files)}


def _run_later(project: Project, ahead: int, *words: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
    if not ahead:
        return project.launch(CommandCall(words, project.repo, {**project.env, **env}, timeout=120))
    return subprocess.run(
        [sys.executable, "-c", SHIFTED_CLOCK, str(ahead), *words],
        cwd=project.repo, env={**project.env, **env}, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
