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

from steersman.adapters.agents.codex_events import has_sandbox_denial, read_codex_usage
from steersman.adapters.agents.sessions import SessionStore, StoredSession, is_session_id, read_session_file

CODEX_SESSION_MISSED = "no rollout found"  # what codex says of a session that it does not find
_FAILED_COMMAND_OUTPUT = re.compile(
    r"exited with code [1-9]|\"exit_code\":\s*[1-9]|^Exit code: [1-9]", re.MULTILINE
)
_REJECTED_TOOL_OUTPUT = re.compile(
    r"^(?:Script error:\n)?(?:patch rejected|exec_command failed|.{0,80}rejected by user)", re.MULTILINE
)


class RolloutTurn(NamedTuple):
    """What the record says about the last turn."""

    denied: tuple[str, ...] = ()
    stuck: bool = False  # no tool has worked since the last denial
    model: str = ""


def read_last_turn(path: Path | None) -> RolloutTurn:
    """The last turn of a record; nothing where there is none."""
    denied, is_stuck, model = list[str](), False, ""
    calls: dict[str, str] = {}
    for kind, payload in _read_rollout_records(path):
        match kind, payload:
            case "event_msg", {"type": "task_started"}:
                denied, is_stuck = [], False
            case "turn_context", {"model": str(model)}:
                pass
            case "response_item", {"type": "function_call" | "custom_tool_call", "call_id": str(call)}:
                calls[call] = _describe_codex_call(payload)
            case "response_item", {"call_id": str(call), "output": output}:
                is_stuck = _is_denied_output(_join_output_text(output))
                denied += [calls.get(call, "a tool")] if is_stuck else []
            case _:
                pass
    return RolloutTurn(tuple(denied), is_stuck, model)


def count_session_tokens(path: Path | None) -> int | None:
    """All tokens of a kept session so far: what a call that continues it tells includes them."""
    tokens = None
    for kind, payload in _read_rollout_records(path):
        if kind == "token_usage_record":
            tokens = read_codex_usage(payload.get("thread_token_usage")).tokens
    return tokens


def find_rollout_file(sessions_dir: Path, thread: str | None) -> Path | None:
    """The file of a session below a `sessions` directory, wherever codex has put it."""
    if not is_session_id(thread) or sessions_dir.is_symlink():
        return None
    return next(iter(sorted(sessions_dir.rglob(f"rollout-*-{thread}.jsonl"))), None)


def restore_codex_session(stored_session: StoredSession, sessions_dir: Path) -> int | None:
    """Puts a kept session where codex looks for it; gives all tokens that it has used so far, where that is known."""
    rollout_file = find_rollout_file(stored_session.folder, stored_session.session)
    if rollout_file is None:
        return None
    with contextlib.suppress(OSError):  # codex misses it then, and says so
        sessions_dir.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(rollout_file, sessions_dir / rollout_file.name)
    return count_session_tokens(rollout_file)


def keep_codex_session(store: SessionStore, effect: str, file: Path | None, thread: str | None) -> str | None:
    """Keeps what a call has made of a session; returns its name, or None where there is nothing to keep."""
    transcript = read_session_file(file) if file is not None else None
    if file is None or thread is None or transcript is None:
        return None
    return store.keep(effect, thread, {file.name: transcript})


def _read_rollout_records(path: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    if path is None or path.is_symlink():
        return
    with contextlib.suppress(OSError), path.open("rb") as file:
        for line in file:
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                match msgspec.json.decode(line):
                    case {"type": str(kind), "payload": dict(payload)}:
                        yield kind, payload


def _describe_codex_call(call: dict[str, Any]) -> str:
    """The command of a call, where it is one; else the name of the tool."""
    arguments = call.get("arguments", call.get("input", ""))
    with contextlib.suppress(msgspec.DecodeError, TypeError):
        match msgspec.json.decode(arguments):
            case {"cmd": str(command)}:
                return command
    return f"{call.get('name', 'a tool')} {arguments}".strip()


def _join_output_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    parts = output if isinstance(output, list) else []
    return "\n".join(
        part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def _is_denied_output(output: str) -> bool:
    return _REJECTED_TOOL_OUTPUT.search(output) is not None or (
        _FAILED_COMMAND_OUTPUT.search(output) is not None and has_sandbox_denial(output)
    )
