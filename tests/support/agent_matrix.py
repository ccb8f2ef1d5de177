"""The matrix CLI × case: each case is one call of a real CLI through its adapter, against the scripted model.

A row says which class came out, how long it took, what was left alive and what was changed outside the working tree.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from steersman import wiring
from steersman.adapters.config.trust_file import TrustFile
from steersman.adapters.sandbox.bubblewrap import probe_sandbox
from steersman.contracts.agent import AgentReply, AgentRequest
from steersman.contracts.limits import TrustedSettings
from steersman.judges.replies.agent_reply import SHARED_REPLY_CONTRACTS, ParsedReply, parse_reply
from tests.support.model_server import MODEL_SERVER_KEY, ModelServer, unused_address
from tests.support.model_server.cases import CASE_CONTENT, CASE_FILE, CASE_SCRIPTS, CASE_TEXT, SLEEP_COMMAND

CALL_NONCE = "n0nce-of-this-call"
CALL_PROMPT = f"Do what the script says. Answer with exactly one JSON object, nonce {CALL_NONCE}: now."
ROWS_FOLDER = Path(os.environ.get("STEERSMAN_AGENT_ROWS", ".cache/agents/rows"))
KEY_NAME = "SCRIPTED_MODEL_KEY"  # the variable with the key of a gateway of one's own
CLEAN_WITHIN = 5.0  # seconds after the end of a call in which everything it started has to be gone


class AgentCli(Protocol):
    """How the tests reach one CLI."""

    name: str
    version: str

    def environment(self, url: str, key: str | None) -> dict[str, str]:
        """What the user's environment holds."""
        ...

    def options(self, url: str) -> dict[str, Any]:
        """The role's table."""
        ...

    def agent(self, place: Path, sandbox: Any, options: dict[str, Any]) -> Any:
        """The adapter."""
        ...


@dataclass(frozen=True)
class AgentCase:
    """One thing that can happen to a call, and the class it has to get."""

    name: str
    expect: str
    permissions: str = "read"
    writes: bool = False
    contract: str | None = None
    key: str | None = MODEL_SERVER_KEY
    refused: bool = False
    seconds: int = 60
    start: int = 40
    idle: int = 12
    also: Callable[["Rig", AgentReply], None] = field(default=lambda rig, reply: None)  # noqa: ARG005  called with both


def _edited(rig: "Rig", reply: AgentReply) -> None:
    assert reply.text.strip() == CASE_TEXT
    assert (rig.work / CASE_FILE).read_text() == CASE_CONTENT


def _said(rig: "Rig", reply: AgentReply) -> None:
    assert reply.text.strip() == CASE_TEXT
    assert (reply.usage.tokens or 0) > 0


# The clock of a case is `seconds`: what it may take at most, the end of everything included.
AGENT_CASES = {
    case.name: case
    for case in (
        AgentCase("text", "ok", also=_said),
        AgentCase("edit", "ok", "shell", writes=True, also=_edited),
        AgentCase("schema", "ok", contract="reviewer"),
        AgentCase("schema not met", "reply_invalid", contract="reviewer"),
        AgentCase("schema ignored", "reply_invalid", contract="reviewer"),
        AgentCase("401", "provider_auth_error"),
        AgentCase("403", "provider_auth_error"),
        AgentCase("no key", "provider_auth_error", key=None),
        AgentCase("429", "provider_rate_limited"),
        AgentCase("500", "provider_network_error"),
        AgentCase("529", "provider_rate_limited"),
        AgentCase("refused", "provider_network_error", refused=True),
        AgentCase("never answers", "provider_timeout"),
        AgentCase("hangs midway", "provider_timeout"),
        AgentCase("dropped", "provider_network_error"),
        AgentCase("denied tool", "provider_permission_denied", "read", writes=True),
        AgentCase("bad model", "provider_invalid_request"),
        AgentCase("cancel", "cancelled", "shell", writes=True),
    )
}


@dataclass
class AgentRow:
    """What came out."""

    cli: str
    version: str
    case: str
    expected: str
    got: str
    seconds: float
    clock: float
    left_alive: int
    changed_outside: list[str]
    detail: str = ""

    def keep(self) -> None:
        ROWS_FOLDER.mkdir(parents=True, exist_ok=True)
        name = f"{self.cli}--{self.case}".replace(" ", "-")
        (ROWS_FOLDER / f"{name}.json").write_text(json.dumps(asdict(self), indent=1) + "\n")

    def check(self) -> None:
        """Every claim about a row."""
        assert self.got == self.expected, self.detail
        assert self.left_alive == 0
        assert self.changed_outside == []
        assert self.seconds <= self.clock


