"""A task's files: laid down with the bytes that are kept, put back, taken over; what is not as recorded never counts."""

from hashlib import sha256

import msgspec
import pytest
from tests.support.task_effects import (
    RECORD_INPUTS,
    TaskEffects,
    code_review_reply,
    plan_question,
    plan_reply,
    plan_review_reply,
    planned_file,
    suite_result,
)

from steersman.contracts.planning.review import BudgetEstimate
from steersman.errors import WorkspaceError
from steersman.judges.planning.plan_bounds import PlanBounds
from steersman.machines.task import replies as r
from steersman.machines.task import work
from steersman.machines.task.effects import document_writer
from steersman.testing.files import MemoryArtifacts
from steersman.testing.workspace import FakeWorkspace

PLAN, SCOPE = "planning/planning.ai.json", "plan.files.json"
PATCH, LIST, COPIES = "code/diff.patch", "code/files.json", "code/files"
RIGHT = "def add(a, b):\n    return a + b\n"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
EVENTS = {
    "planning": "planning_succeeded", "plan_review": "review_ok", "codegen": "codegen_completed",
    "review": "review_passes", "test": "tests_complete", "accept": "decision_recorded",
    "revert": "revert_recorded",
}  # fmt: skip


@pytest.fixture
def effects(tmp_path):
    return TaskEffects(tmp_path)


def whole(effects):
    """Every recorded file is there with its digest, and its payload is the same, byte for byte."""
    for name, ref in effects.c.documents.items():
        data = effects.read(name)
        assert sha256(data).hexdigest() == effects.c.artifacts[name], name
        assert effects.said(ref).encode() == data, name


# ── laid down ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("disk", [False, True], ids=["memory", "disk"])
def test_what_is_on_disk_is_what_is_kept(tmp_path, disk):
    """After every phase the files are what was recorded and say that all is well."""
    effects = TaskEffects(tmp_path, disk=disk)
    for phase in RECORD_INPUTS:
        effects.pass_(phase)
        whole(effects)
        assert effects.inspect(phase).seen == effects.c.artifacts
        assert effects.event(phase) == EVENTS[phase]
    assert len(effects.c.artifacts) == 10


def test_the_same_is_laid_down_again(effects):
    """An effect that runs twice, as after a crash, writes the same bytes."""
    for phase in RECORD_INPUTS:
        first = effects.pass_(phase)
        before = dict(effects.artifacts.files)
        assert effects.record(phase) == first
        assert effects.artifacts.files == before


def test_a_secret_is_in_no_file(tmp_path):
    """What looks like a secret, or is one of this machine's, is hidden in the file as in the payload; both are the same."""
    effects = TaskEffects(tmp_path, secrets=lambda _named: ("swordfish-of-ours",))
    effects.plan(plan_reply(brief=f"use {SECRET}", requirements=("the word is swordfish-of-ours",)))
    effects.code({"calc.py": f"TOKEN = '{SECRET}'\nWORD = 'swordfish-of-ours'\n"})
    whole(effects)
    for name in (PLAN, PATCH):
        assert SECRET.encode() not in effects.read(name)
        assert b"swordfish-of-ours" not in effects.read(name)
    assert effects.event("codegen") == "codegen_completed"
    assert effects.event("planning") == "planning_succeeded"


def test_a_plan_without_files_has_no_scope(effects):
    """The scope of the plan before goes with it, and is not missed: the phase says what is missing."""
    effects.plan()
    assert SCOPE in effects.c.artifacts
    effects.plan(plan_reply(files=()))
    assert effects.artifacts.read(effects.run, SCOPE).kind == "missing"
    assert SCOPE not in effects.c.artifacts
    assert effects.event("planning") == "scope_missing"
    effects.restore()
    assert effects.artifacts.read(effects.run, SCOPE).kind == "missing"
    effects.plan()
    assert effects.event("planning") == "planning_succeeded"


