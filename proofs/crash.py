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
from crossing import KILLED, faults, sailed, sea, verdict
from figures import main, stamp

SEED = 20260101
RECOVERIES = 200  # runs whose recovery is killed too, one to five times


class Guillotine:
    """Kills this process at the nth moment: before (odd) or after (even) a statement of any connection."""

    def __init__(self, nth: int) -> None:
        self._left = nth
        self.moments = 0

    def set_up(self) -> None:
        apsw.connection_hooks.append(self._watch)

    def _watch(self, db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE, self._moment)

    def _moment(self, _event: dict[str, Any]) -> None:
        self.moments += 1
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def cut(folder: Path, trees: str, nth: int) -> bool:
    """Sails until the nth moment; whether it was killed there (else the end came first)."""
    code = sailed(folder, trees, Guillotine(nth).set_up)
    if code not in (0, KILLED):
        raise AssertionError(f"moment {nth}: the child ended with {code}")
    return code == KILLED


def moments(folder: Path, trees: str) -> tuple[int, dict[str, Any]]:
    """How many there are in an undisturbed crossing, and what that one decided."""
    blade = Guillotine(0)
    if sailed(folder, trees, blade.set_up, lambda: blade.moments) != 0:
        raise AssertionError("the undisturbed crossing failed")
    told = verdict(folder)
    return told["after"], told


def once(
    shore: Path, trees: str, cuts: list[int], reference: dict[str, Any]
) -> tuple[int, dict[str, Any], list[str]]:
    """One crossing killed at these moments, one after the other, then let go: kills, verdict, faults."""
    folder = shore / f"{trees}-{'-'.join(map(str, cuts))}"
    kills = sum(cut(folder, trees, nth) for nth in cuts)
    if sailed(folder, trees) != 0:
        return kills, {}, [f"cuts {cuts}: it could not be gone on with"]
    told = verdict(folder)
    return kills, told, [f"cuts {cuts}: {fault}" for fault in faults(told, reference)]


def every_moment(shore: Path, trees: str, step: int = 1) -> dict[str, Any]:
    """Kills at every moment (or every so many) of a whole crossing."""
    total, reference = moments(shore / f"{trees}-whole", trees)
    points, kills, again, wrong = 0, 0, 0, []
    for nth in range(1, total + 1, step):
        killed, told, faults_ = once(shore, trees, [nth], reference)
        points, kills, again = points + 1, kills + killed, again + told.get("again", 0)
        wrong += faults_
        shutil.rmtree(shore / f"{trees}-{nth}", ignore_errors=True)
    return {
        "moments": total,
        "points": points,
        "kills": kills,
        "effects_begun_again": again,
        "transitions": len(reference["transitions"]),
        "decisions": reference["decisions"],
        "faults": wrong,
    }


def recoveries(shore: Path, n: int) -> dict[str, Any]:
    """Kills the run, then kills its recovery, one to five times more."""
    total, reference = moments(shore / "fake-recovered", "fake")
    dice = random.Random(SEED)  # noqa: S311  a seed on purpose
    kills, wrong = 0, []
    for _ in range(n):
        cuts = [dice.randint(1, total) for _ in range(dice.randint(2, 6))]
        killed, _, faults_ = once(shore, "fake", cuts, reference)
        kills += killed
        wrong += faults_
        shutil.rmtree(shore / f"fake-{'-'.join(map(str, cuts))}", ignore_errors=True)
    return {"runs": n, "kills": kills, "faults": wrong}


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when there is no fault in any of them."""
    with sea("crash") as shore:
        fake = every_moment(shore, "fake", 40 if quick else 1)
        git = every_moment(shore, "git", 200 if quick else 1)
        again = recoveries(shore, 5 if quick else RECOVERIES)
    parts = {"every_statement": fake, "every_statement_with_git": git, "killed_recoveries": again}
    return {
        "ok": all(not part["faults"] and part["kills"] > 0 for part in parts.values()),
        **stamp(quick, SEED),
        **parts,
        "not_tried": [
            "power loss: a kill leaves what was written in the system's cache",
            "kills between two bytes of one write",
        ],
    }


def told(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    lines = []
    for name in ("every_statement", "every_statement_with_git"):
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
