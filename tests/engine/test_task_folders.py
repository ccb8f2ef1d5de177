"""Folders of a task that are no folders any more, or locked; names that are no text; what steersman makes from the tape."""

import os
from itertools import product
from pathlib import Path

import pytest
from test_task_runs import Task
from tests.support.document_tampering import DERIVED_FILES, TAMPERINGS, find_derived_file_failures
from tests.support.root_permissions import enforce_file_permissions
from tests.support.task_effects import TaskEffects

from steersman.adapters.storage.artifacts import DirectoryArtifacts
from steersman.engine import projections

COPIES = "code/files"


@pytest.fixture
def locks():
    """Rights that count for root, too."""
    with enforce_file_permissions() as counted:
        if not counted:
            pytest.skip("NOT SHOWN: nothing is locked to root here")
        yield


def place(effects, name=""):
    return Path(effects.artifacts.folder(effects.run), name)


# ── folders ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("locks")
@pytest.mark.parametrize("folder", ["planning", "code", "code/files", "code/files/new", ""])
def test_a_locked_folder(tmp_path, folder):
    """What is in it is named, nothing is put back in silence, and once it is open again all is well."""
    effects = TaskEffects(tmp_path, disk=True).through("codegen")
    place(effects, folder).chmod(0)
    facts = effects.inspect("codegen")
    told = effects.said(facts.told_ref)
    assert (facts.damaged > 0, effects.event("codegen")) == (True, "documents_damaged")
    assert all(line.startswith(folder) for line in told.splitlines()[::2]), told
    assert "cannot be read" in told or "is not on record" in told
    refused = effects.said(effects.restore().error_ref)
    assert f"{place(effects, folder)}" in refused
    assert "put that right and try again" in refused
    place(effects, folder).chmod(0o755)
    assert effects.restore().error_ref == ""
    assert effects.event("codegen") == "codegen_completed"


@pytest.mark.parametrize("what", ["link", "file", "pipe", "locked"])
def test_no_copies_and_no_folder_of_them(tmp_path, what):
    """A change that only deletes has no copies: something in the place of their folder is noticed all the same."""
    effects = TaskEffects(tmp_path, disk=True)
    effects.plan()
    effects.code({"old.py": None})
    assert effects.event("codegen") == "codegen_completed"
    place(effects, "elsewhere").mkdir()
    match what:
        case "link":
            place(effects, COPIES).symlink_to(place(effects, "elsewhere"))
        case "file":
            place(effects, COPIES).write_bytes(b"mine\n")
        case "pipe":
            os.mkfifo(place(effects, COPIES))
        case _:
            place(effects, COPIES).mkdir(0)
    with enforce_file_permissions() as counted:
        if what == "locked" and not counted:
            pytest.skip("NOT SHOWN: nothing is locked to root here")
        facts = effects.inspect("codegen")
        lines = effects.said(facts.told_ref).splitlines()
    assert (facts.damaged, lines[0].split()[0]) == (1, COPIES)
    assert "then `restore` puts the recorded files back" in lines[1]


def test_a_name_that_is_no_text(tmp_path):
    """It is named as it can be written; what cannot be taken away is said, not passed over."""
    effects = TaskEffects(tmp_path, disk=True).through("codegen")
    stranger = os.fsencode(place(effects, COPIES)) + b"/\xff"
    os.close(os.open(stranger, os.O_CREAT | os.O_WRONLY))
    facts = effects.inspect("codegen")
    assert (facts.damaged, effects.said(facts.told_ref).split()[0]) == (1, f"{COPIES}/\\xff")
    assert effects.said(effects.restore().error_ref) == (
        f"{COPIES}/\\xff cannot be taken away: remove it by hand and try again"
    )
    os.unlink(stranger)
    assert effects.restore().error_ref == ""
    assert effects.event("codegen") == "codegen_completed"


# ── what is made from the tape ──────────────────────────────────────────────────────────────────────────────────────


def test_what_is_made_from_the_tape_is_made_again(tmp_path):
    """In every phase: state.json and the transcript are what they were, whatever was done to them; an unreadable
    state is reported."""
    task, phases, wrong = Task(tmp_path, artifacts=DirectoryArtifacts(tmp_path / "runs"), pace="step"), [], []
    with enforce_file_permissions() as counted:
        hands = [hand for hand in TAMPERINGS if counted or hand != "unreadable"]
        while "done" not in phases:
            assert projections.write_projections(task.ports, task.run) == []
            phases.append(task.where[0])
            wrong += [
                f
                for name, hand in product(DERIVED_FILES, hands)
                for f in find_derived_file_failures(task.ports, task.run, name, hand)
            ]
            if phases[-1] != "done":
                task.say("approve")
    assert wrong == []
    assert phases == ["planning", "plan_review", "codegen", "review", "test", "accept", "done"]


def test_a_killed_write_is_no_hand(tmp_path):
    """What a process left behind that was killed while it wrote them: nobody is accused."""
    task = Task(tmp_path, artifacts=DirectoryArtifacts(tmp_path / "runs"), pace="step")
    assert projections.write_projections(task.ports, task.run) == []
    folder = Path(task.artifacts.folder(task.run))
    names = ("transcript.jsonl", "state.json", "report.md", "timeline.json")
    kept = {name: (folder / name).read_bytes() for name in names}
    task.say("approve")
    for n, name in enumerate(names):
        (folder / name).unlink()
        assert [t for t in projections.write_projections(task.ports, task.run) if name == names[-1]] == []
        for late in names[n:]:
            (folder / late).unlink()
        assert projections.write_projections(task.ports, task.run) == [], names[n:]
        for old in names[n:]:
            (folder / old).write_bytes(kept[old])
        assert projections.write_projections(task.ports, task.run) == [], names[n:]
