"""Stores objects so that a `git gc --prune=now` of the person at the same moment cannot remove them.

Such a gc removes every loose object that no reference led to when it began, also one that has a reference by now. So
what is stored is looked at again once no gc is at work, and stored again where something is missing.
"""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress

from steersman.adapters.git.isolated_dir import read_small_file
from steersman.adapters.git.repository import GitRepository
from steersman.errors import WorkspaceError

_GC_WAIT_SECONDS = 120.0
_STORE_ATTEMPTS = 5


def store_commit_despite_gc(git: GitRepository, ref: str, parent: str, build: Callable[[], str]) -> str:
    """Points `ref` to the commit that `build` stores, and returns it whole."""
    for attempt in range(_STORE_ATTEMPTS):
        _wait_for_gc(git)
        try:
            commit = build()
        except WorkspaceError:
            if attempt == _STORE_ATTEMPTS - 1 or not _is_gc_running(git):
                raise
            continue
        git.read("update-ref", ref, commit)
        if not _is_gc_running(git) and is_commit_complete(git, commit, parent):
            return commit
    raise WorkspaceError(f"git does not keep {ref}; is a `git gc` at work? Try again when it has ended")


def is_commit_complete(git: GitRepository, commit: str, parent: str) -> bool:
    """Whether every object is there that a commit brings beyond its parent."""
    return git.call("rev-list", "--objects", "--quiet", commit, "--not", parent).code == 0


def _is_gc_running(git: GitRepository) -> bool:
    """Whether a `git gc` of this machine is at work."""
    match = re.match(rb"(\d+) ", read_small_file(git.require_repository.common / "gc.pid"))
    if match is None:
        return False
    with suppress(PermissionError):  # somebody else's is alive too
        try:
            os.kill(int(match[1]), 0)
        except ProcessLookupError:
            return False
    return True


def _wait_for_gc(git: GitRepository) -> None:
    deadline = time.monotonic() + _GC_WAIT_SECONDS
    while _is_gc_running(git) and time.monotonic() < deadline:
        time.sleep(0.05)
