"""TOML, JSON, INI, YAML and XML as project files have them: what can be seen of them, within bounds, and why not.

A manifest that cannot be read says nothing, and that is not the same as a project that has nothing to say.
**Invariant:** total: what cannot be read is empty, and a `find_…_problem` says why. The time is linear in the length of
a text, and long texts are not read at all. A library's own words are not repeated: they would be in frozen plans, and
differ from version to version.
"""

import tomllib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.judges.facts.finding import MAX_INSPECTED_CHARACTERS
from steersman.judges.patterns import lazy_pattern

if TYPE_CHECKING:
    from xml.parsers.expat import XMLParserType

MAX_LINE_WIDTH = (
    4_096  # characters of a line of TOML: each dotted part of a key costs as much as those before it
)
MAX_DOCUMENT_DEPTH = 64
MAX_XML_ELEMENTS = 20_000  # elements of XML
MAX_TABLE_MEMBERS = 2_000  # of a table or list that are gone through

KeyPath = tuple[str, ...]
_INI_SECTION = lazy_pattern(r"\[([^\]]{1,200})\]")
_INI_SETTING = lazy_pattern(r"([A-Za-z0-9_.-]{1,100})[ \t]*[=:][ \t]*(.*)")
_YAML_BLOCK_TEXT = lazy_pattern(r"[|>][+-]?\d?[+-]?[ \t]*(?:#.*)?")


def parse_manifest_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    if len(text) > MAX_INSPECTED_CHARACTERS or any(len(line) > MAX_LINE_WIDTH for line in text.split("\n")):
        return {}
    try:
        return tomllib.loads(text.replace("\r\n", "\n").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}


def parse_manifest_json(text: str) -> dict[str, Any]:
    """The object that a JSON file is."""
    if len(text) > MAX_INSPECTED_CHARACTERS:
        return {}
    try:
        value = msgspec.json.decode(text.removeprefix("\ufeff"))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def get_manifest_table(value: Any, *keys: str) -> dict[str, Any]:
    """The table at the end of a path of keys; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return dict(islice(value.items(), MAX_TABLE_MEMBERS)) if isinstance(value, dict) else {}


def list_manifest_texts(value: Any) -> list[str]:
    """The texts of a list, or the names of a table."""
    members = islice(value, MAX_TABLE_MEMBERS) if isinstance(value, list | dict) else ()
    return [item for item in members if isinstance(item, str)]


def get_manifest_text(value: dict[str, Any], key: str) -> str:
    """A text in a table; empty where there is none."""
    item = value.get(key)
    return item if isinstance(item, str) else ""


class ManifestLine(msgspec.Struct, frozen=True):
    """A key with its value: where it stands among the others, and on which line."""

    path: KeyPath
    value: str
    number: int


def parse_ini_lines(lines: list[str]) -> Iterator[ManifestLine]:
    """Sections (as paths of one name) and settings of an INI file."""
    section = ""
    for number, line in enumerate(lines, 1):
        if (header := _INI_SECTION.match(line)) is not None:
            section = header[1]
            yield ManifestLine((section,), "", number)
        elif (setting := _INI_SETTING.match(line[:MAX_LINE_WIDTH])) is not None:
            yield ManifestLine((section, setting[1].casefold()), setting[2].strip(), number)


def parse_yaml_lines(lines: list[str]) -> Iterator[ManifestLine]:
    """The keys of block mappings; a list's members have the path of the list."""
    open_keys: list[tuple[int, str]] = []  # indentation and key
    text_indent = -1  # a block of text belongs to the key with this indentation
    for number, line in enumerate(lines, 1):
        body = line[:MAX_LINE_WIDTH].lstrip(" ")
        indent = len(line[:MAX_LINE_WIDTH]) - len(body)
        if not body or body.startswith("#") or 0 <= text_indent < indent:
            continue
        text_indent = -1
        if body.startswith("- "):
            indent, body = indent + 2, body[2:].lstrip(" ")
        key, value = _split_yaml_pair(body)
        if not key:
            continue
        while open_keys and open_keys[-1][0] >= indent:
            open_keys.pop()
        if len(open_keys) < MAX_DOCUMENT_DEPTH:
            open_keys.append((indent, key))
        yield ManifestLine(tuple(k for _, k in open_keys), value.strip("\"'"), number)
        text_indent = indent if _YAML_BLOCK_TEXT.fullmatch(value) else -1


