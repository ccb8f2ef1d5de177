"""What `[worktree] setup` creates, kept apart from the trees it was created in and reused while its inputs are the same.

A layer is a directory: `tree/` holds what setup created (dependencies, generated files), `build/` the build output of
checks on the base, `record.json` what is in it. It is named after the digest of the setup steps and of the files that
say what is installed. A layer that was built from the project's own sources belongs to one tree only.
**Invariant:** only setup and checks of a tree that no agent has written may change a shared layer.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from steersman.adapters.checks.file_states import (
    FileStates,
    list_changed_files,
    list_created_entries,
    list_plain_files,
    read_file_digests,
    read_file_states,
)
from steersman.adapters.git.git_command import run_git
from steersman.adapters.storage.durable_files import delete_path
from steersman.errors import WorkspaceError
from steersman.judges.ecosystems import ECOSYSTEMS

# ── tree places ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# Where a run's working tree is outside and inside the sandbox, and where its setup and caches are kept.
#
# Every tree of a project is mounted at one path in the sandbox, so that what was set up once fits all of them: scripts of
# a virtual environment, links of a package manager and build fingerprints hold absolute paths.


WORKTREES_DIRECTORY, SETUPS_DIRECTORY, CACHE_DIRECTORY = "worktrees", "setups", "cache"
SANDBOX_TREE_ROOT = "/steersman"
SANDBOX_HOME = "/steersman-home"  # of every command in the sandbox


class TreePlace(NamedTuple):
    """A working tree of a run: `<state>/worktrees/<run>/<number>`."""

    path: Path
    state: Path

    @property
    def shown_at(self) -> str:
        """The path that programs in the sandbox see."""
        name = self.state.name.rpartition("-")[0] or self.state.name
        return f"{SANDBOX_TREE_ROOT}/{re.sub(r'[^A-Za-z0-9._-]', '_', name)}"

    @property
    def setup_layers_directory(self) -> Path:
        """The setup layers of the project."""
        return self.state / SETUPS_DIRECTORY

    @property
    def home(self) -> Path:
        """The home of setup steps and checks on the base: it holds the project's caches."""
        return self.state / CACHE_DIRECTORY / "home"

    def sibling_path(self, ending: str) -> Path:
        """A file or directory next to the tree, removed with it and out of reach of what works inside."""
        return self.path.with_name(f"{self.path.name}.{ending}")


def find_tree_place(workdir: str | os.PathLike[str]) -> TreePlace | None:
    """The place of a run's tree; None for any other directory."""
    path = Path(os.path.realpath(workdir))
    parts = path.parts
    if len(parts) < 5 or parts[-3] != WORKTREES_DIRECTORY or not parts[-1].isdecimal():
        return None
    return TreePlace(path, path.parents[2])


def visible_tree_path(workdir: str, *, isolated: bool) -> str:
    """Where a program finds its working directory: at the fixed path in a sandbox, else where it is."""
    place = find_tree_place(workdir) if isolated else None
    return place.shown_at if place is not None else workdir


# ── setup layers ────────────────────────────────────────────────────────────────────────────────


_LOCK_FILES = tuple(name for each in ECOSYSTEMS for name in each.lock_files.split())
# Files that say what is installed, wherever they are in the tree.
INSTALL_INPUT_PATTERNS = (
    *_LOCK_FILES,
    *(name for each in ECOSYSTEMS for name in each.install_inputs.split()),
)
# What package managers create; anything else that setup leaves in a tree was made from its sources.
DEPENDENCY_PATTERNS = (
    *_LOCK_FILES,
    *(name for each in ECOSYSTEMS for name in each.installed_entries.split()),
)
BUILD_OUTPUT_NAMES = ("target", ".gradle", "build/.gradle")  # kept from setup and base checks, and copied
WRITABLE_SUBDIRECTORIES = {"node_modules": (".cache", ".vite", ".vite-temp", ".vitest", ".tmp")}
MIN_KEPT_LAYERS = 6
LAYER_RETENTION_SECONDS = 14 * 86_400
UNCHANGED_FILE_TIME = 1_000_000_000  # seconds: earlier than any build
T = TypeVar("T")


class LayerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a layer."""

    created: tuple[str, ...] = ()  # relative names in the tree, the outermost ones
    from_sources: bool = False


class AttachedSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What was set up for one tree; kept beside it. Without a sandbox there is no layer, and it is in the tree itself."""

    layer: str = ""
    created: tuple[str, ...] = ()
    changed: bool = True  # an agent wrote what is in the tree


class SetupLayer(NamedTuple):
    """One layer on disk."""

    path: Path

    @property
    def tree(self) -> Path:
        return self.path / "tree"

    @property
    def build(self) -> Path:
        return self.path / "build"

    def read(self) -> LayerRecord | None:
        """What is in it; None where it is not there or was not finished."""
        return _load_layer_json(self.path / "record.json", LayerRecord)

    def built_names(self) -> list[str]:
        """The build output that is kept here."""
        return [name for name in BUILD_OUTPUT_NAMES if (self.build / name).is_dir()]


