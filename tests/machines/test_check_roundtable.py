"""The model check of roundtable finds nothing, and would find anything."""

import pytest
from msgspec.structs import replace

from steersman.errors import DefinitionError
from steersman.kernel.build import machine
from steersman.kernel.check import check_machine
from steersman.kernel.definition import STAY, Guard, otherwise, row
from steersman.machines.roundtable import MACHINE, table

S, E = table.S, table.E


def rebuilt(**changes):
    """Roundtable with some of its parts replaced."""
    parts = {
        "states": S, "events": E, "rows": table.TABLE, "context": MACHINE.context, "namings": table.NAMES,
        "computes": table.COMPUTES, "folds": table.FOLDS, "laws": table.LAWS, "constants": MACHINE.constants,
        "memory": MACHINE.memory, "abort": MACHINE.abort, "successes": MACHINE.successes,
    }  # fmt: skip
    return machine("roundtable", MACHINE.meaning, **{**parts, **changes})


def found(m, kind):
    return [f for f in check_machine(m).findings if f.kind == kind]


def test_nothing_is_found():
    """Roundtable is followed to a fixpoint over modes, memory, facts and caps, and there is nothing wrong with it."""
    report = check_machine(MACHINE)
    assert report.findings == ()
    assert (report.machine, report.cases > 3_000, report.nodes > 900) == ("roundtable", True, True)
    print(f"{report.cases} cases in {report.nodes} nodes")


# A constant never changes, so a moment of a machine that begins in one way is one of the machine that begins in all:
# what is wrong somewhere in the smaller one is wrong there in the whole. (What is nowhere in it may be elsewhere.)
ONE_WAY = {"mode": ("proposal",), "deliver": ("merge",)}
SMALLEST = {"mode": ("proposal",), "deliver": ("branch",)}
BRANCH = {**MACHINE.constants, "deliver": ("branch",)}
SOMEWHERE = {
    *("event without a row", "named event without a row", "guarded rows without otherwise"),
    *("state that cannot be aborted", "dead end", "loop bounded by neither a cap nor a person"),
}


def without(n):
    return (*table.TABLE[:n], *table.TABLE[n + 1 :])


def wrong_somewhere(rows, **constants):
    findings = check_machine(rebuilt(rows=rows, **constants)).findings
    return {(f.kind, f.where) for f in findings if f.kind in SOMEWHERE}


def all_findings(rows, constants):
    return {(f.kind, f.where) for f in check_machine(rebuilt(rows=rows, constants=constants)).findings}


@pytest.fixture(scope="module")
def noticed():
    """Whether the check finds something with other rows that it does not find with ours, in one of the smaller machines."""
    known = [(c, all_findings(table.TABLE, c)) for c in (SMALLEST, ONE_WAY, BRANCH)]
    return lambda rows: any(all_findings(rows, constants) - ours for constants, ours in known)


@pytest.mark.untraced
def test_any_row_that_is_missing_is_found(noticed):
    """Whichever single row of the table is removed, the check finds it (proofs/rows.py has the whole machine)."""
    for n, r in enumerate(table.TABLE):
        assert noticed(without(n)), r.label


@pytest.mark.untraced
def test_what_is_wrong_where_it_begins_in_one_way_is_wrong_in_all():
    """The findings of a machine with one beginning are among those of the whole, where they are about a place in it."""
    answer = next(n for n, r in enumerate(table.TABLE) if r.on is E.review_changes_requested)
    smaller, whole = (wrong_somewhere(without(answer), **c) for c in ({"constants": SMALLEST}, {}))
    assert smaller
    assert smaller <= whole


# An abort of a finished run, or a delivery asked for twice, breaks no law of its own: each is refused by its guard
# alone, and test_roundtable_rows.py says so of both.
ALONE = (otherwise, table.AWAITS, table.DELIVERY_FAILED, table.DELIVERED)


@pytest.mark.untraced
def test_any_guard_that_is_dropped_is_found(noticed):
    """A guarded row that becomes a catch-all hides the row after it, or lets in what had no row."""
    for n, r in enumerate(table.TABLE):
        if r.when not in ALONE:
            rows = (*table.TABLE[:n], replace(r, when=otherwise), *table.TABLE[n + 1 :])
            assert noticed(rows), r.label


@pytest.mark.untraced
def test_a_row_behind_a_catch_all_is_found():
    """A row that an earlier one hides is never taken, and the check says how near one gets to it."""
    catch_all = row(
        S.finalize, E.task_followup_received, otherwise, S.intake, None, "anything", "extension: test",
        sets=table.AFRESH,
    )  # fmt: skip
    (finding, *_) = found(rebuilt(rows=(catch_all, *table.TABLE)), "row that is never taken")
    assert "append mode" in finding.where
    assert finding.path[0].startswith("task_received")
    assert finding.path[-1].endswith("finalize")


