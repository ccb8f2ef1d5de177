"""Coordinator against its specification: the diagram, the guard table, the loop, the red lines (specification 001)."""

import pytest
from msgspec import structs
from msgspec.structs import replace
from tests.specifications import coordinator as spec
from tests.specifications.coordinator_guards import COORDINATOR_GUARDS
from tests.specifications.documents import name_wording
from tests.support.cases import for_each_case

from steersman.contracts.planning import facts
from steersman.errors import UserError
from steersman.kernel.build import machine
from steersman.kernel.check import check_machine
from steersman.kernel.definition import STAY, GateAnswer, Origin, StateDef, otherwise
from steersman.kernel.explore import explore_machine
from steersman.kernel.machine import row_source_states
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.step import EventOccurrence, StepRefused, StepTaken, name_facts, take_step
from steersman.machines.coordinator import MACHINE, table
from steersman.machines.coordinator.context import CoordinatorContext, IntentReceived
from steersman.views.machine_json import machine_json

S, E = table.S, table.E

# For each job: facts with which everything is well.
WELL = {
    "precheck": facts.PrecheckFacts(looked=True, checksum_matches=True, mode="interactive", report_ref="p-1"),
    "build_context": facts.ContextFacts(memory=True, memories=1, facts=3, policy=True, bundle_ref="p-2"),
    "adjudicate": facts.RulesFacts(commands=2, decided=2, decisions_ref="p-3"),
    "draft": facts.GraphFacts(nodes=4, graph_ref="p-4"),
    "emit": facts.QuestionFacts(asked=1, consumed=1, pack_ref="p-5", pack_digest="d"),
    "answers": GateAnswer("answer", "ann", "d", text="p-6"),
    "weigh": facts.AnswerFacts(weighed=1, settled_ref="p-7"),
    "finalize": facts.GraphFacts(nodes=4, graph_ref="p-8", settled_ref="p-7"),
    "pack": facts.ReviewFacts(pack_ref="p-9"),
    "freeze": facts.FreezeFacts(files=17, manifest_ref="p-10"),
}
# For each guard that stops: the one fact that makes it so.
ILL = {
    "payload": {"payload": 1}, "schema_broken": {"schema_problems": 1}, "checksum_wrong": {"checksum_matches": False},
    "asks_alone": {"broken": ("I2",)}, "risks_alone": {"broken": ("I3",)}, "unevidenced_command": {"broken": ("I4",)},
    "not_registered": {"missing": 1}, "inactive": {"inactive": 1}, "drifted": {"drifted": 1},
    "policy_broken": {"policy_problems": 1}, "registry_broken": {"registry_problems": 1}, "other_mode": {"mode": "semi_auto"},
    "no_memory": {"memory": False}, "no_facts": {"facts": 0}, "no_policy": {"policy": False},
    "routed_away": {"violations": 1}, "conflicting": {"conflicts": 1}, "denied": {"hard_denies": 1},
    "undecidable": {"undecidable": 1}, "unexplained": {"unexplained": 1}, "forbidden": {"forbidden": 1},
    "cyclic": {"cycles": 1}, "unmapped": {"unmapped": 1}, "unassigned": {"unassigned": 1}, "unsupported": {"unsupported": 1},
    "over_budget": {"over": 1}, "unevidenced": {"unevidenced": 1}, "undefaulted": {"undefaulted": 1}, "unfit": {"unfit": 1},
    "stops": {"choice": "stop"}, "malformed": {"problems": 1}, "partial": {"unanswered": 1}, "contradicts": {"conflicts": 1},
    "blocks": {"blocked": 1}, "stopped": {"blocked": 1}, "holes": {"placeholders": 1}, "overruled": {"ruled_out": 1}, "emptied": {"emptied": 1}, "risky": {"alone": 1},
    "overspent": {"over": ("max_files",)}, "unreviewed": {"uncovered": 1}, "unjustified": {"unjustified": 1},
    "ill_formed": {"malformed": 1}, "unmatched": {"unmatched": 1}, "untraced": {"untraced": 1},
}  # fmt: skip


def context(**given):
    return CoordinatorContext(
        **{"mode": "interactive", "task_ref": "p-0", "intent_ref": "p-0", "policy_ref": "p-0", **given}
    )


def at(state, counts=None, **given):
    return Snapshot("r", "coordinator", MACHINE.digest, state, context(**given), counts=counts or {})


def named(job, told, **given):
    """The event that a job's facts are called, and every guard that was asked."""
    happened = name_facts(MACHINE, at("RECEIVED", **given), job, told)
    return happened.event, happened.guards


