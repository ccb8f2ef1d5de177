"""Values that are secret by the names they are given, as settings, code, options, JSON and YAML write them.

**Invariant:** every pattern takes linear time: what repeats is possessive or bounded, and nothing is tried twice.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

from steersman.judges.redaction.secret_keys import REDACTION_MARKER_PATTERN
from steersman.judges.text import lazy_pattern

_NAME_GAP = r"[ \t]{0,4}"
_NAME_QUOTE = r"(?:\\{0,3}[\"'])"  # also as it looks inside a JSON string
# What a value is made of where nothing quotes it.
_BARE_VALUE = r"[^\s\"'`,;&()\[\]{}<>|\\]"


@cache
def compile_secret_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern when it is first needed: all of them cost as much as the rest of a short command."""
    return re.compile(pattern)


# In small letters; an underline in front of `auth`: a bare one is a word of many meanings.
_SECRET_NAME = re.compile(
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|_auth"
    r"|(?:api|access|private|signing|encryption|account|shared)[_-]?key)"
    r"(?:[_-]?key(?:[_-]?base)?|[_-]?value|[_-](?:prod|production|dev|staging|test)|[0-9]{1,2})?(?![a-z0-9_])"
)
_ASCII_TO_LOWER = {upper: upper + 32 for upper in range(65, 91)}
_TYPE_ANNOTATION = rf"(?::{_NAME_GAP}[A-Za-z_][A-Za-z0-9_.]{{0,40}}{_NAME_GAP})?"  # token: str = "…"
_YAML_TAGS = r"(?:[!&][^\s\"',\[\]{}]{0,80}+[ \t]{1,4}){0,2}"
_QUOTED_VALUE = (
    rf"{_NAME_QUOTE}?\]?{_NAME_GAP}{_TYPE_ANNOTATION}(?:=>|:=|[:=](?!=)){_NAME_GAP}{_YAML_TAGS}(?P<quote>{_NAME_QUOTE})(?!{REDACTION_MARKER_PATTERN}(?P=quote))"
    r"(?P<s>(?:(?!(?P=quote))(?:[^\n\\]|\\[^\n])){1,4096}+)(?=(?P=quote))"
)
_ASSIGNED_VALUE = rf"=(?![=$<])(?P<s>{_BARE_VALUE}++)"
_SPACED_VALUE = rf"[ \t]{{1,4}}=[ \t]{{1,4}}(?P<s>{_BARE_VALUE}++)"
_COLON_VALUE = rf":[ \t]{{1,4}}{_YAML_TAGS}(?P<s>{_BARE_VALUE}{{6,}}+)"
# YAML writes a value on the lines below its name, as a scalar, a list or a block, after tags, anchors and comments.
_YAML_COMMENT = r"[ \t]{0,8}(?:(?<=[\s:])#[^\n]{0,200})?"
_YAML_NAME_END = (
    rf"{_NAME_QUOTE}?:[ \t]{{0,4}}(?:[!&][^\s\"',\[\]{{}}]{{0,80}}+[ \t]{{0,4}}){{0,2}}{_YAML_COMMENT}\r?\n"
)
_YAML_LINE_BELOW = (
    rf"[+-]?(?:[ \t]{{0,40}}(?:#[^\n]{{0,200}})?\r?\n[+-]?){{0,4}}(?:(?P<item>[ \t]{{0,40}}-[ \t]{{1,4}})|[ \t]{{1,40}}){_YAML_TAGS}"
    r"(?:(?P<quote>[\"'])(?P<quoted>(?:''|(?!(?P=quote))(?:[^\n\\]|\\[^\n])){1,4096}+)(?P=quote)"
    r"|(?P<plain>[^\s\"'`,\[\]{}&*!|>%@#(][^\s]*+))"
    rf"[,;]?{_YAML_COMMENT}(?=\r?\n|\Z)"
)
_YAML_BLOCK = (
    rf":[ \t]{{1,4}}{_YAML_TAGS}[|>][+-]?[0-9]?[+-]?{_YAML_COMMENT}\r?\n(?P<indent>[+-]?[ \t]{{1,32}})"
    r"(?P<s>[^\s][^\r\n]{0,4096}+(?:\r?\n(?P=indent)[^\r\n]{1,4096}+){0,200}+)"
)
_OPTION_VALUE = rf"(?:[ ]{{1,2}}|\\?\",[ ]?\\?\")(?P<s>(?![-$<\[]){_BARE_VALUE}++)"

