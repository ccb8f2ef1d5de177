"""The secrets this process can see: in its environment, in the files where logins are kept, in the project's .env.

Their exact values are hidden in every text before it is kept. A file is read again when it has changed.
**Invariant:** reads, never writes; hands out values to whoever hides them, and to nobody else; a link in the project
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

from steersman.judges.secret_shapes import shaped

LONGEST = 8192  # characters of a value
LARGEST = 1024 * 1024  # bytes of a file
LOGINS = (
    ".netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".aws/credentials",
    ".config/gh/hosts.yml", ".config/glab-cli/config.yml", ".docker/config.json", ".kube/config",
    ".config/gcloud/application_default_credentials.json", ".claude/.credentials.json", ".claude.json",
    ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json",
    ".cargo/credentials.toml", ".cargo/credentials", ".gem/credentials", ".terraform.d/credentials.tfrc.json",
)  # fmt: skip
# Where a program looks for its login instead: (variable, file below it)
ELSEWHERE = (("CLAUDE_CONFIG_DIR", ".credentials.json"), ("CODEX_HOME", "auth.json"), ("NETRC", ""),
             ("AWS_SHARED_CREDENTIALS_FILE", ""), ("DOCKER_CONFIG", "config.json"), ("NPM_CONFIG_USERCONFIG", ""))  # fmt: skip
PROJECT = (".env", ".env.local", ".env.test", ".envrc")

_NAME = re.compile(r"[^A-Za-z0-9]+")
_SECRET = re.compile("TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|PWD|CREDENTIALS?|APIKEY|PAT|COOKIE")
_KEYS = re.compile("API|ACCESS|SECRET|PRIVATE|SIGNING|ENCRYPTION|ACCOUNT|SHARED|MASTER|DEPLOY")
_OPAQUE = re.compile(r"[A-Za-z0-9+/=_.~-]{20,512}")
_PLACE = re.compile(r"[~.]{0,2}/.*|[A-Za-z]:\\.*", re.DOTALL)
_LINE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)$", re.MULTILINE)


class KnownSecrets:
    """Everything known, gathered anew when a file has changed."""

    def __init__(self, environ: Mapping[str, str], project: str) -> None:
        self._environ, self._project = environ, project
        self._seen: tuple[Any, ...] | None = None
        self._values: tuple[str, ...] = ()

    def __call__(self, named: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The values, longest first; `named` are variables that a project calls secret."""
        stamps = (named, tuple((path, _stamp(path, flag)) for path, flag in self._paths()))
        if stamps != self._seen:
            found = {*self._from_environment(named), *self._from_files()}
            self._values = tuple(sorted(found, key=lambda value: (-len(value), value)))
            self._seen = stamps
        return self._values

    def _paths(self) -> list[tuple[str, int]]:
        """Each file with the flag to open it with: a person's own login may be a link, a file of a clone may not."""
        logins = [(path, 0) for path in login_files(self._environ)]
        return [*logins, *((os.path.join(self._project, name), os.O_NOFOLLOW) for name in PROJECT)]

    def _from_environment(self, named: tuple[str, ...]) -> Iterator[str]:
        for name, value in self._environ.items():
            if (name in named and value) or is_secret(name, value):
                yield value

    def _from_files(self) -> Iterator[str]:
        for path, flag in self._paths():
            try:  # does not wait for somebody to write into a pipe
                with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | flag), "rb") as file:
                    plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                    text = file.read(LARGEST).decode("utf-8", "replace") if plain else ""
            except OSError:
                continue
            yield from values_in(text)


def login_files(environ: Mapping[str, str]) -> list[str]:
    """Where logins are kept, below the home and where variables say so."""
    home = environ.get("HOME", "")
    logins = [os.path.join(home, name) for name in LOGINS] if home else []
    return [*logins, *(os.path.join(place, name) for var, name in ELSEWHERE if (place := environ.get(var)))]


def is_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, by its name or by its value; a path or a plain word is none."""
    parts = _NAME.split(name.upper())
    called = any(_SECRET.fullmatch(part) for part in parts)
    key = parts[-1] == "KEY" and len(parts) > 1 and _KEYS.fullmatch(parts[-2]) is not None
    return _worth(value) if called or key else _opaque(value)


def values_in(text: str) -> Iterator[str]:
    """The secrets in a file that is there to hold some."""
    for span in shaped(text):
        value = text[span.start : span.end]
        yield from (part for part in (value, value.rpartition(":")[2]) if _worth(part))
    for name, value in _LINE.findall(text):
        plain = value.strip().strip("\"'")
        if is_secret(name, plain):
            yield plain
    try:
        yield from _opaque_in(msgspec.json.decode(text))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return


def _opaque_in(value: Any) -> Iterator[str]:
    match value:
        case str() if _opaque(value):
            yield value
        case dict():
            for item in value.values():
                yield from _opaque_in(item)
        case list():
            for item in value:
                yield from _opaque_in(item)


def _worth(value: str) -> bool:
    """Long enough, and not a word that stands in ordinary texts as well."""
    if not 8 <= len(value) <= LONGEST or _PLACE.fullmatch(value) or "\n" in value:
        return False
    plain = value.isalpha() and (value.islower() or value.isupper() or value.istitle())
    return not (plain and len(value) < 16) and not (value.isdigit() and len(value) < 12)


def _opaque(value: str) -> bool:
    """As no one would name a thing: small and capital letters and digits, each sign as likely as the other."""
    if not _OPAQUE.fullmatch(value) or _PLACE.fullmatch(value):
        return False
    kinds = (str.islower, str.isupper, str.isdigit)
    if not all(any(kind(char) for char in value) for kind in kinds):
        return False
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts) >= 3.5


def _stamp(path: str, flag: int) -> tuple[int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=not flag)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
