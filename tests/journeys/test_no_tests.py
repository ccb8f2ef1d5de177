"""A check that passes and tells no tests, through the command line: nothing is approved, and everybody is told why."""

import json

from tests.support.sample_project import TESTER_REPLY, Project, roundtable_crew, roundtable_story

SILENT = ["python3", "-c", "import calc"]


def test_a_check_that_tells_no_tests_is_named_wherever_one_looks(project: Project) -> None:
    """`show`, `why` and the report name the check, its exit code and the field of steersman.toml that helps."""
    tester = [{"mode": "implementation", "reply": {**TESTER_REPLY, "commands": [SILENT]}}]
    story = roundtable_story(max_iterations=1, checks={"unit": SILENT}, crew=roundtable_crew(tester=tester))
    ran = project.run(story)
    assert (ran.code, ran.json()["outcome"]) == (1, "max_iterations_reached"), ran
    for command in ("show", "why", "report"):
        said = " ".join(project.call(command, project.only_run()).out.split())
        assert "unit: no tests · exit code 0" in said or "| unit | no_tests | 0 |" in said, said
        assert "its exit code is 0, but it told no number of tests" in said, said


def test_an_exit_code_is_enough_where_a_person_chose_it(project: Project) -> None:
    """A run is approved by such a check alone, and `show` and the report say that nothing but its exit code spoke."""
    tester = [{"mode": "implementation", "reply": {**TESTER_REPLY, "commands": [SILENT]}}]
    project.prepare(roundtable_story(checks={"unit": SILENT}, crew=roundtable_crew(tester=tester)))
    path = project.repo / "steersman.toml"
    chosen = '{ run = ["python3", "-c", "import calc"], exit_code_is_enough = true }'
    written = path.read_text()
    path.write_text(written.replace(f"unit = {json.dumps(SILENT)}", f"unit = {chosen}"))
    assert path.read_text() != written
    ran = project.call("run", "Fix add", "--mode", "implementation", "--json")
    assert (ran.code, ran.json()["outcome"]) == (0, "approved"), project.call("show", project.only_run()).out
    for command in ("show", "report"):
        said = project.call(command, project.only_run()).out.replace("\\", "")
        assert "exit code only (chosen in steersman.toml)" in said, said
