"""Elixir projects."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.stacks import depends

_APP = later(r"\s{0,40}app:\s{0,5}:(\w{1,100})")
_DEPENDENCY = later(r"""\s{0,40}\{:(\w{1,100}),\s{0,5}(?:"([^"]{0,60})")?""")
_COMMANDS: tuple[tuple[FactKind, str], ...] = (("test_command", "test"), ("build_command", "compile"))


def mix(source: Source) -> Iterator[Finding]:
    """A project of Mix."""
    line = source.line_with("use Mix.Project")
    if line:
        for kind, word in _COMMANDS:
            yield command(source, kind, "mix", ("mix", word)).at(line)
    for number, text in enumerate(source.lines, 1):
        app, needs = _APP.match(text[:400]), _DEPENDENCY.match(text[:400])
        if app is not None:
            yield Finding("package", app[1], root=source.folder).at(number)
        if needs is not None:
            yield from depends(source, "elixir", needs[1], needs[2] or "", number)


def formatter(source: Source) -> Iterator[Finding]:
    """Mix formats where it is told how."""
    argv = ("mix", "format", "--check-formatted")
    yield command(source, "format_command", "mix-format", argv)


READERS = (Reader("mix.exs", mix), Reader(".formatter.exs", formatter))
