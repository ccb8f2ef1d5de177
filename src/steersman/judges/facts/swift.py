"""Swift packages."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.stacks import dependency_findings
from steersman.judges.patterns import lazy_pattern

_SWIFT_PACKAGE_NAME = lazy_pattern(r'\s{0,40}name:\s{0,5}"([\w.-]{1,100})"')
_SWIFT_DEPENDENCY = lazy_pattern(r'url:\s{0,5}"[^"]{0,200}/([\w.-]{1,100}?)(?:\.git)?"')
_SWIFT_COMMANDS: tuple[tuple[FactKind, str], ...] = (("test_command", "test"), ("build_command", "build"))


def read_swift_package(source: ProjectSource) -> Iterator[FactFinding]:
    """A package; the first name in its manifest is its own."""
    for kind, word in _SWIFT_COMMANDS:
        yield command_finding(source, kind, "swift", ("swift", word))
    is_named = False
    for number, line in enumerate(source.lines, 1):
        name, needs = _SWIFT_PACKAGE_NAME.match(line[:400]), _SWIFT_DEPENDENCY.search(line[:400])
        if name is not None and not is_named:
            is_named = True
            yield FactFinding("package", name[1], root=source.folder).at(number)
        if needs is not None:
            yield from dependency_findings(source, "swift", needs[1], "", number)


SWIFT_READERS = (FactReader("package.swift", read_swift_package),)