def test_what_the_plan_says_is_told(effects):
    """A person sees the questions and the files before anything is said about them."""
    facts = effects.plan(
        plan_reply(questions=(plan_question("which one?"), plan_question("a name?", blocking=False)))
    )
    lines = effects.said(facts.told_ref).splitlines()
    assert lines[0].endswith(": which one?")
    assert lines[1:] == [
        "may touch: calc.py (update)", "may touch: old.py (delete)", "may touch: new/ (create)",
    ]  # fmt: skip


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ONE, TWO = plan_question("which currency?"), plan_question("which rounding?")


def answer(effects, text, plan=None):
    """A person answers the plan that is there now."""
    given = {"text": effects.payloads.add_text(text), "plan": plan or effects.c.artifacts[PLAN]}
    effects.know(answers=[*effects.c.answers, given], round=effects.c.round + 1)


def answers(effects):
    return {q["text"]: q["answer"] for q in effects.document(PLAN)["questions"]}


def test_a_text_answers_everything_that_was_open(effects):
    """Whoever answers in a sentence has answered all that was asked."""
    effects.plan(plan_reply(questions=(ONE, TWO)))
    assert effects.event("planning") == "questions_open"
    answer(effects, "euro, half up")
    effects.plan(plan_reply(questions=(ONE, TWO)))
    assert answers(effects) == {"which currency?": "euro, half up", "which rounding?": "euro, half up"}
    assert effects.event("planning") == "planning_succeeded"


@pytest.mark.parametrize("by", ["id", "text"])
def test_an_answer_may_name_its_question(effects, by):
    """By its id or its words; the other question stays open."""
    effects.plan(plan_reply(questions=(ONE, TWO)))
    key = effects.document(PLAN)["questions"][0]["id"] if by == "id" else "Which  CURRENCY?"
    answer(effects, msgspec.json.encode({key: "euro"}).decode())
    effects.plan(plan_reply(questions=(ONE, TWO)))
    assert answers(effects) == {"which currency?": "euro", "which rounding?": ""}
    assert effects.event("planning") == "questions_open"


@pytest.mark.parametrize("text", ['["euro"]', "{}", '{"a": 1}', "42", '"euro"', "{euro"])
def test_what_names_no_question_is_a_text(effects, text):
    """JSON of another form is words like any other."""
    effects.plan(plan_reply(questions=(ONE,)))
    answer(effects, text)
    effects.plan(plan_reply(questions=(ONE,)))
    assert answers(effects) == {"which currency?": text}


def test_an_answer_belongs_to_the_plan_that_asked(effects):
    """What was said about the first plan does not answer what the second one asks; what it answered stays answered."""
    effects.plan(plan_reply(questions=(ONE,)))
    answer(effects, "euro")
    effects.plan(plan_reply(questions=(ONE, TWO)))
    assert answers(effects) == {"which currency?": "euro", "which rounding?": ""}
    effects.plan(plan_reply(questions=(ONE, TWO)))
    assert answers(effects) == {"which currency?": "euro", "which rounding?": ""}
    assert effects.event("planning") == "questions_open"
    answer(effects, "half up")
    effects.plan(plan_reply(questions=(ONE, TWO)))
    assert answers(effects) == {"which currency?": "euro", "which rounding?": "half up"}


def test_an_empty_answer_answers_nothing(effects):
    """A blocking question is answered by words that can be seen."""
    effects.plan(plan_reply(questions=(ONE,)))
    answer(effects, " ")
    effects.plan(plan_reply(questions=(ONE,)))
    assert effects.event("planning") == "questions_open"


def test_what_was_answered_and_is_not_asked_any_more_is_noted(effects):
    """The words of the question are kept with the answer."""
    effects.plan(plan_reply(questions=(ONE,)))
    answer(effects, "euro")
    effects.plan(plan_reply())
    assert effects.document(PLAN)["notes"] == ["asked: which currency? answered: euro"]


def test_planners_who_comment_ask_too(effects):
    """Everybody's questions are in the plan, with who asked."""
    comment = r.PlanCommentReply(nonce="n", ready=True, comment="fine", concerns=(), questions=(TWO,))
    effects.know(comments={"second": effects.put(comment)})
    effects.plan(plan_reply(questions=(ONE,)))
    assert [q["asked_by"] for q in effects.document(PLAN)["questions"]] == ["planner", "second"]


