"""Facts become the specification's events, and one field of them makes another event."""

from cases import for_each_case
from crew import (
    answer,
    approve,
    at,
    built,
    changes,
    checks,
    commands,
    failing,
    handed_over,
    measured,
    ready,
    said,
)

from steersman.contracts.agent import PROVIDER_CLASSES
from steersman.contracts.facts import (
    AgentFacts,
    BaseFacts,
    BaselineFacts,
    CheckFacts,
    DeliveryFacts,
    SetupFacts,
)
from steersman.kernel.step import name_facts
from steersman.machines.roundtable import MACHINE

HERE = {
    "tree": "t1",
    "failed_commands": ["unit"],
    "failure_keys": ["unit!"],
    "contract_digest": "d",
    "deliver": "merge",
}

# fmt: off
CASES = [
    ("propose",        said(),                                    "roundtable_reviewer"),
    ("propose",        said(""),                                  "provider_protocol_error"),
    ("discuss_review", said(),                                    "roundtable_tester"),
    ("discuss_review", said(""),                                  "provider_protocol_error"),
    ("discuss_test",   said(),                                    "discussion_complete"),
    ("discuss_test",   said(""),                                  "provider_protocol_error"),
    ("prepare",        ready(),                                   "workspace_ready"),
    ("prepare",        SetupFacts(tree="t0", commit="c0"),        "setup_failed"),
    ("measure",        measured(),                                "baseline_recorded"),
    ("measure",        measured(failed=1),                        "baseline_recorded"),
    ("measure",        measured(failed=1, red=1),                 "base_not_green"),
    ("measure",        measured(failed=2, red=1, unstarted=1),    "check_cannot_start"),
    ("measure",        BaselineFacts(error="workspace"),          "check_cannot_start"),
    ("measure_again",  measured(),                                "baseline_recorded"),
    ("measure_again",  measured(failed=2, red=1, unstarted=1),    "baseline_recorded"),
    ("measure_again",  BaselineFacts(error="workspace"),          "baseline_recorded"),
    ("implement",      built("t2"),                               "start_reviewer"),
    ("implement",      built("t1"),                               "coder_changed_nothing"),
    ("implement",      built(""),                                 "provider_protocol_error"),
    ("review",         approve(),                                 "review_approved"),
    ("review",         changes(),                                 "review_changes_requested"),
    ("review",         said(reply={"decision": "maybe"}),         "review_schema_invalid"),
    ("review",         said(),                                    "review_schema_invalid"),
    ("ask_tester",     commands(1),                               "tester_replied"),
    ("ask_tester",     commands(0),                               "tester_schema_invalid"),
    ("ask_tester",     said(),                                    "tester_schema_invalid"),
    ("run_checks",     checks("t1"),                              "tests_passed"),
    ("run_checks",     checks("t0"),                              "tests_failed"),
    ("run_checks",     checks("t1", tests=0),                     "tests_failed"),
    ("run_checks",     checks("t1", passed=0),                    "tests_failed"),
    ("run_checks",     checks("t1", no_tests=1),                  "tests_failed"),
    ("run_checks",     checks("t1", timeout=1),                   "tests_failed"),
    ("run_checks",     checks("t1", error="workspace"),           "tests_failed"),
    ("run_checks",     CheckFacts(),                              "tests_failed"),
    ("run_checks",     failing("t1", "lint"),                     "tests_failed"),
    ("run_checks",     failing("t1", "unit"),                     "repeated_test_failure"),
    ("run_checks",     failing("t1", "lint", blocked=1),          "tests_failed"),
    ("run_checks",     failing("t1", "unit", blocked=1),          "repeated_test_failure"),
    ("run_checks",     checks("t1", blocked=1),                   "tester_command_blocked"),
    ("run_checks",     checks("t1", blocked=1, passed=0),         "tester_command_blocked"),
    ("run_checks",     checks("t1", known=1),                     "tests_passed"),
    ("run_checks",     checks("t1", passed=0, known=1),           "tests_passed"),
    ("run_checks",     checks("t1", known=1, failed=1),           "tests_failed"),
    ("run_checks",     checks("t1", missing=1),                   "evidence_questioned"),
    ("run_checks",     checks("t1", flaky=1, passed=0),           "evidence_questioned"),
    ("run_checks",     checks("t1", doubts=1),                    "evidence_questioned"),
    ("run_checks",     checks("t0", doubts=1),                    "tests_failed"),
    ("run_checks",     checks("t1", missing=1, failed=1),         "tests_failed"),
    ("run_checks",     checks("t1", missing=1, blocked=1),        "tester_command_blocked"),
    ("evidence",       answer("approve", "t1"),                   "evidence_accepted"),
    ("evidence",       answer("approve", "t0"),                   "evidence_declined"),
    ("evidence",       answer("approve", ""),                     "evidence_declined"),
    ("evidence",       answer("rework", "t1"),                    "evidence_declined"),
    ("evidence",       answer("", "t1", timed_out=True),          "evidence_declined"),
    ("evidence",       answer("reject", "t1"),                    "aborted_by_operator"),
    ("recall",         checks("t1"),                              "tests_failed"),
    ("confirm",        answer("approve", "d"),                    "task_followup_received"),
    ("confirm",        answer("rework", "d"),                     "task_followup_received"),
    ("confirm",        answer("reject", "d"),                     "aborted_by_operator"),
    ("merge",          answer("approve", "t1"),                   "merge_granted"),
    ("merge",          answer("approve", "t0"),                   "merge_declined"),
    ("merge",          answer("reject", "t1"),                    "merge_declined"),
    ("look_at_base",   BaseFacts(),                               "base_unmoved"),
    ("look_at_base",   BaseFacts(moved=True, tree="t2"),          "base_moved"),
    ("look_at_base",   BaseFacts(moved=True, rewritten=2),        "base_rewritten"),
    ("look_at_base",   BaseFacts(moved=True, conflicts=1),        "base_refused"),
    ("look_at_base",   BaseFacts(moved=True, absorbed=True),      "base_refused"),
    ("look_at_base",   BaseFacts(error="workspace"),              "base_refused"),
    ("moving",         answer("approve", "t1"),                   "another_look_granted"),
    ("moving",         answer("reject", "t1"),                    "aborted_by_operator"),
    ("rewrite",        answer("approve", "t1"),                   "rewrite_accepted"),
    ("rewrite",        answer("", "t1", timed_out=True),          "another_look_granted"),
    ("rewrite",        answer("reject", "t1"),                    "aborted_by_operator"),
    ("recheck",        answer("approve", "t1"),                   "recheck_granted"),
    ("recheck",        answer("reject", "t1"),                    "merge_declined"),
    ("deliver",        DeliveryFacts(moved=True),                 "delivery_overtaken"),
    ("deliver",        handed_over(),                             "delivered"),
    ("deliver",        DeliveryFacts(ref="refs/heads/x"),         "delivery_failed"),
    ("revert",         handed_over(),                             "reverted"),
    ("revert",         DeliveryFacts(ref="refs/heads/x"),         "revert_failed"),
]
# fmt: on


