"""What secrets look like: keys by their prefixes, and values by the names they are given.

A shape is looked for only where one of its words occurs, so that ordinary text costs a few searches.
**Invariant:** every pattern takes linear time: what repeats is possessive or bounded, and nothing is tried twice.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from steersman.judges.named_secrets import CODE_PATH, compiled, named_values, names_one
from steersman.judges.patterns import later
from steersman.judges.projection import WRAPPED, seen_through
from steersman.judges.secret_keys import (
    COMMON_PREFIXES,
    FIXED_KINDS,
    INNER_ROWS,
    KEY_ROWS,
    MARKER,
    WORD,
    KeyRow,
)


class Span(NamedTuple):
    """A secret in a text: from where to where, and what kind of one."""

    start: int
    end: int
    kind: str


class Shape(msgspec.Struct, frozen=True):
    """A pattern whose group `s` is the secret; `words`: at least one of them is in every text that has one."""

    kind: str
    words: tuple[str, ...]
    pattern: str
    judge: Callable[[re.Match[str]], bool]  # whether a match is a secret


_GAP = r"[ \t]{0,4}"
_QUOTE = r"(?:\\{0,3}[\"'])"  # also as it looks inside a JSON string


def _any(match: re.Match[str]) -> bool:  # noqa: ARG001  the shape says it all
    return True


# ── keys that say what they are ─────────────────────────────────────────────────────────────────────────────────────

# A key that was wrapped goes on with lines of nothing but its own letters; a digest below it is no part of it.
_WRAPPED = (
    r"(?:(?:\r?\n)(?![0-9a-f]{40}(?:[0-9a-f]{24})?(?![A-Za-z0-9_-]))[A-Za-z0-9_-]{20,}+(?=\r?\n|\Z)){0,8}+"
)


def _key(row: KeyRow, prefix: str) -> Shape:
    """The prefix comes first in the pattern, and then the look back in front of it: so a search skips to it."""
    tail = "" if row.kind in FIXED_KINDS else _WRAPPED
    word = re.escape(prefix)
    before = WORD if prefix in COMMON_PREFIXES else "[A-Za-z0-9]"
    size = f"{{{row.least}}}(?![A-Za-z0-9_-])" if row.exact else f"{{{row.least},}}+" if row.least else ""
    return Shape(
        row.kind, (prefix,), f"(?P<s>{word}(?<!{before}{word}){row.alphabet}{size}{row.more}{tail})", _any
    )


# ── blocks, addresses, headers ──────────────────────────────────────────────────────────────────────────────────────

# The lines of a key, and nothing else: words that only follow a headline stay to be read.
_LINE = r"[ \t\"'+,;()>#*|-]{0,32}+(?:\r?\n|\\r\\n|\\n)[ \t\"'+,>#*|(-]{0,32}?"
_BODY = (
    r"(?:[A-Z][A-Za-z-]{1,24}:[^\n\\\"]{0,120}+|[A-Za-z0-9+/=]++(?=[ \t]*+(?:[\r\n\"'\\,;)]|\Z|-----END)))"
)
_PEM = (
    r"(?P<s>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:(?:(?:{_LINE}){{1,3}}{_BODY}){{1,600}}+|(?:[ ][A-Za-z0-9+/=]{{16,}}+){{1,600}}+)"
    rf"(?:(?:[ ]|(?:{_LINE}){{1,3}})-----END [^\n-]{{0,60}}-----)?)"
)
_KEY_END = "-----END "
_END = later(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = later(r"[ \t+>#|*\"'-]{0,16}[A-Za-z0-9+/=]{16,}[\"'\\nr ,]{0,8}")
_USERINFO = r"[^\s/@\"'<>]"
_URL = rf"://(?!{MARKER}@)(?P<s>[^\s/@:\"'<>]*+:{_USERINFO}++(?:@{_USERINFO}++(?=@))*+)(?=@)"
_CRED = r"[A-Za-z0-9._~+/=-]"
_SCHEME = r"(?i:basic|bearer|token|apikey|digest|negotiate|key)"
_AUTH = rf"(?i:authorization){_QUOTE}?{_GAP}[:=,]{_GAP}{_QUOTE}?(?P<scheme>{_SCHEME}[ \t]{{1,4}})?(?P<s>{_CRED}{{4,}}+)"
_BEARER = rf"(?i:bearer)[ \t]{{1,4}}(?P<s>{_CRED}{{20,}}+)"
_COOKIE = rf"(?i:cookie){_QUOTE}?{_GAP}:{_GAP}{_QUOTE}?(?P<s>[A-Za-z0-9_.-]{{1,64}}+=[^\s;\"',\\]{{8,}}+)"
_WEBHOOK = r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/)(?P<s>[A-Za-z0-9/_-]{20,}+)"
_SPACES = r"[ \t\r\n]{1,8}"
_NETRC = (
    rf"(?:machine{_SPACES}[^\s]{{1,256}}+|default){_SPACES}(?:(?:login|account){_SPACES}[^\s]{{1,256}}+{_SPACES}){{1,2}}"
    rf"password{_SPACES}(?P<s>(?!{MARKER})[^\s\"'\\]++)"
)
_USER = r"(?:-u(?<![\w-]-u)|--user(?<![\w-]--user))(?:[ =]|\\?\",[ ]?\\?\")[^\s:\"'\\]{1,128}+:(?P<s>[^\s\"'\\]++)"


def _a_credential(match: re.Match[str]) -> bool:
    if match["scheme"] is not None:
        return True
    after = match.string[match.end() : match.end() + 1]
    return (
        after != "("
        and any(char.isdigit() for char in match["s"])
        and CODE_PATH.fullmatch(match["s"]) is None
    )


def _no_number(match: re.Match[str]) -> bool:
    return not match["s"].isdigit()  # docker run -u 1000:1000


_ALNUM = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


SHAPES: tuple[Shape, ...] = (
    Shape("private_key", ("PRIVATE KEY",), _PEM, _any),
    Shape("url", ("://",), _URL, _any),
    Shape("authorization", ("uthorization", "UTHORIZATION"), _AUTH, _a_credential),
    Shape("authorization", ("earer", "EARER"), _BEARER, _any),
    Shape("cookie", ("ookie", "OOKIE"), _COOKIE, _any),
    Shape("webhook", ("hooks",), _WEBHOOK, _any),
    *(Shape(kind, (word,), pattern, _any) for kind, word, pattern in INNER_ROWS),
    Shape("netrc", ("password",), _NETRC, _any),
    Shape("authorization", ("-u", "--user"), _USER, _no_number),
)
KEYS: tuple[Shape, ...] = tuple(_key(row, prefix) for row in KEY_ROWS for prefix in row.prefixes)
_KEY_OF = {shape.words[0]: shape for shape in KEYS}
WORDS = tuple(dict.fromkeys((*_KEY_OF, _KEY_END, *(word for shape in SHAPES for word in shape.words))))


class Signs(NamedTuple):
    """What there is in a text for a secret to show itself by, and so in every part of it."""

    words: tuple[str, ...]  # of shapes
    named: bool  # whether there may be a name that is given to secrets


ALL_SIGNS = Signs(WORDS, named=True)


def signs_in(text: str) -> Signs:
    """What a text or any part of it can show a secret by."""
    return Signs(tuple([word for word in WORDS if word in text and _begins(word, text)]), names_one(text))


def _begins(word: str, text: str) -> bool:
    """Whether it is a key's and begins a word somewhere, or is no key's: `sk_` in `risk_level` is no sign."""
    at = text.find(word) if word in _KEY_OF else 0
    while at > 0 and text[at - 1] in _ALNUM:
        at = text.find(word, at + 1)
    return at >= 0


def shaped(text: str, signs: Signs = ALL_SIGNS) -> Iterator[Span]:
    """Every secret that shows itself; they may overlap. `signs` are those of what the text is a part of."""
    here = [word for word in signs.words if word in text]
    if here:
        yield from _with_words(text, here)
    if signs.named:
        yield from (Span(start, end, "assignment") for start, end in named_values(text))


def _with_words(text: str, here: list[str]) -> Iterator[Span]:
    present = [_KEY_OF[word] for word in here if word in _KEY_OF]
    whole = [span for shape in present for span in _matches(shape, text)]
    yield from whole
    yield from _torn(text, present, {span.start for span in whole})
    if _KEY_END in here:
        yield from _headless_keys(text)
    for shape in SHAPES if len(here) > len(present) else ():
        if any(word in here for word in shape.words):
            yield from _matches(shape, text)


def _torn(text: str, present: list[Shape], whole: set[int]) -> Iterator[Span]:
    """Keys that a line break has torn, where no part of them is a key by itself."""
    if not present or "\n" not in text:
        return
    joined, back = seen_through(text, WRAPPED)
    for found in (span for shape in present for span in _matches(shape, joined)):
        start, end = back(found.start, found.end)
        if start not in whole and end - start > found.end - found.start:
            yield Span(start, end, found.kind)


def _headless_keys(text: str) -> Iterator[Span]:
    """The lines above the end of a private key whose beginning was left out."""
    for end in _END.finditer(text):
        first = at = text.rfind("\n", 0, end.start())
        while at >= 0:
            line = text.rfind("\n", 0, at) + 1
            if _KEY_LINE.fullmatch(text, line, at) is None:
                break
            first, at = line, line - 1
        if first < text.rfind("\n", 0, end.start()):
            yield Span(first, end.end(), "private_key")


def _matches(shape: Shape, text: str) -> Iterator[Span]:
    for match in compiled(shape.pattern).finditer(text):
        if shape.judge(match):
            yield Span(match.start("s"), match.end("s"), shape.kind)
