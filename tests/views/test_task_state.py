"""`state.json` of a task: what the tape says, and what is said when somebody has changed it."""

import json

import msgspec
import pytest

from steersman.contracts.task.documents import TaskState
from steersman.kernel.snapshot import Snapshot
from steersman.machines.task import MACHINE
from steersman.machines.task.context import Context
from steersman.views.status import Override, status_of
from steersman.views.task import changed_by_hand, own_digest, rewritten, task_state


def state(phase="planning", step="work", overrides=(), **given):
    s = Snapshot("261116-aaaaaa", "task", MACHINE.digest, phase, Context(task_ref="p", step=step, **given))
    shown = status_of(MACHINE, s, "Fix add", (), text=lambda _: "")
    return task_state(s, msgspec.structs.replace(shown, overrides=tuple(overrides)), ("redo_planning",))


@pytest.mark.parametrize(
    ("step", "status"),
    [("work", "draft"), ("comment", "workshop"), ("questions", "clarifying"), ("record", "formalizing"), ("ready", "review_ready"), ("damaged", "damaged")],
)  # fmt: skip
def test_planning_has_its_round_and_its_words(step, status):
    """002 §4: actors.planning holds round and status."""
    planning = state(step=step, round=3).actors["planning"]
    assert (planning.round, planning.status) == (3, status)


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("planning", [None, "pending", None, None, None, None, None]),
        ("codegen", ["done", "done", "work", "pending", None, None, None]),
        ("accept", ["done", "done", "done", "done", "done", "work", None]),
        ("revert", ["done", "done", "done", "done", "done", "done", "work"]),
        ("done", ["done", "done", "done", "done", "done", "done", None]),
    ],
)
def test_phases_are_behind_here_or_ahead(phase, expected):
    """002 §4: phase holds the top-level state, actors.<phase> how far each is."""
    found = [actor.status for actor in state(phase).actors.values()]
    assert found[1:] == expected[1:]
    assert state(phase).phase == phase


def test_it_says_what_it_is_and_what_was_waived():
    """A projection, with its digest, and overrides that nobody can overlook."""
    made = state("review", overrides=[Override(9, "ann", "codegen", "review", "I looked")])
    assert "made from the tape" in made.note
    assert made.digest == own_digest(made)
    assert [(w.person, w.reason) for w in made.overrides] == [("ann", "I looked")]
    assert made.next == ("redo_planning",)


def test_an_old_file_of_ours_is_no_change_by_hand():
    """A crash leaves the one before: it is made again without a word."""
    assert changed_by_hand(msgspec.json.encode(state()), state("codegen")) == ""


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "could not be read"),
        (b"{", "could not be read"),
        (b"\xff\xfe", "could not be read"),
        (b"[]", "could not be read"),
    ],
)
def test_garbage_is_told(data, told):
    """Nothing of it is believed."""
    assert told in changed_by_hand(data, state())
    assert "made again from the tape" in changed_by_hand(data, state())


def test_a_changed_file_is_told_with_what_differs():
    """The phase, a count, anything: field, what it says, what the tape says."""
    now = state("codegen", artifacts={"a": "0"})
    forged = json.loads(msgspec.json.encode(now)) | {"phase": "accept", "artifacts": {}}
    told = changed_by_hand(json.dumps(forged).encode(), now)
    assert "phase accept, the tape says codegen" in told
    assert "artifacts has 0 entries, the tape says has 1 entries" in told
    only_digest = json.loads(msgspec.json.encode(now)) | {"digest": "0" * 64}
    assert "its digest does not fit" in changed_by_hand(json.dumps(only_digest).encode(), now)
    assert isinstance(now, TaskState)


TAPE = b'{"seq":1}\n{"seq":2}\n{"seq":3}\n'


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_an_older_transcript_is_no_change_by_hand(lines):
    """The tape only grows."""
    assert rewritten(b"".join(TAPE.splitlines(keepends=True)[:lines]), TAPE) == ""


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "was emptied"),
        (b"\n", "was emptied"),
        (TAPE[:15], "was cut short in line 2"),
        (TAPE[:-1], "was cut short in line 3"),
        (TAPE.replace(b"2", b"7"), "line 2 is not what the tape says"),
        (TAPE + b"\n", "line 4 is not what the tape says"),
        (TAPE + b"more\n", "line 4 is not what the tape says"),
        (b"\xff\x00", "line 1 is not what the tape says"),
    ],
)
def test_another_transcript_is_told(data, told):
    """The first line that differs is named, and the tape has the last word."""
    assert rewritten(data, TAPE) == f"transcript.jsonl {told}: it was made again from the tape"
