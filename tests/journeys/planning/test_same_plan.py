"""The same inputs give byte-identical frozen plans; any changed input changes them, and the lineage tells where (001)."""

import json

import pytest
from plans import Plans
from same import SURROUNDINGS, carried, inputs, planned


def test_the_same_inputs_give_the_same_bytes(chandlery, tmp_path):
    """Two processes, two directories, two dates, other hash seeds, locales and zones: the same files, byte for byte."""
    intent = inputs(chandlery)
    first = planned(chandlery, intent, "../plan-0", **SURROUNDINGS[0])
    assert len(first) == 17
    assert planned(chandlery, intent, "../plan-1", ahead=400 * 86_400, **SURROUNDINGS[1]) == first
    elsewhere = carried(chandlery, tmp_path / "elsewhere")
    assert planned(elsewhere, intent, "../plan-2", ahead=9 * 86_400, **SURROUNDINGS[2]) == first


CHANGES = {
    "intent": ("intent_checksum",),
    "policy": ("policy_digest",),
    "project file": ("facts_digest",),
    "memory": ("memory_digest",),
    "registry": ("registry_digest",),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_input_changes_the_plan_and_the_lineage_says_which(chandlery, what):
    """One word of intent, policy, a project file, a memory or the registry: other checksums, and `plan diff` names the input."""
    intent = inputs(chandlery)
    plans = Plans(chandlery, remembers=False)
    before = planned(chandlery, intent, "../before")
    policy = []
    match what:
        case "intent":
            value = json.loads((chandlery.repo / intent).read_text())
            intent = plans.write({**value, "description": "another word"}, name="../other.json")
        case "policy":
            policy = ["--policy", plans.policy(mode="full_auto", question_budget=0, max_retries=1)]
        case "project file":
            file = chandlery.repo / "README.md"
            file.write_text(f"{file.read_text()}\nAnother word.\n")
        case "memory":
            assert chandlery.call("memory", "add", "Discounts are never above a third.").code == 0
        case _:
            plans.rule("rule_story_silent", "warn", "info", when="false")
    done = chandlery.call("plan", intent, *policy, "--out", "../after")
    assert done.code == 0, done.out + done.err
    told = chandlery.call("plan", "diff", "../before", "../after", "--json").json()
    assert told["same"] is False
    assert set(CHANGES[what]) <= set(told["inputs"])
    assert set(told["inputs"]) <= {*CHANGES[what], "rules.rule_story_silent"}
    assert "manifest.json: differs" in told["files"]
    assert before