def read_writable_directories(place: TreePlace) -> tuple[str, ...]:
    """Directories of the tree in which checks on the base have created or removed entries."""
    return _load_layer_json(place.setup_layers_directory / "writable.json", tuple[str, ...]) or ("",)


def add_writable_directories(place: TreePlace, directories: Iterable[str]) -> None:
    """Adds directories to those."""
    known = set(read_writable_directories(place))
    if not known.issuperset(directories):
        _save_layer_json(
            place.setup_layers_directory / "writable.json", tuple(sorted(known.union(directories)))
        )


def setup_layer_key(
    steps: Sequence[tuple[str, ...]], env: Mapping[str, str], top: Path, states: FileStates
) -> str:
    """The cache key of a setup: the digest of its steps, of `[env]` and of all files that say what is installed."""
    names = sorted(name for name in list_plain_files(states) if _is_install_input(name, steps))
    inputs = [*map(list, steps), sorted(env.items()), sorted(read_file_digests(str(top), names).items())]
    return hashlib.sha256(msgspec.json.encode(inputs)).hexdigest()[:24]


def find_setup_layer(place: TreePlace, key: str, tree_digest: str) -> SetupLayer | None:
    """The finished layer for this key; one that was built from sources fits only the tree with this digest."""
    for name in (key, _tree_layer_name(key, tree_digest)):
        layer = SetupLayer(place.setup_layers_directory / name)
        record = layer.read()
        if record is not None and (name != key or not record.from_sources):
            os.utime(layer.path)
            return layer
    return None


def store_setup_layer(
    place: TreePlace, key: str, tree_digest: str, before: FileStates, after: FileStates, *, shared: bool
) -> SetupLayer:
    """Moves what setup has created out of the tree into a layer, shared or for this tree alone."""
    created = tuple(
        sorted(name for name in list_created_entries(before, after) if name not in BUILD_OUTPUT_NAMES)
    )
    record = LayerRecord(created=created, from_sources=any(map(_is_from_sources, created)))
    name = _tree_layer_name(key, tree_digest) if record.from_sources else key
    layer = SetupLayer(place.setup_layers_directory / name if shared else place.sibling_path("setup"))
    delete_path(layer.path)
    for directory in (layer.tree, layer.build):
        directory.mkdir(parents=True, mode=0o700)
    for entry in created:
        _move_tree_entry(place.path / entry, layer.tree / entry)
        _make_writable_subdirectories(layer.tree / entry)
    _move_build_output(place, layer)
    _save_layer_json(layer.path / "record.json", record)
    _remove_old_layers(place.setup_layers_directory, layer)
    return layer


def attach_setup_layer(place: TreePlace, layer: SetupLayer, *, changed: bool) -> None:
    """Remembers the layer beside the tree, and makes the places in the tree at which it is mounted."""
    record = layer.read() or LayerRecord()
    built = [name for name in layer.built_names() if name not in record.created]
    for name in record.created:
        _make_mount_point(place.path / name, layer.tree / name)
    for name in built:
        _make_mount_point(place.path / name, layer.build / name)
    record_attached_setup(
        place, AttachedSetup(layer=str(layer.path), created=(*record.created, *built), changed=changed)
    )


def record_attached_setup(place: TreePlace, attached: AttachedSetup) -> None:
    """Remembers beside the tree what was set up for it."""
    _save_layer_json(place.sibling_path("setup.json"), attached)


def list_tracked_files(place: TreePlace) -> frozenset[str]:
    """The files of the commit that a tree was made from."""
    answer = run_git(("ls-files", "-z"), place.path, _tree_git_environment(place))
    if answer.code != 0:
        raise WorkspaceError(f"git cannot list the files of {place.path}: {answer.err.strip()[:300]}")
    return frozenset(os.fsdecode(name) for name in answer.out.split(b"\0")[:-1])


def _tree_git_environment(place: TreePlace) -> dict[str, str]:
    return {
        "GIT_DIR": str(place.sibling_path("git")),
        "GIT_WORK_TREE": str(place.path),
        "GIT_INDEX_FILE": str(place.sibling_path("index")),
    }


def restore_changed_files(place: TreePlace, before: FileStates) -> FileStates:
    """Undoes what setup has changed in files of the tree, such as a rewritten lock file; returns what is there then."""
    after = read_file_states(place.path)
    if names := list_changed_files(before, after):
        feed = b"".join(os.fsencode(name) + b"\0" for name in names)
        answer = run_git(
            ("checkout-index", "--force", "-z", "--stdin"), place.path, _tree_git_environment(place), feed
        )
        if answer.code != 0:
            raise WorkspaceError(
                f"setup changed {names[0]}, which cannot be restored: {answer.err.strip()[:300]}"
            )
        after = read_file_states(place.path)
    return after


def read_attached_setup(place: TreePlace) -> AttachedSetup:
    """What was set up for a tree; nothing where it was not."""
    return _load_layer_json(place.sibling_path("setup.json"), AttachedSetup) or AttachedSetup()


