"""Every single row of every machine, removed alone, is noticed.

    python proofs/rows.py [--quick]

By the check, or, in `task`, by the specification's diagram, by a row that waits for what came too often where nothing is
counted any more, or by a guard that nothing asks.
"""

import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from figures import main, stamp

TOP = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOP / "tests" / "machines"), str(TOP)]

from test_check_roundtable import rebuilt as roundtable  # noqa: E402  the same
from tests.support.task_table_errors import is_row_loss_unnoticed  # noqa: E402  found through the path above

from steersman.kernel.build import machine  # noqa: E402  the same
from steersman.kernel.check import check_machine  # noqa: E402  the same
from steersman.machines.coordinator import MACHINE as COORDINATOR  # noqa: E402  the same
from steersman.machines.coordinator import table as coordinator_table  # noqa: E402  the same
from steersman.machines.roundtable import table as roundtable_table  # noqa: E402  the same
from steersman.machines.task import table as task_table  # noqa: E402  the same

EVERY = 17  # of a quick proof: one row in so many
WORKERS = 2


def coordinator(rows: Any) -> Any:
    """Coordinator with other rows."""
    m, t = COORDINATOR, coordinator_table
    return machine(
        m.name, m.meaning, states=t.S, events=t.E, rows=rows, context=m.context, namings=t.NAMES, computes=t.COMPUTES,
        folds=t.FOLDS, laws=t.LAWS, constants=m.constants, memory=m.memory, successes=m.successes,
    )  # fmt: skip


def unnoticed(case: tuple[str, int]) -> str:
    """The label of a row that is gone without anybody noticing, or nothing."""
    name, n = case
    rows = TABLES[name]
    left = (*rows[:n], *rows[n + 1 :])
    match name:
        case "task":
            sound = is_row_loss_unnoticed(n)
        case "roundtable":
            sound = not check_machine(roundtable(rows=left)).findings
        case _:
            sound = not check_machine(coordinator(left)).findings
    return rows[n].label if sound else ""


TABLES: dict[str, Any] = {
    "roundtable": roundtable_table.TABLE,
    "coordinator": coordinator_table.TABLE,
    "task": task_table.TABLE,
}


def prove(quick: bool) -> dict[str, Any]:
    """Removes every row, or a sample of them, one at a time."""
    cases = [(name, n) for name, rows in TABLES.items() for n in range(0, len(rows), EVERY if quick else 1)]
    with get_context("fork").Pool(WORKERS) as pool:
        told = list(zip(cases, pool.map(unnoticed, cases), strict=True))
    missing = [f"{name}: {label}" for (name, _), label in told if label]
    removed = {name: sum(case[0] == name for case in cases) for name in TABLES}
    return {**stamp(quick, "none: every row"), "ok": not missing, "removed": removed, "unnoticed": missing}


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    lines = [f"   {name}: {count} rows removed, one at a time" for name, count in result["removed"].items()]
    return [
        *lines,
        f"   {len(result['unnoticed'])} unnoticed",
        *(f"   ! {label}" for label in result["unnoticed"]),
    ]


if __name__ == "__main__":
    sys.exit(main(__name__))