_PLACEHOLDER_VALUE = lazy_pattern(  # a value that only says where the secret is, or that there is none
    r"\$[A-Za-z_{(].*|[^{}]*+\{[\w.!:]*+\}.*|\{\{.*|<.*>|%[({s].*|env:\w+|\*+|\.+|x{3,}|X{3,}|(?i:string|str|text|bytes|int|bool|any|none|null|nil|"
    r"undefined|true|false|required|optional|password|secret|token|redacted|example|changeme|\w*placeholder\w*)"
    r"|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|(?:~|\.{0,2})/[\w./ -]*|[\w./-]*\.(?:json|ya?ml|toml|txt|pem|env|ini|cfg|py|js|ts)"
)
CODE_ATTRIBUTE_PATH = lazy_pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # an attribute of something: code
_CODE_CALL = lazy_pattern(r"[A-Za-z_][\w.]*[(\[].*[)\]]")
_ANY_DIGIT = lazy_pattern(r"[0-9]")
_MAX_LINES_BELOW = 100  # lines of a list
_PASSWORD_SIGN = lazy_pattern(r"[-+/!%@#^*~?$:]")
# Three numbers as content is versioned by; a day is none: people take those for passwords.
_VERSION_NUMBER_PART = r"(?:0|[1-9][0-9]{0,5})"
_VERSION_NUMBER = lazy_pattern(
    rf"(?!(?:[12]?[0-9]|3[01])\.(?:[1-9]|1[0-2])\.(?:19|20)[0-9]{{2}}$){_VERSION_NUMBER_PART}(?:\.{_VERSION_NUMBER_PART}){{2}}"
)


def _is_secret_value(name: str, match: re.Match[str]) -> bool:
    # An npm setting; a longer name may mean anything.
    is_longer_auth_name = name.lower().endswith("_auth") and name != "_auth"
    return not is_longer_auth_name and _PLACEHOLDER_VALUE.fullmatch(match["s"]) is None


def _is_quoted_secret(name: str, match: re.Match[str]) -> bool:
    """Of `"name": "value"`: a map from names to versions has names of any kind, such as `rotate_secret`."""
    return _is_secret_value(name, match) and _VERSION_NUMBER.fullmatch(match["s"]) is None


def _is_assigned_secret(name: str, match: re.Match[str]) -> bool:
    """Of `name=value`: a line of settings, a query or a shouted name is one; an argument of a call is none."""
    text, value = match.string, match["s"]
    after = text[match.end() : match.end() + 1]
    if (
        not _is_not_code(match)
        or name.lower().endswith(value.lower())
        or value.lower().endswith(name.rpartition(".")[2].lower())
    ):
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
    return _is_random_looking(value) or _is_whole_line(text, start, match.end())


def _is_spaced_secret(name: str, match: re.Match[str]) -> bool:
    """Of `name = value`: a line of settings is one; an assignment in code has names, calls or quotes to its right."""
    value = match["s"]
    letters = len(value) >= 16 and "_" not in value and any(char.isdigit() for char in value)
    return (
        letters
        and _is_not_code(match)
        and _is_whole_line(match.string, match.start() - len(name), match.end())
    )


def _is_colon_secret(name: str, match: re.Match[str]) -> bool:
    """Of `name: value`: prose after a colon is none."""
    shouted = name.isupper() and ("_" in name or "-" in name)
    value = match["s"]
    return _is_not_code(match) and (shouted or (len(value) >= 8 and any(char.isdigit() for char in value)))


def _find_values_below(name: str, text: str, end: int) -> Iterator[tuple[int, int]]:
    """Of `name:` and the lines below: one value, or each of a list; in a diff the line that was, and the one that is."""
    head = compile_secret_pattern(_YAML_NAME_END).match(text, end)
    if head is None:
        return
    at, lead = head.end(), _find_line_lead(text, end - len(name))
    for _ in range(_MAX_LINES_BELOW):
        start = _skip_line_lead(text, at, lead)
        line = compile_secret_pattern(_YAML_LINE_BELOW).match(text, start)
        if line is None or (line["plain"] and line["plain"].endswith(":")):
            return
        span = line.span("quoted" if line["quote"] else "plain")
        if lead and start == at and "\n" in text[at : span[0]]:
            return  # prose or code that ends with a colon
        if _is_secret_below(name, line):
            yield span
        if line["item"] is None and text[start] != "-":
            return
        at = text.find("\n", line.end()) + 1 or len(text)


