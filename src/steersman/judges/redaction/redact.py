"""Removes secrets from outside texts before they are kept.

A marker replaces each secret. It is the same for the same secret and key, so that texts stay comparable, and without the
key a guess cannot be checked.
**Invariant:** linear time; JSON stays JSON; redacting twice changes nothing; it prevents accidents, it proves nothing.
"""

import base64
import binascii
import hashlib
import hmac
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from steersman.judges.redaction.named_secrets import has_secret_name
from steersman.judges.redaction.secret_keys import REDACTION_MARKER_PATTERN
from steersman.judges.redaction.secret_shapes import (
    ALL_SECRET_SIGNS,
    SHAPE_WORDS,
    SecretSigns,
    SecretSpan,
    find_secret_signs,
    find_shaped_secrets,
)
from steersman.judges.text import (
    BROKEN_LINE,
    INVISIBLE_TEXT,
    blank_invisible_text,
    has_invisible_text,
    lazy_pattern,
    remove_filler,
)

# ── known secrets ───────────────────────────────────────────────────────────────────────────────────────────────────────

# Values that are known to be secret, found in every form in which programs like to print them.
#
# **Invariant:** an exact search: nothing but the value itself, in one of its forms, is ever hidden here.


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


# ── redact ────────────────────────────────────────────────────────────────────────────────


# A marker can lay bare what was hidden in front of it; two passes settle all but contrived texts.
_MAX_REDACTION_PASSES = 8
_JSON_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_BASE64_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+={0,2}")  # what could be base64
_MARKER_PATTERN = re.compile(REDACTION_MARKER_PATTERN)
# Words of shapes that could stand in JSON outside of its strings, as far as their letters go; names could not.
_JSON_OUTSIDE_WORDS = tuple(
    word for word in SHAPE_WORDS if set(word) <= set("{}[],: \t\r\n0123456789.eE+-truefalsenull")
)


class SecretMatch(msgspec.Struct, frozen=True):
    """One that goes."""

    start: int
    end: int
    kind: str
    value: str


def redact_text(text: str, known: tuple[str, ...] = (), key: bytes = b"") -> str:
    """The text with secrets replaced by markers; `known` are exact values to hide too, such as a server's token."""
    if text[:1] in ("{", "[") and _is_json_text(text):
        return _redact_json_text(text, known, key)
    return _redact_plain_text(text, known, key)


def redaction_marker(kind: str, secret: str, key: bytes = b"") -> str:
    """What stands in place of a secret."""
    data = secret.encode("utf-8", "backslashreplace")
    return f"[redacted:{kind}:{hmac.new(key, data, hashlib.sha256).hexdigest()[:8]}]"


def _redact_plain_text(
    text: str, known: tuple[str, ...], key: bytes, signs: SecretSigns = ALL_SECRET_SIGNS
) -> str:
    for _ in range(_MAX_REDACTION_PASSES):
        secrets = list(_find_all_secrets(text, known, signs))
        chosen_secrets = _choose_longest_secrets(_exclude_markers(text, secrets)) if secrets else []
        if not chosen_secrets:
            break
        # A marker has words of its own.
        text, signs = (_replace_with_markers(text, chosen_secrets, key), ALL_SECRET_SIGNS)
    return text


def _find_all_secrets(text: str, known: tuple[str, ...], signs: SecretSigns) -> Iterable[SecretMatch]:
    for place in find_known_secrets(text, known):
        yield SecretMatch(*place.span, place.value)
    if not has_invisible_text(text):
        yield from _find_visible_secrets(text, known, signs)
        return
    # A word that begins right behind a colour.
    yield from _find_visible_secrets(blank_invisible_text(text), known)
    plain, restore_span = remove_filler(text, INVISIBLE_TEXT)  # a word with a colour inside
    for secret in _find_visible_secrets(plain, known):
        yield SecretMatch(*restore_span(secret.start, secret.end), secret.kind, secret.value)


def _find_visible_secrets(
    text: str, known: tuple[str, ...], signs: SecretSigns = ALL_SECRET_SIGNS
) -> Iterable[SecretMatch]:
    for span in (*find_shaped_secrets(text, signs), *_find_encoded_secrets(text, known)):
        yield SecretMatch(*span, text[span.start : span.end])


def _find_encoded_secrets(text: str, known: tuple[str, ...]) -> Iterable[SecretSpan]:
    """Base64 with a secret inside."""
    for run in _BASE64_RUN.finditer(text):
        decoded = _decode_base64_run(run[0])
        if decoded and (any(find_shaped_secrets(decoded)) or any(find_known_secrets(decoded, known))):
            yield SecretSpan(run.start(), run.end(), "encoded")


