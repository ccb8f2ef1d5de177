"""TOML, JSON, INI, YAML and XML as project files have them: what can be seen of them, within bounds.

**Invariant:** total: what cannot be read is empty; the time is linear in the length of a text, and long texts are not
read at all.
"""

import tomllib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import MOST

if TYPE_CHECKING:
    from xml.parsers.expat import XMLParserType

WIDEST = 4_096  # characters of a line of TOML: each dotted part of a key costs as much as those before it
DEEPEST = 64
MOST_PARTS = 20_000  # elements of XML
MOST_MEMBERS = 2_000  # of a table or list that are gone through

Path = tuple[str, ...]
_SECTION = later(r"\[([^\]]{1,200})\]")
_SETTING = later(r"([A-Za-z0-9_.-]{1,100})[ \t]*[=:][ \t]*(.*)")
_BLOCK = later(r"[|>][+-]?\d?[+-]?[ \t]*(?:#.*)?")


def toml_of(text: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    if len(text) > MOST or any(len(line) > WIDEST for line in text.split("\n")):
        return {}
    try:
        return tomllib.loads(text.replace("\r\n", "\n").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}


def json_of(text: str) -> dict[str, Any]:
    """The object that a JSON file is."""
    if len(text) > MOST:
        return {}
    try:
        value = msgspec.json.decode(text.removeprefix("\ufeff"))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def table(value: Any, *keys: str) -> dict[str, Any]:
    """The table at the end of a path of keys; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return dict(islice(value.items(), MOST_MEMBERS)) if isinstance(value, dict) else {}


def words(value: Any) -> list[str]:
    """The texts of a list, or the names of a table."""
    members = islice(value, MOST_MEMBERS) if isinstance(value, list | dict) else ()
    return [item for item in members if isinstance(item, str)]


def text_at(value: dict[str, Any], key: str) -> str:
    """A text in a table; empty where there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


class Line(msgspec.Struct, frozen=True):
    """A key with its value: where it stands among the others, and on which line."""

    path: Path
    value: str
    number: int


def ini_of(lines: list[str]) -> Iterator[Line]:
    """Sections (as paths of one name) and settings of an INI file."""
    section = ""
    for number, line in enumerate(lines, 1):
        if (header := _SECTION.match(line)) is not None:
            section = header[1]
            yield Line((section,), "", number)
        elif (setting := _SETTING.match(line[:WIDEST])) is not None:
            yield Line((section, setting[1].casefold()), setting[2].strip(), number)


def yaml_of(lines: list[str]) -> Iterator[Line]:
    """The keys of block mappings; a list's members have the path of the list."""
    above: list[tuple[int, str]] = []  # indentation and key
    inside = -1  # a block of text belongs to the key with this indentation
    for number, line in enumerate(lines, 1):
        body = line[:WIDEST].lstrip(" ")
        indent = len(line[:WIDEST]) - len(body)
        if not body or body.startswith("#") or 0 <= inside < indent:
            continue
        inside = -1
        if body.startswith("- "):
            indent, body = indent + 2, body[2:].lstrip(" ")
        key, value = _pair(body)
        if not key:
            continue
        while above and above[-1][0] >= indent:
            above.pop()
        if len(above) < DEEPEST:
            above.append((indent, key))
        yield Line(tuple(k for _, k in above), value.strip("\"'"), number)
        inside = indent if _BLOCK.fullmatch(value) else -1


def _pair(body: str) -> tuple[str, str]:
    """Key and value of `key: value`; an empty key where it is none."""
    key, colon, value = body.partition(":")
    fits = (
        colon
        and len(key) <= 200
        and value[:1] in ("", " ", "\t", "\r")
        and key[:1] not in ("{", "[", "&", "*")
    )
    return (key.strip().strip("\"'"), value.strip()) if fits else ("", "")


class Element(msgspec.Struct, frozen=True):
    """An element of XML: its path of tags, its attributes, what it says, and its line."""

    path: Path
    given: dict[str, str]
    text: str
    number: int


class _TooMuch(Exception):  # noqa: N818  ends a reading, never leaves this module
    """The document declares a type, is too deep or has too many elements."""


def xml_of(text: str) -> list[Element]:
    """The elements of an XML file in the order of their ends, as far as it can be read."""
    from xml.parsers import expat  # few projects have any

    reading = _Elements(expat.ParserCreate("utf-8"))
    with suppress(expat.ExpatError, _TooMuch):
        reading.parser.Parse(text[:MOST].encode(), False)
    return reading.found


def broken_xml(text: str) -> str:
    """Where and why an XML file cannot be read to its end; empty where it can."""
    from xml.parsers import expat

    try:
        _Elements(expat.ParserCreate("utf-8")).parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        return f", line {error.lineno}: it is no XML"
    except _TooMuch:
        return ": it declares a document type, is too deep or has too many elements"
    return ""


class _Elements:
    """Those met so far."""

    def __init__(self, parser: "XMLParserType") -> None:
        self.parser = parser
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.found: list[Element] = []
        self._open: list[tuple[str, dict[str, str], list[str], int]] = []

    def _refuse(self, *_: object) -> None:
        raise _TooMuch

    def _start(self, tag: str, given: dict[str, str]) -> None:
        if len(self._open) >= DEEPEST or len(self.found) >= MOST_PARTS:
            raise _TooMuch
        self._open.append((tag.rpartition(":")[2], given, [], self.parser.CurrentLineNumber))

    def _text(self, text: str) -> None:
        self._open[-1][2].append(text)

    def _end(self, _: str) -> None:
        path = tuple(tag for tag, *_ in self._open)
        _, given, texts, number = self._open.pop()
        self.found.append(Element(path, given, "".join(texts).strip(), number))
