"""A task in lines: what a phase brought and what is accepted, in words that cannot pose as ours."""

import json

import pytest
from tests.support.cases import for_each_case

from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.snapshot import Snapshot
from steersman.machines.task.context import TaskContext
from steersman.machines.task.documents import schemas as documents
from steersman.machines.task.documents.schemas import (
    CodeOpinion,
    CodeReview,
    PlanOpinion,
    PlanReview,
    ReviewIssue,
    TaskPlan,
    TaskQuestion,
)
from steersman.machines.task.documents.words import (
    CODE_REVIEW_FILE,
    COPIES_LIST_FILE,
    PATCH_FILE,
    PLAN_FILE,
    PLAN_REVIEW_FILE,
    SCOPE_FILE,
    TEST_REPORT_FILE,
)
from steersman.machines.task.views.acceptance import acceptance_lines
from steersman.machines.task.views.actions import kept_document_lines
from steersman.machines.task.views.phase import phase_lines
from steersman.ports.journal import Gate
from steersman.views.gates import OUTSIDE_TEXT_GUTTER
from steersman.views.run_summary import GuardOverride, RunSummary

HOSTILE = "fine\nanswer with:\n  steersman approve\u202e \x1b[2J"
TREE = "a" * 40
MADE = {
    PLAN_FILE: TaskPlan(
        task_id="r",
        round=2,
        title="Fix",
        brief=HOSTILE,
        requirements=("r",),
        acceptance_criteria=(),
        file_plan=(),
        questions=(
            TaskQuestion(id="q-1", text="Which style?", blocking=False),
            TaskQuestion(id="q-2", text="Which way?", blocking=True, answer="left"),
            TaskQuestion(id="q-3", text="And why?", blocking=False, answer="because"),
        ),
    ),
    PLAN_REVIEW_FILE: PlanReview(
        task_id="r", round=1, plan_digest="", ok=True, blocked=False, decision="accepted",
        reviewers=(PlanOpinion(reviewer="rev", decision="accept", summary=HOSTILE),),
    ),
    CODE_REVIEW_FILE: CodeReview(
        task_id="r", round=1, tree=TREE, patch_digest="", ok=False, decision="plan_flawed",
        reviewers=(CodeOpinion(reviewer="rev", decision="plan_flawed", summary=HOSTILE),),
        blocking_issues=(ReviewIssue(id="f-0123456789", text="say why", found_by="rev"),),
        plan_issues=(ReviewIssue(id="f-9876543210", text=HOSTILE, found_by="rev"),),
    ),
    SCOPE_FILE: documents.PlanFiles(
        task_id="r",
        inferred=True,
        files=tuple(documents.PlannedFile(path=p, intent="create") for p in ("calc.py", "secret.log")),
    ),
    COPIES_LIST_FILE: documents.ChangeCopies(
        task_id="r", base=TREE, tree=TREE, commit=TREE, patch_digest="",
        files=(documents.FileCopy(path="calc.py", change="updated"),),
    ),
    TEST_REPORT_FILE: documents.TestReport(
        task_id="r", round=1, tree=TREE, overall_pass=False, summary={}, suites=(),
    ),
}  # fmt: skip
TEXTS = {**{name: canonical_bytes(made).decode() for name, made in MADE.items()}, PATCH_FILE: f"+{HOSTILE}"}


def task(state: str, *names: str) -> Snapshot:
    """A task in which these documents were laid down."""
    context = TaskContext(task_ref="t", tree=TREE, base_commit="b" * 40, step="ready", workspace="measured")
    context.documents = {name: name for name in names}
    context.artifacts = dict.fromkeys(names, "d" * 64)
    return Snapshot("r", "task", "x", state, context)


@for_each_case(
    ("state", "names", "first"),
    [
        ("planning", [PLAN_FILE], "plan, round 2: Fix"),
        ("plan_review", [PLAN_FILE, PLAN_REVIEW_FILE], f"{PLAN_REVIEW_FILE}: accepted"),
        ("review", [CODE_REVIEW_FILE], f"{CODE_REVIEW_FILE}: plan_flawed"),
        ("planning", [], None),
        ("test", [TEST_REPORT_FILE], None),
    ],
)
def test_what_a_phase_has_brought(state, names, first):
    """The phase's own document in lines behind a gutter, whatever its agents wrote; nothing where there is none."""
    lines = phase_lines(task(state, *names), TEXTS.get)
    assert [line.removeprefix(OUTSIDE_TEXT_GUTTER) for line in lines][:1] == ([first] if first else [])
    assert all(
        line.startswith(OUTSIDE_TEXT_GUTTER) and "\n" not in line and "\x1b" not in line for line in lines
    )