@pytest.mark.untraced
def test_a_loop_without_its_cap_is_found():
    """Without its cap a further round is on a loop that nothing ends, shown with the shortest way into it."""
    rows = tuple(replace(r, cap=None) if r.source is S.iterate else r for r in table.TABLE)
    (nearest, *_) = found(rebuilt(rows=rows, constants=ONE_WAY), "loop bounded by neither a cap nor a person")
    assert nearest.where == "iterate → build → iterate"
    assert nearest.path[-2:] == ("start_coder → build", "coder_changed_nothing → iterate")


def test_a_cap_that_nothing_counts_is_told():
    """A guard that asks about a cap which no row counts would always say yes: the machine is not built."""
    with pytest.raises(DefinitionError, match="a guard asks about cap iterations, which no row counts"):
        rebuilt(rows=tuple(replace(r, cap=None) for r in table.TABLE))


def test_an_unguarded_way_to_approval_breaks_a_law():
    """A shortcut from review to approved is found by the laws, with its path."""
    short = row(
        S.review, E.review_approved, otherwise, S.finalize, None, "lgtm", "extension: test",
        sets={"outcome": "approved"},
    )  # fmt: skip
    smaller = rebuilt(rows=(short, *table.TABLE), constants=SMALLEST)
    laws = {f.where for f in found(smaller, "broken law")}
    assert any(w.startswith("outcome becomes approved only by tests_passed") for w in laws)
    assert "test before finalize while the outcome is approved" in laws


def test_building_without_a_confirmation_breaks_a_law():
    """If a proposal run could build unconfirmed, the check would show how."""
    rows = tuple(
        replace(r, sets={**r.sets, "phase": "implementation"}) if r.source is None else r for r in table.TABLE
    )
    wheres = [f.where for f in found(rebuilt(rows=rows, constants=SMALLEST), "broken law")]
    assert "never build while a proposal was wanted and no person confirmed one" in wheres


@pytest.mark.parametrize("guard", [table.TOUCHED, table.ACCEPTS], ids=lambda g: g.name)
def test_approval_past_the_evidence_gate_breaks_a_law(guard):
    """If changed infrastructure could pass by its own checks, or another event could accept it, the check would show how."""
    way = {table.TOUCHED: table.RUN_CHECKS, table.ACCEPTS: table.EVIDENCE}[guard]
    event = {table.TOUCHED: E.tests_passed, table.ACCEPTS: E.evidence_declined}[guard]
    names = tuple(
        table.naming(n.subject, *((g, event if g is guard else e) for g, e in n.pairs))
        if n.subject is way
        else n
        for n in table.NAMES
    )
    rows = tuple(
        replace(r, to=STAY, sets={"evidence": "accepted"})
        if r.on is event and r.on is E.evidence_declined
        else r
        for r in table.TABLE
    )
    laws = [f.where for f in found(rebuilt(namings=names, rows=rows, constants=SMALLEST), "broken law")]
    assert any(
        w.startswith(
            ("never finalize while the outcome is approved and changed", "evidence becomes accepted only by")
        )
        for w in laws
    )


def test_building_on_an_unchecked_base_breaks_a_law():
    """If a round could begin before the base tree was checked, the check would show how."""
    eager = Guard(
        "prepared",
        "eager",
        lambda c, _: c.phase == "implementation" and c.workspace == "ready",
        reads=("phase", "workspace"),
    )
    soon = tuple(
        table.computed(S.plan, (eager, E.start_coder)) if c.state is S.plan else c for c in table.COMPUTES
    )
    assert "never build while the base tree was not checked" in [
        f.where for f in found(rebuilt(computes=soon, constants=SMALLEST), "broken law")
    ]


def test_success_is_never_what_is_left():
    """A naming whose `otherwise` is a success is refused when the machine is built."""
    lax = tuple(
        table.naming(table.RUN_CHECKS, (table.FAILED, E.tests_failed), (otherwise, E.tests_passed))
        if n.subject is table.RUN_CHECKS
        else n
        for n in table.NAMES
    )
    with pytest.raises(DefinitionError, match="names tests_passed otherwise, which is a success"):
        rebuilt(namings=lax)


def test_a_guard_that_reads_more_than_it_says_is_told():
    """A guard with `reads` that looks at something else cannot be followed exactly, and the check says so."""
    nosy = Guard("nosy", "nosy", lambda c, _: c.round > 1, reads=("phase",))
    always = tuple(
        table.computed(S.plan, (nosy, E.start_coder)) if c.state is S.plan else c for c in table.COMPUTES
    )
    with pytest.raises(
        DefinitionError, match=r"guard 'nosy' says it reads only phase, but looks further.*round"
    ):
        check_machine(rebuilt(computes=always))
