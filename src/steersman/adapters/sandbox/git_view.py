"""What a sandbox shows of git: to a run's tree a copy of its own small repository, to a person's checkout their own.

In a run's tree the program finds the recorded commit, an index it may write and the history it may read; whatever it
does there is gone with the sandbox. **Invariant:** nothing that any git outside reads can be written from a sandbox; of the
person's repository a run's sandbox shows the objects, read-only, and nothing else.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from steersman.adapters.git.worktree_repo import worktree_repo_path
from steersman.adapters.sandbox.machine_view import SandboxMount, check_sandbox_path, read_only_mount


def list_git_mounts(tree: str, directory: str, shown_at: str) -> Iterator[SandboxMount]:
    """The places that give `tree` its git, a copy of it made in `folder`; none where it is no worktree."""
    pointer = Path(tree, ".git")
    repository = _find_worktree_repository(pointer)
    if repository is not None:
        copy = Path(directory, "git")
        shutil.copytree(repository, copy, symlinks=True)
        yield SandboxMount(str(repository), ("--bind", str(copy), str(repository)))
        yield from map(read_only_mount, _list_borrowed_objects(repository / "objects"))
    else:
        yield from map(read_only_mount, _find_linked_git_directories(pointer))
    if pointer.exists() and not pointer.is_symlink():
        # A mount: inside it can be neither written, renamed nor removed.
        yield SandboxMount(f"{shown_at}/.git", ("--ro-bind", str(pointer), f"{shown_at}/.git"))


def _find_worktree_repository(pointer: Path) -> Path | None:
    """The repository of a run's tree: beside it, and nowhere else, whatever the pointer may say."""
    repository = worktree_repo_path(pointer.parent)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        is_plain = not pointer.is_symlink() and repository.is_dir() and not repository.is_symlink()
        if is_plain and pointer.read_text() == f"gitdir: {repository}\n":
            return repository
    return None


def _find_linked_git_directories(pointer: Path) -> list[str]:
    """The git directories behind a checkout that the person has made with `git worktree add`."""
    if pointer.is_symlink() or not pointer.is_file():
        return []
    with contextlib.suppress(OSError, UnicodeDecodeError, ValueError):
        own_directory = Path(pointer.read_text().removeprefix("gitdir: ").removesuffix("\n"))
        shared_directory = os.path.realpath(own_directory / (own_directory / "commondir").read_text().strip())
        return [check_sandbox_path(shared_directory), check_sandbox_path(str(own_directory))]
    return []


def _list_borrowed_objects(objects: Path) -> list[str]:
    """Where else the objects are; git follows these one after the other, and so do we, a few steps."""
    object_directories: list[str] = []
    pending = [objects]
    for _ in range(5):
        pending = [Path(place) for directory in pending for place in _read_alternates(directory)]
        object_directories += map(str, pending)
    return object_directories


def _read_alternates(objects: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):
        lines = (objects / "info" / "alternates").read_text(errors="surrogateescape").splitlines()
        for line in lines:
            place = os.path.realpath(objects / line)
            with contextlib.suppress(ValueError):  # what no sandbox shows is no place for objects either
                if line and not line.startswith("#"):
                    yield check_sandbox_path(place)
