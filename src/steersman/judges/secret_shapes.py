"""What secrets look like: keys by their prefixes, and values by the names they are given.

A shape is looked for only where one of its words occurs, so that ordinary text costs a few searches.
**Invariant:** every pattern takes linear time: what repeats is possessive or bounded, and nothing is tried twice.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import msgspec

from steersman.judges.patterns import later
from steersman.judges.projection import WRAPPED, seen_through


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


MARKER = r"\[redacted:[a-z_]+:[0-9a-f]{8}\]"
_W = r"[A-Za-z0-9_-]"
_GAP = r"[ \t]{0,4}"
_QUOTE = r"(?:\\{0,3}[\"'])"  # also as it looks inside a JSON string
# What a value is made of where nothing quotes it.
_BARE = r"[^\s\"'`,;&()\[\]{}<>|\\]"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern when it is first needed: all of them cost as much as the rest of a short command."""
    return re.compile(pattern)


def _any(match: re.Match[str]) -> bool:  # noqa: ARG001  the shape says it all
    return True


# ── keys that say what they are ─────────────────────────────────────────────────────────────────────────────────────

# (kind, prefixes, what has to follow)
_KEYS = (
    (
        "api_key",
        ("sk-", "sk_", "rk_"),
        rf"(?=[a-z_-]{{0,64}}+[A-Z0-9]){_W}{{16,}}+",
    ),  # not sk-learn-compatible
    ("github", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), rf"{_W}{{20,}}+"),
    (
        "gitlab",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glsoat-", "glcbt-", "glimt-", "glagent-", "gloas-"),
        rf"{_W}{{16,}}+(?:\.{_W}++)*+",
    ),
    (
        "slack",
        ("xoxa", "xoxb", "xoxc", "xoxd", "xoxe", "xoxo", "xoxp", "xoxr", "xoxs"),
        rf"[.a-z]{{0,6}}-{_W}{{10,}}+",
    ),
    ("slack", ("xapp-",), rf"{_W}{{16,}}+"),
    (
        "aws",
        ("AKIA", "ASIA", "AGPA", "AIDA", "AROA", "AIPA", "ANPA", "ANVA", "ABIA", "ACCA"),
        r"[A-Z0-9]{16}(?![A-Za-z0-9_-])",
    ),
    ("google", ("AIza",), rf"{_W}{{30,}}+"),
    ("google", ("ya29.", "GOCSPX-"), rf"{_W}{{16,}}+"),
    ("npm", ("npm_",), r"[A-Za-z0-9]{30,}+"),
    ("pypi", ("pypi-",), rf"{_W}{{16,}}+"),
    ("api_key", ("hf_", "gsk_", "xai-", "pplx-", "r8_", "ntn_"), r"[A-Za-z0-9]{20,}+"),
    ("api_key", ("nvapi-", "figd_", "lin_api_", "lin_oauth_", "dckr_pat_", "tskey-"), rf"{_W}{{16,}}+"),
    ("api_key", ("SG.",), rf"{_W}{{16,}}+\.{_W}{{16,}}+"),
    ("api_key", ("dop_v1_", "doo_v1_", "dor_v1_", "sbp_", "pul-", "rubygems_"), r"[a-f0-9]{30,}+"),
    ("api_key", ("shpat_", "shpca_", "shppa_", "shpss_"), r"[A-Fa-f0-9]{32,}+"),
    ("api_key", ("dapi", "key-"), r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("api_key", ("hvs.", "hvb.", "hvr."), rf"{_W}{{20,}}+"),
    ("api_key", ("NRAK-", "PMAK-", "HRKU-", "AGE-SECRET-KEY-1"), rf"{_W}{{20,}}+"),
    ("api_key", ("glsa_", "glc_", "sntrys_", "sntryu_"), r"[A-Za-z0-9+/=_-]{30,}+"),
    ("api_key", ("pscale_tkn_", "pscale_oauth_", "pscale_pw_", "sq0atp-", "sq0csp-"), rf"{_W}{{20,}}+"),
    ("api_key", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), rf"{_W}{{30,}}+"),
    ("api_key", ("ATATT3", "ATCTT3"), r"[A-Za-z0-9_=.-]{60,}+"),
    ("api_key", ("whsec_", "ops_eyJ"), r"[A-Za-z0-9+/=_-]{20,}+"),
    ("jwt", ("eyJ",), rf"{_W}{{8,}}+\.{_W}{{8,}}+(?:\.{_W}*+)?"),
)
# A key that was wrapped goes on with lines of nothing but its own letters; a digest below it is no part of it.
_WRAPPED = (
    r"(?:(?:\r?\n)(?![0-9a-f]{40}(?:[0-9a-f]{24})?(?![A-Za-z0-9_-]))[A-Za-z0-9_-]{20,}+(?=\r?\n|\Z)){0,8}+"
)
_COMMON = frozenset({"key-", "dapi", "eyJ"})  # cache-key-… is none
_FIXED = frozenset({"github", "aws"})  # of a fixed length: what follows a whole one is another word


