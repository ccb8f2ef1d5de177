"""Dart and Flutter packages."""

from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.reading import parse_yaml_lines
from steersman.judges.facts.stacks import dependency_findings


def read_pubspec(source: ProjectSource) -> Iterator[FactFinding]:
    """A package; with Flutter its own program tests."""
    lines = list(parse_yaml_lines(source.lines))
    program = "flutter" if any(line.path == ("dependencies", "flutter") for line in lines) else "dart"
    for line in lines:
        if line.path == ("name",):
            yield FactFinding("package", line.value, root=source.folder).at(line.number)
            yield command_finding(source, "test_command", program, (program, "test")).at(line.number)
            yield command_finding(source, "lint_command", program, (program, "analyze")).at(line.number)
        if len(line.path) == 2 and line.path[0] in {"dependencies", "dev_dependencies"}:
            yield from dependency_findings(source, "dart", line.path[1], line.value, line.number)


DART_READERS = (FactReader("pubspec.yaml", read_pubspec),)
