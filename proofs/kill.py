"""The installed command killed with -9 in the middle of its effects: real git, agents that are processes of their own.

    python proofs/kill.py [--quick]

Each time what is left running is an orphan; `steersman resume` stops it, begins the effect anew from the recorded tree
and goes on. The run ends as an undisturbed one does, and nothing that it started is alive afterwards.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from figures import main, stamp
from interrupted_run import proof_folder

from steersman.adapters.process import program_runner
from steersman.adapters.storage.sqlite.reader import SqliteJournalReader
from steersman.kernel.replay import BadEntry, decision_hash, verify_chain
from steersman.kernel.tape import Entry

SEED = 20260103
SHIPS, KILLS = 6, 5  # so many runs, each killed so often
COMMAND = shutil.which("steersman", path=str(Path(sys.executable).parent)) or "steersman"
TOML = """version = 1
[checks]
unit = ["python3", "-m", "unittest", "-q"]
[rules]
red_base = "fix"
[roles.coder]
agent = "scripted"
script = "crew.yaml"
[roles.reviewer]
agent = "scripted"
script = "crew.yaml"
[roles.tester]
agent = "scripted"
script = "crew.yaml"
"""
CREW = """version: 1
coder:
  - {mode: proposal, say: I turn the minus into a plus., process: yes, sleep: 0.4}
  - mode: implementation
    round: 1
    edit: [{write: calc.py, text: "def add(a, b):\\n    return a+b\\n"}]
    say: done
    process: yes
    sleep: 0.4
  - mode: implementation
    edit: [{write: calc.py, text: "def add(a, b):\\n    return a + b\\n"}]
    say: done
    process: yes
    sleep: 0.4
reviewer:
  - {mode: proposal, say: Good., process: yes, sleep: 0.4}
  - mode: implementation
    round: 1
    reply: {decision: changes_requested, summary: one thing is left, must_fix: [put spaces around the plus], nice_to_have: [], tests: [], security: []}
    process: yes
    sleep: 0.4
  - mode: implementation
    reply: {decision: approve, summary: read, must_fix: [], nice_to_have: [], tests: [], security: []}
    process: yes
    sleep: 0.4
tester:
  - {mode: proposal, say: The unit tests will do., process: yes, sleep: 0.4}
  - mode: implementation
    reply: {test_plan: run them, commands: [[python3, -m, unittest, -v]], expected_results: [ok]}
    process: yes
    sleep: 0.4
"""
TEST = """import time
import unittest

from calc import add


class Sum(unittest.TestCase):
    def test_sum(self):
        time.sleep(0.3)
        self.assertEqual(add(2, 3), 5)
