"""Random walks through roundtable: what is rebuilt from the tape is what was live, and decides the same again."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.simulated_roundtable import SIMULATED_RUN, SimulatedRun, gate_answer, roundtable_payload

from steersman.contracts.agent import PROVIDER_CLASSES
from steersman.contracts.facts import (
    AgentFacts,
    BaseFacts,
    BaselineFacts,
    CheckFacts,
    DeliveryFacts,
    SetupFacts,
)
from steersman.kernel.canonical import canonical_bytes, plain_value
from steersman.kernel.definition import Origin
from steersman.kernel.machine import definition_data
from steersman.kernel.replay import convert_context, decision_hash, rebuild_snapshot, repeat_decisions
from steersman.kernel.snapshot import state_hash
from steersman.machines.roundtable import MACHINE

WALKS = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))

SENT = (
    "task_followup_received", "aborted_by_operator", "delivery_requested", "revert_requested", "tests_passed",
)  # fmt: skip
trees = st.sampled_from(("", "t0", "t1", "t2", "t3"))
names = st.lists(st.sampled_from(("unit", "lint", "types")), max_size=2, unique=True).map(tuple)
small = st.sampled_from((0, 1, 1, 2))
rare = st.sampled_from((0,) * 8 + (1,))
findings = st.lists(st.sampled_from(("f-1", "f-2", "f-3")), max_size=3, unique=True)
replies = st.one_of(
    st.none(),
    st.builds(
        lambda d, ids, fixed, n: {"decision": d, "must_fix": [{"id": i, "text": f"p-{i}"} for i in ids], "fixed": fixed, "commands": n, "commands_ref": "p-a"},
        st.sampled_from(("approve", "approve", "changes_requested")), findings, findings, st.integers(0, 2),
    ),
)  # fmt: skip
FACTS = {
    AgentFacts: st.builds(
        AgentFacts, error=st.sampled_from(("",) * 20 + PROVIDER_CLASSES), text_ref=st.sampled_from(("p-x",) * 9 + ("",)), reply=replies,
        tree=trees, commit=trees, patch_ref=trees, detail_ref=trees, infrastructure=small, infrastructure_ref=trees, tokens=st.none() | st.integers(0, 9),
    ),
    CheckFacts: st.builds(
        CheckFacts, tree=trees, passed=small, failed=rare, blocked=rare, timeout=rare, no_tests=rare, tests=small,
        known=rare, flaky=rare, missing=rare, doubts=rare, questions_ref=trees,
        failed_commands=names, failure_keys=names, results_ref=trees, first_ref=trees, error=st.sampled_from(("",) * 9 + ("workspace",)),
    ),
    BaselineFacts: st.builds(BaselineFacts, tree=trees, checks=small, failed=small, results_ref=trees, error=st.sampled_from(("", "workspace"))),
    SetupFacts: st.builds(SetupFacts, ready=st.booleans(), tree=trees, commit=trees, steps=small, detail_ref=trees),
    DeliveryFacts: st.builds(DeliveryFacts, done=st.booleans(), moved=st.booleans(), ref=trees, commit=trees, detail_ref=trees),
    BaseFacts: st.builds(
        BaseFacts, moved=st.booleans(), rewritten=rare, conflicts=rare, absorbed=st.booleans(), base=trees, base_tree=trees,
        commit=trees, tree=trees, patch_ref=trees, told_ref=trees, error=st.sampled_from(("",) * 9 + ("workspace",)),
    ),
}  # fmt: skip


@st.composite
def walks(draw):
    """A run of up to 40 steps: jobs that come back with any facts, people who say anything."""
    tape = SimulatedRun(
        mode=draw(st.sampled_from(("proposal", "implementation"))),
        deliver=draw(st.sampled_from(("branch", "merge", "draft-pr"))),
        repeated=draw(st.sampled_from(("same_command", "same_failure"))),
        max_iterations=draw(st.integers(1, 4)),
        same_finding=2,
    )
    for _ in range(draw(st.integers(0, 40))):
        jobs = tape.open_jobs()
        if jobs and draw(st.integers(0, 9)):
            job = draw(st.sampled_from(jobs))
            tape.finish(job, draw(facts_of(tape, job)))
        else:
            digest = draw(st.sampled_from(("", "x", tape.context.contract_digest)))
            said = gate_answer(draw(st.sampled_from(("approve", "rework", "reject"))), digest)
            event = draw(st.sampled_from(SENT))
            tape.send(
                event,
                roundtable_payload(event) if event in ("delivery_requested", "revert_requested") else said,
            )
    return tape


def facts_of(tape, job):
    item = tape.item(job)
    if item.kind == "gate":
        digests = st.sampled_from((item.input["digest"], item.input["digest"], "x"))
        return st.builds(gate_answer, st.sampled_from(item.input["choices"]), digests)
    return FACTS[MACHINE.jobs[job].returns]


@WALKS
@given(walks())
def test_what_is_rebuilt_is_what_was_live(tape):
    """Applying the recorded ops on plain data gives the run that was computed with the machine's own code."""
    back = rebuild_snapshot(tape.rows, SIMULATED_RUN)
    assert plain_value(back) == plain_value(tape.snapshot)
    assert canonical_bytes(convert_context(MACHINE, back)) == canonical_bytes(tape.snapshot)
    assert state_hash(back) == state_hash(tape.snapshot)


@WALKS
@given(walks())
def test_every_decision_is_decided_the_same_again(tape):
    """Every recorded transition is decided again to the same row, guards and ops."""
    verdicts = list(repeat_decisions(MACHINE, tape.entries))
    assert [d for d in verdicts if d.verdict != "same"] == []
    assert len(verdicts) == len(tape.events)
    assert (
        list(repeat_decisions(MACHINE, tape.entries, {MACHINE.digest: definition_data(MACHINE)})) == verdicts
    )


@WALKS
@given(walks())
def test_the_decision_hash_is_about_decisions_alone(tape):
    """It is the same for the entries as they were made and as they are read back, and refusals do not change it."""
    live = decision_hash(s.entry for s in tape.stored)
    assert live == decision_hash(e for e, _ in tape.entries)
    tape.send("tests_passed", gate_answer("approve"), Origin.PERSON)
    assert live == decision_hash(e for e, _ in tape.entries)


@WALKS
@given(walks())
def test_seals_say_what_the_run_was(tape):
    """The state hash of every seal is the hash of the run as it is rebuilt up to there."""
    for n, sealed in enumerate(tape.stored):
        if sealed.entry.kind == "sealed":
            assert sealed.entry.state_hash == state_hash(rebuild_snapshot(tape.rows[:n], SIMULATED_RUN))


@WALKS
@given(walks())
def test_no_walk_ends_approved_without_the_answer_it_needs(tape):
    """Approved with changed infrastructure there is only what a person has accepted, on exactly that tree."""
    c = tape.context
    if c.outcome == "approved" and c.infrastructure == "changed":
        assert c.accepted_tree == c.tree
        assert "evidence_accepted" in tape.events


@WALKS
@given(walks())
def test_folds_leave_alone_what_the_check_follows(tape):
    """Constants never change, and a memory field changes only where a row says so."""
    for sealed in tape.stored:
        entry = sealed.entry
        for op in entry.ops:
            assert op[1] not in MACHINE.constants
            if op[1] in MACHINE.memory:
                assert op[2] in MACHINE.memory[op[1]]
