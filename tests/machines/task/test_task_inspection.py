"""What is wrong with a file of a task, and what to do about it."""

import hashlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case
from tests.support.task_replies import sample_plan, sample_scope

from steersman.contracts.artifacts import STATE_FILE, TRANSCRIPT_FILE, DamagedFile
from steersman.machines.task.documents.inspection import (
    ArtifactOnDisk,
    copies_directory_damage,
    digest_directory_listing,
    encode_directory_listing,
    find_file_damage,
    render_damaged_files,
    unknown_file_damage,
)
from steersman.machines.task.documents.schemas import TASK_DOCUMENTS
from steersman.machines.task.documents.words import (
    CODE_REVIEW_FILE,
    COPIES_DIRECTORY,
    PATCH_FILE,
    PLAN_FILE,
    SCOPE_FILE,
)

TASK = "261116-abc123"
GOOD = msgspec.json.format(msgspec.json.encode(sample_plan()), indent=1)
SCOPE = msgspec.json.encode(sample_scope(("src/",)))
SHA = hashlib.sha256(b"as it was").hexdigest()


def of(name, data, *, mine=True, task_id=TASK):
    damage = find_file_damage(name, ArtifactOnDisk("file", data), SHA, may_adopt=mine, task_id=task_id)
    assert damage is not None
    return damage


def changed(document=GOOD, **fields):
    return json.dumps({**json.loads(document), **fields}).encode()


@for_each_case("name", [*TASK_DOCUMENTS, PATCH_FILE, COPIES_DIRECTORY, TRANSCRIPT_FILE])
def test_what_was_recorded(name):
    """The recorded bytes are well, whatever they are."""
    assert (
        find_file_damage(name, ArtifactOnDisk("file", b"as it was"), SHA, may_adopt=True, task_id=TASK)
        is None
    )


NO_FILE = {
    "missing": "is deleted", "link": "is a link, and links are not followed: to \\x1b",
    "other": "is no plain file, but a folder or a device: to \\x1b", "unreadable": "cannot be read: to \\x1b",
    "too_long": "is longer than what is read: to \\x1b",
}  # fmt: skip


@for_each_case(("kind", "problem"), NO_FILE.items())
@for_each_case("name", [*TASK_DOCUMENTS, PATCH_FILE, COPIES_DIRECTORY])
def test_no_file(name, kind, problem):
    """What is there instead of the file is named, and what to do; nothing of it can be taken over."""
    damage = find_file_damage(
        name, ArtifactOnDisk(kind, b"as it was", "to \x1b"), SHA, may_adopt=True, task_id=TASK
    )
    assert (damage.name, damage.problem, damage.adoptable) == (name, problem, False)
    assert ("`restore`" in damage.next) == (name != STATE_FILE)


def test_without_more_words():
    """Where nothing more is known nothing more is said; and each kind has its own advice."""
    kinds = ("missing", "link", "other", "unreadable")
    found = [find_file_damage(PLAN_FILE, ArtifactOnDisk(kind), SHA, may_adopt=True) for kind in kinds]
    assert found[3].problem == "cannot be read"
    assert len({one.next for one in found}) == 4


@for_each_case("name", [*TASK_DOCUMENTS, PATCH_FILE])
def test_emptied(name):
    """An empty file is called empty."""
    assert of(name, b"").problem == "is empty"


@for_each_case("name", [PATCH_FILE, COPIES_DIRECTORY, TRANSCRIPT_FILE])
def test_the_digest_alone(name):
    """Of what is no document nothing more can be said than that it is not what was recorded."""
    found = of(name, b"diff --git")
    assert found[1:] == ("is not what was recorded", "`restore` puts the recorded file back", False)


