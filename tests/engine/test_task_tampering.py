"""What hands do to a task's files: noticed, named, never trusted, and mended; a branch that moves; a look that is too old."""

import asyncio
import json
import os
import shutil
from itertools import product
from pathlib import Path

import msgspec
import pytest
from tests.support.document_tampering import (
    BYTE_TAMPERINGS,
    FORGED_DECISION,
    TAMPERINGS,
    UNRECORDED_FILES,
    find_planted_file_failures,
    find_tamper_failures,
)
from tests.support.packages import PACKAGES
from tests.support.root_permissions import enforce_file_permissions
from tests.support.task_effects import RECORD_INPUTS, TaskEffects, plan_question, plan_reply, planned_file

from steersman.contracts.facts import BaseFacts
from steersman.engine.active_run import load_active_run
from steersman.engine.driver import Driver
from steersman.engine.effects import load_performer
from steersman.engine.start import StartRequest, start_run
from steersman.errors import WorkspaceError
from steersman.machines.task import MACHINE
from steersman.testing import FakeAgent, fake_config, fake_ports, fake_reply
from steersman.testing.files import MemoryArtifacts

PLAN, SCOPE = "planning/planning.ai.json", "plan.files.json"
PATCH, LIST, COPIES = "code/diff.patch", "code/files.json", "code/files"
RIGHT = "def add(a, b):\n    return a + b\n"
PHASES = tuple(RECORD_INPUTS)


def laid(effects):
    """The names of all files of a task: documents and copies."""
    return [*effects.c.documents, *(f"{COPIES}/{n}" for n in effects.artifacts.names(effects.run, COPIES))]


# ── one file, one hand ──────────────────────────────────────────────────────────────────────────────────────────────


def spoil(effects, name, hand):
    """What a hand does to a file in memory."""
    files = effects.artifacts.files
    if hand == "deleted":
        del files[effects.run, name]
    elif hand in BYTE_TAMPERINGS:
        files[effects.run, name] = BYTE_TAMPERINGS[hand](name, files[effects.run, name])
    else:
        effects.artifacts.plant(effects.run, name, hand)


def heal(effects, name):
    """A person moves away what stands in the way."""
    effects.artifacts._planted.pop((effects.run, name), None)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A task after each of its phases, all its files in memory."""
    return {phase: TaskEffects(tmp_path_factory.mktemp(phase)).through(phase) for phase in PHASES}


@pytest.mark.parametrize("phase", PHASES)
def test_every_file_and_every_hand(tables, phase):
    """In each phase: any file deleted, emptied, cut, filled with garbage, changed, linked, made a folder or unreadable.

    It is named with what is wrong and what to do, nothing goes on, and putting it back gives the recorded bytes.
    """
    effects, tried = tables[phase], 0
    before = dict(effects.artifacts.files)
    for name, hand in product(laid(effects), TAMPERINGS):
        spoil(effects, name, hand)
        found = effects.inspect(phase)
        told = effects.said(found.told_ref)
        assert (found.damaged, effects.event(phase)) == (1, "documents_damaged"), (name, hand)
        assert told.splitlines()[0].startswith(f"{name} "), told
        assert len(told.splitlines()) == 2
        assert "`restore`" in told.splitlines()[1]
        assert found.adoptable == (phase == "planning" and hand == "changed")
        facts = effects.restore()
        if hand == "folder":
            assert name in effects.said(facts.error_ref)
            heal(effects, name)
            assert effects.restore().error_ref == ""
        assert dict(effects.artifacts.files) == before, (name, hand)
        assert effects.inspect(phase).damaged == 0
        tried += 1
    assert tried == len(laid(effects)) * len(TAMPERINGS)
    print(f"{phase}: {tried} combinations of file and hand")


@pytest.mark.parametrize("name", [PLAN, PATCH, f"{COPIES}/new/b.py"])
def test_every_hand_on_a_disk(tmp_path, name):
    """The same on real files, where rights count, and a link leads to somebody else's bytes; the proof takes every file."""
    effects = TaskEffects(tmp_path, disk=True).through("codegen")
    with enforce_file_permissions() as counted:
        hands = [hand for hand in TAMPERINGS if counted or hand != "unreadable"]
        assert [
            fault for hand in hands for fault in find_tamper_failures(effects, "codegen", name, hand)
        ] == []


