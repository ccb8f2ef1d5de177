"""The two values that every reader of project files speaks in: a file as it was read, and something found in it."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

import msgspec

from steersman.contracts.planning.context import FactKind
from steersman.judges.patterns import later

TOP = "."
MOST = 512 * 1024  # characters of a file that are looked into
MOST_LINES = 20_000
_KEY = later(r'"([^"\\]{1,214})"[ \t]{0,20}:')


class Finding(NamedTuple):
    """Something that is true of the project, and the lines that say so; lines 0 to 0 are the file as a whole."""

    kind: FactKind
    name: str
    value: str = ""
    argv: tuple[str, ...] = ()
    root: str = TOP
    first: int = 0
    last: int = 0

    def at(self, line: int) -> "Finding":
        """The same on one line."""
        return self._replace(first=line, last=line)


class Source(msgspec.Struct, frozen=True, dict=True):
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
        return folder_of(self.path)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines without their ends, as far as it is looked into."""
        return [line.removesuffix("\r") for line in self.text[:MOST].split("\n", MOST_LINES)[:MOST_LINES]]

    def has(self, *names: str) -> bool:
        """Is one of these files beside it?"""
        return any(name in self.siblings for name in names)

    @cached_property
    def _keys(self) -> dict[str, list[int]]:
        keys: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines, 1):
            for key in _KEY.findall(line):
                keys.setdefault(key, []).append(number)
        return keys

    def line_of(self, key: str, after: int = 0) -> int:
        """The first line from `after` on that has this key of a JSON object; 0 where none has."""
        numbers = self._keys.get(key, [])
        at = bisect_left(numbers, after)
        return numbers[at] if at < len(numbers) else 0

    def line_with(self, words: str, after: int = 0) -> int:
        """The first line from `after` on that holds these words; 0 where none does."""
        found = (n for n in range(max(after, 1), len(self.lines) + 1) if words in self.lines[n - 1])
        return next(found, 0)


def command(source: Source, kind: FactKind, name: str, argv: tuple[str, ...]) -> Finding:
    """A command that is given in the folder of a file."""
    return Finding(kind, name, " ".join(argv), argv, source.folder)


Find = Callable[[Source], Iterable[Finding]]


class Reader(msgspec.Struct, frozen=True):
    """Which files a function reads: names in small letters (one `*` stands for any part), and where they lie."""

    names: str
    find: Find
    where: Callable[[str], bool] | None = None  # asked of the folder


def folder_of(path: str) -> str:
    """Where a file lies."""
    return path.rpartition("/")[0] or TOP


def at_top(*folders: str) -> Callable[[str], bool]:
    """Exactly in one of these folders of the project."""
    kept = frozenset(folders or (TOP,))
    return lambda folder: folder in kept


def below(*names: str) -> Callable[[str], bool]:
    """Anywhere below a folder that is called like one of these."""
    wanted = frozenset(names)
    return lambda folder: not wanted.isdisjoint(folder.split("/"))
