"""Sessions that agents' own programs have written, kept between calls below the project's state, outside every box.

A name is the program's id of the session and a digest of what was kept: it means the session as it was then. A call
that is begun again after a crash, or in a fork, goes on where the first one did, on the tree of that moment.
**Invariant:** what is kept is never changed; a name that is none is no path; of what a call leaves no link is followed.
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SESSIONS = "sessions"  # beside the homes of calls
MOST = 64 * 1024 * 1024  # bytes of a session that are worth keeping
DAYS = 30  # a session that is older is begun anew
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = re.compile(rf"({_ID.pattern})\.[0-9a-f]{{16}}")
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


class Kept(NamedTuple):
    """A session on the shelf: what its program calls it, and its files."""

    session: str
    folder: Path


class Shelf:
    """The kept sessions of a project; those of one run are in one folder, so that they can go with it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, name: str | None) -> Kept | None:
        """A kept session by its name; None where it is none, or not here any more."""
        told = _NAME.fullmatch(name or "")
        found = sorted(self.root.glob(f"*/{name}")) if told else []
        return Kept(told[1], found[0]) if told and found else None

    def keep(self, effect: str, session: str, files: Mapping[str, bytes]) -> str | None:
        """Keeps a session for the run of this effect, whole or not at all; gives its name."""
        run = effect.partition(":")[0]
        if not (is_id(session) and _RUN.fullmatch(run)):
            return None
        self._drop_old()
        name = f"{session}.{_digest(files)}"
        with contextlib.suppress(OSError):
            return name if self._put(self.root / run, name, files) else None
        return None

    def drop(self, run: str) -> None:
        """Forgets every session of a run."""
        if _RUN.fullmatch(run):
            shutil.rmtree(self.root / run, ignore_errors=True)

    def _put(self, folder: Path, name: str, files: Mapping[str, bytes]) -> bool:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = Path(tempfile.mkdtemp(prefix=".", dir=folder))
        try:
            for file, content in files.items():
                (draft / file).write_bytes(content)
            with contextlib.suppress(OSError):  # it is there already, with the same content
                os.rename(draft, folder / name)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return (folder / name).is_dir()

    def _drop_old(self) -> None:
        oldest = time.time() - DAYS * 86_400
        for left in self.root.glob("*/*"):
            with contextlib.suppress(OSError):
                if left.stat().st_mtime < oldest:
                    shutil.rmtree(left)
                    left.parent.rmdir()  # only an empty one goes


def is_id(session: str | None) -> bool:
    """Whether a program's own name for a session has the form that a file may have."""
    return _ID.fullmatch(session or "") is not None


def content(path: Path) -> bytes | None:
    """A file that a call has left; None for a link, for what is no file, and for one that is too large."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(opened, "rb") as file:
        found = os.fstat(opened)
        return file.read() if stat.S_ISREG(found.st_mode) and found.st_size <= MOST else None


def _digest(files: Mapping[str, bytes]) -> str:
    rolled = hashlib.sha256()
    for file in sorted(files):
        rolled.update(hashlib.sha256(file.encode()).digest() + hashlib.sha256(files[file]).digest())
    return rolled.hexdigest()[:16]
