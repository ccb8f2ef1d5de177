"""Values that are known to be secret, found in every form in which programs like to print them.

**Invariant:** an exact search: nothing but the value itself, in one of its forms, is ever hidden here.
"""

import base64
import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from steersman.judges.patterns import later
from steersman.judges.projection import BROKEN, INVISIBLE, hides, seen_through
from steersman.judges.secret_shapes import Span

SHORTEST = 6  # a shorter value would tear holes into words that only contain it
_LONG = 8  # from here on a value is looked for in other forms, too
_BASE64 = "A-Za-z0-9+/_-"
_SMALL = later("%[0-9A-F]{2}")
_FILLER = later(f"{INVISIBLE.pattern}|{BROKEN.pattern}")
_UNSAFE = re.compile(rb"[^A-Za-z0-9._~-]")


class Form(msgspec.Struct, frozen=True):
    """One way to write a value."""

    needle: str
    before: int = 0  # letters in front of it that hold a part of the value
    after: int = 0


class Hidden(msgspec.Struct, frozen=True):
    """A place where a known value stands, and which value it is."""

    span: Span
    value: str


def known_in(text: str, known: tuple[str, ...]) -> Iterator[Hidden]:
    """Every place of every known value; they may overlap."""
    if not known:
        return
    yield from _search(text, known)
    if hides(text) or BROKEN.search(text) is not None:
        plain, back = seen_through(text, _FILLER)
        for found in _search(plain, known, shortest=_LONG):
            yield Hidden(Span(*back(found.span.start, found.span.end), "known"), found.value)


def forms_in(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The forms of known values that stand in a text as they are, not torn and with nothing hidden inside."""
    return tuple([form.needle for _, forms in _forms(known) for form in forms if form.needle in text])


def _search(text: str, known: tuple[str, ...], shortest: int = SHORTEST) -> Iterator[Hidden]:
    for value, forms in _forms(known):
        if len(value) < shortest:
            continue
        for form in forms:
            at = text.find(form.needle)
            while at >= 0:
                end = at + len(form.needle)
                yield Hidden(_whole(text, at, end, form), value)
                at = text.find(form.needle, end)


def _whole(text: str, start: int, end: int, form: Form) -> Span:
    """A base64 form shares its first and last letters with what stands beside the value: they go as well."""
    front = re.search(f"[{_BASE64}]{{0,{form.before}}}$", text[max(0, start - form.before) : start])
    rest = re.match(f"[{_BASE64}]{{0,{form.after}}}={{0,2}}" if form.after else "", text[end : end + 8])
    assert front is not None  # noqa: S101  both patterns fit the empty text
    assert rest is not None  # noqa: S101  the same
    return Span(start - len(front[0]), end + rest.end(), "known")


@lru_cache(maxsize=16)
def _forms(known: tuple[str, ...]) -> tuple[tuple[str, tuple[Form, ...]], ...]:
    values = sorted({value for value in known if len(value) >= SHORTEST}, key=lambda v: (-len(v), v))
    return tuple((value, tuple(dict.fromkeys(_written(value)))) for value in values)


def _written(value: str) -> Iterator[Form]:
    data = value.encode("utf-8", "backslashreplace")
    yield Form(value)
    yield Form(value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
    if len(data) < _LONG:
        return
    percent = _UNSAFE.sub(lambda m: b"%%%02X" % ord(m[0]), data).decode()
    yield Form(percent)
    yield Form(_SMALL.sub(lambda m: m[0].lower(), percent))
    yield Form(data.hex())
    yield Form(data.hex().upper())
    for shift in range(3):
        yield from _base64(data, shift)


def _base64(data: bytes, shift: int) -> Iterator[Form]:
    """The letters that the value alone decides when `shift` bytes stand in front of it."""
    whole = base64.b64encode(b"\0" * shift + data).decode()
    first = (0, 2, 3)[shift]
    last = (shift + len(data)) * 8 // 6
    core = whole[first:last]  # ten letters at least, for a value of eight bytes
    yield Form(core, first, 2)
    yield Form(core.replace("+", "-").replace("/", "_"), first, 2)
