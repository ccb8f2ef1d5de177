"""Manifests that are there and cannot be read: which, on which line, why, and what they would have told.

A manifest that cannot be read says nothing, and that is not the same as a project that has nothing to say.
**Invariant:** total; whatever `reading` finds empty for its form is found here. A library's own words are not repeated:
they would be in frozen plans, and differ from version to version.
"""

import tomllib
from collections.abc import Callable

import msgspec

from steersman.contracts.planning.context import FactKind
from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import MOST, Source
from steersman.judges.planning.facts.reading import WIDEST, broken_xml
from steersman.judges.text import clip, one_line

# What manifests tell of; of these kinds nothing is known to be missing where one of them cannot be read.
TOLD: tuple[FactKind, ...] = (
    "build_command", "database", "entry_point", "format_command", "framework", "lint_command", "package", "test_command",
    "type_command",
)  # fmt: skip
_AT = later(r"line (\d{1,7})")
_BYTE = later(r"byte (\d{1,9})")
_MODULE = later(r"(?m)^[ \t]{0,20}module[ \t]")
_COMMENT = later(r"(?m)^[ \t]*//.*$")

Why = Callable[[str], str]


def unread(source: Source) -> str:
    """Why a manifest cannot be read, with its line where that is known; empty for one that can, and for other files."""
    why = _MANIFESTS.get(source.name.casefold()) or _ENDINGS.get(source.name.casefold().rpartition(".")[2])
    if why is None:
        return ""
    said = _unfit(source.text) or why(source.text)
    return clip(one_line(f"{source.path}{said}"), 400) if said else ""


def _unfit(text: str) -> str:
    if len(text) > MOST or any(len(line) > WIDEST for line in text.split("\n")):
        return ": it is too long to be looked into"
    if "\0" in text:
        return f", line {text[: text.index(chr(0))].count(chr(10)) + 1}: it is no text"
    return ""


def _toml(text: str) -> str:
    try:
        tomllib.loads(text.replace("\r\n", "\n").removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        at, ends = _AT.search(str(error)), "end of document" in str(error)
        line = at[1] if at else text.count("\n") + 1 if ends else 0
        return f", line {line}: it is no TOML" if line else ": it is no TOML"
    return ""


def _json(text: str) -> str:
    try:
        value = msgspec.json.decode(text.removeprefix("\ufeff"))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        byte = _BYTE.search(str(error))
        line = text.encode("utf-8", "replace")[: int(byte[1])].count(b"\n") + 1 if byte else 1
        return f", line {line}: it is no JSON"
    return "" if isinstance(value, dict) else ", line 1: it is no JSON object"


def _json_with_comments(text: str) -> str:
    return _json(_COMMENT.sub("", text))


def _go(text: str) -> str:
    return "" if _MODULE.search(text) else ": it names no module"


_MANIFESTS: dict[str, Why] = {
    "pyproject.toml": _toml,
    "cargo.toml": _toml,
    "steersman.toml": _toml,
    "package.json": _json,
    "composer.json": _json,
    "deno.json": _json_with_comments,
    "deno.jsonc": _json_with_comments,
    "pom.xml": broken_xml,
    "go.mod": _go,
}
_ENDINGS: dict[str, Why] = {"csproj": broken_xml, "fsproj": broken_xml, "vbproj": broken_xml}
