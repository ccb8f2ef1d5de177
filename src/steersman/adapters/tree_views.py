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

from steersman.adapters.removal import delete
from steersman.adapters.setup_layers import WRITABLE_INSIDE, Attached, Layer, read_attached, read_writable
from steersman.adapters.tree_places import HOME, TreePlace, find_tree_place
from steersman.ports.sandbox import Bind

Purpose = Literal["setup", "base", "change", "edit", "read"]
MOST_WRITABLE = 200
MOST_ENTRIES = 400
# Caches in a home that hold downloads: a check finds them as they are and cannot write them.
DOWNLOADS = (
    *(".npm", ".cache/pip", ".cache/uv", ".cache/pypoetry", ".cache/yarn", ".cache/node", ".cache/pnpm"),
    *(".local/share/pnpm", ".local/share/uv", ".yarn", ".bun", "go/pkg/mod", ".cargo/registry", ".cargo/git"),
    *(".cache/ms-playwright", ".cache/Cypress", ".cache/puppeteer", ".gem", ".nuget"),
)


class TreeView(NamedTuple):
    """What to mount for one command; `links` are symbolic links that stand in writable directories."""

    shown_at: str
    binds: tuple[Bind, ...]
    home: str = ""  # where the home is in the sandbox; nothing where there is none of the project's
    links: tuple[tuple[str, str], ...] = ()

    def changed_links(self) -> list[str]:
        """Links that the command has replaced."""
        return [path for path, goal in self.links if not os.path.islink(path) or os.readlink(path) != goal]


@contextmanager
def prepared_view(workdir: str, purpose: Purpose, writable: Sequence[str] = ()) -> Iterator[TreeView]:
    """The view of a directory for one command; its copies are removed afterwards."""
    place = find_tree_place(workdir)
    if place is None:
        yield TreeView(workdir, (Bind(workdir, workdir, writable=purpose != "read"),))
        return
    scratch = Path(tempfile.mkdtemp(prefix=f"{place.path.name}.copy-", dir=place.path.parent))
    try:
        yield _Plan(place, purpose, scratch, tuple(writable)).view()
    finally:
        delete(scratch)


class OpenedView:
    """A view whose copies are made when it is constructed, so that another thread can make them."""

    def __init__(self, workdir: str, purpose: Purpose, writable: Sequence[str] = ()) -> None:
        if not os.path.isdir(workdir):
            raise ValueError(f"the working directory {workdir} is gone")
        self._view = prepared_view(workdir, purpose, writable)
        self._entered = self._view.__enter__()

    def __enter__(self) -> TreeView:
        return self._entered

    def __exit__(self, *error: object) -> None:
        self._view.__exit__(None, None, None)


