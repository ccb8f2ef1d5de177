"""Every "must" of specification 001 beside the test that holds it: no sentence without a test, no name without a sentence."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
PAGE = TESTS.parents[1] / "shared" / "spec" / "001_ff48b3661345d819.txt"
MUST = re.compile(r"\bmust\b|\bnever\b|prohibited", re.IGNORECASE)

# fmt: off
MUSTS = {  # words of the specification: (file, test)
    "**deterministic, auditable, and non-executing**": ("journeys/planning/test_same_plan.py", "test_the_same_inputs_give_the_same_bytes"),
    "`full_auto`: **Never enter this state**": ("machines/test_spec_001.py", "test_full_auto_never_asks"),
    "full_auto mode **MUST SKIP** this state entirely": ("journeys/planning/test_plan_stories.py", "test_full_auto_goes_straight_through"),
    "Any other backward transition is **prohibited**": ("machines/test_spec_001.py", "test_there_is_no_other_way_back"),
    "All action_proposal nodes **must** have `evidence_refs`": ("machines/test_spec_001.py", "test_every_guard_that_stops_passes_and_fails"),
    "references **must** exist in registry or → BLOCKED": ("journeys/planning/test_plan_stories.py", "test_an_intent_that_may_not_be_planned"),
    "Every state transition **must** generate": ("journeys/planning/test_plan_stories.py", "test_every_transition_is_in_both_forms"),
    "Each state must have": ("machines/test_spec_001.py", "test_every_guard_is_tried"),
    "State machine **must be deterministic**": ("journeys/planning/test_same_plan.py", "test_the_same_inputs_give_the_same_bytes"),
    "Coordinator only produces outputs, never executes": ("architecture/test_gate_d.py", ""),
    "All decisions **must be auditable**": ("journeys/planning/test_plan_stories.py", "test_every_transition_is_in_both_forms"),
    "Guard evaluations **must be testable**": ("machines/test_spec_001.py", "test_every_guard_that_stops_passes_and_fails"),
}
# fmt: on


@pytest.mark.skipif(not PAGE.exists(), reason="the specification is not beside this checkout")
def test_every_must_of_the_page_is_here():
    """Each line of the page that says must, never or prohibited is in the table above."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if MUST.search(line)]
    without = [line for line in lines if not any(words in line for words in MUSTS)]
    assert without == []
    assert [words for words in MUSTS if not any(words in line for line in lines)] == []


@pytest.mark.parametrize("words", MUSTS, ids=lambda w: re.sub(r"\W+", "-", w)[:40])
def test_the_test_is_there(words):
    """The named test exists and asserts something."""
    file, name = MUSTS[words]
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    tests = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    found = [tests[name]] if name else list(tests.values())
    assert found
    for node in found:
        assert any(isinstance(inner, ast.Assert) for inner in ast.walk(node)), node.name
