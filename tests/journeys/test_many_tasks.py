"""Several tasks in one repository at the same time; the proof has five of them, each with a process of its own."""

from concurrent.futures import ThreadPoolExecutor

from errand import paper
from fleet import BOTH, LEND, SAY, TURN, exactly_its_own, fit_out, litter, standing, verified_again, words
from voyage import Project


def test_three_at_once_on_one_file(project: Project):
    """Begun together; the second stands on what the first has left, reviewed and tested again before it is accepted, and
    says so; the third changes the same line, is built again, and each commit is exactly its own task's patch."""
    fit_out(project, (SAY, TURN, LEND))
    with ThreadPoolExecutor(3) as crews:
        began = list(crews.map(lambda errand: project.call(*words(errand)), (SAY, TURN, LEND)))
    assert [said.code for said in began] == [3, 3, 3], began
    tasks = standing(project)
    say, turn, lend = (tasks[errand.title]["run"] for errand in (SAY, TURN, LEND))

    with ThreadPoolExecutor(2) as people:  # both say yes to what they saw; one of them is first
        told = dict(zip((say, turn), people.map(lambda run: project.call("tasks", "accept", run), (say, turn)), strict=True))  # fmt: skip
    assert sorted(said.code for said in told.values()) == [0, 3], told
    second = next(run for run, said in told.items() if said.code == 3)
    assert verified_again(project, second) == 1
    before = project.git("rev-parse", "main")
    shown = project.call("tasks", "accept", second)
    assert shown.code == 0, shown
    assert (
        "main has moved once since: the change was put on top of it, reviewed and tested again" in shown.out
    )
    assert project.git("rev-parse", "main~1") == before

    assert project.call("tasks", "accept", lend).code == 3  # it conflicts: built again on what is there now
    assert paper(project, lend, "code/files.json")["outside"] == []
    assert project.call("tasks", "accept", lend).code == 0
    assert [exactly_its_own(project, run) for run in (say, turn, lend)] == [[], [], []]
    assert verified_again(project, lend) == 1
    assert (project.repo / "calc.py").read_text() == BOTH
    assert litter(project) == []
    assert [project.call("audit", "verify", run).code for run in (say, turn, lend)] == [0, 0, 0]
