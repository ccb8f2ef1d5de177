"""Values that are known to be secret, found in every form in which programs like to print them.

**Invariant:** an exact search: nothing but the value itself, in one of its forms, is ever hidden here.
"""

import base64
import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from steersman.judges.patterns import lazy_pattern
from steersman.judges.redaction.secret_shapes import SecretSpan
from steersman.judges.text_projection import BROKEN_LINE, INVISIBLE_TEXT, has_invisible_text, remove_filler

MIN_KNOWN_SECRET_CHARACTERS = 6  # a shorter value would tear holes into words that only contain it
_MIN_ENCODED_LENGTH = 8  # from here on a value is looked for in other forms, too
_BASE64_CHARACTERS = "A-Za-z0-9+/_-"
_PERCENT_ESCAPE = lazy_pattern("%[0-9A-F]{2}")
_HIDDEN_FILLER = lazy_pattern(f"{INVISIBLE_TEXT.pattern}|{BROKEN_LINE.pattern}")
_URL_UNSAFE_BYTE = re.compile(rb"[^A-Za-z0-9._~-]")


class SecretSpelling(msgspec.Struct, frozen=True):
    """One way to write a value."""

    needle: str
    before: int = 0  # letters in front of it that hold a part of the value
    after: int = 0


class KnownSecretPlace(msgspec.Struct, frozen=True):
    """A place where a known value stands, and which value it is."""

    span: SecretSpan
    value: str


def find_known_secrets(text: str, known: tuple[str, ...]) -> Iterator[KnownSecretPlace]:
    """Every place of every known value; they may overlap."""
    if not known:
        return
    yield from _search_secret_spellings(text, known)
    if has_invisible_text(text) or BROKEN_LINE.search(text) is not None:
        plain, span = remove_filler(text, _HIDDEN_FILLER)
        for place in _search_secret_spellings(plain, known, shortest=_MIN_ENCODED_LENGTH):
            yield KnownSecretPlace(SecretSpan(*span(place.span.start, place.span.end), "known"), place.value)


def find_secret_spellings(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The forms of known values that stand in a text as they are, not torn and with nothing hidden inside."""
    return tuple(
        [form.needle for _, forms in _spellings_by_secret(known) for form in forms if form.needle in text]
    )


def _search_secret_spellings(
    text: str, known: tuple[str, ...], shortest: int = MIN_KNOWN_SECRET_CHARACTERS
) -> Iterator[KnownSecretPlace]:
    for value, forms in _spellings_by_secret(known):
        if len(value) < shortest:
            continue
        for form in forms:
            at = text.find(form.needle)
            while at >= 0:
                end = at + len(form.needle)
                yield KnownSecretPlace(_widen_base64_span(text, at, end, form), value)
                at = text.find(form.needle, end)


def _widen_base64_span(text: str, start: int, end: int, form: SecretSpelling) -> SecretSpan:
    """A base64 form shares its first and last letters with what stands beside the value: they go as well."""
    front = re.search(
        f"[{_BASE64_CHARACTERS}]{{0,{form.before}}}$", text[max(0, start - form.before) : start]
    )
    rest = re.match(
        f"[{_BASE64_CHARACTERS}]{{0,{form.after}}}={{0,2}}" if form.after else "", text[end : end + 8]
    )
    assert front is not None  # noqa: S101  both patterns fit the empty text
    assert rest is not None  # noqa: S101  the same
    return SecretSpan(start - len(front[0]), end + rest.end(), "known")


@lru_cache(maxsize=16)
def _spellings_by_secret(known: tuple[str, ...]) -> tuple[tuple[str, tuple[SecretSpelling, ...]], ...]:
    values = sorted(
        {value for value in known if len(value) >= MIN_KNOWN_SECRET_CHARACTERS},
        key=lambda secret: (-len(secret), secret),
    )
    return tuple((value, tuple(dict.fromkeys(_list_secret_spellings(value)))) for value in values)


def _list_secret_spellings(value: str) -> Iterator[SecretSpelling]:
    data = value.encode("utf-8", "backslashreplace")
    yield SecretSpelling(value)
    yield SecretSpelling(value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
    if len(data) < _MIN_ENCODED_LENGTH:
        return
    percent = _URL_UNSAFE_BYTE.sub(lambda match: b"%%%02X" % ord(match[0]), data).decode()
    yield SecretSpelling(percent)
    yield SecretSpelling(_PERCENT_ESCAPE.sub(lambda match: match[0].lower(), percent))
    yield SecretSpelling(data.hex())
    yield SecretSpelling(data.hex().upper())
    for shift in range(3):
        yield from _list_base64_spellings(data, shift)


def _list_base64_spellings(data: bytes, shift: int) -> Iterator[SecretSpelling]:
    """The letters that the value alone decides when `shift` bytes stand in front of it."""
    encoded = base64.b64encode(b"\0" * shift + data).decode()
    start = (0, 2, 3)[shift]
    end = (shift + len(data)) * 8 // 6
    core = encoded[start:end]  # ten letters at least, for a value of eight bytes
    yield SecretSpelling(core, start, 2)
    yield SecretSpelling(core.replace("+", "-").replace("/", "_"), start, 2)