def _key(kind: str, prefix: str, rest: str) -> Shape:
    """The prefix comes first in the pattern, and then the look back in front of it: so a search skips to it."""
    tail = "" if kind in _FIXED else _WRAPPED
    word = re.escape(prefix)
    before = _W if prefix in _COMMON else "[A-Za-z0-9]"
    return Shape(kind, (prefix,), f"(?P<s>{word}(?<!{before}{word}){rest}{tail})", _any)


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
_USERINFO = r"[^\s/@\"'<>]"
_URL = rf"://(?!{MARKER}@)(?P<s>[^\s/@:\"'<>]*+:{_USERINFO}++(?:@{_USERINFO}++(?=@))*+)(?=@)"
_CRED = r"[A-Za-z0-9._~+/=-]"
_SCHEME = r"(?i:basic|bearer|token|apikey|digest|negotiate|key)"
_AUTH = rf"(?i:authorization){_QUOTE}?{_GAP}[:=,]{_GAP}{_QUOTE}?(?P<scheme>{_SCHEME}[ \t]{{1,4}})?(?P<s>{_CRED}{{4,}}+)"
_BEARER = rf"(?i:bearer)[ \t]{{1,4}}(?P<s>{_CRED}{{20,}}+)"
_COOKIE = rf"(?i:cookie){_QUOTE}?{_GAP}:{_GAP}{_QUOTE}?(?P<s>[A-Za-z0-9_.-]{{1,64}}+=[^\s;\"',\\]{{8,}}+)"
_WEBHOOK = r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/)(?P<s>[A-Za-z0-9/_-]{20,}+)"
_BOT = rf"(?<![A-Za-z0-9_:-])(?P<s>[0-9]{{8,10}}:AA{_W}{{30,40}})(?![A-Za-z0-9_-])"
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
    return after != "(" and any(char.isdigit() for char in match["s"]) and _PATH.fullmatch(match["s"]) is None


def _no_number(match: re.Match[str]) -> bool:
    return not match["s"].isdigit()  # docker run -u 1000:1000


# ── values by their names ───────────────────────────────────────────────────────────────────────────────────────────

# In small letters; an underline in front of `auth`: a bare one is a word of many meanings.
_NAME = re.compile(
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|_auth"
    r"|(?:api|access|private|signing|encryption|account|shared)[_-]?key)"
    r"(?:[_-]?key(?:[_-]?base)?|[_-]?value|[_-](?:prod|production|dev|staging|test)|[0-9]{1,2})?(?![a-z0-9_])"
)
_ALNUM = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_LOWER = {upper: upper + 32 for upper in range(65, 91)}
_TYPE = rf"(?::{_GAP}[A-Za-z_][A-Za-z0-9_.]{{0,40}}{_GAP})?"  # token: str = "…"
_QUOTED = (
    rf"{_QUOTE}?\]?{_GAP}{_TYPE}(?:=>|:=|[:=](?!=)){_GAP}(?P<quote>{_QUOTE})(?!{MARKER}(?P=quote))"
    r"(?P<s>(?:(?!(?P=quote))(?:[^\n\\]|\\[^\n])){1,4096}+)(?=(?P=quote))"
)
_ASSIGNED = rf"=(?![=$<])(?P<s>{_BARE}++)"
_SPACED = rf"[ \t]{{1,4}}=[ \t]{{1,4}}(?P<s>{_BARE}++)"
_SAID = rf":[ \t]{{1,4}}(?P<s>{_BARE}{{6,}}+)"
_OPTION = rf"(?:[ ]{{1,2}}|\\?\",[ ]?\\?\")(?P<s>(?![-$<\[]){_BARE}++)"

