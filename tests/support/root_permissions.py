"""Rights that count for root, too: to whoever may read everything no file is unreadable.

**Invariant:** for the calling thread alone, and only within the block.
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator

_CAPABILITY_VERSION = 0x20080522  # of the call's form: 64 bits in two halves
_OVERRIDE_CAPABILITIES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


@contextlib.contextmanager
def enforce_file_permissions() -> Iterator[bool]:
    """A block in which what is locked stays locked; yields False where that cannot be had (root without Linux)."""
    if os.geteuid() != 0:
        yield True
        return
    if sys.platform != "linux":
        yield False
        return
    before = _read_capabilities()
    _set_capabilities((before[0] & ~_OVERRIDE_CAPABILITIES, *before[1:]))
    try:
        yield True
    finally:
        _set_capabilities(before)


def _read_capabilities() -> tuple[int, ...]:
    """What this thread may do: effective, permitted, inheritable, in two halves."""
    capability_words = (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capget(_capability_header(), capability_words) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    return tuple(capability_words)


def _set_capabilities(wanted: tuple[int, ...]) -> None:
    if ctypes.CDLL(None, use_errno=True).capset(_capability_header(), (ctypes.c_uint32 * 6)(*wanted)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _capability_header() -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
