"""Tasks after their delivery: built again, lost, empty; whatever the branch says is what is told, and all of it comes back out."""

import shutil

import pytest
from tests.support.sample_project import RIGHT_CODE, WRONG_CODE, Project
from tests.support.task_project import (
    TASK_PLAN,
    coder_step,
    configure_tasks,
    read_document,
    task_crew,
    write_crew,
)

pytestmark = pytest.mark.usefixtures("project_snapshots")

SECOND = RIGHT_CODE + "# again\n"


def apart(project: Project, deliver: str = "merge", **instead) -> Project:
    """What runs leave behind lies outside of what git sees."""
    configure_tasks(project, task_crew(**instead), deliver=deliver)
    (project.repo / ".git" / "info" / "exclude").write_text(".steersman/\n")
    return project


@pytest.fixture
def alone(project: Project) -> Project:
    return apart(project)


def accepted(project: Project, *more: str) -> str:
    assert project.call("tasks", "new", "Fix add", *more).code == 3
    run = project.call("tasks", "list", "--json").json()[0]["run"]
    assert project.call("tasks", "accept", run).code == 0
    return run


def built_again(project: Project, run: str, text: str) -> None:
    write_crew(project, task_crew(coder=[coder_step(text)]))
    assert project.call("tasks", "redo", run, "codegen").code == 3


def test_everything_that_was_delivered_is_taken_back(alone: Project):
    """Delivered, built again, delivered again: one commit takes both back, and the tree is what it was before the first."""
    before = alone.git("rev-parse", "main^{tree}")
    run = accepted(alone)
    built_again(alone, run, SECOND)
    assert alone.call("tasks", "accept", run).code == 0
    assert (alone.repo / "calc.py").read_text() == SECOND
    made = alone.git("log", "--format=%H", f"--grep=^Steersman-Run: {run}$", "main").split()
    assert len(made) == 2
    assert alone.call("tasks", "revert", run, "--reason", "both").code == 0
    assert alone.git("rev-parse", "main^{tree}") == before
    message = alone.git("log", "-1", "--format=%B", "main")
    assert [f"Steersman-Reverts: {commit}" in message for commit in made] == [True, True]
    assert read_document(alone, run, "revert/record.json")["status"] == "reverted"


def both(project: Project, deliver: str) -> str:
    """A task that was delivered twice: calc.py, then more.py beside it."""
    meant = {"calc.py": "update", "more.py": "create"}
    files = [{"path": name, "intent": intent, "summary": "x"} for name, intent in meant.items()]
    plan = [{"mode": "proposal", "reply": {**TASK_PLAN, "files": files}}]
    apart(project, deliver, planner=plan)
    run = accepted(project)
    if deliver == "branch":
        project.git("merge", "-q", "--ff-only", f"steersman/{run}")
    write_crew(project, task_crew(planner=plan, coder=[coder_step("more = 1\n", "more.py")]))
    assert project.call("tasks", "redo", run, "codegen").code == 3
    assert project.call("tasks", "accept", run).code == 0
    return run


def has(project: Project, ref: str = "main") -> tuple[bool, bool]:
    """Whether a branch has the first delivery, and the second."""
    names = project.git("ls-tree", "--name-only", ref).split()
    return project.git("show", f"{ref}:calc.py") == RIGHT_CODE, "more.py" in names


def undone(project: Project, run: str, how: str) -> None:
    """Both deliveries are undone, in some way."""
    match how:
        case "by hand":
            project.git("rm", "-q", "more.py")
            (project.repo / "calc.py").write_text(WRONG_CODE)
            project.git("commit", "-qam", "back by hand")
        case "taken back":
            assert project.call("tasks", "revert", run).code == 0
    assert has(project) == (False, False)


@pytest.mark.parametrize("how", ["by hand", "taken back"])
def test_the_whole_task_is_handed_over_again(project: Project, how: str):
    """Delivered twice and undone in whatever way: what is shown, reviewed and delivered then is all of it, in one commit."""
    run = both(project, "merge")
    assert has(project) == (True, True)
    undone(project, run, how)
    assert project.call("tasks", "redo", run, "codegen").code == 3
    shown = project.call("tasks", "accept", run)
    assert shown.code == 0, shown
    assert ("+++ b/calc.py" in shown.out, "+++ b/more.py" in shown.out) == (True, True)
    assert has(project) == (True, True)
    assert project.call("tasks", "revert", run).code == 0
    assert has(project) == (False, False)


def test_what_a_task_has_created_is_its_own(project: Project):
    """Planned to be created, delivered, and changed when the task is built again: that is no other file than was planned."""
    run = both(project, "merge")
    for text in ("more = 2\n", "more = 3\n"):
        write_crew(project, task_crew(coder=[coder_step(text, "more.py")]))
        assert project.call("tasks", "redo", run, "codegen").code == 3
        assert project.call("tasks", "accept", run).code == 0
        assert project.git("show", "main:more.py") == text
    assert "scope_mismatch" not in [e.get("event") for e in project.entries(run)]
    undone(project, run, "taken back")


def test_the_documents_of_a_task_that_was_taken_back_can_be_restored(project: Project):
    """What the change is a change of is another commit then; its documents are those that were recorded."""
    run = both(project, "merge")
    undone(project, run, "taken back")
    folder = project.repo / ".steersman" / "runs" / run
    before = {p: p.read_bytes() for p in sorted((folder / "code").rglob("*")) if p.is_file()}
    shutil.rmtree(folder)
    result = project.call("tasks", "restore", run)
    assert result.code == 0, result
    assert {p: p.read_bytes() for p in sorted((folder / "code").rglob("*")) if p.is_file()} == before
    assert "NOT as recorded" not in project.call("tasks", "show", run).out


