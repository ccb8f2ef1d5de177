"""Gates, listings, steps, reasons and pull requests in words: every kind of line, and that outside text stays on it."""

import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.simulated_roundtable import (
    SIMULATED_RUN,
    approval_facts,
    building_run,
    change_facts,
    check_facts,
    checking_run,
    gate_answer,
    proposed_run,
)
from tests.support.summaries import reasons_of, report_of, summary_of

from steersman.contracts.facts import DeliveryFacts
from steersman.kernel.snapshot import JobItem
from steersman.kernel.tape import GENESIS_HASH, Entry, EntryRetry
from steersman.machines.roundtable import MACHINE
from steersman.machines.roundtable.package import PACKAGE
from steersman.ports.anchors import Anchor
from steersman.ports.journal import BudgetRow, Gate, Head
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.gates import (
    GateView,
    describe_gate,
    evidence_reason,
    gate_commands,
    gate_question,
    render_gate_lines,
)
from steersman.views.listing import run_head_data, run_table_lines
from steersman.views.pull_request import fenced_block, pull_request_body
from steersman.views.report import build_timeline
from steersman.views.run_summary import CheckStatus, GuardOverride, ReviewFinding, RunningWork
from steersman.views.screen import (
    check_status_line,
    entry_line,
    review_finding_line,
    round_progress_words,
    running_work_line,
    status_screen_lines,
)

HOSTILE = "a\n\x1b[2J\u202eb\tc"


def gate(**more) -> GateView:
    row = Gate(**{"id": f"{SIMULATED_RUN}:9:1", "run": SIMULATED_RUN, "job": "confirm", "digest": "d", "choices": ("approve", "rework", "reject"), **more})  # fmt: skip
    return describe_gate(MACHINE, row)


def shown(tape, **more):
    entries = [e for e, _ in tape.entries]
    return summary_of(PACKAGE, tape.snapshot, "Fix it", entries, text=lambda _: "", **more)


BEGUN_TWICE = JobItem("i", "setup", "effect", "k", {}, 1, starts=2)
MEASURED = JobItem("i", "measure", "effect", "k", {}, 1, parts={"0:unit": {}})


def entry(kind: str, **more) -> Entry:
    return Entry(**{"run": SIMULATED_RUN, "seq": 2, "at": 1, "kind": kind, "prev": GENESIS_HASH, **more})


# ── gates ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@for_each_case(
    ("given", "words"),
    [
        ({}, "Shall this proposal be implemented?"),
        ({"job": "merge"}, "Shall this change be merged?"),
        ({"job": "own", "choices": ("yes", "no")}, "own: yes | no?"),
        ({"job": "budget", "shown": {"figure": "tokens"}}, "The budget is used up. Raise it, or stop? (tokens)"),
    ],
)  # fmt: skip
def test_what_a_gate_asks(given, words):
    """One sentence; a gate of a machine's own names its choices."""
    assert gate_question(gate(**given)) == words


def test_the_commands_that_answer():
    """One for each choice, ready to be typed; a raise names the figure that is used up."""
    assert gate_commands(gate(), "me") == [
        f"me approve {SIMULATED_RUN}",
        f'me rework {SIMULATED_RUN} "what to change"',
        f"me reject {SIMULATED_RUN}",
    ]
    budget = gate(job="budget", choices=("raise", "stop"), shown={"figure": "micro_usd"})
    assert gate_commands(budget, "me") == [
        f"me answer {SIMULATED_RUN} raise --usd N",
        f"me answer {SIMULATED_RUN} stop",
    ]
    assert gate_commands(replace(budget, shown={}), "me")[0] == f"me answer {SIMULATED_RUN} raise --tokens N"


def test_a_gate_in_full():
    """Its texts behind a gutter, clipped unless asked for whole; its deadline, its default, what is not isolated."""
    texts = {"p-1": HOSTILE, "p-2": "x" * 9_000, "p-3": ""}
    one = gate(
        shown={"proposal": "p-1", "patch": "p-2", "none": "p-3", "digest": "abc", "n": 3},
        due=0,
        default="reject",
    )
    lines = render_gate_lines(one, texts.__getitem__, "me", not_isolated="no box")
    assert lines[0] == f"Shall this proposal be implemented?   (gate {SIMULATED_RUN}:9:1)"
    assert lines[2].startswith("── proposal ───")
    assert lines[3:5] == ["│ a", "│ \\x1b[2J\\u202eb\tc"]
    assert len(lines[7]) == 4_000 + 2
    assert "without an answer by 1970-01-01 00:00:00 UTC: reject" in lines
    assert f"{NOT_ISOLATED}: no box. An agent of this run could change the stored answer." in lines
    assert lines[-4:] == ["answer with:", *(f"  {command}" for command in gate_commands(one, "me"))]
    assert len(render_gate_lines(one, texts.__getitem__, "me", most=None)[7]) == 9_000 + 2
    assert "it waits on" in render_gate_lines(gate(due=0), texts.__getitem__, "me")[2]