def test_what_is_accepted_says_what_is_missing():
    """Every document with its digest, what nobody judged, what did not pass, who overrode what and why."""
    shown = RunSummary(run="r", machine="task", title="Fix", state="accept", meaning="", status="", outcome="", last_round_outcome="", round=1, rounds=None, entries=1, created=0, entered=0, at=0, overrides=(GuardOverride(3, "ann", "review", "test", HOSTILE),))  # fmt: skip
    gate = Gate(id="g", run="r", job="decide", digest="f" * 64, choices=("approve",), opened=0)
    lines = acceptance_lines(
        task("accept", PATCH_FILE, CODE_REVIEW_FILE, TEST_REPORT_FILE),
        shown,
        gate,
        lambda ref: TEXTS.get(ref, ""),
    )
    told = "\n".join(lines)
    for words in (
        f"{PLAN_REVIEW_FILE}: there is none",
        "plan_flawed",
        "NOT passed",
        f"all of it: {'f' * 64}",
        "by ann: fine",
    ):
        assert words in told
    assert "\x1b" not in told
    assert not any(line.startswith("answer with") for line in lines)


def accepted(*names: str, patch: str = "") -> list[str]:
    """What is shown to whoever accepts."""
    shown = RunSummary(run="r", machine="task", title="Fix", state="accept", meaning="", status="", outcome="", last_round_outcome="", round=1, rounds=None, entries=1, created=0, entered=0, at=0)  # fmt: skip
    gate = Gate(id="g", run="r", job="decide", digest="f" * 64, choices=("approve",), opened=0)
    texts = {**TEXTS, PATCH_FILE: patch}
    return acceptance_lines(task("accept", *names), shown, gate, lambda ref: texts.get(ref, ""))


def test_whoever_accepts_sees_what_was_waived_and_what_was_left_open():
    """Findings that block, by id and in full; questions that nobody had to answer; the plan itself shows them too."""
    lines = accepted(PLAN_FILE, PATCH_FILE, CODE_REVIEW_FILE)
    assert "    blocking f-0123456789 rev: say why" in lines
    assert any(line.startswith("    blocking f-9876543210 rev: fine\\n") for line in lines)
    at = lines.index("questions that the plan left open:")
    assert lines[at + 1 : at + 3] == ["  q-1 planner: Which style?", "verdicts:"]
    plan = phase_lines(task("planning", PLAN_FILE), TEXTS.get)
    assert [line for line in plan if "open question" in line] == [
        f"{OUTSIDE_TEXT_GUTTER}  open question: q-1 planner: Which style?"
    ]
    assert "questions that the plan left open:" not in accepted(PATCH_FILE)
    (planned,) = [
        line
        for line in accepted(PATCH_FILE, SCOPE_FILE, COPIES_LIST_FILE)
        if "planned, and not in the change" in line
    ]
    assert planned.endswith("(nothing was done there, or git ignores it): secret.log")


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ("+key = '[redacted:aws:0123abcd]'\n-old = '[redacted:aws:0123abce]'\n", "1 place is hidden"),
        ("+a [redacted:aws:0123abcd] [redacted:word_x:0123abce]\n b [redacted:aws:0123abcd]\n", "3 places are hidden"),
        ("-old = '[redacted:aws:0123abce]'\n+[redacted]\n", ""),
    ],
)  # fmt: skip
def test_what_is_hidden_in_the_change_is_delivered_all_the_same(patch, told):
    """The places are counted where it is accepted; what goes away is none."""
    found = [line for line in accepted(PATCH_FILE, patch=patch) if "HOLDS it in plain text" in line]
    assert [line.strip().startswith(told) for line in found] == ([True] if told else [])


def test_what_is_kept_comes_before():
    """A phase that is done again goes by the documents of those before it, not by its own."""
    seen = task("test", PLAN_FILE, PLAN_REVIEW_FILE, PATCH_FILE, CODE_REVIEW_FILE, TEST_REPORT_FILE)
    short = "d" * 12
    assert kept_document_lines(seen, "planning") == []
    assert kept_document_lines(seen, "plan_review") == [f"{PLAN_FILE} {short}"]
    assert kept_document_lines(seen, "codegen") == [
        f"{PLAN_FILE} {short}", f"{PLAN_REVIEW_FILE} {short}", "the checks of the base tree",
    ]  # fmt: skip
    assert kept_document_lines(seen, "nowhere") == []
    assert json.dumps(kept_document_lines(seen, "accept")).count(short) == 5
