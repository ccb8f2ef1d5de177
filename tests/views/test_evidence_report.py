"""The parts of a report about proof: the base tree, what was in question, what stayed open."""

import json

from tests.support.simulated_roundtable import (
    building_run,
    change_facts,
    change_request_facts,
    check_facts,
    checking_run,
    gate_answer,
    infrastructure_change_facts,
)

from steersman.machines.shared.tree_summary import (
    base_tree_section,
    escalation_section,
    evidence_questions_section,
)

RESULTS = json.dumps(
    [
        {
            "name": "unit", "argv": ["pytest"], "source": "project", "verdict": "failed", "exit_code": 1, "tests": 2,
            "report": {"form": "junit", "failed": ["tests.test_old::test_|slow|"]},
        },
        {"name": "lint", "argv": ["ruff"], "source": "project", "verdict": "passed", "exit_code": 0},
    ]
)  # fmt: skip
TEXTS = {
    "p-base": RESULTS, "p-conftest": "conftest.py: pytest loads it\n# not a heading", "p-f-1": "say | why",
}  # fmt: skip


def text(ref):
    return TEXTS.get(ref, "") if ref else ""


def told(part, tape):
    return "\n".join(part(tape.context, text))


def questions(context, text):
    asks = context.infrastructure == "changed" or context.evidence == "questioned"
    return evidence_questions_section(context, text, asks=asks, questions_ref=context.questions_ref)


def escalation(context, text):
    return escalation_section(context.escalation, text)


def test_the_base_tree_is_shown_with_what_failed_there():
    """Each check before any change, with its exit code, its tests and the names of those that failed."""
    words = told(base_tree_section, building_run())
    assert "on tree `t0`" in words
    assert "| unit | failed | 1 | 2 | tests.test\\_old::test\\_\\|slow\\| |" in words
    assert "| lint | passed | 0 | – | – |" in words


def test_what_was_pruned_is_not_made_up():
    """Without its text nothing is said of the base tree."""
    assert base_tree_section(building_run().context, lambda _: "[pruned]") == []


def test_what_was_in_question_says_who_accepted_it():
    """The files and reasons, quoted, and by whom they were accepted, on which tree."""
    tape = checking_run(left=infrastructure_change_facts("t1"))
    tape.finish("run_checks", check_facts("t1"))
    assert "Not accepted by a person." in told(questions, tape)
    tape.finish("evidence", gate_answer("approve", "t1"))
    words = told(questions, tape)
    assert "Accepted by ann on tree `t1`." in words
    assert "\n# not a heading" not in words
    assert told(questions, checking_run()) == ""
    shown = checking_run(left=change_facts("t1", infrastructure_ref="p-conftest"))
    assert "Only shown: no person had to accept it." in told(questions, shown)


def test_what_stayed_open_comes_with_what_was_tried():
    """Findings with since when and how often, and the tree of every round."""
    tape = building_run(max_iterations=9, same_finding=2)
    for tree in ("t1", "t2"):
        tape.finish("implement", change_facts(tree))
        tape.finish("review", change_request_facts("f-1"))
    words = told(escalation, tape)
    assert "| f-1 | 1 | 2 | say \\| why |" in words
    assert "| 2 | `t2` |" in words
    assert told(escalation, building_run()) == ""


def test_a_run_that_only_ran_out_of_rounds_has_what_was_tried():
    """Without an open finding there is still what was tried."""
    tape = checking_run(max_iterations=1)
    tape.finish("run_checks", check_facts("t1", failed=1))
    words = told(escalation, tape)
    assert "finding" not in words
    assert "| 1 | `t1` |" in words
