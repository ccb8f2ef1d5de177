"""Haskell packages."""

from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.reading import parse_yaml_lines


def read_cabal_package(source: ProjectSource) -> Iterator[FactFinding]:
    """A package; it is tested where it has a test suite."""
    for line in parse_yaml_lines(source.lines):
        if line.path == ("name",) and line.value:
            yield FactFinding("package", line.value, root=source.folder).at(line.number)
            yield command_finding(source, "build_command", "cabal", ("cabal", "build")).at(line.number)
    tests = source.line_with("test-suite ")
    if tests:
        yield command_finding(source, "test_command", "cabal", ("cabal", "test")).at(tests)


def read_stack_config(source: ProjectSource) -> Iterator[FactFinding]:
    """stack builds and tests what its file lists."""
    yield command_finding(source, "test_command", "stack", ("stack", "test"))


HASKELL_READERS = (FactReader("*.cabal", read_cabal_package), FactReader("stack.yaml", read_stack_config))
