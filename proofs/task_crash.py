"""A whole task killed around every commit, in every write of its documents, before every git; then gone on with.

    python proofs/task_crash.py [--quick]

A real child process each time, and a fresh one that goes on. The task ends as undisturbed: the same decisions, the same
commit in the branch, moved there once; every document byte for byte; nothing lost, nothing done twice without a mark.
"""

import os
import pathlib
import random
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
from crash import Guillotine, every_moment, moments, once
from figures import main, stamp
from interrupted_run import proof_folder
from interrupted_task import DIFFERS, WAY, InterruptedTask, RevertedTask

SEED = 20260105
RECOVERIES = 30  # tasks whose recovery is killed too, one to five times
READING = {"SELECT", "PRAGMA"}
WRITER = "/adapters/storage/artifacts.py"
DEEDS = {"os.rename", "os.remove", "os.rmdir"}
WRITES = os.O_WRONLY | os.O_RDWR


class Changes(Guillotine):
    """Before every statement that changes the store, and after every commit."""

    def _watch(self, db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE, self._seen)

    def _seen(self, event: Any) -> None:
        verb = (event["sql"].split() or [""])[0].upper()
        if verb not in READING and (verb == "COMMIT" or event["code"] == apsw.SQLITE_TRACE_STMT):
            self.moment()


class Commits(Changes):
    """Before and after every commit."""

    def _seen(self, event: Any) -> None:
        if event["sql"].startswith("COMMIT"):
            self.moment()


class Deeds(Guillotine):
    """Before every step of writing or removing a document: a file made, still empty, whole, put in its place."""

    def set_up(self) -> str | None:
        sys.addaudithook(self._heard)
        return None

    def _heard(self, event: str, args: Any) -> None:
        writes = event in DEEDS or (event == "open" and args[2] & WRITES)
        if not writes:
            return
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  the code that does it
        while frame is not None and frame.f_code.co_filename == pathlib.__file__:
            frame = frame.f_back
        if frame is not None and frame.f_code.co_filename.endswith(WRITER):
            self.moment()


class Programs(Deeds):
    """Before every program that is started: all of them are git."""

    def _heard(self, event: str, _args: Any) -> None:
        if event == "subprocess.Popen":
            self.moment()


RECOVERED, REVERTED = "killed_recoveries", "every_commit_of_a_revert"
PARTS: dict[
    str, tuple[str, type[Guillotine], int, int]
] = {  # trees, where to kill, every so many, of a sample
    "every_commit_with_git": ("git", Commits, 1, 60),
    "every_git": ("git", Programs, 1, 100),
    "changes_of_the_store": ("fake", Changes, 3, 200),
    "every_deed_on_a_document": ("fake", Deeds, 1, 130),
}


def part(name: str, quick: bool) -> dict[str, Any]:
    """Kills of one sort, each task in a folder of its own."""
    with proof_folder("task") as parent_folder:
        if name == RECOVERED:
            return recoveries(parent_folder, 2 if quick else RECOVERIES)
        if name == REVERTED:
            return taken_back(parent_folder, 13 if quick else 1)
        trees, blade, step, sample = PARTS[name]
        return every_moment(parent_folder, trees, sample if quick else step, blade, InterruptedTask)


def taken_back(parent_folder: Path, step: int) -> dict[str, Any]:
    """Kills from the delivery on, while the change is taken back again."""
    delivered, _ = moments(parent_folder / "delivered", "git", Commits, InterruptedTask)
    return every_moment(parent_folder, "git", step, Commits, RevertedTask, delivered)


def recoveries(parent_folder: Path, n: int) -> dict[str, Any]:
    """Kills the task, then kills its recovery, one to five times more."""
    total, reference = moments(parent_folder / "recovered", "fake", Changes, InterruptedTask)
    dice = random.Random(SEED)  # noqa: S311  a seed on purpose
    kills, again, wrong = 0, 0, []
    for _ in range(n):
        cuts = [dice.randint(1, total) for _ in range(dice.randint(2, 6))]
        killed, told, faults = once(parent_folder, "fake", cuts, reference, Changes, InterruptedTask)
        kills, again = kills + killed, again + told.get("again", 0)
        wrong += faults
        shutil.rmtree(parent_folder / f"fake-{'-'.join(map(str, cuts))}", ignore_errors=True)
    return {"runs": n, "kills": kills, "effects_begun_again": again, "faults": wrong}


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when there is no fault in any of them, and the undisturbed task went its way."""
    with proof_folder("task") as parent_folder:
        _, reference = moments(parent_folder / "whole", "git", Commits, InterruptedTask)
    names = [*PARTS, REVERTED, RECOVERED]
    with ProcessPoolExecutor(2) as pool:
        parts = dict(zip(names, pool.map(part, names, repeat(quick)), strict=True))
    went = reference["way"] == WAY and reference["outcome"] == "accepted" and reference["put_back"] == 1
    return {
        "ok": went and all(not one["faults"] and one["kills"] > 0 for one in parts.values()),
        **stamp(quick, SEED),
        "way": reference["way"],
        "effects": reference["begun"],
        "documents": reference["documents"],
        "delivered": reference["delivered"],
        "may_differ": DIFFERS,
        **parts,
        "not_tried": [
            "power loss: a kill leaves what was written in the system's cache",
            "a kill inside a git that is under way, and between two bytes of one write",
            "a task whose codegen is a child roundtable",
        ],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    parts = {name: one for name, one in result.items() if isinstance(one, dict) and "kills" in one}
    lines = [
        f"   {name.replace('_', ' ')}: {one['kills']} kills, {one['effects_begun_again']} effects begun again and marked, "
        f"{len(one['faults'])} faults"
        for name, one in parts.items()
    ]
    return lines + [f"   FAULT {fault}" for one in parts.values() for fault in one["faults"][:10]]


if __name__ == "__main__":
    sys.exit(main(__name__))
