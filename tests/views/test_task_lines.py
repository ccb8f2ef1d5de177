"""A task in lines: what a phase brought and what is accepted, in words that cannot pose as ours."""

import json

import pytest
from cases import for_each_case

from steersman.contracts.task import documents
from steersman.contracts.task.documents import (
    CodeOpinion,
    CodeReview,
    Issue,
    Plan,
    PlanOpinion,
    PlanReview,
    Question,
)
from steersman.contracts.task.words import CODE_REVIEW, COPIES_LIST, FILES, PATCH, PLAN, PLAN_REVIEW, TESTS
from steersman.kernel.canonical import canonical
from steersman.kernel.snapshot import Snapshot
from steersman.machines.task.context import Context
from steersman.ports.journal import Gate
from steersman.views.acceptance import acceptance
from steersman.views.gates import GUTTER
from steersman.views.phase import phase_lines
from steersman.views.status import Override, Status
from steersman.views.ways import kept

HOSTILE = "fine\nanswer with:\n  steersman approve\u202e \x1b[2J"
TREE = "a" * 40
MADE = {
    PLAN: Plan(
        task_id="r",
        round=2,
        title="Fix",
        brief=HOSTILE,
        requirements=("r",),
        acceptance_criteria=(),
        file_plan=(),
        questions=(
            Question(id="q-1", text="Which style?", blocking=False),
            Question(id="q-2", text="Which way?", blocking=True, answer="left"),
            Question(id="q-3", text="And why?", blocking=False, answer="because"),
        ),
    ),
    PLAN_REVIEW: PlanReview(
        task_id="r",
        round=1,
        plan_digest="",
        ok=True,
        blocked=False,
        decision="accepted",
        reviewers=(PlanOpinion(reviewer="rev", decision="accept", summary=HOSTILE),),
    ),
    CODE_REVIEW: CodeReview(
        task_id="r",
        round=1,
        tree=TREE,
        patch_digest="",
        ok=False,
        decision="plan_flawed",
        reviewers=(CodeOpinion(reviewer="rev", decision="plan_flawed", summary=HOSTILE),),
        blocking_issues=(Issue(id="f-0123456789", text="say why", found_by="rev"),),
        plan_issues=(Issue(id="f-9876543210", text=HOSTILE, found_by="rev"),),
    ),
    FILES: documents.PlanFiles(
        task_id="r",
        inferred=True,
        files=tuple(documents.PlannedFile(path=p, intent="create") for p in ("calc.py", "secret.log")),
    ),
    COPIES_LIST: documents.Copies(
        task_id="r",
        base=TREE,
        tree=TREE,
        commit=TREE,
        patch_digest="",
        files=(documents.Copy(path="calc.py", change="updated"),),
    ),
    TESTS: documents.TestReport(task_id="r", round=1, tree=TREE, overall_pass=False, summary={}, suites=()),
}
TEXTS = {**{name: canonical(made).decode() for name, made in MADE.items()}, PATCH: f"+{HOSTILE}"}


def task(state: str, *names: str) -> Snapshot:
    """A task in which these documents were laid down."""
    context = Context(task_ref="t", tree=TREE, base_commit="b" * 40, step="ready", workspace="measured")
    context.documents = {name: name for name in names}
    context.artifacts = dict.fromkeys(names, "d" * 64)
    return Snapshot("r", "task", "x", state, context)


@for_each_case(
    ("state", "names", "first"),
    [
        ("planning", [PLAN], "plan, round 2: Fix"),
        ("plan_review", [PLAN, PLAN_REVIEW], f"{PLAN_REVIEW}: accepted"),
        ("review", [CODE_REVIEW], f"{CODE_REVIEW}: plan_flawed"),
        ("planning", [], None),
        ("test", [TESTS], None),
    ],
)
def test_what_a_phase_has_brought(state, names, first):
    """The phase's own document in lines behind a gutter, whatever its agents wrote; nothing where there is none."""
    lines = phase_lines(task(state, *names), TEXTS.get)
    assert [line.removeprefix(GUTTER) for line in lines][:1] == ([first] if first else [])
    assert all(line.startswith(GUTTER) and "\n" not in line and "\x1b" not in line for line in lines)


