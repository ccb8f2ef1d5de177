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
ROUNDTABLE_GUARDS = {
    (None, "task_received"): Stands(
        "task_is_new", ("proposal_mode", "otherwise"), (), ("new task, to be proposed first", "otherwise"), CREATION),
    ("finalize", "task_followup_received"): Stands(
        "appending", ("confirms", "otherwise"), ("confirm: none of rejects",),
        ("append mode: the operator confirms exactly the proposal that waits", "otherwise"), APPENDS),
    ("intake", "draft_proposal"): Stands(
        "mode_is_proposal", REST, ("intake: none of implements",), REST, TWO_PHASES),
    ("plan", "roundtable_reviewer"): Stands(
        "proposing", REST, ("propose: replied",), ("proposal",), "replied"),
    ("review", "roundtable_tester"): Stands(
        "proposing", REST, ("discuss_review: replied",), ("proposal",), "replied"),
    ("test", "await_operator_confirm"): Stands(
        "proposal_is_whole", REST, ("test: discussed",), ("proposal complete",), "discussed"),
    ("intake", "implementation_confirmed"): Stands(
        "confirmed_or_implementing", REST, ("intake: implements",),
        ("operator confirm or implementation mode",), "implements"),
    ("plan", "start_coder"): Stands(
        "implementing", REST, ("plan: prepared",), ("implementation loop",), "prepared"),
    ("build", "start_reviewer"): Stands(
        "coder_is_done", ("touches", "otherwise"), ("implement: changed",),
        ("the change touches what decides about tests or agents; coder completed", "coder completed"), "changed"),
    ("review", "review_schema_invalid"): Stands(
        "review_is_unreadable", REST, ("review: none of error, approves, requests_changes",), REST, NO_DECISION),
    ("review", "review_changes_requested"): Stands(
        "reviewer_wants_changes", REST, ("review: requests_changes",),
        ("reviewer decision=changes_requested",), "requests_changes"),
    ("review", "review_approved"): Stands(
        "reviewer_approves", REST, ("review: approves",), ("reviewer decision=approve",), "approves"),
    ("test", "tester_schema_invalid"): Stands(
        "test_plan_is_unreadable", REST, ("ask_tester: none of error, names_commands",), REST, NO_COMMANDS),
    ("test", "tester_command_blocked"): Stands(
        "only_blocked_commands", REST, ("run_checks: blocked",),
        ("all failures are blocked commands",), "blocked"),
    ("test", "tests_failed"): Stands(
        "some_command_fails", REST,
        ("run_checks: failed", "run_checks: unproven",
         "run_checks: none of repeated, failed, blocked, unproven, touched, doubted, passed", "recall: none of stands"),
        ("command result has real failures or nothing is proven about the current tree or otherwise",), "failed"),
    ("test", "repeated_test_failure"): Stands(
        "same_command_fails_again", REST, ("run_checks: repeated",),
        ("same command failed as previous round",), "repeated"),
    ("test", "tests_passed"): Stands(
        "every_command_passes", REST, ("run_checks: passed", "recall: stands"),
        ("all commands pass or what was accepted is what was recorded of the current tree",), "passed"),
    ("iterate", "start_coder"): Stands(
        "iterations_are_left", REST, ("iterate: remain",), ("iterations remaining",), "remain"),
    ("*", "aborted_by_operator"): Stands(
        "abort_was_raised", REST, ("moving: rejects", "rewrite: rejects", "evidence: rejects", "confirm: rejects"), REST, SIGNAL),
    ("*", "max_iterations_reached"): Stands(
        "no_iterations_are_left", REST, ("iterate: none of stuck, remain",), REST, NO_ROOM),
}
# fmt: on
