"""Recording a change is not making one: a fix that changes nothing is no plan (001 §8; ADR 0054)."""

import pytest
from tests.support.plan_project import PlanProject

MAKING = ["cmd_edit_files", "cmd_write_tests", "cmd_format"]


@pytest.fixture
def plans(shop_project):
    return PlanProject(shop_project)


def test_a_fix_that_only_commits_is_no_plan(plans):
    """What makes the change is not in the intent; the commit that would record it does not stand in for it."""
    drafted = plans.intent(mode="full_auto")
    drafted["planned_commands"] = [c for c in drafted["planned_commands"] if c["command_id"] not in MAKING]
    assert "cmd_commit" in [c["command_id"] for c in drafted["planned_commands"]]
    done = plans.plan(plans.write(drafted))
    assert (done.code, done.state) == (1, "BLOCKED")


def test_a_fix_whose_making_is_denied_is_no_plan(plans):
    """A rule of the project denies every command that makes the change: what records it is not enough."""
    plans.rule("rule_story_still", "deny", "error", scope={"commands": MAKING})
    done = plans.plan(plans.write(plans.intent(mode="full_auto")))
    assert (done.code, done.state) == (1, "BLOCKED")


def test_a_command_of_the_project_may_say_that_it_records(plans):
    """`records` of a command counts wherever it comes from."""
    for records in (False, True):
        plans.content("command", {
            "id": "cmd_story_push", "effects": ["write"], "risk_level": "low", "phases": ["implementation"],
            "records": records,
        })  # fmt: skip
        drafted = plans.intent(mode="full_auto")
        (commit,) = (c for c in drafted["planned_commands"] if c["command_id"] == "cmd_commit")
        left = [c for c in drafted["planned_commands"] if c["command_id"] not in MAKING]
        push = {**commit, "command_id": "cmd_story_push", "effects": ["write"]}
        done = plans.plan(plans.write({**drafted, "planned_commands": [*left, push]}))
        assert done.state == ("BLOCKED" if records else "DONE"), done.told
