"""Tamper proof: whatever is changed in a finished run is found, and the first bad entry is named.

    python proofs/tamper.py [--quick]

Every byte of every entry, payload, snapshot, head, key and definition, of the budget and of an open gate is flipped;
every entry is deleted, swapped with its neighbour, doubled, preceded by an invented one, each also with everything
after it and the head forged to fit; the tail is cut at every length. Without an anchor the proof counts what cannot be
found, and holds verify to saying so.
"""

import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import apsw
from figures import main, stamp
from finished_run import FinishedRun
from tampering import PATTERNS, Case, cases, cut_and_forge, forge

from steersman.engine.audit.verifying import UNANCHORED_GAPS
from steersman.kernel.tape import Entry, seal_entry
from steersman.ports.anchors import RunAnchors

SEED = 20_260_101
QUOTA = 6  # cases of a kind in a quick proof
WORKERS = 2
NOT_TRIED = (
    "two bytes at once, and bit patterns other than the two named",
    "0x80 in the bytes of the payload that is a file and of the stored definition",
    "a deleted snapshot row: it is a copy that loading does without, and nothing is lost with it",
    "entries added after the newest anchor: verify says that it cannot see those",
    "the bytes of a gate's body that nobody reads: those of fields that are columns, too",
    "the tables beside the tape other than gates and budgets (inbox, quarantine): verify says what it cannot see of them",
    "SQLite's own page structure",
    "somebody who holds the project's signing key and signs a forged tape",
)


def prove(quick: bool) -> dict[str, Any]:
    """Tries everything, or a seeded sample, and counts."""
    began = time.monotonic()
    if quick:
        parts = [_work(0, 1, QUOTA)]
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
            parts = list(pool.map(_work, range(WORKERS), [WORKERS] * WORKERS, [None] * WORKERS))
    total = _added(parts)
    ok = all(c["tried"] == c["found"] == c["named"] for c in total["kinds"].values())
    blind = total["without_anchor"]
    ok = ok and blind["tried"] == blind["not_found_as_said"] and not total["unsound"]
    return {
        "proof": "tamper",
        "ok": ok,
        **stamp(quick, SEED),
        "patterns": [f"0x{p:02x}" for p in PATTERNS],
        **total,
        "seconds": round(time.monotonic() - began),
        "not_tried": list(NOT_TRIED),
    }


def _work(part: int, parts: int, quota: int | None) -> dict[str, Any]:
    """One worker's share, on a run of its own; every worker makes the same one."""
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        target = FinishedRun(Path(folder))
        try:
            wanted = _sample(target, quota) if quota is not None else None
            tally: dict[str, Counter[str]] = defaultdict(Counter)
            misses: list[str] = []
            for n, case in enumerate(cases(target)):
                if n % parts == part and (wanted is None or n in wanted):
                    _try(target, case, tally[case.kind], misses)
            kinds = {kind: dict(count) for kind, count in tally.items()}
            whole = target.verify()
            told = {"entries": target.last, "run_bytes": sum(len(body) for _, body, _ in target.rows)}
            blind = (
                _blind(target, 1 if quota is None else 10)
                if part == 0
                else {"tried": 0, "not_found_as_said": 0}
            )
            sound = not whole.ok or bool(whole.unseen)
            return {**told, "kinds": kinds, "without_anchor": blind, "misses": misses, "unsound": int(sound)}
        finally:
            target.close()


def _memory() -> str | None:
    """A file system in memory where there is one: the proof rolls everything back anyway."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  no name is guessable below it


def _sample(target: FinishedRun, quota: int) -> set[int]:
    by_kind: dict[str, list[int]] = defaultdict(list)
    for n, case in enumerate(cases(target)):
        by_kind[case.kind].append(n)
    chance = random.Random(SEED)  # noqa: S311  a sample, not a secret
    return {n for found in by_kind.values() for n in chance.sample(found, min(quota, len(found)))}


def _try(target: FinishedRun, case: Case, count: Counter[str], misses: list[str]) -> None:
    target.db.execute("BEGIN")
    undo = None
    try:
        undo = case.do()
        kept = target.anchors.list_anchors(target.run) if case.kind == "flip anchor" else target.kept
        verdict = target.verify_asking() if case.asking else target.verify(kept)
    except apsw.ConstraintError:
        count["impossible"] += 1  # the store itself refuses two rows in one place
        return
    finally:
        target.db.execute("ROLLBACK")
        if callable(undo):
            undo()
    found = not verdict.ok or (case.kind == "flip anchor" and bool(verdict.unseen))
    named = verdict.first_bad in case.expect if case.expect else verdict.first_bad is None
    count["tried"] += 1
    count["found"] += found
    count["named"] += found and named
    if not (found and named) and len(misses) < 20:
        misses.append(f"{case.kind}: expected {case.expect}, got {verdict}")


def _blind(target: FinishedRun, step: int) -> dict[str, int]:
    """Without an anchor: the cut tail and the rewritten tape are not found, and verify says beforehand that it cannot."""
    tried = said = 0
    changes = [lambda n=n: cut_and_forge(target, n) for n in range(1, target.last, step)]
    changes += [lambda k=k: _rewrite(target, k) for k in range(1, target.last, step)]
    for change in changes:
        target.db.execute("BEGIN")
        try:
            change()
            verdict = target.verify(RunAnchors())
        finally:
            target.db.execute("ROLLBACK")
        tried += 1
        said += verdict.ok and not verdict.anchored and verdict.unseen == UNANCHORED_GAPS
    return {"tried": tried, "not_found_as_said": said}


def _rewrite(target: FinishedRun, k: int) -> None:
    entry = target.entries[k - 1]
    made = Entry(
        run=target.run, seq=k + 1, at=entry.at, kind="note", prev=target.rows[k - 1][2], why="all is well"
    )
    forge(target, [*target.entries[:k], seal_entry(made).entry, *target.entries[k:]], k + 1)


def _added(parts: list[dict[str, Any]]) -> dict[str, Any]:
    kinds: dict[str, dict[str, int]] = {}
    for part in parts:
        for kind, count in part["kinds"].items():
            sums = kinds.setdefault(kind, {"tried": 0, "found": 0, "named": 0, "impossible": 0})
            for name, n in count.items():
                sums[name] += n
    totals = {
        name: sum(c[name] for c in kinds.values()) for name in ("tried", "found", "named", "impossible")
    }
    return {
        "entries": parts[0]["entries"],
        "run_bytes": parts[0]["run_bytes"],
        **totals,
        "kinds": kinds,
        "without_anchor": parts[0]["without_anchor"],
        "misses": [m for p in parts for m in p["misses"]],
        "unsound": sum(p["unsound"] for p in parts),
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    lines = [f"{result['entries']} entries, {result['run_bytes']} bytes of entries; seed {result['seed']}"]
    for kind, c in sorted(result["kinds"].items()):
        lines.append(
            f"  {kind:42} tried {c['tried']:7}  found {c['found']:7}  first bad entry named {c['named']:7}"
        )
    lines.append(
        f"  {'all':42} tried {result['tried']:7}  found {result['found']:7}  first bad entry named {result['named']:7}"
    )
    lines.append(f"  refused by the store itself (two rows in one place): {result['impossible']}")
    blind = result["without_anchor"]
    lines.append(
        f"  without an anchor: {blind['not_found_as_said']} of {blind['tried']} not found, each as verify says:"
    )
    return [*lines, *(f"    cannot be seen: {words}" for words in UNANCHORED_GAPS), *result["misses"]]


if __name__ == "__main__":
    sys.exit(main(__name__))
