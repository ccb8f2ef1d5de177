"""Facts become the specification's events, and one field of them makes another event."""

from tests.support.cases import for_each_case
from tests.support.simulated_roundtable import (
    agent_facts,
    approval_facts,
    baseline_facts,
    change_facts,
    change_request_facts,
    check_facts,
    command_facts,
    delivery_facts,
    failed_check_facts,
    gate_answer,
    roundtable_at,
    setup_facts,
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
    "tree": "t1", "failed_commands": ["unit"], "failure_keys": ["unit!"], "contract_digest": "d",
    "deliver": "merge",
}  # fmt: skip

# fmt: off
CASES = [
    ("propose",        agent_facts(),                                    "roundtable_reviewer"),
    ("propose",        agent_facts(""),                                  "provider_protocol_error"),
    ("discuss_review", agent_facts(),                                    "roundtable_tester"),
    ("discuss_review", agent_facts(""),                                  "provider_protocol_error"),
    ("discuss_test",   agent_facts(),                                    "discussion_complete"),
    ("discuss_test",   agent_facts(""),                                  "provider_protocol_error"),
    ("prepare",        setup_facts(),                                   "workspace_ready"),
    ("prepare",        SetupFacts(tree="t0", commit="c0"),        "setup_failed"),
    ("measure",        baseline_facts(),                                "baseline_recorded"),
    ("measure",        baseline_facts(failed=1),                        "baseline_recorded"),
    ("measure",        baseline_facts(failed=1, red=1),                 "base_not_green"),
    ("measure",        baseline_facts(failed=2, red=1, unstarted=1),    "check_cannot_start"),
    ("measure",        BaselineFacts(error="workspace"),          "check_cannot_start"),
    ("measure_again",  baseline_facts(),                                "baseline_recorded"),
    ("measure_again",  baseline_facts(failed=2, red=1, unstarted=1),    "baseline_recorded"),
    ("measure_again",  BaselineFacts(error="workspace"),          "baseline_recorded"),
    ("implement",      change_facts("t2"),                               "start_reviewer"),
    ("implement",      change_facts("t1"),                               "coder_changed_nothing"),
    ("implement",      change_facts(""),                                 "provider_protocol_error"),
    ("review",         approval_facts(),                                 "review_approved"),
    ("review",         change_request_facts(),                                 "review_changes_requested"),
    ("review",         agent_facts(reply={"decision": "maybe"}),         "review_schema_invalid"),
    ("review",         agent_facts(),                                    "review_schema_invalid"),
    ("ask_tester",     command_facts(1),                               "tester_replied"),
    ("ask_tester",     command_facts(0),                               "tester_schema_invalid"),
    ("ask_tester",     agent_facts(),                                    "tester_schema_invalid"),
    ("run_checks",     check_facts("t1"),                              "tests_passed"),
    ("run_checks",     check_facts("t0"),                              "tests_failed"),
    ("run_checks",     check_facts("t1", tests=0),                     "tests_failed"),
    ("run_checks",     check_facts("t1", passed=0),                    "tests_failed"),
    ("run_checks",     check_facts("t1", no_tests=1),                  "tests_failed"),
    ("run_checks",     check_facts("t1", timeout=1),                   "tests_failed"),
    ("run_checks",     check_facts("t1", error="workspace"),           "tests_failed"),
    ("run_checks",     CheckFacts(),                              "tests_failed"),
    ("run_checks",     failed_check_facts("t1", "lint"),                     "tests_failed"),
    ("run_checks",     failed_check_facts("t1", "unit"),                     "repeated_test_failure"),
    ("run_checks",     failed_check_facts("t1", "lint", blocked=1),          "tests_failed"),
    ("run_checks",     failed_check_facts("t1", "unit", blocked=1),          "repeated_test_failure"),
    ("run_checks",     check_facts("t1", blocked=1),                   "tester_command_blocked"),
    ("run_checks",     check_facts("t1", blocked=1, passed=0),         "tester_command_blocked"),
    ("run_checks",     check_facts("t1", known=1),                     "tests_passed"),
    ("run_checks",     check_facts("t1", passed=0, known=1),           "tests_passed"),
    ("run_checks",     check_facts("t1", known=1, failed=1),           "tests_failed"),
    ("run_checks",     check_facts("t1", missing=1),                   "evidence_questioned"),
    ("run_checks",     check_facts("t1", flaky=1, passed=0),           "evidence_questioned"),
    ("run_checks",     check_facts("t1", doubts=1),                    "evidence_questioned"),
    ("run_checks",     check_facts("t0", doubts=1),                    "tests_failed"),
    ("run_checks",     check_facts("t1", missing=1, failed=1),         "tests_failed"),
    ("run_checks",     check_facts("t1", missing=1, blocked=1),        "tester_command_blocked"),
    ("evidence",       gate_answer("approve", "t1"),                   "evidence_accepted"),
    ("evidence",       gate_answer("approve", "t0"),                   "evidence_declined"),
    ("evidence",       gate_answer("approve", ""),                     "evidence_declined"),
    ("evidence",       gate_answer("rework", "t1"),                    "evidence_declined"),
    ("evidence",       gate_answer("", "t1", timed_out=True),          "evidence_declined"),
    ("evidence",       gate_answer("reject", "t1"),                    "aborted_by_operator"),
    ("recall",         check_facts("t1"),                              "tests_failed"),
    ("confirm",        gate_answer("approve", "d"),                    "task_followup_received"),
    ("confirm",        gate_answer("rework", "d"),                     "task_followup_received"),
    ("confirm",        gate_answer("reject", "d"),                     "aborted_by_operator"),
    ("merge",          gate_answer("approve", "t1"),                   "merge_granted"),
    ("merge",          gate_answer("approve", "t0"),                   "merge_declined"),
    ("merge",          gate_answer("reject", "t1"),                    "merge_declined"),
    ("look_at_base",   BaseFacts(),                               "base_unmoved"),
    ("look_at_base",   BaseFacts(moved=True, tree="t2"),          "base_moved"),
    ("look_at_base",   BaseFacts(moved=True, rewritten=2),        "base_rewritten"),
    ("look_at_base",   BaseFacts(moved=True, conflicts=1),        "base_refused"),
    ("look_at_base",   BaseFacts(moved=True, absorbed=True),      "base_refused"),
    ("look_at_base",   BaseFacts(error="workspace"),              "base_refused"),
    ("moving",         gate_answer("approve", "t1"),                   "another_look_granted"),
    ("moving",         gate_answer("reject", "t1"),                    "aborted_by_operator"),
    ("rewrite",        gate_answer("approve", "t1"),                   "rewrite_accepted"),
    ("rewrite",        gate_answer("", "t1", timed_out=True),          "another_look_granted"),
    ("rewrite",        gate_answer("reject", "t1"),                    "aborted_by_operator"),
    ("recheck",        gate_answer("approve", "t1"),                   "recheck_granted"),
    ("recheck",        gate_answer("reject", "t1"),                    "merge_declined"),
    ("deliver",        DeliveryFacts(moved=True),                 "delivery_overtaken"),
    ("deliver",        delivery_facts(),                             "delivered"),
    ("deliver",        DeliveryFacts(ref="refs/heads/x"),         "delivery_failed"),
    ("revert",         delivery_facts(),                             "reverted"),
    ("revert",         DeliveryFacts(ref="refs/heads/x"),         "revert_failed"),
]
# fmt: on


