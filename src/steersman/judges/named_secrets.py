"""Values that are secret by the names they are given, as settings, code, options, JSON and YAML write them.

**Invariant:** every pattern takes linear time: what repeats is possessive or bounded, and nothing is tried twice.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

from steersman.judges.patterns import later
from steersman.judges.secret_keys import MARKER

_GAP = r"[ \t]{0,4}"
_QUOTE = r"(?:\\{0,3}[\"'])"  # also as it looks inside a JSON string
# What a value is made of where nothing quotes it.
_BARE = r"[^\s\"'`,;&()\[\]{}<>|\\]"


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern when it is first needed: all of them cost as much as the rest of a short command."""
    return re.compile(pattern)


# In small letters; an underline in front of `auth`: a bare one is a word of many meanings.
_NAME = re.compile(
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|_auth"
    r"|(?:api|access|private|signing|encryption|account|shared)[_-]?key)"
    r"(?:[_-]?key(?:[_-]?base)?|[_-]?value|[_-](?:prod|production|dev|staging|test)|[0-9]{1,2})?(?![a-z0-9_])"
)
_LOWER = {upper: upper + 32 for upper in range(65, 91)}
_TYPE = rf"(?::{_GAP}[A-Za-z_][A-Za-z0-9_.]{{0,40}}{_GAP})?"  # token: str = "…"
_TAGS = r"(?:[!&][^\s\"',\[\]{}]{0,80}+[ \t]{1,4}){0,2}"
_QUOTED = (
    rf"{_QUOTE}?\]?{_GAP}{_TYPE}(?:=>|:=|[:=](?!=)){_GAP}{_TAGS}(?P<quote>{_QUOTE})(?!{MARKER}(?P=quote))"
    r"(?P<s>(?:(?!(?P=quote))(?:[^\n\\]|\\[^\n])){1,4096}+)(?=(?P=quote))"
)
_ASSIGNED = rf"=(?![=$<])(?P<s>{_BARE}++)"
_SPACED = rf"[ \t]{{1,4}}=[ \t]{{1,4}}(?P<s>{_BARE}++)"
_SAID = rf":[ \t]{{1,4}}{_TAGS}(?P<s>{_BARE}{{6,}}+)"
# YAML writes a value on the lines below its name, as a scalar, a list or a block, after tags, anchors and comments.
_COMMENT = r"[ \t]{0,8}(?:(?<=[\s:])#[^\n]{0,200})?"
_NAME_ENDS = rf"{_QUOTE}?:[ \t]{{0,4}}(?:[!&][^\s\"',\[\]{{}}]{{0,80}}+[ \t]{{0,4}}){{0,2}}{_COMMENT}\r?\n"
_LINE_BELOW = (
    rf"[+-]?(?:[ \t]{{0,40}}(?:#[^\n]{{0,200}})?\r?\n[+-]?){{0,4}}(?:(?P<item>[ \t]{{0,40}}-[ \t]{{1,4}})|[ \t]{{1,40}}){_TAGS}"
    r"(?:(?P<quote>[\"'])(?P<quoted>(?:''|(?!(?P=quote))(?:[^\n\\]|\\[^\n])){1,4096}+)(?P=quote)"
    r"|(?P<plain>[^\s\"'`,\[\]{}&*!|>%@#(][^\s]*+))"
    rf"[,;]?{_COMMENT}(?=\r?\n|\Z)"
)
_BLOCK = (
    rf":[ \t]{{1,4}}{_TAGS}[|>][+-]?[0-9]?[+-]?{_COMMENT}\r?\n(?P<indent>[+-]?[ \t]{{1,32}})"
    r"(?P<s>[^\s][^\r\n]{0,4096}+(?:\r?\n(?P=indent)[^\r\n]{1,4096}+){0,200}+)"
)
_OPTION = rf"(?:[ ]{{1,2}}|\\?\",[ ]?\\?\")(?P<s>(?![-$<\[]){_BARE}++)"

