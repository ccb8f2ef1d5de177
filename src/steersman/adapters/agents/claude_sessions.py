"""A session of claude: the one file it is, taken out of a call's home and put into that of another.

The CLI files a session under the directory it is held in, and finds it only there; a later call may work in another.
**Invariant:** what a session has used so far is noted beside it, out of the reach of whoever continues it.
"""

import contextlib
import os
import re
from pathlib import Path

import msgspec

from steersman.adapters.agents.sessions import SessionStore, StoredSession, is_session_id, read_session_file
from steersman.contracts.agent import ProviderUsage

CLAUDE_SESSION_MISSED = "No conversation found"  # what the CLI says of a session that it does not find
_SESSION_TRANSCRIPT_FILE, _SESSION_USAGE_FILE = "session.jsonl", "told.json"


def keep_claude_session(
    store: SessionStore, effect: str, projects: Path, session: str | None, usage: ProviderUsage
) -> str | None:
    """Keeps what a call has said, while nothing of the call is alive, and what it has told it used; gives its name."""
    transcript = _read_claude_session(projects, session)
    if session is None or transcript is None:
        return None
    return store.keep(
        effect,
        session,
        {_SESSION_TRANSCRIPT_FILE: transcript, _SESSION_USAGE_FILE: msgspec.json.encode(usage)},
    )


def restore_claude_session(stored_session: StoredSession, projects: Path, workdir: str) -> ProviderUsage:
    """Puts a kept session where the CLI looks for it from this directory; gives what it had used, as far as is known."""
    session_dir = projects / re.sub(r"[^a-zA-Z0-9]", "-", os.path.realpath(workdir))
    with contextlib.suppress(OSError):  # the CLI misses it then, and says so
        session_dir.mkdir(parents=True, mode=0o700)
        (session_dir / f"{stored_session.session}.jsonl").write_bytes(
            (stored_session.folder / _SESSION_TRANSCRIPT_FILE).read_bytes()
        )
    try:
        return msgspec.json.decode(
            (stored_session.folder / _SESSION_USAGE_FILE).read_bytes(), type=ProviderUsage
        )
    except (OSError, msgspec.DecodeError):
        return ProviderUsage()


def _read_claude_session(projects: Path, session: str | None) -> bytes | None:
    if not is_session_id(session) or projects.is_symlink():
        return None
    with contextlib.suppress(OSError):
        directories = [entry.path for entry in os.scandir(projects) if entry.is_dir(follow_symlinks=False)]
        transcripts = (
            read_session_file(Path(directory, f"{session}.jsonl")) for directory in sorted(directories)
        )
        return next((transcript for transcript in transcripts if transcript is not None), None)
    return None
