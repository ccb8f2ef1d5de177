"""Picks the adapters and wires the rest: the only place that does.

Where things are: store, keys, sockets and working trees in `$XDG_STATE_HOME/steersman/<project>/`, outside every
worktree; artifacts in `.steersman/runs/` of the repository. Everything heavy is imported when it is first needed.
"""

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from steersman.adapters import places

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.contracts.config import Config
    from steersman.kernel.build import Machine
    from steersman.ports.journal import Journal
    from steersman.runtime.bridge import Bridge
    from steersman.runtime.world import World


Place = str | os.PathLike[str]


def repository(start: Place) -> "Path":
    """The top of the repository around `start`, or `start` itself where there is none."""
    from pathlib import Path

    return Path(places.top_of(start))


def top_of(start: str) -> str:
    """The same as a string, for who is in a hurry."""
    return places.top_of(start)


def state_dir(project: Place) -> "Path":
    """The project's own directory for what must survive `git clean` and stay out of reach of agents."""
    from pathlib import Path

    return Path(places.state_of(project))


def has_store(project: Place) -> bool:
    """Whether anything has been run here."""
    return os.path.exists(places.store_of(project))


def open_journal(project: Place, *, create: bool = True, reading: bool = False) -> "Journal":
    """The project's store; for reading alone it opens one connection and grows nothing."""
    if reading:
        from steersman.adapters.sqlite.reader import SqliteReader

        return SqliteReader(places.store_of(project))  # type: ignore[return-value]  the reading half
    from steersman.adapters.sqlite.store import SqliteJournal

    return SqliteJournal(places.store_of(project), create=create)


@cache
def machines() -> "dict[str, Machine]":
    """The machines that are installed, by name."""
    from steersman.machines.roundtable import MACHINE as ROUNDTABLE

    return {m.name: m for m in (ROUNDTABLE,)}


def load_config(start: "Path") -> Any:
    """The nearest steersman.toml from `start` up to the top of its repository, or the defaults; scripts from the top."""
    from steersman.adapters.config import load_config as load

    loaded = load(start)
    if loaded.path is None or loaded.path.parent == repository(start):
        return loaded
    from msgspec.structs import replace

    inside = loaded.path.parent.relative_to(repository(start))
    roles = {
        n: replace(r, script=str(inside / r.script)) if r.script else r
        for n, r in loaded.config.roles.items()
    }
    return loaded._replace(config=replace(loaded.config, roles=roles))


def open_bridge(start: "Path", *, kind: str = "command", create: bool = True) -> "Bridge":
    """Everything a face needs for the project around `start`."""
    from steersman.runtime.bridge import Bridge

    return Bridge(open_world(repository(start), kind=kind, create=create))


def open_world(project: "Path", *, kind: str = "command", create: bool = True, **instead: Any) -> "World":
    """The real world; tests put something else in place of single ports."""
    from steersman.adapters import processes
    from steersman.adapters.anchors import FileAnchors
    from steersman.adapters.artifacts import FolderArtifacts
    from steersman.adapters.bell import SocketBell
    from steersman.adapters.clock import SystemChance, SystemClock
    from steersman.adapters.locks import FileLocks
    from steersman.runtime.world import World

    state = state_dir(project)
    ports: dict[str, Any] = {
        "machines": machines(),
        "clock": SystemClock(),
        "chance": SystemChance(),
        "locks": FileLocks(state / "locks", kind),
        "processes": processes,
        "bell": SocketBell(state / "bell"),
        "workspace": lambda config: _workspace(project, state, config),
        "commands": _commands,
        "agent": lambda role, config: _agent(project, role, config),
        "prompt": _prompt,
        "role_prompt": lambda role: _role_prompt(project, role),
        "artifacts": FolderArtifacts(project / ".steersman" / "runs"),
        "sealed": FileAnchors(state).anchor,
        "anchors": _anchors(project, state),
        **instead,
    }
    if "journal" not in ports:
        ports["journal"] = open_journal(project, create=create)
    return World(**ports)


def _anchors(project: "Path", state: "Path") -> dict[str, Any]:
    from steersman.adapters.anchors import CommandAnchors, FileAnchors, GitAnchors

    return {
        "file": FileAnchors(state),
        "git": GitAnchors(state, project),
        "command": CommandAnchors(state, lambda: load_config(project).config.audit.anchor, project),
    }


def _workspace(project: "Path", state: "Path", config: "Config") -> Any:
    from steersman.adapters.git import GitWorkspace

    return GitWorkspace(project, state, include=tuple(config.worktree.include))


def _commands(config: "Config") -> Any:
    from steersman.adapters.commands import LocalCommands

    return LocalCommands(tuple(tuple(argv) for argv in config.checks.values()))


def _agent(project: "Path", role: str, config: "Config") -> Any:
    from steersman.adapters.scripted import ScriptedAgent
    from steersman.runtime.roles import role_of

    chosen = role_of(config, role)
    if chosen.agent == "scripted" and chosen.script:
        return ScriptedAgent.load(project / chosen.script)
    from steersman.errors import UserError

    raise UserError(
        f'[roles.{role}] agent = {chosen.agent!r} is not known here; known: scripted (with script = "file.yaml")'
    )


@cache
def _prompt(machine: str, name: str) -> str:
    from importlib.resources import files

    return files(f"steersman.machines.{machine}").joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")


def _role_prompt(project: "Path", role: str) -> str:
    try:
        return (project / ".steersman" / "prompts" / f"{role}.md").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""


# ── the rest of what a face asks for ────────────────────────────────────────────────────────────────────────────────


def main(argv: "list[str] | None" = None) -> int:
    """The command line: hands this module over as the helm."""
    from steersman.faces.cli import main as face

    return face(sys.modules[__name__], argv)  # type: ignore[arg-type]  a module is a Helm


def owner(project: Place, run: str) -> str | None:
    """Who drives a run now."""
    from steersman.adapters.locks import FileLocks

    return FileLocks(state_dir(project) / "locks").owner(run)


def detect_checks(project: "Path") -> "Any":
    """The checks that a project's own files name."""
    from steersman.adapters.detect import detect_checks as detect

    return detect(project)


def render_config(**values: Any) -> str:
    """A commented steersman.toml."""
    from steersman.adapters.detect import render_config as render

    return render(**values)


def sqlite_version() -> str:
    """Of the SQLite that keeps the store."""
    import apsw

    return apsw.sqlitelibversion()


def driver_argv(project: Place, run: str) -> list[str]:
    """The command that drives a run in a process of its own; -P: no module of the project stands in for one of ours."""
    return [sys.executable, "-P", "-m", "steersman", "--project", os.fspath(project), "resume", run]


def inside() -> str:
    """The effect this process works for, found in its own environment or that of an ancestor; nothing outside a run."""
    from steersman.adapters.process_table import effect_here

    return effect_here()


def lockfile() -> Any:
    """Writes and checks the lock over every function that decides."""
    from steersman.adapters import lockfile as found

    return found