_STANDS_FOR = later(  # a value that only says where the secret is, or that there is none
    r"\$[A-Za-z_{(].*|[^{}]*+\{[\w.!:]*+\}.*|\{\{.*|<.*>|%[({s].*|env:\w+|\*+|\.+|x{3,}|X{3,}|(?i:string|str|text|bytes|int|bool|any|none|null|nil|"
    r"undefined|true|false|required|optional|password|secret|token|redacted|example|changeme|\w*placeholder\w*)"
    r"|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|(?:~|\.{0,2})/[\w./ -]*|[\w./-]*\.(?:json|ya?ml|toml|txt|pem|env|ini|cfg|py|js|ts)"
)
CODE_PATH = later(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # an attribute of something: code
_CALL = later(r"[A-Za-z_][\w.]*[(\[].*[)\]]")
_DIGITS = later(r"[0-9]")
_MOST_BELOW = 100  # lines of a list
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


def _values_below(name: str, text: str, end: int) -> Iterator[tuple[int, int]]:
    """Of `name:` and the lines below: one value, or each of a list; in a diff the line that was, and the one that is."""
    head = compiled(_NAME_ENDS).match(text, end)
    if head is None:
        return
    at, lead = head.end(), _lead(text, end - len(name))
    for _ in range(_MOST_BELOW):
        start = _after_lead(text, at, lead)
        line = compiled(_LINE_BELOW).match(text, start)
        if line is None or (line["plain"] and line["plain"].endswith(":")):
            return
        span = line.span("quoted" if line["quote"] else "plain")
        if lead and start == at and "\n" in text[at : span[0]]:
            return  # prose or code that ends with a colon
        if _a_value_below(name, line):
            yield span
        if line["item"] is None and text[start] != "-":
            return
        at = text.find("\n", line.end()) + 1 or len(text)


def _a_value_below(name: str, line: re.Match[str]) -> bool:
    """Another name is none, nor is code, nor a bare word that anyone would write."""
    value = line["quoted"] or line["plain"].rstrip(",;")
    if name.lower().endswith("_auth") and name != "_auth":
        return False
    if _STANDS_FOR.fullmatch(value) or _VERSION.fullmatch(value):
        return False
    if line["quote"]:
        return True
    odd = name.isupper() or any(char.isdigit() for char in value) or len(value) >= 20
    return odd and len(value) >= 6 and not (CODE_PATH.fullmatch(value) or _CALL.fullmatch(value))


def _lead(text: str, start: int) -> str:
    """What stands before a name in its line, as a log puts it there: no quote, no list, no sign of a diff."""
    line = text.rfind("\n", max(0, start - 80), start) + 1
    return text[line:start].rstrip(" \t-+\"'") if line or start < 80 else ""


def _after_lead(text: str, at: int, lead: str) -> int:
    """Where a line begins behind what a log puts before it; times and numbers differ from line to line."""
    same = _DIGITS.sub("0", text[at : at + len(lead)]) == _DIGITS.sub("0", lead)
    return at + len(lead) if same else at


def _a_block(name: str, match: re.Match[str]) -> bool:
    """Of `name: |` and the lines below: a sentence is none."""
    value = match["s"]
    sentence = len(value.split()) > 5 and not any(char.isdigit() for char in value)
    return not sentence and _a_value(name, match)


def _an_option_value(name: str, match: re.Match[str]) -> bool:
    """Of `--name value`: a word in capitals is how a usage line names what to write there."""
    return name.startswith("--") and _a_value(name, match) and not match["s"].isupper()


def _no_code(match: re.Match[str]) -> bool:
    after = match.string[match.end() : match.end() + 1]
    return after not in ("(", "[") and _a_value("", match) and CODE_PATH.fullmatch(match["s"]) is None


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


_VALUES: tuple[tuple[str, Callable[[str, re.Match[str]], bool]], ...] = (
    (_QUOTED, _a_quoted_value),
    (_ASSIGNED, _an_assigned_value),
    (_SPACED, _a_spaced_value),
    (_SAID, _a_said_value),
    (_BLOCK, _a_block),
    (_OPTION, _an_option_value),
)


def names_one(text: str) -> bool:
    """Whether a name may be in it, or in any part of it, that is given to secrets."""
    lower = text.lower()
    return len(lower) != len(text) or _NAME.search(lower) is not None


def named_values(text: str) -> Iterator[tuple[int, int]]:
    """Where each value stands that has the name of a secret."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters are two when they are small
        lower = text.translate(_LOWER)
    looked = 0  # up to here values were looked at: a name inside a value begins no other
    for found in _NAME.finditer(lower):
        if found.start() < looked:
            continue
        name = _word_before(text, found.end())
        for pattern, judge in _VALUES:
            match = compiled(pattern).match(text, found.end())
            if match is not None:
                looked = max(looked, match.end())
                if judge(name, match):
                    yield match.span("s")
        for start, end in _values_below(name, text, found.end()):
            looked = max(looked, end)
            yield start, end
