"""Sessions of claude that a later call may continue: the one file a session is, kept outside every box.

The CLI files a session under the directory it was held in, and finds it only there.
**Invariant:** an id that is none is no path; of what a call leaves behind no link is followed.
"""

import contextlib
import os
import re
import stat
from pathlib import Path

import msgspec

from steersman.contracts.agent import Usage

MOST = 64 * 1024 * 1024  # bytes of a session that are worth keeping
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def keep(projects: Path, session: str | None, kept: Path, told: Usage) -> None:
    """Takes a session out of a call's home, while nothing of the call is alive, and notes what it has told it used."""
    _carry(projects, session, kept)
    if session and _ID.fullmatch(session) and kept.is_dir():
        (kept / f"{session}.json").write_bytes(msgspec.json.encode(told))


def told(kept: Path, session: str) -> Usage:
    """What a kept session had told it used; unknown where nobody noted it."""
    if not _ID.fullmatch(session):
        return Usage()
    try:
        return msgspec.json.decode((kept / f"{session}.json").read_bytes(), type=Usage)
    except (OSError, msgspec.DecodeError):
        return Usage()


def lend(kept: Path, session: str | None, projects: Path) -> None:
    """Puts a kept session into a fresh home; one that is not kept is missed by the CLI, which says so."""
    _carry(kept, session, projects)


def _carry(source: Path, session: str | None, goal: Path) -> None:
    if session is None or not _ID.fullmatch(session):
        return
    with contextlib.suppress(OSError):
        for folder in os.scandir(source):
            if not folder.is_dir(follow_symlinks=False):
                continue
            content = _content(Path(folder.path, f"{session}.jsonl"))
            if content is not None:
                (goal / folder.name).mkdir(parents=True, exist_ok=True, mode=0o700)
                (goal / folder.name / f"{session}.jsonl").write_bytes(content)


def _content(path: Path) -> bytes | None:
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(opened, "rb") as file:
        found = os.fstat(opened)
        return file.read() if stat.S_ISREG(found.st_mode) and found.st_size <= MOST else None
