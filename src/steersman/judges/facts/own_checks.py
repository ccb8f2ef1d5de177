"""The checks that a project has given steersman: a plan that leaves them out could never be carried out."""

from collections.abc import Iterator

from steersman.judges.facts.finding import (
    FactFinding,
    FactReader,
    ProjectSource,
    command_finding,
    is_exactly_in,
)
from steersman.judges.facts.reading import get_manifest_table, list_manifest_texts, parse_manifest_toml
from steersman.judges.facts.tasks import TASK_NAME_PATTERN, classify_task_name


def read_configured_checks(source: ProjectSource) -> Iterator[FactFinding]:
    """Each by its name; what the name does not say is a test."""
    for name, argv in get_manifest_table(parse_manifest_toml(source.text), "checks").items():
        arguments = list_manifest_texts(argv)
        if arguments and arguments == argv and TASK_NAME_PATTERN.fullmatch(name):
            line = source.line_with(name, source.line_with("[checks]"))
            yield command_finding(
                source, classify_task_name(name) or "test_command", f"check:{name}", tuple(arguments)
            ).at(line)


CONFIGURED_CHECK_READERS = (FactReader("steersman.toml", read_configured_checks, is_exactly_in()),)