class _Plan:
    def __init__(self, place: TreePlace, purpose: Purpose, scratch: Path, writable: tuple[str, ...]) -> None:
        self._place, self._purpose, self._scratch = place, purpose, scratch
        self._attached: Attached = read_attached(place)
        self._layer = Layer(Path(self._attached.layer)) if self._attached.layer else None
        self._writable = writable
        self._links: list[tuple[str, str]] = []

    def view(self) -> TreeView:
        place = self._place
        binds = [Bind(str(place.path), place.shown_at, writable=self._purpose in ("setup", "base", "edit"))]
        if self._purpose == "change":
            for folder in self._writable_folders():
                binds += self._mixed_folder(self._place.path / folder, folder)
        if self._purpose != "setup":
            binds += self._layer_binds()
        home = () if self._purpose == "read" else tuple(self._home_binds())
        return TreeView(place.shown_at, (*binds, *home), home=HOME if home else "", links=tuple(self._links))

    # -- the tree ------------------------------------------------------------------------------------------------------

    def _writable_folders(self) -> list[str]:
        recorded = read_writable(self._place)
        named = (name.strip("/") for name in self._writable)
        wanted = dict.fromkeys((*recorded, *(name for name in named if name not in self._attached.created)))
        there = [name for name in wanted if _is_folder(self._place.path / name)]
        return sorted(there, key=lambda name: name.count("/"))[:MOST_WRITABLE]

    def _mixed_folder(self, source: Path, folder: str) -> Iterator[Bind]:
        """A directory in which new entries can be made, while each entry that is there is read-only."""
        stand_in = self._new_copy()
        stand_in.mkdir()
        yield self._bind(str(stand_in), folder, writable=True)
        for entry in os.scandir(source):
            name, goal = _joined(folder, entry.name), stand_in / entry.name
            if entry.is_symlink():
                goal.symlink_to(os.readlink(entry))
                self._links.append((str(goal), os.readlink(entry)))
            else:
                goal.mkdir() if entry.is_dir() else goal.touch()
                yield self._bind(entry.path, name)

    def _layer_binds(self) -> Iterator[Bind]:
        if self._layer is None:
            return
        built = self._layer.built_names()
        for name in self._attached.created:
            if name in built:
                yield self._build_bind(self._layer.build / name, name)
            else:
                yield from self._created_binds(self._layer.tree / name, name)

    def _created_binds(self, source: Path, name: str) -> Iterator[Bind]:
        if source.is_symlink():
            return  # a link of the tree itself
        if name in {wanted.strip("/") for wanted in self._writable} and self._purpose != "read":
            yield self._bind(str(self._copied(source)), name, writable=True)
            return
        if self._purpose != "read" and source.name in WRITABLE_INSIDE and _is_short(source):
            yield from self._mixed_folder(source, name)  # some tools ask whether they may write there
        else:
            yield self._bind(str(source), name)
        if self._purpose != "read":
            for inner in WRITABLE_INSIDE.get(source.name, ()):
                if _is_folder(source / inner):
                    empty = self._new_copy()
                    empty.mkdir()
                    yield self._bind(str(empty), f"{name}/{inner}", writable=True)

    def _build_bind(self, source: Path, name: str) -> Bind:
        match self._purpose:
            case "base":
                return self._bind(str(source), name, writable=True)
            case "read":
                return self._bind(str(source), name)
            case _:
                return self._bind(str(self._copied(source)), name, writable=True)

    def _bind(self, source: str, name: str, *, writable: bool = False) -> Bind:
        at = self._place.shown_at
        return Bind(source, f"{at}/{name}" if name else at, writable=writable)

    # -- the home ------------------------------------------------------------------------------------------------------

    def _home_binds(self) -> Iterator[Bind]:
        home = self._place.home
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = self._purpose == "base" or (self._purpose == "setup" and not self._attached.changed)
        if own:
            yield Bind(str(home), HOME, writable=True)
            return
        copy = self._new_copy()
        copy.mkdir(mode=0o700)
        yield Bind(str(copy), HOME, writable=True)
        yield from self._copied_home(home, copy, "")

    def _copied_home(self, source: Path, goal: Path, prefix: str) -> Iterator[Bind]:
        for entry in os.scandir(source):
            name = _joined(prefix, entry.name)
            if name in DOWNLOADS and self._purpose != "setup" and entry.is_dir(follow_symlinks=False):
                (goal / entry.name).mkdir()
                yield Bind(entry.path, f"{HOME}/{name}")
            elif any(cache.startswith(f"{name}/") for cache in DOWNLOADS):
                (goal / entry.name).mkdir()
                yield from self._copied_home(Path(entry.path), goal / entry.name, name)
            else:
                copy_tree(Path(entry.path), goal / entry.name)

    # -- copies --------------------------------------------------------------------------------------------------------

    def _new_copy(self) -> Path:
        return self._scratch / str(sum(1 for _ in self._scratch.iterdir()))

    def _copied(self, source: Path) -> Path:
        goal = self._new_copy()
        copy_tree(source, goal)
        return goal


def copy_tree(source: Path, goal: Path) -> None:
    """Copies a file or directory with its dates and links; shares blocks where the file system can."""
    done = subprocess.run(
        ["cp", "-a", "--reflink=auto", "--", str(source), str(goal)], capture_output=True, check=False
    )
    problems = done.stderr.decode("utf-8", "replace").splitlines()
    # A cache may lose files while it is copied: what is left is still a cache.
    if serious := [line for line in problems if "No such file or directory" not in line]:
        raise OSError(f"cannot copy {source}: {serious[0][:500]}")


def _is_short(folder: Path) -> bool:
    """Whether each entry can be a mount of its own: their cost grows with the square of their number."""
    return sum(not entry.is_symlink() for entry in os.scandir(folder)) <= MOST_ENTRIES


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
