"""The base tree is checked before any agent is called: what stops a run there, and what lets it go on."""

import json

import pytest
from tests.support.sample_project import UNIT_CHECK, UNIT_TESTS, WRONG_CODE, roundtable_crew, roundtable_story
from tests.support.task_project import configure_tasks, task_crew

pytestmark = pytest.mark.usefixtures("project_snapshots")

LOUD = UNIT_TESTS.replace(
    "        self",
    "        import sys; print('said aloud'); print('said in anger', file=sys.stderr)\n        self",
)
STOP = {"rules": {"red_base": "stop"}}


def agent_calls(project, run):
    """How many calls of agents a run has planned."""
    return sum("role" in item["input"] for e in project.entries(run) for item in e.get("planned", ()))


@pytest.mark.parametrize("mode", ["proposal", "implementation"])
def test_a_red_base_stops_before_any_agent_is_called(project, mode):
    """The run ends with the reason, the failing test, both streams and the commands that help; nobody was called."""
    (project.repo / "test_calc.py").write_text(LOUD)
    done = project.run(roundtable_story(mode=mode, **STOP))
    data = done.json()
    assert (done.code, data["outcome"], data["base_problem"]) == (1, "base_not_green", "base_not_green")
    run = data["run"]
    assert agent_calls(project, run) == 0
    assert data["next"] == [f"steersman acknowledge {run}", "steersman run 'Fix add' --fix-base"]
    for words in (("show", run), ("why", run), ("report", run)):
        out = project.call(*words).out
        for part in ("unit: failed · exit code 1", "python3 -m unittest -q", "1 test failed: test_calc.Add.test_add",
                     "standard output:", "│ said aloud", "standard error", "│ FAILED (failures=1)"):  # fmt: skip
            assert part in out, (words, part, out)
    assert "nothing was spent" in project.call("show", run).out
    assert f"    steersman acknowledge {run}\n" in project.call().out


def test_acknowledged_failures_let_a_run_go_on(project):
    """`acknowledge` writes the names and nothing else, only when a person says so; then the same command goes through."""
    story = roundtable_story(mode="proposal", **STOP)
    run = project.run(story).json()["run"]
    path = project.repo / "steersman.toml"
    path.write_text("# ours\n" + path.read_text().replace("[checks]", "[checks]  # what counts"))
    before = path.read_text()
    asked = project.call("acknowledge", run)
    assert (asked.code, path.read_text()) == (2, before)
    assert "--yes" in asked.err
    assert "  test_calc.Add.test_add" in asked.out
    assert project.call("acknowledge", run, "no.such.test", "--yes").code == 2
    done = project.call("acknowledge", run, "test_calc.py::Add::test_add", "--yes")
    assert done.code == 0
    assert "steersman run 'Fix add'" in done.out
    added = 'known_failures = [\n    "test_calc.Add.test_add",\n]\n'
    assert path.read_text() == before.replace("version = 1\n", f"version = 1\n{added}")
    assert "nothing to add" in project.call("acknowledge", run).out
    again = project.call("run", "Fix add", "--json")
    assert (again.code, again.json()["outcome"]) == (3, "await_operator_confirm")