def _is_secret_below(name: str, line: re.Match[str]) -> bool:
    """Another name is none, nor is code, nor a bare word that anyone would write."""
    value = line["quoted"] or line["plain"].rstrip(",;")
    if name.lower().endswith("_auth") and name != "_auth":
        return False
    if _PLACEHOLDER_VALUE.fullmatch(value) or _VERSION_NUMBER.fullmatch(value):
        return False
    if line["quote"]:
        return True
    odd = name.isupper() or any(char.isdigit() for char in value) or len(value) >= 20
    return (
        odd and len(value) >= 6 and not (CODE_ATTRIBUTE_PATH.fullmatch(value) or _CODE_CALL.fullmatch(value))
    )


def _find_line_lead(text: str, start: int) -> str:
    """What stands before a name in its line, as a log puts it there: no quote, no list, no sign of a diff."""
    line = text.rfind("\n", max(0, start - 80), start) + 1
    return text[line:start].rstrip(" \t-+\"'") if line or start < 80 else ""


def _skip_line_lead(text: str, at: int, lead: str) -> int:
    """Where a line begins behind what a log puts before it; times and numbers differ from line to line."""
    same = _ANY_DIGIT.sub("0", text[at : at + len(lead)]) == _ANY_DIGIT.sub("0", lead)
    return at + len(lead) if same else at


def _is_block_secret(name: str, match: re.Match[str]) -> bool:
    """Of `name: |` and the lines below: a sentence is none."""
    value = match["s"]
    sentence = len(value.split()) > 5 and not any(char.isdigit() for char in value)
    return not sentence and _is_secret_value(name, match)


def _is_option_secret(name: str, match: re.Match[str]) -> bool:
    """Of `--name value`: a word in capitals is how a usage line names what to write there."""
    return name.startswith("--") and _is_secret_value(name, match) and not match["s"].isupper()


def _is_not_code(match: re.Match[str]) -> bool:
    after = match.string[match.end() : match.end() + 1]
    return (
        after not in ("(", "[")
        and _is_secret_value("", match)
        and CODE_ATTRIBUTE_PATH.fullmatch(match["s"]) is None
    )


def _find_word_before(text: str, end: int) -> str:
    """The name that ends at `end`; a name is no longer than 64 characters."""
    start = end
    while start > max(0, end - 64) and (text[start - 1].isalnum() or text[start - 1] in "_.-"):
        start -= 1
    return text[start:end]


def _is_random_looking(value: str) -> bool:
    """Whether no one would write this as a word."""
    if len(value) >= 6 and any(char.isdigit() for char in value):
        return True
    return (len(value) >= 20 and "_" not in value) or _PASSWORD_SIGN.search(value) is not None


def _is_whole_line(text: str, start: int, end: int) -> bool:
    line = text.rfind("\n", max(0, start - 16), start) + 1
    before, after = text[line:start], text[end : end + 16].partition("\n")[0]
    return not after.strip() and re.fullmatch(r"[+-]?[ \t]{0,2}(?:export[ ])?", before) is not None


_VALUE_FORMS: tuple[tuple[str, Callable[[str, re.Match[str]], bool]], ...] = (
    (_QUOTED_VALUE, _is_quoted_secret),
    (_ASSIGNED_VALUE, _is_assigned_secret),
    (_SPACED_VALUE, _is_spaced_secret),
    (_COLON_VALUE, _is_colon_secret),
    (_YAML_BLOCK, _is_block_secret),
    (_OPTION_VALUE, _is_option_secret),
)


def has_secret_name(text: str) -> bool:
    """Whether a name may be in it, or in any part of it, that is given to secrets."""
    lower = text.lower()
    return len(lower) != len(text) or _SECRET_NAME.search(lower) is not None


def find_named_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Where each value stands that has the name of a secret."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters are two when they are small
        lower = text.translate(_ASCII_TO_LOWER)
    searched_end = 0  # up to here values were looked at: a name inside a value begins no other
    for name_match in _SECRET_NAME.finditer(lower):
        if name_match.start() < searched_end:
            continue
        name = _find_word_before(text, name_match.end())
        for pattern, judge in _VALUE_FORMS:
            match = compile_secret_pattern(pattern).match(text, name_match.end())
            if match is not None:
                searched_end = max(searched_end, match.end())
                if judge(name, match):
                    yield match.span("s")
        for start, end in _find_values_below(name, text, name_match.end()):
            searched_end = max(searched_end, end)
            yield start, end


# ── secret names ────────────────────────────────────────────────────────────────────────────────────────────────────────

