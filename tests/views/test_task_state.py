"""`state.json` of a task: what the tape says, and what is reported of a file that cannot be read."""

import hashlib
import json

import msgspec
from tests.support.cases import for_each_case
from tests.support.summaries import summary_of

from steersman.kernel.snapshot import Snapshot
from steersman.machines.task import MACHINE
from steersman.machines.task.context import TaskContext
from steersman.machines.task.files import (
    build_task_state,
    describe_unreadable_state,
    render_task_state,
    task_state_digest,
)
from steersman.machines.task.package import PACKAGE
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


@for_each_case("data", [b"", b"{", b"\xff\xfe", b"[]"])
def test_a_file_that_is_no_state_is_reported(data):
    """The reason is named; a file that can be read is not compared, because nothing reads it back."""
    assert "could not be read" in describe_unreadable_state(data)


def test_a_file_that_can_be_read_is_not_compared():
    """A state with another phase counts for nothing and is written again with the next step."""
    forged = msgspec.structs.replace(state("codegen"), phase="accept")
    assert describe_unreadable_state(render_task_state(forged)) == ""
