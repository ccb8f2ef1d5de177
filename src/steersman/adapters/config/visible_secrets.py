"""The secrets this process can see: in its environment, in the files where logins are kept, in the project's .env.

Their exact values are hidden in every text before it is kept. A file is read again when it has changed.
**Invariant:** reads, never writes; values go only to the code that redacts them; a link in the project
is not followed, for it came with the repository and may lead outside it.
"""

import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from steersman.judges.redaction.secret_shapes import find_shaped_secrets

MAX_SECRET_LENGTH = 8192  # characters of a value
MAX_SECRET_FILE_BYTES = 1024 * 1024  # bytes of a file
LOGIN_FILE_NAMES = (
    ".netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".aws/credentials",
    ".config/gh/hosts.yml", ".config/glab-cli/config.yml", ".docker/config.json", ".kube/config",
    ".config/gcloud/application_default_credentials.json", ".claude/.credentials.json", ".claude.json",
    ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json",
    ".cargo/credentials.toml", ".cargo/credentials", ".gem/credentials", ".terraform.d/credentials.tfrc.json",
)  # fmt: skip
# Where a program looks for its login instead: (variable, file below it)
LOGIN_FILE_VARIABLES = (("CLAUDE_CONFIG_DIR", ".credentials.json"), ("CODEX_HOME", "auth.json"), ("NETRC", ""),
             ("AWS_SHARED_CREDENTIALS_FILE", ""), ("DOCKER_CONFIG", "config.json"), ("NPM_CONFIG_USERCONFIG", ""))  # fmt: skip
PROJECT_ENV_FILES = (".env", ".env.local", ".env.test", ".envrc")

_NAME_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")
_SECRET_NAME_PART = re.compile(
    "TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|PWD|CREDENTIALS?|APIKEY|PAT|COOKIE"
)
_KEY_NAME_PART = re.compile("API|ACCESS|SECRET|PRIVATE|SIGNING|ENCRYPTION|ACCOUNT|SHARED|MASTER|DEPLOY")
_OPAQUE_VALUE = re.compile(r"[A-Za-z0-9+/=_.~-]{20,512}")
_PATH_VALUE = re.compile(r"[~.]{0,2}/.*|[A-Za-z]:\\.*", re.DOTALL)
_ASSIGNMENT_LINE = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)$", re.MULTILINE
)


class KnownSecrets:
    """Everything known, read again when a file has changed."""

    def __init__(self, environ: Mapping[str, str], project: str) -> None:
        self._environ, self._project = environ, project
        self._seen: tuple[Any, ...] | None = None
        self._values: tuple[str, ...] = ()

    def __call__(self, named: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The values, longest first; `named` are variables that a project calls secret."""
        stamps = (named, tuple((path, _file_stamp(path, flag)) for path, flag in self._credential_paths()))
        if stamps != self._seen:
            values = {*self._from_environment(named), *self._from_files()}
            self._values = tuple(sorted(values, key=lambda value: (-len(value), value)))
            self._seen = stamps
        return self._values

    def _credential_paths(self) -> list[tuple[str, int]]:
        """Each file with the flag to open it with: a person's own login may be a link, a file of a clone may not."""
        logins = [(path, 0) for path in list_login_files(self._environ)]
        return [*logins, *((os.path.join(self._project, name), os.O_NOFOLLOW) for name in PROJECT_ENV_FILES)]

    def _from_environment(self, named: tuple[str, ...]) -> Iterator[str]:
        for name, value in self._environ.items():
            if (name in named and value) or is_secret_variable(name, value):
                yield value

    def _from_files(self) -> Iterator[str]:
        for path, flag in self._credential_paths():
            try:  # does not wait for a writer of a pipe
                with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | flag), "rb") as file:
                    is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                    text = file.read(MAX_SECRET_FILE_BYTES).decode("utf-8", "replace") if is_regular else ""
            except OSError:
                continue
            yield from find_secret_values(text)


def list_login_files(environ: Mapping[str, str]) -> list[str]:
    """Where logins are kept, below the home and where variables say so."""
    home = environ.get("HOME", "")
    logins = [os.path.join(home, name) for name in LOGIN_FILE_NAMES] if home else []
    return [
        *logins,
        *(os.path.join(place, name) for var, name in LOGIN_FILE_VARIABLES if (place := environ.get(var))),
    ]


def is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable holds a secret, by its name or by its value; a path or a plain word is none."""
    parts = _NAME_SEPARATOR.split(name.upper())
    has_secret_name = any(_SECRET_NAME_PART.fullmatch(part) for part in parts)
    is_key_name = parts[-1] == "KEY" and len(parts) > 1 and _KEY_NAME_PART.fullmatch(parts[-2]) is not None
    return _is_worth_hiding(value) if has_secret_name or is_key_name else _is_opaque_value(value)


def find_secret_values(text: str) -> Iterator[str]:
    """The secrets in a file that is there to hold some."""
    for span in find_shaped_secrets(text):
        value = text[span.start : span.end]
        yield from (part for part in (value, value.rpartition(":")[2]) if _is_worth_hiding(part))
    for name, value in _ASSIGNMENT_LINE.findall(text):
        unquoted = value.strip().strip("\"'")
        if is_secret_variable(name, unquoted):
            yield unquoted
    try:
        yield from _find_opaque_values(msgspec.json.decode(text))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return


def _find_opaque_values(value: Any) -> Iterator[str]:
    match value:
        case str() if _is_opaque_value(value):
            yield value
        case dict():
            for item in value.values():
                yield from _find_opaque_values(item)
        case list():
            for item in value:
                yield from _find_opaque_values(item)


def _is_worth_hiding(value: str) -> bool:
    """Long enough, and not a word that stands in ordinary texts as well."""
    if not 8 <= len(value) <= MAX_SECRET_LENGTH or _PATH_VALUE.fullmatch(value) or "\n" in value:
        return False
    is_plain_word = value.isalpha() and (value.islower() or value.isupper() or value.istitle())
    return not (is_plain_word and len(value) < 16) and not (value.isdigit() and len(value) < 12)


def _is_opaque_value(value: str) -> bool:
    """As no one would name a thing: small and capital letters and digits, each sign as likely as the other."""
    if not _OPAQUE_VALUE.fullmatch(value) or _PATH_VALUE.fullmatch(value):
        return False
    kinds = (str.islower, str.isupper, str.isdigit)
    if not all(any(kind(char) for char in value) for kind in kinds):
        return False
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts) >= 3.5


def _file_stamp(path: str, flag: int) -> tuple[int, int] | None:
    try:
        status = os.stat(path, follow_symlinks=not flag)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
