"""What a run went through, read from its tape alone."""

import itertools

import pytest
from tests.support.long_tapes import drive_sample_run, instant_ports

from steersman.engine.audit import read_tape
from steersman.kernel.tape import GENESIS_HASH, Entry
from steersman.machines.roundtable import MACHINE
from steersman.testing.memory import MemoryJournal
from steersman.views.report import build_timeline


@pytest.fixture(scope="module")
def entries():
    journal = MemoryJournal()
    head = drive_sample_run(instant_ports(journal), 1)
    return [entry for entry, _ in read_tape(journal, head.run)]


def test_steps(entries):
    """Every step is there once, numbered, from where the one before led to."""
    moments = list(build_timeline(entries, MACHINE))
    assert [m.index for m in moments] == list(range(1, len(moments) + 1))
    assert [m.seq for m in moments] == [e.seq for e in entries if e.kind in ("created", "transition")]
    assert moments[0].source is None
    assert all(b.source == a.to for a, b in itertools.pairwise(moments))
    assert [m.event for m in moments][-2:] == ["tests_passed", "delivered"]


def test_labels(entries):
    """A step has the words of the row that was taken; without the machine it has none."""
    labels = {m.event: m.label for m in build_timeline(entries, MACHINE)}
    assert labels["tests_passed"] == "clear must-fix, finalize approved"
    assert labels["tester_replied"] == "run the commands beside the project's checks"
    assert {m.label for m in build_timeline(entries)} == {""}


def test_rounds(entries):
    """Rounds are counted as the tape counts them: a follow-up starts again at one."""
    built = [
        m.round for m in build_timeline(entries, MACHINE, round_field="round") if m.event == "start_reviewer"
    ]
    assert built == [1, 2, 1, 2]


def test_durations(entries):
    """A step's duration is the time since the step before; what the effect itself took is beside it."""
    moments = list(build_timeline(entries, MACHINE))
    assert moments[0].duration == 0
    assert sum(m.duration for m in moments) == moments[-1].at - moments[0].at
    assert next(m for m in moments if m.event == "start_reviewer").took is not None


def test_ops_on_the_round():
    """Only a set and an addition change the round; a fork begins with the round it was forked in."""
    fields = {"run": "r", "at": 1, "prev": GENESIS_HASH}
    told = [
        Entry(seq=1, kind="created", context={"round": 4}, to="build", **fields),
        Entry(seq=2, kind="transition", event="x", ops=(["add", "round", 2],), to="build", **fields),
        Entry(seq=3, kind="transition", event="x", ops=(["put", "round", "k", 1],), to="build", **fields),
        Entry(seq=4, kind="transition", event="x", ops=(["set", "round", 0],), to="build", **fields),
    ]
    assert [m.round for m in build_timeline(told, round_field="round")] == [4, 6, 6, 0]
