"""A project that has changed since its intent was sealed: what is cited and gone is named, before planning and after."""

import json

import pytest
from tests.support.plan_project import PlanProject

CHANGED = "the project has changed since"


@pytest.fixture
def plans(shop_project):
    return PlanProject(shop_project)


def touched(plans):
    """Every line of the project's manifest is another one: nothing stands there any more that was found in it."""
    manifest = plans.project.repo / "pyproject.toml"
    manifest.write_text("\n".join(f"{line}  # so" for line in manifest.read_text().splitlines()) + "\n")


@pytest.mark.parametrize(
    "around",
    [
        lambda text: "\n# nothing that matters\n" + text,
        lambda text: text.replace('version = "0.3.0"', 'version = "0.3.1"'),
        lambda text: text.replace("line-length = 100", "line-length = 120"),
    ],
    ids=["a line more", "another version", "another width"],
)
def test_what_stands_around_it_takes_no_evidence_away(plans, around):
    """A place is known by its own lines: another line of the file may change, and nothing that is cited is gone."""
    value = plans.intent(mode="full_auto")
    name = plans.write(value)
    manifest = plans.project.repo / "pyproject.toml"
    before = manifest.read_text()
    manifest.write_text(around(before))
    assert manifest.read_text() != before
    assert plans.project.call("intent", "check", name, "--json").json()["remarks"] == []
    assert plans.plan(name).state == "DONE"


def stale(value):
    """The references by field, as the intent has them."""
    return {
        f"planned_commands[{n}].evidence_refs": c["evidence_refs"]
        for n, c in enumerate(value["planned_commands"])
    }


def test_a_plan_that_failed_for_it_names_field_reference_and_fix(plans):
    """Nobody is asked: the commands are left out, their phase has nothing to show, and the reason is told first."""
    value = plans.intent(mode="full_auto")
    name = plans.write(value)
    assert plans.project.call("intent", "check", name).code == 0
    touched(plans)
    done = plans.plan(name)
    assert (done.state, done.failure["cause"]) == ("BLOCKED", "evidence_unfound")
    named = {p["field"]: p["message"] for p in done.failure["problems"] if "cannot be found" in p["message"]}
    assert named
    assert named.keys() <= stale(value).keys()
    for field, message in named.items():
        assert [ref for ref in stale(value)[field] if ref.startswith("scan://") and ref in message]
        (how,) = [r["how"] for r in done.failure["recovery_suggestions"] if r["change"] == field]
        assert CHANGED in how
    field = next(iter(named))
    explained = plans.project.call("plan", "explain", done.run).out
    assert f"{field}: {named[field]}" in explained
    assert CHANGED in explained


@pytest.mark.parametrize(("mode", "code"), [("full_auto", 4), ("semi_auto", 0), ("interactive", 0)])
def test_a_check_looks_at_the_project(plans, mode, code):
    """Every reference that leads nowhere, with its line: a problem where nobody would be asked, else a remark."""
    name = plans.write(plans.intent(mode=mode))
    touched(plans)
    result = plans.project.call("intent", "check", name, "--json")
    data = result.json()
    assert (result.code, data["result"]) == (code, "refuse" if code else "accept")
    found = data["problems" if code else "remarks"]
    assert found
    assert all(" leads nowhere" in p["message"] and CHANGED in p["fix"] and p["line"] for p in found)
    assert all(p["field"].startswith("planned_commands[") for p in found)
    assert not data["remarks" if code else "problems"]


def test_what_is_cited_for_the_whole_alone_is_a_remark(plans):
    """It stops no command; whoever reads the plan is told that it says nothing."""
    value = plans.intent(mode="full_auto")
    value["evidence_refs"].append("fact://language/cobol")
    data = plans.project.call("intent", "check", plans.write(value), "--json").json()
    assert data["problems"] == []
    assert [p["message"] for p in data["remarks"]] == ["fact://language/cobol leads nowhere"]


def test_a_check_without_memory_or_root_says_so(shop_project):
    """What planning would not have is a remark, and the rest is looked at all the same."""
    plans = PlanProject(shop_project, remembers=False)
    value = plans.intent()
    value["scope"]["repo_root"] = "elsewhere"
    noted = plans.project.call("intent", "check", plans.write(value), "--json").json()["remarks"]
    assert {"memory", "scope.repo_root"} <= {p["field"] for p in noted}


def test_a_rule_that_warns_only_of_the_rest_is_shown_with_the_plan(plans):
    """A check is left out because nothing speaks for it any more; that nothing checks the change now is told, not denied."""
    value = plans.intent("--workflow", "wf_refactor", mode="full_auto")
    checks = {"cmd_run_unit_tests", "cmd_run_integration_tests", "cmd_build", "cmd_lint", "cmd_check_types"}
    value["selected_workflows"][0]["phases"] = ["analysis", "implementation"]
    for command in value["planned_commands"]:
        if command["command_id"] in checks:
            command["evidence_refs"] = ["fact://test_command/gone"]
    done = plans.plan(plans.write(value), "--out", "plan")
    assert done.state == "DONE", done.told
    decisions = json.loads((plans.project.repo / "plan" / "rule_decisions.json").read_text())
    (edit,) = [d for d in decisions if d["command_id"] == "cmd_edit_files"]
    fired = {r["rule_id"] for r in edit["rules"] if r["outcome"] == "fired"}
    assert (edit["decision"], "rule_writes_are_verified" in fired) == ("warn", True)
    assert "no check is planned" in (plans.project.repo / "plan" / "plan.md").read_text()
