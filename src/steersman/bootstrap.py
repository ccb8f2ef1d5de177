"""Picks the adapters and wires the rest: the only place that does.

Where things are: store, keys, sockets and working trees in `$XDG_STATE_HOME/steersman/<project>/`, outside every
worktree; artifacts in `.steersman/runs/` of the repository. Everything heavy is imported when it is first needed.
"""

import os
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from steersman.adapters import places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from steersman.contracts.config import Config, FrozenConfig
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


def anchored(project: Place) -> set[str]:
    """The runs that the project's own file of anchors names, genuine or not: cheap, to know whether to look closer."""
    from steersman.adapters.anchor_names import named_runs

    return named_runs(places.state_of(project))


def open_journal(project: Place, *, create: bool = True, reading: bool = False) -> "Journal":
    """The project's store; for reading alone it opens one connection and grows nothing."""
    if reading:
        from steersman.adapters.sqlite.reader import SqliteReader

        return SqliteReader(places.store_of(project))  # type: ignore[return-value]  the reading half
    from steersman.adapters.sqlite.store import SqliteJournal

    return SqliteJournal(places.store_of(project), create=create)


def _roundtable() -> "Machine":
    from steersman.machines.roundtable import MACHINE

    return MACHINE


def _coordinator() -> "Machine":
    from steersman.machines.coordinator import MACHINE

    return MACHINE


def _task() -> "Machine":
    from steersman.machines.task import MACHINE

    return MACHINE


ROLES = ("planner", "coder", "reviewer", "tester")  # of all machines: none has to be imported to read a file
_MACHINES: "dict[str, Callable[[], Machine]]" = {
    "roundtable": _roundtable,
    "coordinator": _coordinator,
    "task": _task,
}


class _Installed(Mapping[str, "Machine"]):
    def __getitem__(self, name: str) -> "Machine":
        return _MACHINES[name]()

    def __iter__(self) -> "Iterator[str]":
        return iter(_MACHINES)

    def __len__(self) -> int:
        return len(_MACHINES)


def machines() -> Mapping[str, "Machine"]:
    """The machines that are installed, by name; each is imported when it is first asked for."""
    return _Installed()


def load_config(start: "Path", *, only_look: bool = False) -> Any:
    """The nearest steersman.toml from `start` up to the top of its repository, or the defaults, within this machine's
    limits. It is data: what in it needs a person's trust is listed beside it."""
    from steersman.adapters.limit_files import apply_limits

    return apply_limits(read_written_config(start), only_look=only_look)


def read_written_config(start: "Path") -> Any:
    """The same as it is written, whatever the limits; scripts from the top."""
    from steersman.adapters.trust_file import load_with_powerful_lines

    project = repository(start)
    state = state_dir(project)
    return load_with_powerful_lines(start, project, ROLES, lambda config: _workspace(project, state, config))


def trust_file(project: "Path") -> Any:
    """What a person trusts of a project's settings."""
    from steersman.adapters.trust_file import TrustFile

    return TrustFile(state_dir(project))


def open_bridge(start: "Path", *, kind: str = "command", create: bool = True) -> "Bridge":
    """Everything a face needs for the project around `start`."""
    from steersman.runtime.bridge import Bridge

    return Bridge(open_world(repository(start), kind=kind, create=create))


def open_world(project: "Path", *, kind: str = "command", create: bool = True, **instead: Any) -> "World":
    """The real world; tests put something else in place of single ports."""
    from steersman.adapters import sweep
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
        "processes": sweep,
        "bell": SocketBell(state / "bell"),
        "workspace": lambda config: _workspace(project, state, config),
        "commands": _commands,
        "sandbox": sandbox,
        "limit_config": _limit_config,
        "agent": lambda role, config: _agent(project, state, role, config),
        "forget": lambda run: _forget(state, run),
        "prompt": _prompt,
        "tree_path": _tree_path,
        "secrets": lambda named: known_secrets(str(project), named),
        "artifacts": FolderArtifacts(project / ".steersman" / "runs"),
        "sealed": _sealing(FileAnchors(state)),
        "anchors": _anchors(project, state),
        "planning": cache(lambda: _planning(project, state)),
        **instead,
    }
    if "journal" not in ports:
        from steersman.adapters.sqlite.chat import SqliteChats

        ports["journal"] = open_journal(project, create=create)
        ports["chats"] = SqliteChats(ports["journal"])
    return World(**ports)


def _planning(project: "Path", state: "Path") -> Any:
    from steersman.adapters.anchor_key import AnchorKey
    from steersman.runtime.planning import Planning

    return Planning(
        registries=registries(project),
        scanner=scanner(project),
        memories=memories(project),
        plans=plans(project),
        sign=AnchorKey(state).signature,
    )


