"""Secrets taken out of outside text before it is kept.

A marker stands where the secret stood, the same for the same secret and the same key, so that texts stay comparable
and nobody can try guesses without the key.
**Invariant:** linear time; JSON stays JSON; redacting twice changes nothing; a net for accidents, not a proof of absence.
"""

import base64
import binascii
import hashlib
import hmac
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from steersman.judges.known_secrets import SHORTEST, forms_in, known_in
from steersman.judges.projection import INVISIBLE, blanked, hides, seen_through
from steersman.judges.secret_shapes import MARKER, WORDS, Span, names_one, shaped, words_in
from steersman.judges.torn_secrets import TRACES, torn

SHORTEST_KNOWN = SHORTEST
_PASSES = 8  # a marker can lay bare what was hidden in front of it; two passes settle all but contrived texts
_LITERAL = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_RUN = re.compile(r"[A-Za-z0-9+/_-]{24,}+={0,2}")  # what could be base64
_MARKER = re.compile(MARKER)


class Secret(NamedTuple):
    """One that goes."""

    start: int
    end: int
    kind: str
    value: str


def redact(text: str, known: tuple[str, ...] = (), key: bytes = b"") -> str:
    """The text with secrets replaced by markers; `known` are exact values to hide too, such as a server's token."""
    if text[:1] in ("{", "[") and _is_json(text):
        return _redacted_json(text, known, key)
    return _redacted(text, known, key)


def marker(kind: str, secret: str, key: bytes = b"") -> str:
    """What stands in place of a secret."""
    data = secret.encode("utf-8", "backslashreplace")
    return f"[redacted:{kind}:{hmac.new(key, data, hashlib.sha256).hexdigest()[:8]}]"


def _redacted(text: str, known: tuple[str, ...], key: bytes, words: tuple[str, ...] = WORDS) -> str:
    """`words` of shapes are all that can be in it."""
    for _ in range(_PASSES):
        found = _chosen(_outside_markers(text, _secrets(text, known, words)))
        if not found:
            break
        text, words = _without(text, found, key), WORDS  # a marker has words of its own
    return text


def _secrets(text: str, known: tuple[str, ...], words: tuple[str, ...]) -> Iterable[Secret]:
    for hidden in known_in(text, known):
        yield Secret(*hidden.span, hidden.value)
    for span, value in torn(text, known):
        yield Secret(*span, value)
    if not hides(text):
        yield from _shown(text, known, words)
        return
    yield from _shown(blanked(text), known)  # a word that begins right behind a colour
    plain, back = seen_through(text, INVISIBLE)  # a word with a colour inside
    for secret in _shown(plain, known):
        yield Secret(*back(secret.start, secret.end), secret.kind, secret.value)


def _shown(text: str, known: tuple[str, ...], words: tuple[str, ...] = WORDS) -> Iterable[Secret]:
    for span in (*shaped(text, words), *_encoded(text, known)):
        yield Secret(*span, text[span.start : span.end])


def _encoded(text: str, known: tuple[str, ...]) -> Iterable[Span]:
    """Base64 with a secret inside."""
    for run in _RUN.finditer(text):
        inside = _decoded(run[0])
        if inside and (any(shaped(inside)) or any(known_in(inside, known))):
            yield Span(run.start(), run.end(), "encoded")


def _decoded(run: str) -> str:
    """The text that a run of letters encodes; nothing where it encodes none."""
    try:
        data = base64.b64decode(run.rstrip("=").replace("-", "+").replace("_", "/") + "===")
        text = data.decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return "" if hides(text) else text


def _outside_markers(text: str, secrets: Iterable[Secret]) -> Iterable[Secret]:
    """A marker is no secret, nor is a part of one; a secret may hold whole markers."""
    found = list(_MARKER.finditer(text))
    starts = [match.start() for match in found]

    def touches(secret: Secret) -> bool:
        first, last = bisect_right(starts, secret.start) - 1, bisect_left(starts, secret.end) - 1
        ends_inside = last >= 0 and secret.end < found[last].end()
        whole = first >= 0 and (secret.start, secret.end) == found[first].span()
        begins_inside = first >= 0 and starts[first] < secret.start < found[first].end()
        return ends_inside or whole or begins_inside

    return (secret for secret in secrets if not touches(secret))


def _chosen(secrets: Iterable[Secret]) -> list[Secret]:
    """Of those that overlap the longest."""
    kept: list[Secret] = []
    for secret in sorted(secrets, key=lambda s: (s.start, s.start - s.end)):
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
        elif secret.end - secret.start > kept[-1].end - kept[-1].start:
            kept[-1] = secret
    return kept


def _without(text: str, secrets: list[Secret], key: bytes) -> str:
    pieces, at = [], 0
    for secret in secrets:
        pieces += [text[at : secret.start], marker(secret.kind, secret.value, key)]
        at = secret.end
    return "".join((*pieces, text[at:]))


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return False
    return True


def _redacted_json(text: str, known: tuple[str, ...], key: bytes) -> str:
    """Each string by itself, then what only their neighbourhood shows; the result can be read like the original."""
    looked: dict[str, str] = {}  # names of fields come again and again
    words = words_in(text)
    signs = _signs(text, known, words)

    def literal(match: re.Match[str]) -> str:
        word = match[0]
        if word not in looked:
            looked[word] = _redacted_literal(word, known, key, words) if _suspect(word, signs) else word
        return looked[word]

    inner = _LITERAL.sub(literal, text)
    outer = _redacted(inner, known, key, words if inner == text else WORDS)
    return outer if outer == inner or _is_json(outer) else inner


def _redacted_literal(word: str, known: tuple[str, ...], key: bytes, words: tuple[str, ...]) -> str:
    inside = msgspec.json.decode(word)
    hidden = _redacted(inside, known, key, WORDS if "\\" in word else words)
    return word if hidden == inside else msgspec.json.encode(hidden).decode()


def _signs(text: str, known: tuple[str, ...], words: tuple[str, ...]) -> tuple[str, ...]:
    """What a string of this text holds if a secret is in it, but for names and base64; the empty one is in all."""
    if hides(text):
        return ("",)
    return ("\\", *words, *forms_in(text, known), *(trace for trace in TRACES if trace in text))


def _suspect(word: str, signs: tuple[str, ...]) -> bool:
    """Whether a string has to be looked at closely: most of a document are names, numbers and plain words."""
    return any(sign in word for sign in signs) or _RUN.search(word) is not None or names_one(word)