# ── a change ────────────────────────────────────────────────────────────────────────────────────────────────────────


def copies(effects):
    return {c["path"]: (c["change"], c["kept"], c["why"]) for c in effects.document(LIST)["files"]}


def test_a_change_is_laid_down_with_a_copy_of_every_file(effects):
    """Created, updated, and a tombstone for what was deleted; the list says what is outside the plan."""
    effects.plan()
    facts = effects.code({"calc.py": RIGHT, "new/b.py": "new\n", "old.py": None, "README": "hello you\n"})
    assert copies(effects) == {
        "README": ("updated", True, ""), "calc.py": ("updated", True, ""), "new/b.py": ("created", True, ""),
        "old.py": ("deleted", True, ""),
    }  # fmt: skip
    assert effects.read(f"{COPIES}/calc.py") == RIGHT.encode()
    assert effects.artifacts.names(effects.run, COPIES) == ("README", "calc.py", "new/b.py")
    assert effects.document(LIST)["outside"] == ["README"]
    assert effects.said(facts.told_ref).splitlines()[0] == "outside the plan: README"
    assert effects.event("codegen") == "scope_mismatch"


def test_a_file_that_was_planned_otherwise_says_how(effects):
    """What is outside only by what was done to it is told with what was planned."""
    effects.plan()
    facts = effects.code({"calc.py": None})
    assert effects.said(facts.told_ref).splitlines()[0] == (
        "outside the plan: calc.py (planned as update, but deleted)"
    )


def test_without_a_scope_everything_is_outside(effects):
    """A task whose plan names no file has nothing that may be touched."""
    effects.plan(plan_reply(files=()))
    effects.code({"calc.py": RIGHT})
    assert effects.document(LIST)["outside"] == ["calc.py"]


def test_copies_vanish_with_what_they_were_of(effects):
    """A file that is no longer changed has no copy any more."""
    effects.plan()
    effects.code({"calc.py": RIGHT, "new/b.py": "new\n"})
    effects.code({"new/b.py": None})
    assert effects.artifacts.names(effects.run, COPIES) == ("calc.py",)
    assert effects.event("codegen") == "codegen_completed"


@pytest.mark.parametrize("disk", [False, True], ids=["memory", "disk"])
def test_a_file_may_become_a_folder_and_a_folder_a_file(tmp_path, disk):
    """What was a copy in the way is taken away first, both ways, and when it is put back."""
    effects = TaskEffects(tmp_path, disk=disk)
    effects.plan(plan_reply(files=(planned_file("tool", "create"), planned_file("tool/", "create"))))
    effects.code({"tool": "a file\n"})
    assert effects.event("codegen") == "codegen_completed"
    effects.code({"tool/main.py": "a folder\n"})
    assert effects.artifacts.names(effects.run, COPIES) == ("tool/main.py",)
    assert effects.event("codegen") == "codegen_completed"
    effects.code({"tool": "a file again\n"})
    assert effects.artifacts.names(effects.run, COPIES) == ("tool",)
    assert effects.restore().error_ref == ""
    assert effects.event("codegen") == "codegen_completed"


class LinkedWorkspace(FakeWorkspace):
    """A repository in which `link` is no plain file."""

    def read_contents(self, commit, names):
        return super().read_contents(commit, [name for name in names if name != "link"])


