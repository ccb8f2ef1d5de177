"""Specification 000, §1–§4, transcribed as data: the table is compared with it, never derived from it.

**Invariant:** nothing here is imported from steersman.
"""

from typing import NamedTuple

STATES = ("intake", "plan", "build", "review", "test", "iterate", "finalize")


class Transition(NamedTuple):
    """One row of §2, in the specification's own words."""

    source: str | None
    event: str
    guard: str
    action: str
    to: str


# fmt: off
TRANSITIONS = (
    Transition(None,       "task_received",            "new task",                                "init run context, emit event",                   "intake"),
    Transition("finalize", "task_followup_received",   "append mode",                             "append follow-up message",                       "intake"),
    Transition("intake",   "draft_proposal",           "executionMode=proposal",                  "run coder in proposal mode",                     "plan"),
    Transition("plan",     "roundtable_reviewer",      "proposal",                                "run reviewer in discussion mode",                "review"),
    Transition("review",   "roundtable_tester",        "proposal",                                "run tester in discussion mode",                  "test"),
    Transition("test",     "await_operator_confirm",   "proposal complete",                       "persist round summary",                          "finalize"),
    Transition("intake",   "implementation_confirmed", "operator confirm or implementation mode", "start implementation loop",                      "plan"),
    Transition("plan",     "start_coder",              "implementation loop",                     "run coder impl",                                 "build"),
    Transition("build",    "start_reviewer",           "coder completed",                         "run reviewer strict JSON",                       "review"),
    Transition("review",   "review_schema_invalid",    "reviewer parse/schema fail",              "set outcome, stop run",                          "finalize"),
    Transition("review",   "review_changes_requested", "reviewer decision=changes_requested",     "set must-fix list",                              "iterate"),
    Transition("review",   "review_approved",          "reviewer decision=approve",               "run tester strict JSON",                         "test"),
    Transition("test",     "tester_schema_invalid",    "tester parse/schema fail",                "set must-fix list",                              "iterate"),
    Transition("test",     "tester_command_blocked",   "all failures are blocked commands",       "set must-fix, stop run (no iteration)",          "finalize"),
    Transition("test",     "tests_failed",             "command result has real failures",        "set must-fix list with failed command + stderr", "iterate"),
    Transition("test",     "repeated_test_failure",    "same command failed as previous round",   "set must-fix, stop run (no iteration)",          "finalize"),
    Transition("test",     "tests_passed",             "all commands pass",                       "clear must-fix, finalize approved",              "finalize"),
    Transition("iterate",  "start_coder",              "iterations remaining",                    "next round build",                               "build"),
    Transition("*",        "aborted_by_operator",      "abort signal raised",                     "stop and persist canceled",                      "finalize"),
    Transition("*",        "max_iterations_reached",   "implementation loop exhausted",           "finalize best effort",                           "finalize"),
)
# fmt: on

OUTCOMES = (
    "await_operator_confirm",
    "proposal_changes_requested",
    "approved",
    "review_schema_invalid",
    "tester_schema_invalid",
    "test_failed",
    "tester_command_blocked",
    "repeated_test_failure",
    "max_iterations_reached",
    "canceled",
)
LEGACY = ("proposal_changes_requested",)  # "legacy proposal outcome for old tasks"

ADDITIONS = (
    "discussion_complete",
    "provider_network_error",
    "provider_timeout",
    "provider_auth_error",
    "provider_not_found",
    "provider_permission_denied",
)
RETRY = ("retry_count", "retry_reason")
