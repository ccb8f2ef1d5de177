"""A real child process killed before and after every SQL statement of a whole roundtable, then gone on with.

    python proofs/crash.py [--quick]

Nothing lost, nothing doubled, the same decisions as undisturbed, effects that may have run twice marked; also when the
recovery itself is killed up to five times.
"""

import os
import random
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import apsw
from figures import main, stamp
from interrupted_run import KILLED, InterruptedRun, drive_in_child, proof_folder, run_in_child, verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.faulty_disks import CountingVFS

SEED = 20260101
RECOVERIES = 200  # runs whose recovery is killed too, one to five times


class Guillotine:
    """Kills this process at the nth moment: before or after a statement of any connection."""

    def __init__(self, nth: int) -> None:
        self._left = nth
        self.moments = 0

    def set_up(self) -> str | None:
        apsw.connection_hooks.append(self._watch)
        return None

    def _watch(self, db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE, lambda _: self.moment())

    def moment(self) -> None:
        self.moments += 1
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Scuttler(Guillotine):
    """The same at every write and sync of the store's files: in the middle of its commits."""

    def set_up(self) -> str | None:
        blade = self

        class Disk(CountingVFS):
            def before(self, deed: Any, kind: str) -> None:
                super().before(deed, kind)
                blade.moment()

        self._disk = Disk()
        return self._disk.name


def cut(
    folder: Path,
    trees: str,
    nth: int,
    blade: type[Guillotine] = Guillotine,
    kind: type[InterruptedRun] = InterruptedRun,
) -> bool:
    """Sails until the nth moment; whether it was killed there (else the end came first)."""
    code = drive_in_child(folder, trees, blade(nth).set_up, kind=kind)
    if code not in (0, KILLED):
        raise AssertionError(f"moment {nth}: the child ended with {code}")
    return code == KILLED


def moments(
    folder: Path,
    trees: str,
    blade: type[Guillotine] = Guillotine,
    kind: type[InterruptedRun] = InterruptedRun,
) -> tuple[int, dict[str, Any]]:
    """How many there are in an undisturbed run, and what that one decided."""
    counting = blade(0)
    if drive_in_child(folder, trees, counting.set_up, lambda: counting.moments, kind) != 0:
        raise AssertionError("the undisturbed run failed")
    told = verdict(folder)
    return told["after"], told


def launching(folder: Path) -> int:
    """How many writes and syncs it takes to make a store."""

    def work() -> None:
        blade = Scuttler(0)
        InterruptedRun(folder, vfs=blade.set_up()).close()
        (folder / "moments").write_text(str(blade.moments))

    assert run_in_child(work) == 0
    return int((folder / "moments").read_text())


def once(
    parent_folder: Path,
    trees: str,
    cuts: list[int],
    reference: dict[str, Any],
    blade: type[Guillotine] = Guillotine,
    kind: type[InterruptedRun] = InterruptedRun,
) -> tuple[int, dict[str, Any], list[str]]:
    """One run killed at these moments, one after the other, then let go: kills, verdict, faults."""
    folder = parent_folder / f"{trees}-{'-'.join(map(str, cuts))}"
    kills = sum(cut(folder, trees, nth, blade, kind) for nth in cuts)
    if drive_in_child(folder, trees, kind=kind) != 0:
        return kills, {}, [f"cuts {cuts}: it could not be gone on with"]
    told = verdict(folder)
    return kills, told, [f"cuts {cuts}: {fault}" for fault in kind.faults(told, reference)]


def every_moment(
    parent_folder: Path,
    trees: str,
    step: int = 1,
    blade: type[Guillotine] = Guillotine,
    kind: type[InterruptedRun] = InterruptedRun,
    first: int = 1,
) -> dict[str, Any]:
    """Kills at every moment (or every so many) of a whole run, from the first one that is wanted."""
    total, reference = moments(parent_folder / f"{blade.__name__}-{trees}-whole", trees, blade, kind)
    points, kills, again, wrong = 0, 0, 0, []
    # A young store's file is grown by thousands of writes of one kind: every fiftieth of those will do.
    young = launching(parent_folder / "launched") if blade is Scuttler else 0
    for nth in [*range(1, young, 50 * step), *range(max(young + 1, first), total + 1, step)]:
        killed, told, faults_ = once(parent_folder, trees, [nth], reference, blade, kind)
        points, kills, again = points + 1, kills + killed, again + told.get("again", 0)
        wrong += faults_
        shutil.rmtree(parent_folder / f"{trees}-{nth}", ignore_errors=True)
    return {
        "moments": total,
        "points": points,
        "kills": kills,
        "effects_begun_again": again,
        "transitions": len(reference["transitions"]),
        "decisions": reference["decisions"],
        "faults": wrong,
    }


def recoveries(parent_folder: Path, n: int) -> dict[str, Any]:
    """Kills the run, then kills its recovery, one to five times more."""
    total, reference = moments(parent_folder / "fake-recovered", "fake")
    dice = random.Random(SEED)  # noqa: S311  a seed on purpose
    kills, wrong = 0, []
    for _ in range(n):
        cuts = [dice.randint(1, total) for _ in range(dice.randint(2, 6))]
        killed, _, faults_ = once(parent_folder, "fake", cuts, reference)
        kills += killed
        wrong += faults_
        shutil.rmtree(parent_folder / f"fake-{'-'.join(map(str, cuts))}", ignore_errors=True)
    return {"runs": n, "kills": kills, "faults": wrong}


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when there is no fault in any of them."""
    with proof_folder("crash") as parent_folder:
        fake = every_moment(parent_folder, "fake", 40 if quick else 1)
        within = every_moment(parent_folder, "fake", 50 if quick else 1, Scuttler)
        git = every_moment(parent_folder, "git", 200 if quick else 1)
        again = recoveries(parent_folder, 5 if quick else RECOVERIES)
    parts = {
        "every_statement": fake,
        "every_statement_with_git": git,
        "every_write_and_sync": within,
        "killed_recoveries": again,
    }
    return {
        "ok": all(not part["faults"] and part["kills"] > 0 for part in parts.values()),
        **stamp(quick, SEED),
        **parts,
        "not_tried": [
            "power loss: a kill leaves what was written in the system's cache",
            "kills between two bytes of one write",
        ],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    lines = []
    for name in ("every_statement", "every_statement_with_git", "every_write_and_sync"):
        part = result[name]
        lines.append(
            f"   {name.replace('_', ' ')}: {part['points']} points of {part['moments']}, {part['kills']} kills, "
            f"{part['effects_begun_again']} effects begun again and marked, {len(part['faults'])} faults"
        )
    again = result["killed_recoveries"]
    lines.append(
        f"   killed recoveries: {again['runs']} runs, {again['kills']} kills, {len(again['faults'])} faults"
    )
    return lines + [
        f"   FAULT {f}"
        for part in result.values()
        if isinstance(part, dict)
        for f in part.get("faults", [])[:10]
    ]


if __name__ == "__main__":
    sys.exit(main(__name__))