def test_what_cannot_be_a_copy_is_listed_with_the_reason(tmp_path, monkeypatch):
    """A strange name, a long file, a link, a name with a secret: the tree has them, the list says why there is no copy."""
    monkeypatch.setattr(document_writer, "MAX_COPY_BYTES", 30)
    effects = TaskEffects(
        tmp_path, workspace=lambda _config: LinkedWorkspace(tmp_path / "linked", {"a": "a\n"})
    )
    named = f"{SECRET}.txt"
    effects.code(
        {"a:b": "x\n", "long": "x" * 31, "link": "x\n", named: "x\n", "plain": "x" * 30, "x" * 201: "x\n"}
    )
    listed = copies(effects)
    assert {path: kept for path, (_, kept, _) in listed.items() if kept} == {"plain": True}
    assert "below code/files" in listed["a:b"][2]
    assert listed["long"][2] == "it is longer than 30 bytes"
    assert listed["link"][2] == "it is no plain file"
    assert listed["x" * 201][2] == "has a part of more than 200 bytes"
    assert [why for _, _, why in listed.values()].count("its name holds a secret") == 1
    assert SECRET.encode() not in b"".join(effects.artifacts.files.values())
    assert effects.artifacts.names(effects.run, COPIES) == ("plain",)
    whole(effects)
    assert effects.inspect("codegen").damaged == 0


def test_a_name_that_no_list_can_have_is_told(effects):
    """Nothing half is left behind a name of blanks: the phase says which document could not be laid down, and why."""
    effects.plan()
    facts = effects.code({" ": "x\n"})
    assert facts.written == {}
    assert effects.said(facts.error_ref).startswith("code/files.json cannot be written: ")


def test_nothing_was_changed(effects):
    """An empty change is laid down like any other, and put back like any other."""
    effects.plan()
    effects.code({})
    assert effects.read(PATCH) == b""
    assert effects.event("codegen") == "codegen_empty"
    effects.artifacts.files.clear()
    assert effects.restore().error_ref == ""
    whole(effects)
    assert effects.event("codegen") == "codegen_empty"


# ── bounds of a frozen plan ─────────────────────────────────────────────────────────────────────────────────────────


def bound(effects, *files, most=20):
    """The task may not leave a frozen plan."""
    budgets = tuple(
        BudgetEstimate(name=name, limit=limit, estimate=1, within=True)
        for name, limit in (("max_files", most), ("max_commits", 9))
    )
    of = PlanBounds(
        plan_id="plan_1", manifest_digest="d", files=files, modules=(), actions=(), phases=(), budgets=budgets
    )
    effects.know(bounds_ref=effects.payloads.add_text(msgspec.json.encode(of).decode()))


def reviewed(effects, *opinions):
    effects.know(
        plan_opinions={f"r{n}": effects.put(one) for n, one in enumerate(opinions or (plan_review_reply(),))}
    )
    return effects.record("plan_review")


def test_a_scope_beyond_a_frozen_plan_is_a_flaw(effects):
    """Reviewers may accept it: the plan that was handed in does not allow it, and the review says so."""
    bound(effects, "calc.py", "new")
    effects.plan()
    facts = reviewed(effects)
    flaws = effects.document("review/plan-review.json")["flaws"]
    assert [(f["id"], f["message"]) for f in flaws] == [("OUTSIDE_PLAN", "old.py is outside plan_1.")]
    assert "OUTSIDE_PLAN" in effects.said(facts.told_ref)
    assert effects.event("plan_review") == "review_needs_changes"


def test_a_change_beyond_a_frozen_plan_is_outside(effects):
    """Whatever the plan of the task says."""
    bound(effects, "calc.py")
    effects.plan()
    effects.code({"calc.py": RIGHT, "new/b.py": "new\n"})
    assert effects.document(LIST)["outside"] == ["new/b.py"]
    assert (effects.c.beyond, effects.said(effects.c.beyond_ref)) == (1, "new/b.py is outside plan_1.")
    assert effects.event("codegen") == "bounds_left"


def test_a_command_outside_a_frozen_plan_is_found_with_the_change(effects):
    """The change itself is inside; what its coder wanted to run is not, and is named with the plan."""
    bound(effects, "calc.py")
    effects.plan()
    effects.know(commands_ref=effects.payloads.add_text("curl http://example.org"))
    effects.code({"calc.py": RIGHT})
    assert effects.document(LIST)["commands"] == ["curl http://example.org"]
    assert effects.document(LIST)["held_to"] == "plan_1"
    assert effects.said(effects.c.beyond_ref) == "curl http://example.org is not a command of plan_1."
    assert effects.event("codegen") == "bounds_left"