def plans(project: "Path") -> Any:
    """The folders in which frozen plans lie."""
    from pathlib import Path

    from steersman.adapters.plan_folder import FolderPlans

    ours = project / ".steersman"
    return FolderPlans(ours / "runs", (ours, Path(places.states())))


def key_here(project: "Path", file: str = "") -> str:
    """The public key in a file, else this project's own; empty where it has none yet."""
    from steersman.adapters.anchor_key import read_public

    own = state_dir(project) / "anchor.pub"
    return read_public(file or str(own)) if file or own.is_file() else ""


def verifies(key: str, data: bytes, signature: bytes) -> bool:
    """Whether a public key has signed some bytes."""
    from steersman.adapters.anchor_key import verifies as found

    return found(key, data, signature)


def known_secrets(project: str, named: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Values that are never kept and never told: of the environment, of logins, of the project's own variables."""
    return _secrets(project)((*named, *_named_secrets(project)))


@cache
def _secrets(project: str) -> Any:
    from steersman.adapters.secrets import KnownSecrets

    return KnownSecrets(os.environ, project)


@cache
def _named_secrets(project: str) -> tuple[str, ...]:
    """Variables that steersman.toml calls secret, also for runs that began before it did."""
    from pathlib import Path

    from steersman.adapters.config import load_config as load
    from steersman.errors import SteersmanError

    try:
        names: tuple[str, ...] = load(Path(project)).config.redact.env
    except (SteersmanError, OSError):  # a broken file is told where it is needed
        return ()
    return names


def _sealing(anchors: Any) -> Any:
    """Anchors a run with an outcome. What has happened has happened: a key that is none is told, not raised."""
    from steersman.errors import SteersmanError
    from steersman.judges.text import printable

    def seal(run: str, seq: int, hash_: str, at: int) -> None:
        try:
            anchors.anchor(run, seq, hash_, at)
        except (SteersmanError, OSError) as error:
            told = f"run {run} is not anchored at entry {seq}: {error}; then `steersman audit anchor {run}`"
            print(printable(told), file=sys.stderr)  # noqa: T201  beside whatever the command says

    return seal


def _anchors(project: "Path", state: "Path") -> dict[str, Any]:
    from steersman.adapters.anchors import CommandAnchors, FileAnchors, GitAnchors

    return {
        "file": FileAnchors(state),
        "git": GitAnchors(state, project),
        "command": CommandAnchors(state, lambda: _anchor_command(project), project),
    }


def _anchor_command(project: "Path") -> tuple[str, ...] | None:
    """The command of the settings at the top of the repository; a UserError where nobody trusts them."""
    from steersman.errors import UserError

    loaded = load_config(project)
    argv: tuple[str, ...] | None = loaded.config.audit.anchor
    trusted = trust_file(project).read("steersman.toml") if argv else None
    if argv and (trusted is None or trusted.lines != loaded.powerful):
        raise UserError(f"[audit] anchor is not trusted: run `steersman --project {project} trust` first")
    return argv


def _workspace(project: "Path", state: "Path", config: "Config") -> Any:
    from steersman.adapters.git import GitWorkspace

    return GitWorkspace(
        project, state if state.is_dir() else _passing(), include=tuple(config.worktree.include)
    )


@cache
def _passing() -> "Path":
    """A place for whoever only looks at a project that has no state: gone with this process."""
    import atexit
    import tempfile
    from pathlib import Path

    place = tempfile.TemporaryDirectory(prefix="steersman-", ignore_cleanup_errors=True)
    atexit.register(place.cleanup)
    return Path(place.name)


def _commands(config: "Config") -> Any:
    from steersman.adapters.commands import LocalCommands

    allow = tuple(check.run for check in config.checks.values())
    more = {"network": config.sandbox.network, "grammars": config.commands, "env": config.env}
    return LocalCommands(allow, sandbox(config), writable=config.worktree.writable, **more)


def _limit_config(config: "FrozenConfig") -> Any:
    from steersman.adapters.limit_files import limit_config

    return limit_config(config)


def sandbox(config: "Config") -> Any:
    """The box that agents and checks of a project run in, as far as this machine has one; raises where it must."""
    from steersman.adapters.sandbox import probe

    box = config.sandbox
    return probe(box.mode, box.reads, box.memory_gb, box.disk_gb)


def _agent(project: "Path", state: "Path", role: str, config: "FrozenConfig") -> Any:
    from steersman.adapters.agents.roster import Post, make
    from steersman.adapters.kept_programs import PROGRAMS, start_copies
    from steersman.runtime.roles import role_of

    kept = (state if state.is_dir() else _passing()) / PROGRAMS
    chosen = start_copies(role_of(config, role), config.programs, kept)
    return make(Post(role, chosen, project, state / "homes", sandbox(config)))


def _forget(state: "Path", run: str) -> None:
    from steersman.adapters.agents.shelf import SESSIONS, Shelf

    Shelf(state / SESSIONS).drop(run)


@cache
def _prompt(machine: str, name: str) -> str:
    from importlib.resources import files

    return files(f"steersman.machines.{machine}").joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")


def _tree_path(config: "Config", path: str) -> str:
    from steersman.adapters.tree_places import shown_path

    return shown_path(path, isolated=sandbox(config).isolated)


# ── the rest of what a face asks for ────────────────────────────────────────────────────────────────────────────────


def main(argv: "list[str] | None" = None) -> int:
    """The command line: hands this module over as the helm."""
    import resource

    from steersman.faces.cli import main as face

    # A picture of our memory would hold what no text may keep; what we start inherits this.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    return face(sys.modules[__name__], argv)  # type: ignore[arg-type]  a module is a Helm


def owner(project: Place, run: str) -> str | None:
    """Who drives a run now."""
    from steersman.adapters.locks import FileLocks

    return FileLocks(state_dir(project) / "locks").owner(run)


def detect_checks(project: "Path") -> "Any":
    """The checks that a project's own files name."""
    from steersman.adapters.detect import detect_checks as detect

    return detect(project)


def installed_agents() -> dict[str, str]:
    """The agent CLIs found on this machine, by the name a role calls them."""
    from steersman.adapters.agents.roster import installed

    return installed()


def obstacle(role: Any) -> str:
    """Why a call of this role would not even begin, with the next step; or nothing."""
    from steersman.adapters.agents.roster import obstacle as found

    return found(role)


def listed_includes(project: "Path") -> tuple[str, ...]:
    """What `.worktreeinclude` of the checkout lists."""
    from steersman.adapters.include import listed_patterns

    return listed_patterns(project)


def render_config(**values: Any) -> str:
    """A commented steersman.toml."""
    from steersman.adapters.detect import render_config as render

    return render(**values)


def command_rules(checks: tuple[tuple[str, ...], ...], commands: Any) -> Any:
    """What a tester may propose beside these checks."""
    from steersman.adapters.command_grammars import load_grammars
    from steersman.judges.commands import CommandRules

    return CommandRules(checks, commands, load_grammars())


def out_of_bounds(root: str, reach: Any) -> str | None:
    """Why a command may not touch what it names in this tree, or None."""
    from steersman.adapters.tree_paths import out_of_bounds as found

    return found(root, reach, running=False)


def cannot_hold(root: str, name: str) -> str | None:
    """Why a file of this name must not be written below a folder as it is now, or None."""
    from steersman.adapters.tree_paths import cannot_hold as found

    return found(root, name)


def documents() -> Any:
    """Documents that people write: read strictly, written whole."""
    from steersman.adapters.documents import FileDocuments

    return FileDocuments()


def registries(project: "Path") -> Any:
    """The registries of a project."""
    from steersman.adapters.registry_files import FileRegistries

    return FileRegistries(project, state_dir(project))


def memories(project: "Path") -> Any:
    """What was learnt in a project before."""
    from steersman.adapters.sqlite.memory import SqliteMemories

    return SqliteMemories(str(state_dir(project) / "memory.db"), lambda: known_secrets(str(project)))


def scanner(project: "Path") -> Any:
    """What finds a project's facts."""
    from steersman.adapters.scan import TreeScanner

    state = state_dir(project)
    return TreeScanner(project, (state if state.is_dir() else _passing()) / "hulls")


def sqlite_version() -> str:
    """Of the SQLite that keeps the store."""
    import apsw

    return apsw.sqlitelibversion()


def driver_argv(project: Place, run: str) -> list[str]:
    """The command that drives a run in a process of its own; -P: no module of the project stands in for one of ours."""
    return [sys.executable, "-P", "-m", "steersman", "--project", os.fspath(project), "resume", run]


def inside(project: Place) -> str:
    """The effect this process works for, of a run in this store or in one beside it; nothing outside a run.

    Stores elsewhere do not count: a project whose tests try out steersman itself has throw-away ones.
    """
    from steersman.adapters.ancestry import known_effect

    return known_effect(places.state_of(project), working_for())


def working_for() -> tuple[str, ...]:
    """Every effect that this process, its ancestors or its control group name, known or not."""
    from steersman.adapters.process_table import effects_here

    return effects_here()


def lockfile() -> Any:
    """Writes and checks the lock over every function that decides."""
    from steersman.adapters import lockfile as found

    return found