# ── listings ────────────────────────────────────────────────────────────────────────────────────────────────────────

HEAD = Head(
    SIMULATED_RUN, SIMULATED_RUN, "", "roundtable", "d", HOSTILE + "x" * 90, "build", "working", "", 7, "h",
    1, 0, 0,
)  # fmt: skip


def test_a_listing():
    """One line a run, aligned; a run that cannot be read says so; a title stays on its line and within bounds."""
    other = replace(HEAD, run="260101-b", title="t", outcome="approved", status="done", state="finalize")
    lines = run_table_lines([HEAD, other], {SIMULATED_RUN: "cut"}, 90_000)
    assert lines[0].split() == ["RUN", "STATUS", "STATE", "OUTCOME", "AGE", "TASK"]
    assert lines[1].startswith(
        f"{SIMULATED_RUN}  broken  build     –         1 min 30 s  a\\n\\x1b[2J\\u202eb\\tcxxx"
    )
    assert lines[2] == "260101-b       done    finalize  approved  1 min 30 s  t"
    assert lines[1].endswith("…")


def test_a_head_for_programs():
    """The same as values, with why a run was put aside."""
    told = run_head_data(HEAD, {SIMULATED_RUN: "cut"})
    assert (told["status"], told["why"], told["title"]) == ("broken", "cut", HEAD.title)
    assert run_head_data(HEAD, {})["status"] == "working"
    assert run_head_data(replace(HEAD, due=5), {})["due"] == 5


# ── a screen ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_top_of_a_screen():
    """Who confirmed, what was refused, what is not isolated, doubts and overrides: each where it belongs."""
    tape = checking_run()
    plain = shown(tape, budget=[BudgetRow("tokens", 1, 0, None)])
    seen = replace(
        plain, confirmed_by=HOSTILE, refused=2, not_isolated="no box",
        overrides=(GuardOverride(3, "ann", "a", "b", HOSTILE),), delivered="refs/heads/x", commit="c" * 40,
        detail=HOSTILE, round=0, rounds=None,
    )  # fmt: skip
    told = status_screen_lines(seen, seen.at)
    for line in (
        "proposal confirmed by a\\n\\x1b[2J\\u202eb\\tc",
        "2 events refused (see the tape)",
        f"{NOT_ISOLATED}: no box",
        "  a → b by ann: a\\n\\x1b[2J\\u202eb\\tc (entry 3)",
        "  refs/heads/x  cccccccccccc",
        "  tokens: 1",
    ):
        assert line in told
    assert round_progress_words(replace(plain, round=2, rounds=None, last_round_outcome="")) == "round 2"


def test_work_under_way():
    """Who, which attempt, how long it waits, whether it is held."""
    assert running_work_line(RunningWork("i", "setup", "", 1, 1, "", None, False), 0) == "setup"
    assert (
        running_work_line(RunningWork("i", "setup", "", 1, 2, "", None, False), 0) == "setup · begun 2 times"
    )
    told = running_work_line(RunningWork("i", "implement", "coder", 2, 1, "provider_timeout", 5_000, True), 0)
    assert (
        told == "coder · implement · attempt 2 (provider_timeout) · in 5 s · held until the budget is raised"
    )


def test_findings_and_checks():
    """Open or fixed; with exit code, words and reason, all on one line."""
    assert (
        review_finding_line(ReviewFinding("f1", "fixed", 1, HOSTILE, 2))
        == "[f1] fixed in round 2: a \\x1b[2J\\u202eb c"
    )
    assert check_status_line(CheckStatus("unit", "failed", ("a b", "c\nd"), 1, 0, HOSTILE)) == (
        "unit: failed · 0 tests · exit 1 · a b c\\nd · a\\n\\x1b[2J\\u202eb\\tc"
    )


