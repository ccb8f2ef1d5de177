"""The disk fails at every single write and every single sync of a whole roundtable: full, or broken.

    python proofs/disk.py [--quick]

The process that meets it stops with a clear error; after a failed write or sync it writes no more. When the disk is in
order again the run is gone on with: nothing acknowledged is lost, nothing is half there, the decisions are the same.
"""

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from figures import main, stamp
from interrupted_run import RUN, InterruptedRun, drive_in_child, faults, proof_folder, run_in_child, verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.faulty_disks import FailingVFS

from steersman.errors import JournalError, StoreFull

# What fails, how, and whether only once: a full disk stays full; a broken one may well take the next write.
TROUBLES = (("write", "full", False), ("write", "io", True), ("sync", "io", True))
SEED = "crossing"


def struck(folder: Path, trouble: tuple[Any, Any, bool], nth: int) -> dict[str, Any]:
    """A child process whose nth deed fails: what it said."""
    deed, kind, once = trouble

    def work() -> None:
        disk = FailingVFS()
        disk.fail(deed, nth, kind, once=once)
        note: dict[str, Any] = {"error": "", "wrote_on": False}
        run = None
        try:
            run = InterruptedRun(folder, vfs=disk.name)
            asyncio.run(run.drive_to_end())
        except JournalError as error:
            note["error"] = str(error)
            note["wrote_on"] = kind == "io" and run is not None and writes_on(run, disk)
        note["failed"] = disk.failed
        (folder / "struck.json").write_text(json.dumps(note))

    if run_in_child(work) != 0:
        return {"error": "", "failed": 0, "wrote_on": False, "crashed": True}
    told: dict[str, Any] = json.loads((folder / "struck.json").read_text())
    return told


def writes_on(run: InterruptedRun, disk: FailingVFS) -> bool:
    """Whether a process that was told of a broken disk still writes to it."""
    before = dict(disk.deeds)
    try:
        run.journal.post(RUN, "event", {}, 0)
    except StoreFull:
        return dict(disk.deeds) != before
    return True


def deeds(made_store: Path, folder: Path) -> dict[str, int]:
    """How many writes and syncs an undisturbed run needs, from a store that is there."""
    shutil.copytree(made_store, folder)
    told = {}

    def work() -> None:
        disk = FailingVFS()
        run = InterruptedRun(folder, vfs=disk.name)
        asyncio.run(run.drive_to_end())
        for kind in ("write", "sync"):
            told[kind] = sum(n for (deed, _), n in disk.deeds.items() if deed == kind)
        (folder / "struck.json").write_text(json.dumps(told))

    assert run_in_child(work) == 0
    counted: dict[str, int] = json.loads((folder / "struck.json").read_text())
    return counted


def every(
    parent_folder: Path,
    made_store: Path | None,
    trouble: tuple[Any, Any, bool],
    points: range,
    reference: dict[str, Any],
) -> dict[str, Any]:
    """One trouble at each of these points, each time gone on with afterwards."""
    failed, silent, wrong = 0, 0, []
    for nth in points:
        folder = parent_folder / "struck"
        if made_store is not None:
            shutil.copytree(made_store, folder)
        else:
            folder.mkdir()
        met = struck(folder, trouble, nth)
        where = f"{trouble[0]} {nth} ({trouble[1]})"
        failed += bool(met["failed"])
        silent += bool(met["failed"]) and not met["error"]
        wrong += [f"{where}: the child broke"] * bool(met.get("crashed"))
        wrong += [f"{where}: it wrote on after the error"] * met["wrote_on"]
        wrong += [f"{where}: no next step in {met['error']!r}"] * bool(
            met["error"] and "`steersman resume`" not in met["error"]
        )
        if drive_in_child(folder, "fake") != 0:
            wrong.append(f"{where}: it could not be gone on with")
        else:
            wrong += [f"{where}: {fault}" for fault in faults(verdict(folder), reference)]
        shutil.rmtree(folder)
    return {"points": len(points), "failed": failed, "survived_silently": silent, "faults": wrong}


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when every trouble was met and survived."""
    parts: dict[str, Any] = {}
    with proof_folder("disk") as parent_folder:
        made_store = parent_folder / "made_store"
        assert run_in_child(lambda: InterruptedRun(made_store).close()) == 0
        counted = deeds(made_store, parent_folder / "counted")
        assert drive_in_child(parent_folder / "whole", "fake") == 0
        reference = verdict(parent_folder / "whole")
        for trouble in TROUBLES:
            name = f"{trouble[1]}_at_{trouble[0]}"
            step = max(1, counted[trouble[0]] // 6) if quick else 1
            parts[name] = every(
                parent_folder, made_store, trouble, range(1, counted[trouble[0]] + 1, step), reference
            )
            making = range(1, 40, 13) if quick else [*range(1, 60), *range(60, 2_600, 60)]
            parts[f"{name}_while_making_the_store"] = every(parent_folder, None, trouble, making, reference)
    return {
        "ok": all(not part["faults"] and part["failed"] > 0 for part in parts.values()),
        **stamp(quick, SEED),
        "deeds": counted,
        "parts": parts,
        "not_tried": ["troubles of the working trees' own files", "reads that fail", "two troubles at once"],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    lines = [f"   a whole run: {result['deeds']['write']} writes, {result['deeds']['sync']} syncs"]
    for name, part in result["parts"].items():
        lines.append(
            f"   {name.replace('_', ' ')}: {part['points']} points, {part['failed']} met it, {len(part['faults'])} faults"
        )
        lines += [f"   FAULT {fault}" for fault in part["faults"][:10]]
    return lines


if __name__ == "__main__":
    sys.exit(main(__name__))
