"""The one form in which a value becomes bytes: canonical JSON, equal to RFC 8785.

**Invariant:** no floats and no integer beyond 2^53 ever reach a hash; `acceptable` says so at the edges.
"""

import hashlib
from typing import Any

import msgspec

LARGEST = 2**53 - 1

encode = msgspec.json.Encoder(order="sorted").encode  # canonical whenever its result is ASCII
_decode = msgspec.json.Decoder().decode


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a value without floats."""
    data = encode(value)
    if data.isascii():
        return data
    # msgspec sorts keys by code point, RFC 8785 by UTF-16 unit; they differ only for U+E000..U+FFFF,
    # whose UTF-8 form starts with one of these two bytes.
    if b"\xee" in data or b"\xef" in data:
        import rfc8785  # hardly ever needed

        return rfc8785.dumps(_decode(data))
    return data


def plain(value: Any) -> Any:
    """The value as JSON would read it back: dicts, lists, strings, numbers."""
    return _decode(encode(value))


def digest(data: bytes) -> str:
    """The SHA-256 of bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    """The SHA-256 of a value's canonical bytes, in hex."""
    return digest(canonical(value))


def unacceptable(value: Any, where: str = "value") -> str | None:
    """Why a plain value may not go on tape, naming the place; None when it may."""
    match value:
        case bool() | None:
            return None
        case str():
            return None if _encodable(value) else f"{where}: text with a lone surrogate"
        case int():
            return None if -LARGEST <= value <= LARGEST else f"{where}: integer beyond 2^53"
        case list() | tuple():
            return _first(unacceptable(item, f"{where}[{n}]") for n, item in enumerate(value))
        case dict():
            return _first(_member(key, item, where) for key, item in value.items())
        case _:
            return f"{where}: {type(value).__name__} cannot go on tape"


def _member(key: Any, item: Any, where: str) -> str | None:
    if not isinstance(key, str) or not _encodable(key):
        return f"{where}: a key is not text"
    return unacceptable(item, f"{where}.{key}")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _first(problems: Any) -> str | None:
    return next((p for p in problems if p is not None), None)
