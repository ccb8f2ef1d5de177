"""How far a plan may reach, and what speaks for it: whole runs that try to get around either (001 §5–§10)."""

import json

import pytest
from plans import Plans


@pytest.fixture
def plans(chandlery):
    return Plans(chandlery)


def test_a_doubled_signature_is_not_the_plan_that_was_frozen(plans):
    """§10: `plan verify` finds every change of a plan's folder, also one under which every signature still holds."""
    assert plans.plan(plans.write(plans.intent(mode="full_auto")), "--out", "plan").state == "DONE"
    file = plans.project.repo / "plan" / "plan.dsse.json"
    value = json.loads(file.read_text())
    value["signatures"] *= 2
    file.write_text(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
    said = plans.project.call("plan", "verify", "plan", "--json")
    assert (said.code, said.json()["signature"]) == (1, "does not hold")
    assert "2 signatures" in said.out
