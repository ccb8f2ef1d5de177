"""No phase is skipped: every state × everything that can come back there × every condition of the files, to the end.

What may be is written down here from the specification and asked of the machine; the number of combinations is printed.
"""

from collections import Counter
from itertools import product

import pytest
from msgspec.structs import replace
from tests.specifications import task as spec
from tests.support.cases import for_each_case
from tests.support.simulated_task import (
    ALL_DOCUMENTS,
    PHASE_DOCUMENTS,
    base_conflict_facts,
    coder_facts,
    failed_agent_facts,
    inspection_facts,
    moved_base_facts,
    reply_facts,
    successful_facts,
    task_at,
    task_payload,
)

from steersman.contracts.facts import AgentFacts, BaseFacts
from steersman.kernel.definition import Origin
from steersman.kernel.step import (
    EventOccurrence,
    StepRefused,
    StepTaken,
    name_facts,
    override_guard,
    take_step,
)
from steersman.machines.task import MACHINE
from steersman.machines.task.facts import InspectFacts, RecordFacts

pytestmark = pytest.mark.untraced

PHASES = spec.STATES[:-1]
LOOKS = {
    p.name: next(d.job.name for d in p.work if d.job.does == "task_inspect")
    for p in MACHINE.states.values()
    if p.work
}
DRAWN = {(source, to) for source, _, to in spec.DIAGRAM if source} | {
    ("revert", "accept")
}  # the last: it conflicts
NAMES = ("", "accepted", "changes_requested", "review_requested", "replan_requested", "revert_requested")
STEPS = MACHINE.memory["step"]

# What the documents of a phase may say, and what the task may know: every value that a rule of §3 tells apart.
SAYS = {
    "planning": {"blocking": (0, 1), "files": (0, 2)},
    "plan_review": {"ok": (False, True), "blocked": (False, True)},
    "codegen": {"copies": (0, 1), "patch": (0, 9), "outside": (0, 1), "tree": ("", "t0", "t1")},
    "review": {
        "ok": (False, True),
        "decision": ("", "passes", "needs_changes", "plan_flawed"),
        "tree": ("", "t0", "t1"),
    },
    "test": {"overall_pass": (False, True), "tree": ("", "t0", "t1")},
    "accept": {"decision": NAMES},
    "revert": {"status": ("", "reverted", "nothing_delivered", "conflicted")},
}
KNOWS = {
    "codegen": {"coder_status": ("", "done", "plan_unclear", "scope_mismatch")},
    "test": {
        "evidence": ("plain", "touched", "accepted"),
        "checks": ({}, {"tree": "t0"}, {"tree": "t1"}, {"tree": "t1", "flaky": 1}),
    },
    "accept": {
        "decision": ("none", *NAMES[1:]),
        "delivered": ("no", "yes", "reverted"),
        "delivered_tree": ("", "t1"),
    },
    "revert": {"delivered": ("no", "yes", "reverted")},
}
# §3, once more and by other means than the machine's: when a phase may be left forward.
MAY = {
    ("planning", "plan_review"): lambda _, e: e.blocking == 0 and e.files,
    ("plan_review", "codegen"): lambda _, e: e.ok and not e.blocked,
    ("codegen", "review"): lambda c, e: (
        e.copies and e.patch and not e.outside and e.tree == "t1" and c.coder_status in ("", "done")
    ),
    ("review", "test"): lambda _, e: e.ok and e.decision == "passes" and e.tree == "t1",
    ("test", "accept"): lambda c, e: (
        e.overall_pass
        and e.tree == c.checks.get("tree") == "t1"
        and (c.evidence == "accepted" or (c.evidence == "plain" and not c.checks.get("flaky")))
    ),
    ("accept", "done"): lambda _c, _e: False,  # only by a delivery, which is no look
    ("accept", "revert"): lambda c, e: c.decision == e.decision == "revert_requested",
    ("revert", "done"): lambda _, e: e.status in ("reverted", "nothing_delivered"),
}
CONDITIONS = ("as recorded", "missing", "garbage")
WATCHED = (  # pace, step, whether the person has seen exactly this
    ("through", "inspect", False),
    ("step", "inspect", True),
    ("step", "confirmed", False),
    ("step", "confirmed", True),
)


