"""`state.json` of a task: what the tape says, and what is said when somebody has changed it."""

import hashlib
import json

import msgspec
import pytest
from tests.support.cases import for_each_case
from tests.support.summaries import summary_of

from steersman.contracts.task.documents import TaskState
from steersman.kernel.snapshot import Snapshot
from steersman.machines.task import MACHINE
from steersman.machines.task.context import TaskContext
from steersman.machines.task.package import PACKAGE
from steersman.machines.task.views.state_file import (
    build_task_state,
    describe_state_edit,
    describe_transcript_edit,
    render_task_state,
    task_state_digest,
)
from steersman.views.run_summary import GuardOverride

RUN = "261116-aaaaaa"


def mark(digest):
    """What only the holder of the key can make."""
    return hashlib.sha256(f"key:{digest}".encode()).hexdigest()


def state(phase="planning", step="work", overrides=(), **given):
    s = Snapshot(RUN, "task", MACHINE.digest, phase, TaskContext(task_ref="p", step=step, **given))
    shown = summary_of(PACKAGE, s, "Fix add", (), text=lambda _: "")
    return build_task_state(
        s, msgspec.structs.replace(shown, overrides=tuple(overrides)), ("redo_planning",), mark
    )


def told_of(data, now, key=mark):
    return describe_state_edit(data, lambda: now, RUN, key)


@for_each_case(
    ("step", "status"),
    [("work", "draft"), ("comment", "workshop"), ("questions", "clarifying"), ("record", "formalizing"), ("ready", "review_ready"), ("damaged", "damaged")],
)  # fmt: skip
def test_planning_has_its_round_and_its_words(step, status):
    """002 §4: actors.planning holds round and status."""
    planning = state(step=step, round=3).actors["planning"]
    assert (planning.round, planning.status) == (3, status)


@for_each_case(
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
    made = state("review", overrides=[GuardOverride(9, "ann", "codegen", "review", "I looked")])
    assert "made from the tape" in made.note
    assert made.digest == mark(task_state_digest(made))
    assert [(w.person, w.reason) for w in made.overrides] == [("ann", "I looked")]
    assert made.next == ("redo_planning",)


def test_a_phase_that_has_not_begun_says_so_and_one_that_is_over_has_no_step():
    """002 §4: `{"status": null}` is written out; rounds only where there are some; a task that is done is at no step."""
    made = json.loads(render_task_state(state("codegen", round=3)))
    assert made["actors"]["planning"] == {"status": "done", "round": 3}
    assert (made["actors"]["test"], made["step"]) == ({"status": None}, "work")
    assert state("done", step="deliver").step == ""


def test_an_old_file_of_ours_is_no_change_by_hand():
    """A crash leaves the one before: it is made again without a word."""
    assert told_of(render_task_state(state()), state("codegen")) == ""


@for_each_case("data", [b"", b"{", b"\xff\xfe", b"[]"])
def test_garbage_is_told(data):
    """Nothing of it is believed."""
    assert "could not be read" in told_of(data, state())


def test_a_changed_file_is_told_with_what_differs():
    """The phase, a count, anything: field, what it says, what the tape says; also where its digest was worked out again."""
    now = state("codegen", artifacts={"a": "0"})
    forged = msgspec.structs.replace(now, phase="accept", artifacts={})
    for digest in (forged.digest, task_state_digest(forged), "0" * 64):
        told = told_of(render_task_state(msgspec.structs.replace(forged, digest=digest)), now)
        assert "phase accept, the tape says codegen" in told
        assert "artifacts has 0 entries, the tape says has 1 entries" in told
    only_digest = msgspec.structs.replace(now, digest="0" * 64)
    assert "its digest or its form does not fit" in told_of(render_task_state(only_digest), now)
    assert "its digest or its form does not fit" in told_of(msgspec.json.encode(now), now)
    assert isinstance(now, TaskState)


def test_a_file_of_another_task_is_told():
    """However whole it is."""
    theirs = msgspec.structs.replace(state(), task_id="261116-bbbbbb")
    theirs = msgspec.structs.replace(theirs, digest=mark(task_state_digest(theirs)))
    assert told_of(render_task_state(theirs), state()) == "is not of this task: its task_id is 261116-bbbbbb"


def test_without_its_key_an_older_file_is_not_accused():
    """The texts were pruned, and the key with them: of a file that is as old as the tape its fields still tell."""
    now = state("done", step="deliver")
    pruned, old = msgspec.structs.replace(now, digest=""), msgspec.structs.replace(now, entries=7)
    assert told_of(render_task_state(now), pruned, lambda _: "") == ""
    assert told_of(render_task_state(old), pruned, lambda _: "") == ""
    forged = msgspec.structs.replace(now, outcome="reverted")
    assert "outcome reverted, the tape says" in told_of(render_task_state(forged), pruned, lambda _: "")


TAPE = b'{"seq":1}\n{"seq":2}\n{"seq":3}\n'


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_an_older_transcript_is_no_change_by_hand(lines):
    """The tape only grows; but one that has fewer lines than the state was made from was cut."""
    data = b"".join(TAPE.splitlines(keepends=True)[:lines])
    assert describe_transcript_edit(data, TAPE, lines) == ""
    assert describe_transcript_edit(data, TAPE, 4) == f"was cut short: it ends with line {lines} of 4"


@for_each_case(
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
    assert describe_transcript_edit(data, TAPE) == told
