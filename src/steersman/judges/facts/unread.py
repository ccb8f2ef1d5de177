"""Manifests that are there and cannot be read: which, on which line, why, and what they would have told.

A manifest that cannot be read says nothing, and that is not the same as a project that has nothing to say.
**Invariant:** total; whatever `reading` finds empty for its form is found here. A library's own words are not repeated:
they would be in frozen plans, and differ from version to version.
"""

import tomllib
from collections.abc import Callable

import msgspec

from steersman.contracts.planning.context import FactKind
from steersman.judges.facts.finding import MAX_INSPECTED_CHARACTERS, ProjectSource
from steersman.judges.facts.reading import MAX_LINE_WIDTH, find_xml_error
from steersman.judges.patterns import lazy_pattern
from steersman.judges.text import clip_text, printable_line

# What manifests tell of; of these kinds nothing is known to be missing where one of them cannot be read.
MANIFEST_FACT_KINDS: tuple[FactKind, ...] = (
    "build_command", "database", "entry_point", "format_command", "framework", "lint_command", "package", "test_command",
    "type_command",
)  # fmt: skip
_ERROR_LINE = lazy_pattern(r"line (\d{1,7})")
_ERROR_BYTE = lazy_pattern(r"byte (\d{1,9})")
_GO_MODULE_START = lazy_pattern(r"(?m)^[ \t]{0,20}module[ \t]")
_LINE_COMMENT = lazy_pattern(r"(?m)^[ \t]*//.*$")

ManifestCheck = Callable[[str], str]


def unreadable_manifest_reason(source: ProjectSource) -> str:
    """Why a manifest cannot be read, with its line where that is known; empty for one that can, and for other files."""
    check = _CHECK_BY_MANIFEST.get(source.name.casefold()) or _CHECK_BY_ENDING.get(
        source.name.casefold().rpartition(".")[2]
    )
    if check is None:
        return ""
    reason = _manifest_text_problem(source.text) or check(source.text)
    return clip_text(printable_line(f"{source.path}{reason}"), 400) if reason else ""


def _manifest_text_problem(text: str) -> str:
    if len(text) > MAX_INSPECTED_CHARACTERS or any(len(line) > MAX_LINE_WIDTH for line in text.split("\n")):
        return ": it is too long to be looked into"
    if "\0" in text:
        return f", line {text[: text.index(chr(0))].count(chr(10)) + 1}: it is no text"
    return ""


def _toml_problem(text: str) -> str:
    try:
        tomllib.loads(text.replace("\r\n", "\n").removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        line_match, is_at_end = _ERROR_LINE.search(str(error)), "end of document" in str(error)
        line = line_match[1] if line_match else text.count("\n") + 1 if is_at_end else 0
        return f", line {line}: it is no TOML" if line else ": it is no TOML"
    return ""


def _json_problem(text: str) -> str:
    try:
        value = msgspec.json.decode(text.removeprefix("\ufeff"))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        byte = _ERROR_BYTE.search(str(error))
        line = text.encode("utf-8", "replace")[: int(byte[1])].count(b"\n") + 1 if byte else 1
        return f", line {line}: it is no JSON"
    return "" if isinstance(value, dict) else ", line 1: it is no JSON object"


def _commented_json_problem(text: str) -> str:
    return _json_problem(_LINE_COMMENT.sub("", text))


def _go_module_problem(text: str) -> str:
    return "" if _GO_MODULE_START.search(text) else ": it names no module"


_CHECK_BY_MANIFEST: dict[str, ManifestCheck] = {
    "pyproject.toml": _toml_problem,
    "cargo.toml": _toml_problem,
    "steersman.toml": _toml_problem,
    "package.json": _json_problem,
    "composer.json": _json_problem,
    "deno.json": _commented_json_problem,
    "deno.jsonc": _commented_json_problem,
    "pom.xml": find_xml_error,
    "go.mod": _go_module_problem,
}
_CHECK_BY_ENDING: dict[str, ManifestCheck] = {
    "csproj": find_xml_error,
    "fsproj": find_xml_error,
    "vbproj": find_xml_error,
}
