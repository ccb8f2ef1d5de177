"""Which runs the project's own file of anchors names: for who only lists, and has no time for signatures."""

import os
from contextlib import suppress

import msgspec


class _AnchorRun(msgspec.Struct):
    run: str


_decode_anchor_run = msgspec.json.Decoder(_AnchorRun).decode


def read_anchored_run_names(state: str) -> set[str]:
    """Every run that a readable line names, genuine or not who has signed it is for a closer look."""
    try:
        with open(os.path.join(state, "anchors.jsonl"), "rb") as file:
            lines = file.read().splitlines()
    except OSError:  # who verifies says why
        return set()
    runs = set()
    for line in lines:
        with suppress(msgspec.MsgspecError, UnicodeError):
            runs.add(_decode_anchor_run(line).run)
    return runs
