"""Go modules."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.stacks import dependency_findings
from steersman.judges.patterns import lazy_pattern

_GO_MODULE_LINE = lazy_pattern(r"module[ \t]{1,20}\"?([^\s\"]{1,200})")
_GO_VERSION_LINE = lazy_pattern(r"go[ \t]{1,20}(\d[\w.]{0,20})")
_GO_REQUIRE_LINE = lazy_pattern(
    r"(?:require)?[ \t]{1,20}([\w.-]{1,80}\.[\w.~/-]{1,200})[ \t]{1,20}(v[\w.+-]{1,80})(.{0,40})"
)
_MAJOR_VERSION_SUFFIX = lazy_pattern(r"/v\d{1,4}$")
_GO_COMMANDS: tuple[tuple[FactKind, tuple[str, ...]], ...] = (
    ("test_command", ("go", "test", "./...")),
    ("build_command", ("go", "build", "./...")),
    ("lint_command", ("go", "vet", "./...")),
)


def read_go_module(source: ProjectSource) -> Iterator[FactFinding]:
    """A module: its name, its commands, and what it requires directly; a file that names none is none."""
    module_line = next(
        (n for n, line in enumerate(source.lines, 1) if _GO_MODULE_LINE.match(line) is not None), 0
    )
    if not module_line:
        return
    for kind, argv in _GO_COMMANDS:
        yield command_finding(source, kind, "go", argv).at(module_line)
    version = next(
        (match[1] for line in source.lines if (match := _GO_VERSION_LINE.match(line)) is not None), ""
    )
    for number, line in enumerate(source.lines, 1):
        module_match, requirement = _GO_MODULE_LINE.match(line), _GO_REQUIRE_LINE.match(line)
        if module_match is not None:
            yield FactFinding("package", module_match[1], version, root=source.folder).at(number)
        elif requirement is not None and "indirect" not in requirement[3]:
            yield from dependency_findings(
                source, "go", _MAJOR_VERSION_SUFFIX.sub("", requirement[1]), requirement[2], number
            )


def read_go_program(source: ProjectSource) -> Iterator[FactFinding]:
    """A main package."""
    line = next((n for n, line in enumerate(source.lines, 1) if line.split() == ["package", "main"]), 0)
    if line:
        yield FactFinding("entry_point", source.path, "go run", root=source.folder).at(line)


def read_golangci_config(source: ProjectSource) -> Iterator[FactFinding]:
    """golangci-lint has a file of its own."""
    argv = ("golangci-lint", "run")
    yield command_finding(source, "lint_command", "golangci-lint", argv)


GO_READERS = (
    FactReader("go.mod", read_go_module),
    FactReader("main.go", read_go_program),
    FactReader(".golangci.yml .golangci.yaml .golangci.toml .golangci.json", read_golangci_config),
)
