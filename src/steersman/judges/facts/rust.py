"""Rust crates and workspaces."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.config.toml_lines import find_nearest_toml_line, find_toml_lines
from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.reading import get_manifest_table, get_manifest_text, parse_manifest_toml
from steersman.judges.facts.stacks import dependency_findings

_CARGO_COMMANDS: tuple[tuple[FactKind, tuple[str, ...]], ...] = (
    ("test_command", ("cargo", "test")),
    ("build_command", ("cargo", "build")),
)


def read_cargo_manifest(source: ProjectSource) -> Iterator[FactFinding]:
    """A crate, or a workspace of crates."""
    document = parse_manifest_toml(source.text)
    lines = find_toml_lines(source.text) if document else {}
    package = get_manifest_table(document, "package")
    for kind, argv in _CARGO_COMMANDS:
        yield command_finding(source, kind, "cargo", argv).at(
            find_nearest_toml_line(lines, ("workspace",)) or find_nearest_toml_line(lines, ("package",)) or 0
        )
    if get_manifest_text(package, "name"):
        yield FactFinding(
            "package",
            get_manifest_text(package, "name"),
            get_manifest_text(package, "version"),
            root=source.folder,
        ).at(find_nearest_toml_line(lines, ("package", "name")) or 0)
    programs = document.get("bin")
    for program in programs if isinstance(programs, list) else []:
        name = get_manifest_text(program, "name") if isinstance(program, dict) else ""
        if name:
            yield FactFinding("entry_point", name, get_manifest_text(program, "path"), root=source.folder).at(
                find_nearest_toml_line(lines, ("bin",)) or 0
            )
    for group in (("dependencies",), ("dev-dependencies",), ("workspace", "dependencies")):
        for name, requirement in get_manifest_table(document, *group).items():
            version = (
                get_manifest_text(requirement, "version")
                if isinstance(requirement, dict)
                else str(requirement)
            )
            yield from dependency_findings(
                source, "rust", name, version, find_nearest_toml_line(lines, (*group, name)) or 0
            )


def read_rustfmt_config(source: ProjectSource) -> Iterator[FactFinding]:
    """rustfmt has a file of its own."""
    argv = ("cargo", "fmt", "--check")
    yield command_finding(source, "format_command", "cargo-fmt", argv)


def read_clippy_config(source: ProjectSource) -> Iterator[FactFinding]:
    """clippy too."""
    argv = ("cargo", "clippy")
    yield command_finding(source, "lint_command", "clippy", argv)


RUST_READERS = (
    FactReader("cargo.toml", read_cargo_manifest),
    FactReader("rustfmt.toml .rustfmt.toml", read_rustfmt_config),
    FactReader("clippy.toml .clippy.toml", read_clippy_config),
)
