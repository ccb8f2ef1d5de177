"""Go modules."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.stacks import depends

_MODULE = later(r"module[ \t]{1,20}\"?([^\s\"]{1,200})")
_VERSION = later(r"go[ \t]{1,20}(\d[\w.]{0,20})")
_REQUIRE = later(
    r"(?:require)?[ \t]{1,20}([\w.-]{1,80}\.[\w.~/-]{1,200})[ \t]{1,20}(v[\w.+-]{1,80})(.{0,40})"
)
_MAJOR = later(r"/v\d{1,4}$")
_COMMANDS: tuple[tuple[FactKind, tuple[str, ...]], ...] = (
    ("test_command", ("go", "test", "./...")),
    ("build_command", ("go", "build", "./...")),
    ("lint_command", ("go", "vet", "./...")),
)


def module(source: Source) -> Iterator[Finding]:
    """A module: its name, its commands, and what it requires directly; a file that names none is none."""
    named_at = next((n for n, line in enumerate(source.lines, 1) if _MODULE.match(line) is not None), 0)
    if not named_at:
        return
    for kind, argv in _COMMANDS:
        yield command(source, kind, "go", argv).at(named_at)
    version = next((found[1] for line in source.lines if (found := _VERSION.match(line)) is not None), "")
    for number, line in enumerate(source.lines, 1):
        named, required = _MODULE.match(line), _REQUIRE.match(line)
        if named is not None:
            yield Finding("package", named[1], version, root=source.folder).at(number)
        elif required is not None and "indirect" not in required[3]:
            yield from depends(source, "go", _MAJOR.sub("", required[1]), required[2], number)


def program(source: Source) -> Iterator[Finding]:
    """A main package."""
    line = next((n for n, line in enumerate(source.lines, 1) if line.split() == ["package", "main"]), 0)
    if line:
        yield Finding("entry_point", source.path, "go run", root=source.folder).at(line)


def linter(source: Source) -> Iterator[Finding]:
    """golangci-lint has a file of its own."""
    argv = ("golangci-lint", "run")
    yield command(source, "lint_command", "golangci-lint", argv)


READERS = (
    Reader("go.mod", module),
    Reader("main.go", program),
    Reader(".golangci.yml .golangci.yaml .golangci.toml .golangci.json", linter),
)
