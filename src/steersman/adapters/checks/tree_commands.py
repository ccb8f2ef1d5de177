"""Executes one command in a working tree, in the sandbox where there is one, and compares the tree before and after.

**Invariant:** files of a tree that a check changes while it runs are named, and the check has not passed.
"""

import asyncio
import os
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from steersman.adapters.checks.file_states import (
    FileStates,
    list_changed_files,
    list_created_entries,
    list_plain_files,
    list_written_directories,
    read_file_digests,
    read_file_states,
)
from steersman.adapters.checks.runner_reports import ReportRequest
from steersman.adapters.checks.setup_layers import (
    SANDBOX_HOME,
    AttachedSetup,
    SetupLayer,
    TreePlace,
    add_writable_directories,
    date_files_for_build,
    delete_tree_entries,
    find_tree_place,
    invalidate_setup_layer,
    list_tracked_files,
    lock_build_output,
    publish_build_output,
    read_attached_setup,
    record_build_sources,
)
from steersman.adapters.checks.tree_paths import path_escape_problem
from steersman.adapters.checks.tree_views import OpenTreeView, ViewPurpose
from steersman.adapters.git.git_command import quiet_git_environment
from steersman.adapters.process.program_runner import CERTIFICATE_VARIABLES, ProgramResult, run_program
from steersman.adapters.sandbox import toolchains
from steersman.contracts.commands import Command
from steersman.contracts.config import ENV_REFERENCE
from steersman.errors import WorkspaceError
from steersman.judges.ecosystems import ECOSYSTEMS
from steersman.ports.sandbox import Sandbox, SandboxPolicy, WrittenSpace

# ── command environment ─────────────────────────────────────────────────────────────────────────────────────────────────

# The environment that setup steps and checks start with: nothing is inherited but what is listed here.
#
# An activated virtual environment, `PYTHONPATH` or `NODE_PATH` of the person's shell would let a check pass with what
# happens to be installed there. The lists are documented in docs/reference/environment.md.


COMMAND_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
# Paths of certificate files: for agents as well, and for the tools that checks and setup start.
COMMAND_CERTIFICATE_VARIABLES = (
    *CERTIFICATE_VARIABLES,
    *(
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "PIP_CERT",
        "GIT_SSL_CAINFO",
        "CARGO_HTTP_CAINFO",
        "AWS_CA_BUNDLE",
    ),
)
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
TOOLCHAIN_VARIABLES = tuple(name for each in ECOSYSTEMS for name in each.toolchain_variables.split())
# Only for setup, which has network access: proxies and package indexes, which may hold credentials.
SETUP_NETWORK_VARIABLES = (
    *(name for proxy in _PROXY_VARIABLES for name in (proxy, proxy.lower())),
    *(name for each in ECOSYSTEMS for name in each.network_variables.split()),
)
# The project's caches, for a program whose own home is elsewhere.
CACHE_VARIABLES = {
    name: f"{SANDBOX_HOME}/{directory}"
    for each in ECOSYSTEMS
    for name, directory in each.cache_directories.items()
}


class TreeBinDirectory(NamedTuple):
    """The `bin` directory of an environment that setup has made in the tree, as a command sees it."""

    path: str
    is_venv: bool


def build_command_environment(
    settings: Mapping[str, str],
    *,
    setup: bool,
    home: str = "",
    online: bool = False,
    tree_bin: TreeBinDirectory | None = None,
) -> dict[str, str]:
    """What one setup step or check is started with; `settings` are those of `[env]`, `home` the one in the sandbox."""
    names = (
        *COMMAND_VARIABLES,
        *COMMAND_CERTIFICATE_VARIABLES,
        *TOOLCHAIN_VARIABLES,
        *(SETUP_NETWORK_VARIABLES if setup else ()),
    )
    env = {name: os.environ[name] for name in names if name in os.environ}
    env["PATH"] = clean_search_path(os.environ)
    if tree_bin is not None:
        env["PATH"] = os.pathsep.join((tree_bin.path, env["PATH"]))
        env |= {"VIRTUAL_ENV": os.path.dirname(tree_bin.path)} if tree_bin.is_venv else {}
    if home:
        env |= {"HOME": home, **find_toolchain_homes(), "MAVEN_OPTS": f"-Duser.home={home}"}
    if not setup and not online:
        env |= {name: value for each in ECOSYSTEMS for name, value in each.offline_variables.items()}
    # Byte code in the tree would be part of the next recorded change.
    return {**env, "PYTHONDONTWRITEBYTECODE": "1", **settings}