@for_each_case(("job", "facts", "event"), CASES)
def test_facts_become_an_event(job, facts, event):
    """A job's facts name one event, every guard of the naming is evaluated, and the event is of the job's origin."""
    happened = name_facts(MACHINE, at("test", **HERE), job, facts)
    assert happened.event.name == event
    assert happened.data is facts
    assert list(happened.guards) == [g.name for g, _ in MACHINE.namings[job].pairs]


AGENTS = [job.name for job in MACHINE.jobs.values() if job.returns is AgentFacts]


@for_each_case("job", AGENTS)
@for_each_case("error", PROVIDER_CLASSES)
def test_a_provider_error_is_its_own_event(job, error):
    """An error class beats whatever else the agent brought: a failing provider never judges."""
    facts = said(error=error, tree="t2", reply={"decision": "approve", "commands": 1, "must_fix": []})
    assert name_facts(MACHINE, at("test", **HERE), job, facts).event.name == error


def test_every_pair_of_every_naming_is_reached():
    """Every event that a naming can give is given by one of these cases."""
    named = {(n.subject.name, e.name) for n in MACHINE.namings.values() for _, e in n.pairs}
    told = (
        {(job, event) for job, _, event in CASES}
        | {("recall", "tests_passed")}
        | {(job, e) for job in AGENTS for e in PROVIDER_CLASSES}
    )
    assert named == told


def test_a_branch_of_its_own_is_overtaken_by_nothing():
    """Only a merge can be overtaken: a delivery to the run's own branch that says so has failed."""
    here = at("test", **{**HERE, "deliver": "branch"})
    assert name_facts(MACHINE, here, "deliver", DeliveryFacts(moved=True)).event.name == "delivery_failed"


TOUCHED = [
    (checks("t1"), "evidence_questioned"),
    (checks("t1", known=1), "evidence_questioned"),
    (checks("t1", tests=0), "tests_failed"),
    (checks("t0"), "tests_failed"),
    (checks("t1", failed=1), "tests_failed"),
    (checks("t1", blocked=1), "tester_command_blocked"),
]


@for_each_case(("facts", "event"), TOUCHED)
def test_changed_infrastructure_is_never_passed_by_its_own_checks(facts, event):
    """With changed infrastructure a pass is a question to a person; a failure stays a failure."""
    assert (
        name_facts(MACHINE, at("test", **HERE, infrastructure="changed"), "run_checks", facts).event.name
        == event
    )


@for_each_case(
    ("accepted", "facts", "event"),
    [
        ("t1", checks("t1"), "tests_passed"),
        ("t1", checks("t1", flaky=1, passed=0, missing=2), "tests_passed"),
        ("t0", checks("t1"), "tests_failed"),
        ("", checks("t1"), "tests_failed"),
        ("t1", checks("t2"), "tests_failed"),
        ("t1", checks("t1", failed=1), "tests_failed"),
        ("t1", checks("t1", tests=0), "tests_failed"),
        ("t1", CheckFacts(), "tests_failed"),
        ("t1", checks("t1", error="workspace"), "tests_failed"),
    ],
)
def test_only_what_was_accepted_of_the_current_tree_passes(accepted, facts, event):
    """An acceptance counts for one tree, and for nothing that was not recorded as passing there."""
    here = at("test", **HERE, infrastructure="changed", evidence="accepted", accepted_tree=accepted)
    assert name_facts(MACHINE, here, "recall", facts).event.name == event


def test_the_same_failure_may_be_asked_for():
    """With `same_failure` the same command failing in another way is a failure, not a repeated one."""
    here = at("test", **HERE, repeated="same_failure")
    other = failing("t1", "unit", failure_keys=("unit?",))
    assert name_facts(MACHINE, here, "run_checks", other).event.name == "tests_failed"
    assert (
        name_facts(MACHINE, here, "run_checks", failing("t1", "unit")).event.name == "repeated_test_failure"
    )
