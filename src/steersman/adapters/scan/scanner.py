"""The scanner of a tree: lists, chooses, reads within bounds, and lets the judges say what it means.

**Invariant:** files are opened one part of their path after the other without following a link; nothing is written but
a git directory of ours, and nothing is run but git.
"""

import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from steersman.adapters.scan.listing import Listing, listing
from steersman.contracts.planning.context import Bounds, FactPack
from steersman.errors import WorkspaceError
from steersman.judges.planning.facts.choice import choose
from steersman.judges.planning.facts.finding import Source, folder_of
from steersman.judges.planning.facts.pack import Page, examine, pack_of
from steersman.judges.planning.paths import covers, plain
from steersman.judges.text import clip


class Limits(msgspec.Struct, frozen=True):
    """How much is read."""

    each: int = 4 * 1024 * 1024  # bytes of one file
    total: int = 64 * 1024 * 1024
    files: int = 20_000


class TreeScanner:
    """Implements ports.scanner.Scanner on a directory; `folder` takes a git directory of ours."""

    def __init__(self, project: Path, folder: Path, limits: Limits = Limits()) -> None:  # noqa: B008  a constant
        self._project, self._folder, self._limits = project, folder, limits

    def scan(self, project_id: str, root: str = ".") -> FactPack:
        there = listing(self._project, self._folder)
        if plain(root) not in ("", "."):
            there = there._replace(files={p: name for p, name in there.files.items() if covers(root, p)})
            if not there.files:
                raise WorkspaceError(f"the project has no file in {root}: name a folder of it, or .")
        choice = choose(tuple(there.files))
        reading = _Reading(self._project, there, self._limits)
        pages = [page for path in choice.read if (page := reading.page(path)) is not None]
        return pack_of(project_id, pages, choice, reading.bounds(len(pages)))


class _Reading:
    """Files read so far."""

    def __init__(self, project: Path, there: Listing, limits: Limits) -> None:
        self._there, self._limits = there, limits
        self._top = os.fsencode(project)
        self._names = _by_folder(there.files)
        self._bytes = self._files = self._passed = 0
        self._over = False

    def page(self, path: str) -> Page | None:
        """What a file says; None where it cannot be read or a bound is reached."""
        if self._over or self._files >= self._limits.files:
            self._over = True
            return None
        data = _content(self._top, self._there.files[path], self._limits.each)
        if data is None:
            self._passed += 1
            return None
        if self._bytes + len(data) > self._limits.total:
            self._over = True
            return None
        self._bytes, self._files = self._bytes + len(data), self._files + 1
        source = Source(path, data.decode("utf-8", "replace"), self._names[folder_of(path)])
        return examine(source, hashlib.sha256(data).hexdigest())

    def bounds(self, read: int) -> Bounds:
        """How far it went."""
        why = [*self._there.trouble]
        if self._over:
            why.append(f"more than {self._limits.files} files or {self._limits.total} bytes to read")
        if self._passed:
            why.append(f"{self._passed} files too long or not readable")
        return Bounds(
            files_seen=len(self._there.files),
            files_read=read,
            bytes_read=self._bytes,
            skipped=self._there.skipped + self._passed,
            complete=not why,
            stopped_by=clip("; ".join(why), 200),
        )


def _by_folder(files: Mapping[str, bytes]) -> dict[str, frozenset[str]]:
    names: defaultdict[str, set[str]] = defaultdict(set)
    for path in files:
        names[folder_of(path)].add(path.rpartition("/")[2])
    return {folder: frozenset(found) for folder, found in names.items()}


def _content(top: bytes, name: bytes, most: int) -> bytes | None:
    """The bytes of a plain file; None for one that is too long, no file, or behind a link."""
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *folders, last = name.split(b"/")
        for part in folders:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = inner
        found = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    except OSError:
        return None
    finally:
        with suppress(OSError):
            os.close(fd)
    with open(found, "rb") as file:
        said = os.fstat(found)
        if not stat.S_ISREG(said.st_mode) or said.st_size > most:
            return None
        data = file.read(said.st_size + 1)  # room for all of it and no more: most files are small
    return data if len(data) <= said.st_size else None  # one that grows is being written