@for_each_case("name", TASK_DOCUMENTS)
@for_each_case("length", [1, 7, len(GOOD) // 2, len(GOOD) - 2])
def test_cut_short(name, length):
    """A document that breaks off is called so, with the place."""
    assert of(name, GOOD[:length]).problem.startswith("is cut short: its JSON breaks off in line ")


@for_each_case(
    ("data", "problem"),
    [
        (b'{"a": tru', "is cut short: its JSON breaks off in line 1, column 7"),
        (b'{"a":\n "bc', "is cut short: its JSON breaks off in line 2, column 2"),
        ('{"a": "é'.encode()[:-1], "is cut short, at byte 8"),
        (b'{"a": "\xff"}', "is no JSON: not UTF-8, at byte 8"),
        (b"garbage", "is no JSON: Expecting value in line 1, column 1"),
        (b'{"a": 1,\n}', "is no JSON: "),
        (b'{"a": 1} {}', "is no sound JSON: more text after the first value, at character 9"),
        (b" \n", "is empty"),
        (b"[1]", "is no sound JSON: is not a JSON object"),
        (b'{"a": 1, "a": 2}', "is no sound JSON: a: duplicate key"),
        (b"{" * 99, "is no sound JSON: nested deeper than 32 levels"),
        (b"\xef\xbb\xbf{}", "is no JSON: Expecting value in line 1, column 1"),
    ],
)
def test_garbage(data, problem):
    """What is no JSON is told with the place, or with why it would be read in two ways."""
    found = of(PLAN_FILE, data)
    assert found.problem.startswith(problem)
    assert not found.adoptable


@for_each_case(
    ("data", "problem"),
    [
        (changed(round=0), "round: "),
        (changed(extra=1), "extra: is not a known field"),
        (changed(questions=[{"id": "q-1", "text": "x"}]), "questions[0].blocking: is missing"),
        (b"{}", "task_id: is missing"),
        (changed(title="\x1c"), "Expected"),
        (b"```json\n" + GOOD + b"\n```", "JSON is malformed"),
    ],
)
def test_another_shape(data, problem):
    """A document that does not fit names the field; what only the decoder sees is in its own words."""
    found = of(PLAN_FILE, data)
    assert found.problem.startswith("does not fit its schema: ")
    assert problem in found.problem
    assert not found.adoptable


def test_few_problems_of_many():
    """A file that is wrong everywhere is told in one short line."""
    assert len(of(PLAN_FILE, changed(requirements=["\n"] * 200, **{"k\n" * 900: 1})).problem) < 900


def test_a_link_in_the_place_of_a_folder_is_for_its_person_to_remove():
    """Nothing is put back behind a link: what helps is said, and a link that is the file itself is simply replaced."""
    for above in ("planning", ".steersman", "runs"):
        damage = find_file_damage(
            PLAN_FILE, ArtifactOnDisk("link", detail=f"{above} is a link"), "0" * 64, may_adopt=True
        )
        assert damage is not None
        assert damage.next.startswith("remove the link that stands in the place of a folder")
    for own in (PLAN_FILE, "planning.ai.json"):
        damage = find_file_damage(
            PLAN_FILE, ArtifactOnDisk("link", detail=f"{own} is a link"), "0" * 64, may_adopt=True
        )
        assert damage is not None
        assert damage.next == "`restore` puts the recorded file back; what the link leads to is left alone"


@pytest.mark.parametrize(("name", "data"), [(PLAN_FILE, changed(title="Mine")), (SCOPE_FILE, SCOPE)])
def test_a_plan_that_was_meant(name, data):
    """A whole plan of this task may be taken over while it is planned, and at no other time."""
    found = of(name, data)
    assert found.adoptable
    assert "whole" in found.problem
    assert "`adopt`" in found.next
    assert "`restore`" in found.next
    late = of(name, data, mine=False)
    assert late[1:] == ("was changed by hand", "`restore` puts the recorded file back", False)


@pytest.mark.parametrize("task_id", ["261116-other1", ""])
def test_the_plan_of_another_task(task_id):
    """A plan that names another task is not this one's, nor is any where nobody says which task this is."""
    found = of(PLAN_FILE, GOOD, task_id=task_id)
    assert found.problem.endswith("its task_id is 261116-abc123")
    assert not found.adoptable


def test_no_verdict_is_taken_over():
    """A review that was changed by hand is never adopted, however well it reads; a projection is made again."""
    review = {
        "task_id": TASK, "round": 1, "tree": "", "patch_digest": "", "ok": True, "decision": "passes", "reviewers": [],
    }  # fmt: skip
    found = of(CODE_REVIEW_FILE, json.dumps(review).encode())
    assert found[1:] == ("was changed by hand", "`restore` puts the recorded file back", False)
    state = {
        "task_id": TASK, "title": "t", "phase": "done", "step": "", "status": "", "entries": 1, "actors": {},
        "artifacts": {},
    }  # fmt: skip
    assert "made again from the tape" in of(STATE_FILE, json.dumps(state).encode()).next


@pytest.mark.parametrize(
    ("found", "problem", "first"),
    [
        (ArtifactOnDisk("file", b"x"), "is a file, and not the folder of copies", "move it away"),
        (ArtifactOnDisk("link", detail="files is a link"), "is a link, and links are not followed: files is a link", "move it away"),
        (ArtifactOnDisk("unreadable", detail="files: no"), "cannot be read: files: no", "make it readable"),
    ],
)  # fmt: skip
def test_no_folder(found, problem, first):
    """Something in the place of the folder of copies: what it is, and what a person has to do before it is put back."""
    told = f"{first}, then `restore` puts the recorded files back"
    assert copies_directory_damage(COPIES_DIRECTORY, found) == DamagedFile(
        COPIES_DIRECTORY, problem, told, False
    )


def test_strangers():
    """A file is taken away; into a folder that is locked nobody looks."""
    assert unknown_file_damage("code/files/x").next == "`restore` moves it aside"
    assert (
        unknown_file_damage("code/files/x/").next
        == "move it away, or make it readable; then `restore` moves it aside"
    )


def test_told():
    """People read the file, what is wrong and what to do; a name cannot forge a line."""
    lines = render_damaged_files(
        [
            DamagedFile(PLAN_FILE, "is deleted", "`restore`", False),
            DamagedFile("a\nb\x1b", "is empty", "look", False),
        ]
    )
    assert lines == f"{PLAN_FILE} is deleted\n    `restore`\na\\nb\\x1b is empty\n    look"
    assert render_damaged_files(()) == ""


def test_folders():
    """One digest for a folder: the same in any order, another for any other name or content."""
    one = digest_directory_listing({"a": "1", "b": "2"})
    assert one == digest_directory_listing({"b": "2", "a": "1"})
    others = [{}, {"a": "1"}, {"a": "2", "b": "1"}, {"a": "1", "b": "2", "c": "3"}, {"a": "1\0002 b"}]
    assert len({one, *map(digest_directory_listing, others)}) == 6
    assert digest_directory_listing({"\udcff": "1"}) != digest_directory_listing({"\\udcff": "1"})
    assert (
        find_file_damage(
            COPIES_DIRECTORY,
            ArtifactOnDisk("file", encode_directory_listing({"a": "1", "b": "2"})),
            one,
            may_adopt=False,
        )
        is None
    )


@given(
    st.sampled_from([*TASK_DOCUMENTS, PATCH_FILE]),
    st.one_of(st.binary(), st.text().map(str.encode), st.just(GOOD)),
    st.booleans(),
)
def test_total(name, data, mine):
    """Any bytes give an answer that can be printed on one line."""
    found = of(name, data, mine=mine)
    assert found.problem
    assert found.problem.isprintable()
    assert found.adoptable == (data == GOOD and name == PLAN_FILE and mine)


def test_a_stranger_whose_name_no_file_may_have():
    """It cannot be moved aside by us: its person is told so, and that the rest is put right."""
    odd, plain = unknown_file_damage("review/a\nb"), unknown_file_damage("review/evil")
    assert odd.next.startswith("move it away by hand")
    assert plain.next == "`restore` moves it aside"
    assert (
        odd.recorded,
        find_file_damage("x", ArtifactOnDisk("missing"), "0", may_adopt=False).recorded,
    ) == (False, True)
