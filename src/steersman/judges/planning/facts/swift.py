"""Swift packages."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.stacks import depends

_NAME = later(r'\s{0,40}name:\s{0,5}"([\w.-]{1,100})"')
_NEEDS = later(r'url:\s{0,5}"[^"]{0,200}/([\w.-]{1,100}?)(?:\.git)?"')
_COMMANDS: tuple[tuple[FactKind, str], ...] = (("test_command", "test"), ("build_command", "build"))


def package(source: Source) -> Iterator[Finding]:
    """A package; the first name in its manifest is its own."""
    for kind, word in _COMMANDS:
        yield command(source, kind, "swift", ("swift", word))
    named = False
    for number, line in enumerate(source.lines, 1):
        name, needs = _NAME.match(line[:400]), _NEEDS.search(line[:400])
        if name is not None and not named:
            named = True
            yield Finding("package", name[1], root=source.folder).at(number)
        if needs is not None:
            yield from depends(source, "swift", needs[1], "", number)


READERS = (Reader("package.swift", package),)
