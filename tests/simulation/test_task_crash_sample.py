"""A whole task killed at a few of its commits and writes; the proofs take them all, with git, and every hand in every file."""

import crash
import pytest
from interrupted_run import proof_folder
from interrupted_task import WAY, InterruptedTask
from task_crash import Changes, Commits, Deeds

from steersman.machines.task.effects import document_writer

DEEDS = (
    5  # steps for each file: git is kept away, an unfinished copy is removed, one is made, opened, renamed
)


@pytest.fixture(scope="module")
def undisturbed():
    """A folder for tasks, and an undisturbed one to hold others against."""
    with proof_folder("task") as folder:
        yield folder, crash.moments(folder / "whole", "fake", Deeds, InterruptedTask)


def killed(undisturbed, cuts, blade):
    folder, (_, reference) = undisturbed
    kills, told, wrong = crash.once(folder, "fake", cuts, reference, blade, InterruptedTask)
    return kills, told["again"], wrong


def test_an_undisturbed_task(undisturbed):
    """Back from its tests, back to its plan, two documents put back, delivered by one commit; nothing begun twice."""
    _, (deeds, told) = undisturbed
    assert (told["way"], told["outcome"], told["put_back"], told["again"]) == (WAY, "accepted", 1, 0)
    assert InterruptedTask.faults(told, told) == []
    assert deeds > 500


def test_killed_around_a_commit(undisturbed):
    """The same decisions, the same documents byte for byte, the same commit in the branch; what began twice is marked."""
    told = [killed(undisturbed, [nth], Commits) for nth in (75, 222)]
    assert [fault for _, _, wrong in told for fault in wrong] == []
    assert sum(kills for kills, _, _ in told) == 2


def test_killed_while_a_document_is_written(undisturbed):
    """Between the file and its entry, with the document half there: the task writes it again and names no fault."""
    told = [killed(undisturbed, [nth], Deeds) for nth in (2, 303)]
    assert [fault for _, _, wrong in told for fault in wrong] == []
    assert [kills for kills, _, _ in told] == [1, 1]
    assert sum(again for _, again, _ in told) > 0


def test_killed_while_recovering(undisturbed):
    """A recovery that is killed is a crash like any other."""
    assert killed(undisturbed, [500, 60], Changes)[::2] == (2, [])


def test_the_proof_notices_another_document(undisturbed, monkeypatch):
    """Where a repeated effect writes other bytes, a kill in the last document is a fault."""
    keep = document_writer.DocumentWriter._keep

    def otherwise(self, name, hidden):
        return keep(self, name, hidden + "\n" * (self.call.item.starts - 1))

    monkeypatch.setattr(document_writer.DocumentWriter, "_keep", otherwise)
    beside = 5  # files that are made from the tape in the end, with as many steps each as the decision
    kills, again, wrong = killed(undisturbed, [undisturbed[1][0] - DEEDS * beside], Deeds)
    assert (kills, again) == (1, 1)
    assert [fault.split(":")[1].strip() for fault in wrong] == ["documents", "state"]
