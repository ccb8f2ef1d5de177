"""Every "must" of specification 001 beside the test that holds it: no demand without a test, no test without a demand."""

import ast
import re
from pathlib import Path

from tests.specifications import coordinator as spec
from tests.support.cases import for_each_case

TESTS = Path(__file__).resolve().parent.parent

# fmt: off
MUSTS = {  # demand of the specification: (its section, file, test)
    "plans_and_never_executes": ("§Overview", "journeys/planning/test_same_plan.py", "test_the_same_inputs_give_the_same_bytes"),
    "full_auto_never_enters": ("§6", "machines/test_spec_001.py", "test_full_auto_never_asks"),
    "full_auto_skips": ("§6", "journeys/planning/test_plan_stories.py", "test_full_auto_goes_straight_through"),
    "no_other_way_back": ("§Forbidden Loops", "machines/test_spec_001.py", "test_there_is_no_other_way_back"),
    "proposals_need_evidence": ("§Red Line #4", "machines/test_spec_001.py", "test_every_guard_that_stops_passes_and_fails"),
    "references_are_registered": ("§Red Line #5", "journeys/planning/test_plan_stories.py", "test_an_intent_that_may_not_be_planned"),
    "transitions_are_recorded": ("§Audit Requirements", "journeys/planning/test_plan_stories.py", "test_every_transition_is_in_both_forms"),
    "states_are_tested": ("§Testing Requirements", "machines/test_spec_001.py", "test_every_guard_is_tried"),
    "same_input_same_output": ("§Implementation Notes", "journeys/planning/test_same_plan.py", "test_the_same_inputs_give_the_same_bytes"),
    "no_side_effects": ("§Implementation Notes", "architecture/test_gate_d.py", "test_planning_touches_nothing"),
    "decisions_are_recorded": ("§Implementation Notes", "journeys/planning/test_plan_stories.py", "test_every_transition_is_in_both_forms"),
    "guards_are_testable": ("§Implementation Notes", "machines/test_spec_001.py", "test_every_guard_that_stops_passes_and_fails"),
}
# fmt: on


def test_every_must_of_the_specification_is_here():
    """Each line that says must, never or prohibited is in the table above, once and under its own section."""
    assert [(section, demand) for demand, (section, _, _) in MUSTS.items()] == list(spec.MUSTS)


@for_each_case("demand", MUSTS)
def test_the_test_is_there_and_names_its_section(demand):
    """The named test exists, asserts something, and its docstring names the section of the demand."""
    section, file, name = MUSTS[demand]
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    (node,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    assert any(isinstance(inner, ast.Assert) for inner in ast.walk(node))
    assert re.search(rf"{re.escape(section)}(?!\w)", ast.get_docstring(node) or "")
