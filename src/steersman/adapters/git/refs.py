"""The refs of runs: commits stored under a ref, and the list of pinned trees and delivered branches with their entries.

A `git gc --prune=now` at the same moment removes every loose object that no ref led to when it began. So a stored commit
is checked again once no gc runs, and stored again where an object is missing.
"""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from steersman.adapters.git.isolated_dir import read_small_file
from steersman.adapters.git.repository import GitRepository
from steersman.contracts.workspace import RecordedRef
from steersman.errors import WorkspaceError

_PINNED_PREFIX, _RUN_BRANCH_PREFIX = "refs/steersman/", "refs/heads/steersman/"
_ANCHOR_REF_PREFIX = f"{_PINNED_PREFIX}anchors/"
_ENTRY_TRAILER_FORMAT = "trailers:key=Steersman-Entry,valueonly"
# Git 2.39 merges two such fields.
_RUN_TRAILERS_FORMAT = "%(contents:trailers:key=Steersman-Run,key=Steersman-Entry)"
_GC_WAIT_SECONDS = 120.0
_STORE_ATTEMPTS = 5


def list_recorded_refs(git: GitRepository, run: str = "") -> dict[str, RecordedRef]:
    """The refs of a run, or of all runs, with what each names and the entry that it came from."""
    patterns = (f"{_PINNED_PREFIX}{run}".rstrip("/"), f"{_RUN_BRANCH_PREFIX}{run}".rstrip("/"))
    output = git.read(
        "for-each-ref",
        f"--format=%(refname)%00%(objectname)%00%(tree)%00{_RUN_TRAILERS_FORMAT}%00",
        *patterns,
    )
    parts = [part.strip() for part in output.decode("utf-8", "backslashreplace").split("\0")]
    refs = {
        name: _parse_recorded_ref(
            name,
            commit,
            tree,
            dict(line.split(": ", 1) for line in trailer_text.splitlines() if ": " in line),
        )
        for name, commit, tree, trailer_text in zip(*(parts[n::4] for n in range(4)), strict=False)
        if not name.startswith(_ANCHOR_REF_PREFIX)
    }
    pinned = {ref.commit for name, ref in refs.items() if name.startswith(_PINNED_PREFIX)}
    return {
        name: _add_delivered_entry(git, name, ref)
        if name.startswith(_RUN_BRANCH_PREFIX) and ref.commit not in pinned
        else ref
        for name, ref in refs.items()
    }


def _parse_recorded_ref(name: str, commit: str, tree: str, trailers: dict[str, str]) -> RecordedRef:
    entry = trailers.get("Steersman-Entry", _entry_number_suffix(name))
    return RecordedRef(commit, tree, trailers.get("Steersman-Run", ""), _parse_entry_number(entry))


def _add_delivered_entry(git: GitRepository, name: str, ref: RecordedRef) -> RecordedRef:
    """A branch that is not where its run left it, with the entry of the newest commit that the run has delivered."""
    trailer = f"^Steersman-Run: {name.removeprefix(_RUN_BRANCH_PREFIX)}$"
    entry = git.line("log", "-1", f"--format=%({_ENTRY_TRAILER_FORMAT})", f"--grep={trailer}", name, "--")
    return replace(ref, entry=_parse_entry_number(entry.strip()))


def _entry_number_suffix(name: str) -> str:
    """The number at the end of a pinned tree's name; what other names end with is none."""
    label = name.rpartition("/")[2] if name.startswith(_PINNED_PREFIX) else ""
    return "" if label.startswith(("start-", "delivery-")) else label.rpartition("-")[2]


def _parse_entry_number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


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
    with suppress(PermissionError):  # another user's process is alive too
        try:
            os.kill(int(match[1]), 0)
        except ProcessLookupError:
            return False
    return True


def _wait_for_gc(git: GitRepository) -> None:
    deadline = time.monotonic() + _GC_WAIT_SECONDS
    while _is_gc_running(git) and time.monotonic() < deadline:
        time.sleep(0.05)