@for_each_case(
    ("e", "told"),
    [
        (entry("override", source="a", to="b", actor="person:ann", event="x"), "a → b  x · ann"),
        (entry("created", to="a", event="x", why=f"{NOT_ISOLATED}: no\nbox"), f"· → a  x · {NOT_ISOLATED}: no\\nbox"),
        (entry("claimed", why=f"{NOT_ISOLATED}: no box"), f"{NOT_ISOLATED}: no box"),
        (entry("claimed"), None),
        (entry("transition", source="a", to="a", stay=True, event="x"), "a  x"),
        (entry("part_finished", data={"verdict": "failed"}), "check: failed"),
        (entry("part_finished", data={"verdict": "passed", "tests": 3}), "check: passed"),
        (entry("part_finished", data={"verdict": "passed"}), "check: passed, no tests counted"),
        (entry("part_finished", data={"verdict": "failed"}, held=(MEASURED,)), "check unit on the base tree: failed"),
        (entry("transition", source="a", to="a", stay=True, event="baseline_recorded", data={"tests": 3, "stale": 1}), "a  baseline_recorded: 3 tests; 1 names in known_failures did not fail"),
        (entry("transition", source="a", to="a", stay=True, event="baseline_recorded", data={}), "a  baseline_recorded: no test ran on the base tree, so the change has to add the first ones"),
        (entry("part_finished", data=None), None),
        (entry("effect_started", retry=EntryRetry(1, "provider_timeout")), "again: provider_timeout (attempt 2)"),
        (entry("effect_started", retry=EntryRetry(1, "interrupted"), held=(BEGUN_TWICE,)), "setup was interrupted and is begun again (start 2): it may have run twice"),
        (entry("effect_started"), None),
        (entry("refused", event="a\nb", why="no\nno"), "refused a\\nb: no\\nno"),
        (entry("gate_answered", actor="person:ann"), "answered by ann"),
        (entry("effect_finished", late=True, cause="i"), "late, not used: i"),
        (entry("effect_finished"), None),
    ],
)  # fmt: skip
def test_steps(e, told):
    """Every kind of entry that says something to a person is one line; the others are none."""
    assert entry_line(e) == told


# ── status, report, why ─────────────────────────────────────────────────────────────────────────────────────────────


def test_what_only_the_tape_knows():
    """What may have run twice, what a person waived, and that nothing isolates the agents."""
    twice = JobItem("i", "implement", "effect", "k", {}, 1, starts=2)
    told = [
        entry("created", to="a", why=f"{NOT_ISOLATED}: no box"),
        entry("claimed", held=(twice,)),
        entry("override", actor="person:ann", source="a", to="b", why="because"),
    ]
    tape = building_run()
    summary = summary_of(PACKAGE, tape.snapshot, "t", told, text=lambda _: "")
    assert [(t.id, t.starts) for t in summary.twice] == [("i", 2)]
    assert [(o.person, o.reason) for o in summary.overrides] == [("ann", "because")]
    assert summary.not_isolated == "no box"
    words = report_of(PACKAGE, tape.snapshot, summary, told, lambda _: "")
    assert "was begun 2 times: it may have run twice" in words
    assert "ann waived a → b: because" in words


def test_a_budget_without_rows_is_what_the_tape_says():
    """Where the store keeps no budget, what was spent is still told, and that it is a lower bound."""
    tape = building_run()
    tape.snapshot.budget = {"turns": 2, "unknown": 1}
    seen = shown(tape)
    assert [(f.name, f.spent, f.limit) for f in seen.budget] == [("turns", 2, None), ("unknown", 1, None)]
    words = report_of(PACKAGE, tape.snapshot, seen, [e for e, _ in tape.entries], lambda _: "")
    assert "| turns | 2 | – |" in words
    assert "1 calls did not report their cost, so the figures are a lower bound." in words


def test_an_empty_budget_has_no_table():
    """Nothing spent, nothing said."""
    tape = building_run()
    tape.snapshot.budget = {}
    assert "## Budget" not in report_of(PACKAGE, tape.snapshot, shown(tape), [], lambda _: "")


def failed_delivery():
    tape = checking_run()
    tape.finish("run_checks", check_facts("t1"))
    tape.finish("deliver", DeliveryFacts(detail_ref="p-d"))
    return tape


def reasons(tape, **more):
    return reasons_of(PACKAGE, tape.snapshot, **{"gates": [], "pending": 0, "owner": None, "now": tape.snapshot.at, "command_prefix": "me", **more})  # fmt: skip


