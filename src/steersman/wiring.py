"""Picks the adapters and connects everything: the only module that imports adapters.

Where things are: store, keys, sockets and working trees in `$XDG_STATE_HOME/steersman/<project>/`, outside every
worktree; artifacts in `.steersman/runs/` of the repository. Everything heavy is imported when it is first needed.
"""

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from steersman.adapters.config import state_paths
from steersman.adapters.installed_machines import InstalledMachines, InstalledPackages, RoleNames
from steersman.faces.services import Services

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.adapters.config.visible_secrets import KnownSecrets
    from steersman.contracts.config import Config, FrozenConfig
    from steersman.contracts.limits import LoadedConfig
    from steersman.engine.machine_package import MachinePackage
    from steersman.engine.ports import Ports
    from steersman.kernel.machine import Machine
    from steersman.ports.journal import Journal
    from steersman.ports.trust import TrustRecords


DirectoryLike = str | os.PathLike[str]


def repository_path(start: DirectoryLike) -> "Path":
    """The top of the repository around `start`, or `start` itself where there is none."""
    from pathlib import Path

    return Path(state_paths.find_repository_top(start))


def project_state_directory(project: DirectoryLike) -> "Path":
    """The project's own directory for what must survive `git clean` and stay out of reach of agents."""
    from pathlib import Path

    return Path(state_paths.state_directory_path(project))


def has_store(project: DirectoryLike) -> bool:
    """Whether the project has a store."""
    return os.path.exists(state_paths.project_store_path(project))


def list_anchored_runs(project: DirectoryLike) -> set[str]:
    """The runs that the project's own file of anchors names, genuine or not: cheap, to know whether to look closer."""
    from steersman.adapters.storage.anchor_names import read_anchored_run_names

    return read_anchored_run_names(state_paths.state_directory_path(project))


def open_journal(project: DirectoryLike, *, create: bool = True, reading: bool = False) -> "Journal":
    """The project's store; for reading alone it opens one connection and creates no file."""
    if reading:
        from steersman.adapters.storage.sqlite.reader import SqliteJournalReader

        # Its reading half.
        return cast("Journal", SqliteJournalReader(state_paths.project_store_path(project)))
    from steersman.adapters.storage.sqlite.store import SqliteJournal

    return SqliteJournal(state_paths.project_store_path(project), create=create)


def installed_packages() -> Mapping[str, "MachinePackage"]:
    """Everything that is known about each installed machine, by its name."""
    return InstalledPackages()


def installed_machines() -> Mapping[str, "Machine"]:
    """The machines that are installed, by name; each is imported when it is first asked for."""
    return InstalledMachines()


def load_limited_config(start: "Path", *, only_look: bool = False) -> "LoadedConfig":
    """The nearest steersman.toml from `start` up to the top of its repository, or the defaults, within this machine's
    limits. It is data: what in it needs a person's trust is listed beside it."""
    from steersman.adapters.config.trust_file import apply_config_limits

    return apply_config_limits(read_written_config(start), only_look=only_look)


def read_written_config(start: "Path") -> "LoadedConfig":
    """The same as it is written, whatever the limits; scripts from the top."""
    from steersman.adapters.config.trust_file import load_config_with_powerful_lines

    project = repository_path(start)
    state = project_state_directory(project)
    return load_config_with_powerful_lines(
        start, project, RoleNames(), lambda config: _open_git_workspace(project, state, config)
    )


def open_trust_file(project: "Path") -> "TrustRecords":
    """What a person trusts of a project's settings."""
    from steersman.adapters.config.trust_file import TrustFile

    return TrustFile(project_state_directory(project))


