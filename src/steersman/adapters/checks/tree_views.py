"""How the sandbox shows a working tree and a home: what a program finds there, and which of it it may write.

| purpose | the tree | setup layer | build output | home |
|---|---|---|---|---|
| setup | writable | not mounted | not mounted | the project's own, or a copy for a changed tree |
| base | writable | read-only | the project's own | the project's own |
| change | read-only, but for untracked entries of directories in which the base run wrote | read-only | a copy | a copy |
| edit | writable | read-only | a copy | a copy |
| read | read-only | read-only | read-only | none |

Copies are thrown away after the command.
**Invariant:** nothing that a program writes while it judges or makes a change is there for the next one, but for the
tree of the one that makes it.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from steersman.adapters.checks.setup_layers import (
    SANDBOX_HOME,
    WRITABLE_SUBDIRECTORIES,
    AttachedSetup,
    SetupLayer,
    TreePlace,
    find_tree_place,
    read_attached_setup,
    read_writable_directories,
)
from steersman.adapters.storage.durable_files import delete_path
from steersman.ports.sandbox import BindMount

ViewPurpose = Literal["setup", "base", "change", "edit", "read"]
MAX_WRITABLE_DIRECTORIES = 200
MAX_MOUNTED_ENTRIES = 400
# Caches in a home that hold downloads: a check finds them as they are and cannot write them.
DOWNLOAD_CACHES = (
    *(".npm", ".cache/pip", ".cache/uv", ".cache/pypoetry", ".cache/yarn", ".cache/node", ".cache/pnpm"),
    *(".local/share/pnpm", ".local/share/uv", ".yarn", ".bun", "go/pkg/mod", ".cargo/registry", ".cargo/git"),
    *(".cache/ms-playwright", ".cache/Cypress", ".cache/puppeteer", ".gem", ".nuget"),
)


class TreeView(NamedTuple):
    """What to mount for one command; `links` are symbolic links that stand in writable directories."""

    shown_at: str
    binds: tuple[BindMount, ...]
    home: str = ""  # where the home is in the sandbox; nothing where there is none of the project's
    links: tuple[tuple[str, str], ...] = ()

    def changed_links(self) -> list[str]:
        """Links that the command has replaced."""
        return [path for path, t in self.links if not os.path.islink(path) or os.readlink(path) != t]


@contextmanager
def prepare_tree_view(workdir: str, purpose: ViewPurpose, writable: Sequence[str] = ()) -> Iterator[TreeView]:
    """The view of a directory for one command; its copies are removed afterwards."""
    place = find_tree_place(workdir)
    if place is None:
        yield TreeView(workdir, (BindMount(workdir, workdir, writable=purpose != "read"),))
        return
    scratch = Path(tempfile.mkdtemp(prefix=f"{place.path.name}.copy-", dir=place.path.parent))
    try:
        yield _TreeViewBuilder(place, purpose, scratch, tuple(writable)).build_view()
    finally:
        delete_path(scratch)


class OpenTreeView:
    """A view whose copies are made when it is constructed, so that another thread can make them."""

    def __init__(self, workdir: str, purpose: ViewPurpose, writable: Sequence[str] = ()) -> None:
        if not os.path.isdir(workdir):
            raise ValueError(f"the working directory {workdir} is gone")
        self._view = prepare_tree_view(workdir, purpose, writable)
        self._entered = self._view.__enter__()

    def __enter__(self) -> TreeView:
        return self._entered

    def __exit__(self, *error: object) -> None:
        self._view.__exit__(None, None, None)


class _TreeViewBuilder:
    def __init__(
        self, place: TreePlace, purpose: ViewPurpose, scratch: Path, writable: tuple[str, ...]
    ) -> None:
        self._place, self._purpose, self._scratch = place, purpose, scratch
        self._attached: AttachedSetup = read_attached_setup(place)
        self._layer = SetupLayer(Path(self._attached.layer)) if self._attached.layer else None
        self._writable = writable
        self._links: list[tuple[str, str]] = []

    def build_view(self) -> TreeView:
        place = self._place
        binds = [
            BindMount(str(place.path), place.shown_at, writable=self._purpose in ("setup", "base", "edit"))
        ]
        if self._purpose == "change":
            for directory in self._writable_folders():
                binds += self._mixed_folder(self._place.path / directory, directory)
        if self._purpose != "setup":
            binds += self._layer_binds()
        home = () if self._purpose == "read" else tuple(self._home_binds())
        return TreeView(
            place.shown_at, (*binds, *home), home=SANDBOX_HOME if home else "", links=tuple(self._links)
        )

    # -- the tree ------------------------------------------------------------------------------------------------------

    def _writable_folders(self) -> list[str]:
        recorded = read_writable_directories(self._place)
        named_directories = (name.strip("/") for name in self._writable)
        candidates = dict.fromkeys(
            (*recorded, *(name for name in named_directories if name not in self._attached.created))
        )
        existing = [name for name in candidates if _is_unlinked_directory(self._place.path / name)]
        return sorted(existing, key=lambda name: name.count("/"))[:MAX_WRITABLE_DIRECTORIES]

    def _mixed_folder(self, source: Path, directory: str) -> Iterator[BindMount]:
        """A directory in which new entries can be made, while each entry that is there is read-only."""
        stand_in = self._new_copy()
        stand_in.mkdir()
        yield self._bind(str(stand_in), directory, writable=True)
        for entry in os.scandir(source):
            name, target = _join_relative_name(directory, entry.name), stand_in / entry.name
            if entry.is_symlink():
                target.symlink_to(os.readlink(entry))
                self._links.append((str(target), os.readlink(entry)))
            else:
                target.mkdir() if entry.is_dir() else target.touch()
                yield self._bind(entry.path, name)

    def _layer_binds(self) -> Iterator[BindMount]:
        if self._layer is None:
            return
        built = self._layer.built_names()
        for name in self._attached.created:
            if name in built:
                yield self._build_bind(self._layer.build / name, name)
            else:
                yield from self._created_binds(self._layer.tree / name, name)

    def _created_binds(self, source: Path, name: str) -> Iterator[BindMount]:
        if source.is_symlink():
            return  # a link of the tree itself
        if name in {writable_name.strip("/") for writable_name in self._writable} and self._purpose != "read":
            yield self._bind(str(self._bind_copy(source)), name, writable=True)
            return
        if self._purpose != "read" and source.name in WRITABLE_SUBDIRECTORIES and _has_few_entries(source):
            yield from self._mixed_folder(source, name)  # some tools ask whether they may write there
        else:
            yield self._bind(str(source), name)
        if self._purpose != "read":
            for inner in WRITABLE_SUBDIRECTORIES.get(source.name, ()):
                if _is_unlinked_directory(source / inner):
                    empty = self._new_copy()
                    empty.mkdir()
                    yield self._bind(str(empty), f"{name}/{inner}", writable=True)

    def _build_bind(self, source: Path, name: str) -> BindMount:
        match self._purpose:
            case "base":
                return self._bind(str(source), name, writable=True)
            case "read":
                return self._bind(str(source), name)
            case _:
                return self._bind(str(self._bind_copy(source)), name, writable=True)

    def _bind(self, source: str, name: str, *, writable: bool = False) -> BindMount:
        mount_point = self._place.shown_at
        return BindMount(source, f"{mount_point}/{name}" if name else mount_point, writable=writable)

    # -- the home ------------------------------------------------------------------------------------------------------

    def _home_binds(self) -> Iterator[BindMount]:
        home = self._place.home
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        uses_own_home = self._purpose == "base" or (self._purpose == "setup" and not self._attached.changed)
        if uses_own_home:
            yield BindMount(str(home), SANDBOX_HOME, writable=True)
            return
        copy = self._new_copy()
        copy.mkdir(mode=0o700)
        yield BindMount(str(copy), SANDBOX_HOME, writable=True)
        yield from self._copied_home(home, copy, "")

    def _copied_home(self, source: Path, target: Path, prefix: str) -> Iterator[BindMount]:
        for entry in os.scandir(source):
            name = _join_relative_name(prefix, entry.name)
            if name in DOWNLOAD_CACHES and self._purpose != "setup" and entry.is_dir(follow_symlinks=False):
                (target / entry.name).mkdir()
                yield BindMount(entry.path, f"{SANDBOX_HOME}/{name}")
            elif any(cache.startswith(f"{name}/") for cache in DOWNLOAD_CACHES):
                (target / entry.name).mkdir()
                yield from self._copied_home(Path(entry.path), target / entry.name, name)
            else:
                copy_tree(Path(entry.path), target / entry.name)

    # -- copies --------------------------------------------------------------------------------------------------------

    def _new_copy(self) -> Path:
        return self._scratch / str(sum(1 for _ in self._scratch.iterdir()))

    def _bind_copy(self, source: Path) -> Path:
        target = self._new_copy()
        copy_tree(source, target)
        return target


def copy_tree(source: Path, target: Path) -> None:
    """Copies a file or directory with its dates and links; shares blocks where the file system can."""
    process = subprocess.run(
        ["cp", "-a", "--reflink=auto", "--", str(source), str(target)], capture_output=True, check=False
    )
    problems = process.stderr.decode("utf-8", "replace").splitlines()
    # A cache may lose files while it is copied: what is left is still a cache.
    if serious_problems := [line for line in problems if "No such file or directory" not in line]:
        raise OSError(f"cannot copy {source}: {serious_problems[0][:500]}")


def _has_few_entries(directory: Path) -> bool:
    """Whether each entry can be a mount of its own: their cost grows with the square of their number."""
    return sum(not entry.is_symlink() for entry in os.scandir(directory)) <= MAX_MOUNTED_ENTRIES


def _is_unlinked_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _join_relative_name(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name