def publish_build_output(place: TreePlace, layer: SetupLayer, created: Iterable[str]) -> None:
    """Moves the build output that a check on the base has left in the tree into the layer, and deletes the rest."""
    _move_build_output(place, layer)
    delete_tree_entries(place, created)
    attach_setup_layer(place, layer, changed=False)


def delete_tree_entries(place: TreePlace, names: Iterable[str]) -> None:
    """Deletes entries of a tree that a check has created: a check of a change finds none of them either."""
    for name in names:
        delete_path(place.path / name)


def invalidate_setup_layer(layer: SetupLayer) -> None:
    """Forgets a layer that does not work any more: the next tree is set up from scratch."""
    delete_path(layer.path / "record.json")


def _move_build_output(place: TreePlace, layer: SetupLayer) -> None:
    for name in BUILD_OUTPUT_NAMES:
        source, target = place.path / name, layer.build / name
        if source.is_dir() and not source.is_symlink() and not target.exists() and any(source.iterdir()):
            _move_tree_entry(source, target)


def record_build_sources(layer: SetupLayer, digests: Mapping[str, str] | None) -> None:
    """Remembers the files that the build output was built from; None where that is not known."""
    if digests is None:
        delete_path(layer.path / "sources.json")
    else:
        _save_layer_json(layer.path / "sources.json", dict(digests))


def date_files_for_build(top: Path, layer: SetupLayer, names: Iterable[str]) -> None:
    """Gives files that are as they were when the build output was built an old date, and all others a new one.

    Build tools compare dates. Without this every fresh tree is built from scratch, and with dates of another time a
    stale build would pass for a new one: the caller holds the lock of the build output.
    """
    if not layer.built_names():
        return
    built_from = _load_layer_json(layer.path / "sources.json", dict[str, str]) or {}
    for name, digest in read_file_digests(str(top), names).items():
        is_unchanged = built_from.get(name) == digest
        if is_unchanged or os.stat(top / name).st_mtime == UNCHANGED_FILE_TIME:
            os.utime(top / name, (UNCHANGED_FILE_TIME, UNCHANGED_FILE_TIME) if is_unchanged else None)


@contextlib.asynccontextmanager
async def lock_setup_layer(place: TreePlace, key: str) -> AsyncIterator[None]:
    """Only one process builds a layer at a time; the others wait for it."""
    place.setup_layers_directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with _hold_file_lock(place.setup_layers_directory / f".{key}.lock", fcntl.LOCK_EX):
        yield


@contextlib.asynccontextmanager
async def lock_build_output(layer: SetupLayer, *, writes: bool) -> AsyncIterator[None]:
    """A check on the base has the build output for itself; it is not copied while it is written."""
    async with _hold_file_lock(layer.path / ".build.lock", fcntl.LOCK_EX if writes else fcntl.LOCK_SH):
        yield


@contextlib.asynccontextmanager
async def _hold_file_lock(path: Path, kind: int) -> AsyncIterator[None]:
    with open(path, "wb") as file:  # noqa: ASYNC230  a small local file
        while True:
            try:
                fcntl.flock(file, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(0.2)
        yield


def _is_install_input(name: str, steps: Sequence[tuple[str, ...]]) -> bool:
    file_name = name.rpartition("/")[2]
    is_named = any(word.removeprefix("./") in (name, file_name) for step in steps for word in step)
    return is_named or any(fnmatch(file_name, pattern) for pattern in INSTALL_INPUT_PATTERNS)


def _is_from_sources(name: str) -> bool:
    file_name = name.rpartition("/")[2]
    return not any(fnmatch(file_name, pattern) for pattern in DEPENDENCY_PATTERNS)


def _tree_layer_name(key: str, tree_digest: str) -> str:
    return f"{key}-{tree_digest[:16]}"


def _make_writable_subdirectories(entry: Path) -> None:
    for name in WRITABLE_SUBDIRECTORIES.get(entry.name, ()):
        if entry.is_dir() and not entry.is_symlink():
            (entry / name).mkdir(exist_ok=True)


def _make_mount_point(path: Path, source: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        return
    if source.is_symlink():
        path.symlink_to(os.readlink(source))
    elif source.is_dir():
        path.mkdir()
    else:
        path.touch()


def _move_tree_entry(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)


def _remove_old_layers(setups: Path, newest: SetupLayer) -> None:
    """Keeps the layers that were used last, and all that were used within two weeks of now."""
    layers = (
        [layer_path for layer_path in setups.iterdir() if layer_path.is_dir() and layer_path != newest.path]
        if setups.is_dir()
        else []
    )
    layers.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in layers[MIN_KEPT_LAYERS:]:
        if time.time() - path.stat().st_mtime > LAYER_RETENTION_SECONDS:
            delete_path(path)


def _load_layer_json(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None


def _save_layer_json(path: Path, value: object) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    temporary.write_bytes(msgspec.json.encode(value))
    temporary.replace(path)
