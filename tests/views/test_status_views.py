"""A run in words: status, screen, why, report, from a tape that never met a store."""

import json

import pytest
from tests.support.simulated_roundtable import (
    SimulatedRun,
    agent_facts,
    approval_facts,
    building_run,
    change_facts,
    change_request_facts,
    check_facts,
    checking_run,
    failed_check_facts,
    gate_answer,
    proposed_run,
)
from tests.support.summaries import reasons_of, report_of, summary_of

from steersman.kernel.snapshot import JobItem
from steersman.machines.roundtable.package import PACKAGE
from steersman.ports.journal import BudgetRow, Gate
from steersman.views.report import quote_inline
from steersman.views.screen import entry_line, status_screen_lines
from steersman.views.why import wait_reason_lines

RESULTS = json.dumps(
    [
        {"name": "unit", "argv": ["pytest", "-q"], "source": "project", "verdict": "passed", "exit_code": 0, "tests": 3},
        {"name": "tester 1", "argv": ["rm"], "source": "tester", "verdict": "blocked", "reason": "not on the list"},
    ]
)  # fmt: skip
TEXTS = {
    "p-task": "Fix | the # table", "p-f1": "say why\n# not a heading", "p-results": RESULTS,
    "p-detail": "no login",
}  # fmt: skip


def text(ref: str) -> str:
    return TEXTS.get(ref, f"<{ref}>") if ref else ""


def shown(tape: SimulatedRun, **more):
    return summary_of(PACKAGE, tape.snapshot, "Fix it", [e for e, _ in tape.entries], text=text, **more)


def gate_of(tape: SimulatedRun) -> Gate:
    item = next(i for i in tape.snapshot.items.values() if i.kind == "gate")
    return Gate(
        id=item.id, run=tape.snapshot.run, job=item.job, digest=item.input["digest"],
        choices=tuple(item.input["choices"]), shown=item.input.get("shown", {}),
    )  # fmt: skip


def approved() -> SimulatedRun:
    tape = checking_run()
    tape.finish("run_checks", check_facts("t1"))
    return tape


def second_round() -> SimulatedRun:
    tape = building_run()
    tape.finish("implement", change_facts("t1"))
    tape.finish("review", change_request_facts("f1"))
    return tape


def test_a_finding_is_open_until_a_review_is_content():
    """Findings carry their text and the rounds in which they were opened and fixed."""
    tape = second_round()
    (finding,) = shown(tape).findings
    assert (finding.state, finding.since, finding.text) == ("open", 1, TEXTS["p-f1"])
    tape.finish("implement", change_facts("t2"))
    tape.finish("review", approval_facts())
    (finding,) = shown(tape).findings
    assert (finding.state, finding.fixed) == ("fixed", 2)


def test_checks_are_told_with_their_evidence():
    """The last results are shown with verdict, tests, argv and reason."""
    first, second = shown(approved()).checks
    assert (first.verdict, first.tests, first.argv) == ("passed", 3, ("pytest", "-q"))
    assert (second.verdict, second.reason) == ("blocked", "not on the list")


def test_checks_that_run_now_come_first():
    """While checks run, the finished parts are shown, not the last round's."""
    tape = checking_run()
    item = tape.item("run_checks")
    running = JobItem(
        item.id, item.job, item.kind, item.key, item.input, item.visit,
        parts={"0:unit": {"verdict": "failed"}},
    )  # fmt: skip
    tape.snapshot.items = {item.id: running}
    assert [(c.name, c.verdict) for c in shown(tape).checks] == [("unit", "failed")]


def test_the_screen_says_everything_once():
    """State, round, findings, checks, budget with limits, doubts: each in a section of its own."""
    tape = second_round()
    budget = [BudgetRow("tokens", 70, 30, 1000), BudgetRow("unknown", 2, 0, None)]
    told = "\n".join(status_screen_lines(shown(tape, budget=budget), tape.snapshot.at + 90_000))
    for part in (
        "working · build since 1 min 30 s",
        "round 2 of 3 · last round: review_changes_requested",
        "[f1] open since round 1: say why # not a heading",
        "tokens: 70 of 1 000 (+ 30 reserved)",
        "2 calls did not report their cost",
        "coder · implement",
    ):
        assert part in told


