"""Dart and Flutter packages."""

from collections.abc import Iterator

from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.reading import yaml_of
from steersman.judges.planning.facts.stacks import depends


def pubspec(source: Source) -> Iterator[Finding]:
    """A package; with Flutter its own program tests."""
    lines = list(yaml_of(source.lines))
    program = "flutter" if any(line.path == ("dependencies", "flutter") for line in lines) else "dart"
    for line in lines:
        if line.path == ("name",):
            yield Finding("package", line.value, root=source.folder).at(line.number)
            yield command(source, "test_command", program, (program, "test")).at(line.number)
            yield command(source, "lint_command", program, (program, "analyze")).at(line.number)
        if len(line.path) == 2 and line.path[0] in {"dependencies", "dev_dependencies"}:
            yield from depends(source, "dart", line.path[1], line.value, line.number)


READERS = (Reader("pubspec.yaml", pubspec),)