def open_ports(project: "Path", *, kind: str = "command", create: bool = True, **overrides: Any) -> "Ports":
    """The real world; tests put something else in place of single ports."""
    from steersman.adapters.process import process_table
    from steersman.adapters.process.run_locks import FileLocks, SystemChance, SystemClock, WakeupSockets
    from steersman.adapters.storage.anchors import FileAnchors
    from steersman.adapters.storage.artifacts import DirectoryArtifacts
    from steersman.engine.ports import Ports

    state = project_state_directory(project)
    ports: dict[str, Any] = {
        "machines": installed_machines(),
        "packages": InstalledPackages(),
        "clock": SystemClock(),
        "chance": SystemChance(),
        "locks": FileLocks(state / "locks", kind),
        "processes": process_table,
        "bell": WakeupSockets(state / "bell"),
        "workspace": lambda config: _open_git_workspace(project, state, config),
        "commands": _build_local_commands,
        "sandbox": open_project_sandbox,
        "limit_config": _apply_frozen_limits,
        "agent": lambda role, config: _build_role_agent(project, state, role, config),
        "role_obstacle": _find_agent_obstacle,
        "forget": lambda run: _drop_run_sessions(state, run),
        "prompt": _read_machine_prompt,
        "tree_path": _displayed_tree_path,
        "secrets": lambda named: list_known_secrets(str(project), named),
        "artifacts": DirectoryArtifacts(project / ".steersman" / "runs"),
        "sealed": _build_outcome_anchorer(FileAnchors(state)),
        "anchors": _build_anchor_stores(project, state),
        "planning": cache(lambda: _open_planning(project, state)),
        "start_driver": lambda run: _start_background_driver(project, state, run),
        **overrides,
    }
    if "journal" not in ports:
        from steersman.adapters.storage.sqlite.chat import SqliteChats

        ports["journal"] = open_journal(project, create=create)
        ports["chats"] = SqliteChats(ports["journal"])
    return Ports(**ports)


def _open_planning(project: "Path", state: "Path") -> Any:
    from steersman.adapters.storage.anchors import AnchorKey
    from steersman.engine.ports import PlanningPorts

    return PlanningPorts(
        registries=open_registries(project),
        scanner=open_fact_scanner(project),
        memories=open_memories(project),
        plans=open_frozen_plans(project),
        sign=AnchorKey(state).signature,
        maker_key=lambda file: read_maker_public_key(project, file),
        is_signed=_is_signature_valid,
    )


def open_frozen_plans(project: "Path") -> Any:
    """The folders in which frozen plans lie."""
    from pathlib import Path

    from steersman.adapters.storage.plan_folder import DirectoryPlans

    directory = project / ".steersman"
    return DirectoryPlans(directory / "runs", (directory, Path(state_paths.state_root_directory())))


def read_maker_public_key(project: "Path", file: str = "") -> str:
    """The public key in a file, else this project's own; empty where it has none yet."""
    from steersman.adapters.storage.anchors import read_public_key_file

    project_key = project_state_directory(project) / "anchor.pub"
    return read_public_key_file(file or str(project_key)) if file or project_key.is_file() else ""