def _split_yaml_pair(body: str) -> tuple[str, str]:
    """Key and value of `key: value`; an empty key where it is none."""
    key, colon, value = body.partition(":")
    is_pair = (
        colon
        and len(key) <= 200
        and value[:1] in ("", " ", "\t", "\r")
        and key[:1] not in ("{", "[", "&", "*")
    )
    return (key.strip().strip("\"'"), value.strip()) if is_pair else ("", "")


class XmlElement(msgspec.Struct, frozen=True):
    """An element of XML: its path of tags, its attributes, what it says, and its line."""

    path: KeyPath
    given: dict[str, str]
    text: str
    number: int


class _XmlTooLarge(Exception):  # noqa: N818  ends a reading, never leaves this module
    """The document declares a type, is too deep or has too many elements."""


def parse_xml_elements(text: str) -> list[XmlElement]:
    """The elements of an XML file in the order of their ends, as far as it can be read."""
    from xml.parsers import expat  # few projects have any

    collector = _XmlElementCollector(expat.ParserCreate("utf-8"))
    with suppress(expat.ExpatError, _XmlTooLarge):
        collector.parser.Parse(text[:MAX_INSPECTED_CHARACTERS].encode(), False)
    return collector.found


class _XmlElementCollector:
    """Those met so far."""

    def __init__(self, parser: "XMLParserType") -> None:
        self.parser = parser
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.found: list[XmlElement] = []
        self._open: list[tuple[str, dict[str, str], list[str], int]] = []

    def _refuse(self, *_: object) -> None:
        raise _XmlTooLarge

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_DOCUMENT_DEPTH or len(self.found) >= MAX_XML_ELEMENTS:
            raise _XmlTooLarge
        self._open.append((tag.rpartition(":")[2], attributes, [], self.parser.CurrentLineNumber))

    def _text(self, text: str) -> None:
        self._open[-1][2].append(text)

    def _end(self, _: str) -> None:
        path = tuple(tag for tag, *_ in self._open)
        _, attributes, texts, number = self._open.pop()
        self.found.append(XmlElement(path, attributes, "".join(texts).strip(), number))


_ERROR_LINE = lazy_pattern(r"line (\d{1,7})")
_ERROR_BYTE = lazy_pattern(r"byte (\d{1,9})")


def find_text_problem(text: str) -> str:
    """Why no manifest of this text is looked into; empty for one that is."""
    if len(text) > MAX_INSPECTED_CHARACTERS or any(len(line) > MAX_LINE_WIDTH for line in text.split("\n")):
        return ": it is too long to be looked into"
    if "\0" in text:
        return f", line {text[: text.index(chr(0))].count(chr(10)) + 1}: it is no text"
    return ""


def find_toml_problem(text: str) -> str:
    """Where a text is no TOML."""
    try:
        tomllib.loads(text.replace("\r\n", "\n").removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        line_match, is_at_end = _ERROR_LINE.search(str(error)), "end of document" in str(error)
        line = line_match[1] if line_match else text.count("\n") + 1 if is_at_end else 0
        return f", line {line}: it is no TOML" if line else ": it is no TOML"
    return ""


def find_json_problem(text: str) -> str:
    """Where a text is no JSON object."""
    try:
        value = msgspec.json.decode(text.removeprefix("\ufeff"))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        byte = _ERROR_BYTE.search(str(error))
        line = text.encode("utf-8", "replace")[: int(byte[1])].count(b"\n") + 1 if byte else 1
        return f", line {line}: it is no JSON"
    return "" if isinstance(value, dict) else ", line 1: it is no JSON object"


def find_xml_problem(text: str) -> str:
    """Where and why an XML file cannot be read to its end."""
    from xml.parsers import expat

    try:
        _XmlElementCollector(expat.ParserCreate("utf-8")).parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        return f", line {error.lineno}: it is no XML"
    except _XmlTooLarge:
        return ": it declares a document type, is too deep or has too many elements"
    return ""
