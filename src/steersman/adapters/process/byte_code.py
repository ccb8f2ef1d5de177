"""Where a script of ours starts soonest: its byte code, where that is current, for a script is compiled at every start.

**Invariant:** never another program than the source: byte code counts only with the source's own date and size.
"""

import os
from importlib.util import MAGIC_NUMBER, cache_from_source


def prefer_cached_bytecode(script: str) -> str:
    """What to give an interpreter: the byte code that an import of the script has left, or the script."""
    try:
        cached = cache_from_source(script)
        with open(cached, "rb") as file:
            header = file.read(16)
        source_status = os.stat(script)
    except (OSError, NotImplementedError):
        return script
    header_fields = (0, int(source_status.st_mtime) & 0xFFFFFFFF, source_status.st_size & 0xFFFFFFFF)
    expected_header = MAGIC_NUMBER + b"".join(field.to_bytes(4, "little") for field in header_fields)
    return cached if header == expected_header else script