def test_what_is_beyond_a_frozen_plan_is_not_handed_over(effects):
    """Whatever led there: the last step asks once more."""
    effects.through("accept")
    bound(effects, "README")
    facts = effects.do("task_deliver", work.task_delivery_input(effects.c))
    assert not facts.done
    assert "calc.py is outside plan_1." in effects.said(facts.detail_ref)


def test_a_change_that_a_moved_branch_leads_beyond_conflicts(effects):
    """What is outside once it stands on the newer commit is made again there, and nothing is laid down."""
    effects.through("test")
    before = dict(effects.c.artifacts)
    effects.elsewhere({"README": "newer\n"})
    bound(effects, "README")
    facts = effects.look_at_base()
    assert (facts.moved, facts.conflicts > 0, facts.written) == (True, True, {})
    assert "calc.py is outside plan_1." in effects.said(facts.told_ref)
    assert effects.inspect("test").seen == before


@pytest.mark.parametrize(("most", "event"), [(2, "codegen_completed"), (1, "bounds_left")])
def test_a_frozen_plan_bounds_how_many_files_are_touched(effects, most, event):
    """More files than it allows are outside, all of them: nobody can say which ones were meant."""
    bound(effects, most=most)
    effects.plan()
    effects.code({"calc.py": RIGHT, "new/b.py": "new\n"})
    assert effects.document(LIST)["outside"] == ([] if most == 2 else ["calc.py", "new/b.py"])
    assert effects.event("codegen") == event


# ── the other documents ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("opinions", "event"),
    [
        ((plan_review_reply(), plan_review_reply()), "review_ok"),
        ((plan_review_reply(), plan_review_reply("needs_changes", "no rollback")), "review_needs_changes"),
        ((plan_review_reply(), plan_review_reply("accept", "no rollback")), "review_needs_changes"),
        ((plan_review_reply(), plan_review_reply("blocked", "not ours")), "review_blocked"),
    ],
)
def test_opinions_on_a_plan_become_one_verdict(effects, opinions, event):
    """Nobody is outvoted; what has to change is told."""
    effects.plan()
    facts = reviewed(effects, *opinions)
    issues = [i["text"] for i in effects.document("review/plan-review.json")["blocking_issues"]]
    assert effects.event("plan_review") == event
    assert all(issue in effects.said(facts.told_ref) for issue in issues)


@pytest.mark.parametrize(
    ("opinions", "event"),
    [
        ((code_review_reply(), code_review_reply()), "review_passes"),
        ((code_review_reply(), code_review_reply("needs_changes", "untested")), "needs_code_changes"),
        ((code_review_reply("approve", "untested"), code_review_reply()), "needs_code_changes"),
        ((code_review_reply(), code_review_reply("plan_flawed", plan=("no such file",))), "plan_flawed"),
    ],
)
def test_opinions_on_a_change_become_one_verdict(effects, opinions, event):
    """About exactly this tree and this patch."""
    effects.through("codegen")
    effects.know(code_opinions={f"r{n}": effects.put(one) for n, one in enumerate(opinions)})
    effects.record("review")
    made = effects.document("review/code-review.json")
    assert (made["tree"], made["patch_digest"]) == (effects.c.tree, effects.c.artifacts[PATCH])
    assert effects.event("review") == event


@pytest.mark.parametrize(
    ("suites", "counted", "event"),
    [
        ((suite_result("unit"),), {}, "tests_complete"),
        ((suite_result("unit"), suite_result("lint", tests=None)), {}, "tests_complete"),
        ((suite_result("unit", "failed", exit_code=1),), {"failed": 1}, "test_failures"),
        ((suite_result("unit"), suite_result("types", "failed", exit_code=1)), {"failed": 1}, "test_failures"),
        ((), {}, "test_failures"),
        ((suite_result("unit"),), {"tree": "f" * 40}, "test_failures"),
        ((suite_result("unit"),), {"error": "workspace"}, "test_failures"),
        ((suite_result("unit"),), {"flaky": 1}, "evidence_questioned"),
    ],
)  # fmt: skip
def test_suites_become_a_report(effects, suites, counted, event):
    """Every one of them, on exactly this tree; what is not shown has failed."""
    effects.through("review")
    effects.test(*suites, **counted)
    facts = effects.record("test")
    assert effects.event("test") == event
    assert [line.split(":")[0] for line in effects.said(facts.told_ref).splitlines()] == [
        s["name"] for s in suites
    ]