def led(job, told, **given):
    """Where facts of a job lead from the state that asked for them."""
    (here,) = [s.name for s in MACHINE.states.values() for d in s.work if d.job.name == job]
    event, _ = named(job, told, **given)
    taken = take_step(MACHINE, at(here, **given), EventOccurrence(event, told, event.origin))
    assert isinstance(taken, StepTaken)
    return taken.to


def job_of(passes):
    """The job whose naming has a guard that lets a transition pass."""
    return next(n for n, naming in MACHINE.namings.items() if passes in {g.name for g, _ in naming.pairs})


def begins_with(part, condition):
    """Whether a part of a guard's sentence begins with the wording of a condition."""
    words = part.lower().split()
    ends = range(1, len(words) + 1)
    return condition in {name_wording(" ".join(words[:end]), spec.WORDINGS) for end in ends}


def test_the_states_are_the_thirteen_of_the_specification():
    """§State Definitions: thirteen, in their order; three of them are ends."""
    assert tuple(MACHINE.states) == spec.STATES
    assert tuple(s.name for s in MACHINE.states.values() if s.final) == spec.FINAL
    assert MACHINE.initial.name == "RECEIVED"


@for_each_case("edge", spec.DIAGRAM)
def test_every_edge_of_the_diagram_is_published(edge):
    """§State Transition Diagram: `machine show` has each edge with the specification's own label."""
    source, label, to = edge
    lines = [r for r in machine_json(MACHINE)["rows"] if (r["from"], r["to"]) == (source, to)]
    assert [r for r in lines if not label or name_wording(r["label"], spec.WORDINGS) == label]


def test_rows_beyond_the_diagram_say_where_they_come_from():
    """A row that the diagram does not draw names a section that asks for it, or calls itself an extension."""
    drawn = {(source, to) for source, _, to in spec.DIAGRAM}
    beyond = [r for r in machine_json(MACHINE)["rows"] if (r["from"], r["to"]) not in drawn]
    assert {(r["from"], r["to"]): r["source"] for r in beyond} == {
        ("PRECHECKED", "ABORTED"): "§Red Line #1",
        ("RULES_EVALUATED", "BLOCKED"): "§12",
        (
            "AWAITING_ANSWERS",
            "AWAITING_ANSWERS",
        ): "extension: an AnswerPack that cannot be taken ends nothing",
        ("FROZEN_OUTPUTS", "ABORTED"): "§13",
    }


def test_every_line_of_the_guard_table_has_its_guards_written_down():
    """§Guard Conditions Summary: eleven lines, and nothing stands for a twelfth."""
    assert list(COORDINATOR_GUARDS) == [(line.source, line.to) for line in spec.GUARDS]


@for_each_case("line", spec.GUARDS)
def test_every_guard_of_the_table_is_asked(line):
    """§Guard Conditions Summary: what lets a transition pass is asked in these words, and holds when all is well."""
    passes = COORDINATOR_GUARDS[line.source, line.to].passes
    if passes == "otherwise":
        assert list(MACHINE.computed[line.source].pairs) == [(otherwise, E.intent_accepted)]
        return
    job = job_of(passes)
    guard = next(g for g, _ in MACHINE.namings[job].pairs if g.name == passes)
    # One of several conditions is the sentence of our guard; the mode is asked by the row (see below).
    parts = zip(guard.sentence.split(", "), line.conditions, strict=line.joined == "all")
    assert all(begins_with(part, condition) for part, condition in parts)
    told = structs.replace(WELL[job], askable=1, uncertainties=1) if passes == "uncertain" else WELL[job]
    assert named(job, told)[1][passes] is True
    assert led(job, told) == line.to


STOPS = [(asked.passes, name, to) for asked in COORDINATOR_GUARDS.values() for name, to in asked.stops]


@for_each_case(("passes", "name", "to"), STOPS)
def test_every_guard_that_stops_passes_and_fails(passes, name, to):
    """§Failure Branch of each state, §Red Line #4, §Implementation Notes: one changed fact stops the run there, is recorded by name, and leads where it should."""
    job = job_of(passes)
    told = structs.replace(WELL[job], **ILL[name])
    assert named(job, WELL[job])[1][name] is False
    assert named(job, told)[1][name] is True
    assert named(job, told)[1][passes] is False or passes == "uncertain"
    assert led(job, told) == to


