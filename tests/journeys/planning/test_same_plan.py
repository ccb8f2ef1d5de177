"""The same inputs give byte-identical frozen plans; any changed input changes them, and the lineage tells where (001)."""

import json

import pytest
from tests.support.plan_project import PlanProject
from tests.support.repeated_plans import SURROUNDINGS, copy_project, digest_frozen_plan, write_plan_inputs


def test_the_same_inputs_give_the_same_bytes(shop_project, tmp_path):
    """§Overview, §Implementation Notes: two processes, two directories, two dates, other hash seeds, locales and zones: the
    same files, byte for byte."""
    intent = write_plan_inputs(shop_project)
    first = digest_frozen_plan(shop_project, intent, "../plan-0", **SURROUNDINGS[0])
    assert len(first) == 16
    assert (
        digest_frozen_plan(shop_project, intent, "../plan-1", ahead=400 * 86_400, **SURROUNDINGS[1]) == first
    )
    elsewhere = copy_project(shop_project, tmp_path / "elsewhere")
    assert digest_frozen_plan(elsewhere, intent, "../plan-2", ahead=9 * 86_400, **SURROUNDINGS[2]) == first


CHANGES = {
    "intent": ("intent_checksum",), "policy": ("policy_digest",), "project file": ("facts_digest",),
    "memory": ("memory_digest",), "registry": ("registry_digest",), "answers": ("answers_digest",),
}  # fmt: skip
SCOPES = {"one file": "src/chandler/prices.py", "a folder": "src/chandler/", "everything": ""}


def answered(plans, intent, out, scope):
    """A plan whose scope was asked for, and what it bounds."""
    waits = plans.plan(intent, "--out", out)
    word = ("text", scope) if scope else ("whole_project", "")
    done = plans.answers(waits.run, stop=word)
    assert done.state == "DONE", done.failure
    folder = plans.project.repo / out
    manifest = json.loads((folder / "manifest.json").read_text())
    impact = json.loads((folder / "review_pack.json").read_text())["change_impact"]
    return manifest, impact["files"]


def test_what_was_answered_is_in_the_lineage_and_in_the_diff(shop_project):
    """Three answers about the scope: one plan id, three lineages, and `plan diff` names the answer and what it bounds."""
    plans = PlanProject(shop_project)
    intent = plans.write(plans.intent(scoped=False))
    made = {name: answered(plans, intent, f"../{name}", scope) for name, scope in SCOPES.items()}
    assert len({manifest["plan_id"] for manifest, _ in made.values()}) == 1
    assert len({manifest["lineage"]["answers_digest"] for manifest, _ in made.values()}) == 3
    assert [files for _, files in made.values()] == [["src/chandler/prices.py"], ["src/chandler/"], []]
    data = shop_project.call("plan", "diff", "../one file", "../everything", "--json").json()
    assert data["inputs"] == list(CHANGES["answers"])
    assert "files, no longer: src/chandler/prices.py" in data["plan"]
    assert any("text: src/chandler/prices.py → whole_project" in line for line in data["plan"])
    again = answered(plans, intent, "../again", "src/chandler/")
    assert again == made["a folder"]
    assert shop_project.call("plan", "diff", "../again", "../a folder").code == 0


@pytest.mark.parametrize("what", [what for what in CHANGES if what != "answers"])
def test_a_changed_input_changes_the_plan_and_the_lineage_says_which(shop_project, what):
    """One word of intent, policy, a project file, a memory or the registry: other checksums, and `plan diff` names the input."""
    intent = write_plan_inputs(shop_project)
    plans = PlanProject(shop_project, remembers=False)
    before = digest_frozen_plan(shop_project, intent, "../before")
    policy = []
    match what:
        case "intent":
            value = json.loads((shop_project.repo / intent).read_text())
            intent = plans.write({**value, "description": "another word"}, name="../other.json")
        case "policy":
            policy = ["--policy", plans.policy(mode="full_auto", question_budget=0, timeout_seconds=7)]
        case "project file":
            file = shop_project.repo / "README.md"
            file.write_text(f"{file.read_text()}\nAnother word.\n")
        case "memory":
            assert shop_project.call("memory", "add", "Discounts are never above a third.").code == 0
        case _:
            plans.rule("rule_story_silent", "warn", "info", when="false")
    done = shop_project.call("plan", intent, *policy, "--out", "../after")
    assert done.code == 0, done.out + done.err
    data = shop_project.call("plan", "diff", "../before", "../after", "--json").json()
    assert data["same"] is False
    assert set(CHANGES[what]) <= set(data["inputs"])
    assert set(data["inputs"]) <= {*CHANGES[what], "rules.rule_story_silent"}
    assert "manifest.json: differs" in data["files"]
    assert before