def test_no_results_are_no_report_of_success(effects):
    """Where nothing could be run the report says so."""
    effects.through("review")
    effects.know(results_ref="", checks={"error": "workspace"})
    effects.record("test")
    assert effects.document("test/report.json")["overall_pass"] is False


def test_a_decision_says_what_it_is_about(effects):
    """Who, why, which tree, and the digest of every other document; no decision before it."""
    effects.through("accept")
    made = effects.document("accept/decision.json")
    assert (made["decision"], made["decided_by"], made["reason"], made["tree"]) == (
        "accepted", "ann", "good", effects.c.tree,
    )  # fmt: skip
    assert made["artifacts"] == {n: d for n, d in effects.c.artifacts.items() if n != "accept/decision.json"}
    assert made["overrides"] == []
    effects.know(decided_by="", reason="x" * 5000)
    effects.record("accept")
    assert effects.document("accept/decision.json")["decided_by"] == "somebody"
    assert "accept/decision.json" not in effects.document("accept/decision.json")["artifacts"]


@pytest.mark.parametrize(
    ("status", "event"), [("reverted", "revert_recorded"), ("conflicted", "revert_refused")]
)
def test_what_was_taken_back_is_recorded(effects, status, event):
    """With the commit, or with the words of what was in the way."""
    effects.through("accept")
    detail = effects.payloads.add_text("later commits have changed the same lines")
    effects.know(
        revert={"status": status, "detail": detail}, delivered_commit="a" * 40, reverted_commit="b" * 40
    )
    effects.record("revert")
    made = effects.document("revert/record.json")
    assert (made["status"], made["delivered"], made["commit"]) == (status, "a" * 40, "b" * 40)
    assert made["detail"] == "later commits have changed the same lines"
    assert effects.event("revert") == event


# ── what breaks ─────────────────────────────────────────────────────────────────────────────────────────────────────


class FullDisk(MemoryArtifacts):
    """Nothing can be written to it any more after so many files."""

    left = 0

    def write(self, run, name, data, *, durable=False):
        if self.left == 0:
            raise self.error
        self.left -= 1
        super().write(run, name, data, durable=durable)


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), WorkspaceError("cannot write it: full")]
)
@pytest.mark.parametrize("left", [0, 1, 2, 3])
def test_a_full_disk_is_told(tmp_path, error, left):
    """Whenever it fills up: nothing is said to be laid down, and there is a reason in words."""
    disk = FullDisk()
    disk.error, disk.left = error, -1
    effects = TaskEffects(tmp_path, artifacts=disk)
    effects.plan()
    disk.left = left
    facts = effects.code({"calc.py": RIGHT, "new/b.py": "new\n"})
    assert (facts.written, facts.refs) == ({}, {})
    assert str(error) in effects.said(facts.error_ref)
    disk.left = -1
    assert effects.record("codegen").error_ref == ""
    assert effects.event("codegen") == "codegen_completed"


@pytest.mark.parametrize("reply", ["not json", "{}", '{"title": 1}'])
def test_a_reply_that_cannot_be_read_is_told(effects, reply):
    """What an agent has said was judged before; whatever else is there becomes no document."""
    effects.know(draft={"reply": effects.payloads.add_text(reply)})
    facts = effects.record("planning")
    assert facts.written == {}
    assert effects.said(facts.error_ref)
    assert not effects.artifacts.files


def test_there_is_no_review_without_a_plan(effects):
    """Nothing to review is told as that."""
    facts = reviewed(effects)
    assert effects.said(facts.error_ref) == "there is no plan to review: plan first"
