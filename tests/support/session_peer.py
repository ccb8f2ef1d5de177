"""Stands for a CLI with sessions: plays recorded events, and writes and finds sessions where the real one does.

`session_peer.py FIXTURES ARGS…`; what it is told is appended to the session's file, and nothing else is done with it.
"""

import json
import os
import re
import sys
from pathlib import Path

fixtures, arguments, told = Path(sys.argv[1]), sys.argv[2:], sys.stdin.read()


def play(name: str) -> None:
    """A recorded call, to its end."""
    recorded = json.loads((fixtures / f"{name}.json").read_text(encoding="utf-8"))
    print("\n".join(recorded["stdout"]))
    print(recorded["stderr"], file=sys.stderr)
    raise SystemExit(recorded["exit"])


def claude() -> Path:
    slug = re.sub(r"[^a-zA-Z0-9]", "-", os.getcwd())
    return Path(
        os.environ["CLAUDE_CONFIG_DIR"], "projects", slug, "00000000-0000-4000-8000-000000000001.jsonl"
    )


def codex() -> Path:
    name = "rollout-2026-11-16T04-26-57-01a1e29f-a27e-7682-ad72-14314bf26cd5.jsonl"
    return Path(os.environ["CODEX_HOME"], "sessions", name)


session = codex() if "CODEX_HOME" in os.environ else claude()
continued = next(
    (arguments[n + 1] for n, word in enumerate(arguments) if word in ("--resume", "resume")), None
)
if continued is not None and not (continued in session.name and session.exists()):
    play("unknown-session")
if "--no-session-persistence" not in arguments:
    session.parent.mkdir(parents=True, exist_ok=True)
    with session.open("a", encoding="utf-8") as file:
        file.write(told + "\n")
play("broken" if told == "break" else "text")
