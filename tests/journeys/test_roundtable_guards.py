"""For every guard of the roundtable: one field of a reply, of a person's input or of a setting differs, and through the
command line another row is taken. The published guard is the executed guard.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.cases import for_each_case
from tests.support.project_snapshots import ProjectSnapshots
from tests.support.sample_project import (
    APPROVAL,
    CHANGE_REQUEST,
    RIGHT_CODE,
    TESTER_REPLY,
    UNIT_CHECK,
    WRONG_CODE,
    Project,
    change_story,
    roundtable_crew,
    roundtable_story,
)

from steersman.contracts.agent import PROVIDER_CLASSES
from steersman.kernel.machine import machine_guards
from steersman.machines.roundtable import MACHINE

Story = dict[str, Any]
Row = tuple[str | None, str, str]


class Case(NamedTuple):
    """One guard: a story, the same with one field changed, and the row that each takes and the other does not."""

    guard: str
    before: Story
    after: Story
    row: Row
    other: Row


PLAIN = roundtable_story()
PROPOSAL = roundtable_story(mode="proposal")
MERGE = roundtable_story(deliver="merge", then=[{"do": "answer", "choice": "approve"}])
DECLINED = change_story(MERGE, "then", 0, "choice", to="reject")
ANSWERED = roundtable_story(mode="proposal", then=[{"do": "answer", "choice": "approve"}])
SENT = roundtable_story(mode="proposal", then=[{"do": "confirm", "digest": "right"}])
ABORTED = roundtable_story(mode="proposal", then=[{"do": "abort"}])
READY = roundtable_story(setup=[["true"]])
UNREADY = change_story(READY, "setup", to=[["false"]])
REQUESTS = roundtable_story(
    max_iterations=1, crew=roundtable_crew(reviewer=[{"mode": "implementation", "reply": CHANGE_REQUEST}])
)
AGAIN = roundtable_story(
    crew=roundtable_crew(
        coder=[
            {"mode": "implementation", "edit": [{"write": "calc.py", "text": RIGHT_CODE}], "say": "a"},
            {"mode": "implementation", "round": "2", "edit": [{"append": "calc.py", "text": "# why\n"}], "say": "b"},
        ],
        reviewer=[
            {"mode": "implementation", "round": "1", "reply": CHANGE_REQUEST},
            {"mode": "implementation", "reply": APPROVAL},
        ],
    ),
)  # fmt: skip
FAILS_TWICE = roundtable_story(
    rules={"repeated_failure": "same_command"},
    crew=roundtable_crew(
        coder=[
            {"mode": "implementation", "round": "1", "edit": [{"write": "calc.py", "text": "def add(a, b):\n    return 'one'\n"}], "say": "a"},
            {"mode": "implementation", "round": "2", "edit": [{"write": "calc.py", "text": "def add(a, b):\n    return 'two'\n"}], "say": "b"},
        ]
    ),
)  # fmt: skip
TWO_CHECKS = roundtable_story(
    max_iterations=1,
    checks={"unit": UNIT_CHECK, "ok": ["true"]},
    crew=roundtable_crew(
        tester=[{"mode": "implementation", "reply": {**TESTER_REPLY, "commands": [["true"]]}}]
    ),
)
EDITED = roundtable_story(
    deliver="merge", then=[{"do": "edit", "path": "notes.txt"}, {"do": "answer", "choice": "approve"}]
)
REDELIVERED = roundtable_story(
    deliver="merge",
    then=[
        {"do": "edit", "path": "calc.py"},
        {"do": "answer", "choice": "approve"},
        {"do": "send", "event": "delivery_requested"},
    ],
)
YES = {"do": "answer", "choice": "approve"}
# The branch moves while the merge is asked for: the first yes is void, the second one has the change checked again.
OVERTAKEN = roundtable_story(deliver="merge", then=[{"do": "commit", "path": "notes.txt"}, YES, YES])
UNMOVED = change_story(OVERTAKEN, "then", 0, "do", to="nothing")
CONFLICTS = change_story(OVERTAKEN, "then", 0, "path", to="calc.py")
PUT_BACK = roundtable_story(
    deliver="merge", then=[{"do": "commit", "path": "notes.txt"}, YES, {"do": "drop"}, YES]
)
REWRITTEN = roundtable_story(deliver="merge", then=[{"do": "rewrite", "path": "notes.txt"}, YES, YES, YES])
KEEPS_MOVING = roundtable_story(
    deliver="merge",
    then=[word for n in range(4) for word in ({"do": "commit", "path": f"{n}.txt"}, YES, YES)] + [YES],
)
TAKEN_BACK = roundtable_story(deliver="merge", then=[{"do": "answer", "choice": "approve"}, {"do": "revert"}])
TOUCHING = roundtable_story(
    max_iterations=1,
    crew=roundtable_crew(
        coder=[
            {"mode": "proposal", "say": "I will."},
            {
                "mode": "implementation",
                "say": "done",
                "edit": [
                    {"write": "calc.py", "text": RIGHT_CODE},
                    {"write": "pytest.ini", "text": "[pytest]\n"},
                ],
            },
        ]
    ),
    then=[{"do": "answer", "choice": "approve"}],
)
HELD = change_story(TOUCHING, "then", to=[{"do": "branch"}, YES, YES])
REFUSED = change_story(TOUCHING, "then", 0, "choice", to="reject")
CONFTEST = ("crew", "coder", 1, "edit", 1, "write")
LOUD = change_story(PLAIN, "crew", "coder", 1, "edit", 0, "text", to="print('1 failed')\n" + RIGHT_CODE)
SAME_FINDING = roundtable_story(
    max_iterations=4,
    rules={"same_finding": 2},
    crew=roundtable_crew(
        coder=[
            {
                "mode": "implementation",
                "round": str(n),
                "edit": [{"append": "calc.py", "text": f"# {n}\n"}],
                "say": "a",
            }
            for n in range(1, 5)
        ],
        reviewer=[{"mode": "implementation", "reply": CHANGE_REQUEST}],
    ),
)
CODER_TEXT = ("crew", "coder", 1, "edit", 0, "text")
REVIEW = ("crew", "reviewer", 1, "reply")
COMMANDS = ("crew", "tester", 1, "reply", "commands")

STOPS = roundtable_story(rules={"red_base": "stop"})

DRAFTS: Row = ("intake", "draft_proposal", "plan")
CONFIRMED: Row = ("intake", "implementation_confirmed", "plan")
PASSES: Row = ("test", "tests_passed", "finalize")
BUILT: Row = ("build", "start_reviewer", "review")
NO_CHANGE: Row = ("build", "coder_changed_nothing", "iterate")
DELIVERED: Row = ("finalize", "delivered", "finalize")
INVALID: Row = ("review", "review_schema_invalid", "finalize")
NO_COMMAND: Row = ("test", "tester_schema_invalid", "iterate")
FAILS: Row = ("test", "tests_failed", "iterate")
GRANTED: Row = ("finalize", "merge_granted", "finalize")
DECLINES: Row = ("finalize", "merge_declined", "finalize")
NOT_READY: Row = ("plan", "setup_failed", "finalize")
MEASURED: Row = ("plan", "baseline_recorded", "plan")
ASKS: Row = ("test", "evidence_questioned", "test")
ACCEPTED: Row = ("test", "evidence_accepted", "test")
DECLINED_EVIDENCE: Row = ("test", "evidence_declined", "iterate")
UNMOVED_ROW: Row = ("test", "base_unmoved", "test")
MOVED_ROW: Row = ("test", "base_moved", "test")
REFUSED_ROW: Row = ("test", "base_refused", "test")
RECHECKED: Row = ("finalize", "recheck_granted", "test")
UNDELIVERED: Row = ("finalize", "delivery_failed", "finalize")
CANCELED: Row = ("test", "aborted_by_operator", "finalize")

CASES = (
    Case("proposal_mode", PROPOSAL, change_story(PROPOSAL, "mode", to="implementation"), DRAFTS, CONFIRMED),
    Case("implements", PLAIN, change_story(PLAIN, "mode", to="proposal"), CONFIRMED, DRAFTS),
    Case("proposes", PROPOSAL, change_story(PROPOSAL, "mode", to="implementation"), ("plan", "roundtable_reviewer", "review"), ("plan", "start_coder", "build")),
    Case("to_propose", PROPOSAL, change_story(PROPOSAL, "mode", to="implementation"), ("plan", "roundtable_reviewer", "review"), ("plan", "start_coder", "build")),
    Case("to_prepare", READY, UNREADY, ("plan", "workspace_ready", "plan"), NOT_READY),
    Case("unstarted", change_story(PLAIN, "checks", "unit", to=["no-such-program"]), PLAIN, ("plan", "check_cannot_start", "finalize"), MEASURED),
    Case("red", STOPS, change_story(STOPS, "rules", "red_base", to="fix"), ("plan", "base_not_green", "finalize"), MEASURED),
    Case("confirms", SENT, change_story(SENT, "then", 0, "digest", to="wrong"), ("plan", "start_coder", "build"), DRAFTS),
    Case("rejects", ANSWERED, change_story(ANSWERED, "then", 0, "choice", to="reject"), ("finalize", "task_followup_received", "intake"), ("finalize", "aborted_by_operator", "finalize")),
    Case("awaits", ABORTED, change_story(ABORTED, "mode", to="implementation"), ("finalize", "aborted_by_operator", "finalize"), DELIVERED),
    Case("replied", PROPOSAL, change_story(PROPOSAL, "crew", "coder", 0, "say", to=""), ("plan", "roundtable_reviewer", "review"), ("plan", "provider_protocol_error", "finalize")),
    Case("discussed", PROPOSAL, change_story(PROPOSAL, "crew", "tester", 0, "say", to=""), ("test", "await_operator_confirm", "finalize"), ("test", "provider_protocol_error", "finalize")),
    Case("ready", READY, UNREADY, ("plan", "workspace_ready", "plan"), NOT_READY),
    Case("prepared", READY, UNREADY, ("plan", "start_coder", "build"), NOT_READY),
    Case("changed", PLAIN, change_story(PLAIN, *CODER_TEXT, to=WRONG_CODE), BUILT, NO_CHANGE),
    Case("unchanged", change_story(PLAIN, *CODER_TEXT, to=WRONG_CODE), PLAIN, NO_CHANGE, BUILT),
    Case("approves", PLAIN, change_story(PLAIN, *REVIEW, "decision", to="changes_requested"), ("review", "review_approved", "test"), INVALID),
    Case("requests_changes", REQUESTS, change_story(REQUESTS, "crew", "reviewer", 0, "reply", "decision", to="approve"), ("review", "review_changes_requested", "iterate"), INVALID),
    Case("remain", AGAIN, change_story(AGAIN, "max_iterations", to=1), ("iterate", "start_coder", "build"), ("iterate", "max_iterations_reached", "finalize")),
    Case("names_commands", PLAIN, change_story(PLAIN, *COMMANDS, to=[]), ("test", "tester_replied", "test"), NO_COMMAND),
    Case("answered", PLAIN, change_story(PLAIN, *COMMANDS, to=[]), PASSES, NO_COMMAND),
    Case("failed", change_story(PLAIN, *CODER_TEXT, to="def add(a, b):\n    return 0\n"), PLAIN, FAILS, PASSES),
    Case("blocked", change_story(PLAIN, *COMMANDS, to=[["rm", "-rf", "x"]]), PLAIN, ("test", "tester_command_blocked", "finalize"), PASSES),
    Case("passed", TWO_CHECKS, change_story(TWO_CHECKS, "checks", "unit", to=["true"]), PASSES, FAILS),
    Case("to_measure", READY, UNREADY, MEASURED, NOT_READY),
    Case("touches", REFUSED, change_story(REFUSED, *CONFTEST, to="notes.txt"), ASKS, PASSES),
    Case("touched", REFUSED, change_story(REFUSED, *CONFTEST, to="notes.txt"), ASKS, PASSES),
    Case("doubted", LOUD, PLAIN, ASKS, PASSES),
    Case("questioned", REFUSED, change_story(REFUSED, *CONFTEST, to="notes.txt"), CANCELED, PASSES),
    Case("accepts", TOUCHING, change_story(TOUCHING, "then", 0, "choice", to="rework"), ACCEPTED, DECLINED_EVIDENCE),
    Case("seen", TOUCHING, REFUSED, PASSES, CANCELED),
    Case("stands", TOUCHING, change_story(TOUCHING, "then", 0, "choice", to="rework"), PASSES, DECLINED_EVIDENCE),
    Case("unproven", change_story(TWO_CHECKS, "checks", "unit", to=["true"]), TWO_CHECKS, FAILS, PASSES),
    Case("stuck", SAME_FINDING, change_story(SAME_FINDING, "rules", "same_finding", to=9), ("iterate", "finding_unresolved", "finalize"), ("iterate", "max_iterations_reached", "finalize")),
    Case("repeated", FAILS_TWICE, change_story(FAILS_TWICE, "rules", "repeated_failure", to="same_failure"), ("test", "repeated_test_failure", "finalize"), ("iterate", "max_iterations_reached", "finalize")),
    Case("asks_merge", DECLINED, change_story(DECLINED, "deliver", to="branch"), DECLINES, DELIVERED),
    Case("hands_over", change_story(DECLINED, "deliver", to="branch"), DECLINED, DELIVERED, DECLINES),
    Case("granted", MERGE, DECLINED, GRANTED, DECLINES),
    Case("done", EDITED, change_story(EDITED, "then", 0, "path", to="calc.py"), DELIVERED, UNDELIVERED),
    Case("branch_only", HELD, change_story(HELD, "deliver", to="merge"), UNDELIVERED, DELIVERED),
    Case("to_ask", PLAIN, change_story(PLAIN, "mode", to="proposal"), ("test", "tester_replied", "test"), ("test", "discussion_complete", "test")),
    Case("to_look", DECLINED, change_story(DECLINED, "deliver", to="branch"), UNMOVED_ROW, DELIVERED),
    Case("base_stands", PUT_BACK, change_story(PUT_BACK, "then", 2, "do", to="nothing"), UNMOVED_ROW, MOVED_ROW),
    Case("rebased", OVERTAKEN, CONFLICTS, MOVED_ROW, REFUSED_ROW),
    Case("to_measure_again", OVERTAKEN, CONFLICTS, ("test", "baseline_recorded", "test"), REFUSED_ROW),
    Case("overtook", OVERTAKEN, UNMOVED, ("finalize", "delivery_overtaken", "finalize"), DELIVERED),
    Case("overtaken", OVERTAKEN, UNMOVED, RECHECKED, DELIVERED),
    Case("says_again", OVERTAKEN, change_story(OVERTAKEN, "then", 2, to={**YES, "choice": "reject"}), RECHECKED, DECLINES),
    Case("lost_commits", REWRITTEN, change_story(REWRITTEN, "then", 0, "do", to="commit"), ("test", "base_rewritten", "test"), DELIVERED),
    Case("rewritten", REWRITTEN, change_story(REWRITTEN, "then", 0, "do", to="commit"), ("test", "rewrite_accepted", "test"), DELIVERED),
    Case("keeps_moving", KEEPS_MOVING, change_story(KEEPS_MOVING, "then", 9, "do", to="nothing"), ("test", "another_look_granted", "test"), DELIVERED),
    Case("delivered", TAKEN_BACK, change_story(TAKEN_BACK, "then", 0, "choice", to="reject"), ("finalize", "revert_requested", "finalize"), DECLINES),
    Case("takes_back", TAKEN_BACK, change_story(TAKEN_BACK, "then", 0, "choice", to="reject"), ("finalize", "reverted", "finalize"), DECLINES),
    Case("delivery_failed", REDELIVERED, change_story(REDELIVERED, "then", 0, "path", to="notes.txt"), ("finalize", "delivery_requested", "finalize"), DELIVERED),
)  # fmt: skip


@pytest.fixture(scope="module")
def play(saved_states: ProjectSnapshots, template: Path) -> Callable[[Story], list[Row]]:
    """Plays a story through the command line, each once, and gives the rows it took."""
    known: dict[str, list[Row]] = {}

    def played(told: Story) -> list[Row]:
        key = json.dumps(told, sort_keys=True)
        if key not in known:
            known[key] = _played(saved_states.begin(template), told)
        return known[key]

    return played


def _played(project: Project, told: Story) -> list[Row]:
    run = project.run(told).json()["run"]
    for word in told["then"]:
        _said(project, run, word)
    return project.rows(run)


def _said(project: Project, run: str, word: dict[str, str]) -> None:
    match word["do"]:
        case "answer":
            words = (
                ("rework", run, "put it back")
                if word["choice"] == "rework"
                else ("answer", run, word["choice"])
            )
            if "accept-evidence" in project.call(*words).err:
                project.accept_evidence(run)
        case "abort":
            project.call("abort", run)
        case "confirm":
            (gate,) = project.call("gates", run, "--json").json()
            digest = gate["digest"] if word["digest"] == "right" else word["digest"]
            data = {"choice": "approve", "digest": digest, "person": "ann"}
            project.call("send", run, "task_followup_received", "--data", json.dumps(data))
        case "revert":
            project.call("revert", run)
        case "send":
            project.call("send", run, word["event"])
        case "edit":
            (project.repo / word["path"]).write_text("x = 1\n")
        case "commit":
            (project.repo / word["path"]).write_text("x = 1\n")
            project.git("add", "-A")
            project.git("commit", "-qm", "meanwhile")
        case "rewrite":
            project.git("commit", "-q", "--amend", "-m", "another story")
        case "drop":
            project.git("reset", "-q", "--hard", "HEAD~1")
        case "branch":
            project.git("branch", "steersman")  # in the way of steersman/<run>


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.guard)
def test_one_field_makes_another_row_be_taken(case: Case, play: Callable[[Story], list[Row]]) -> None:
    """Each guard decides: with one field changed the run takes another row."""
    before, after = play(case.before), play(case.after)
    assert before.count(case.row) > after.count(case.row)
    assert after.count(case.other) > before.count(case.other)


@for_each_case("case", CASES)
def test_the_stories_differ_in_exactly_one_field(case: Case) -> None:
    """Each pair of stories differs in one field and no more."""
    before, after = dict(_leaves(case.before)), dict(_leaves(case.after))
    differing = [k for k in before.keys() | after.keys() if before.get(k) != after.get(k)]
    assert len(differing) == 1


def test_every_guard_has_a_case() -> None:
    """No guard of the table is left without a story of its own."""
    named = {g.name for g in machine_guards(MACHINE)} - {"otherwise"}
    assert {c.guard for c in CASES} == named - set(
        PROVIDER_CLASSES
    )  # test_roundtable_outcomes.py has a story of each of those
    print(f"guards with a story: {len(CASES)} of {len(named)}")


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Every field of a story; a list without objects in it is one field."""
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in _leaves(v, (*path, k))]
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        return [leaf for n, v in enumerate(value) for leaf in _leaves(v, (*path, n))]
    return [(path, value)]
