"""Executes one command in a working tree, in the sandbox where there is one, and compares the tree before and after.

**Invariant:** files of a tree that a check changes while it runs are named, and the check has not passed.
"""

import asyncio
import os
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from pathlib import Path

from steersman.adapters.command_environment import OwnBin, command_environment
from steersman.adapters.file_states import (
    States,
    list_changed_files,
    list_created,
    list_plain_files,
    list_written_folders,
    read_digests,
    read_states,
)
from steersman.adapters.git_cli import quiet
from steersman.adapters.processes import Executed, execute
from steersman.adapters.reports import Asked
from steersman.adapters.setup_layers import (
    Attached,
    Layer,
    add_writable,
    date_files,
    delete_entries,
    drop_layer,
    list_tracked,
    locked_build,
    note_sources,
    publish_build,
    read_attached,
)
from steersman.adapters.tree_paths import leads_out
from steersman.adapters.tree_places import TreePlace, find_tree_place
from steersman.adapters.tree_views import OpenedView, Purpose
from steersman.contracts.commands import Command
from steersman.contracts.config import ENV_REFERENCE
from steersman.errors import WorkspaceError
from steersman.ports.sandbox import Box, Sandbox, Space

NOT_FOUND = 127  # of a shell, and of the first program in a sandbox


class TreeCommands:
    """Runs setup steps and checks; `env` are the variables of `[env]`, `writable` more directories to write."""

    def __init__(
        self, sandbox: Sandbox, *, network: bool, env: Mapping[str, str], writable: tuple[str, ...]
    ) -> None:
        self._sandbox, self._network = sandbox, network
        self._env, self._writable = env, writable

    async def execute(
        self, command: Command, workdir: str, effect: str, seconds: int, report: Asked, *, setup: bool
    ) -> Executed:
        """Runs it to its end; `changed` of the result names files of the tree that a check has changed."""
        if (reason := folder_problem(workdir, command.cwd)) is not None:
            return _not_started(reason)
        if setup:
            return await self._run(command, workdir, effect, seconds, report, "setup")
        place = find_tree_place(workdir)
        try:
            if place is None:
                before = read_states(workdir)
                done = await self._run(command, workdir, effect, seconds, report, "change")
                return _with_changes(done, before, read_states(workdir))
            attached = read_attached(place)
            check = self._check_change if attached.changed else self._check_base
            return await check(command, place, attached, effect, seconds, report)
        except WorkspaceError as error:
            return _not_started(str(error))

    async def _check_change(
        self, command: Command, place: TreePlace, attached: Attached, effect: str, seconds: int, report: Asked
    ) -> Executed:
        """A check of what an agent has written: nothing of it may change, and nothing that it writes is kept."""
        workdir, skip = str(place.path), frozenset(attached.created)
        tracked = await asyncio.to_thread(list_tracked, place)
        layer, view = _layer_of(attached), None
        if layer is not None:  # so there is a sandbox
            async with locked_build(layer, writes=False):
                await asyncio.to_thread(_date_tracked, place, layer, tracked)
                view = await asyncio.to_thread(OpenedView, workdir, "change", self._writable)
        before = _only(await asyncio.to_thread(read_states, workdir, skip), tracked)
        done = await self._run(command, workdir, effect, seconds, report, "change", view)
        return _with_changes(done, before, await asyncio.to_thread(read_states, workdir, skip))

    async def _check_base(
        self, command: Command, place: TreePlace, attached: Attached, effect: str, seconds: int, report: Asked
    ) -> Executed:
        """A check of what a person has committed: where it writes and what it builds is kept for those after it."""
        workdir, skip = str(place.path), frozenset(attached.created)
        tracked = await asyncio.to_thread(list_tracked, place)
        layer = _layer_of(attached)
        async with locked_build(layer, writes=True) if layer is not None else nullcontext():
            if layer is not None:
                await asyncio.to_thread(_date_tracked, place, layer, tracked)
            before = await asyncio.to_thread(read_states, workdir, skip)
            judged = _only(before, tracked)
            digests = await asyncio.to_thread(read_digests, workdir, list_plain_files(judged))
            done = await self._run(command, workdir, effect, seconds, report, "base")
            after = await asyncio.to_thread(read_states, workdir, skip)
            changed = _really_changed(workdir, list_changed_files(judged, after), digests)
            if layer is not None and done.exit_code in (None, NOT_FOUND):
                drop_layer(layer)
            elif layer is not None and not changed and not done.excess:
                _publish(place, layer, before, after, digests if done.exit_code == 0 else None)
            elif self._sandbox.isolated:
                delete_entries(place, list_created(before, after))
        return done._replace(changed=tuple(changed))

    async def _run(
        self,
        command: Command,
        workdir: str,
        effect: str,
        seconds: int,
        report: Asked,
        purpose: Purpose,
        view: OpenedView | None = None,
    ) -> Executed:
        if self._sandbox.isolated:
            return await self._run_in_sandbox(command, workdir, effect, seconds, report, purpose, view)
        own_bin = find_own_bin(command, workdir, workdir, setup=purpose == "setup")
        env = command_environment(
            resolve_env(self._env), setup=purpose == "setup", online=True, own_bin=own_bin
        )
        # In a sandbox git finds a configuration of ours.
        if command.source == "tester" and command.argv[0] == "git":
            env |= quiet()
        folder, own = os.path.join(workdir, command.cwd), join_environment(env, report.env)
        return await execute(command.argv, folder, own, seconds, effect, cap=report.cap, errors_apart=True)

    async def _run_in_sandbox(
        self,
        command: Command,
        workdir: str,
        effect: str,
        seconds: int,
        report: Asked,
        purpose: Purpose,
        opened: OpenedView | None,
    ) -> Executed:
        network = None if purpose == "setup" or self._network else ()
        try:
            opened = opened or await asyncio.to_thread(OpenedView, workdir, purpose, self._writable)
            with opened as view:
                env = command_environment(
                    resolve_env(self._env),
                    setup=purpose == "setup",
                    home=view.home,
                    online=network is None,
                    own_bin=find_own_bin(command, workdir, view.shown_at, setup=purpose == "setup"),
                )
                reads = (report.folder,) if report.folder else ()
                box = Box(reads=reads, network=network, binds=view.binds, tree=workdir)
                cwd, env = os.path.join(view.shown_at, command.cwd), join_environment(env, report.env)
                async with self._sandbox.wrap(command.argv, box, env, cwd) as boxed:
                    done = await execute(
                        boxed.argv,
                        workdir,
                        boxed.env,
                        seconds,
                        effect,
                        cap=report.cap,
                        errors_apart=True,
                        doors=boxed.doors,
                        space=boxed.space,
                    )
                    if done.excess and boxed.space is not None and purpose in ("setup", "base"):
                        await asyncio.to_thread(_delete_written, boxed.space, workdir)
                return done._replace(changed=tuple(view.changed_links()))
        except (OSError, ValueError) as error:
            return _not_started(f"cannot start {command.argv[0]}: {error}")


