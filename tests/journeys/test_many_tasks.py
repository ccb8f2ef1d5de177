"""Several tasks in one repository at the same time; the proof has five of them, each with a process of its own."""

from concurrent.futures import ThreadPoolExecutor

from tests.support.parallel_tasks import (
    BOTH_CHANGES,
    COMMENT_TASK,
    CONFLICTING_TASK,
    SWAP_TASK,
    count_reverifications,
    create_task_folders,
    find_delivery_errors,
    find_leftovers,
    new_task_words,
    tasks_by_title,
)
from tests.support.sample_project import Project
from tests.support.task_project import read_document


def test_three_at_once_on_one_file(project: Project):
    """Begun together; the second stands on what the first has left, reviewed and tested again before it is accepted, and
    says so; the third changes the same line, is built again, and each commit is exactly its own task's patch."""
    create_task_folders(project, (COMMENT_TASK, SWAP_TASK, CONFLICTING_TASK))
    with ThreadPoolExecutor(3) as crews:
        began = list(
            crews.map(
                lambda errand: project.call(*new_task_words(errand)),
                (COMMENT_TASK, SWAP_TASK, CONFLICTING_TASK),
            )
        )
    assert [said.code for said in began] == [3, 3, 3], began
    tasks = tasks_by_title(project)
    say, turn, lend = (tasks[errand.title]["run"] for errand in (COMMENT_TASK, SWAP_TASK, CONFLICTING_TASK))

    with ThreadPoolExecutor(2) as people:  # both say yes to what they saw; one of them is first
        told = dict(zip((say, turn), people.map(lambda run: project.call("tasks", "accept", run), (say, turn)), strict=True))  # fmt: skip
    assert sorted(said.code for said in told.values()) == [0, 3], told
    second = next(run for run, said in told.items() if said.code == 3)
    assert count_reverifications(project, second) == 1
    before = project.git("rev-parse", "main")
    shown = project.call("tasks", "accept", second)
    assert shown.code == 0, shown
    assert (
        "main has moved once since: the change was put on top of it, reviewed and tested again" in shown.out
    )
    assert project.git("rev-parse", "main~1") == before

    assert project.call("tasks", "accept", lend).code == 3  # it conflicts: built again on what is there now
    assert read_document(project, lend, "code/files.json")["outside"] == []
    assert project.call("tasks", "accept", lend).code == 0
    assert [find_delivery_errors(project, run) for run in (say, turn, lend)] == [[], [], []]
    assert count_reverifications(project, lend) == 1
    assert (project.repo / "calc.py").read_text() == BOTH_CHANGES
    assert find_leftovers(project) == []
    assert [project.call("audit", "verify", run).code for run in (say, turn, lend)] == [0, 0, 0]