def clean_search_path(environ: Mapping[str, str]) -> str:
    """PATH without relative entries, which would let the tree stand in for a program, and without an activated venv."""
    venv = environ.get("VIRTUAL_ENV", "")
    dropped = {os.path.join(venv, "bin"), os.path.join(os.path.realpath(venv), "bin")} if venv else set()
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry) and entry not in dropped)


def find_toolchain_homes() -> dict[str, str]:
    """Where the toolchains of the person's home are, unless the environment says so itself: HOME is another one."""
    home = os.path.expanduser("~")
    homes = {
        toolchain.variable: os.path.join(home, toolchain.root)
        for toolchain in toolchains.TOOLCHAIN_TABLE.values()
        if toolchain.variable in TOOLCHAIN_VARIABLES and toolchain.variable not in os.environ
    }
    return {name: path for name, path in homes.items() if os.path.isdir(path)}


# ── tree commands ────────────────────────────────────────────────────────────────────────────────


NOT_FOUND_EXIT_CODE = 127  # of a shell, and of the first program in a sandbox


class CommandCall(NamedTuple):
    """One execution: the command, its working tree, its effect and time, and the report that its runner is asked for."""

    command: Command
    workdir: str
    effect: str
    seconds: int
    report: ReportRequest


class TreeCommands:
    """Runs setup steps and checks; `env` are the variables of `[env]`, `writable` more directories to write."""

    def __init__(
        self, sandbox: Sandbox, *, network: bool, env: Mapping[str, str], writable: tuple[str, ...]
    ) -> None:
        self._sandbox, self._network = sandbox, network
        self._env, self._writable = env, writable

    async def execute(self, call: CommandCall, *, setup: bool) -> ProgramResult:
        """Runs it to its end; `changed` of the result names files of the tree that a check has changed."""
        if (reason := working_directory_problem(call.workdir, call.command.cwd)) is not None:
            return _unstarted_result(reason)
        if setup:
            return await self._run(call, "setup")
        place = find_tree_place(call.workdir)
        try:
            if place is None:
                before = read_file_states(call.workdir)
                result = await self._run(call, "change")
                return _add_changed_files(result, before, read_file_states(call.workdir))
            attached = read_attached_setup(place)
            check = self._check_change if attached.changed else self._check_base
            return await check(call, place, attached)
        except WorkspaceError as error:
            return _unstarted_result(str(error))

    async def _check_change(
        self, call: CommandCall, place: TreePlace, attached: AttachedSetup
    ) -> ProgramResult:
        """A check of what an agent has written: nothing of it may change, and nothing that it writes is kept."""
        workdir, skip = str(place.path), frozenset(attached.created)
        tracked = await asyncio.to_thread(list_tracked_files, place)
        layer, view = _attached_layer(attached), None
        if layer is not None:  # so there is a sandbox
            async with lock_build_output(layer, writes=False):
                await asyncio.to_thread(_date_tracked_files, place, layer, tracked)
                view = await asyncio.to_thread(OpenTreeView, workdir, "change", self._writable)
        before = _select_states(await asyncio.to_thread(read_file_states, workdir, skip), tracked)
        result = await self._run(call._replace(workdir=workdir), "change", view)
        return _add_changed_files(result, before, await asyncio.to_thread(read_file_states, workdir, skip))

    async def _check_base(
        self, call: CommandCall, place: TreePlace, attached: AttachedSetup
    ) -> ProgramResult:
        """A check of what a person has committed: where it writes and what it builds is kept for those after it."""
        workdir, skip = str(place.path), frozenset(attached.created)
        tracked = await asyncio.to_thread(list_tracked_files, place)
        layer = _attached_layer(attached)
        async with lock_build_output(layer, writes=True) if layer is not None else nullcontext():
            if layer is not None:
                await asyncio.to_thread(_date_tracked_files, place, layer, tracked)
            before = await asyncio.to_thread(read_file_states, workdir, skip)
            tracked_states = _select_states(before, tracked)
            digests = await asyncio.to_thread(read_file_digests, workdir, list_plain_files(tracked_states))
            result = await self._run(call._replace(workdir=workdir), "base")
            after = await asyncio.to_thread(read_file_states, workdir, skip)
            changed = _list_content_changes(workdir, list_changed_files(tracked_states, after), digests)
            if layer is not None and result.exit_code in (None, NOT_FOUND_EXIT_CODE):
                invalidate_setup_layer(layer)
            elif layer is not None and not changed and not result.excess:
                _publish_base_results(place, layer, before, after, digests if result.exit_code == 0 else None)
            elif self._sandbox.isolated:
                delete_tree_entries(place, list_created_entries(before, after))
        return result._replace(changed=tuple(changed))

    async def _run(
        self, call: CommandCall, purpose: ViewPurpose, view: OpenTreeView | None = None
    ) -> ProgramResult:
        if self._sandbox.isolated:
            return await self._run_in_sandbox(call, purpose, view)
        command, workdir, report = call.command, call.workdir, call.report
        env = build_command_environment(
            resolve_env_settings(self._env),
            setup=purpose == "setup",
            online=True,
            tree_bin=find_tree_bin(command, workdir, workdir, setup=purpose == "setup"),
        )
        # In a sandbox git finds the configuration that steersman makes.
        if command.source == "tester" and command.argv[0] == "git":
            env |= quiet_git_environment()
        directory, env = os.path.join(workdir, command.cwd), join_report_environment(env, report.env)
        return await run_program(command.argv, directory, env, call.seconds, call.effect, cap=report.cap)

    async def _run_in_sandbox(
        self, call: CommandCall, purpose: ViewPurpose, opened: OpenTreeView | None
    ) -> ProgramResult:
        command, workdir, report = call.command, call.workdir, call.report
        network = None if purpose == "setup" or self._network else ()
        try:
            if opened is None:
                opened = await asyncio.to_thread(OpenTreeView, workdir, purpose, self._writable)
            with opened as view:
                env = build_command_environment(
                    resolve_env_settings(self._env),
                    setup=purpose == "setup",
                    home=view.home,
                    online=network is None,
                    tree_bin=find_tree_bin(command, workdir, view.shown_at, setup=purpose == "setup"),
                )
                reads = (report.folder,) if report.folder else ()
                policy = SandboxPolicy(reads=reads, network=network, binds=view.binds, tree=workdir)
                cwd, env = os.path.join(view.shown_at, command.cwd), join_report_environment(env, report.env)
                async with self._sandbox.wrap(command.argv, policy, env, cwd) as sandboxed:
                    result = await run_program(
                        sandboxed.argv,
                        workdir,
                        sandboxed.env,
                        call.seconds,
                        call.effect,
                        cap=report.cap,
                        doors=sandboxed.doors,
                        space=sandboxed.space,
                    )
                    if result.excess and sandboxed.space is not None and purpose in ("setup", "base"):
                        await asyncio.to_thread(_free_written_space, sandboxed.space, workdir)
                return result._replace(changed=tuple(view.changed_links()))
        except (OSError, ValueError) as error:
            return _unstarted_result(f"cannot start {command.argv[0]}: {error}")