def products(choices):
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def groups(phase):
    """The files of the phase itself, of those before it and of those after it."""
    n = PHASES.index(phase)
    of = [
        tuple(name for p in some for name in PHASE_DOCUMENTS[p])
        for some in (PHASES[n : n + 1], PHASES[:n], PHASES[n + 1 :])
    ]
    return [names for names in of if names]


def files(phase):
    """Every condition of the three groups: what a look at the disk would bring back of them."""
    for conditions in product(CONDITIONS, repeat=len(groups(phase))):
        seen, damaged = {}, 0
        for names, condition in zip(groups(phase), conditions, strict=True):
            for name in names:
                seen[name] = {"as recorded": f"d-{name}", "missing": "", "garbage": "garbage"}[condition]
            damaged += 0 if condition == "as recorded" else len(names)
        yield seen, damaged


def taken(here, job, told):
    happened = name_facts(MACHINE, here, job, told)
    done = take_step(MACHINE, here, happened)
    assert isinstance(done, StepTaken), (here.state, happened.event.name)
    return happened.event.name, done


def _may(phase, to, c, e):
    """Whether a phase may be left for another one: forward by its rule, back at any time."""
    rule = MAY.get((phase, to))
    return spec.ORDER[to] < spec.ORDER[phase] if rule is None else bool(rule(c, e))


@for_each_case("phase", PHASES)
def test_a_look_at_the_disk_skips_nothing(phase):
    """Whatever is on disk and whatever it says: damage never goes on, and what goes on is drawn and what its rule asks for."""
    tried, left = 0, Counter()
    known = products(KNOWS.get(phase, {}))
    for (seen, damaged), says, knows, (pace, step_, same) in product(
        files(phase), products(SAYS[phase]), known, WATCHED
    ):
        shown = seen if same else {**seen, "x": "another"}
        here = task_at(phase, pace=pace, step=step_, seen=shown, **knows)
        told = replace(
            inspection_facts(here.context, phase), seen=seen, damaged=damaged, adoptable=damaged, **says
        )
        event, done = taken(here, LOOKS[phase], told)
        tried += 1
        if damaged:
            assert (event, done.to, done.context.step) == ("documents_damaged", phase, "damaged")
        if pace == "step" and not (step_ == "confirmed" and same) and phase in PHASES[:5]:
            assert done.to == phase
        if done.to != phase:
            left[done.to] += 1
            assert (phase, done.to) in DRAWN
            assert not damaged
            assert _may(phase, done.to, here.context, told)
    forward = {to for source, to in MAY if source == phase} - {"done" if phase == "accept" else ""}
    assert forward <= set(left), left
    print(f"{phase}: {tried} combinations, left for {dict(left)}")


@for_each_case("phase", PHASES)
def test_what_a_look_may_lead_to_is_all_that_it_leads_to(phase):
    """Undamaged and shown, the machine goes forward exactly when the rule of §3 lets it: it never says no without a reason."""
    for says, knows in product(products(SAYS[phase]), products(KNOWS.get(phase, {}))):
        here = task_at(phase, **knows)
        told = replace(inspection_facts(here.context, phase), **says)
        _, done = taken(here, LOOKS[phase], told)
        for (source, to), may in MAY.items():
            if source == phase:
                assert (done.to == to) == bool(may(here.context, told)), (says, knows, done.to)


HOSTILE = {  # whatever else an effect may bring back
    "agent": (
        failed_agent_facts(),
        AgentFacts(),
        reply_facts("x", decision="approve", ready=True),
        coder_facts("t9", infrastructure=1),
    ),
    "task_base": (
        BaseFacts(),
        BaseFacts(error="x"),
        moved_base_facts(),
        base_conflict_facts(),
        BaseFacts(moved=True),
        BaseFacts(conflicts=1),
    ),
}
ELSEWHERE = {  # the only jobs but a look at the disk that leave a phase, and where they lead
    ("accept", "look_at_base", "review"),
    ("accept", "look_at_base", "codegen"),
    ("accept", "deliver", "done"),
    ("test", "evidence", "codegen"),
}


