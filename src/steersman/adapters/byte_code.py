"""Where a script of ours starts soonest: its byte code, where that is current, for a script is compiled at every start.

**Invariant:** never another program than the source: byte code counts only with the source's own date and size.
"""

import os
from importlib.util import MAGIC_NUMBER, cache_from_source


def soonest(script: str) -> str:
    """What to give an interpreter: the byte code that an import of the script has left, or the script."""
    try:
        cached = cache_from_source(script)
        with open(cached, "rb") as file:
            head = file.read(16)
        at = os.stat(script)
    except (OSError, NotImplementedError):
        return script
    marks = (0, int(at.st_mtime) & 0xFFFFFFFF, at.st_size & 0xFFFFFFFF)
    current = MAGIC_NUMBER + b"".join(mark.to_bytes(4, "little") for mark in marks)
    return cached if head == current else script