def find_tree_bin(command: Command, workdir: str, shown_at: str, *, setup: bool) -> TreeBinDirectory | None:
    """The `bin` directory that holds the command's program, where setup has made it in this tree.

    One with a file of the commit in it or above it is none: a change could bring programs that stand in for others.
    """
    place, program = find_tree_place(workdir), os.path.normpath(os.path.join(command.cwd, command.argv[0]))
    directory = os.path.dirname(program)
    if place is None or "/" not in command.argv[0] or os.path.basename(directory) not in ("bin", ".bin"):
        return None
    root, top = os.path.dirname(directory), place.path
    if setup:
        is_from_setup = not any(
            _is_path_within(name, root) or _is_path_within(root, name) for name in list_tracked_files(place)
        )
    else:
        attached = read_attached_setup(place)
        is_from_setup = any(_is_path_within(directory, name) for name in attached.created)
        top = Path(attached.layer, "tree") if attached.layer else top
    if not is_from_setup or os.path.realpath(top / directory) != os.path.join(
        os.path.realpath(top), directory
    ):
        return None
    return TreeBinDirectory(os.path.join(shown_at, directory), (top / root / "pyvenv.cfg").is_file())


def _is_path_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _free_written_space(space: WrittenSpace, workdir: str) -> None:
    """Frees what a command took that was ended for it: what it wrote to the tree and the project's home."""
    if (place := find_tree_place(workdir)) is not None:
        space.delete_written({str(place.path / name) for name in list_tracked_files(place)})


