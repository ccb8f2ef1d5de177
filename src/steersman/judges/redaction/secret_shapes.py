"""What secrets look like: keys by their prefixes, and values by the names they are given.

A shape is looked for only where one of its words occurs, so that ordinary text costs a few searches.
**Invariant:** every pattern takes linear time: what repeats is possessive or bounded, and nothing is tried twice.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from steersman.judges.redaction.named_secrets import (
    CODE_ATTRIBUTE_PATH,
    compile_secret_pattern,
    find_named_secrets,
    has_secret_name,
)
from steersman.judges.redaction.secret_keys import (
    COMMON_KEY_PREFIXES,
    INNER_PREFIX_ROWS,
    KEY_CHARACTER,
    KEY_ROWS,
    REDACTION_MARKER_PATTERN,
    KeyRow,
)


class SecretSpan(NamedTuple):
    """A secret in a text: from where to where, and what kind of one."""

    start: int
    end: int
    kind: str


class SecretShape(msgspec.Struct, frozen=True):
    """A pattern whose group `s` is the secret; `words`: at least one of them is in every text that has one."""

    kind: str
    words: tuple[str, ...]
    pattern: str
    judge: Callable[[re.Match[str]], bool]  # whether a match is a secret


_SHAPE_GAP = r"[ \t]{0,4}"
_SHAPE_QUOTE = r"(?:\\{0,3}[\"'])"  # also as it looks inside a JSON string


def _accepts_any_match(match: re.Match[str]) -> bool:  # noqa: ARG001  the shape says it all
    return True


# ── keys that say what they are ─────────────────────────────────────────────────────────────────────────────────────


def _key_shape(row: KeyRow, prefix: str) -> SecretShape:
    """The prefix comes first in the pattern, and then the look back in front of it: so a search skips to it."""
    word = re.escape(prefix)
    before = KEY_CHARACTER if prefix in COMMON_KEY_PREFIXES else "[A-Za-z0-9]"
    size = f"{{{row.least}}}(?![A-Za-z0-9_-])" if row.exact else f"{{{row.least},}}+" if row.least else ""
    return SecretShape(
        row.kind,
        (prefix,),
        f"(?P<s>{word}(?<!{before}{word}){row.alphabet}{size}{row.more})",
        _accepts_any_match,
    )


# ── blocks, addresses, headers ──────────────────────────────────────────────────────────────────────────────────────

# The lines of a key, and nothing else: words that only follow a headline stay to be read.
_PEM_LINE_BREAK = r"[ \t\"'+,;()>#*|-]{0,32}+(?:\r?\n|\\r\\n|\\n)[ \t\"'+,>#*|(-]{0,32}?"
_PEM_BODY = (
    r"(?:[A-Z][A-Za-z-]{1,24}:[^\n\\\"]{0,120}+|[A-Za-z0-9+/=]++(?=[ \t]*+(?:[\r\n\"'\\,;)]|\Z|-----END)))"
)
_PEM_KEY = (
    r"(?P<s>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:(?:(?:{_PEM_LINE_BREAK}){{1,3}}{_PEM_BODY}){{1,600}}+|(?:[ ][A-Za-z0-9+/=]{{16,}}+){{1,600}}+)"
    rf"(?:(?:[ ]|(?:{_PEM_LINE_BREAK}){{1,3}})-----END [^\n-]{{0,60}}-----)?)"
)
_URL_USERINFO = r"[^\s/@\"'<>]"
_URL_CREDENTIAL = rf"://(?!{REDACTION_MARKER_PATTERN}@)(?P<s>[^\s/@:\"'<>]*+:{_URL_USERINFO}++(?:@{_URL_USERINFO}++(?=@))*+)(?=@)"
_CREDENTIAL_CHARACTER = r"[A-Za-z0-9._~+/=-]"
_AUTH_SCHEME = r"(?i:basic|bearer|token|apikey|digest|negotiate|key)"
_AUTH_HEADER = rf"(?i:authorization){_SHAPE_QUOTE}?{_SHAPE_GAP}[:=,]{_SHAPE_GAP}{_SHAPE_QUOTE}?(?P<scheme>{_AUTH_SCHEME}[ \t]{{1,4}})?(?P<s>{_CREDENTIAL_CHARACTER}{{4,}}+)"
_BEARER_TOKEN = rf"(?i:bearer)[ \t]{{1,4}}(?P<s>{_CREDENTIAL_CHARACTER}{{20,}}+)"
_COOKIE_VALUE = rf"(?i:cookie){_SHAPE_QUOTE}?{_SHAPE_GAP}:{_SHAPE_GAP}{_SHAPE_QUOTE}?(?P<s>[A-Za-z0-9_.-]{{1,64}}+=[^\s;\"',\\]{{8,}}+)"
_WEBHOOK_URL = r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/)(?P<s>[A-Za-z0-9/_-]{20,}+)"
_NETRC_SPACES = r"[ \t\r\n]{1,8}"
_NETRC_PASSWORD = (
    rf"(?:machine{_NETRC_SPACES}[^\s]{{1,256}}+|default){_NETRC_SPACES}(?:(?:login|account){_NETRC_SPACES}[^\s]{{1,256}}+{_NETRC_SPACES}){{1,2}}"
    rf"password{_NETRC_SPACES}(?P<s>(?!{REDACTION_MARKER_PATTERN})[^\s\"'\\]++)"
)
_USER_OPTION = r"(?:-u(?<![\w-]-u)|--user(?<![\w-]--user))(?:[ =]|\\?\",[ ]?\\?\")[^\s:\"'\\]{1,128}+:(?P<s>[^\s\"'\\]++)"


def _is_credential_match(match: re.Match[str]) -> bool:
    if match["scheme"] is not None:
        return True
    after = match.string[match.end() : match.end() + 1]
    return (
        after != "("
        and any(char.isdigit() for char in match["s"])
        and CODE_ATTRIBUTE_PATH.fullmatch(match["s"]) is None
    )


def _is_no_number_match(match: re.Match[str]) -> bool:
    return not match["s"].isdigit()  # docker run -u 1000:1000


_ALPHANUMERIC_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


SECRET_SHAPES: tuple[SecretShape, ...] = (
    SecretShape("private_key", ("PRIVATE KEY",), _PEM_KEY, _accepts_any_match),
    SecretShape("url", ("://",), _URL_CREDENTIAL, _accepts_any_match),
    SecretShape("authorization", ("uthorization", "UTHORIZATION"), _AUTH_HEADER, _is_credential_match),
    SecretShape("authorization", ("earer", "EARER"), _BEARER_TOKEN, _accepts_any_match),
    SecretShape("cookie", ("ookie", "OOKIE"), _COOKIE_VALUE, _accepts_any_match),
    SecretShape("webhook", ("hooks",), _WEBHOOK_URL, _accepts_any_match),
    *(SecretShape(kind, (word,), pattern, _accepts_any_match) for kind, word, pattern in INNER_PREFIX_ROWS),
    SecretShape("netrc", ("password",), _NETRC_PASSWORD, _accepts_any_match),
    SecretShape("authorization", ("-u", "--user"), _USER_OPTION, _is_no_number_match),
)
KEY_SHAPES: tuple[SecretShape, ...] = tuple(
    _key_shape(row, prefix) for row in KEY_ROWS for prefix in row.prefixes
)
_KEY_SHAPE_BY_PREFIX = {shape.words[0]: shape for shape in KEY_SHAPES}
SHAPE_WORDS = tuple(
    dict.fromkeys((*_KEY_SHAPE_BY_PREFIX, *(word for shape in SECRET_SHAPES for word in shape.words)))
)


class SecretSigns(NamedTuple):
    """What there is in a text for a secret to show itself by, and so in every part of it."""

    words: tuple[str, ...]  # of shapes
    named: bool  # whether there may be a name that is given to secrets


ALL_SECRET_SIGNS = SecretSigns(SHAPE_WORDS, named=True)


def find_secret_signs(text: str) -> SecretSigns:
    """What a text or any part of it can show a secret by."""
    return SecretSigns(
        tuple([word for word in SHAPE_WORDS if word in text and _begins_key_word(word, text)]),
        has_secret_name(text),
    )


def _begins_key_word(word: str, text: str) -> bool:
    """Whether it is a key's and begins a word somewhere, or is no key's: `sk_` in `risk_level` is no sign."""
    at = text.find(word) if word in _KEY_SHAPE_BY_PREFIX else 0
    while at > 0 and text[at - 1] in _ALPHANUMERIC_CHARACTERS:
        at = text.find(word, at + 1)
    return at >= 0


def find_shaped_secrets(text: str, signs: SecretSigns = ALL_SECRET_SIGNS) -> Iterator[SecretSpan]:
    """Every secret that shows itself; they may overlap. `signs` are those of what the text is a part of."""
    words_here = [word for word in signs.words if word in text]
    if words_here:
        yield from _find_secrets_by_words(text, words_here)
    if signs.named:
        yield from (SecretSpan(start, end, "assignment") for start, end in find_named_secrets(text))


def _find_secrets_by_words(text: str, words_here: list[str]) -> Iterator[SecretSpan]:
    present = [_KEY_SHAPE_BY_PREFIX[word] for word in words_here if word in _KEY_SHAPE_BY_PREFIX]
    for shape in present:
        yield from _find_shape_matches(shape, text)
    for shape in SECRET_SHAPES if len(words_here) > len(present) else ():
        if any(word in words_here for word in shape.words):
            yield from _find_shape_matches(shape, text)


def _find_shape_matches(shape: SecretShape, text: str) -> Iterator[SecretSpan]:
    for match in compile_secret_pattern(shape.pattern).finditer(text):
        if shape.judge(match):
            yield SecretSpan(match.start("s"), match.end("s"), shape.kind)
