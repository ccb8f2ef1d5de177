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


def laid(bench):
    """The names of all files of a task: documents and copies."""
    return [*bench.c.documents, *(f"{COPIES}/{n}" for n in bench.artifacts.names(bench.run, COPIES))]


# ── one file, one hand ──────────────────────────────────────────────────────────────────────────────────────────────


def spoil(bench, name, hand):
    """What a hand does to a file in memory."""
    files = bench.artifacts.files
    if hand == "deleted":
        del files[bench.run, name]
    elif hand in BYTE_TAMPERINGS:
        files[bench.run, name] = BYTE_TAMPERINGS[hand](name, files[bench.run, name])
    else:
        bench.artifacts.plant(bench.run, name, hand)


def heal(bench, name):
    """A person moves away what stands in the way."""
    bench.artifacts._planted.pop((bench.run, name), None)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A task after each of its phases, all its files in memory."""
    return {phase: TaskEffects(tmp_path_factory.mktemp(phase)).through(phase) for phase in PHASES}


@pytest.mark.parametrize("phase", PHASES)
def test_every_file_and_every_hand(tables, phase):
    """In each phase: any file deleted, emptied, cut, filled with garbage, changed, linked, made a folder or unreadable.

    It is named with what is wrong and what to do, nothing goes on, and putting it back gives the recorded bytes.
    """
    bench, tried = tables[phase], 0
    before = dict(bench.artifacts.files)
    for name, hand in product(laid(bench), TAMPERINGS):
        spoil(bench, name, hand)
        found = bench.inspect(phase)
        told = bench.said(found.told_ref)
        assert (found.damaged, bench.event(phase)) == (1, "documents_damaged"), (name, hand)
        assert told.splitlines()[0].startswith(f"{name} "), told
        assert len(told.splitlines()) == 2
        assert "`restore`" in told.splitlines()[1]
        assert found.adoptable == (phase == "planning" and hand == "changed")
        facts = bench.restore()
        if hand == "folder":
            assert name in bench.said(facts.error_ref)
            heal(bench, name)
            assert bench.restore().error_ref == ""
        assert dict(bench.artifacts.files) == before, (name, hand)
        assert bench.inspect(phase).damaged == 0
        tried += 1
    assert tried == len(laid(bench)) * len(TAMPERINGS)
    print(f"{phase}: {tried} combinations of file and hand")


@pytest.mark.parametrize("name", [PLAN, PATCH, f"{COPIES}/new/b.py"])
def test_every_hand_on_a_disk(tmp_path, name):
    """The same on real files, where rights count, and a link leads to somebody else's bytes; the proof takes every file."""
    bench = TaskEffects(tmp_path, disk=True).through("codegen")
    with enforce_file_permissions() as counted:
        hands = [hand for hand in TAMPERINGS if counted or hand != "unreadable"]
        assert [fault for hand in hands for fault in find_tamper_failures(bench, "codegen", name, hand)] == []


@pytest.mark.parametrize("phase", PHASES)
def test_what_nobody_has_laid_down(tables, phase):
    """In each phase, under the name of each document that is not there yet and beside those that are: named, moved aside."""
    bench = tables[phase]
    before = dict(bench.artifacts.files)
    for name in (n for n in UNRECORDED_FILES if n not in bench.c.artifacts):
        bench.artifacts.files[bench.run, name] = FORGED_DECISION
        found = bench.inspect(phase)
        assert (found.damaged, found.adoptable, bench.event(phase)) == (1, 0, "documents_damaged"), name
        assert bench.said(found.told_ref).startswith(f"{name} is not on record: steersman did not write it")
        told = bench.said(bench.restore().told_ref)
        (kept,) = {n for _, n in bench.artifacts.files} - {n for _, n in before}
        assert f"moved aside: {name}, now {kept}" in told
        assert bench.artifacts.files.pop((bench.run, kept)) == FORGED_DECISION
        assert dict(bench.artifacts.files) == before
        assert bench.inspect(phase).damaged == 0