@pytest.mark.parametrize(
    ("detail", "told"), [(HOSTILE, "the delivery failed: a \x1b[2J\u202eb c"), ("", "the delivery failed")]
)
def test_a_failed_delivery_comes_first(detail, told):
    """It is urgent, with what to type, and is not offered a second time as an event."""
    tape = failed_delivery()
    summary = shown(tape)
    assert (summary.delivery_failed, summary.revert_failed) == (True, False)
    found = next(r for r in reasons(tape, text=lambda _: detail) if r.kind == "delivery")
    assert (found.what, found.urgent, found.commands) == (
        told, True, (f"me send {SIMULATED_RUN} delivery_requested",),
    )  # fmt: skip
    assert not [r for r in reasons(tape) if r.kind == "event" and "delivery_requested" in r.what]


def test_a_change_that_can_be_taken_back():
    """After a delivery its reverting is offered by its own command."""
    tape = checking_run()
    tape.finish("run_checks", check_facts("t1"))
    tape.finish(
        "deliver", DeliveryFacts(done=True, form="branch", ref="refs/heads/x", commit="c1", tree="t1")
    )
    assert (f"me revert {SIMULATED_RUN}",) in [r.commands for r in reasons(tape)]


def test_work_that_is_held_or_goes_on():
    """Held until the budget is raised; driven by somebody; begun again."""
    tape = building_run()
    item = tape.item("implement")
    held = JobItem(item.id, item.job, item.kind, item.key, item.input, item.visit, held=True)
    tape.snapshot.items = {item.id: held}
    assert reasons(tape)[0].what == "coder · implement is held until the budget is raised"
    again = JobItem(item.id, "setup", item.kind, item.key, {}, item.visit, attempt=2, retry="x", starts=3)
    tape.snapshot.items = {item.id: again}
    (first, *_) = reasons(tape, owner="command (process 7)")
    assert (
        first.what
        == "setup is running, attempt 2 (x), begun 3 times: it may have run twice; command (process 7) drives it"
    )
    assert first.commands == (f"me watch {SIMULATED_RUN}",)
    (_, box, *_) = reasons(tape, pending=2)
    assert box.what == "2 events are in its inbox, but no driver is running"


def test_a_gate_is_a_reason():
    """With its question and its commands; an answered one is none."""
    told = reasons(proposed_run(), gates=[gate(), gate(answer="approve")])
    assert [r.kind for r in told].count("gate") == 1
    assert (
        told[0].what
        == f"it waits for an answer: Shall this proposal be implemented? (gate {SIMULATED_RUN}:9:1)"
    )


def test_a_row_that_is_gone_has_no_label():
    """A step of a machine that has changed since is told without its words."""
    strange = [
        entry("created", to="intake", event="task_received"),
        entry("transition", source="intake", to="review", event="draft_proposal"),
    ]
    assert [m.label for m in build_timeline(strange, MACHINE)][1] == ""


# ── pull requests ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_words_of_a_pull_request():
    """What was proven, the report in a fence that nothing in it can close, and the anchor."""
    tape = building_run()
    tape.finish("implement", change_facts("t1"))
    tape.finish("review", approval_facts())
    seen = replace(
        shown(tape),
        checks=(CheckStatus("unit", "passed", ("x",), 0, 3), CheckStatus("lint", "failed")),
        outcome="approved",
    )
    anchor = Anchor(SIMULATED_RUN, 7, "h", 1, "key", "signature")
    words = pull_request_body(seen, "# report\n```\n@everybody ````", anchor)
    assert "| evidence | 1 of 2 checks passed, 3 tests, run by steersman itself |" in words
    assert "\n`````text\n# report\n```\n@everybody ````\n`````\n" in words
    assert f"steersman audit verify {SIMULATED_RUN}" in words
    assert "There is no anchor of the tape." in pull_request_body(seen, "x" * 60_000, None)
    assert len(pull_request_body(seen, "x" * 60_000, None)) < 52_000
    assert fenced_block("plain") == ["```text", "plain", "```"]


def test_answers_are_known_by_their_choice():
    """A person's word in the table of decisions has its choice."""
    tape = proposed_run()
    tape.send("task_followup_received", gate_answer("rework", text=""))
    entries = [e for e, _ in tape.entries]
    assert "task\\_followup\\_received: rework" in report_of(
        PACKAGE, tape.snapshot, shown(tape), entries, lambda _: ""
    )


def test_names_of_tests_are_not_counted_as_reasons():
    """Indented lines below a reason belong to it."""
    texts = {"one": "unit: 2 tests are gone\n    test_a\n    test_b", "two": "conftest.py (changed)", "": ""}
    gone = "unit: 2 tests are gone"
    assert evidence_reason({"questions": "one"}, texts.__getitem__) == f"{gone}."
    assert (
        evidence_reason({"questions": "one", "changed": "two"}, texts.__getitem__) == f"{gone} (and 1 more)."
    )