def test_every_guard_is_tried():
    """§Testing Requirements: no guard of the machine is left out above."""
    tried = {asked.passes for asked in COORDINATOR_GUARDS.values()} | {name for _, name, _ in STOPS}
    asked = {g.name for n in MACHINE.namings.values() for g, _ in n.pairs}
    assert asked - tried == {"stops"}
    assert led("answers", GateAnswer("stop", "ann", "d")) == "BLOCKED"


@for_each_case("job", [j for j in WELL if j != "answers"])
def test_what_broke_is_never_a_pass(job):
    """Facts that say nothing, as those of an effect that broke, end in no success and in no next step."""
    empty = MACHINE.jobs[job].returns()
    assert led(job, empty) in ("BLOCKED", "AWAITING_ANSWERS")


def test_abortion_comes_before_blocking():
    """§13: where both a red line and a constraint are broken, the red line is what ends the run."""
    worst = facts.PrecheckFacts(
        looked=True, payload=1, schema_problems=3, broken=("I2", "I3", "I4", "I5"), missing=1,
        mode="full_auto",
    )  # fmt: skip
    assert led("precheck", worst) == "ABORTED"
    assert led("adjudicate", facts.RulesFacts(hard_denies=1, undecidable=1, forbidden=1)) == "ABORTED"
    assert led("freeze", facts.FreezeFacts(malformed=1, unmatched=1, untraced=1)) == "ABORTED"


def test_full_auto_never_asks():
    """§6, §Red Line #2: with the mode full_auto the run goes past QUESTIONS_EMITTED, whatever the facts say."""
    told = structs.replace(WELL["draft"], askable=3, uncertainties=3)
    assert led("draft", told, mode="full_auto") == "GRAPH_FINALIZED"
    assert led("draft", told, mode="semi_auto") == "QUESTIONS_EMITTED"
    reached = {
        node.state
        for node in explore_machine(MACHINE).edges
        if dict(node.constants).get("mode") == "full_auto"
    }
    assert "DONE" in reached
    assert not reached & {"QUESTIONS_EMITTED", "AWAITING_ANSWERS"}


def test_three_conflicts_are_allowed_and_the_fourth_blocks():
    """§Loop Detection: max 3 iterations between AWAITING_ANSWERS and RULES_EVALUATED."""
    event, told = E.answers_conflict, facts.AnswerFacts(conflicts=1)
    for n, to in enumerate(("RULES_EVALUATED", "RULES_EVALUATED", "RULES_EVALUATED", "BLOCKED")):
        here = at("AWAITING_ANSWERS", {"answers_against_rules": n})
        taken = take_step(MACHINE, here, EventOccurrence(event, told, Origin.EFFECT))
        assert isinstance(taken, StepTaken)
        assert taken.to == to


def test_there_is_no_other_way_back():
    """§Forbidden Loops: only that one row leads to an earlier state; a refused pack stays where it is."""
    back = [
        (source, r.to.name, r.cap.limit if r.cap else None)
        for r in MACHINE.rows
        for source in row_source_states(r, tuple(MACHINE.states.values()))
        if source and isinstance(r.to, StateDef) and spec.ORDER[r.to.name] < spec.ORDER[source]
    ]
    assert back == [spec.LOOP]


@pytest.mark.parametrize("state", spec.FINAL)
def test_nothing_leaves_an_end(state):
    """§11–§13: DONE, BLOCKED and ABORTED are terminal."""
    for event in MACHINE.events.values():
        step = take_step(MACHINE, at(state), EventOccurrence(event, None, event.origin))
        assert isinstance(step, StepRefused)
        assert step.legal == ()


def test_nobody_can_send_a_verdict():
    """A person causes the intent alone; everything else comes from an effect, a gate or the machine."""
    by_person = {e.name for e in MACHINE.events.values() if e.origin is Origin.PERSON}
    assert by_person == {"intent_received"}
    forged = EventOccurrence(E.validation_passed, WELL["precheck"], Origin.PERSON)
    assert isinstance(take_step(MACHINE, at("PRECHECKED"), forged), StepRefused)


@pytest.mark.untraced
def test_the_check_finds_nothing_and_would_find_any_missing_row():
    """The machine is followed to a fixpoint over modes, memory, facts and caps; every single removed row is found."""
    assert check_machine(MACHINE).findings == ()
    parts = {
        "states": S, "events": E, "context": MACHINE.context, "namings": table.NAMES, "computes": table.COMPUTES,
        "folds": table.FOLDS, "laws": table.LAWS, "constants": MACHINE.constants, "memory": MACHINE.memory,
        "successes": MACHINE.successes,
    }  # fmt: skip
    rows = table.TABLE
    for n in range(len(rows)):
        assert check_machine(
            machine("coordinator", "", rows=(*rows[:n], *rows[n + 1 :]), **parts)
        ).findings, rows[n].label
    wide = tuple(replace(r, when=otherwise) if r.when is table.FULL_AUTO else r for r in rows)
    assert check_machine(machine("coordinator", "", rows=wide, **parts)).findings


