"""Every "must" of specification 001 beside the test that holds it: no sentence without a test, no name without a sentence."""

import ast
import re
from pathlib import Path

import pytest
from cases import for_each_case

TESTS = Path(__file__).resolve().parent.parent
PAGE = TESTS.parents[1] / "shared" / "spec" / "001_ff48b3661345d819.txt"
MUST = re.compile(r"\bmust\b|\bnever\b|prohibited", re.IGNORECASE)

# fmt: off
MUSTS = {  # words of the specification: (its section, file, test)
    "**deterministic, auditable, and non-executing**": ("§Overview", "journeys/planning/test_same_plan.py", "test_the_same_inputs_give_the_same_bytes"),
    "`full_auto`: **Never enter this state**": ("§6", "machines/test_spec_001.py", "test_full_auto_never_asks"),
    "full_auto mode **MUST SKIP** this state entirely": ("§6", "journeys/planning/test_plan_stories.py", "test_full_auto_goes_straight_through"),
    "Any other backward transition is **prohibited**": ("§Forbidden Loops", "machines/test_spec_001.py", "test_there_is_no_other_way_back"),
    "All action_proposal nodes **must** have `evidence_refs`": ("§Red Line #4", "machines/test_spec_001.py", "test_every_guard_that_stops_passes_and_fails"),
    "references **must** exist in registry or → BLOCKED": ("§Red Line #5", "journeys/planning/test_plan_stories.py", "test_an_intent_that_may_not_be_planned"),
    "Every state transition **must** generate": ("§Audit Requirements", "journeys/planning/test_plan_stories.py", "test_every_transition_is_in_both_forms"),
    "Each state must have": ("§Testing Requirements", "machines/test_spec_001.py", "test_every_guard_is_tried"),
    "State machine **must be deterministic**": ("§Implementation Notes", "journeys/planning/test_same_plan.py", "test_the_same_inputs_give_the_same_bytes"),
    "Coordinator only produces outputs, never executes": ("§Implementation Notes", "architecture/test_gate_d.py", "test_planning_touches_nothing"),
    "All decisions **must be auditable**": ("§Implementation Notes", "journeys/planning/test_plan_stories.py", "test_every_transition_is_in_both_forms"),
    "Guard evaluations **must be testable**": ("§Implementation Notes", "machines/test_spec_001.py", "test_every_guard_that_stops_passes_and_fails"),
}
# fmt: on


beside = pytest.mark.skipif(not PAGE.exists(), reason="the specification is not beside this checkout")


def sections():
    """Each line of the page with the section that it stands in, as tests name it."""
    here = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            title = line.lstrip("# ").strip()
            number, red = re.match(r"(\d+)\.", title), re.match(r"RED LINE #(\d)", title)
            here = f"§{number[1]}" if number else f"§Red Line #{red[1]}" if red else f"§{title}"
        yield here, line


@beside
def test_every_must_of_the_page_is_here():
    """Each line of the page that says must, never or prohibited is in the table above, under its own section."""
    lines = [(section, line) for section, line in sections() if MUST.search(line)]
    without = [line for _, line in lines if not any(words in line for words in MUSTS)]
    assert without == []
    for words, (section, _, _) in MUSTS.items():
        assert [at for at, line in lines if words in line] == [section], words


@for_each_case("words", MUSTS)
def test_the_test_is_there_and_names_its_section(words):
    """The named test exists, asserts something, and its docstring names the section of the words."""
    section, file, name = MUSTS[words]
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    (node,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    assert any(isinstance(inner, ast.Assert) for inner in ast.walk(node))
    assert re.search(rf"{re.escape(section)}(?!\w)", ast.get_docstring(node) or "")
