"""Writes a value as canonical JSON (RFC 8785), so that equal values have equal bytes.

**Invariant:** no float and no integer beyond 2^53 reaches a hash.
"""

import hashlib
from typing import Any

import msgspec

LARGEST_TAPE_INTEGER = 2**53 - 1

encode_sorted_json = msgspec.json.Encoder(order="sorted").encode  # canonical whenever its result is ASCII
_decode_canonical_json = msgspec.json.Decoder().decode


def canonical_bytes(value: Any) -> bytes:
    """The RFC 8785 bytes of a value without floats."""
    data = encode_sorted_json(value)
    if data.isascii():
        return data
    # msgspec sorts keys by code point, RFC 8785 by UTF-16 unit; they differ only for U+E000..U+FFFF,
    # whose UTF-8 form starts with one of these two bytes.
    if b"\xee" in data or b"\xef" in data:
        import rfc8785  # hardly ever needed

        return rfc8785.dumps(_decode_canonical_json(data))
    return data


def plain_value(value: Any) -> Any:
    """The value as JSON would read it back: dicts, lists, strings, numbers."""
    return _decode_canonical_json(encode_sorted_json(value))


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    """The SHA-256 of a value's canonical bytes, in hex."""
    return sha256_hex(canonical_bytes(value))


def find_unacceptable_value(value: Any, where: str = "value") -> str | None:
    """Why a plain value may not go on tape, naming the place; None when it may."""
    match value:
        case bool() | None:
            return None
        case str():
            return None if _is_encodable_text(value) else f"{where}: text with a lone surrogate"
        case int():
            return (
                None
                if -LARGEST_TAPE_INTEGER <= value <= LARGEST_TAPE_INTEGER
                else f"{where}: integer beyond 2^53"
            )
        case list() | tuple():
            return _first_tape_problem(
                find_unacceptable_value(item, f"{where}[{n}]") for n, item in enumerate(value)
            )
        case dict():
            return _first_tape_problem(_find_member_problem(key, item, where) for key, item in value.items())
        case _:
            return f"{where}: {type(value).__name__} cannot go on tape"


def _find_member_problem(key: Any, item: Any, where: str) -> str | None:
    if not isinstance(key, str) or not _is_encodable_text(key):
        return f"{where}: a key is not text"
    return find_unacceptable_value(item, f"{where}.{key}")


def _is_encodable_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _first_tape_problem(problems: Any) -> str | None:
    return next((p for p in problems if p is not None), None)