def test_what_is_planted_on_a_disk(tmp_path):
    """The same on real files; of a link only the link goes, what is too long or locked is for its person to move."""
    bench = TaskEffects(tmp_path, disk=True).through("plan_review")
    assert [
        f
        for n in ("accept/decision.json", "planning/extra.json")
        for f in find_planted_file_failures(bench, "plan_review", n)
    ] == []
    folder, theirs = Path(bench.artifacts.folder(bench.run)), tmp_path / "theirs"
    theirs.write_bytes(FORGED_DECISION)
    (folder / "revert").symlink_to(tmp_path)
    (folder / "accept").mkdir()
    (folder / "accept" / "decision.json").symlink_to(theirs)
    assert bench.inspect("plan_review").damaged == 2
    assert "moved aside: revert\n" in bench.said(bench.restore().told_ref) + "\n"
    assert (theirs.read_bytes(), bench.inspect("plan_review").damaged) == (FORGED_DECISION, 0)
    with (folder / "planning" / "long.bin").open("wb") as file:
        file.truncate(1 << 25)
    assert "planning/long.bin cannot be moved aside" in bench.said(bench.restore().error_ref)
    (folder / "planning" / "long.bin").unlink()
    (folder / "test").write_bytes(b"no folder")
    assert bench.inspect("plan_review").damaged == 1
    facts = bench.restore()
    assert (facts.error_ref, bench.inspect("plan_review").damaged) == ("", 0)
    assert [line for line in bench.said(facts.told_ref).splitlines() if "aside" in line] == [
        "moved aside: test, now aside/3/test"  # what an earlier repair has told is not told again
    ]
    os.mkfifo(folder / "accept")
    assert bench.inspect("plan_review").damaged == 1
    bench.restore()
    folder.rename(elsewhere := tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    told = bench.said(bench.inspect("plan_review").told_ref).splitlines()[::2]
    assert all(
        line.endswith(f"{bench.run} is a link") for line in told
    )  # nothing is called a stranger behind it


def test_everything_at_once(tables):
    """All files are gone, or all are garbage: each is named, and all are put back."""
    bench = tables["accept"]
    before = dict(bench.artifacts.files)
    bench.artifacts.files.clear()
    found = bench.inspect("accept")
    assert found.damaged == len(bench.c.documents) + 2
    assert set(found.seen.values()) - {found.seen[COPIES]} == {""}
    assert bench.restore().error_ref == ""
    assert dict(bench.artifacts.files) == before
    for name in laid(bench):
        bench.artifacts.files[bench.run, name] = b"garbage"
    assert bench.inspect("accept").damaged == len(laid(bench))
    bench.restore()
    assert dict(bench.artifacts.files) == before


def test_a_document_that_is_damaged_says_nothing(tables):
    """However well the others read: with one file wrong none of them is believed."""
    bench = tables["test"]
    spoil(bench, SCOPE, "changed")
    found = bench.inspect("test")
    assert (found.overall_pass, found.tree) == (False, "")
    bench.restore()
    assert bench.inspect("test").overall_pass is True


def test_what_was_told_is_still_told_after_a_repair(tmp_path):
    """Questions are shown again once the file that was damaged is put back."""
    bench = TaskEffects(tmp_path)
    bench.plan(plan_reply(questions=(plan_question("which one?"),)))
    spoil(bench, PLAN, "emptied")
    bench.restore()
    assert "which one?" in bench.said(bench.inspect("planning").told_ref)


# ── copies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["stranger.py", "new/stranger.py", "calc.py.orig", "deep/er/x"])
@pytest.mark.parametrize("disk", [False, True], ids=["memory", "disk"])
def test_a_stranger_among_the_copies_is_noticed_and_taken_away(tmp_path, name, disk):
    """A file that nobody laid down is no part of the change."""
    bench = TaskEffects(tmp_path, disk=disk).through("codegen")
    bench.artifacts.write(bench.run, f"{COPIES}/{name}", b"mine\n")
    found = bench.inspect("codegen")
    assert found.damaged == 1
    assert bench.said(found.told_ref).startswith(f"{COPIES}/{name} is not on record")
    assert bench.event("codegen") == "documents_damaged"
    bench.restore()
    assert bench.artifacts.names(bench.run, COPIES) == ("calc.py", "new/b.py")
    assert bench.event("codegen") == "codegen_completed"


@pytest.mark.parametrize("what", ["link", "file"])
def test_the_folder_of_copies_may_be_something_else(tmp_path, what):
    """A link or a file in its place is named, and nothing outside is touched."""
    bench = TaskEffects(tmp_path, disk=True).through("codegen")
    folder, elsewhere = Path(bench.artifacts.folder(bench.run), COPIES), tmp_path / "elsewhere"
    shutil.move(folder, elsewhere)
    if what == "link":
        folder.symlink_to(elsewhere)
    else:
        folder.write_bytes(b"no folder")
    found = bench.inspect("codegen")
    assert (found.damaged, bench.said(found.told_ref).split(",")[0]) == (1, f"{COPIES} is a {what}")
    before = sorted(p.name for p in elsewhere.rglob("*"))
    assert bench.restore().error_ref
    os.unlink(folder)
    assert bench.restore().error_ref == ""
    assert bench.event("codegen") == "codegen_completed"
    assert sorted(p.name for p in elsewhere.rglob("*")) == before


def test_a_tombstone_is_no_copy(tmp_path):
    """A file that was deleted has none; one in its place is a stranger."""
    bench = TaskEffects(tmp_path).through("codegen")
    assert {c["path"]: c["digest"] for c in bench.document(LIST)["files"]}["old.py"] == ""
    bench.artifacts.write(bench.run, f"{COPIES}/old.py", b"gone soon\n")
    assert bench.inspect("codegen").damaged == 1


# ── taken over ──────────────────────────────────────────────────────────────────────────────────────────────────────


def by_hand(bench, name, **fields):
    """A person edits a document."""
    body = {**bench.document(name), **fields}
    bench.artifacts.write(bench.run, name, json.dumps(body).encode())


WIDER = [{"path": "README", "intent": "update", "summary": ""}]


def test_a_changed_plan_is_taken_over_with_its_scope(tmp_path):
    """The scope is inferred again from what the person wrote, and what counts from here on is on disk."""
    bench = TaskEffects(tmp_path)
    bench.plan()
    by_hand(bench, PLAN, title="By hand", file_plan=WIDER)
    assert (bench.inspect("planning").adoptable, bench.event("planning")) == (1, "documents_damaged")
    facts = bench.adopt()
    assert bench.document(PLAN)["title"] == "By hand"
    assert (bench.document(SCOPE)["files"], bench.document(SCOPE)["inferred"]) == (WIDER, True)
    assert bench.said(facts.told_ref) == "may touch: README (update)"
    assert bench.event("planning") == "planning_succeeded"


def test_a_changed_scope_is_taken_over_as_it_is(tmp_path):
    """Nobody inferred it, and the plan stays what it was."""
    bench = TaskEffects(tmp_path)
    bench.plan()
    before = bench.read(PLAN)
    by_hand(bench, SCOPE, files=WIDER)
    bench.adopt()
    assert bench.read(PLAN) == before
    assert (bench.document(SCOPE)["files"], bench.document(SCOPE)["inferred"]) == (WIDER, False)
    assert bench.event("planning") == "planning_succeeded"


def test_both_may_be_changed(tmp_path):
    """Each is taken over as the person wrote it."""
    bench = TaskEffects(tmp_path)
    bench.plan()
    by_hand(bench, PLAN, title="By hand")
    by_hand(bench, SCOPE, files=WIDER)
    assert bench.inspect("planning").adoptable == 2
    bench.adopt()
    assert (bench.document(PLAN)["title"], bench.document(SCOPE)["files"]) == ("By hand", WIDER)


def test_a_plan_that_had_no_scope_may_be_given_one(tmp_path):
    """A person names the files that the planner did not."""
    bench = TaskEffects(tmp_path)
    bench.plan(plan_reply(files=()))
    assert bench.event("planning") == "scope_missing"
    by_hand(bench, PLAN, file_plan=WIDER)
    assert bench.adopt().error_ref == ""
    assert bench.event("planning") == "planning_succeeded"


def test_a_plan_may_lose_its_scope_by_hand(tmp_path):
    """Taken over without files it has none, and the phase says so."""
    bench = TaskEffects(tmp_path)
    bench.plan()
    by_hand(bench, PLAN, file_plan=[])
    bench.adopt()
    assert bench.event("planning") == "scope_missing"


def test_questions_answered_by_hand_count(tmp_path):
    """The answer is in the plan that was taken over, and stays there in the next draft."""
    bench = TaskEffects(tmp_path)
    bench.plan(plan_reply(questions=(plan_question("which one?"),)))
    (question,) = bench.document(PLAN)["questions"]
    by_hand(bench, PLAN, questions=[{**question, "answer": "the first"}])
    bench.adopt()
    assert bench.event("planning") == "planning_succeeded"
    bench.plan(plan_reply(questions=(plan_question("which one?"),)))
    assert bench.document(PLAN)["questions"][0]["answer"] == "the first"


@pytest.mark.parametrize("name", [PLAN, SCOPE])
def test_only_what_the_person_was_told_about_is_taken_over(tmp_path, name):
    """A file that changed again since then is looked at again first; the recorded one still counts."""
    bench = TaskEffects(tmp_path)
    bench.plan()
    by_hand(bench, PLAN, title="By hand")
    seen = bench.inspect("planning").seen
    by_hand(bench, name, **({"title": "Later"} if name == PLAN else {"files": WIDER}))
    known = dict(bench.c.artifacts)
    facts = bench.adopt(seen)
    assert "changed again since you were asked" in bench.said(facts.error_ref)
    assert bench.c.artifacts == known
    assert bench.event("planning") == "documents_damaged"


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
    bench = TaskEffects(tmp_path)
    bench.plan()
    hand(bench)
    before = dict(bench.artifacts.files)
    facts = bench.adopt()
    assert told in bench.said(facts.error_ref)
    assert dict(bench.artifacts.files) == before


@pytest.mark.parametrize("phase", PHASES[1:])
def test_later_no_plan_is_taken_over(tables, phase):
    """A plan that was reviewed is not changed under its reviewers."""
    bench = tables[phase]
    spoil(bench, PLAN, "changed")
    assert (bench.inspect(phase).damaged, bench.inspect(phase).adoptable) == (1, 0)
    bench.restore()


# ── the branch ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_branch_that_stands_is_only_looked_at(tmp_path):
    """Nothing is written where the change stands on what it goes to."""
    bench = TaskEffects(tmp_path).through("test")
    before = dict(bench.artifacts.files)
    facts = bench.look_at_base()
    assert (facts.moved, facts.conflicts, facts.error) == (False, 0, "")
    assert dict(bench.artifacts.files) == before


@pytest.mark.parametrize("known", [{"deliver": "branch"}, {"deliver": "draft-pr"}])
def test_nobody_looks_where_nothing_goes(tmp_path, known):
    """A change that is handed over as a branch stands on nothing that could move."""
    bench = TaskEffects(tmp_path).through("test")
    bench.elsewhere({"README": "hello others\n"})
    bench.know(**known)
    assert bench.look_at_base().moved is False


@pytest.mark.parametrize("form", ["merge", "branch"])
def test_a_delivery_is_looked_for_where_it_went(tmp_path, form):
    """Whatever came after it, it is there; taken back, it is lost, which is told."""
    bench = TaskEffects(tmp_path).through("test")
    run, c = bench.run, bench.c
    made = bench.workspace.deliver(run, c.commit, c.base_commit, form, "main", "Mine").commit
    bench.know(delivered="yes", delivered_tree=c.tree, delivered_commit=made, deliveries=[made])
    bench.elsewhere({"README": "hello others\n"})
    assert bench.look_at_base() == BaseFacts()
    if form == "branch":
        return
    bench.workspace.revert(run, made, "main", "Undo\n")
    lost = bench.look_at_base()
    assert lost.lost
    assert f"is no longer in main or steersman/{run}" in bench.payloads.get(lost.told_ref)


def test_a_delivered_task_that_has_made_something_else_is_looked_after(tmp_path):
    """What was delivered before was another tree."""
    bench = TaskEffects(tmp_path).through("test")
    bench.elsewhere({"README": "hello others\n"})
    bench.know(delivered_tree="0" * 40, delivered="yes")
    assert bench.look_at_base().moved is True


def test_a_change_follows_a_branch_that_has_moved(tmp_path):
    """It is laid down anew on top of what came meanwhile: another tree, the same files, documents that are whole."""
    bench = TaskEffects(tmp_path).through("test")
    bench.elsewhere({"README": "hello others\n"})
    facts = bench.look_at_base()
    now = bench.workspace.base("main")
    assert (facts.moved, facts.conflicts, facts.base, facts.base_tree) == (True, 0, now.commit, now.tree)
    assert facts.tree not in ("", bench.c.tree, now.tree)
    assert set(facts.written) == {PATCH, LIST, COPIES}
    assert "deleted: old.py" in bench.said(facts.told_ref)
    bench.know(
        base_commit=facts.base, base_tree=facts.base_tree, commit=facts.commit, tree=facts.tree,
        artifacts={**bench.c.artifacts, **facts.written}, documents={**bench.c.documents, **facts.refs},
    )  # fmt: skip
    assert bench.event("codegen") == "codegen_completed"
    assert bench.document(LIST)["tree"] == facts.tree
    assert b"hello others" not in bench.read(PATCH)
    assert bench.event("review") == "needs_code_changes"  # the review on disk is of another tree
    assert bench.look_at_base().moved is False


def test_a_change_that_conflicts_names_the_files(tmp_path):
    """Nothing is laid down; the branch as it is now is known."""
    bench = TaskEffects(tmp_path).through("test")
    bench.elsewhere({"calc.py": "def add(a, b):\n    return sum((a, b))\n"})
    before = dict(bench.artifacts.files)
    facts = bench.look_at_base()
    assert (facts.moved, facts.conflicts, facts.tree) == (True, 1, "")
    assert bench.said(facts.told_ref) == "calc.py"
    assert facts.base == bench.workspace.base("main").commit
    assert dict(bench.artifacts.files) == before


def test_a_branch_that_is_gone_is_told(tmp_path):
    """It is neither moved nor where it was."""
    bench = TaskEffects(tmp_path).through("test")
    bench.know(target="nowhere")
    facts = bench.look_at_base()
    assert (facts.error, facts.moved, facts.conflicts) == ("workspace", False, 0)
    assert "nowhere" in bench.said(facts.told_ref)


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
    """A task with another look at the files, driven until it waits: its world, its run, its entries."""
    artifacts = MemoryArtifacts()
    inspect = load_performer(PACKAGES["task"], "task_inspect")

    async def looked(call):
        facts = await inspect(call)
        look(call, artifacts)
        return facts

    world = fake_ports(
        tmp_path, {"task": MACHINE}, agent=FakeAgent(crew), artifacts=artifacts,
        performers={"task_inspect": looked}, packages=PACKAGES,
    )  # fmt: skip
    config = fake_config(
        roles={name: fake_config().roles["coder"] for name in ("planner", "coder", "reviewer", "tester")}
    )

    async def play():
        live, lock = await start_run(world, StartRequest("task", "Mend it", "ann", config, {}))
        return await Driver(world).drive(live.run, held=lock, live=live)

    head = asyncio.run(play())
    return world, head, [json.loads(body) for _, body, _ in world.journal.rows(head.run)]


def test_a_file_that_changes_under_the_look_is_looked_at_again(tmp_path):
    """Between the look and its entry a hand was quicker: the look does not count, the next one sees what is there."""
    looks = []

    def hand(call, artifacts):
        looks.append(call.given("phase"))
        if looks == ["planning"]:
            artifacts.write(call.run, PLAN, b"{}")

    world, head, entries = driven(tmp_path, hand)
    assert looks == ["planning", "planning"]
    again = [e for e in entries if e.get("retry", {}).get("retry_reason") == "changed_meanwhile"]
    assert again[0]["kind"] == "effect_started"
    assert entries[-1]["event"] == "documents_damaged"
    assert "planning_succeeded" not in [e.get("event") for e in entries]
    assert load_active_run(world, head.run).snapshot.context.step == "damaged"


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

    world, head, entries = driven(tmp_path, hand)
    assert looks[:4] == ["planning", "planning", "planning", "plan_review"]
    assert "documents_damaged" not in [e.get("event") for e in entries]
    assert load_active_run(world, head.run).snapshot.state == "accept"


def test_a_look_that_breaks_says_why(tmp_path):
    """What went wrong with the look itself is shown at the gate, and nothing is taken for undamaged."""

    def hand(_call, _artifacts):
        raise WorkspaceError("the folder is on fire")

    world, head, entries = driven(tmp_path, hand)
    live = load_active_run(world, head.run)
    assert (entries[-1]["event"], live.snapshot.context.step) == ("documents_damaged", "damaged")
    (gate,) = world.journal.gates(head.run)
    assert "the folder is on fire" in live.payloads.get(gate.shown["damage"])
    assert gate.choices == ("restore",)
