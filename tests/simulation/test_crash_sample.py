"""A whole roundtable killed at some of its statements, and struck at some of its writes; the proofs take them all."""

import shutil
from pathlib import Path

import crash
import disk
import fanout
import pytest
from interrupted_run import InterruptedRun, drive_in_child, faults, proof_folder, run_in_child, verdict

from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.engine.run_loop import RunLoop


@pytest.fixture(scope="module")
def undisturbed():
    """A folder for runs, and an undisturbed one to hold others against."""
    with proof_folder("sample") as folder:
        total, reference = crash.moments(folder / "reference", "fake")
        yield folder, total, reference


def test_an_undisturbed_crossing(undisturbed):
    """It ends approved, with nothing begun twice and one answer."""
    _, total, reference = undisturbed
    assert (reference["outcome"], reference["again"], reference["answers"]) == ("approved", 0, 1)
    assert (total > 500, faults(reference, reference)) == (True, [])


def test_killed_at_a_statement_and_gone_on_with(undisturbed):
    """Nothing lost, nothing doubled, the same decisions, what may have run twice marked."""
    folder, total, reference = undisturbed
    points = [1, 9, *range(60, total, total // 5), total - 1]
    told = [crash.once(folder, "fake", [nth], reference) for nth in points]
    assert [fault for _, _, wrong in told for fault in wrong] == []
    assert sum(kills for kills, _, _ in told) == len(points)
    assert sum(one["again"] for _, one, _ in told) > 0


def test_killed_while_recovering(undisturbed):
    """A recovery that is killed, twice, is a crash like any other."""
    folder, total, reference = undisturbed
    kills, _, wrong = crash.once(folder, "fake", [total // 2, 40, 25], reference)
    assert (kills, wrong) == (3, [])


def test_killed_with_real_git(undisturbed):
    """The same with worktrees of a real repository."""
    folder, _, _ = undisturbed
    total, reference = crash.moments(folder / "git", "git")
    kills, told, wrong = crash.once(folder, "git", [total * 2 // 3], reference)
    assert (kills, wrong, told["outcome"]) == (1, [], "approved")


@pytest.mark.parametrize("trouble", disk.TROUBLES, ids=lambda t: f"{t[1]} at {t[0]}")
def test_a_disk_that_fails(undisturbed, trouble):
    """At some write or sync: a clear error, nothing written after it, and the run goes on afterwards."""
    folder, _, reference = undisturbed
    made_store = folder / f"made_store-{trouble[0]}-{trouble[1]}"
    assert run_in_child(lambda: InterruptedRun(made_store).close()) == 0
    points = range(1, 18, 6) if trouble[0] == "sync" else range(1, 260, 100)
    told = disk.every(folder, made_store, trouble, points, reference)
    assert (told["faults"], told["failed"]) == ([], 3)


def test_a_disk_that_fails_while_the_store_is_made(undisturbed):
    """Then there is no store yet, or a whole one."""
    folder, _, reference = undisturbed
    told = disk.every(folder, None, ("write", "full", False), range(3, 60, 25), reference)
    assert (told["faults"], told["failed"]) == ([], 3)


def test_many_in_flight_killed_around_every_commit():
    """Five parts, three suffice: none that finished is done again, late ones are journaled and not folded."""
    with proof_folder("fan") as folder:
        assert fanout.lived(folder / "whole") == 0
        moments = 12
        told = [fanout.tried(folder / str(nth), [nth]) for nth in range(1, moments + 1)]
        assert [fault for _, wrong in told for fault in wrong] == []
        assert sum(kills for kills, _ in told) >= moments - 4


# ── the proofs themselves ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_proof_notices_what_is_not_marked(undisturbed, monkeypatch):
    """With a driver that does not mark what it begins again, the same kills are a fault."""

    async def silent(_self, _begun):
        return None

    monkeypatch.setattr(RunLoop, "_restart_open_effects", silent)
    folder, total, reference = undisturbed
    wrong = [
        crash.once(folder, "fake", [nth, 1], reference)[2] for nth in range(total // 2, total // 2 + 60, 12)
    ]
    assert any("unmarked" in fault for one in wrong for fault in one)


def test_the_proof_notices_what_is_lost(undisturbed, monkeypatch):
    """With a store that acknowledges what it does not keep, the run is a fault."""
    kept = SqliteJournal.append

    def forgetful(self, batch):
        kept(self, batch)
        if batch.head.status == "done":
            self._write.execute("DELETE FROM entry WHERE run=? AND seq=?", (batch.head.run, batch.head.seq))

    monkeypatch.setattr(SqliteJournal, "append", forgetful)
    folder, _, reference = undisturbed
    assert drive_in_child(folder / "forgetful", "fake") == 0
    wrong = faults(verdict(folder / "forgetful"), reference)
    assert any("lost" in fault for fault in wrong)
    shutil.rmtree(Path(folder, "forgetful"))
