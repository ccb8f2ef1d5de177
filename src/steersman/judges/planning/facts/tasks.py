"""Task runners: make, just, Task. And which kind of command a task's name says it is."""

import re
from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.reading import WIDEST, yaml_of

_KINDS: dict[str, FactKind] = {
    **dict.fromkeys(("test", "tests", "unittest", "spec"), "test_command"),
    **dict.fromkeys(("build", "compile", "bundle", "dist"), "build_command"),
    **dict.fromkeys(("lint", "eslint", "vet", "clippy", "rubocop"), "lint_command"),
    **dict.fromkeys(("format", "fmt", "prettier"), "format_command"),
    **dict.fromkeys(("typecheck", "types", "tsc", "mypy", "phpstan"), "type_command"),
}
_SPELT: dict[str, FactKind] = {"type-check": "type_command", "check-types": "type_command", "check-format": "format_command"}  # fmt: skip
MAIN = {"test": "test_command", "build": "build_command", "lint": "lint_command", "format": "format_command", "typecheck": "type_command"}  # fmt: skip
_TARGET = later(r"([A-Za-z0-9][\w./-]{0,80})[ \t]{0,40}:(?!:{0,2}=)")
_RECIPE = later(r"@?([A-Za-z_][\w-]{0,80})(?:[ \t]+[^:=\n]{0,200})?:(?!=)")
NAME = later(r"[A-Za-z0-9][\w.:/@+-]{0,80}")


def kind_of(task: str) -> FactKind | None:
    """What a task of this name does; None where the name does not say."""
    found = _SPELT.get(task)
    return found if found is not None else _KINDS.get(re.split(r"[:_.-]", task, maxsplit=1)[0])


def task(
    source: Source, runner: str, name: str, argv: tuple[str, ...], line: int, said: str = ""
) -> Iterator[Finding]:
    """A task of a runner as a command, where its name says what it is for."""
    kind = kind_of(name)
    if kind is not None and NAME.fullmatch(name):
        called = runner if MAIN.get(name) == kind else f"{runner}:{name}"
        yield Finding(kind, called, said or " ".join(argv), argv, source.folder).at(line)


def makefile(source: Source) -> Iterator[Finding]:
    """Targets whose names say what they are for; `check` tests, as is the custom with make."""
    seen: set[str] = set()
    for number, line in enumerate(source.lines, 1):
        target = _TARGET.match(line)
        if target is None or target[1] in seen:
            continue
        seen.add(target[1])
        if target[1] == "check":
            yield command(source, "test_command", "make:check", ("make", "check")).at(number)
        yield from task(source, "make", target[1], ("make", target[1]), number)


def justfile(source: Source) -> Iterator[Finding]:
    """Recipes."""
    for number, line in enumerate(source.lines, 1):
        recipe = _RECIPE.match(line[:WIDEST])
        if recipe is not None:
            yield from task(source, "just", recipe[1], ("just", recipe[1]), number)


def taskfile(source: Source) -> Iterator[Finding]:
    """Tasks of go-task."""
    for line in yaml_of(source.lines):
        if len(line.path) == 2 and line.path[0] == "tasks":
            yield from task(source, "task", line.path[1], ("task", line.path[1]), line.number)


def hooks(source: Source) -> Iterator[Finding]:
    """What pre-commit runs before every commit can be run at any time."""
    line = source.line_with("repos:")
    if line:
        argv = ("pre-commit", "run", "--all-files")
        yield command(source, "lint_command", "pre-commit", argv).at(line)


READERS = (
    Reader(".pre-commit-config.yaml", hooks),
    Reader("makefile gnumakefile", makefile),
    Reader("justfile .justfile", justfile),
    Reader("taskfile.yml taskfile.yaml", taskfile),
)
