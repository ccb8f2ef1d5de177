"""A project that an older version left, with parked runs of every machine, opens under this one and its runs go on."""

import json
from pathlib import Path

import pytest
from tests.support import task_project
from tests.support.parked_stores import GOLDEN_FOLDER, Project, list_runs, open_archive
from tests.support.plan_project import PlanProject
from tests.support.sample_project import RIGHT_CODE, roundtable_crew

ARCHIVES = sorted(GOLDEN_FOLDER.glob("parked-store-*.tar.xz"))


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """The recorded project, opened in a place of its own."""
    return open_archive(request.param, tmp_path)


def find_run(project: Project, machine: str, state: str) -> str:
    (run,) = [run for run, told in list_runs(project).items() if told[:2] == [machine, state]]
    return run


def test_every_run_is_where_it_was(project: Project, request: pytest.FixtureRequest):
    """Each run is listed as it was recorded, and its tape, its texts and its refs hold."""
    archive: Path = request.node.callspec.params["project"]
    recorded = json.loads(archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text())
    assert list_runs(project) == recorded
    assert {machine for machine, _, _ in recorded.values()} == {"roundtable", "task", "coordinator"}
    for run in recorded:
        assert project.call("audit", "verify", run).code == 0


def test_a_proposal_is_approved_and_delivered(project: Project):
    """The roundtable run builds, checks and delivers what was proposed before the upgrade."""
    task_project.write_crew(project, roundtable_crew())
    run = find_run(project, "roundtable", "finalize")
    done = project.call("approve", run)
    assert done.code == 0, done
    assert project.git("show", f"steersman/{run}:calc.py") == RIGHT_CODE
    assert project.call("audit", "verify", run).code == 0


def test_a_task_goes_on_to_its_end(project: Project):
    """The task goes through the phases that were left and is accepted."""
    task_project.write_crew(project, task_project.task_crew())
    run = find_run(project, "task", "planning")
    for _ in range(6):
        result = project.call("tasks", "next", run)
        assert result.code == 3, result
        if list_runs(project)[run][1] == "accept":
            break
    done = project.call("tasks", "accept", run, "--reason", "looks right")
    assert done.code == 0, done
    assert task_project.delivered_code(project, run) == RIGHT_CODE
    assert project.call("audit", "verify", run).code == 0


def test_questions_are_answered_and_the_plan_is_frozen(project: Project):
    """The plan that waited takes its answers; the one that was finished has the bytes that were frozen."""
    waiting = find_run(project, "coordinator", "AWAITING_ANSWERS")
    assert PlanProject(project, remembers=False).answered(waiting, "whole_project").state == "DONE"
    finished = [run for run, told in list_runs(project).items() if told[:2] == ["coordinator", "DONE"]]
    assert len(finished) == 2
    for run in finished:
        plan = project.repo / ".steersman" / "runs" / run / "plan"
        assert project.call("plan", "verify", str(plan)).code == 0
        assert project.call("audit", "verify", run).code == 0
