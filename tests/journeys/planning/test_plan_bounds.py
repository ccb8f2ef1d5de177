"""How far a plan may reach, and what speaks for it: whole runs that try to get around either (001 §5–§10)."""

import json

import pytest
from tests.support.plan_project import PLANNED_FILE, PlanProject


@pytest.fixture
def plans(shop_project):
    return PlanProject(shop_project)


def test_a_scope_answer_stays_in_the_root_and_off_what_watches_over_it(plans):
    """§7: an answer that names a file of git or steersman, or one outside repo_root, is refused; the questions stay open."""
    value = plans.intent(scoped=False)
    value["scope"]["repo_root"] = "src"
    for command in value["planned_commands"]:
        command["evidence_refs"] = ["fact://language/python"]  # that is all there is in src
    waits = plans.plan(plans.write(value))
    assert waits.state == "AWAITING_ANSWERS", waits.failure
    for file, why in (
        (".git/hooks/pre-commit", "git's"),
        (".steersman/registry/rules/mine.yaml", "steersman's"),
        ("steersman.toml", "steersman's"),
        ("README.md", "lies outside of src"),
    ):
        refused = plans.answers(waits.run, stop=("text", f"{PLANNED_FILE}\n{file}")).said
        assert (refused.code, why in refused.out + refused.err) == (4, True), refused
    assert plans.project.call("why", waits.run).out.count("waiting") >= 1
    done = plans.answers(waits.run, stop=("whole_project", ""))
    assert done.state == "DONE", done.failure
    with open(f"{done.plan}/review_pack.json", encoding="utf-8") as file:
        assert json.load(file)["change_impact"]["within"] == ["src"]
    with open(f"{done.plan}/review_pack.md", encoding="utf-8") as file:
        assert "files: anywhere in src" in file.read()


def test_a_lock_on_files_bounds_targets_answers_and_the_plan(plans):
    """§2, §9: a target outside the lock is a problem of the intent; an answer stays within it, and the plan shows it."""
    value = plans.intent()
    value["constraints"]["lock_scope"] = {"mode": "files", "paths": ["docs/"]}
    blocked = plans.plan(plans.write(value))
    assert blocked.state == "BLOCKED"
    (problem,) = blocked.failure["problems"]
    assert problem["field"] == "scope.targets.files[0]"
    assert "constraints.lock_scope.paths" in problem["message"]

    value["scope"]["targets"] = {}
    waits = plans.plan(plans.write(value))
    refused = plans.answers(waits.run, stop=("text", PLANNED_FILE)).said
    assert (refused.code, "lies outside of docs/" in refused.out + refused.err) == (4, True), refused
    done = plans.answers(waits.run, stop=("whole_project", ""))
    assert done.state == "DONE", done.failure
    with open(f"{done.plan}/review_pack.json", encoding="utf-8") as file:
        impact = json.load(file)["change_impact"]
    assert (impact["within"], impact["lock"]) == (["docs/"], value["constraints"]["lock_scope"])
    for name in ("plan.md", "review_pack.md"):
        with open(f"{done.plan}/{name}", encoding="utf-8") as file:
            assert "the plan changes no others: docs/" in file.read()


def test_made_up_evidence_speaks_for_nothing(plans):
    """§5, I4: what leads nowhere, and what only says what a command is, leaves it out; in full_auto nobody is asked."""
    value = plans.intent(mode="full_auto")
    made_up = {
        "cmd_read_code": f"intent://{value['id']}/nothing/at/all/here",
        "cmd_search_code": "doc://pyproject.toml#L999",
        "cmd_read_history": "rule://rule_reading_is_free",
        "cmd_open_draft_pull_request": "registry://command/cmd_open_draft_pull_request",
    }
    for command in value["planned_commands"]:
        if command["command_id"] in made_up:
            command["evidence_refs"] = [made_up[command["command_id"]]]
    done = plans.plan(plans.write(value))
    assert done.state == "DONE", done.failure
    with open(f"{done.plan}/review_pack.json", encoding="utf-8") as file:
        review = json.load(file)
    assert sorted(told.partition(":")[0] for told in review["excluded"]) == sorted(made_up)
    assert all("unmet_evidence" in told for told in review["excluded"])
    assert made_up.keys().isdisjoint(action["command_id"] for action in review["actions"])


def test_what_the_whole_intent_makes_up_is_told_and_satisfies_no_rule(plans):
    """§4: a reference that leads nowhere is a risk of the plan, and not the evidence that a rule requires."""
    value = plans.intent(mode="full_auto")
    value["evidence_refs"].append("fact://ci/jenkins")
    name = plans.write(value)
    done = plans.plan(name)
    assert done.state == "DONE", done.failure
    with open(f"{done.plan}/review_pack.json", encoding="utf-8") as file:
        risks = json.load(file)["plan_summary"]["risks"]
    assert "medium: the intent cites what cannot be found: fact://ci/jenkins" in risks
    plans.rule(
        "rule_story_ci", "warn", "warn", when="facts.complete",
        evidence_required=["fact://ci/jenkins", "known:ci"],
    )  # fmt: skip
    blocked = plans.plan(name)
    assert blocked.state == "BLOCKED"
    assert "without fact://ci/jenkins" in json.dumps(blocked.failure)


def test_a_doubled_signature_is_not_the_plan_that_was_frozen(plans):
    """§10: `plan verify` finds every change of a plan's folder, also one under which every signature still holds."""
    assert plans.plan(plans.write(plans.intent(mode="full_auto")), "--out", "plan").state == "DONE"
    file = plans.project.repo / "plan" / "plan.dsse.json"
    value = json.loads(file.read_text())
    value["signatures"] *= 2
    file.write_text(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
    result = plans.project.call("plan", "verify", "plan", "--json")
    assert (result.code, result.json()["signature"]) == (1, "does not hold")
    assert "2 signatures" in result.out


def test_a_name_that_leads_through_a_link_is_remarked(plans):
    """§2: a folder of the repository that is a link leads anywhere: drafting and checking say so, with the link."""
    (plans.project.repo / "etc").symlink_to("/etc")
    files = ("--file", "etc/hosts", "--file", PLANNED_FILE)
    drafted = plans.project.call("intent", "new", "Fix the hosts", *files, "--json")
    assert "etc/hosts leads through etc, which is a link" in drafted.out + drafted.err
    data = plans.project.call("intent", "check", plans.write(drafted.json()["intent"]), "--json").json()
    (noted,) = [p for p in data["remarks"] if "which is a link" in p["message"]]
    assert (noted["field"], noted["fix"]) == ("scope.targets.files[0]", "name the files themselves")
