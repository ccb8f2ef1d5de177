"""A copy of one repository with a user's home of its own, and the steersman command as that user types it.

**Invariant:** everything lies below one directory that is removed at the end; every process that a command leaves behind is
found by that directory in its environment and ended.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REAL_HOME = Path.home()
LOOK_SECONDS = 60  # for a command that only looks; the project's time may be over by then
# What a shell of a user has besides PATH and HOME: certificates, proxies, toolchains.
INHERITED = (
    "LANG",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "RUSTUP_TOOLCHAIN",
    "GOROOT",
    "JAVA_HOME",
)


@dataclass
class Typed:
    """One command that the user typed, and what came of it."""

    words: tuple[str, ...]
    code: int | None  # None: it was stopped because the time was over
    stdout: str
    stderr: str
    seconds: float

    @property
    def answer(self) -> dict[str, Any]:
        """The JSON answer; empty where there is none."""
        for line in reversed(self.stdout.strip().splitlines()):
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                return value if isinstance(value, dict) else {}
        return {}

    @property
    def reason(self) -> str:
        """Why it did not work, in one line."""
        if self.code is None:
            return f"stopped after {self.seconds:.0f} s"
        words = self.answer.get("error") or self.answer.get("cause") or self.stderr or self.stdout
        return " ".join(str(words).split())[:400] or f"exit {self.code}"


@dataclass
class TrialProject:
    """The copy, its home and state, the commands typed so far."""

    root: Path
    source: Path
    until: float
    python: str = sys.executable  # whose steersman is tried
    extra: dict[str, str] = field(default_factory=dict)
    typed: list[Typed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.repo, self.home, self.programs = (self.root / name for name in ("repo", "home", "bin"))
        for folder in (self.home, self.programs, self.root / "state"):
            folder.mkdir(parents=True)
        self._lend_toolchains()
        shutil.copytree(self.source, self.repo, symlinks=True)
        for name, value in (
            ("user.name", "Ann"),
            ("user.email", "ann@example.org"),
            ("commit.gpgSign", "false"),
        ):
            self.git("config", name, value)
        self.base = self.git("rev-parse", "HEAD")

    @property
    def env(self) -> dict[str, str]:
        """What the user's shell has."""
        found = {name: os.environ[name] for name in INHERITED if os.environ.get(name)}
        own = {"HOME": str(self.home), "XDG_STATE_HOME": str(self.root / "state"), "STEERSMAN_PERSON": "Ann"}
        entries = [self._at_home(entry) for entry in os.environ["PATH"].split(os.pathsep)]
        return {**found, **own, "PATH": os.pathsep.join((str(self.programs), *entries)), **self.extra}

    def _at_home(self, entry: str) -> str:
        """A directory of PATH; one below the real home is in the copy's home, where `_lend_toolchains` has put it."""
        lent = (
            self.home / Path(entry).relative_to(REAL_HOME)
            if Path(entry).is_relative_to(REAL_HOME)
            else Path(entry)
        )
        return str(lent) if lent.is_dir() else entry

    def _lend_toolchains(self) -> None:
        """Toolchains that live in a home directory are in this one too; caches, settings and logins are not."""
        for name in (".pyenv", ".rustup", ".volta", ".nvm"):
            if (REAL_HOME / name).is_dir():
                (self.home / name).symlink_to(REAL_HOME / name)
        if (REAL_HOME / ".cargo" / "bin").is_dir():
            shutil.copytree(REAL_HOME / ".cargo" / "bin", self.home / ".cargo" / "bin", symlinks=True)

    def git(self, *words: str) -> str:
        """Runs git in the copy."""
        done = subprocess.run(("git", *words), cwd=self.repo, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def trust_settings(self, limits: str = "") -> None:
        """Trusts settings that the trial has edited, and writes the user's own limits."""
        own = self.home / ".config" / "steersman" / "config.toml"
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(limits)
        digest = self.type_command("trust", "--json", counted=False).answer["digest"]
        self.type_command("trust", "--digest", digest, counted=False)

    def type_command(self, *words: str, counted: bool = True) -> Typed:
        """Runs one steersman command to its end, or to the end of the project's time."""
        argv = (self.python, "-P", "-m", "steersman", *words)
        began = time.monotonic()
        process = subprocess.Popen(
            argv,
            cwd=self.repo,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        code: int | None
        try:
            stdout, stderr = process.communicate(
                timeout=max(1.0, self.until - began) if counted else LOOK_SECONDS
            )
            code = process.returncode
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                stdout, stderr = process.communicate(timeout=15)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                self.end_processes()
                stdout, stderr = process.communicate()
            code = None
        result = Typed(words, code, stdout, stderr, round(time.monotonic() - began, 1))
        if counted:
            self.typed.append(result)
        return result

    def entries(self, run: str) -> list[dict[str, Any]]:
        """The tape of a run."""
        said = self.type_command("audit", "tape", run, "--json", counted=False).stdout
        return [json.loads(line) for line in said.splitlines() if line.startswith("{")]

    def end_processes(self) -> list[int]:
        """Ends what the commands have left behind; returns whom."""
        left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._started(pid)]
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return left

    def _started(self, pid: int) -> bool:
        """Whether a process has the copy's home in its environment and is not this one."""
        try:
            return (
                pid != os.getpid()
                and f"HOME={self.home}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
            )
        except OSError:
            return False

    def close(self) -> list[int]:
        """Ends processes and removes the directory (module caches of Go are read-only); returns who was still alive."""
        left = self.end_processes()
        for folder, _, _ in os.walk(self.root):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(self.root, ignore_errors=True)
        return left


def list_repositories(folder: Path, only: list[str]) -> list[Path]:
    """The checked-out repositories in a folder; those asked for, or all."""
    found = sorted(path for path in folder.iterdir() if (path / ".git").is_dir())
    chosen = [path for path in found if not only or path.name in only]
    if not chosen:
        sys.exit(f"no repository in {folder}" + (f" is called {' or '.join(only)}" if only else ""))
    return chosen


def end_cleanly_on_sigterm() -> None:
    """Lets SIGTERM end this script as an exception does: what it started is ended, what it made is removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