def test_a_branch_is_made_anew_on_what_is_there(project: Project):
    """Merged by the person, delivered again, taken back: another delivery stands on the branch as it is, and can be merged."""
    run = both(project, "branch")
    assert (has(project), has(project, f"steersman/{run}")) == ((True, False), (True, True))
    project.git("merge", "-q", "--squash", f"steersman/{run}")
    project.git("commit", "-qm", "squashed")
    undone(project, run, "taken back")
    second = project.call("tasks", "new", "Another", "--after", run, "--json").json()["run"]
    assert project.call("tasks", "redo", run, "codegen").code == 3
    assert project.call("tasks", "accept", run).code == 0
    project.git("merge", "-q", "--ff-only", f"steersman/{run}")
    assert has(project) == (True, True)
    assert project.call("tasks", "next", second).code == 3
    assert "others_there" in [e.get("event") for e in project.entries(second)]


def test_half_of_a_task_is_not_there(project: Project):
    """One of two deliveries is reverted: whoever comes after it waits, and the task does not say that it is delivered."""
    run = both(project, "merge")
    project.git("revert", "--no-edit", "main~1")
    assert has(project) == (False, True)
    data = project.call("tasks", "new", "Another", "--after", run, "--json").json()
    assert data["state"] == "planning"
    assert project.call("tasks", "redo", run, "accept").code == 3
    assert project.call("tasks", "accept", run).code == 3
    assert has(project) == (False, True)


def test_what_was_reopened_says_where_its_change_is(alone: Project):
    """While a delivered task is at work again its change stays; who wants it out is told how."""
    run = accepted(alone)
    write_crew(alone, task_crew(planner=[{"mode": "proposal", "error": "provider_crashed"}]))
    assert alone.call("tasks", "redo", run, "planning").code == 3
    result = alone.call("tasks", "revert", run)
    made = alone.git("rev-parse", "main").strip()
    assert (result.code, f"`git revert {made[:12]}` reverts it by hand" in result.err) == (4, True)


@pytest.mark.parametrize("deliver", ["merge", "branch"])
def test_what_was_lost_is_handed_over_again(project: Project, deliver: str):
    """Undone by hand, or its branch deleted: built again to the very same tree, it is not said to be delivered; it is delivered."""
    configure_tasks(project, task_crew(), deliver=deliver)
    run = accepted(project)
    if deliver == "merge":
        project.git("revert", "--no-edit", "main")
        assert (project.repo / "calc.py").read_text() == WRONG_CODE
    else:
        project.git("branch", "-D", f"steersman/{run}")
    assert project.call("tasks", "redo", run, "codegen").code == 3
    assert "delivery_lost" in [e.get("event") for e in project.entries(run)]
    assert project.call("tasks", "accept", run).code == 0
    where = "main" if deliver == "merge" else f"steersman/{run}"
    assert project.git("show", f"{where}:calc.py") == RIGHT_CODE
    assert project.call("audit", "verify", run).code == 0


def test_what_was_lost_while_somebody_decides(project: Project):
    """The decision was reopened, then the change was undone by hand: a yes finds that out, and decides nothing."""
    configure_tasks(project, task_crew(), deliver="merge")
    run = accepted(project)
    assert project.call("tasks", "redo", run, "accept").code == 3
    project.git("revert", "--no-edit", "main")
    result = project.call("tasks", "accept", run)
    assert result.code == 3, result
    assert project.call("tasks", "accept", run).code == 0
    assert (project.repo / "calc.py").read_text() == RIGHT_CODE


def test_an_empty_change_is_never_accepted(project: Project):
    """Somebody has committed the same meanwhile: nothing is left, which is told; nothing is delivered, and no commit is made."""
    configure_tasks(project, task_crew(), deliver="merge")
    assert project.call("tasks", "new", "Fix add").code == 3
    run = project.only_run()
    (project.repo / "calc.py").write_text(RIGHT_CODE)
    project.git("commit", "-qam", "by hand")
    tip = project.git("rev-parse", "main")
    result = project.call("tasks", "accept", run)
    assert (result.code, "main has every change of this task already" in result.out) == (3, True)
    again = project.call("tasks", "accept", run)
    assert (again.code, "there is nothing to accept" in again.err) == (4, True)
    assert project.call("tasks", "next", run, "--override", "never mind").code == 4
    assert project.git("rev-parse", "main") == tip


def test_nothing_is_waived_while_a_document_is_damaged(project: Project):
    """A folder in the place of a report cannot be put back: the task stays where it is, and an override is refused."""
    configure_tasks(project, task_crew())
    assert project.call("tasks", "new", "Fix add", "--step").code == 3
    run = project.only_run()
    for _ in range(4):
        assert project.call("tasks", "next", run).code == 3
    report = project.repo / ".steersman" / "runs" / run / "test" / "report.json"
    text = report.read_text()
    report.unlink()
    report.mkdir()
    (report / "mine").write_text("mine\n")
    for words, code in (
        (("next", run), 3),
        (("restore", run), 3),
        (("next", run, "--override", "who cares"), 4),
    ):
        result = project.call("tasks", *words)
        assert result.code == code, result
        (task,) = project.call("tasks", "list", "--json").json()
        assert (task["phase"], task["step"]) == ("test", "damaged")
    assert "test/report.json" in project.call("gates", run).out
    (report / "mine").unlink()
    report.rmdir()
    assert project.call("tasks", "restore", run).code == 3
    assert report.read_text() == text
    assert project.call("tasks", "next", run).code == 3
    assert project.call("tasks", "accept", run).code == 0
