"""Haskell packages."""

from collections.abc import Iterator

from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.reading import yaml_of


def cabal(source: Source) -> Iterator[Finding]:
    """A package; it is tested where it has a test suite."""
    for line in yaml_of(source.lines):
        if line.path == ("name",) and line.value:
            yield Finding("package", line.value, root=source.folder).at(line.number)
            yield command(source, "build_command", "cabal", ("cabal", "build")).at(line.number)
    tests = source.line_with("test-suite ")
    if tests:
        yield command(source, "test_command", "cabal", ("cabal", "test")).at(tests)


def stack(source: Source) -> Iterator[Finding]:
    """stack builds and tests what its file lists."""
    yield command(source, "test_command", "stack", ("stack", "test"))


READERS = (Reader("*.cabal", cabal), Reader("stack.yaml", stack))