def test_known_failures_do_not_read_as_failures(project):
    """A check with none but acknowledged failures says so, live, at the end and afterwards, without their output."""
    (project.repo / "test_calc.py").write_text(
        UNIT_TESTS + "\n    def test_old(self):\n        self.fail('said in anger')\n"
    )
    project.prepare(roundtable_story(**STOP))
    path = project.repo / "steersman.toml"
    names = ["test_calc.Add.test_add", "test_calc.Add.test_old"]
    path.write_text(f"known_failures = {json.dumps(names)}\n" + path.read_text())
    done = project.call("run", "Fix add", "--mode", "implementation")
    assert done.code == 0, done
    (run,) = [line.split()[1].strip(":") for line in done.out.splitlines() if ": approved after" in line]
    words = "unit: passed but for 1 known failure"
    assert "check unit on the base tree: passed but for 2 known failures\n" in done.out
    assert "baseline_recorded: 2 tests, 2 known failures" in done.out
    assert f"  check {words} · 1 passed\n" in done.out
    assert f"  check {words} · 1 passed · python3 -m unittest -q\n" in done.out
    shown, report = project.call("show", run).out, project.call("report", run).out
    assert f"{words} · 1 passed" in shown
    assert "| unit | passed but for 1 known failure | 1 | 1 |" in report
    assert "| unit | passed but for 2 known failures | 1 | 2 |" in report
    for out in (done.out, shown, report):
        assert "said in anger" not in out
        assert "unit: failed" not in out
    (check,) = [c for c in project.call("show", run, "--json").json()["checks"] if c["name"] == "unit"]
    assert (check["verdict"], check["known"], check["tests"]) == ("known", 1, 1)


SUITE = """import calc, sys
print(f"  {77 + (calc.add(2, 3) == 5)} passing (1ms)")
print("  2 failing")
sys.exit(1)
"""


def test_a_check_without_names_is_acknowledged_as_a_whole(project):
    """It passes while as many tests pass as before and no more fail, and every view says what nobody judges."""
    (project.repo / "suite.py").write_text(SUITE)
    run = project.run(roundtable_story(checks={"suite": ["python3", "suite.py"]}, **STOP)).json()["run"]
    assert project.call("acknowledge", run, "--yes").code == 0
    done = project.call("run", "Fix add", "--mode", "implementation", "--json")
    assert (done.code, done.json()["outcome"]) == (0, "approved")
    said = "check suite is acknowledged as a whole: 78 tests passed, its failures are not judged by name"
    for word in ("show", "report"):
        assert said in project.call(word, done.json()["run"]).out


def test_a_check_that_tells_nothing_is_not_acknowledged(project):
    """Without names and without a count nothing could be judged later: it is refused with the ways out."""
    (project.repo / "suite.py").write_text("import sys; sys.exit(1)\n")
    run = project.run(roundtable_story(checks={"suite": ["python3", "suite.py"]}, **STOP)).json()["run"]
    refused = project.call("acknowledge", run, "--yes")
    assert refused.code == 2
    assert "suite cannot be acknowledged: its failures have no names" in refused.err
    assert "`summary` pattern" in refused.err
    assert "known_failures" not in (project.repo / "steersman.toml").read_text()


def test_a_run_that_is_to_fix_the_base(project):
    """With --fix-base the failures are not acknowledged: the change has to make them pass."""
    project.prepare(roundtable_story(**STOP))
    done = project.call("run", "Fix add", "--mode", "implementation", "--fix-base", "--json")
    assert (done.code, done.json()["outcome"]) == (0, "approved")
    worse = roundtable_crew(
        coder=[
            {"mode": "implementation", "say": "x", "edit": [{"write": "calc.py", "text": WRONG_CODE + "#\n"}]}
        ]
    )
    (project.place / "crew.yaml").write_text(json.dumps(worse))
    done = project.call(
        "run", "Fix add", "--mode", "implementation", "--max-iterations", "1", "--fix-base", "--json"
    )
    assert done.json()["outcome"] == "max_iterations_reached"


def test_a_check_that_cannot_start_stops_before_any_agent(project):
    """A program that is not there is no red test: the run says which, and what to correct; nothing acknowledges it."""
    done = project.run(roundtable_story(checks={"unit": UNIT_CHECK, "lint": ["no-such-linter"]}))
    data = done.json()
    assert (done.code, data["outcome"]) == (1, "check_cannot_start")
    assert agent_calls(project, data["run"]) == 0
    assert data["next"][0] == "steersman init --check"
    shown = project.call("show", data["run"]).out
    assert "lint: failed" in shown
    assert "not found" in shown
    refused = project.call("acknowledge", data["run"], "--yes")
    assert "lint cannot be acknowledged: it cannot start" in refused.err


