"""Specification 000, §1 to §4: the states, transitions, outcomes and additions of roundtable."""

from typing import NamedTuple

from tests.specifications.documents import Document

DOCUMENT = Document(
    "000_c470057fdd0c4a7a.txt", "62e5b389329f362397c5229219649c2144f72a2d55bb0cbac85e69ce554fe44c"
)
SECTIONS = ((1, "states"), (2, "transitions"), (3, "outcomes"), (4, "additions"), (5, "notes"))
STATES = ("intake", "plan", "build", "review", "test", "iterate", "finalize")


class Transition(NamedTuple):
    """One row of §2: its states and event by their own names, its guard and action by our identifiers."""

    source: str | None
    event: str
    guard: str
    action: str
    to: str


# fmt: off
TRANSITIONS = (
    Transition(None,       "task_received",            "task_is_new",               "begin_context",              "intake"),
    Transition("finalize", "task_followup_received",   "appending",                 "append_message",             "intake"),
    Transition("intake",   "draft_proposal",           "mode_is_proposal",          "ask_coder_for_proposal",     "plan"),
    Transition("plan",     "roundtable_reviewer",      "proposing",                 "discuss_with_reviewer",      "review"),
    Transition("review",   "roundtable_tester",        "proposing",                 "discuss_with_tester",        "test"),
    Transition("test",     "await_operator_confirm",   "proposal_is_whole",         "keep_round_summary",         "finalize"),
    Transition("intake",   "implementation_confirmed", "confirmed_or_implementing", "begin_implementing",         "plan"),
    Transition("plan",     "start_coder",              "implementing",              "ask_coder_for_change",       "build"),
    Transition("build",    "start_reviewer",           "coder_is_done",             "ask_reviewer_for_json",      "review"),
    Transition("review",   "review_schema_invalid",    "review_is_unreadable",      "set_outcome_and_stop",       "finalize"),
    Transition("review",   "review_changes_requested", "reviewer_wants_changes",    "set_must_fix",               "iterate"),
    Transition("review",   "review_approved",          "reviewer_approves",         "ask_tester_for_json",        "test"),
    Transition("test",     "tester_schema_invalid",    "test_plan_is_unreadable",   "set_must_fix",               "iterate"),
    Transition("test",     "tester_command_blocked",   "only_blocked_commands",     "set_must_fix_and_stop",      "finalize"),
    Transition("test",     "tests_failed",             "some_command_fails",        "set_must_fix_from_failures", "iterate"),
    Transition("test",     "repeated_test_failure",    "same_command_fails_again",  "set_must_fix_and_stop",      "finalize"),
    Transition("test",     "tests_passed",             "every_command_passes",      "approve",                    "finalize"),
    Transition("iterate",  "start_coder",              "iterations_are_left",       "build_next_round",           "build"),
    Transition("*",        "aborted_by_operator",      "abort_was_raised",          "stop_as_canceled",           "finalize"),
    Transition("*",        "max_iterations_reached",   "no_iterations_are_left",    "end_with_best_effort",       "finalize"),
)
# fmt: on

OUTCOMES = (
    "await_operator_confirm", "proposal_changes_requested", "approved", "review_schema_invalid",
    "tester_schema_invalid", "test_failed", "tester_command_blocked", "repeated_test_failure",
    "max_iterations_reached", "canceled",
)  # fmt: skip
LEGACY = ("proposal_changes_requested",)  # of tasks from before

ADDITIONS = (
    "discussion_complete", "provider_network_error", "provider_timeout", "provider_auth_error",
    "provider_not_found", "provider_permission_denied",
)  # fmt: skip
RETRY = ("retry_count", "retry_reason")

WORDINGS = {  # the fingerprint of the wording that each identifier stands for
    "states": "373f847ff0b2",
    "transitions": "0feb8ef751da",
    "outcomes": "279fdb9af43b",
    "additions": "9d7a786bd09b",
    "notes": "93b4dd8e2027",
    "task_is_new": "90fa7fff4709",
    "begin_context": "64a44c9d6aee",
    "appending": "c008b8155ccc",
    "append_message": "d6906e391b65",
    "mode_is_proposal": "3e17c3cafcf4",
    "ask_coder_for_proposal": "a9fd86bf30eb",
    "proposing": "ecd1378bc9dc",
    "discuss_with_reviewer": "8f9e34682548",
    "discuss_with_tester": "4b6a2841cf3c",
    "proposal_is_whole": "18e69b9df255",
    "keep_round_summary": "2046ff4f86ae",
    "confirmed_or_implementing": "74d4e8e4d67e",
    "begin_implementing": "72b6a1c0a71b",
    "implementing": "e507165a02f5",
    "ask_coder_for_change": "19a7abc76f8e",
    "coder_is_done": "7841fea7463e",
    "ask_reviewer_for_json": "4be53608ade7",
    "review_is_unreadable": "4de7e992c6af",
    "set_outcome_and_stop": "910e8e499169",
    "reviewer_wants_changes": "ddc0809cbc69",
    "set_must_fix": "e105fc4785d8",
    "reviewer_approves": "2fda161a1fe2",
    "ask_tester_for_json": "5106360267ae",
    "test_plan_is_unreadable": "d43c7baf2784",
    "only_blocked_commands": "6187d943d51d",
    "set_must_fix_and_stop": "20cb8bc92c9d",
    "some_command_fails": "4f55ae1d2c92",
    "set_must_fix_from_failures": "ea2815079bd3",
    "same_command_fails_again": "98e4eef5e2f7",
    "every_command_passes": "3d772e557601",
    "approve": "8c5a64b256fa",
    "iterations_are_left": "d5439b44c15f",
    "build_next_round": "8c07ae364164",
    "abort_was_raised": "a962dbc90fe5",
    "stop_as_canceled": "ffc5e18fcf21",
    "no_iterations_are_left": "2dac76f93735",
    "end_with_best_effort": "853b6fd3f0fa",
}
