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

import msgspec

from steersman.judges.known_secrets import SHORTEST, forms_in, known_in
from steersman.judges.named_secrets import names_one
from steersman.judges.projection import INVISIBLE, blanked, hides, seen_through
from steersman.judges.secret_keys import MARKER
from steersman.judges.secret_shapes import ALL_SIGNS, WORDS, Signs, Span, shaped, signs_in

SHORTEST_KNOWN = SHORTEST
_PASSES = 8  # a marker can lay bare what was hidden in front of it; two passes settle all but contrived texts
_LITERAL = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+={0,2}")  # what could be base64
_MARKER = re.compile(MARKER)
# Words of shapes that could stand in JSON outside of its strings, as far as their letters go; names could not.
_OUTSIDE = tuple(word for word in WORDS if set(word) <= set("{}[],: \t\r\n0123456789.eE+-truefalsenull"))


class Secret(msgspec.Struct, frozen=True):
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


def _redacted(text: str, known: tuple[str, ...], key: bytes, signs: Signs = ALL_SIGNS) -> str:
    for _ in range(_PASSES):
        secrets = list(_secrets(text, known, signs))
        found = _chosen(_outside_markers(text, secrets)) if secrets else []
        if not found:
            break
        text, signs = _without(text, found, key), ALL_SIGNS  # a marker has words of its own
    return text


def _secrets(text: str, known: tuple[str, ...], signs: Signs) -> Iterable[Secret]:
    for hidden in known_in(text, known):
        yield Secret(*hidden.span, hidden.value)
    if not hides(text):
        yield from _shown(text, known, signs)
        return
    yield from _shown(blanked(text), known)  # a word that begins right behind a colour
    plain, back = seen_through(text, INVISIBLE)  # a word with a colour inside
    for secret in _shown(plain, known):
        yield Secret(*back(secret.start, secret.end), secret.kind, secret.value)


def _shown(text: str, known: tuple[str, ...], signs: Signs = ALL_SIGNS) -> Iterable[Secret]:
    for span in (*shaped(text, signs), *_encoded(text, known)):
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
    literals = dict.fromkeys(_LITERAL.findall(text))  # the same come again and again
    strings = "".join(literals)
    signs = signs_in(strings)
    marks = _marks(strings, known, signs)
    hidden = {
        word: new
        for word in literals
        if _suspect(word, marks, named=signs.named)
        and (new := _redacted_literal(word, known, key, signs)) != word
    }
    if hidden:
        inner = _LITERAL.sub(lambda match: hidden.get(match[0], match[0]), text)
        outer = _redacted(inner, known, key)
    else:
        inner = text
        outer = _redacted(text, known, key, signs._replace(words=(*signs.words, *_OUTSIDE)))
    return outer if outer == inner or _is_json(outer) else inner


def _redacted_literal(word: str, known: tuple[str, ...], key: bytes, signs: Signs) -> str:
    inside = msgspec.json.decode(word)
    hidden = _redacted(inside, known, key, ALL_SIGNS if "\\" in word else signs)
    return word if hidden == inside else msgspec.json.encode(hidden).decode()


def _marks(strings: str, known: tuple[str, ...], signs: Signs) -> tuple[str, ...]:
    """What one of these strings has inside if it holds a secret, but for names and base64; the empty mark is in all."""
    if hides(strings):
        return ("",)
    return ("\\", *signs.words, *forms_in(strings, known))


def _suspect(word: str, marks: tuple[str, ...], *, named: bool) -> bool:
    """Whether a string has to be looked at closely: most of a document are names, numbers and plain words."""
    if any(mark in word for mark in marks) or (named and names_one(word)):
        return True
    return any(map(_decoded, _RUN.findall(word)))
