"""A plan keeps the order of its workflow (001 §5): in the graph, in what people read, and in what rules go by."""

import json

import pytest
from tests.support.plan_project import PlanProject

COMMANDS = ("cmd_read_code", "cmd_edit_files", "cmd_commit", "cmd_run_unit_tests", "cmd_apply_migration", "cmd_back_up_database")  # fmt: skip
PHASES = ("implementation", "validation", "release")


@pytest.fixture
def plans(shop_project):
    """Plans in a project of its own."""
    return PlanProject(shop_project)


def migration(plans, *left_out):
    """An intent that changes a database, its commands in an order that is not the workflow's."""
    value = plans.intent()
    known = {
        id_: plans.project.call("registry", "show", id_, "--json").json()["content"]
        for id_ in COMMANDS
        if id_ not in left_out
    }
    value["selected_workflows"] = [{"workflow_id": "wf_data_migration", "phases": list(PHASES)}]
    value["selected_agents"] = [
        {"agent_id": f"agent_{role}", "role": role, "responsibilities": ["its part"]}
        for role in ("coder", "data_engineer", "tester")
    ]
    value["planned_commands"] = [
        {"command_id": id_, "intent": "For the migration.", "effects": spec["effects"], "risk_level": spec["risk_level"],
         "evidence_refs": ["fact://language/python"]}
        for id_, spec in known.items()
    ]  # fmt: skip
    value["risk"] = {"overall": "high", "drivers": ["rows"], "requires_review": ["release", "data"]}
    value["evidence_refs"] = ["fact://language/python"]
    return value


def planned(plans, value, out):
    """The plan of it, with every default taken."""
    policy = plans.policy(risk_profile="aggressive", constraints={"allow_destructive": True})
    now = plans.plan(plans.write(value), "--policy", policy, "--out", out)
    return plans.answers(now.run) if now.state == "AWAITING_ANSWERS" else now


def test_a_backup_and_its_reviews_come_before_the_migration(plans):
    """Backup, then the reviews of the release, then the migration; in the graph, plan.md, the actions and the drawing."""
    done = planned(plans, migration(plans), "../plan")
    assert done.state == "DONE", done.failure
    folder = plans.project.place / "plan"
    graph = json.loads((folder / "execution_graph.json").read_text())
    names = {n["node_id"]: n for n in graph["nodes"]}
    text = (folder / "plan.md").read_text()
    order = [
        "Edit existing", "Record a commit", "Run the unit tests", "Back a database up", "Review: release",
        "Apply a database",
    ]  # fmt: skip
    found = [
        min(n for n, line in enumerate(text.splitlines()) if word.casefold() in line.casefold())
        for word in order
    ]
    assert found == sorted(found), text
    into = {}
    for edge in graph["edges"]:
        into.setdefault(edge["to_node"], []).append((names[edge["from_node"]], edge["edge_type"]))
    at = {
        n["command_ref"]: n for n in graph["nodes"]
        if n["node_type"] == "action_proposal" and n["phase_ref"] in ("implementation", "release")
    }  # fmt: skip
    assert [(n["command_ref"], kind) for n, kind in into[at["cmd_commit"]["node_id"]]] == [
        ("cmd_edit_files", "sequential")
    ]
    way, node = [], at["cmd_apply_migration"]["node_id"]
    while node in into:
        node = into[node][0][0]["node_id"]
        way.append(names[node].get("command_ref") or (names[node].get("review_criteria") or [""])[0])
    assert way.index("release") < way.index("cmd_back_up_database")
    pack = json.loads((folder / "review_pack.json").read_text())
    assert [a["command_id"] for a in pack["actions"] if a["phase"] == "release"] == [
        "cmd_back_up_database",
        "cmd_apply_migration",
    ]
    basis = graph["estimated_duration"]["basis"][0]
    assert "cmd_back_up_database" in basis


def test_without_a_backup_before_it_no_migration_is_planned(plans):
    """`rule_backup_before_migration` fires where the backup is missing, and where the project's workflow has it after."""
    done = planned(plans, migration(plans, "cmd_back_up_database"), "../plan")
    assert (done.state, "rule_backup_before_migration" in json.dumps(done.failure)) == ("ABORTED", True)
    flow = plans.project.call("registry", "show", "wf_data_migration", "--json").json()["content"]
    for phase in flow["phases"]:
        if phase["phase"] == "release":
            phase["commands"] = ["cmd_apply_migration", "cmd_back_up_database"]
    flow |= {
        "version": "9.0.0",
        "lineage": {"introduced_in": "story", "supersedes": [f"{flow['id']}@{flow['version']}"]},
    }
    plans.content("workflow", {k: v for k, v in flow.items() if v not in ("", [], None)})
    done = planned(plans, migration(plans), "../other")
    assert (done.state, "rule_backup_before_migration" in json.dumps(done.failure)) == ("ABORTED", True)