# Names under which people keep secrets: keys, logins, settings with passwords in them.
#
# A name is all there is to judge before a file is opened. It is one of these when the file is called after a secret, or
# when the tool that reads it has it kept out of repositories for the login in it. Settings that are committed like the
# rest are not, be they those of production. What holds code or prose by its ending is no secret for having the word in
# its name: `test_secrets.py` is a test.
# **Invariant:** names alone are looked at; letter case makes no difference.


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRET_DIRECTORIES = _word_set(".ssh .aws .azure .gcloud .gnupg .docker .kube .m2 .gem .oci .password-store")
_NESTED_SECRET_DIRECTORY = re.compile(r"(?:^|/)\.config/(?:gh|gcloud|op|hub|rclone|containers)(?:/|$)")
_TOOL_SECRET_FILE = re.compile(r"(?:^|/)\.gradle/gradle\.properties$")
# Folders of data files.
_SECRET_DATA_DIRECTORIES = frozenset({"secrets", ".secrets", "credentials", ".credentials"})
_CODE_ENDINGS = _word_set(
    "py pyi js mjs cjs jsx ts mts cts tsx vue svelte go rs java kt kts scala groovy rb php c h cc cpp hpp cs fs swift lua"
    " ex exs erl hs ml clj dart zig md mdx rst adoc html css scss less proto graphql"
)
_BACKUP_ENDING = re.compile(r"(?:~|\.(?:bak|old|orig|save|sw[op]|tmp|backup|copy|enc))+$")
_SECRET_FILE_NAME = re.compile(
    r"\.env(?:rc|[._-].*)?|.+\.env(?:\.[\w-]+)?|[._]netrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|pip\.conf|\.condarc"
    r"|\.git-?credentials|\.gitconfig|\.pgpass|pgpass\.conf|\.htpasswd|\.my(?:login)?\.cnf|\.s3cfg|\.boto|\.dockercfg"
    r"|\.dockerconfigjson|\.curlrc|\.wgetrc|\.terraformrc|\.vault.*|\.\w+_history|\.claude\.json|\.token|\.pass(?:wd|word)"
    r"|(?:.*[._-])?kubeconfig(?:[._-].*)?|(?:.*\.)?tfstate(?:\..*)?|.*\.tfvars(?:\.json)?|auth\.json|oauth_creds\.json"
    r"|local\.settings\.json|google-services\.json|googleservice-info\.plist|\.dev\.vars(?:\..*)?|vault\.ya?ml|wp-config\.php|authorized_keys|g?shadow|cookies\.(?:txt|sqlite)|wallet\.dat"
    r"|.*\.(?:pem|key|p8|p12|pfx|ppk|pkcs12|jks|bks|keystore|kdbx?|keytab|ovpn|gpg|pgp|agekey|keychain|keychain-db)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:[._-].*)?"
)
# A folder of tests may be called like this, a file that is read may not.
_SECRET_BARE_NAME = re.compile(r"id_\w+|.*passwd")
_FILE_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS = _word_set(
    "secret secrets credential credentials creds password passwords passwd passphrase apikey apikeys token"
)
_JOINED_SECRET_WORDS = ("serviceaccount", "privatekey", "accesskey", "apikey", "adminsdk")


def is_secret_file_name(path: str, *, is_directory: bool = False) -> bool:
    """Whether a file of this name is taken for one that keeps secrets; a `folder` may have more of the words in it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts:
        return False
    lower_parts = [part.casefold() for part in parts]
    if (
        not _SECRET_DIRECTORIES.isdisjoint(lower_parts)
        or _NESTED_SECRET_DIRECTORY.search("/".join(lower_parts))
        or _TOOL_SECRET_FILE.search("/".join(lower_parts))
    ):
        return True
    name, plain = _BACKUP_ENDING.sub("", parts[-1]), _BACKUP_ENDING.sub("", lower_parts[-1])
    if _SECRET_FILE_NAME.fullmatch(plain):
        return True
    _, dot, ending = plain.rpartition(".")
    if (dot and ending in _CODE_ENDINGS) or (is_directory and not dot):
        return False
    in_secret_directory = not _SECRET_DATA_DIRECTORIES.isdisjoint(lower_parts[:-1]) and not is_directory
    return in_secret_directory or _SECRET_BARE_NAME.fullmatch(plain) is not None or _has_secret_word(name)


def _has_secret_word(name: str) -> bool:
    words = [word.casefold() for word in _FILE_NAME_WORD.findall(name)]
    return (
        not _SECRET_WORDS.isdisjoint(words)
        or _is_key_file_name(name)
        or any(joined in "".join(words) for joined in _JOINED_SECRET_WORDS)
    )


def _is_key_file_name(name: str) -> bool:
    """`gcp-key.json`: a key in a file of data; a public one is for all."""
    words = [word.casefold() for word in _FILE_NAME_WORD.findall(name.rpartition(".")[0] or name)]
    return words[-1:] == ["key"] and "public" not in words
