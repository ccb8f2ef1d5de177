"""A throw-away project and the installed command, for whole stories: real git, real checks, a scripted crew.

A story is plain data, so that two of them can be compared field by field.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from steersman import wiring
from steersman.adapters.config import state_paths
from steersman.adapters.config.trust_file import TRUST_FILE_NAME, TrustFile
from steersman.contracts.limits import TrustedSettings
from steersman.errors import SteersmanError
from tests.support.command_launcher import (
    FIXED_ENVIRONMENT,
    PYTHON,
    CommandCall,
    RunCommand,
    run_fresh_command,
)

STEERSMAN_COMMAND = (PYTHON, "-m", "steersman")
WRONG_CODE = "def add(a, b):\n    return a - b\n"
RIGHT_CODE = "def add(a, b):\n    return a + b\n"
UNIT_TESTS = """import unittest

from calc import add


class Add(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""
COMMIT_TIME = "2026-01-01T12:00:00Z"  # when people commit: the same story has the same commits
UNIT_CHECK = ["python3", "-m", "unittest", "-q"]
# Without the plugins of our own environment, which take three times as long to import as pytest itself.
_PLUGINS = ("cacheprovider", "hypothesispytest", "timeout", "xdist", "xdist.looponfail")
PYTEST_CHECK = [
    "python3",
    "-m",
    "pytest",
    "-q",
    *(word for name in _PLUGINS for word in ("-p", f"no:{name}")),
]
APPROVAL = {
    "decision": "approve", "summary": "read", "must_fix": [], "nice_to_have": [], "tests": [], "security": [],
}  # fmt: skip
CHANGE_REQUEST = {**APPROVAL, "decision": "changes_requested", "must_fix": ["say why"]}
TESTER_REPLY = {"test_plan": "run it", "commands": [UNIT_CHECK], "expected_results": ["ok"]}


def roundtable_crew(**instead: Any) -> dict[str, Any]:
    """A crew that fixes the bug in one round; `coder=[…]` and so on put other steps in place."""
    steps = {
        "coder": [
            {"mode": "proposal", "say": "I will add."},
            {"mode": "implementation", "say": "done", "edit": [{"write": "calc.py", "text": RIGHT_CODE}]},
        ],
        "reviewer": [{"mode": "proposal", "say": "Fine."}, {"mode": "implementation", "reply": APPROVAL}],
        "tester": [{"mode": "proposal", "say": "Run it."}, {"mode": "implementation", "reply": TESTER_REPLY}],
    }
    return {"version": "1", **steps, **instead}


def roundtable_story(**instead: Any) -> dict[str, Any]:
    """The plain story: implementation at once, approved after one round."""
    return {
        "mode": "implementation", "max_iterations": 2, "deliver": "branch", "checks": {"unit": UNIT_CHECK},
        "setup": [], "retries": 0, "rules": {}, "budget": {}, "unattended": {}, "crew": roundtable_crew(),
        "then": [], **instead,
    }  # fmt: skip


def change_story(of: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    """The same story with one field changed; the last name of the path may be new."""
    new = deepcopy(of)
    at: Any = new
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = to
    return new


class Project:
    """One repository with its own state directory."""

    launcher: RunCommand = staticmethod(run_fresh_command)  # the suite puts its fork server in place
    trusted = True  # a person trusts whatever the story writes
    _seen: dict[Path, bytes] | None = None  # what was there when it was trusted

    def __init__(self, place: Path, template: Path) -> None:
        self.place, self.repo = place, place / "repo"
        shutil.copytree(template, self.repo)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(place), "XDG_STATE_HOME": str(place / "state"),
            "STEERSMAN_PERSON": "ann", **FIXED_ENVIRONMENT,
        }  # fmt: skip

    def trust(self, env: Mapping[str, str] | None = None) -> None:
        """Trusts the settings as they are, the way `steersman trust` records it; broken ones stay what they are."""
        state = Path(state_paths.state_directory_path(self.repo.resolve(), env or self.env))
        if not self.trusted or self._seen == self._settings(state):
            return
        trust = TrustFile(state)
        for folder in (self.repo, *(path.parent for path in self.repo.glob("*/steersman.toml"))):
            with suppress(SteersmanError, OSError):
                loaded = wiring.read_written_config(folder)
                name = str(loaded.path.relative_to(self.repo.resolve())) if loaded.path else ""
                known = trust.read(name)
                if loaded.powerful and (known is None or known.lines != loaded.powerful):
                    trust.record(name, TrustedSettings(loaded.powerful, "ann", 0))
        self._seen = self._settings(state)

    def _settings(self, state: Path) -> dict[Path, bytes]:
        """All that trust depends on: settings, what lies beside them, the commits of branches, and the record itself."""
        git, beside = self.repo / ".git", self.repo / ".steersman"
        state_paths = [
            self.repo.glob("steersman.toml"),
            self.repo.glob("*/steersman.toml"),
            git.glob("refs/heads/**/*"),
        ]
        state_paths += [folder.rglob("*") for folder in beside.glob("*") if folder.name != "runs"]
        files = [path for found in state_paths for path in found]
        files += [
            git / "HEAD", git / "packed-refs", self.place / ".config/steersman/config.toml",
            state / TRUST_FILE_NAME,
        ]  # fmt: skip
        return {path: path.read_bytes() for path in files if path.is_file()}

    def allow(self, text: str) -> None:
        """Writes the person's own settings, which limit what any repository may ask for."""
        own = self.place / ".config" / "steersman" / "config.toml"
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(text, encoding="utf-8")

    # ── what is there ───────────────────────────────────────────────────────────────────────────────────────────────

    def prepare(self, told: dict[str, Any]) -> None:
        """Writes steersman.toml and commits it; the crew's script is beside the repository, so that it can change."""
        (self.repo / "steersman.toml").write_text(render_config(told), encoding="utf-8")
        (self.place / "crew.yaml").write_text(json.dumps(told["crew"]), encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "crew")
        self.trust()

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false")
        env = {**self.env, "GIT_AUTHOR_DATE": COMMIT_TIME, "GIT_COMMITTER_DATE": COMMIT_TIME}
        done = subprocess.run(
            ["git", *who, *words], cwd=self.repo, env=env, capture_output=True, check=True, timeout=60
        )
        return done.stdout.decode()

    @property
    def state(self) -> Path:
        """The project's state directory."""
        (found,) = (self.place / "state" / "steersman").iterdir()
        return found

    # ── the command ─────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, *words: str, timeout: float = 180, fresh: bool = False, **env: str) -> "CommandResult":
        """Runs one command to its end; `fresh`: the start itself is part of the story."""
        order = CommandCall(words, self.repo, {**self.env, **env}, timeout=timeout)
        done = self.launch(order, fresh=fresh)
        return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())

    def launch(self, order: CommandCall, *, fresh: bool = False) -> subprocess.CompletedProcess[bytes]:
        """Runs one command to its end, in a project whose settings a person trusts."""
        self.trust(order.env)
        return (run_fresh_command if fresh else self.launcher)(order)

    def accept_evidence(self, run: str, **env: str) -> "CommandResult":
        """Looks at the gate and accepts its evidence by the beginning of the digest that it shows."""
        (gate,) = self.call("gates", run, "--json").json()
        return self.call("accept-evidence", run, gate["digest"][:8], **env)

    def start(self, *words: str, **env: str) -> subprocess.Popen[bytes]:
        """Starts one command that the test will meet again."""
        self.trust({**self.env, **env})
        return subprocess.Popen(
            [*STEERSMAN_COMMAND, *words], cwd=self.repo, env={**self.env, **env}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, told: dict[str, Any], *more: str) -> "CommandResult":
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

    def only_run(self) -> str:
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


class CommandResult:
    """What a command said."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        assert "Traceback" not in err, err

    def json(self) -> Any:
        return json.loads(self.out.splitlines()[-1])

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


def render_config(told: dict[str, Any]) -> str:
    """A story's steersman.toml."""
    lines = [
        "version = 1", f'deliver = "{told["deliver"]}"', "[worktree]", f"setup = {json.dumps(told['setup'])}",
    ]  # fmt: skip
    lines += ["[checks]", *(f"{name} = {json.dumps(argv)}" for name, argv in told["checks"].items())]
    for role in ("coder", "reviewer", "tester"):
        lines += [
            f"[roles.{role}]", 'agent = "scripted"', 'script = "../crew.yaml"',
            f"retries = {told['retries']}",
        ]  # fmt: skip
    told = {**told, "rules": {"red_base": "fix", **told["rules"]}}  # the project's test fails at first
    for table in ("rules", "budget", "unattended"):
        lines += [f"[{table}]", *(f"{k} = {json.dumps(v)}" for k, v in told[table].items())]
    return "\n".join(lines) + "\n"