_STANDS_FOR = later(  # a value that only says where the secret is, or that there is none
    r"\$[A-Za-z_{(].*|[^{}]*+\{[\w.!:]*+\}.*|\{\{.*|<.*>|%[({s].*|env:\w+|\*+|\.+|x{3,}|X{3,}|(?i:string|str|text|bytes|int|bool|any|none|null|nil|"
    r"undefined|true|false|required|optional|password|secret|token|redacted|example|changeme|\w*placeholder\w*)"
    r"|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|(?:~|\.{0,2})/[\w./ -]*|[\w./-]*\.(?:json|ya?ml|toml|txt|pem|env|ini|cfg|py|js|ts)"
)
_PATH = later(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # an attribute of something: code
_SIGN = later(r"[-+/!%@#^*~?$:]")
# Three numbers as content is versioned by; a day is none: people take those for passwords.
_NUMBER = r"(?:0|[1-9][0-9]{0,5})"
_VERSION = later(
    rf"(?!(?:[12]?[0-9]|3[01])\.(?:[1-9]|1[0-2])\.(?:19|20)[0-9]{{2}}$){_NUMBER}(?:\.{_NUMBER}){{2}}"
)


def _a_value(name: str, match: re.Match[str]) -> bool:
    other = (
        name.lower().endswith("_auth") and name != "_auth"
    )  # an npm setting; a longer name may mean anything
    return not other and _STANDS_FOR.fullmatch(match["s"]) is None


def _a_quoted_value(name: str, match: re.Match[str]) -> bool:
    """Of `"name": "value"`: a map from names to versions has names of any kind, such as `rotate_secret`."""
    return _a_value(name, match) and _VERSION.fullmatch(match["s"]) is None


def _an_assigned_value(name: str, match: re.Match[str]) -> bool:
    """Of `name=value`: a line of settings, a query or a shouted name is one; an argument of a call is none."""
    text, value = match.string, match["s"]
    after = text[match.end() : match.end() + 1]
    if not _no_code(match) or name.lower().endswith(value.lower()) or value.lower().endswith(_last(name)):
        return False  # token=token, password=user_password
    start = match.start() - len(name)
    before = text[start - 1 : start] if start else ""
    if (
        name.isupper()
        or name.startswith("-")
        or name == "_auth"
        or before in ("?", "&", ";")
        or after in ("&", ";")
    ):
        return True
    return _random(value) or _whole_line(text, start, match.end())


def _a_spaced_value(name: str, match: re.Match[str]) -> bool:
    """Of `name = value`: a line of settings is one; an assignment in code has names, calls or quotes to its right."""
    value = match["s"]
    letters = len(value) >= 16 and "_" not in value and any(char.isdigit() for char in value)
    return letters and _no_code(match) and _whole_line(match.string, match.start() - len(name), match.end())


def _a_said_value(name: str, match: re.Match[str]) -> bool:
    """Of `name: value`: prose after a colon is none."""
    shouted = name.isupper() and ("_" in name or "-" in name)
    value = match["s"]
    return _no_code(match) and (shouted or (len(value) >= 8 and any(char.isdigit() for char in value)))


def _an_option_value(name: str, match: re.Match[str]) -> bool:
    """Of `--name value`: a word in capitals is how a usage line names what to write there."""
    return name.startswith("--") and _a_value(name, match) and not match["s"].isupper()


def _no_code(match: re.Match[str]) -> bool:
    after = match.string[match.end() : match.end() + 1]
    return after not in ("(", "[") and _a_value("", match) and _PATH.fullmatch(match["s"]) is None


def _last(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _word_before(text: str, end: int) -> str:
    """The name that ends at `end`; a name is no longer than 64 characters."""
    start = end
    while start > max(0, end - 64) and (text[start - 1].isalnum() or text[start - 1] in "_.-"):
        start -= 1
    return text[start:end]


def _random(value: str) -> bool:
    """Whether no one would write this as a word."""
    if len(value) >= 6 and any(char.isdigit() for char in value):
        return True
    return (len(value) >= 20 and "_" not in value) or _SIGN.search(value) is not None


def _whole_line(text: str, start: int, end: int) -> bool:
    line = text.rfind("\n", max(0, start - 16), start) + 1
    before, after = text[line:start], text[end : end + 16].partition("\n")[0]
    return not after.strip() and re.fullmatch(r"[+-]?[ \t]{0,2}(?:export[ ])?", before) is not None


SHAPES: tuple[Shape, ...] = (
    Shape("private_key", ("PRIVATE KEY",), _PEM, _any),
    Shape("url", ("://",), _URL, _any),
    Shape("authorization", ("uthorization", "UTHORIZATION"), _AUTH, _a_credential),
    Shape("authorization", ("earer", "EARER"), _BEARER, _any),
    Shape("cookie", ("ookie", "OOKIE"), _COOKIE, _any),
    Shape("webhook", ("hooks",), _WEBHOOK, _any),
    Shape("api_key", (":AA",), _BOT, _any),
    Shape("netrc", ("password",), _NETRC, _any),
    Shape("authorization", ("-u", "--user"), _USER, _no_number),
)
KEYS: tuple[Shape, ...] = tuple(_key(kind, word, rest) for kind, words, rest in _KEYS for word in words)
_KEY_OF = {shape.words[0]: shape for shape in KEYS}
WORDS = tuple(dict.fromkeys((*_KEY_OF, *(word for shape in SHAPES for word in shape.words))))
_VALUES: tuple[tuple[str, Callable[[str, re.Match[str]], bool]], ...] = (
    (_QUOTED, _a_quoted_value),
    (_ASSIGNED, _an_assigned_value),
    (_SPACED, _a_spaced_value),
    (_SAID, _a_said_value),
    (_OPTION, _an_option_value),
)


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


def names_one(text: str) -> bool:
    """Whether a name may be in it, or in any part of it, that is given to secrets."""
    lower = text.lower()
    return len(lower) != len(text) or _NAME.search(lower) is not None


def shaped(text: str, signs: Signs = ALL_SIGNS) -> Iterator[Span]:
    """Every secret that shows itself; they may overlap. `signs` are those of what the text is a part of."""
    here = [word for word in signs.words if word in text]
    if here:
        yield from _with_words(text, here)
    if signs.named:
        yield from _named(text)


def _with_words(text: str, here: list[str]) -> Iterator[Span]:
    present = [_KEY_OF[word] for word in here if word in _KEY_OF]
    whole = [span for shape in present for span in _matches(shape, text)]
    yield from whole
    yield from _torn(text, present, {span.start for span in whole})
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


def _named(text: str) -> Iterator[Span]:
    lower = text.lower()
    if len(lower) != len(text):  # a few letters are two when they are small
        lower = text.translate(_LOWER)
    looked = 0  # up to here values were looked at: a name inside a value begins no other
    for found in _NAME.finditer(lower):
        if found.start() < looked:
            continue
        name = _word_before(text, found.end())
        for pattern, judge in _VALUES:
            match = _compiled(pattern).match(text, found.end())
            if match is not None:
                looked = max(looked, match.end())
                if judge(name, match):
                    yield Span(match.start("s"), match.end("s"), "assignment")


def _matches(shape: Shape, text: str) -> Iterator[Span]:
    for match in _compiled(shape.pattern).finditer(text):
        if shape.judge(match):
            yield Span(match.start("s"), match.end("s"), shape.kind)
