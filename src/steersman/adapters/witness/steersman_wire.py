"""The wire from a test runner to steersman: taken once, by the first process that asks for it.

The listener is gone when the connection is made, and so is what names it in the environment. The descriptor is closed
in every child, by fork or by exec; each event carries a word that was told on the wire alone, and a number.
**Invariant:** nothing here raises into the runner: what cannot be told is missing at the other end.
"""

from __future__ import annotations

import json
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = "STEERSMAN_WITNESS"
ENDED = "ended"


def taken() -> Callable[..., None] | None:
    """What tells an event, or None where another process has the wire or there is none."""
    path = os.environ.get(PLACE)
    if not path:
        return None
    _forget(os.path.dirname(path))
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.connect(path)
        word = line.recv(64).decode("ascii")
    except (OSError, ValueError):
        word = ""
    if not word:
        line.close()
        return None
    os.register_at_fork(after_in_child=line.close)
    return _telling(line, word)


def _forget(folder: str) -> None:
    """Takes out of the environment what was put there for this process: its children are not asked."""
    os.environ.pop(PLACE)
    _without("PYTEST_ADDOPTS", "-p steersman_witness", " ")
    _without("PYTHONPATH", folder, os.pathsep)


def _without(name: str, word: str, between: str) -> None:
    left = os.environ.pop(name, "").replace(word, "", 1).strip(between)
    if left:
        os.environ[name] = left


def _telling(line: socket.socket, word: str) -> Callable[..., None]:
    dumps, told = json.dumps, 0  # a test may put something else in their place

    def tell(*event: object) -> None:
        nonlocal told
        told += 1
        try:
            line.sendall(f"{word} {told} {dumps(event)}\n".encode("ascii"))
            if event[0] == ENDED:
                line.close()
        except (OSError, ValueError, TypeError):
            line.close()

    return tell
