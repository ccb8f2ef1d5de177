"""Measures what a second run costs: warm checks, setup that is reused, no extra check run for a change without tests.

    python proofs/caches.py DIR [--only NAME …] [--times 3] [--minutes 30] [--write]

DIR holds checked-out repositories (Go and Rust for the ratio; any kind for setup). For each one `steersman init --yes`, one
first run, and then, in turn, the project's check outside and a run of steersman with the same product change. Outside is
another copy with the same setup and a warm cache of its own. The crew is scripted, so only checks take time.

How setup is observed: a first setup step writes the time into an untracked file, and a check prints it. Setup ran once when
every check of every run prints the same time. `--write` keeps the figures in proofs/caches.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from figures import stamp
from project_changes import Change, Check, NoChangeError, make_change
from trial_project import TrialProject, end_cleanly_on_sigterm, list_repositories

HERE = Path(__file__).resolve().parent
MOST_RATIO = 1.5
MEASURED = ("go", "cargo")  # whose ratio decides
STAMP_FILE = ".cache/setup-time.txt"  # below a directory of dependencies: other files would count as built
STAMP_CHECK = "setup_time"
APPROVED = {
    "decision": "approve",
    "summary": "read",
    "must_fix": [],
    "nice_to_have": [],
    "tests": [],
    "security": [],
}


class StopMeasureError(Exception):
    """The repository cannot be measured, and why."""


def measure_repository(source: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """One repository: a row of figures."""
    row: dict[str, Any] = {"repository": source.name}
    until = time.monotonic() + asked.minutes * 60
    with tempfile.TemporaryDirectory(prefix="caches-", ignore_cleanup_errors=True) as place:
        project = TrialProject(Path(place) / "inside", source, until, asked.python)
        outside = TrialProject(Path(place) / "outside", source, until, asked.python)
        try:
            _measure(project, outside, asked.times, row)
        except (StopMeasureError, NoChangeError) as stop:
            row["why"] = str(stop)
        finally:
            project.close()
            outside.close()
    row["ok"] = _holds(row)
    return row


def _holds(row: dict[str, Any]) -> bool:
    if "why" in row:
        return False
    fast = row["ratio"] <= MOST_RATIO or row["program"] not in MEASURED
    return fast and row["setup_reused"] and row["extra_check_runs"] == 0


def _measure(project: TrialProject, outside: TrialProject, times: int, row: dict[str, Any]) -> None:
    crew = project.root / "crew.json"
    said = project.type_command("init", "--yes", "--script", str(crew), "--json")
    facts = said.answer
    checks = [Check(n, tuple(c["argv"]), c.get("cwd") or "") for n, c in facts.get("checks", {}).items()]
    if said.code != 0 or not checks:
        raise StopMeasureError(f"init: {said.reason}")
    setup = [step for step in facts.get("setup", []) if isinstance(step, dict)]
    row |= {"program": checks[0].argv[0], "check": " ".join(checks[0].argv)}
    row["setup"] = [" ".join(step["run"]) for step in setup]
    _add_stamp(project.repo / "steersman.toml")
    project.trust_settings()
    _prepare_outside(outside, setup, checks[0])
    figures: dict[str, list[float]] = {"inside": [], "outside": [], "base": []}
    runs = []
    for number in range(times + 1):
        change = make_change(project.repo, checks, mark=number)
        if number:
            figures["outside"].append(_time_outside(outside, checks[0], change))
        runs.append(_run_once(project, crew, change, checks[0]))
        if number:
            figures["inside"].append(runs[-1]["change_seconds"])
            figures["base"].append(runs[-1]["base_seconds"])
    _compare(row, runs, figures)


def _compare(row: dict[str, Any], runs: list[dict[str, Any]], figures: dict[str, list[float]]) -> None:
    middle = {name: round(statistics.median(values), 2) for name, values in figures.items()}
    stamps = {value for run in runs for value in run["stamps"]}
    row |= {
        "first_run_seconds": runs[0]["change_seconds"],
        "seconds": figures,
        "inside": middle["inside"],
        "outside": middle["outside"],
        "ratio": round(middle["inside"] / middle["outside"], 2),
        "setup_reused": len(stamps) == 1 and all(run["stamps"] for run in runs),
        "setup_times_seen": [run["stamps"] for run in runs],
        "setup_steps_on_tape": [run["steps"] for run in runs],
        "extra_check_runs": max(run["extra"] for run in runs),
    }


def _add_stamp(path: Path) -> None:
    """One more setup step and one more check, for the observation alone."""
    text = path.read_text()
    config = tomllib.loads(text)
    step = json.dumps(["sh", "-c", f"mkdir -p .cache && date +%s%N > {STAMP_FILE}"])
    check = f'{STAMP_CHECK} = {{ run = ["cat", "{STAMP_FILE}"], exit_code_is_enough = true }}'
    lines = []
    for line in text.splitlines():
        first = line.startswith("setup = [") and config.get("worktree", {}).get("setup")
        lines.append(line.replace("[", f"[{step}, ", 1) if first else line)
        if line.split("#")[0].strip() == "[checks]":
            lines.append(check)
    if not config.get("worktree", {}).get("setup"):
        place = next((n for n, line in enumerate(lines) if line.strip() == "[worktree]"), None)
        if place is None:
            lines += ["[worktree]", f"setup = [{step}]"]
        else:
            lines.insert(place + 1, f"setup = [{step}]")
    changed = tomllib.loads("\n".join(lines))
    if len(changed["worktree"]["setup"]) != len(config.get("worktree", {}).get("setup", [])) + 1:
        raise StopMeasureError("the setup step that tells the time could not be added")
    path.write_text("\n".join(lines) + "\n")


def _prepare_outside(outside: TrialProject, setup: list[dict[str, Any]], check: Check) -> None:
    """The same setup, and the check twice, so that its caches are warm."""
    commands = [(step["run"], step.get("cwd") or "") for step in setup] + [(list(check.argv), check.cwd)] * 2
    for argv, cwd in commands:
        done = subprocess.run(argv, cwd=outside.repo / cwd, env=outside.env, capture_output=True, check=False)
        if done.returncode:
            raise StopMeasureError(
                f"outside: {' '.join(argv)} ends with {done.returncode}: {done.stderr[-200:]!r}"
            )


def _time_outside(outside: TrialProject, check: Check, change: Change) -> float:
    """Writes the product files of the change, times the check, and puts the base back."""
    for path, text in change.product.items():
        (outside.repo / path).parent.mkdir(parents=True, exist_ok=True)
        (outside.repo / path).write_text(text)
    began = time.monotonic()
    argv = list(check.argv)
    done = subprocess.run(
        argv, cwd=outside.repo / check.cwd, env=outside.env, capture_output=True, check=False
    )
    took = time.monotonic() - began
    for path in change.product:
        if outside.git("ls-files", path):
            outside.git("checkout", "--", path)
        else:
            (outside.repo / path).unlink()
    subprocess.run(argv, cwd=outside.repo / check.cwd, env=outside.env, capture_output=True, check=False)
    if done.returncode:
        raise StopMeasureError(f"outside: {' '.join(argv)} ends with {done.returncode} on the change")
    return round(took, 3)


def _run_once(project: TrialProject, crew: Path, change: Change, check: Check) -> dict[str, Any]:
    """One run whose coder writes product files only; what its tape says about checks and setup."""
    edits = [{"write": path, "text": text} for path, text in change.product.items()]
    plan = {"test_plan": "run the check", "commands": [list(check.argv)], "expected_results": ["it passes"]}
    steps = {
        "version": "1",
        "coder": [{"mode": "implementation", "say": "done", "edit": edits}],
        "reviewer": [{"mode": "implementation", "reply": APPROVED}],
        "tester": [{"mode": "implementation", "reply": plan}],
    }
    crew.write_text(json.dumps(steps))
    said = project.type_command("run", "Limit a number to a range", "--mode", "implementation", "--json")
    answer = said.answer
    if said.code != 0 or answer.get("outcome") != "approved":
        gates = [gate.get("job") for gate in answer.get("gates", [])]
        raise StopMeasureError(
            f"run: {answer.get('outcome') or answer.get('state')} {gates or ''} {said.reason}"[:500]
        )
    return _read_run(project, answer["run"], check.name)


def _read_run(project: TrialProject, run: str, name: str) -> dict[str, Any]:
    """Every execution of a check, from the exported tape: its tree, its seconds, what the stamp check printed."""
    lines = project.type_command("audit", "export", run, "--payloads", counted=False).stdout.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    texts = {row["payload"]: row["text"] for row in rows if "payload" in row}
    entries = [row["entry"] for row in rows if "entry" in row]
    executions = []
    for entry in entries:
        data = entry.get("data") or {}
        if entry["kind"] == "part_finished" and data.get("ref") in texts:
            executions.append((data["tree"], json.loads(texts[data["ref"]])))
    base = entries[0]["context"]["base_tree"]
    of_change = [record for tree, record in executions if tree != base and record["name"] == name]
    of_base = [record for tree, record in executions if tree == base and record["name"] == name]
    if not of_change:
        raise StopMeasureError(f"run: no execution of {name} on the change is on the tape")
    stamps = [record["output"].strip() for _, record in executions if record["name"] == STAMP_CHECK]
    return {
        "change_seconds": round(of_change[0]["micros"] / 1e6, 3),
        "base_seconds": round(of_base[0]["micros"] / 1e6, 3) if of_base else 0.0,
        "extra": len(of_change) - 1 + max(0, len(of_base) - 1),
        "stamps": stamps,
        "steps": sum((entry.get("data") or {}).get("steps", 0) for entry in entries),
    }


def render_lines(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| repository | check | outside s | second run s | ratio | setup reused | extra runs | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        names = ("check", "outside", "inside", "ratio", "setup_reused", "extra_check_runs")
        cells = [
            row["repository"],
            *(str(row.get(name, "")) for name in names),
            "holds" if row["ok"] else row.get("why", "FAILS"),
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--times", type=int, default=3, help="pairs that are measured, after a first run")
    parser.add_argument("--minutes", type=float, default=30, help="for each repository")
    parser.add_argument("--write", action="store_true", help="keep the figures in proofs/")
    parser.add_argument("--python", default=sys.executable, help="the interpreter whose steersman is tried")
    asked = parser.parse_args()
    end_cleanly_on_sigterm()
    rows = [measure_repository(source, asked) for source in list_repositories(asked.folder, asked.only)]
    programs = {row.get("program") for row in rows if row["ok"]}
    figures = {
        **stamp(False, "none"),
        "load": [round(number, 1) for number in os.getloadavg()],
        "most_ratio": MOST_RATIO,
        "ok": all(row["ok"] for row in rows) and programs.issuperset(MEASURED),
        "rows": rows,
    }
    print(render_lines(rows))
    if asked.write:
        (HERE / "caches.json").write_text(json.dumps(figures, indent=2) + "\n")
    else:
        print(json.dumps(rows, indent=1))
    return 0 if figures["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