def test_an_open_gate_comes_with_the_commands_that_answer():
    """A proposal that waits names approve, rework and reject, ready to be typed."""
    tape = proposed_run()
    told = "\n".join(status_screen_lines(shown(tape, gates=[gate_of(tape)]), tape.snapshot.at, "me"))
    for command in ("me approve", 'me rework 260101-aaaaaa "what to change"', "me reject"):
        assert command in told


@pytest.mark.parametrize(
    ("owner", "urgent", "part"),
    [(None, True, "no driver is running"), ("command (process 7)", False, "command (process 7) drives it")],
)
def test_why_a_run_that_works_does_not_move(owner, urgent, part):
    """Work without a driver is urgent and names `resume`; with one it names who."""
    tape = building_run()
    first = reasons_of(PACKAGE, tape.snapshot, gates=[], pending=0, owner=owner, now=tape.snapshot.at)[0]
    assert (first.kind, first.urgent) == ("work", urgent)
    assert part in first.what


def test_why_names_what_a_person_may_send():
    """Only events that a person may cause are offered, each with its own command."""
    tape = proposed_run()
    reasons = reasons_of(
        PACKAGE, tape.snapshot, gates=[gate_of(tape)], pending=1, owner=None, now=0, command_prefix="me"
    )
    assert [r.kind for r in reasons] == ["gate", "inbox", "outcome", "event", "event"]
    told = [line for line, _ in wait_reason_lines(reasons)]
    assert '    me followup 260101-aaaaaa "…"' in told
    assert "    me abort 260101-aaaaaa" in told


def test_a_timer_that_is_due_is_urgent_only_without_a_driver():
    """A wait says until when; one that is over and that nobody drives is red."""
    tape = building_run()
    item = tape.item("implement")
    waiting = JobItem(
        item.id, item.job, item.kind, item.key, item.input, item.visit, due=5_000, retry="provider_timeout"
    )
    tape.snapshot.items = {item.id: waiting}

    def first(now, owner):
        return reasons_of(PACKAGE, tape.snapshot, gates=[], pending=0, owner=owner, now=now)[0]

    assert "waits until" in first(1_000, None).what
    assert first(9_000, None).urgent
    assert not first(9_000, "somebody").urgent


def test_a_report_quotes_and_never_obeys():
    """Outside text cannot add a heading, a table cell or an escape of its own."""
    tape = approved()
    words = report_of(PACKAGE, tape.snapshot, shown(tape), [e for e, _ in tape.entries], text)
    assert "    Fix | the # table" in words
    assert [line for line in words.splitlines() if line.startswith("# ")] == ["# Run 260101-aaaaaa: Fix it"]
    assert "| unit | passed | 0 | 3 | pytest -q |" in words
    assert quote_inline("a|b\n\x1b[2J# c") == "a\\|b \\\\x1b\\[2J\\# c"


def test_a_report_of_a_run_without_checks_says_so():
    """Absence of evidence is said, not left out."""
    tape = proposed_run()
    words = report_of(PACKAGE, tape.snapshot, shown(tape), [e for e, _ in tape.entries], text)
    assert "nothing is proven" in words


def test_a_report_tells_what_people_decided():
    """Each word of a person has its entry, its choice and its reason."""
    tape = proposed_run()
    tape.send("task_followup_received", gate_answer("rework", text="p-f1"))
    words = report_of(PACKAGE, tape.snapshot, shown(tape), [e for e, _ in tape.entries], text)
    assert "| ann | task\\_followup\\_received: rework | say why \\# not a heading |" in words


def test_steps_are_told_in_one_line():
    """Transitions, refusals, checks and retries are lines; what only the tape needs is none."""
    tape = second_round()
    tape.send("tests_passed", None)
    told = [entry_line(e) for e, _ in tape.entries]
    assert "review → iterate  review_changes_requested" in told[-3]
    assert told[-1] is not None
    assert told[-1].startswith("refused tests_passed")
    sealed = approved()
    assert entry_line(sealed.entries[-1][0]) is None


def test_why_it_stopped_is_in_the_worlds_own_words():
    """A provider's own words are kept and shown."""
    tape = building_run()
    tape.finish("implement", agent_facts("", error="provider_auth_error", detail_ref="p-detail"))
    seen = shown(tape)
    assert (seen.outcome, seen.detail) == ("provider_auth_error", "no login")


def test_failing_checks_send_the_run_back():
    """After a failed check the round's outcome is shown beside the new round."""
    tape = checking_run()
    tape.finish("run_checks", failed_check_facts("t1", "unit"))
    assert shown(tape).last_round_outcome == "test_failed"
