"""The checks that a project has given steersman: a plan that leaves them out could never be carried out."""

from collections.abc import Iterator

from steersman.judges.planning.facts.finding import Finding, Reader, Source, at_top, command
from steersman.judges.planning.facts.reading import table, toml_of, words
from steersman.judges.planning.facts.tasks import NAME, kind_of


def checks(source: Source) -> Iterator[Finding]:
    """Each by its name; what the name does not say is a test."""
    for name, argv in table(toml_of(source.text), "checks").items():
        given = words(argv)
        if given and given == argv and NAME.fullmatch(name):
            line = source.line_with(name, source.line_with("[checks]"))
            yield command(source, kind_of(name) or "test_command", f"check:{name}", tuple(given)).at(line)


READERS = (Reader("steersman.toml", checks, at_top()),)