class Rig:
    """Directories of one case: the user's home, steersman's state, the working tree, and something outside."""

    def __init__(self, root: Path, monkeypatch: Any) -> None:
        self.root, self.monkeypatch = root, monkeypatch
        self.home, self.state, self.work = root / "home", root / "state", root / "work"
        self.place = self.state / "steersman" / "project" / "homes"
        for folder in (self.home, self.place, self.work, root / "outside"):
            folder.mkdir(parents=True)
        (self.work / "README.md").write_text("# a project\n")
        (root / "outside" / "precious.txt").write_text("keep me\n")
        (self.home / ".bashrc").write_text("export MINE=1\n")
        self._before = self.outside()

    def changed(self) -> list[str]:
        """What is not as it was, beside the working tree and what a home's making leaves (its lock)."""
        now = self.outside()
        return sorted(p for p in now.keys() | self._before.keys() if now.get(p) != self._before.get(p))

    def outside(self) -> dict[str, str]:
        found = {}
        for path in sorted(self.root.rglob("*")):
            inside = path.relative_to(self.root)
            if inside.parts[0] == "work" or path == self.place / ".lock":
                continue
            found[str(inside)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        return found

    def mark(self, name: str) -> str:
        """A command that leaves a mark wherever it may write."""
        return f"touch {self.root}/markers/{name} {self.work}/marker-{name}"

    def marks(self) -> set[str]:
        """The marks that were left."""
        outside = {p.name for p in (self.root / "markers").iterdir()}
        return outside | {p.name.removeprefix("marker-") for p in self.work.glob("marker-*")}

    def again(self) -> None:
        """What is there now is how it has to stay."""
        self._before = self.outside()

    def alive(self) -> list[int]:
        """Processes that this case has started: its directory is in their environment, command line or place."""
        return mentioning(str(self.root))

    def gone(self, within: float = CLEAN_WITHIN) -> list[int]:
        """Who is still alive after a while."""
        until = time.monotonic() + within
        while (left := self.alive()) and time.monotonic() < until:
            time.sleep(0.05)
        return left

    def running(self, command: str, within: float = 40.0) -> bool:
        """Whether a process of this case with these words shows up in time."""
        wanted = command.replace(" ", "\0").encode()
        until = time.monotonic() + within
        while time.monotonic() < until:
            if any(_cmdline(pid).startswith(wanted) for pid in self.alive()):
                return True
            time.sleep(0.05)
        return False

    def end(self) -> None:
        """Whatever a failed test has left."""
        for pid in self.alive():
            with contextlib.suppress(OSError):
                os.kill(pid, 9)


def mentioning(mark: str) -> list[int]:
    """Living processes, but this one, with these words in their environment or command line."""
    found = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in found if pid != os.getpid() and _mentions(pid, mark.encode())]


def _mentions(pid: int, mark: bytes) -> bool:
    for name in ("environ", "cmdline"):
        try:
            if mark in Path(f"/proc/{pid}/{name}").read_bytes():
                return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False
    return False


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def case_request(case: AgentCase, rig: Rig, options: dict[str, Any]) -> AgentRequest:
    """The call of a case."""
    return AgentRequest(
        role="coder" if case.writes else "reviewer",
        mode="implementation",
        prompt=CALL_PROMPT,
        workdir=str(rig.work),
        writes=case.writes,
        effect=f"test-{os.getpid()}:1:1",
        nonce=CALL_NONCE,
        schema=SHARED_REPLY_CONTRACTS[case.contract].schema if case.contract else None,
        seconds=case.seconds,
        start_seconds=case.start,
        idle_seconds=case.idle,
        permissions=case.permissions,  # type: ignore[arg-type]  a literal of the case
        options=options,
    )


def run_case(cli: AgentCli, case: AgentCase, rig: Rig) -> tuple[AgentRow, AgentReply | None, ModelServer]:
    """One call, looked at from outside."""
    with ModelServer(CASE_SCRIPTS[case.name]) as server:
        url = unused_address() if case.refused else server.url
        for name, value in cli.environment(url, case.key).items():
            rig.monkeypatch.setenv(name, value)
        options = cli.options(url)
        agent = cli.agent(rig.place, probe_sandbox("required"), options)
        rig.again()
        began = time.monotonic()
        call = _cancelled if case.expect == "cancelled" else _called
        reply, got, detail = asyncio.run(call(agent, case_request(case, rig, options), rig))
        left = rig.gone()
        took = time.monotonic() - began
    clock = case.seconds + CLEAN_WITHIN
    row = AgentRow(
        cli.name, cli.version, case.name, case.expect, got, round(took, 2), clock, len(left), rig.changed()
    )
    row.detail = detail
    row.keep()
    return row, reply, server