def _decode_base64_run(run: str) -> str:
    """The text that a run of letters encodes; nothing where it encodes none."""
    try:
        data = base64.b64decode(run.rstrip("=").replace("-", "+").replace("_", "/") + "===")
        text = data.decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return "" if has_invisible_text(text) else text


def _exclude_markers(text: str, secrets: Iterable[SecretMatch]) -> Iterable[SecretMatch]:
    """A marker is no secret, nor is a part of one; a secret may hold whole markers."""
    markers = list(_MARKER_PATTERN.finditer(text))
    starts = [match.start() for match in markers]

    def touches(secret: SecretMatch) -> bool:
        first_index, last_index = bisect_right(starts, secret.start) - 1, bisect_left(starts, secret.end) - 1
        ends_inside = last_index >= 0 and secret.end < markers[last_index].end()
        is_marker = first_index >= 0 and (secret.start, secret.end) == markers[first_index].span()
        begins_inside = first_index >= 0 and starts[first_index] < secret.start < markers[first_index].end()
        return ends_inside or is_marker or begins_inside

    return (secret for secret in secrets if not touches(secret))


def _choose_longest_secrets(secrets: Iterable[SecretMatch]) -> list[SecretMatch]:
    """Of those that overlap the longest."""
    longest: list[SecretMatch] = []
    for secret in sorted(secrets, key=lambda match: (match.start, match.start - match.end)):
        if not longest or secret.start >= longest[-1].end:
            longest.append(secret)
        elif secret.end - secret.start > longest[-1].end - longest[-1].start:
            longest[-1] = secret
    return longest


def _replace_with_markers(text: str, secrets: list[SecretMatch], key: bytes) -> str:
    pieces, at = [], 0
    for secret in secrets:
        pieces += [text[at : secret.start], redaction_marker(secret.kind, secret.value, key)]
        at = secret.end
    return "".join((*pieces, text[at:]))


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_json_text(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return False
    return True


def _redact_json_text(text: str, known: tuple[str, ...], key: bytes) -> str:
    """Each string by itself, then what only their neighbourhood shows; the result can be read like the original."""
    literals = dict.fromkeys(_JSON_STRING.findall(text))  # the same come again and again
    strings = "".join(literals)
    signs = find_secret_signs(strings)
    marks = _list_suspicious_marks(strings, known, signs)
    redacted_strings = {
        word: new
        for word in literals
        if _is_suspicious_string(word, marks, may_have_names=signs.named)
        and (new := _redact_json_string(word, known, key, signs)) != word
    }
    if redacted_strings:
        inner = _JSON_STRING.sub(lambda match: redacted_strings.get(match[0], match[0]), text)
        outer = _redact_plain_text(inner, known, key)
    else:
        inner = text
        outer = _redact_plain_text(
            text, known, key, signs._replace(words=(*signs.words, *_JSON_OUTSIDE_WORDS))
        )
    return outer if outer == inner or _is_json_text(outer) else inner


def _redact_json_string(word: str, known: tuple[str, ...], key: bytes, signs: SecretSigns) -> str:
    decoded = msgspec.json.decode(word)
    redacted = _redact_plain_text(decoded, known, key, ALL_SECRET_SIGNS if "\\" in word else signs)
    return word if redacted == decoded else msgspec.json.encode(redacted).decode()


def _list_suspicious_marks(strings: str, known: tuple[str, ...], signs: SecretSigns) -> tuple[str, ...]:
    """What one of these strings has inside if it holds a secret, but for names and base64; the empty mark is in all."""
    if has_invisible_text(strings):
        return ("",)
    return ("\\", *signs.words, *find_secret_spellings(strings, known))


def _is_suspicious_string(word: str, marks: tuple[str, ...], *, may_have_names: bool) -> bool:
    """Whether a string has to be looked at closely: most of a document are names, numbers and plain words."""
    if any(mark in word for mark in marks) or (may_have_names and has_secret_name(word)):
        return True
    return any(map(_decode_base64_run, _BASE64_RUN.findall(word)))


_REDACTION_MARK = re.compile(r"\[redacted:([\w-]{1,40}):[0-9a-f]{8}\]")


def mask_secrets(text: str, known: tuple[str, ...] = ()) -> str:
    """The text with the kind of each secret in its place; `known` are values to hide too."""
    return _REDACTION_MARK.sub(r"[redacted:\1]", redact_text(text, known))
