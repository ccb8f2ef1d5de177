"""Rust crates and workspaces."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.reading import table, text_at, toml_of
from steersman.judges.planning.facts.stacks import depends
from steersman.judges.toml_lines import line_of, toml_lines

_COMMANDS: tuple[tuple[FactKind, tuple[str, ...]], ...] = (
    ("test_command", ("cargo", "test")),
    ("build_command", ("cargo", "build")),
)


def crate(source: Source) -> Iterator[Finding]:
    """A crate, or a workspace of crates."""
    whole = toml_of(source.text)
    lines = toml_lines(source.text) if whole else {}
    own = table(whole, "package")
    for kind, argv in _COMMANDS:
        yield command(source, kind, "cargo", argv).at(
            line_of(lines, ("workspace",)) or line_of(lines, ("package",)) or 0
        )
    if text_at(own, "name"):
        yield Finding("package", text_at(own, "name"), text_at(own, "version"), root=source.folder).at(
            line_of(lines, ("package", "name")) or 0
        )
    programs = whole.get("bin")
    for one in programs if isinstance(programs, list) else []:
        name = text_at(one, "name") if isinstance(one, dict) else ""
        if name:
            yield Finding("entry_point", name, text_at(one, "path"), root=source.folder).at(
                line_of(lines, ("bin",)) or 0
            )
    for group in (("dependencies",), ("dev-dependencies",), ("workspace", "dependencies")):
        for name, wanted in table(whole, *group).items():
            version = text_at(wanted, "version") if isinstance(wanted, dict) else str(wanted)
            yield from depends(source, "rust", name, version, line_of(lines, (*group, name)) or 0)


def formatter(source: Source) -> Iterator[Finding]:
    """rustfmt has a file of its own."""
    argv = ("cargo", "fmt", "--check")
    yield command(source, "format_command", "cargo-fmt", argv)


def linter(source: Source) -> Iterator[Finding]:
    """clippy too."""
    argv = ("cargo", "clippy")
    yield command(source, "lint_command", "clippy", argv)


READERS = (
    Reader("cargo.toml", crate),
    Reader("rustfmt.toml .rustfmt.toml", formatter),
    Reader("clippy.toml .clippy.toml", linter),
)
