"""A session of claude: the one file it is, taken out of a call's home and put into that of another.

The CLI files a session under the directory it is held in, and finds it only there; a later call may work in another.
**Invariant:** what a session has used so far is noted beside it, out of the reach of whoever continues it.
"""

import contextlib
import os
import re
from pathlib import Path

import msgspec

from steersman.adapters.agents.shelf import Kept, Shelf, content, is_id
from steersman.contracts.agent import Usage

MISSED = "No conversation found"  # what the CLI says of a session that it does not find
_SAID, _TOLD = "session.jsonl", "told.json"


def keep(shelf: Shelf, effect: str, projects: Path, session: str | None, told: Usage) -> str | None:
    """Keeps what a call has said, while nothing of the call is alive, and what it has told it used; gives its name."""
    said = _held(projects, session)
    if session is None or said is None:
        return None
    return shelf.keep(effect, session, {_SAID: said, _TOLD: msgspec.json.encode(told)})


def lend(kept: Kept, projects: Path, workdir: str) -> Usage:
    """Puts a kept session where the CLI looks for it from this directory; gives what it had used, as far as is known."""
    folder = projects / re.sub(r"[^a-zA-Z0-9]", "-", os.path.realpath(workdir))
    with contextlib.suppress(OSError):  # the CLI misses it then, and says so
        folder.mkdir(parents=True, mode=0o700)
        (folder / f"{kept.session}.jsonl").write_bytes((kept.folder / _SAID).read_bytes())
    try:
        return msgspec.json.decode((kept.folder / _TOLD).read_bytes(), type=Usage)
    except (OSError, msgspec.DecodeError):
        return Usage()


def _held(projects: Path, session: str | None) -> bytes | None:
    if not is_id(session) or projects.is_symlink():
        return None
    with contextlib.suppress(OSError):
        folders = [entry.path for entry in os.scandir(projects) if entry.is_dir(follow_symlinks=False)]
        found = (content(Path(folder, f"{session}.jsonl")) for folder in sorted(folders))
        return next((said for said in found if said is not None), None)
    return None