@for_each_case(("job", "facts", "event"), CASES)
def test_facts_become_an_event(job, facts, event):
    """A job's facts name one event, every guard of the naming is evaluated, and the event is of the job's origin."""
    happened = name_facts(MACHINE, roundtable_at("test", **HERE), job, facts)
    assert happened.event.name == event
    assert happened.data is facts
    assert list(happened.guards) == [g.name for g, _ in MACHINE.namings[job].pairs]


AGENTS = [job.name for job in MACHINE.jobs.values() if job.returns is AgentFacts]


@for_each_case("job", AGENTS)
@for_each_case("error", PROVIDER_CLASSES)
def test_a_provider_error_is_its_own_event(job, error):
    """An error class beats whatever else the agent brought: a failing provider never judges."""
    facts = agent_facts(error=error, tree="t2", reply={"decision": "approve", "commands": 1, "must_fix": []})
    assert name_facts(MACHINE, roundtable_at("test", **HERE), job, facts).event.name == error


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
    here = roundtable_at("test", **{**HERE, "deliver": "branch"})
    assert name_facts(MACHINE, here, "deliver", DeliveryFacts(moved=True)).event.name == "delivery_failed"


TOUCHED = [
    (check_facts("t1"), "evidence_questioned"),
    (check_facts("t1", known=1), "evidence_questioned"),
    (check_facts("t1", tests=0), "tests_failed"),
    (check_facts("t0"), "tests_failed"),
    (check_facts("t1", failed=1), "tests_failed"),
    (check_facts("t1", blocked=1), "tester_command_blocked"),
]


@for_each_case(("facts", "event"), TOUCHED)
def test_changed_infrastructure_is_never_passed_by_its_own_checks(facts, event):
    """With changed infrastructure a pass is a question to a person; a failure stays a failure."""
    assert (
        name_facts(
            MACHINE, roundtable_at("test", **HERE, infrastructure="changed"), "run_checks", facts
        ).event.name
        == event
    )


@for_each_case(
    ("accepted", "facts", "event"),
    [
        ("t1", check_facts("t1"), "tests_passed"),
        ("t1", check_facts("t1", flaky=1, passed=0, missing=2), "tests_passed"),
        ("t0", check_facts("t1"), "tests_failed"),
        ("", check_facts("t1"), "tests_failed"),
        ("t1", check_facts("t2"), "tests_failed"),
        ("t1", check_facts("t1", failed=1), "tests_failed"),
        ("t1", check_facts("t1", tests=0), "tests_failed"),
        ("t1", CheckFacts(), "tests_failed"),
        ("t1", check_facts("t1", error="workspace"), "tests_failed"),
    ],
)
def test_only_what_was_accepted_of_the_current_tree_passes(accepted, facts, event):
    """An acceptance counts for one tree, and for nothing that was not recorded as passing there."""
    here = roundtable_at(
        "test", **HERE, infrastructure="changed", evidence="accepted", accepted_tree=accepted
    )
    assert name_facts(MACHINE, here, "recall", facts).event.name == event


def test_the_same_failure_may_be_asked_for():
    """With `same_failure` the same command failing in another way is a failure, not a repeated one."""
    here = roundtable_at("test", **HERE, repeated="same_failure")
    other = failed_check_facts("t1", "unit", failure_keys=("unit?",))
    assert name_facts(MACHINE, here, "run_checks", other).event.name == "tests_failed"
    assert (
        name_facts(MACHINE, here, "run_checks", failed_check_facts("t1", "unit")).event.name
        == "repeated_test_failure"
    )
