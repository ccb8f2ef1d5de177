"""Sessions that agents' own programs have written, kept between calls below the project's state, outside every sandbox.

A name is the program's id of the session and a digest of what was kept: it means the session as it was then. A call
that is begun again after a crash, or in a fork, goes on where the first one did, on the tree of that moment.
**Invariant:** what is kept is never changed; an invalid name is never used as a path; links left by a call are
never followed.
"""

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from steersman.adapters.storage.durable_files import read_plain_file

SESSIONS_DIRECTORY = "sessions"  # beside the homes of calls
MAX_SESSION_BYTES = 64 * 1024 * 1024  # bytes of a session that are worth keeping
MAX_SESSION_DAYS = 30  # an older session is not continued
_SESSION_ID_PATTERN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SESSION_NAME_PATTERN = re.compile(rf"({_SESSION_ID_PATTERN.pattern})\.[0-9a-f]{{16}}")
_SESSION_RUN_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


class StoredSession(NamedTuple):
    """A kept session: its program's id for it, and its files."""

    session: str
    folder: Path


class SessionStore:
    """The kept sessions of a project; those of one run are in one folder, so that they can go with it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, name: str | None) -> StoredSession | None:
        """A kept session by its name; None where it is none, or not here any more."""
        match = _SESSION_NAME_PATTERN.fullmatch(name or "")
        paths = sorted(self.root.glob(f"*/{name}")) if match else []
        return StoredSession(match[1], paths[0]) if match and paths else None

    def keep(self, effect: str, session: str, files: Mapping[str, bytes]) -> str | None:
        """Keeps a session for the run of this effect, whole or not at all; returns its name."""
        run = effect.partition(":")[0]
        if not (is_session_id(session) and _SESSION_RUN_PATTERN.fullmatch(run)):
            return None
        self._drop_old()
        name = f"{session}.{_digest_session_files(files)}"
        with contextlib.suppress(OSError):
            return name if self._write_session(self.root / run, name, files) else None
        return None

    def drop(self, run: str) -> None:
        """Forgets every session of a run."""
        if _SESSION_RUN_PATTERN.fullmatch(run):
            shutil.rmtree(self.root / run, ignore_errors=True)

    def _write_session(self, run_dir: Path, name: str, files: Mapping[str, bytes]) -> bool:
        run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = Path(tempfile.mkdtemp(prefix=".", dir=run_dir))
        try:
            for file, content in files.items():
                (temporary / file).write_bytes(content)
            with contextlib.suppress(OSError):  # it is there already, with the same content
                os.rename(temporary, run_dir / name)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return (run_dir / name).is_dir()

    def _drop_old(self) -> None:
        oldest = time.time() - MAX_SESSION_DAYS * 86_400
        for session_dir in self.root.glob("*/*"):
            with contextlib.suppress(OSError):
                if session_dir.stat().st_mtime < oldest:
                    shutil.rmtree(session_dir)
                    session_dir.parent.rmdir()  # only an empty one goes


def is_session_id(session: str | None) -> bool:
    """Whether a program's own name for a session has the form that a file may have."""
    return _SESSION_ID_PATTERN.fullmatch(session or "") is not None


def read_session_file(path: Path) -> bytes | None:
    """A file that a call has left; None for a link, for what is no file, and for one that is too large."""
    return read_plain_file(path, MAX_SESSION_BYTES)


def _digest_session_files(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(hashlib.sha256(file.encode()).digest() + hashlib.sha256(files[file]).digest())
    return digest.hexdigest()[:16]
