"""TOML, JSON, INI, YAML and XML as project files have them: what can be seen of them, within bounds, and why not.

A manifest that cannot be read says nothing, and that is not the same as a project that has nothing to say.
**Invariant:** total: what cannot be read is empty, and a `find_…_problem` says why. The time is linear in the length of
a text, and long texts are not read at all. A library's own words are not repeated: they would be in frozen plans, and
differ from version to version.
"""

import tomllib
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steersman.judges.facts.finding import MAX_INSPECTED_CHARACTERS
from steersman.judges.text import lazy_pattern

if TYPE_CHECKING:
    from xml.parsers.expat import XMLParserType

MAX_LINE_WIDTH = 4_096  # each dotted part of a key of TOML costs as much as those before it
MAX_XML_DEPTH = 64
MAX_XML_ELEMENTS = 20_000
MAX_TABLE_MEMBERS = 2_000  # of a table or list that are gone through

_ERROR_LINE = lazy_pattern(r"line (\d{1,7})")
_ERROR_BYTE = lazy_pattern(r"byte (\d{1,9})")
_INI_SECTION = lazy_pattern(r"\[([^\]]{1,200})\]")
_INI_SETTING = lazy_pattern(r"([A-Za-z0-9_.-]{1,100})[ \t]*[=:][ \t]*(.*)")
_YAML_KEY = lazy_pattern(r" {0,200}[\"']?([^\s\"'#\[{&*-][^:\"']{0,199}?)[\"']?[ \t]{0,20}:(?:\s|$)")


def find_text_problem(text: str) -> str:
    """Why no manifest of this text is looked into; empty for one that is."""
    if len(text) > MAX_INSPECTED_CHARACTERS or any(len(line) > MAX_LINE_WIDTH for line in text.split("\n")):
        return ": it is too long to be looked into"
    if "\0" in text:
        return f", line {text[: text.index(chr(0))].count(chr(10)) + 1}: it is no text"
    return ""


def parse_manifest_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    return {} if find_text_problem(text) else _load_toml(text)[0]


def find_toml_problem(text: str) -> str:
    """Where a text is no TOML."""
    return _load_toml(text)[1]


def _load_toml(text: str) -> tuple[dict[str, Any], str]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n").removeprefix("\ufeff")), ""
    except (ValueError, RecursionError) as error:
        line_match, is_at_end = _ERROR_LINE.search(str(error)), "end of document" in str(error)
        line = line_match[1] if line_match else text.count("\n") + 1 if is_at_end else 0
        return {}, f", line {line}: it is no TOML" if line else ": it is no TOML"


def parse_manifest_json(text: str) -> dict[str, Any]:
    """The object that a JSON file is."""
    return {} if len(text) > MAX_INSPECTED_CHARACTERS else _load_json(text)[0]


def find_json_problem(text: str) -> str:
    """Where a text is no JSON object."""
    return _load_json(text)[1]


def _load_json(text: str) -> tuple[dict[str, Any], str]:
    try:
        value = msgspec.json.decode(text.removeprefix("\ufeff"))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        byte = _ERROR_BYTE.search(str(error))
        line = text.encode("utf-8", "replace")[: int(byte[1])].count(b"\n") + 1 if byte else 1
        return {}, f", line {line}: it is no JSON"
    return (value, "") if isinstance(value, dict) else ({}, ", line 1: it is no JSON object")


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


class IniLine(NamedTuple):
    """A section, or a setting of one; the key of a section is empty."""

    section: str
    key: str
    value: str
    number: int


def parse_ini_lines(lines: list[str]) -> Iterator[IniLine]:
    """Sections and settings of an INI file."""
    section = ""
    for number, line in enumerate(lines, 1):
        if (header := _INI_SECTION.match(line)) is not None:
            section = header[1]
            yield IniLine(section, "", "", number)
        elif (setting := _INI_SETTING.match(line[:MAX_LINE_WIDTH])) is not None:
            yield IniLine(section, setting[1].casefold(), setting[2].strip(), number)


def list_yaml_members(lines: list[str], table: str) -> list[tuple[str, int]]:
    """The keys of a table at the top of a YAML file, with their lines; what stands deeper is passed over."""
    members: list[tuple[str, int]] = []
    is_inside, member_indent = False, 0
    for number, line in enumerate(lines, 1):
        body = line[:MAX_LINE_WIDTH].lstrip(" ")
        key, indent = _YAML_KEY.match(body), len(line[:MAX_LINE_WIDTH]) - len(body)
        if not body.strip() or body.startswith("#"):
            continue
        if not indent:
            is_inside, member_indent = key is not None and key[1] == table, 0
        elif is_inside:
            member_indent = member_indent or indent
            members += [(key[1], number)] if key is not None and indent == member_indent else []
    return members


class XmlElement(msgspec.Struct, frozen=True):
    """An element of XML: its path of tags, what it says, and its line."""

    path: tuple[str, ...]
    text: str
    number: int


class _XmlTooLarge(Exception):  # noqa: N818  ends a reading, never leaves this module
    """The document declares a type, is too deep or has too many elements."""


def parse_xml_elements(text: str) -> list[XmlElement]:
    """The elements of an XML file in the order of their ends, as far as it can be read."""
    return _load_xml(text)[0]


def find_xml_problem(text: str) -> str:
    """Where and why an XML file cannot be read to its end."""
    return _load_xml(text)[1]


def _load_xml(text: str) -> tuple[list[XmlElement], str]:
    from xml.parsers import expat  # few projects have any

    collector = _XmlElementCollector(expat.ParserCreate("utf-8"))
    try:
        collector.parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        return collector.found, f", line {error.lineno}: it is no XML"
    except _XmlTooLarge:
        return collector.found, ": it declares a document type, is too deep or has too many elements"
    return collector.found, ""


class _XmlElementCollector:
    """Those met so far."""

    def __init__(self, parser: "XMLParserType") -> None:
        self.parser = parser
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.found: list[XmlElement] = []
        self._open: list[tuple[str, list[str], int]] = []

    def _refuse(self, *_: object) -> None:
        raise _XmlTooLarge

    def _start(self, tag: str, _: dict[str, str]) -> None:
        if len(self._open) >= MAX_XML_DEPTH or len(self.found) >= MAX_XML_ELEMENTS:
            raise _XmlTooLarge
        self._open.append((tag.rpartition(":")[2], [], self.parser.CurrentLineNumber))

    def _text(self, text: str) -> None:
        self._open[-1][1].append(text)

    def _end(self, _: str) -> None:
        path = tuple(tag for tag, *_ in self._open)
        _, texts, number = self._open.pop()
        self.found.append(XmlElement(path, "".join(texts).strip(), number))
