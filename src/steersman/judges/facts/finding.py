"""The two values that every reader of project files speaks in: a file as it was read, and something found in it."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

import msgspec

from steersman.contracts.planning.context import FactKind
from steersman.judges.patterns import lazy_pattern

PROJECT_TOP = "."
MAX_INSPECTED_CHARACTERS = 512 * 1024  # characters of a file that are looked into
MAX_INSPECTED_LINES = 20_000
_JSON_KEY = lazy_pattern(r'"([^"\\]{1,214})"[ \t]{0,20}:')


class FactFinding(NamedTuple):
    """Something that is true of the project, and the lines that say so; lines 0 to 0 are the file as a whole."""

    kind: FactKind
    name: str
    value: str = ""
    argv: tuple[str, ...] = ()
    root: str = PROJECT_TOP
    first: int = 0
    last: int = 0

    def at(self, line: int) -> "FactFinding":
        """The same on one line."""
        return self._replace(first=line, last=line)


class ProjectSource(msgspec.Struct, frozen=True, dict=True):
    """A file of the project: its path from the top, what it says, and the names of the files beside it."""

    path: str
    text: str = ""
    siblings: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """Where it lies; `.` is the top."""
        return parent_directory(self.path)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines without their ends, as far as it is looked into."""
        return [
            line.removesuffix("\r")
            for line in self.text[:MAX_INSPECTED_CHARACTERS].split("\n", MAX_INSPECTED_LINES)[
                :MAX_INSPECTED_LINES
            ]
        ]

    def has(self, *names: str) -> bool:
        """Is one of these files beside it?"""
        return any(name in self.siblings for name in names)

    @cached_property
    def _keys(self) -> dict[str, list[int]]:
        keys: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines, 1):
            for key in _JSON_KEY.findall(line):
                keys.setdefault(key, []).append(number)
        return keys

    def line_of(self, key: str, after: int = 0) -> int:
        """The first line from `after` on that has this key of a JSON object; 0 where none has."""
        numbers = self._keys.get(key, [])
        index = bisect_left(numbers, after)
        return numbers[index] if index < len(numbers) else 0

    def line_with(self, words: str, after: int = 0) -> int:
        """The first line from `after` on that holds these words; 0 where none does."""
        matches = (n for n in range(max(after, 1), len(self.lines) + 1) if words in self.lines[n - 1])
        return next(matches, 0)


def command_finding(source: ProjectSource, kind: FactKind, name: str, argv: tuple[str, ...]) -> FactFinding:
    """A command that is given in the folder of a file."""
    return FactFinding(kind, name, " ".join(argv), argv, source.folder)


FindFacts = Callable[[ProjectSource], Iterable[FactFinding]]


class FactReader(msgspec.Struct, frozen=True):
    """Which files a function reads: names in small letters (one `*` stands for any part), and where they lie."""

    names: str
    find: FindFacts
    where: Callable[[str], bool] | None = None  # asked of the folder


def parent_directory(path: str) -> str:
    """Where a file lies."""
    return path.rpartition("/")[0] or PROJECT_TOP


def is_exactly_in(*directories: str) -> Callable[[str], bool]:
    """Exactly in one of these folders of the project."""
    allowed = frozenset(directories or (PROJECT_TOP,))
    return lambda directory: directory in allowed


def is_anywhere_below(*names: str) -> Callable[[str], bool]:
    """Anywhere below a folder that is called like one of these."""
    directory_names = frozenset(names)
    return lambda directory: not directory_names.isdisjoint(directory.split("/"))
