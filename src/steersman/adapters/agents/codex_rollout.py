"""codex's own record of a session: what it has used so far, what it was denied without an event, where it goes on.

A session is one file, and a copy of it is lent to the home of the call that continues it.
**Invariant:** a record that cannot be read tells nothing; it never makes a call fail.
"""

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steersman.adapters.agents.codex_events import says_denied, usage_of
from steersman.adapters.agents.shelf import Kept, Shelf, content, is_id

MISSED = "no rollout found"  # what codex says of a session that it does not find
_FAILED = re.compile(r"exited with code [1-9]|\"exit_code\":\s*[1-9]|^Exit code: [1-9]", re.MULTILINE)
_REJECTED = re.compile(
    r"^(?:Script error:\n)?(?:patch rejected|exec_command failed|.{0,80}rejected by user)", re.MULTILINE
)


class Turn(NamedTuple):
    """What the record says about the last turn."""

    denied: tuple[str, ...] = ()
    stuck: bool = False  # no tool has worked since the last denial
    model: str = ""


def last_turn(path: Path | None) -> Turn:
    """The last turn of a record; nothing where there is none."""
    denied, stuck, model = list[str](), False, ""
    calls: dict[str, str] = {}
    for kind, payload in _records(path):
        match kind, payload:
            case "event_msg", {"type": "task_started"}:
                denied, stuck = [], False
            case "turn_context", {"model": str(model)}:
                pass
            case "response_item", {"type": "function_call" | "custom_tool_call", "call_id": str(call)}:
                calls[call] = _named(payload)
            case "response_item", {"call_id": str(call), "output": said}:
                stuck = _denied(_text(said))
                denied += [calls.get(call, "a tool")] if stuck else []
            case _:
                pass
    return Turn(tuple(denied), stuck, model)


def total(path: Path | None) -> int | None:
    """All tokens of a kept session so far: what a call that continues it tells includes them."""
    used = None
    for kind, payload in _records(path):
        if kind == "token_usage_record":
            used = usage_of(payload.get("thread_token_usage")).tokens
    return used


def record(sessions: Path, thread: str | None) -> Path | None:
    """The file of a session below a `sessions` directory, wherever codex has put it."""
    if not is_id(thread) or sessions.is_symlink():
        return None
    return next(iter(sorted(sessions.rglob(f"rollout-*-{thread}.jsonl"))), None)


def lend(kept: Kept, sessions: Path) -> int | None:
    """Puts a kept session where codex looks for it; gives all tokens that it has used so far, where that is known."""
    found = record(kept.folder, kept.session)
    if found is None:
        return None
    with contextlib.suppress(OSError):  # codex misses it then, and says so
        sessions.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, sessions / found.name)
    return total(found)


def keep(shelf: Shelf, effect: str, found: Path | None, thread: str | None) -> str | None:
    """Keeps what a call has made of a session; gives its name, or None where there is nothing to keep."""
    said = content(found) if found is not None else None
    if found is None or thread is None or said is None:
        return None
    return shelf.keep(effect, thread, {found.name: said})


def _records(path: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    if path is None or path.is_symlink():
        return
    with contextlib.suppress(OSError), path.open("rb") as file:
        for line in file:
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                match msgspec.json.decode(line):
                    case {"type": str(kind), "payload": dict(payload)}:
                        yield kind, payload


def _named(call: dict[str, Any]) -> str:
    """The command of a call, where it is one; else the name of the tool."""
    arguments = call.get("arguments", call.get("input", ""))
    with contextlib.suppress(msgspec.DecodeError, TypeError):
        match msgspec.json.decode(arguments):
            case {"cmd": str(command)}:
                return command
    return f"{call.get('name', 'a tool')} {arguments}".strip()


def _text(said: Any) -> str:
    if isinstance(said, str):
        return said
    parts = said if isinstance(said, list) else []
    return "\n".join(
        part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def _denied(output: str) -> bool:
    return _REJECTED.search(output) is not None or (
        _FAILED.search(output) is not None and says_denied(output)
    )
