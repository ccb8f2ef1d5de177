"""A task's change taken back: at once, late, twice, against what came after it, beside a person's own work."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.sample_project import RIGHT_CODE, WRONG_CODE, Project
from tests.support.task_project import (
    TASK_PLAN,
    coder_step,
    configure_tasks,
    read_document,
    task_crew,
    task_phases,
)

END = "\n\n\n\n\n# the end\n"
Ready = Callable[[], tuple[Project, str]]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Ready:
    """A task whose change waits to be accepted, made once and put back to that for each story."""
    place, saved = tmp_path_factory.mktemp("ready") / "project", tmp_path_factory.mktemp("saved") / "project"
    project = Project(place, template)
    (project.repo / "calc.py").write_text(WRONG_CODE + END)
    configure_tasks(project, task_crew(coder=[coder_step(RIGHT_CODE + END)]), "merge")
    assert project.call("tasks", "new", "Fix add").code == 3
    run = project.only_run()
    shutil.copytree(place, saved, symlinks=True)

    def again() -> tuple[Project, str]:
        shutil.rmtree(place)
        shutil.copytree(saved, place, symlinks=True)
        return project, run

    return again


@pytest.fixture
def merged(ready: Ready) -> tuple[Project, str]:
    """The same, accepted and merged."""
    project, run = ready()
    assert project.call("tasks", "accept", run).code == 0
    return project, run


def at(project: Project, name: str = "main") -> str:
    return project.git("rev-parse", name).strip()


def files(project: Project) -> dict[str, bytes]:
    """Every file of the checkout that git knows, as it lies there."""
    names = project.git("ls-files", "-z").split("\0")[:-1]
    return {name: (project.repo / name).read_bytes() for name in names}


def everything(project: Project) -> tuple[str, str, dict[str, bytes], str]:
    """The branch, its tree, the files, and what of them is in no commit."""
    left = project.git("status", "--porcelain", "--untracked-files=no")
    return at(project), at(project, "main^{tree}"), files(project), left


def committed(project: Project, name: str, text: str) -> str:
    """A person's own commit."""
    (project.repo / name).write_text(text)
    project.git("add", name)
    project.git("commit", "-qm", f"by hand: {name}")
    return at(project)


def record(project: Project, run: str) -> tuple[str, str, str]:
    """What the record on disk says: what became of it, by which commit, and why."""
    told = read_document(project, run, "revert/record.json")
    assert (told["reverted_by"], told["branch"], told["task_id"]) == ("ann", "main", run)
    return told["status"], told["commit"], told["detail"]


def now(project: Project, run: str) -> tuple[str, str]:
    task = next(t for t in project.call("tasks", "list", "--json").json() if t["run"] == run)
    return task["phase"], task["outcome"] or task["step"]


def test_taken_back_built_again_and_taken_back(ready: Ready):
    """The tree and the files are byte for byte what they were, twice; in between a second time is refused with why."""
    project, run = ready()
    _, *before = everything(project)
    assert project.call("tasks", "accept", run).code == 0
    assert everything(project)[1] != before[0]
    assert project.call("tasks", "revert", run, "--reason", "breaks").code == 0
    first, *after = everything(project)
    assert (after, record(project, run)) == (before, ("reverted", first, ""))
    assert read_document(project, run, "revert/record.json")["delivered"] == at(project, "main~1")

    twice = project.call("tasks", "revert", run)
    assert (twice.code, f"reverted already, by commit {first[:12]}" in twice.err) == (4, True), twice
    assert f"steersman tasks redo {run} codegen" in twice.err
    assert at(project) == first

    assert project.call("tasks", "redo", run, "codegen", "once more").code == 3
    assert project.call("tasks", "accept", run).code == 0
    assert (at(project, "main~1"), files(project)["calc.py"].decode()) == (first, RIGHT_CODE + END)
    assert project.call("tasks", "revert", run).code == 0
    second, *after = everything(project)
    assert (after, record(project, run)) == (before, ("reverted", second, ""))
    assert task_phases(project, run)[-5:] == ["accept", "done", "accept", "revert", "done"]
    assert project.call("audit", "verify", run).code == 0


def test_what_came_after_it_stays(merged: tuple[Project, str]):
    """Later commits to other files, and to other lines of the same file, are all that is left."""
    project, run = merged
    committed(project, "other.py", "x = 1\n")
    committed(project, "calc.py", RIGHT_CODE + END.replace("the end", "the very end"))
    assert project.call("tasks", "revert", run).code == 0
    left = files(project)
    assert left["calc.py"].decode() == WRONG_CODE + END.replace("the end", "the very end")
    assert left["other.py"] == b"x = 1\n"
    assert project.git("show", "--format=", "--name-only", "main").split() == ["calc.py"]
    assert (everything(project)[3], record(project, run)[0]) == ("", "reverted")


