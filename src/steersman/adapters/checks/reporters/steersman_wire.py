"""The wire from a test runner to steersman: taken once, by the first process that asks for it.

The listener is gone when the connection is made, and so is what names it in the environment. The descriptor is closed
in every child, by fork or by exec; each event carries a token that only this socket received, and a number.
**Invariant:** nothing here raises into the runner: what cannot be sent is missing at the other end.
"""

from __future__ import annotations

import json
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SOCKET_VARIABLE = "STEERSMAN_WITNESS"
ENDED_EVENT = "ended"


def open_reporter_socket() -> Callable[..., None] | None:
    """What tells an event, or None where another process has the wire or there is none."""
    path = os.environ.get(SOCKET_VARIABLE)
    if not path:
        return None
    _clear_reporter_environment(os.path.dirname(path))
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
        token = connection.recv(64).decode("ascii")
    except (OSError, ValueError):
        token = ""
    if not token:
        connection.close()
        return None
    os.register_at_fork(after_in_child=connection.close)
    return _make_event_sender(connection, token)


def _clear_reporter_environment(directory: str) -> None:
    """Takes out of the environment what was put there for this process: its children are not asked."""
    os.environ.pop(SOCKET_VARIABLE)
    _remove_from_variable("PYTEST_ADDOPTS", "-p steersman_witness", " ")
    _remove_from_variable("PYTHONPATH", directory, os.pathsep)


def _remove_from_variable(name: str, word: str, separator: str) -> None:
    remaining = os.environ.pop(name, "").replace(word, "", 1).strip(separator)
    if remaining:
        os.environ[name] = remaining


def _make_event_sender(connection: socket.socket, token: str) -> Callable[..., None]:
    dumps, event_number = json.dumps, 0  # a test may put something else in their place

    def send_event(*event: object) -> None:
        nonlocal event_number
        event_number += 1
        try:
            connection.sendall(f"{token} {event_number} {dumps(event)}\n".encode("ascii"))
            if event[0] == ENDED_EVENT:
                connection.close()
        except (OSError, ValueError, TypeError):
            connection.close()

    return send_event