def test_a_setup_that_fails_says_why(project):
    """The same lines as for a check, both streams, before any agent."""
    step = ["python3", "-c", "import sys; print('fetching'); sys.exit('no such index')"]
    done = project.run(roundtable_story(mode="proposal", setup=[step]))
    data = done.json()
    assert (done.code, data["outcome"]) == (1, "setup_failed")
    assert agent_calls(project, data["run"]) == 0
    shown = project.call("show", data["run"]).out
    for part in ("setup 1: failed · exit code 1", "│ fetching", "│ no such index"):
        assert part in shown


def test_a_base_without_tests_is_not_red(project):
    """The run begins, and says that the change has to bring the first tests."""
    (project.repo / "test_calc.py").unlink()
    done = project.run(roundtable_story(mode="proposal", **STOP))
    assert done.json()["outcome"] == "await_operator_confirm"
    assert "the change has to add the first ones" in project.call("show", done.json()["run"]).out


def test_a_failing_check_of_a_round_is_shown_everywhere(project):
    """`run`, `show`, the report and the coder's next prompt have the command, its end and both streams."""
    (project.repo / "test_calc.py").write_text(LOUD)
    coder = [
        {"mode": "implementation", "round": "1", "say": "x", "edit": [{"write": "calc.py", "text": WRONG_CODE + "#\n"}]},
        {"mode": "implementation", "say": "y", "edit": [{"write": "calc.py", "text": WRONG_CODE + "##\n"}]},
    ]  # fmt: skip
    story = roundtable_story(crew=roundtable_crew(coder=coder), rules={"repeated_failure": "same_failure"})
    project.prepare(story)
    done = project.call("run", "Fix add", "--mode", "implementation", "--max-iterations", "2")
    run = project.only_run()
    parts = (
        "python3 -m unittest -q", "standard output:", "│ said aloud", "standard error",
        "│ FAILED (failures=1)",
    )  # fmt: skip
    shown = {
        "run": done.out, "show": project.call("show", run).out, "report": project.call("report", run).out,
    }  # fmt: skip
    kept = map(json.loads, project.call("audit", "export", run, "--payloads").out.splitlines())
    texts = [str(line.get("text", "")) for line in kept]
    shown["prompt"] = next(text for text in texts if "## must fix" in text)
    for where, text in shown.items():
        for part in parts:
            assert part in text, (where, part, text)


def test_a_task_waits_on_a_red_base_before_its_first_planner(project):
    """The gate shows what fails and the commands that help; another try checks again."""
    configure_tasks(project, task_crew())
    path = project.repo / "steersman.toml"
    path.write_text(path.read_text().replace('red_base = "fix"', 'red_base = "stop"'))
    done = project.call("run", "Fix add", "--as", "task")
    run = project.only_run()
    assert (done.code, agent_calls(project, run)) == (3, 0)
    for part in (
        "unit: failed · exit code 1",
        "1 test failed: test_calc.Add.test_add",
        f"acknowledge {run}",
        f"tasks retry {run}",
    ):
        assert part in done.out, done.out
    helps = (f"  steersman acknowledge {run}\n", "  steersman run 'Fix add' --as task --fix-base\n")
    for words in (("show", run), ("why", run), ("gates", run), ("gates",)):
        out = project.call(*words).out
        assert [line for line in helps if line not in out] == [], (words, out)
    (gate,) = project.call("gates", run, "--json").json()
    assert [r["command"] for r in gate["remedies"]] == [line.strip() for line in helps]
    reasons = project.call("why", run, "--json").json()["reasons"]
    typed = [command for r in reasons if r["kind"] == "base" for command in r["commands"]]
    assert typed == [line.strip() for line in helps]
    again = project.call("tasks", "retry", run)
    assert (again.code, agent_calls(project, run)) == (3, 0)
    assert project.call("acknowledge", run, "--yes").code == 0
    fixed = project.call("run", "Fix add", "--as", "task", "--json")
    assert fixed.json()["gates"][0]["job"] == "decide"
