"""Elixir projects."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.stacks import dependency_findings
from steersman.judges.patterns import lazy_pattern

_MIX_APP = lazy_pattern(r"\s{0,40}app:\s{0,5}:(\w{1,100})")
_MIX_DEPENDENCY = lazy_pattern(r"""\s{0,40}\{:(\w{1,100}),\s{0,5}(?:"([^"]{0,60})")?""")
_MIX_COMMANDS: tuple[tuple[FactKind, str], ...] = (("test_command", "test"), ("build_command", "compile"))


def read_mix_project(source: ProjectSource) -> Iterator[FactFinding]:
    """A project of Mix."""
    line = source.line_with("use Mix.Project")
    if line:
        for kind, word in _MIX_COMMANDS:
            yield command_finding(source, kind, "mix", ("mix", word)).at(line)
    for number, text in enumerate(source.lines, 1):
        app, needs = _MIX_APP.match(text[:400]), _MIX_DEPENDENCY.match(text[:400])
        if app is not None:
            yield FactFinding("package", app[1], root=source.folder).at(number)
        if needs is not None:
            yield from dependency_findings(source, "elixir", needs[1], needs[2] or "", number)


def read_mix_formatter(source: ProjectSource) -> Iterator[FactFinding]:
    """Mix formats where it is told how."""
    argv = ("mix", "format", "--check-formatted")
    yield command_finding(source, "format_command", "mix-format", argv)


ELIXIR_READERS = (FactReader("mix.exs", read_mix_project), FactReader(".formatter.exs", read_mix_formatter))