async def _called(agent: Any, asked: AgentRequest, rig: Rig) -> tuple[AgentReply | None, str, str]:
    reply: AgentReply = await agent.call(asked)
    return reply, outcome(asked, reply), reply.detail or reply.text[:200]


async def _cancelled(agent: Any, asked: AgentRequest, rig: Rig) -> tuple[AgentReply | None, str, str]:
    task = asyncio.ensure_future(agent.call(asked))
    if not await asyncio.to_thread(rig.running, SLEEP_COMMAND, asked.seconds):
        task.cancel()
        return None, "the tool never ran", ""
    task.cancel()
    try:
        reply = await task
    except asyncio.CancelledError:
        return None, "cancelled", "the call raised"
    return reply, outcome(asked, reply), "a late answer took the place of the cancel"


def outcome(asked: AgentRequest, reply: AgentReply) -> str:
    """The class, or what the strict parser says of the text."""
    if reply.error:
        return reply.error
    if asked.schema is None:
        return "ok"
    parsed = parse_reply(reply.text, SHARED_REPLY_CONTRACTS["reviewer"], CALL_NONCE)
    return "ok" if isinstance(parsed, ParsedReply) else "reply_invalid"


def project(rig: Rig, cli: AgentCli, url: str, **more: Any) -> Path:
    """A small repository whose whole crew is this CLI."""
    top = rig.root / "project"
    top.mkdir()
    (top / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    table = {**cli.options(url), "seconds": 60, "idle_seconds": 30, "start_seconds": 40, "retries": 0, **more}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    roles = "\n".join(
        "\n".join((f"[roles.{role}]", f'agent = "{cli.name}"', *lines))
        for role in ("coder", "reviewer", "tester")
    )
    (top / "steersman.toml").write_text(f'version = 1\n[sandbox]\nmode = "required"\n{roles}\n')
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run((*git, *words), cwd=top, check=True)
    return top


def allow_project(project: Path) -> str:
    """Trusts a project's settings and allows its model server; the folder of the person's own settings."""
    loaded = wiring.read_written_config(project)
    state = wiring.project_state_directory(project)
    TrustFile(state).record("steersman.toml", TrustedSettings(loaded.powerful, "Ann", 0))
    own = state.parent / "config" / "steersman" / "config.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    hosts = re.findall(r"http://([\w.]+:\d+)", (project / "steersman.toml").read_text(encoding="utf-8"))
    own.write_text(
        f'[sandbox]\nhosts = {json.dumps(hosts)}\n[env]\npass = ["{KEY_NAME}", "SCRIPTED_API_KEY"]\n'
    )
    return str(own.parent.parent)


def run_killed(cli: AgentCli, rig: Rig) -> AgentRow:
    """`steersman run` with a tool under way, killed with -9: who is alive a few seconds later?"""
    with ModelServer(CASE_SCRIPTS["kill -9"]) as server:
        for name, value in cli.environment(server.url, MODEL_SERVER_KEY).items():
            rig.monkeypatch.setenv(name, value)
        top = project(rig, cli, server.url)
        rig.monkeypatch.setenv("XDG_CONFIG_HOME", allow_project(top))
        before = _own(rig)
        argv = (sys.executable, "-P", "-m", "steersman", "run", "make add() add", "--mode", "implementation")
        with (rig.root / "work" / "told.txt").open("wb") as told:
            steersman = subprocess.Popen(argv, cwd=top, stdin=subprocess.DEVNULL, stdout=told, stderr=told)
        ran = rig.running(SLEEP_COMMAND)
        os.kill(steersman.pid, 9)
        steersman.wait()
        began = time.monotonic()
        left = rig.gone()
        took = time.monotonic() - began
    got = "killed" if ran else "the tool never ran"
    changed = sorted(path for path in _own(rig).items() ^ before.items())
    names = [name for name, _ in changed]
    row = AgentRow(
        cli.name, cli.version, "kill -9", "killed", got, round(took, 2), CLEAN_WITHIN, len(left), names
    )
    row.detail = (rig.work / "told.txt").read_text()[-300:]
    row.keep()
    return row


def _own(rig: Rig) -> dict[str, str]:
    """What is the user's: everything but steersman's own state and artifacts."""
    ours = ("state", "project/.steersman", "project/.git")
    return {path: digest for path, digest in rig.outside().items() if not path.startswith(ours)}
