"""Which runs the project's own file of anchors names: for who only lists, and has no time for signatures."""

import os
from contextlib import suppress

import msgspec


class _Named(msgspec.Struct):
    run: str


_read = msgspec.json.Decoder(_Named).decode


def named_runs(state: str) -> set[str]:
    """Every run that a readable line names, genuine or not who has signed it is for a closer look."""
    try:
        with open(os.path.join(state, "anchors.jsonl"), "rb") as file:
            lines = file.read().splitlines()
    except OSError:  # who verifies says why
        return set()
    named = set()
    for line in lines:
        with suppress(msgspec.MsgspecError, UnicodeError):
            named.add(_read(line).run)
    return named
