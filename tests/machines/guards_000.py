"""Each guard of specification 000, §2, beside what stands for it in roundtable, by name: written down, not derived.

**Invariant:** nothing here is imported from steersman.
"""

from typing import NamedTuple


class Stands(NamedTuple):
    """What stands for one guard of §2.

    `rows` are the names of the rows' own guards, in order. `asked` says what names the event there: the job or state
    that is asked, then the guard, or all the guards that were asked before and said no (`error` is any of the
    provider's). `published` is the `when` of each published row. `by` is the guard that has the specification's own
    words, or why no guard needs to say them.
    """

    guard: str
    rows: tuple[str, ...]
    asked: tuple[str, ...]
    published: tuple[str, ...]
    by: str


CREATION = "structural: nothing but the creation of a run causes this event, so that every task is a new one"
APPENDS = (
    "structural: a follow-up reaches only a run that has its outcome, and its tape is only ever appended to"
)
TWO_PHASES = "structural: a run is in one of two phases, and `implements` was asked first"
NO_DECISION = "structural: a reply that fits its contract has one of two decisions, and both were asked first"
NO_COMMANDS = "structural: a reply that fits its contract names commands, and that was asked first"
SIGNAL = "structural: the event is the signal; only a person or the rejection of a gate causes it"
NO_ROOM = (
    "structural: `remain` asks the same cap and was asked first, in the only state that counts iterations"
)

REST = ("otherwise",)
# fmt: off
GUARDS = {
    (None, "task_received"): Stands(
        "new task", ("proposal_mode", "otherwise"), (), ("new task, to be proposed first", "otherwise"), CREATION),
    ("finalize", "task_followup_received"): Stands(
        "append mode", ("confirms", "otherwise"), ("confirm: none of rejects",),
        ("append mode: the operator confirms exactly the proposal that waits", "otherwise"), APPENDS),
    ("intake", "draft_proposal"): Stands(
        "executionMode=proposal", REST, ("intake: none of implements",), REST, TWO_PHASES),
    ("plan", "roundtable_reviewer"): Stands(
        "proposal", REST, ("propose: replied",), ("proposal",), "replied"),
    ("review", "roundtable_tester"): Stands(
        "proposal", REST, ("discuss_review: replied",), ("proposal",), "replied"),
    ("test", "await_operator_confirm"): Stands(
        "proposal complete", REST, ("test: discussed",), ("proposal complete",), "discussed"),
    ("intake", "implementation_confirmed"): Stands(
        "operator confirm or implementation mode", REST, ("intake: implements",),
        ("operator confirm or implementation mode",), "implements"),
    ("plan", "start_coder"): Stands(
        "implementation loop", REST, ("plan: prepared",), ("implementation loop",), "prepared"),
    ("build", "start_reviewer"): Stands(
        "coder completed", ("touches", "otherwise"), ("implement: changed",),
        ("the change touches what decides about tests or agents; coder completed", "coder completed"), "changed"),
    ("review", "review_schema_invalid"): Stands(
        "reviewer parse/schema fail", REST, ("review: none of error, approves, requests_changes",), REST, NO_DECISION),
    ("review", "review_changes_requested"): Stands(
        "reviewer decision=changes_requested", REST, ("review: requests_changes",),
        ("reviewer decision=changes_requested",), "requests_changes"),
    ("review", "review_approved"): Stands(
        "reviewer decision=approve", REST, ("review: approves",), ("reviewer decision=approve",), "approves"),
    ("test", "tester_schema_invalid"): Stands(
        "tester parse/schema fail", REST, ("ask_tester: none of error, names_commands",), REST, NO_COMMANDS),
    ("test", "tester_command_blocked"): Stands(
        "all failures are blocked commands", REST, ("run_checks: blocked",),
        ("all failures are blocked commands",), "blocked"),
    ("test", "tests_failed"): Stands(
        "command result has real failures", REST,
        ("run_checks: failed", "run_checks: unproven",
         "run_checks: none of repeated, failed, blocked, unproven, touched, doubted, passed", "recall: none of stands"),
        ("command result has real failures or nothing is proven about the current tree or otherwise",), "failed"),
    ("test", "repeated_test_failure"): Stands(
        "same command failed as previous round", REST, ("run_checks: repeated",),
        ("same command failed as previous round",), "repeated"),
    ("test", "tests_passed"): Stands(
        "all commands pass", REST, ("run_checks: passed", "recall: stands"),
        ("all commands pass or what was accepted is what was recorded of the current tree",), "passed"),
    ("iterate", "start_coder"): Stands(
        "iterations remaining", REST, ("iterate: remain",), ("iterations remaining",), "remain"),
    ("*", "aborted_by_operator"): Stands(
        "abort signal raised", REST, ("moving: rejects", "rewrite: rejects", "evidence: rejects", "confirm: rejects"), REST, SIGNAL),
    ("*", "max_iterations_reached"): Stands(
        "implementation loop exhausted", REST, ("iterate: none of stuck, remain",), REST, NO_ROOM),
}
# fmt: on