def test_what_is_accepted_says_what_is_missing():
    """Every document with its digest, what nobody judged, what did not pass, who overrode what and why."""
    shown = Status(run="r", machine="task", title="Fix", state="accept", meaning="", status="", outcome="", last_round_outcome="", round=1, rounds=None, entries=1, created=0, entered=0, at=0, overrides=(Override(3, "ann", "review", "test", HOSTILE),))  # fmt: skip
    gate = Gate(id="g", run="r", job="decide", digest="f" * 64, choices=("approve",), opened=0)
    lines = acceptance(task("accept", PATCH, CODE_REVIEW, TESTS), shown, gate, lambda ref: TEXTS.get(ref, ""))
    told = "\n".join(lines)
    for words in (
        f"{PLAN_REVIEW}: there is none",
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
    shown = Status(run="r", machine="task", title="Fix", state="accept", meaning="", status="", outcome="", last_round_outcome="", round=1, rounds=None, entries=1, created=0, entered=0, at=0)  # fmt: skip
    gate = Gate(id="g", run="r", job="decide", digest="f" * 64, choices=("approve",), opened=0)
    texts = {**TEXTS, PATCH: patch}
    return acceptance(task("accept", *names), shown, gate, lambda ref: texts.get(ref, ""))


def test_whoever_accepts_sees_what_was_waived_and_what_was_left_open():
    """Findings that block, by id and in full; questions that nobody had to answer; the plan itself shows them too."""
    lines = accepted(PLAN, PATCH, CODE_REVIEW)
    assert "    blocking f-0123456789 rev: say why" in lines
    assert any(line.startswith("    blocking f-9876543210 rev: fine\\n") for line in lines)
    at = lines.index("questions that the plan left open:")
    assert lines[at + 1 : at + 3] == ["  q-1 planner: Which style?", "verdicts:"]
    plan = phase_lines(task("planning", PLAN), TEXTS.get)
    assert [line for line in plan if "open question" in line] == [
        f"{GUTTER}  open question: q-1 planner: Which style?"
    ]
    assert "questions that the plan left open:" not in accepted(PATCH)
    (planned,) = [
        line for line in accepted(PATCH, FILES, COPIES_LIST) if "planned, and not in the change" in line
    ]
    assert planned.endswith("(nothing was done there, or git ignores it): secret.log")


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ("+key = '[redacted:aws:0123abcd]'\n-old = '[redacted:aws:0123abce]'\n", "1 place is hidden"),
        (
            "+a [redacted:aws:0123abcd] [redacted:word_x:0123abce]\n b [redacted:aws:0123abcd]\n",
            "3 places are hidden",
        ),
        ("-old = '[redacted:aws:0123abce]'\n+[redacted]\n", ""),
    ],
)
def test_what_is_hidden_in_the_change_is_delivered_all_the_same(patch, told):
    """The places are counted where it is accepted; what goes away is none."""
    found = [line for line in accepted(PATCH, patch=patch) if "HOLDS it in plain text" in line]
    assert [line.strip().startswith(told) for line in found] == ([True] if told else [])


def test_what_is_kept_comes_before():
    """A phase that is done again goes by the documents of those before it, not by its own."""
    seen = task("test", PLAN, PLAN_REVIEW, PATCH, CODE_REVIEW, TESTS)
    short = "d" * 12
    assert kept(seen, "planning") == []
    assert kept(seen, "plan_review") == [f"{PLAN} {short}"]
    assert kept(seen, "codegen") == [
        f"{PLAN} {short}",
        f"{PLAN_REVIEW} {short}",
        "the checks of the base tree",
    ]
    assert kept(seen, "nowhere") == []
    assert json.dumps(kept(seen, "accept")).count(short) == 5
