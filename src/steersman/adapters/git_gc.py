"""Stores objects so that a `git gc --prune=now` of the person at the same moment cannot remove them.

Such a gc removes every loose object that no reference led to when it began, also one that has a reference by now. So
what is stored is looked at again once no gc is at work, and stored again where something is missing.
"""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress

from steersman.adapters.git_hull import plain
from steersman.adapters.git_repository import Git
from steersman.errors import WorkspaceError

_SECONDS = 120.0
_TRIES = 5


def store_commit(git: Git, ref: str, parent: str, build: Callable[[], str]) -> str:
    """Points `ref` to the commit that `build` stores, and returns it whole."""
    for attempt in range(_TRIES):
        _wait_for_gc(git)
        try:
            made = build()
        except WorkspaceError:
            if attempt == _TRIES - 1 or not _gc_runs(git):
                raise
            continue
        git.read("update-ref", ref, made)
        if not _gc_runs(git) and is_whole(git, made, parent):
            return made
    raise WorkspaceError(f"git does not keep {ref}; is a `git gc` at work? Try again when it has ended")


def is_whole(git: Git, commit: str, parent: str) -> bool:
    """Whether every object is there that a commit brings beyond its parent."""
    return git.call("rev-list", "--objects", "--quiet", commit, "--not", parent).code == 0


def _gc_runs(git: Git) -> bool:
    """Whether a `git gc` of this machine is at work."""
    match = re.match(rb"(\d+) ", plain(git.found.common / "gc.pid"))
    if match is None:
        return False
    with suppress(PermissionError):  # somebody else's is alive too
        try:
            os.kill(int(match[1]), 0)
        except ProcessLookupError:
            return False
    return True


def _wait_for_gc(git: Git) -> None:
    end = time.monotonic() + _SECONDS
    while _gc_runs(git) and time.monotonic() < end:
        time.sleep(0.05)