@pytest.mark.parametrize("phase", PHASES)
def test_what_nobody_has_laid_down(tables, phase):
    """In each phase, under the name of each document that is not there yet and beside those that are: named, moved aside."""
    effects = tables[phase]
    before = dict(effects.artifacts.files)
    for name in (n for n in UNRECORDED_FILES if n not in effects.c.artifacts):
        effects.artifacts.files[effects.run, name] = FORGED_DECISION
        facts = effects.inspect(phase)
        assert (facts.damaged, facts.adoptable, effects.event(phase)) == (1, 0, "documents_damaged"), name
        assert effects.said(facts.told_ref).startswith(f"{name} is not on record: steersman did not write it")
        told = effects.said(effects.restore().told_ref)
        (kept,) = {n for _, n in effects.artifacts.files} - {n for _, n in before}
        assert f"moved aside: {name}, now {kept}" in told
        assert effects.artifacts.files.pop((effects.run, kept)) == FORGED_DECISION
        assert dict(effects.artifacts.files) == before
        assert effects.inspect(phase).damaged == 0


def test_what_is_planted_on_a_disk(tmp_path):
    """The same on real files; of a link only the link goes, what is too long or locked is for its person to move."""
    effects = TaskEffects(tmp_path, disk=True).through("plan_review")
    assert [
        f
        for n in ("accept/decision.json", "planning/extra.json")
        for f in find_planted_file_failures(effects, "plan_review", n)
    ] == []
    folder, theirs = Path(effects.artifacts.folder(effects.run)), tmp_path / "theirs"
    theirs.write_bytes(FORGED_DECISION)
    (folder / "revert").symlink_to(tmp_path)
    (folder / "accept").mkdir()
    (folder / "accept" / "decision.json").symlink_to(theirs)
    assert effects.inspect("plan_review").damaged == 2
    assert "moved aside: revert\n" in effects.said(effects.restore().told_ref) + "\n"
    assert (theirs.read_bytes(), effects.inspect("plan_review").damaged) == (FORGED_DECISION, 0)
    with (folder / "planning" / "long.bin").open("wb") as file:
        file.truncate(1 << 25)
    assert "planning/long.bin cannot be moved aside" in effects.said(effects.restore().error_ref)
    (folder / "planning" / "long.bin").unlink()
    (folder / "test").write_bytes(b"no folder")
    assert effects.inspect("plan_review").damaged == 1
    facts = effects.restore()
    assert (facts.error_ref, effects.inspect("plan_review").damaged) == ("", 0)
    assert [line for line in effects.said(facts.told_ref).splitlines() if "aside" in line] == [
        "moved aside: test, now aside/3/test"  # what an earlier repair has told is not told again
    ]
    os.mkfifo(folder / "accept")
    assert effects.inspect("plan_review").damaged == 1
    effects.restore()
    folder.rename(elsewhere := tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    told = effects.said(effects.inspect("plan_review").told_ref).splitlines()[::2]
    assert all(
        line.endswith(f"{effects.run} is a link") for line in told
    )  # nothing is called a stranger behind it


def test_everything_at_once(tables):
    """All files are gone, or all are garbage: each is named, and all are put back."""
    effects = tables["accept"]
    before = dict(effects.artifacts.files)
    effects.artifacts.files.clear()
    facts = effects.inspect("accept")
    assert facts.damaged == len(effects.c.documents) + 2
    assert set(facts.seen.values()) - {facts.seen[COPIES]} == {""}
    assert effects.restore().error_ref == ""
    assert dict(effects.artifacts.files) == before
    for name in laid(effects):
        effects.artifacts.files[effects.run, name] = b"garbage"
    assert effects.inspect("accept").damaged == len(laid(effects))
    effects.restore()
    assert dict(effects.artifacts.files) == before


def test_a_document_that_is_damaged_says_nothing(tables):
    """However well the others read: with one file wrong none of them is believed."""
    effects = tables["test"]
    spoil(effects, SCOPE, "changed")
    facts = effects.inspect("test")
    assert (facts.overall_pass, facts.tree) == (False, "")
    effects.restore()
    assert effects.inspect("test").overall_pass is True


def test_what_was_told_is_still_told_after_a_repair(tmp_path):
    """Questions are shown again once the file that was damaged is put back."""
    effects = TaskEffects(tmp_path)
    effects.plan(plan_reply(questions=(plan_question("which one?"),)))
    spoil(effects, PLAN, "emptied")
    effects.restore()
    assert "which one?" in effects.said(effects.inspect("planning").told_ref)


# ── copies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["stranger.py", "new/stranger.py", "calc.py.orig", "deep/er/x"])
@pytest.mark.parametrize("disk", [False, True], ids=["memory", "disk"])
def test_a_stranger_among_the_copies_is_noticed_and_taken_away(tmp_path, name, disk):
    """A file that nobody laid down is no part of the change."""
    effects = TaskEffects(tmp_path, disk=disk).through("codegen")
    effects.artifacts.write(effects.run, f"{COPIES}/{name}", b"mine\n")
    facts = effects.inspect("codegen")
    assert facts.damaged == 1
    assert effects.said(facts.told_ref).startswith(f"{COPIES}/{name} is not on record")
    assert effects.event("codegen") == "documents_damaged"
    effects.restore()
    assert effects.artifacts.names(effects.run, COPIES) == ("calc.py", "new/b.py")
    assert effects.event("codegen") == "codegen_completed"


@pytest.mark.parametrize("what", ["link", "file"])
def test_the_folder_of_copies_may_be_something_else(tmp_path, what):
    """A link or a file in its place is named, and nothing outside is touched."""
    effects = TaskEffects(tmp_path, disk=True).through("codegen")
    folder, elsewhere = Path(effects.artifacts.folder(effects.run), COPIES), tmp_path / "elsewhere"
    shutil.move(folder, elsewhere)
    if what == "link":
        folder.symlink_to(elsewhere)
    else:
        folder.write_bytes(b"no folder")
    facts = effects.inspect("codegen")
    assert (facts.damaged, effects.said(facts.told_ref).split(",")[0]) == (1, f"{COPIES} is a {what}")
    before = sorted(p.name for p in elsewhere.rglob("*"))
    assert effects.restore().error_ref
    os.unlink(folder)
    assert effects.restore().error_ref == ""
    assert effects.event("codegen") == "codegen_completed"
    assert sorted(p.name for p in elsewhere.rglob("*")) == before


def test_a_tombstone_is_no_copy(tmp_path):
    """A file that was deleted has none; one in its place is a stranger."""
    effects = TaskEffects(tmp_path).through("codegen")
    assert {c["path"]: c["digest"] for c in effects.document(LIST)["files"]}["old.py"] == ""
    effects.artifacts.write(effects.run, f"{COPIES}/old.py", b"gone soon\n")
    assert effects.inspect("codegen").damaged == 1


# ── taken over ──────────────────────────────────────────────────────────────────────────────────────────────────────


def by_hand(effects, name, **fields):
    """A person edits a document."""
    body = {**effects.document(name), **fields}
    effects.artifacts.write(effects.run, name, json.dumps(body).encode())


WIDER = [{"path": "README", "intent": "update", "summary": ""}]


def test_a_changed_plan_is_taken_over_with_its_scope(tmp_path):
    """The scope is inferred again from what the person wrote, and what counts from here on is on disk."""
    effects = TaskEffects(tmp_path)
    effects.plan()
    by_hand(effects, PLAN, title="By hand", file_plan=WIDER)
    assert (effects.inspect("planning").adoptable, effects.event("planning")) == (1, "documents_damaged")
    facts = effects.adopt()
    assert effects.document(PLAN)["title"] == "By hand"
    assert (effects.document(SCOPE)["files"], effects.document(SCOPE)["inferred"]) == (WIDER, True)
    assert effects.said(facts.told_ref) == "may touch: README (update)"
    assert effects.event("planning") == "planning_succeeded"


def test_a_changed_scope_is_taken_over_as_it_is(tmp_path):
    """Nobody inferred it, and the plan stays what it was."""
    effects = TaskEffects(tmp_path)
    effects.plan()
    before = effects.read(PLAN)
    by_hand(effects, SCOPE, files=WIDER)
    effects.adopt()
    assert effects.read(PLAN) == before
    assert (effects.document(SCOPE)["files"], effects.document(SCOPE)["inferred"]) == (WIDER, False)
    assert effects.event("planning") == "planning_succeeded"


def test_both_may_be_changed(tmp_path):
    """Each is taken over as the person wrote it."""
    effects = TaskEffects(tmp_path)
    effects.plan()
    by_hand(effects, PLAN, title="By hand")
    by_hand(effects, SCOPE, files=WIDER)
    assert effects.inspect("planning").adoptable == 2
    effects.adopt()
    assert (effects.document(PLAN)["title"], effects.document(SCOPE)["files"]) == ("By hand", WIDER)


def test_a_plan_that_had_no_scope_may_be_given_one(tmp_path):
    """A person names the files that the planner did not."""
    effects = TaskEffects(tmp_path)
    effects.plan(plan_reply(files=()))
    assert effects.event("planning") == "scope_missing"
    by_hand(effects, PLAN, file_plan=WIDER)
    assert effects.adopt().error_ref == ""
    assert effects.event("planning") == "planning_succeeded"


def test_a_plan_may_lose_its_scope_by_hand(tmp_path):
    """Taken over without files it has none, and the phase says so."""
    effects = TaskEffects(tmp_path)
    effects.plan()
    by_hand(effects, PLAN, file_plan=[])
    effects.adopt()
    assert effects.event("planning") == "scope_missing"


def test_questions_answered_by_hand_count(tmp_path):
    """The answer is in the plan that was taken over, and stays there in the next draft."""
    effects = TaskEffects(tmp_path)
    effects.plan(plan_reply(questions=(plan_question("which one?"),)))
    (question,) = effects.document(PLAN)["questions"]
    by_hand(effects, PLAN, questions=[{**question, "answer": "the first"}])
    effects.adopt()
    assert effects.event("planning") == "planning_succeeded"
    effects.plan(plan_reply(questions=(plan_question("which one?"),)))
    assert effects.document(PLAN)["questions"][0]["answer"] == "the first"


@pytest.mark.parametrize("name", [PLAN, SCOPE])
def test_only_what_the_person_was_told_about_is_taken_over(tmp_path, name):
    """A file that changed again since then is looked at again first; the recorded one still counts."""
    effects = TaskEffects(tmp_path)
    effects.plan()
    by_hand(effects, PLAN, title="By hand")
    seen = effects.inspect("planning").seen
    by_hand(effects, name, **({"title": "Later"} if name == PLAN else {"files": WIDER}))
    known = dict(effects.c.artifacts)
    facts = effects.adopt(seen)
    assert "changed again since you were asked" in effects.said(facts.error_ref)
    assert effects.c.artifacts == known
    assert effects.event("planning") == "documents_damaged"


@pytest.mark.parametrize(
    ("hand", "told"),
    [
        (lambda b: by_hand(b, PLAN, task_id="260101-others"), "is the plan of another task"),
        (lambda b: by_hand(b, PLAN, title=""), "does not fit its schema"),
        (lambda b: by_hand(b, SCOPE, files=[]), "does not fit its schema"),
        (lambda b: by_hand(b, PLAN, extra=1), "does not fit its schema"),
        (lambda b: b.artifacts.remove(b.run, PLAN), "is deleted"),
        (lambda b: b.artifacts.remove(b.run, SCOPE), "is deleted"),
        (lambda b: b.artifacts.plant(b.run, PLAN, "link"), "is a link"),
        (lambda b: b.artifacts.write(b.run, PLAN, b"{"), "is cut short"),
    ],
)
def test_what_is_no_plan_of_this_task_is_not_taken_over(tmp_path, hand, told):
    """Even when somebody says so: it is told why, and nothing is overwritten."""
    effects = TaskEffects(tmp_path)
    effects.plan()
    hand(effects)
    before = dict(effects.artifacts.files)
    facts = effects.adopt()
    assert told in effects.said(facts.error_ref)
    assert dict(effects.artifacts.files) == before


@pytest.mark.parametrize("phase", PHASES[1:])
def test_later_no_plan_is_taken_over(tables, phase):
    """A plan that was reviewed is not changed under its reviewers."""
    effects = tables[phase]
    spoil(effects, PLAN, "changed")
    assert (effects.inspect(phase).damaged, effects.inspect(phase).adoptable) == (1, 0)
    effects.restore()


# ── the branch ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_branch_that_stands_is_only_looked_at(tmp_path):
    """Nothing is written where the change stands on what it goes to."""
    effects = TaskEffects(tmp_path).through("test")
    before = dict(effects.artifacts.files)
    facts = effects.look_at_base()
    assert (facts.moved, facts.conflicts, facts.error) == (False, 0, "")
    assert dict(effects.artifacts.files) == before


@pytest.mark.parametrize("known", [{"deliver": "branch"}, {"deliver": "draft-pr"}])
def test_nobody_looks_where_nothing_goes(tmp_path, known):
    """A change that is handed over as a branch stands on nothing that could move."""
    effects = TaskEffects(tmp_path).through("test")
    effects.elsewhere({"README": "hello others\n"})
    effects.know(**known)
    assert effects.look_at_base().moved is False


@pytest.mark.parametrize("form", ["merge", "branch"])
def test_a_delivery_is_looked_for_where_it_went(tmp_path, form):
    """Whatever came after it, it is there; taken back, it is lost, which is told."""
    effects = TaskEffects(tmp_path).through("test")
    run, c = effects.run, effects.c
    made = effects.workspace.deliver(run, c.commit, c.base_commit, form, "main", "Mine").commit
    effects.know(delivered="yes", delivered_tree=c.tree, delivered_commit=made, deliveries=[made])
    effects.elsewhere({"README": "hello others\n"})
    assert effects.look_at_base() == BaseFacts()
    if form == "branch":
        return
    effects.workspace.revert(run, made, "main", "Undo\n")
    lost = effects.look_at_base()
    assert lost.lost
    assert f"is no longer in main or steersman/{run}" in effects.payloads.get(lost.told_ref)


def test_a_delivered_task_that_has_made_something_else_is_looked_after(tmp_path):
    """What was delivered before was another tree."""
    effects = TaskEffects(tmp_path).through("test")
    effects.elsewhere({"README": "hello others\n"})
    effects.know(delivered_tree="0" * 40, delivered="yes")
    assert effects.look_at_base().moved is True


def test_a_change_follows_a_branch_that_has_moved(tmp_path):
    """It is laid down anew on top of what came meanwhile: another tree, the same files, documents that are whole."""
    effects = TaskEffects(tmp_path).through("test")
    effects.elsewhere({"README": "hello others\n"})
    facts = effects.look_at_base()
    now = effects.workspace.base("main")
    assert (facts.moved, facts.conflicts, facts.base, facts.base_tree) == (True, 0, now.commit, now.tree)
    assert facts.tree not in ("", effects.c.tree, now.tree)
    assert set(facts.written) == {PATCH, LIST, COPIES}
    assert "deleted: old.py" in effects.said(facts.told_ref)
    effects.know(
        base_commit=facts.base, base_tree=facts.base_tree, commit=facts.commit, tree=facts.tree,
        artifacts={**effects.c.artifacts, **facts.written}, documents={**effects.c.documents, **facts.refs},
    )  # fmt: skip
    assert effects.event("codegen") == "codegen_completed"
    assert effects.document(LIST)["tree"] == facts.tree
    assert b"hello others" not in effects.read(PATCH)
    assert effects.event("review") == "needs_code_changes"  # the review on disk is of another tree
    assert effects.look_at_base().moved is False


def test_a_change_that_conflicts_names_the_files(tmp_path):
    """Nothing is laid down; the branch as it is now is known."""
    effects = TaskEffects(tmp_path).through("test")
    effects.elsewhere({"calc.py": "def add(a, b):\n    return sum((a, b))\n"})
    before = dict(effects.artifacts.files)
    facts = effects.look_at_base()
    assert (facts.moved, facts.conflicts, facts.tree) == (True, 1, "")
    assert effects.said(facts.told_ref) == "calc.py"
    assert facts.base == effects.workspace.base("main").commit
    assert dict(effects.artifacts.files) == before


def test_a_branch_that_is_gone_is_told(tmp_path):
    """It is neither moved nor where it was."""
    effects = TaskEffects(tmp_path).through("test")
    effects.know(target="nowhere")
    facts = effects.look_at_base()
    assert (facts.error, facts.moved, facts.conflicts) == ("workspace", False, 0)
    assert "nowhere" in effects.said(facts.told_ref)


# ── a look that is too old ──────────────────────────────────────────────────────────────────────────────────────────

REPLIES = {
    ("planner", "proposal"): msgspec.to_builtins(plan_reply(files=(planned_file("README"),))),
    ("reviewer", "proposal"): {"decision": "accept", "summary": "fine", "blocking_issues": [], "suggestions": []},
    ("coder", "implementation"): {"status": "done", "summary": "done", "missing": []},
    ("reviewer", "implementation"): {
        "decision": "approve", "summary": "fine", "blocking_issues": [], "plan_issues": [], "suggestions": [],
    },
}  # fmt: skip


def crew(request):
    """Everybody does what is wanted; the coder changes a file."""
    if request.role == "coder":
        Path(request.workdir, "README").write_text("hello you\n")
    told = {k: v for k, v in REPLIES[request.role, request.mode].items() if k != "nonce"}
    return fake_reply(request, told)


def driven(tmp_path, look):
    """A task with another look at the files, driven until it waits: its ports, its run, its entries."""
    artifacts = MemoryArtifacts()
    inspect = load_performer(PACKAGES["task"], "task_inspect")

    async def looked(call):
        facts = await inspect(call)
        look(call, artifacts)
        return facts

    ports = fake_ports(
        tmp_path, {"task": MACHINE}, agent=FakeAgent(crew), artifacts=artifacts,
        performers={"task_inspect": looked}, packages=PACKAGES,
    )  # fmt: skip
    config = fake_config(
        roles={name: fake_config().roles["coder"] for name in ("planner", "coder", "reviewer", "tester")}
    )

    async def play():
        live, lock = await start_run(ports, StartRequest("task", "Mend it", "ann", config, {}))
        return await Driver(ports).drive(live.run, held=lock, live=live)

    head = asyncio.run(play())
    return ports, head, [json.loads(body) for _, body, _ in ports.journal.rows(head.run)]


def test_a_file_that_changes_under_the_look_is_looked_at_again(tmp_path):
    """Between the look and its entry a hand was quicker: the look does not count, the next one sees what is there."""
    looks = []

    def hand(call, artifacts):
        looks.append(call.given("phase"))
        if looks == ["planning"]:
            artifacts.write(call.run, PLAN, b"{}")

    ports, head, entries = driven(tmp_path, hand)
    assert looks == ["planning", "planning"]
    again = [e for e in entries if e.get("retry", {}).get("retry_reason") == "changed_meanwhile"]
    assert again[0]["kind"] == "effect_started"
    assert entries[-1]["event"] == "documents_damaged"
    assert "planning_succeeded" not in [e.get("event") for e in entries]
    assert load_active_run(ports, head.run).snapshot.context.step == "damaged"


def test_a_file_that_is_put_back_in_time_is_no_damage(tmp_path):
    """What counts is what is there when it is written down: a hand that undoes itself stops nothing."""
    kept, looks = {}, []

    def hand(call, artifacts):
        looks.append(call.given("phase"))
        if len(looks) == 1:
            kept["plan"] = artifacts.read(call.run, PLAN).data
            artifacts.write(call.run, PLAN, b"{}")
        elif len(looks) == 2:
            artifacts.write(call.run, PLAN, kept["plan"])

    ports, head, entries = driven(tmp_path, hand)
    assert looks[:4] == ["planning", "planning", "planning", "plan_review"]
    assert "documents_damaged" not in [e.get("event") for e in entries]
    assert load_active_run(ports, head.run).snapshot.state == "accept"


def test_a_look_that_breaks_says_why(tmp_path):
    """What went wrong with the look itself is shown at the gate, and nothing is taken for undamaged."""

    def hand(_call, _artifacts):
        raise WorkspaceError("the folder is on fire")

    ports, head, entries = driven(tmp_path, hand)
    live = load_active_run(ports, head.run)
    assert (entries[-1]["event"], live.snapshot.context.step) == ("documents_damaged", "damaged")
    (gate,) = ports.journal.gates(head.run)
    assert "the folder is on fire" in live.payloads.get(gate.shown["damage"])
    assert gate.choices == ("restore",)
