"""Documents of a task that hands destroy while nobody works on it: named wherever somebody looks, and put back at any time."""

import shutil
from pathlib import Path

import pytest
from tests.support.sample_project import Project
from tests.support.task_project import configure_tasks, task_crew

pytestmark = pytest.mark.usefixtures("project_snapshots")


def standing(project: Project) -> tuple[str, Path, tuple]:
    """A task at its open decision, its folder, and where it is."""
    configure_tasks(project, task_crew())
    assert project.call("tasks", "new", "Fix add").code == 3
    run = project.only_run()
    return run, project.repo / ".steersman" / "runs" / run, where(project)


def where(project: Project) -> tuple:
    (task,) = project.call("tasks", "list", "--json").json()
    return task["phase"], task["step"], task["status"], len(project.entries(task["run"]))


def everything(folder: Path) -> dict[str, bytes]:
    found = (p for p in folder.rglob("*") if p.is_file() and "aside" not in p.relative_to(folder).parts)
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


@pytest.mark.parametrize("accepted", [False, True], ids=["decide", "done"])
def test_destroyed_documents_are_named_and_put_back(project: Project, accepted: bool):
    """Changed, deleted, planted, a copy as well, or the whole folder: told by each look with what to type, put back by that
    without a step of the run, and what was planted is kept."""
    run, folder, _ = standing(project)
    assert not accepted or project.call("tasks", "accept", run).code == 0
    before, here = everything(folder), where(project)
    again = f"`steersman tasks restore {run}`"
    (folder / "test" / "report.json").write_text("{}")
    (folder / "code" / "diff.patch").unlink()
    (folder / "code" / "files" / "calc.py").write_text("mine")
    (folder / "review" / "evil").write_text("mine")
    for words in (("tasks",), ("show", run), ("why", run), ("tasks", "show", run)):
        output = project.call(*words).out
        assert "test/report.json does not fit its schema" in output, output
        assert f"code/diff.patch is deleted: {again} puts the recorded file back" in output
        assert f"code/files/calc.py is not what was recorded: {again}" in output
        assert f"review/evil is not on record: steersman did not write it: {again} moves it aside" in output
    done = project.call("tasks", "restore", run)
    assert done.code == 0, done
    assert "code/diff.patch is deleted: it was restored" in done.out
    assert "moved aside: review/evil, now aside/1/review/evil" in done.out
    assert (everything(folder), where(project)) == (before, here)
    shutil.rmtree(folder)
    assert f"test/report.json is deleted: {again}" in project.call("tasks").out
    assert project.call("tasks", "restore", run).code == 0
    assert (everything(folder), where(project)) == (before, here)
    late = project.call("tasks", "restore", run)
    assert (late.code, "there is nothing to restore" in late.err) == (4, True), late
    assert accepted or project.call("tasks", "accept", run).code == 0


def test_what_cannot_be_put_right_is_told_with_the_rest(project: Project):
    """A name that holds a line break, and a folder in the place of a document: told, left where they are, and the rest is
    put right all the same."""
    run, folder, here = standing(project)
    strange, copy = folder / "review" / "a\nb", folder / "code" / "files" / "c\nd"
    for path in (strange, copy, folder / "review" / "plain"):
        path.write_text("mine")
    (folder / "test" / "report.json").unlink()
    (folder / "test" / "report.json").mkdir()
    (folder / "test" / "report.json" / "theirs").write_text("mine")
    (folder / "code" / "diff.patch").write_text("")
    assert "move it away by hand" in project.call("tasks").out
    result = project.call("tasks", "restore", run)
    assert result.code == 1, result
    assert "moved aside: review/plain" in result.out
    assert "code/diff.patch is empty: it was restored" in result.out
    assert result.out.count("cannot be moved aside: move it away by hand and try again") == 2
    assert "report.json is a folder; put that right and try again" in result.out
    assert (strange.read_text(), copy.read_text()) == ("mine", "mine")
    strange.unlink()
    copy.unlink()
    shutil.rmtree(folder / "test" / "report.json")
    assert project.call("tasks", "restore", run).code == 0
    assert where(project) == here


def test_after_its_texts_are_pruned(project: Project):
    """Nothing is left to put a document back from: that is said, and nothing is claimed to be as recorded."""
    run, folder, _ = standing(project)
    assert project.call("tasks", "accept", run).code == 0
    pruned = project.call("audit", "prune", run, "--yes")
    assert pruned.code == 0, pruned
    (folder / "test" / "report.json").write_text("{}")
    assert "test/report.json  NOT as recorded" in project.call("tasks", "show", run).out
    result = project.call("tasks", "restore", run)
    assert (result.code, "its texts were pruned" in result.err) == (4, True), result