def _attached_layer(attached: AttachedSetup) -> SetupLayer | None:
    return SetupLayer(Path(attached.layer)) if attached.layer else None


def _date_tracked_files(place: TreePlace, layer: SetupLayer, tracked: Collection[str]) -> None:
    states = read_file_states(place.path, frozenset((*layer.built_names(),)))
    date_files_for_build(place.path, layer, [name for name in list_plain_files(states) if name in tracked])


def _add_changed_files(result: ProgramResult, before: FileStates, after: FileStates) -> ProgramResult:
    return result._replace(changed=(*result.changed, *list_changed_files(before, after)))


def _select_states(states: FileStates, names: Collection[str]) -> FileStates:
    """The files of a commit: what a check before this one has left in the tree is not judged."""
    return {name: state for name, state in states.items() if name in names}


def _list_content_changes(workdir: str, names: list[str], digests: Mapping[str, str]) -> list[str]:
    """Of these files of a person's commit those with other content: writing the same bytes again is harmless there."""
    existing = [name for name in names if name in digests and os.path.isfile(os.path.join(workdir, name))]
    digests_now = read_file_digests(workdir, existing)
    return [name for name in names if digests_now.get(name) != digests.get(name, "")]


def _publish_base_results(
    place: TreePlace,
    layer: SetupLayer,
    before: FileStates,
    after: FileStates,
    digests: Mapping[str, str] | None,
) -> None:
    """Keeps what a check on the base has left: where it wrote, and its build output with what that was built from."""
    add_writable_directories(place, list_written_directories(before, after))
    publish_build_output(place, layer, list_created_entries(before, after))
    record_build_sources(layer, digests)


def _unstarted_result(reason: str) -> ProgramResult:
    return ProgramResult(None, b"", timed_out=False, micros=0, reason=reason)


def resolve_env_settings(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of [env]; one passed through is left out where steersman's own environment lacks it."""
    resolved = {}
    for name, value in env.items():
        resolved_value = (
            os.environ.get(value.removeprefix(ENV_REFERENCE)) if value.startswith(ENV_REFERENCE) else value
        )
        if resolved_value is not None:
            resolved[name] = resolved_value
    return resolved


def join_report_environment(env: Mapping[str, str], report_env: Mapping[str, str]) -> dict[str, str]:
    """The report's variables beside the project's: options are appended, the reporter's folder comes first."""
    joined = {**env, **report_env}
    for name in env.keys() & report_env.keys():
        joined[name] = (
            f"{report_env[name]}:{env[name]}" if name == "PYTHONPATH" else f"{env[name]} {report_env[name]}"
        )
    return joined


def working_directory_problem(workdir: str, cwd: str) -> str | None:
    """Why a command cannot run in this folder of the tree, or None."""
    if not os.path.isdir(workdir):
        return f"the working directory {workdir} is gone"
    if not cwd:
        return None
    if (problem := path_escape_problem(workdir, cwd)) is not None:
        return f"cwd: {problem}"
    return None if os.path.isdir(os.path.join(workdir, cwd)) else f"cwd: {cwd!r} is not a folder of the tree"