def test_no_other_work_leaves_a_phase():
    """Agents, suites, records, repairs, gates: whatever they bring back, on every step, the phase stays but for four ways."""
    tried, left = 0, set()
    for phase in MACHINE.states.values():
        jobs = [d.job for d in phase.work if d.job.does != "task_inspect"]
        for job, step_, reviewers in product(jobs, STEPS, (["two"], ["one", "two"])):
            here = task_at(
                phase.name, step=step_, plan_reviewers=reviewers, code_reviewers=reviewers, evidence="touched"
            )
            for told in _brought(here, phase.name, job):
                done = take_step(MACHINE, here, name_facts(MACHINE, here, job.name, told))
                tried += 1
                if isinstance(done, StepTaken) and done.to != phase.name:
                    left.add((phase.name, job.name, done.to))
    assert left == ELSEWHERE
    print(f"{tried} results of other work")


def _brought(here, phase, job):
    fine = successful_facts(here.context, phase, job.name, {"role": "two", "digest": "d"})
    yield fine
    if job.kind == "gate":
        yield from (
            replace(fine, choice=c, digest=d)
            for c in ("", "approve", "rework", "adopt", "retry", "begin")
            for d in ("", "t1")
        )
        return
    yield from HOSTILE.get(job.does, ())
    empty = {"run": "r", "outcome": "x"} if job.kind == "child" else {}
    yield type(fine)(**empty)
    if isinstance(fine, RecordFacts):
        yield replace(fine, error_ref="p-x")


def test_no_word_of_a_person_goes_forward():
    """Everything that a person may say, in every state, on every step, whichever files are recorded: back, or nowhere."""
    events = [e for e in MACHINE.events.values() if e.origin is Origin.PERSON]
    tried = 0
    for state, event, step_, gone, delivered in product(
        MACHINE.states, events, STEPS, (None, *ALL_DOCUMENTS, "all"), ("no", "yes")
    ):
        here = task_at(state, step=step_, delivered=delivered, **_without(gone))
        step = take_step(MACHINE, here, EventOccurrence(event, task_payload(event.name), Origin.PERSON))
        tried += 1
        if isinstance(step, StepTaken):
            assert spec.ORDER[step.to] <= spec.ORDER[state]
            assert state != "done" or event.name.startswith("redo_")
    print(f"{tried} words of persons")


def _without(gone):
    """The recorded files but one, or none of them."""
    if gone is None:
        return {}
    return {"artifacts": {} if gone == "all" else {n: f"d-{n}" for n in ALL_DOCUMENTS if n != gone}}


def test_an_override_waives_one_edge_and_never_a_phase():
    """Of all pairs of states, on every step, whichever files are recorded: the five direct edges, where there is input."""
    needs = dict(
        zip(
            spec.FORWARD,
            ("planning/planning.ai.json", "plan.files.json", *["code/files.json"] * 3),
            strict=True,
        )
    )
    tried, waived = 0, set()
    for source, to, step_, gone, reason in product(
        MACHINE.states, MACHINE.states, STEPS, (None, *ALL_DOCUMENTS, "all"), ("", "because")
    ):
        step = override_guard(MACHINE, task_at(source, step=step_, **_without(gone)), to, reason)
        still = step_ in ("ready", "stuck", "broken", "unwritten")
        may = (source, to) in needs and reason and still and gone not in ("all", needs[source, to])
        assert isinstance(step, StepTaken) == bool(may), (source, to, step_, gone)
        tried += 1
        if isinstance(step, StepTaken):
            waived.add((source, to))
            assert step.waived == "because"
    assert waived == set(spec.FORWARD)
    print(f"{tried} overrides tried")


def test_nobody_forges_what_goes_forward():
    """Every event that leaves a phase forward, from every origin but its own, in every state and on every step: refused."""
    forward = {
        r.on
        for r in MACHINE.rows
        if r.source in MACHINE.states.values() and (r.source.name, getattr(r.to, "name", "")) in MAY
    }
    tried = 0
    for event, origin, state, step_ in product(forward, Origin, MACHINE.states, STEPS):
        if origin is event.origin:
            continue
        step = take_step(MACHINE, task_at(state, step=step_), EventOccurrence(event, InspectFacts(), origin))
        assert isinstance(step, StepRefused)
        tried += 1
    assert len(forward) == 8
    print(f"{tried} forged events")
