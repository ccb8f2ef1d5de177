"""Prints the table CLI × case → class from the rows of a run, and fails when a row is missing or not as it has to be.

`--keep` writes proofs/agents.json.
"""

import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.support.agent_matrix import AGENT_CASES, ROWS_FOLDER

KILLED = "kill -9"
ALL = (*AGENT_CASES, KILLED)
SHORT = ("text", "edit", "401", "refused", "cancel")
NEEDED = {"claude": ALL, "codex": ALL, "gemini": SHORT, "opencode": SHORT}
PROOF = Path(__file__).resolve().parents[2] / "proofs" / "agents.json"


def main() -> int:
    """0 when every needed row is there and every row holds."""
    rows = [json.loads(path.read_text()) for path in sorted(ROWS_FOLDER.glob("*.json"))]
    there = {(row["cli"], row["case"]) for row in rows}
    missing = [
        f"{cli}: {case}" for cli, cases in NEEDED.items() for case in cases if (cli, case) not in there
    ]
    wrong = [f"{row['cli']}: {row['case']}" for row in rows if not _holds(row)]
    print("\n".join(_lines(rows)))
    print(
        "\n".join(f"MISSING {name}" for name in missing), "\n".join(f"WRONG {name}" for name in wrong), sep=""
    )
    if "--keep" in sys.argv:
        PROOF.write_text(json.dumps(_proof(rows, missing, wrong), indent=1) + "\n")
    return 1 if missing or wrong else 0


def _holds(row: dict) -> bool:
    calm = row["left_alive"] == 0 and not row["changed_outside"]
    return bool(calm and row["got"] == row["expected"] and row["seconds"] <= row["clock"])


def _lines(rows: list[dict]) -> list[str]:
    clis = sorted({row["cli"] for row in rows})
    by = {(row["case"], row["cli"]): row for row in rows}
    cases = [case for case in ALL if any((case, cli) in by for cli in clis)]
    cases += sorted({row["case"] for row in rows} - set(cases))
    lines = [f"{'case':18}" + "".join(f"{cli:36}" for cli in clis)]
    for case in cases:
        cells = [by.get((case, cli)) for cli in clis]
        told = [f"{c['got']} {c['seconds']:.1f} s" if c else "–" for c in cells]
        lines.append(f"{case:18}" + "".join(f"{cell:36}" for cell in told).rstrip())
    return lines


def _proof(rows: list[dict], missing: list[str], wrong: list[str]) -> dict:
    ordered = sorted(
        rows, key=lambda r: (r["cli"], ALL.index(r["case"]) if r["case"] in ALL else 99, r["case"])
    )
    return {
        "ok": not missing and not wrong,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": {
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            **{row["cli"]: row["version"] for row in rows},
        },
        "missing": missing,
        "rows": ordered,
    }


if __name__ == "__main__":
    sys.exit(main())
