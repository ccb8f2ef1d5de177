"""The input and output of every reader of project files: a file with its text, and the findings in it."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import msgspec

from steersman.contracts.planning.context import FactKind
from steersman.judges.text import lazy_pattern

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


FindFacts = Callable[[ProjectSource], Iterable[FactFinding]]


class FactReader(msgspec.Struct, frozen=True):
    """Which files a function reads: names in small letters (one `*` stands for any part), and where they lie."""

    names: str
    find: FindFacts | None = None
    where: Callable[[str], bool] | None = None  # asked of the folder
    find_problem: Callable[[str], str] | None = None  # why a text says nothing, where it should


def command_finding(source: ProjectSource, kind: FactKind, name: str, argv: tuple[str, ...]) -> FactFinding:
    """A command that is given in the folder of a file."""
    return FactFinding(kind, name, " ".join(argv), argv, source.folder)


def marker_reader(
    names: str,
    kind: FactKind,
    name: str,
    *,
    value: str = "",
    argv: tuple[str, ...] = (),
    where: Callable[[str], bool] | None = None,
    mark: str = "",
) -> FactReader:
    """Files that say something by being there, or by the first line that holds a mark.

    `name` may hold `{path}` or `{file}`.
    """

    def find_marker(source: ProjectSource) -> Iterator[FactFinding]:
        line = source.line_with(mark) if mark else 0
        if line or not mark:
            full_name = name.replace("{path}", source.path).replace("{file}", source.name)
            root = PROJECT_TOP if kind == "ci" else source.folder
            yield FactFinding(kind, full_name, value or " ".join(argv), argv, root).at(line)

    return FactReader(names.casefold(), find_marker, where)


class KnownDependencies(msgspec.Struct, frozen=True):
    """Dependencies that are a framework, and those that mean a database; no other dependency is a fact."""

    frameworks: dict[str, str]
    databases: dict[str, str]

    def findings(self, source: ProjectSource, name: str, version: str, line: int) -> Iterator[FactFinding]:
        """What a dependency says about the project that has it."""
        if name in self.frameworks:
            yield FactFinding("framework", self.frameworks[name], version, root=source.folder).at(line)
        if name in self.databases:
            yield FactFinding("database", self.databases[name], version, root=source.folder).at(line)


def parse_known_dependencies(frameworks: str, databases: str) -> KnownDependencies:
    """From `dependency=name` words; a bare word is its own name."""
    return KnownDependencies(_parse_named_words(frameworks), _parse_named_words(databases))


def _parse_named_words(text: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in text.split())
    return {key: name or key for key, _, name in pairs}


_KIND_BY_TASK_WORD: dict[str, FactKind] = {
    **dict.fromkeys(("test", "tests", "unittest", "spec"), "test_command"),
    **dict.fromkeys(("build", "compile", "bundle", "dist"), "build_command"),
    **dict.fromkeys(("lint", "eslint", "vet", "clippy", "rubocop"), "lint_command"),
    **dict.fromkeys(("format", "fmt", "prettier", "check-format"), "format_command"),
    **dict.fromkeys(("typecheck", "types", "tsc", "mypy", "phpstan", "type-check", "check-types"), "type_command"),
}  # fmt: skip
_MAIN_TASKS = frozenset({"test", "build", "lint", "format", "typecheck"})
TASK_NAME_PATTERN = lazy_pattern(r"[A-Za-z0-9][\w.:/@+-]{0,80}")


def classify_task_name(task: str) -> FactKind | None:
    """What a task of this name does; None where the name does not say."""
    return _KIND_BY_TASK_WORD.get(task) or _KIND_BY_TASK_WORD.get(re.split(r"[:_.-]", task, maxsplit=1)[0])


def task_findings(
    source: ProjectSource, runner: str, name: str, argv: tuple[str, ...], line: int, command_line: str = ""
) -> Iterator[FactFinding]:
    """A task of a runner as a command, where its name says what it is for."""
    kind = classify_task_name(name)
    if kind is not None and TASK_NAME_PATTERN.fullmatch(name):
        finding_name = runner if name in _MAIN_TASKS else f"{runner}:{name}"
        yield FactFinding(kind, finding_name, command_line or " ".join(argv), argv, source.folder).at(line)


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
