"""A throw-away project and the installed command, for whole stories: real git, real checks, a scripted crew.

A story is plain data, so that two of them can be compared field by field.
"""

import json
import os
import shutil
import subprocess
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

from launch import PYTHON, STAYS, Launch, Order, started

STEERSMAN = (PYTHON, "-m", "steersman")
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
TESTS = """import unittest

from calc import add


class Add(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""
UNIT = ["python3", "-m", "unittest", "-q"]
APPROVE = {
    "decision": "approve",
    "summary": "read",
    "must_fix": [],
    "nice_to_have": [],
    "tests": [],
    "security": [],
}
CHANGES = {**APPROVE, "decision": "changes_requested", "must_fix": ["say why"]}
NAMES = {"test_plan": "run it", "commands": [UNIT], "expected_results": ["ok"]}


def crew(**instead: Any) -> dict[str, Any]:
    """A crew that fixes the bug in one round; `coder=[…]` and so on put other steps in place."""
    steps = {
        "coder": [
            {"mode": "proposal", "say": "I will add."},
            {"mode": "implementation", "say": "done", "edit": [{"write": "calc.py", "text": RIGHT}]},
        ],
        "reviewer": [{"mode": "proposal", "say": "Fine."}, {"mode": "implementation", "reply": APPROVE}],
        "tester": [{"mode": "proposal", "say": "Run it."}, {"mode": "implementation", "reply": NAMES}],
    }
    return {"version": "1", **steps, **instead}


def story(**instead: Any) -> dict[str, Any]:
    """The plain story: implementation at once, approved after one round."""
    return {
        "mode": "implementation",
        "max_iterations": 2,
        "deliver": "branch",
        "checks": {"unit": UNIT},
        "setup": [],
        "retries": 0,
        "rules": {},
        "budget": {},
        "unattended": {},
        "crew": crew(),
        "then": [],
        **instead,
    }


def changed(of: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    """The same story with one field changed; the last name of the path may be new."""
    new = deepcopy(of)
    at: Any = new
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = to
    return new


class Project:
    """One repository with its own state directory."""

    launch: Launch = staticmethod(started)  # the suite puts its slipway in place

    def __init__(self, place: Path, template: Path) -> None:
        self.place, self.repo = place, place / "repo"
        shutil.copytree(template, self.repo)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "XDG_STATE_HOME": str(place / "state"),
            "STEERSMAN_PERSON": "ann",
            **STAYS,
        }

    # ── what is there ───────────────────────────────────────────────────────────────────────────────────────────────

    def prepare(self, told: dict[str, Any]) -> None:
        """Writes steersman.toml and the crew's script, and commits them."""
        (self.repo / "steersman.toml").write_text(config(told), encoding="utf-8")
        (self.repo / "crew.yaml").write_text(json.dumps(told["crew"]), encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-qm", "crew")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.repo, env=self.env, capture_output=True, check=True, timeout=60
        )
        return done.stdout.decode()

    @property
    def state(self) -> Path:
        """The project's state directory."""
        (found,) = (self.place / "state" / "steersman").iterdir()
        return found

    # ── the command ─────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, *words: str, timeout: float = 180, fresh: bool = False, **env: str) -> "Said":
        """Runs one command to its end; `fresh`: the start itself is part of the story."""
        order = Order(words, self.repo, {**self.env, **env}, timeout=timeout)
        done = (started if fresh else self.launch)(order)
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *words: str, **env: str) -> subprocess.Popen[bytes]:
        """Starts one command that the test will meet again."""
        return subprocess.Popen(
            [*STEERSMAN, *words],
            cwd=self.repo,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, told: dict[str, Any], *more: str) -> "Said":
        """Plays a story's run: its task, its options."""
        self.prepare(told)
        words = ("run", "Fix add", "--mode", told["mode"], "--max-iterations", str(told["max_iterations"]))
        return self.call(*words, "--json", *more)

    def read_log(self, log: str, last: str, seconds: float = 60) -> str:
        """The log of a driver in the background, once `last` is in it: a run parks before its driver says so."""
        end = time.monotonic() + seconds
        while last not in (text := Path(log).read_text(encoding="utf-8")):
            assert time.monotonic() < end, f"{last!r} never came: {text}"
            time.sleep(0.05)
        return text

    def only(self) -> str:
        """The id of the only run."""
        (run,) = self.call("runs", "--json").json()
        found: str = run["run"]
        return found

    def entries(self, run: str) -> list[dict[str, Any]]:
        """The tape of a run."""
        return [json.loads(line) for line in self.call("audit", "tape", run, "--json").out.splitlines()]

    def rows(self, run: str) -> list[tuple[str | None, str, str]]:
        """The rows that a run has taken."""
        kinds = ("created", "transition")
        return [(e.get("from"), e.get("event", ""), e["to"]) for e in self.entries(run) if e["kind"] in kinds]


class Said:
    """What a command said."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        assert "Traceback" not in err, err

    def json(self) -> Any:
        return json.loads(self.out.splitlines()[-1])

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


def config(told: dict[str, Any]) -> str:
    """A story's steersman.toml."""
    lines = [
        "version = 1",
        f'deliver = "{told["deliver"]}"',
        "[worktree]",
        f"setup = {json.dumps(told['setup'])}",
    ]
    lines += ["[checks]", *(f"{name} = {json.dumps(argv)}" for name, argv in told["checks"].items())]
    for role in ("coder", "reviewer", "tester"):
        lines += [
            f"[roles.{role}]",
            'agent = "scripted"',
            'script = "crew.yaml"',
            f"retries = {told['retries']}",
        ]
    told = {**told, "rules": {"red_base": "fix", **told["rules"]}}  # the project's test fails at first
    for table in ("rules", "budget", "unattended"):
        lines += [f"[{table}]", *(f"{k} = {json.dumps(v)}" for k, v in told[table].items())]
    return "\n".join(lines) + "\n"