def find_own_bin(command: Command, workdir: str, shown_at: str, *, setup: bool) -> OwnBin | None:
    """The `bin` directory that holds the command's program, where setup has made it in this tree.

    One with a file of the commit in it or above it is none: a change could bring programs that stand in for others.
    """
    place, program = find_tree_place(workdir), os.path.normpath(os.path.join(command.cwd, command.argv[0]))
    folder = os.path.dirname(program)
    if place is None or "/" not in command.argv[0] or os.path.basename(folder) not in ("bin", ".bin"):
        return None
    root, top = os.path.dirname(folder), place.path
    if setup:
        of_setup = not any(_is_within(name, root) or _is_within(root, name) for name in list_tracked(place))
    else:
        attached = read_attached(place)
        of_setup = any(_is_within(folder, name) for name in attached.created)
        top = Path(attached.layer, "tree") if attached.layer else top
    if not of_setup or os.path.realpath(top / folder) != os.path.join(os.path.realpath(top), folder):
        return None
    return OwnBin(os.path.join(shown_at, folder), (top / root / "pyvenv.cfg").is_file())


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _delete_written(space: Space, workdir: str) -> None:
    """Frees what a command took that was ended for it: what it wrote to the tree and the project's home."""
    if (place := find_tree_place(workdir)) is not None:
        space.delete_written({str(place.path / name) for name in list_tracked(place)})


def _layer_of(attached: Attached) -> Layer | None:
    return Layer(Path(attached.layer)) if attached.layer else None


def _date_tracked(place: TreePlace, layer: Layer, tracked: Collection[str]) -> None:
    states = read_states(place.path, frozenset((*layer.built_names(),)))
    date_files(place.path, layer, [name for name in list_plain_files(states) if name in tracked])


def _with_changes(done: Executed, before: States, after: States) -> Executed:
    return done._replace(changed=(*done.changed, *list_changed_files(before, after)))


def _only(states: States, names: Collection[str]) -> States:
    """The files of a commit: what a check before this one has left in the tree is not judged."""
    return {name: state for name, state in states.items() if name in names}


def _really_changed(workdir: str, names: list[str], digests: Mapping[str, str]) -> list[str]:
    """Of these files of a person's commit those with other content: writing the same bytes again is harmless there."""
    there = [name for name in names if name in digests and os.path.isfile(os.path.join(workdir, name))]
    now = read_digests(workdir, there)
    return [name for name in names if now.get(name) != digests.get(name, "")]


def _publish(
    place: TreePlace, layer: Layer, before: States, after: States, digests: Mapping[str, str] | None
) -> None:
    """Keeps what a check on the base has left: where it wrote, and its build output with what that was built from."""
    add_writable(place, list_written_folders(before, after))
    publish_build(place, layer, list_created(before, after))
    note_sources(layer, digests)


def _not_started(reason: str) -> Executed:
    return Executed(None, b"", timed_out=False, micros=0, reason=reason)


def resolve_env(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of [env]; one passed through is left out where steersman's own environment lacks it."""
    resolved = {}
    for name, value in env.items():
        own = os.environ.get(value.removeprefix(ENV_REFERENCE)) if value.startswith(ENV_REFERENCE) else value
        if own is not None:
            resolved[name] = own
    return resolved


def join_environment(own: Mapping[str, str], report: Mapping[str, str]) -> dict[str, str]:
    """The report's variables beside the project's: options are appended, the reporter's folder comes first."""
    joined = {**own, **report}
    for name in own.keys() & report.keys():
        joined[name] = (
            f"{report[name]}:{own[name]}" if name == "PYTHONPATH" else f"{own[name]} {report[name]}"
        )
    return joined


def folder_problem(workdir: str, cwd: str) -> str | None:
    """Why a command cannot run in this folder of the tree, or None."""
    if not os.path.isdir(workdir):
        return f"the working directory {workdir} is gone"
    if not cwd:
        return None
    if (trouble := leads_out(workdir, cwd)) is not None:
        return f"cwd: {trouble}"
    return None if os.path.isdir(os.path.join(workdir, cwd)) else f"cwd: {cwd!r} is not a folder of the tree"