def list_known_secrets(project: str, extra_variables: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Values that are never kept and never told: of the environment, of logins, of the project's own variables."""
    return _open_known_secrets(project)((*extra_variables, *_read_secret_variables(project)))


@cache
def _open_known_secrets(project: str) -> "KnownSecrets":
    from steersman.adapters.config.visible_secrets import KnownSecrets

    return KnownSecrets(os.environ, project)


@cache
def _read_secret_variables(project: str) -> tuple[str, ...]:
    """Variables that steersman.toml calls secret, also for runs that began before it did."""
    from pathlib import Path

    from steersman.adapters.config.toml_file import load_config as load
    from steersman.errors import SteersmanError

    try:
        names: tuple[str, ...] = load(Path(project)).config.redact.env
    except (SteersmanError, OSError):  # the code that needs the file reports that it is broken
        return ()
    return names


def _build_outcome_anchorer(anchors: Any) -> Any:
    """Anchors a run with an outcome. The run is already committed, so a bad signing key is only a warning."""
    from steersman.errors import SteersmanError
    from steersman.judges.text import printable_text

    def anchor_outcome(run: str, seq: int, hash_: str, at: int) -> None:
        try:
            anchors.anchor(run, seq, hash_, at)
        except (SteersmanError, OSError) as error:
            message = (
                f"run {run} is not anchored at entry {seq}: {error}; then `steersman audit anchor {run}`"
            )
            print(printable_text(message), file=sys.stderr)  # noqa: T201  beside whatever the command says

    return anchor_outcome


def _build_anchor_stores(project: "Path", state: "Path") -> dict[str, Any]:
    from steersman.adapters.storage.anchors import CommandAnchors, FileAnchors, GitAnchors

    return {
        "file": FileAnchors(state),
        "git": GitAnchors(state, project),
        "command": CommandAnchors(state, lambda: _read_trusted_anchor_command(project), project),
    }


def _read_trusted_anchor_command(project: "Path") -> tuple[str, ...] | None:
    """Returns the anchor command of the repository's settings; raises UserError if they are not trusted."""
    from steersman.errors import UserError

    loaded = load_limited_config(project)
    argv: tuple[str, ...] | None = loaded.config.audit.anchor
    trusted_record = open_trust_file(project).read("steersman.toml") if argv else None
    if argv and (trusted_record is None or trusted_record.lines != loaded.powerful):
        raise UserError(f"[audit] anchor is not trusted: run `steersman --project {project} trust` first")
    return argv


def _open_git_workspace(project: "Path", state: "Path", config: "Config") -> Any:
    """The project's workspace: one object for all callers with these settings, current each time it is asked for."""
    state = state if state.is_dir() else _make_temporary_state()
    workspace = _build_git_workspace(project, state, tuple(config.worktree.include))
    workspace.refresh()
    return workspace


@cache
def _build_git_workspace(project: "Path", state: "Path", include: tuple[str, ...]) -> Any:
    from steersman.adapters.git.workspace import GitWorkspace

    return GitWorkspace(project, state, include=include)


@cache
def _make_temporary_state() -> "Path":
    """Returns a temporary directory for commands that only look at a project without state."""
    import atexit
    import tempfile
    from pathlib import Path

    directory = tempfile.TemporaryDirectory(prefix="steersman-", ignore_cleanup_errors=True)
    atexit.register(directory.cleanup)
    return Path(directory.name)


def _start_background_driver(project: "Path", state: "Path", run: str) -> Any:
    """Drives a run in a process of its own; -P: no module of the project stands in for one of steersman."""
    from steersman.adapters.process.background_driver import BackgroundDriver

    argv = [sys.executable, "-P", "-m", "steersman", "--project", str(project), "resume", run]
    return BackgroundDriver(argv, project, state / "logs" / f"{run}.log")


def _build_local_commands(config: "Config") -> Any:
    from steersman.adapters.checks.local_commands import LocalCommands

    allowed_commands = tuple(check.run for check in config.checks.values())
    return LocalCommands(
        allowed_commands,
        open_project_sandbox(config),
        network=config.sandbox.network,
        grammars=config.commands,
        env=config.env,
        writable=config.worktree.writable,
    )


def _apply_frozen_limits(config: "FrozenConfig") -> Any:
    from steersman.adapters.config.trust_file import limit_config

    return limit_config(config)


def open_project_sandbox(config: "Config") -> Any:
    """The box that agents and checks of a project run in, as far as this machine has one; raises where it must."""
    from steersman.adapters.sandbox.bubblewrap import probe_sandbox

    settings = config.sandbox
    return probe_sandbox(settings.mode, settings.reads, settings.memory_gb, settings.disk_gb)


def _build_role_agent(project: "Path", state: "Path", role: str, config: "FrozenConfig") -> Any:
    from steersman.adapters.agents.program_copies import PROGRAMS_DIRECTORY, substitute_program_copies
    from steersman.adapters.agents.registry import AgentSpec, make_agent
    from steersman.contracts.config import find_role_settings

    directory = (state if state.is_dir() else _make_temporary_state()) / PROGRAMS_DIRECTORY
    role_config = substitute_program_copies(find_role_settings(config, role), config.programs, directory)
    return make_agent(AgentSpec(role, role_config, project, state / "homes", open_project_sandbox(config)))


def _drop_run_sessions(state: "Path", run: str) -> None:
    from steersman.adapters.agents.sessions import SESSIONS_DIRECTORY, SessionStore

    SessionStore(state / SESSIONS_DIRECTORY).drop(run)


@cache
def _read_machine_prompt(machine: str, name: str) -> str:
    from importlib.resources import files

    return (
        files(InstalledPackages()[machine].folder).joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")
    )


def _displayed_tree_path(config: "Config", path: str) -> str:
    from steersman.adapters.checks.setup_layers import visible_tree_path

    return visible_tree_path(path, isolated=open_project_sandbox(config).isolated)


# ── the rest of what a face asks for ────────────────────────────────────────────────────────────────────────────────


def find_run_owner(project: DirectoryLike, run: str) -> str | None:
    """Who drives a run now."""
    from steersman.adapters.process.run_locks import FileLocks

    return FileLocks(project_state_directory(project) / "locks").owner(run)


def command_rules(checks: tuple[tuple[str, ...], ...], commands: Any) -> Any:
    """What a tester may propose beside these checks."""
    from steersman.adapters.checks.tree_paths import load_command_grammars
    from steersman.judges.commands.tester_commands import CommandRules

    return CommandRules(checks, commands, load_command_grammars())


def command_reach_problem(root: str, reach: Any) -> str | None:
    """Why a command may not touch what it names in this tree, or None."""
    from steersman.adapters.checks.tree_paths import find_reach_problem as find_problem

    return find_problem(root, reach, running=False)


def open_registries(project: "Path") -> Any:
    """The registries of a project."""
    from steersman.adapters.storage.registry_files import FileRegistries

    return FileRegistries(project, project_state_directory(project))


def open_memories(project: "Path") -> Any:
    """What was learnt in a project before."""
    from steersman.adapters.storage.sqlite.memory import SqliteMemories

    return SqliteMemories(
        str(project_state_directory(project) / "memory.db"), lambda: list_known_secrets(str(project))
    )


def open_fact_scanner(project: "Path") -> Any:
    """What finds a project's facts."""
    from steersman.adapters.scan import TreeScanner

    state = project_state_directory(project)
    return TreeScanner(project, (state if state.is_dir() else _make_temporary_state()) / "hulls")


def find_calling_effect(project: DirectoryLike) -> str:
    """The effect this process works for, of a run in this store or in one beside it; nothing outside a run.

    Stores elsewhere do not count: a project whose tests try out steersman itself has throw-away ones.
    """
    from steersman.adapters.process.process_table import find_recorded_effect

    return find_recorded_effect(state_paths.state_directory_path(project), _list_own_effects())


def _load_decision_lockfile() -> Any:
    from steersman.adapters import machine_lock as lockfile_adapter

    return lockfile_adapter


def _import_on_call(module: str, name: str) -> "Callable[..., Any]":
    """A function that imports what it stands for when it is first called, so that building `SERVICES` imports nothing."""

    def call_imported(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(f"steersman.adapters.{module}"), name)(*arguments, **options)

    return call_imported


_list_own_effects = _import_on_call("process.process_table", "list_own_effects")
_find_agent_obstacle = _import_on_call("agents.registry", "find_agent_obstacle")
_is_signature_valid = _import_on_call("storage.anchors", "is_signature_valid")

SERVICES = Services(
    find_repository_root=state_paths.find_repository_top,
    project_state_directory=project_state_directory,
    has_store=has_store,
    list_anchored_runs=list_anchored_runs,
    find_run_owner=find_run_owner,
    list_known_secrets=list_known_secrets,
    open_journal=open_journal,
    open_ports=open_ports,
    open_chats=_import_on_call("storage.sqlite.chat", "SqliteChats"),
    installed_machines=installed_machines,
    installed_packages=installed_packages,
    find_calling_effect=find_calling_effect,
    list_calling_effects=_list_own_effects,
    load_decision_lockfile=_load_decision_lockfile,
    load_limited_config=load_limited_config,
    open_trust_file=open_trust_file,
    detect_project_checks=_import_on_call("config.detect_checks", "detect_checks"),
    installed_agents=_import_on_call("agents.registry", "find_installed_agents"),
    list_worktree_includes=_import_on_call("git.run_trees", "read_include_patterns"),
    render_project_config=_import_on_call("config.detect_checks", "render_config"),
    open_project_sandbox=open_project_sandbox,
    sqlite_version=lambda: str(import_module("apsw").sqlitelibversion()),
    open_documents=_import_on_call("storage.documents", "FileDocuments"),
    open_registries=open_registries,
    open_memories=open_memories,
    open_fact_scanner=open_fact_scanner,
    command_rules=command_rules,
    command_reach_problem=command_reach_problem,
    file_placement_problem=_import_on_call("checks.tree_paths", "new_file_problem"),
)


def run_steersman(argv: "list[str] | None" = None) -> int:
    """Runs one command line with the services of this installation and returns its exit code."""
    import resource

    from steersman.faces.cli.main import run_command_line as run_face

    # A core dump would hold what no text may keep; the limit is inherited by every program that we start.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    return run_face(SERVICES, argv)
