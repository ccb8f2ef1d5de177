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
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from steersman.adapters.file_states import (
    States,
    list_changed_files,
    list_created,
    list_plain_files,
    read_digests,
    read_states,
)
from steersman.adapters.git_cli import run
from steersman.adapters.removal import delete
from steersman.adapters.tree_places import TreePlace
from steersman.errors import WorkspaceError

# Files that say what is installed, wherever they are in the tree.
# fmt: off
INPUTS = (
    "uv.lock", "poetry.lock", "pdm.lock", "pylock*.toml", "Pipfile", "Pipfile.lock", "*requirements*.txt", "tox.ini",
    "requirements*.in", "constraints*.txt", "pyproject.toml", "setup.py", "setup.cfg", "environment.yml",
    ".python-version", ".tool-versions", "package.json", "package-lock.json", "npm-shrinkwrap.json", "lerna.json",
    "pnpm-lock.yaml", "pnpm-workspace.yaml", "yarn.lock", ".yarnrc.yml", ".npmrc", "bun.lock", "bun.lockb", ".nvmrc",
    "go.mod", "go.sum", "go.work", "go.work.sum", "Cargo.toml", "Cargo.lock", "rust-toolchain*", "build.gradle*",
    "settings.gradle*", "gradle.properties", "gradle-wrapper.properties", "libs.versions.toml", "pom.xml",
    "maven-wrapper.properties", "Gemfile", "Gemfile.lock", "composer.json", "composer.lock", "mix.lock",
)
# What package managers create; anything else that setup leaves in a tree was made from its sources.
DEPENDENCIES = (
    ".venv", "venv", "env", ".tox", ".nox", "*.egg-info", "*.dist-info", "__pycache__", "node_modules", ".yarn",
    ".pnp.cjs", ".pnp.loader.mjs", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "uv.lock", "poetry.lock",
    "Cargo.lock", "go.sum", "go.work.sum", "vendor", ".gradle", ".mvn", ".bundle", ".cache", ".npm",
)
# fmt: on
BUILD_OUTPUT = ("target", ".gradle", "build/.gradle")  # kept from setup and checks on the base, and copied
WRITABLE_INSIDE = {"node_modules": (".cache", ".vite", ".vite-temp", ".vitest", ".tmp")}
KEPT_LAYERS = 6
KEPT_SECONDS = 14 * 86_400
OLD_TIME = 1_000_000_000  # seconds: earlier than any build
T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a layer."""

    created: tuple[str, ...] = ()  # relative names in the tree, the outermost ones
    from_sources: bool = False


class Attached(msgspec.Struct, frozen=True, kw_only=True):
    """What was set up for one tree; kept beside it. Without a sandbox there is no layer, and it is in the tree itself."""

    layer: str = ""
    created: tuple[str, ...] = ()
    changed: bool = True  # an agent wrote what is in the tree


class Layer(NamedTuple):
    """One layer on disk."""

    path: Path

    @property
    def tree(self) -> Path:
        return self.path / "tree"

    @property
    def build(self) -> Path:
        return self.path / "build"

    def read(self) -> Record | None:
        """What is in it; None where it is not there or was not finished."""
        return _load(self.path / "record.json", Record)

    def built_names(self) -> list[str]:
        """The build output that is kept here."""
        return [name for name in BUILD_OUTPUT if (self.build / name).is_dir()]


def read_writable(place: TreePlace) -> tuple[str, ...]:
    """Directories of the tree in which checks on the base have created or removed entries."""
    return _load(place.setups / "writable.json", tuple[str, ...]) or ("",)


def add_writable(place: TreePlace, folders: Iterable[str]) -> None:
    """Adds directories to those."""
    known = set(read_writable(place))
    if not known.issuperset(folders):
        _save(place.setups / "writable.json", tuple(sorted(known.union(folders))))


def layer_key(steps: Sequence[tuple[str, ...]], env: Mapping[str, str], top: Path, states: States) -> str:
    """The digest of the setup steps, the variables of `[env]` and all files that say what is installed."""
    names = sorted(name for name in list_plain_files(states) if _is_input(name, steps))
    inputs = [*map(list, steps), sorted(env.items()), sorted(read_digests(str(top), names).items())]
    return hashlib.sha256(msgspec.json.encode(inputs)).hexdigest()[:24]


def find_layer(place: TreePlace, key: str, tree: str) -> Layer | None:
    """The finished layer for this key; one that was built from sources fits only the tree with this digest."""
    for name in (key, _of_tree(key, tree)):
        layer = Layer(place.setups / name)
        record = layer.read()
        if record is not None and (name != key or not record.from_sources):
            os.utime(layer.path)
            return layer
    return None


def keep_layer(
    place: TreePlace, key: str, tree: str, before: States, after: States, *, shared: bool
) -> Layer:
    """Moves what setup has created out of the tree into a layer, shared or for this tree alone."""
    created = tuple(sorted(name for name in list_created(before, after) if name not in BUILD_OUTPUT))
    record = Record(created=created, from_sources=any(map(_is_from_sources, created)))
    name = _of_tree(key, tree) if record.from_sources else key
    layer = Layer(place.setups / name if shared else place.beside("setup"))
    delete(layer.path)
    for folder in (layer.tree, layer.build):
        folder.mkdir(parents=True, mode=0o700)
    for entry in created:
        _move(place.path / entry, layer.tree / entry)
        _make_writable_inside(layer.tree / entry)
    _move_build_output(place, layer)
    _save(layer.path / "record.json", record)
    _remove_old(place.setups, layer)
    return layer


def attach_layer(place: TreePlace, layer: Layer, *, changed: bool) -> None:
    """Remembers the layer beside the tree, and makes the places in the tree at which it is mounted."""
    record = layer.read() or Record()
    built = [name for name in layer.built_names() if name not in record.created]
    for name in record.created:
        _make_mount_point(place.path / name, layer.tree / name)
    for name in built:
        _make_mount_point(place.path / name, layer.build / name)
    note_setup(place, Attached(layer=str(layer.path), created=(*record.created, *built), changed=changed))


def note_setup(place: TreePlace, attached: Attached) -> None:
    """Remembers beside the tree what was set up for it."""
    _save(place.beside("setup.json"), attached)


def list_tracked(place: TreePlace) -> frozenset[str]:
    """The files of the commit that a tree was made from."""
    answer = run(("ls-files", "-z"), place.path, _git_places(place))
    if answer.code != 0:
        raise WorkspaceError(f"git cannot list the files of {place.path}: {answer.err.strip()[:300]}")
    return frozenset(os.fsdecode(name) for name in answer.out.split(b"\0")[:-1])


def _git_places(place: TreePlace) -> dict[str, str]:
    return {
        "GIT_DIR": str(place.beside("git")),
        "GIT_WORK_TREE": str(place.path),
        "GIT_INDEX_FILE": str(place.beside("index")),
    }


def restore_files(place: TreePlace, before: States) -> States:
    """Undoes what setup has changed in files of the tree, such as a lock file written anew; returns what is there then."""
    after = read_states(place.path)
    if names := list_changed_files(before, after):
        feed = b"".join(os.fsencode(name) + b"\0" for name in names)
        answer = run(("checkout-index", "--force", "-z", "--stdin"), place.path, _git_places(place), feed)
        if answer.code != 0:
            raise WorkspaceError(
                f"setup changed {names[0]}, which cannot be restored: {answer.err.strip()[:300]}"
            )
        after = read_states(place.path)
    return after


def read_attached(place: TreePlace) -> Attached:
    """What was set up for a tree; nothing where it was not."""
    return _load(place.beside("setup.json"), Attached) or Attached()


def publish_build(place: TreePlace, layer: Layer, created: Iterable[str]) -> None:
    """Moves the build output that a check on the base has left in the tree into the layer, and deletes the rest."""
    _move_build_output(place, layer)
    delete_entries(place, created)
    attach_layer(place, layer, changed=False)


def delete_entries(place: TreePlace, names: Iterable[str]) -> None:
    """Deletes entries of a tree that a check has created: a check of a change finds none of them either."""
    for name in names:
        delete(place.path / name)


def drop_layer(layer: Layer) -> None:
    """Forgets a layer that does not work any more: the next tree is set up from scratch."""
    delete(layer.path / "record.json")


def _move_build_output(place: TreePlace, layer: Layer) -> None:
    for name in BUILD_OUTPUT:
        source, goal = place.path / name, layer.build / name
        if source.is_dir() and not source.is_symlink() and not goal.exists() and any(source.iterdir()):
            _move(source, goal)


def note_sources(layer: Layer, digests: Mapping[str, str] | None) -> None:
    """Remembers the files that the build output was built from; None where that is not known."""
    if digests is None:
        delete(layer.path / "sources.json")
    else:
        _save(layer.path / "sources.json", dict(digests))


def date_files(top: Path, layer: Layer, names: Iterable[str]) -> None:
    """Gives files that are as they were when the build output was built an old date, and all others a new one.

    Build tools compare dates. Without this every fresh tree is built from scratch, and with dates of another time a
    stale build would pass for a new one: the caller holds the lock of the build output.
    """
    if not layer.built_names():
        return
    built_from = _load(layer.path / "sources.json", dict[str, str]) or {}
    for name, digest in read_digests(str(top), names).items():
        as_built = built_from.get(name) == digest
        if as_built or os.stat(top / name).st_mtime == OLD_TIME:
            os.utime(top / name, (OLD_TIME, OLD_TIME) if as_built else None)


@contextlib.asynccontextmanager
async def locked_layer(place: TreePlace, key: str) -> AsyncIterator[None]:
    """Only one process builds a layer at a time; the others wait for it."""
    place.setups.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with _locked(place.setups / f".{key}.lock", fcntl.LOCK_EX):
        yield


@contextlib.asynccontextmanager
async def locked_build(layer: Layer, *, writes: bool) -> AsyncIterator[None]:
    """A check on the base has the build output for itself; nobody copies it while it is written."""
    async with _locked(layer.path / ".build.lock", fcntl.LOCK_EX if writes else fcntl.LOCK_SH):
        yield


@contextlib.asynccontextmanager
async def _locked(path: Path, kind: int) -> AsyncIterator[None]:
    with open(path, "wb") as file:  # noqa: ASYNC230  a small local file
        while True:
            try:
                fcntl.flock(file, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(0.2)
        yield


def _is_input(name: str, steps: Sequence[tuple[str, ...]]) -> bool:
    base = name.rpartition("/")[2]
    named = any(word.removeprefix("./") in (name, base) for step in steps for word in step)
    return named or any(fnmatch(base, pattern) for pattern in INPUTS)


def _is_from_sources(name: str) -> bool:
    base = name.rpartition("/")[2]
    return not any(fnmatch(base, pattern) for pattern in DEPENDENCIES)


def _of_tree(key: str, tree: str) -> str:
    return f"{key}-{tree[:16]}"


def _make_writable_inside(entry: Path) -> None:
    for name in WRITABLE_INSIDE.get(entry.name, ()):
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


def _move(source: Path, goal: Path) -> None:
    goal.parent.mkdir(parents=True, exist_ok=True)
    source.rename(goal)


def _remove_old(setups: Path, newest: Layer) -> None:
    """Keeps the layers that were used last, and all that were used within two weeks of now."""
    layers = [p for p in setups.iterdir() if p.is_dir() and p != newest.path] if setups.is_dir() else []
    layers.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in layers[KEPT_LAYERS:]:
        if time.time() - path.stat().st_mtime > KEPT_SECONDS:
            delete(path)


def _load(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None


def _save(path: Path, value: object) -> None:
    young = path.with_name(f".{path.name}.{os.getpid()}.new")
    young.write_bytes(msgspec.json.encode(value))
    young.replace(path)