def test_a_conflict_leaves_everything_and_the_task_goes_on(merged: tuple[Project, str]):
    """The paths and the way out are named, nothing moves; undone by hand with git, the task records that commit."""
    project, run = merged
    made = at(project)
    committed(project, "calc.py", "def add(a, b):\n    return b + a\n" + END)
    before = everything(project)
    result = project.call("tasks", "revert", run, "--reason", "breaks")
    assert result.code == 3, result
    assert "later commits have changed the same lines of calc.py; nothing was changed" in result.out
    assert f"git revert {made[:12]}" in result.out
    assert everything(project) == before
    status, commit, detail = record(project, run)
    assert (status, commit, "calc.py" in detail) == ("conflicted", "", True)
    assert now(project, run) == ("accept", "decide")

    (project.repo / "calc.py").write_text("def add(a, b):\n    return 0\n" + END)
    project.git("commit", "-qam", f'Revert "Fix add"\n\nThis reverts commit {made}.')
    before = everything(project)
    assert project.call("tasks", "revert", run, "--reason", "by hand").code == 0
    assert (everything(project), record(project, run)) == (before, ("reverted", before[0], ""))
    assert now(project, run) == ("done", "reverted")
    assert project.call("audit", "verify", run).code == 0


def test_undone_by_somebody_already(merged: tuple[Project, str]):
    """Where the branch does not have it any more the task says by which commit, and makes none."""
    project, run = merged
    mine = committed(project, "calc.py", WRONG_CODE + END)
    committed(project, "other.py", "x = 1\n")
    before = everything(project)
    assert project.call("tasks", "revert", run).code == 0
    assert everything(project) == before
    status, commit, detail = record(project, run)
    assert (status, commit, "is undone in main already" in detail) == ("reverted", mine, True)


def test_a_persons_own_work_is_in_nobodys_way(ready: Ready):
    """Uncommitted changes stop a delivery and a revert before anything moves; not a byte of them is lost."""
    project, run = ready()

    def stopped(*words: str) -> None:
        (project.repo / "calc.py").write_text("mine\n")
        project.git("add", "calc.py")
        (project.repo / "test_calc.py").write_text("mine too\n")
        (project.repo / "notes.txt").write_text("and mine\n")
        before = everything(project)
        result = project.call("tasks", *words)
        assert (result.code, "with uncommitted changes" in result.out) == (3, True), result
        assert everything(project) == before
        project.git("checkout", "-q", "HEAD", "calc.py", "test_calc.py")

    stopped("accept", run)
    assert now(project, run) == ("accept", "decide")
    assert project.call("tasks", "accept", run).code == 0
    stopped("revert", run)
    assert record(project, run)[:2] == ("blocked", "")
    assert project.call("tasks", "revert", run).code == 0
    assert files(project)["calc.py"].decode() == WRONG_CODE + END
    assert (project.repo / "notes.txt").read_text() == "and mine\n"


def test_what_was_never_merged(project: Project):
    """It says that main has nothing to take back, which branch has it, and what to do; merged, it is taken back, and a
    file of the person's that is in its way stays."""
    (project.repo / "old.py").write_text("old = 1\n")
    both = [{"write": "calc.py", "text": RIGHT_CODE}, {"delete": "old.py"}]
    plan = {
        **TASK_PLAN,
        "files": [*TASK_PLAN["files"], {"path": "old.py", "intent": "delete", "summary": "gone"}],
    }
    configure_tasks(
        project,
        task_crew(planner=[{"mode": "proposal", "reply": plan}], coder=[{**coder_step(), "edit": both}]),
    )
    before = at(project, "main^{tree}")
    assert project.call("tasks", "new", "Fix add").code == 3
    run = project.only_run()
    assert project.call("tasks", "accept", run).code == 0
    kept = at(project, f"steersman/{run}")
    result = project.call("tasks", "revert", run)
    assert result.code == 3, result
    for words in (
        f"run {run} is not in main: there is nothing to revert, and",
        f"the branch steersman/{run} has it. Delete it with `git branch -D steersman/{run}`",
    ):
        assert words in result.out, result
    assert record(project, run)[:2] == ("not_merged", "")
    assert (at(project, "main^{tree}"), at(project, f"steersman/{run}")) == (before, kept)
    assert project.call("tasks", "accept", run).code == 0  # it stays accepted, and is not handed over twice

    project.git("merge", "-q", "--no-ff", "-m", "merge", f"steersman/{run}")
    (project.repo / "old.py").write_text("mine\n")
    result = project.call("tasks", "revert", run)
    assert (result.code, "old.py" in result.out, record(project, run)[0]) == (3, True, "blocked")
    assert (project.repo / "old.py").read_text() == "mine\n"
    (project.repo / "old.py").unlink()
    assert project.call("tasks", "revert", run).code == 0
    assert (at(project, "main^{tree}"), record(project, run)[0]) == (before, "reverted")