"""


class KilledProject:
    """One project of its own, with its own state directory, steered by the installed command alone."""

    toml, crew = TOML, CREW

    def __init__(self, folder: Path) -> None:
        self.repo, self._state = folder / "project", folder / "state"
        self.repo.mkdir(parents=True)
        files = {
            "calc.py": "def add(a, b):\n    return a - b\n",
            "test_calc.py": TEST,
            "steersman.toml": self.toml,
            "crew.yaml": self.crew,
        }
        for name, text in files.items():
            (self.repo / name).write_text(text)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("STEERSMAN_")}
        said = (("NAME", "ann"), ("EMAIL", "ann@example.org"), ("DATE", "2026-01-01T00:00:00Z"))
        who = {f"GIT_{r}_{k}": v for r in ("AUTHOR", "COMMITTER") for k, v in said}
        self._env = {**kept, **who, "XDG_STATE_HOME": str(self._state), "GIT_CONFIG_GLOBAL": os.devnull}
        for argv in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "base"]):
            subprocess.run(["git", *argv], cwd=self.repo, env=self._env, check=True)
        shown = subprocess.run(
            [COMMAND, "trust", "--json"], cwd=self.repo, env=self._env, capture_output=True, check=False
        )
        trust = [COMMAND, "trust", "--digest", json.loads(shown.stdout)["digest"]]
        subprocess.run(trust, cwd=self.repo, env=self._env, check=True, capture_output=True)

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """The command, under way."""
        return subprocess.Popen(
            [COMMAND, *words, "--json"],
            cwd=self.repo,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def say(self, *words: str) -> int:
        """The command to its end: its exit code."""
        return self.start(*words).wait(120)

    def run(self) -> str:
        """The one run there is, or nothing yet."""
        (store,) = self._state.glob("steersman/*/store.db") if self._state.exists() else (None,)
        if store is None:
            return ""
        reader = SqliteJournalReader(store)
        heads = reader.heads()
        reader.close()
        return heads[0].run if heads else ""

    def gate(self) -> str:
        """What the run asks now, or nothing."""
        (store,) = self._state.glob("steersman/*/store.db")
        reader = SqliteJournalReader(store)
        asked = [gate.job for gate in reader.gates(self.run()) if not gate.answer]
        reader.close()
        return asked[0] if asked else ""

    def entries(self) -> list[Entry]:
        (store,) = self._state.glob("steersman/*/store.db")
        reader = SqliteJournalReader(store)
        links = list(verify_chain(reader.rows(self.run()), self.run()))
        reader.close()
        assert not any(isinstance(link, BadEntry) for link in links), links[-1]
        return [entry for entry, _ in links]  # type: ignore[misc]  no Bad among them

    def outcome(self) -> str:
        (store,) = self._state.glob("steersman/*/store.db")
        reader = SqliteJournalReader(store)
        (head,) = reader.heads()
        reader.close()
        return f"{head.status}: {head.outcome}"


def in_an_effect(project: KilledProject, command: "subprocess.Popen[bytes]", known: list[int]) -> list[int]:
    """Waits until a new process of an effect is at work; which, or none when the command came to its end first."""
    deadline = time.monotonic() + 20.0
    while time.monotonic() < deadline and command.poll() is None:
        run = _quietly(project.run)
        found = set(program_runner.alive(f"{run}:")) - set(known) if run else set()
        if found:
            return sorted(found)
        time.sleep(0.02)
    return []


def _quietly(ask: Any) -> Any:
    """A store that is just being made cannot be read yet."""
    try:
        return ask()
    except Exception:  # the next look will tell
        return ""


def onward(project: KilledProject) -> tuple[str, ...]:
    """What a person would type next."""
    run = _quietly(project.run)
    if not run:
        return ("run", "Fix add")
    waits = project.outcome().startswith("waiting for you")
    return ("approve", run) if waits else ("resume", run)


def drive_with_kills(folder: Path, delays: list[float]) -> dict[str, Any]:
    """A whole run, killed so long after an effect has begun, each time; then let go to its end."""
    project, kills, orphans = KilledProject(folder), 0, []
    for delay in delays:
        command = project.start(*onward(project))
        found = in_an_effect(project, command, orphans)
        time.sleep(delay)
        if command.poll() is None:
            os.kill(command.pid, signal.SIGKILL)
            kills += bool(found)
            orphans += found
        command.wait()
    codes = []
    for _ in range(4):
        codes.append(project.say(*onward(project)))
        if codes[-1] != 3:
            break
    entries = project.entries()
    run = entries[0].run
    time.sleep(0.1)
    return {
        "kills": kills,
        "orphans": len(orphans),
        "outcome": project.outcome(),
        "decisions": decision_hash(entries),
        "transitions": sum(e.kind == "transition" for e in entries),
        "again": sum(e.kind == "effect_started" for e in entries),
        "alive": program_runner.alive(f"{run}:"),
        "verified": project.say("audit", "verify", run) == 0,
        "branch": _tree(project, f"steersman/{run}"),
        "codes": codes,
    }


def _tree(project: KilledProject, ref: str) -> str:
    argv = ["git", "rev-parse", f"{ref}^{{tree}}"]
    return subprocess.run(argv, cwd=project.repo, capture_output=True, text=True, check=False).stdout.strip()


def faults(told: dict[str, Any], reference: dict[str, Any]) -> list[str]:
    """What is wrong with a killed run, held against an undisturbed one."""
    wrong = [
        f"{k}: {told[k]}"
        for k in ("outcome", "decisions", "transitions", "branch")
        if told[k] != reference[k]
    ]
    wrong += [f"still alive: {told['alive']}"] * bool(told["alive"])
    wrong += ["the audit found something"] * (not told["verified"])
    wrong += ["an effect that ran twice is not marked"] * (told["kills"] > told["again"])
    return wrong


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when every killed run ended as the undisturbed one."""
    dice = random.Random(SEED)  # noqa: S311  a seed on purpose
    ships, kills, orphans, wrong = (1, 0, 0, []) if quick else (SHIPS, 0, 0, [])
    with proof_folder("kill") as parent_folder:
        reference = drive_with_kills(parent_folder / "whole", [])
        wrong += faults(reference, reference)
        wrong += [f"the undisturbed run ended {reference['outcome']}"] * (
            reference["outcome"] != "done: approved"
        )
        for n in range(ships):
            delays = [dice.uniform(0.0, 0.25) for _ in range(2 if quick else KILLS)]
            told = drive_with_kills(parent_folder / str(n), delays)
            kills, orphans = kills + told["kills"], orphans + told["orphans"]
            wrong += [f"run {n}: {fault}" for fault in faults(told, reference)]
    return {
        "ok": not wrong and kills >= (1 if quick else 20),
        **stamp(quick, SEED),
        "command": Path(COMMAND).name,
        "runs": ships,
        "kills": kills,
        "orphans_left_by_kills": orphans,
        "transitions": reference["transitions"],
        "decisions": reference["decisions"],
        "faults": wrong,
        "not_tried": ["agents of a real provider", "a machine that loses power"],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    figures = f"{result['runs']} runs, {result['kills']} kills, {result['orphans_left_by_kills']} orphans, {len(result['faults'])} faults"
    return [f"   the installed command: {figures}", *(f"   FAULT {fault}" for fault in result["faults"][:10])]


if __name__ == "__main__":
    sys.exit(main(__name__))