def test_a_run_begins_with_an_intent_and_a_policy():
    """§1: what begins a run is fixed for good; without an intent nothing begins."""
    asked = {
        "mode": "semi_auto", "task_ref": "p-1", "intent_ref": "p-2", "policy_ref": "p-3", "person": "ann",
    }  # fmt: skip
    event, told, made = MACHINE.begin(asked)
    assert (event, told) == (E.intent_received, IntentReceived("p-2", "p-3", "ann"))
    assert (made.mode, made.answers, made.plan_id) == ("semi_auto", "none", "")
    with pytest.raises(UserError, match="steersman plan"):
        MACHINE.begin({"task_ref": "p-1"})


def test_the_gate_asks_about_exactly_one_pack_and_its_silence_approves_nothing():
    """§7: the gate is bound to the questions' digest; time gives defaults or stops, as the policy says."""
    for fallback in ("defaults", "stop"):
        c = context(pack_ref="p-5", pack_digest="d", problems_ref="p-6", fallback=fallback, wait_ms=5000)
        (asked,) = [d.give(c) for d in S.AWAITING_ANSWERS.work if d.job is table.ASK]
        assert asked == {
            "digest": "d", "choices": ["answer", "defaults", "stop"],
            "shown": {"questions": "p-5", "problems": "p-6"}, "after_ms": 5000, "default": fallback,
        }  # fmt: skip


def test_every_state_asks_for_what_it_needs():
    """Inputs of effects are names of documents that the states before have made."""
    c = context(
        bundle_ref="b", decisions_ref="d", risk_ref="r", graph_ref="g", packs=["q"], review_ref="v",
        plan_id="plan_1",
    )  # fmt: skip
    asked = {d.job.name: d.give(c) for s in MACHINE.states.values() for d in s.work if d.job is not table.ASK}
    assert set(asked) == set(WELL) - {"answers"}
    for given in asked.values():
        assert (given["intent"], given["policy"]) == ("p-0", "p-0")
    assert asked["freeze"]["packs"] == ["q"]
    assert asked["emit"]["round"] == 1


def test_what_the_states_bring_is_kept():
    """Each event folds names and digests of documents into the context; a failure is kept wherever it was found."""
    here = at("PRECHECKED")
    for job, told in {**WELL, "draft": structs.replace(WELL["draft"], askable=1)}.items():
        event, _ = named(job, told)
        taken = take_step(MACHINE, here, EventOccurrence(event, told, event.origin))
        assert isinstance(taken, StepTaken)
        here = at(taken.to)
        here.context = taken.context
    c = here.context
    assert here.state == "DONE"
    assert (c.report_ref, c.bundle_ref, c.decisions_ref, c.graph_ref) == ("p-1", "p-2", "p-3", "p-8")
    assert (c.packs, c.answers_ref, c.settled_ref, c.review_ref, c.manifest_ref) == (
        ["p-5"], "p-6", "p-7", "p-9", "p-10",
    )  # fmt: skip
    assert (c.round, c.consumed, c.answered.count) == (1, 1, 1)
    told = facts.QuestionFacts(over=1, failure_ref="p-11", detail_ref="p-12")
    taken = take_step(
        MACHINE, at("QUESTIONS_EMITTED"), EventOccurrence(E.budget_exceeded, told, Origin.EFFECT)
    )
    assert (taken.context.failure_ref, taken.context.detail_ref, taken.context.packs) == ("p-11", "p-12", [])
    digested = structs.replace(WELL["freeze"], manifest_digest="ab")
    taken = take_step(
        MACHINE, at("FROZEN_OUTPUTS"), EventOccurrence(E.outputs_frozen, digested, Origin.EFFECT)
    )
    assert taken.context.outputs == {"manifest": "ab"}


def test_every_row_is_taken_or_stays():
    """Each row has a source, a section and a label; the one that stays keeps the visit."""
    assert all(r.label and r.origin for r in MACHINE.rows)
    assert [r.on.name for r in MACHINE.rows if r.to is STAY] == ["answers_given"]
