"""What a box shows of git: to a run's tree a copy of its own small repository, to a person's checkout their own.

In a run's tree the program finds the recorded commit, an index it may write and the history it may read; whatever it
does there is gone with the box. **Invariant:** nothing that any git outside reads can be written from a box; of the
person's repository a run's box shows the objects, read-only, and nothing else.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from steersman.adapters.git_berth import berth_of
from steersman.adapters.sandbox_view import Mount, named, readable


def git_of(tree: str, folder: str, shown_at: str) -> Iterator[Mount]:
    """The places that give `tree` its git, a copy of it made in `folder`; none where it is no worktree."""
    pointer = Path(tree, ".git")
    berth = _berth(pointer)
    if berth is not None:
        copy = Path(folder, "git")
        shutil.copytree(berth, copy, symlinks=True)
        yield Mount(str(berth), ("--bind", str(copy), str(berth)))
        yield from map(readable, _borrowed(berth / "objects"))
    else:
        yield from map(readable, _linked(pointer))
    if pointer.exists() and not pointer.is_symlink():
        # A mount: inside it can be neither written, renamed nor removed.
        yield Mount(f"{shown_at}/.git", ("--ro-bind", str(pointer), f"{shown_at}/.git"))


def _berth(pointer: Path) -> Path | None:
    """The repository of a run's tree: beside it, and nowhere else, whatever the pointer may say."""
    berth = berth_of(pointer.parent)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        plain = not pointer.is_symlink() and berth.is_dir() and not berth.is_symlink()
        if plain and pointer.read_text() == f"gitdir: {berth}\n":
            return berth
    return None


def _linked(pointer: Path) -> list[str]:
    """The git directories behind a checkout that the person has made with `git worktree add`."""
    if pointer.is_symlink() or not pointer.is_file():
        return []
    with contextlib.suppress(OSError, UnicodeDecodeError, ValueError):
        own = Path(pointer.read_text().removeprefix("gitdir: ").removesuffix("\n"))
        shared = os.path.realpath(own / (own / "commondir").read_text().strip())
        return [named(shared), named(str(own))]
    return []


def _borrowed(objects: Path) -> list[str]:
    """Where else the objects are; git follows these one after the other, and so do we, a few steps."""
    found: list[str] = []
    ahead = [objects]
    for _ in range(5):
        ahead = [Path(place) for folder in ahead for place in _alternates(folder)]
        found += map(str, ahead)
    return found


def _alternates(objects: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):
        lines = (objects / "info" / "alternates").read_text(errors="surrogateescape").splitlines()
        for line in lines:
            place = os.path.realpath(objects / line)
            with contextlib.suppress(ValueError):  # what no box shows is no place for objects either
                if line and not line.startswith("#"):
                    yield named(place)
