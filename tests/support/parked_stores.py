"""A project of a released version with parked runs of every machine: how it was recorded, and how a test opens it.

`python -m tests.support.parked_stores` records it with the version that is checked out. Do that once per release; a
recorded archive never changes. It holds the repository, the store, the anchors and the artifacts. Worktrees and caches
are left out, because a run makes them again.
"""

import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import apsw

import steersman
from steersman.adapters.config import state_paths
from tests.support import task_project
from tests.support.plan_project import PlanProject
from tests.support.sample_project import UNIT_TESTS, WRONG_CODE, Project, roundtable_crew

GOLDEN_FOLDER = Path(__file__).resolve().parents[1] / "golden"
REBUILT_ENTRIES = (
    "worktrees", "hulls", "locks", "setups", "cache", "bell", "store.db-urgent", "store.db-waiting",
)  # fmt: skip
ARCHIVED_STATE = "state-of-the-project"  # its real name depends on where the repository is


def open_archive(archive: Path, place: Path) -> Project:
    """The recorded project below `place`, with its state where this version looks for it."""
    with tarfile.open(archive) as tar:
        tar.extractall(place, filter="data")
    template = place / "template"
    (place / "repo").rename(template)
    project = Project(place, template)
    state = Path(state_paths.state_directory_path(project.repo.resolve(), project.env))
    state.parent.mkdir(parents=True)
    (place / ARCHIVED_STATE).rename(state)
    return project


def list_runs(project: Project) -> dict[str, list[str]]:
    """Machine, state and status of each run, by its id."""
    runs = project.call("runs", "--json").json()
    return {run["run"]: [run["machine"], run["state"], run["status"]] for run in runs}


# ── recording ───────────────────────────────────────────────────────────────────────────────────────────────────────


def record_parked_store(place: Path) -> Project:
    """Parks a roundtable run, a task and a plan at a gate, and finishes one plan."""
    template = place / "template"
    template.mkdir(parents=True)
    (template / "calc.py").write_text(WRONG_CODE)
    (template / "test_calc.py").write_text(UNIT_TESTS)
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*who, "commit", "-qm", "base")):
        subprocess.run(["git", *words], cwd=template, check=True)
    project = Project(place, template)
    task_project.configure_tasks(project, task_project.task_crew())
    assert project.call("tasks", "new", "Fix add", "--step").code == 3
    task_project.write_crew(project, roundtable_crew())
    assert project.call("run", "Fix add", "--mode", "proposal").code == 3
    plans = PlanProject(project)
    for scope, code in ((("--file", "calc.py"), 0), ((), 3)):
        intent = plans.write(plans.intent(*scope, scoped=False))
        result = project.call("plan", intent, "--json")
        assert result.code == code, result
    return project


def write_archive(project: Project, archive: Path) -> None:
    """Packs what a later version needs; names in order, and nobody's ids or times."""
    for name in REBUILT_ENTRIES:
        path = project.state / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for store in project.state.glob("*.db"):
        db = apsw.Connection(str(store))
        db.pragma("journal_mode", "delete")
        db.close()
    subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=project.repo, check=True)

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(archive, "w:xz") as tar:
        tar.add(project.repo, "repo", filter=plain)
        tar.add(project.state, ARCHIVED_STATE, filter=plain)
        tar.add(project.place / "crew.yaml", "crew.yaml", filter=plain)


if __name__ == "__main__":
    kept = GOLDEN_FOLDER / f"parked-store-{steersman.__version__}.tar.xz"
    with tempfile.TemporaryDirectory() as scratch:
        recorded = record_parked_store(Path(scratch) / "project")
        runs = list_runs(recorded)
        write_archive(recorded, kept)
    kept.with_name(kept.name.replace(".tar.xz", ".json")).write_text(json.dumps(runs, indent=1) + "\n")
    print(f"{kept.name}: {kept.stat().st_size} bytes", json.dumps(runs))
