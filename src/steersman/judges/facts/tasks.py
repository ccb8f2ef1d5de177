"""Task runners: make, just, Task. And which kind of command a task's name says it is."""

import re
from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.reading import MAX_LINE_WIDTH, parse_yaml_lines
from steersman.judges.patterns import lazy_pattern

_KIND_BY_TASK_WORD: dict[str, FactKind] = {
    **dict.fromkeys(("test", "tests", "unittest", "spec"), "test_command"),
    **dict.fromkeys(("build", "compile", "bundle", "dist"), "build_command"),
    **dict.fromkeys(("lint", "eslint", "vet", "clippy", "rubocop"), "lint_command"),
    **dict.fromkeys(("format", "fmt", "prettier"), "format_command"),
    **dict.fromkeys(("typecheck", "types", "tsc", "mypy", "phpstan"), "type_command"),
}
_KIND_BY_TASK_NAME: dict[str, FactKind] = {"type-check": "type_command", "check-types": "type_command", "check-format": "format_command"}  # fmt: skip
MAIN_TASK_KINDS = {"test": "test_command", "build": "build_command", "lint": "lint_command", "format": "format_command", "typecheck": "type_command"}  # fmt: skip
_MAKE_TARGET = lazy_pattern(r"([A-Za-z0-9][\w./-]{0,80})[ \t]{0,40}:(?!:{0,2}=)")
_JUST_RECIPE = lazy_pattern(r"@?([A-Za-z_][\w-]{0,80})(?:[ \t]+[^:=\n]{0,200})?:(?!=)")
TASK_NAME_PATTERN = lazy_pattern(r"[A-Za-z0-9][\w.:/@+-]{0,80}")


def classify_task_name(task: str) -> FactKind | None:
    """What a task of this name does; None where the name does not say."""
    kind = _KIND_BY_TASK_NAME.get(task)
    return kind if kind is not None else _KIND_BY_TASK_WORD.get(re.split(r"[:_.-]", task, maxsplit=1)[0])


def task_findings(
    source: ProjectSource, runner: str, name: str, argv: tuple[str, ...], line: int, command_line: str = ""
) -> Iterator[FactFinding]:
    """A task of a runner as a command, where its name says what it is for."""
    kind = classify_task_name(name)
    if kind is not None and TASK_NAME_PATTERN.fullmatch(name):
        finding_name = runner if MAIN_TASK_KINDS.get(name) == kind else f"{runner}:{name}"
        yield FactFinding(kind, finding_name, command_line or " ".join(argv), argv, source.folder).at(line)


def read_makefile(source: ProjectSource) -> Iterator[FactFinding]:
    """Targets whose names say what they are for; `check` tests, as is the custom with make."""
    target_names: set[str] = set()
    for number, line in enumerate(source.lines, 1):
        target = _MAKE_TARGET.match(line)
        if target is None or target[1] in target_names:
            continue
        target_names.add(target[1])
        if target[1] == "check":
            yield command_finding(source, "test_command", "make:check", ("make", "check")).at(number)
        yield from task_findings(source, "make", target[1], ("make", target[1]), number)


def read_justfile(source: ProjectSource) -> Iterator[FactFinding]:
    """Recipes."""
    for number, line in enumerate(source.lines, 1):
        recipe = _JUST_RECIPE.match(line[:MAX_LINE_WIDTH])
        if recipe is not None:
            yield from task_findings(source, "just", recipe[1], ("just", recipe[1]), number)


def read_taskfile(source: ProjectSource) -> Iterator[FactFinding]:
    """Tasks of go-task."""
    for line in parse_yaml_lines(source.lines):
        if len(line.path) == 2 and line.path[0] == "tasks":
            yield from task_findings(source, "task", line.path[1], ("task", line.path[1]), line.number)


def read_pre_commit_config(source: ProjectSource) -> Iterator[FactFinding]:
    """What pre-commit runs before every commit can be run at any time."""
    line = source.line_with("repos:")
    if line:
        argv = ("pre-commit", "run", "--all-files")
        yield command_finding(source, "lint_command", "pre-commit", argv).at(line)


TASK_RUNNER_READERS = (
    FactReader(".pre-commit-config.yaml", read_pre_commit_config),
    FactReader("makefile gnumakefile", read_makefile),
    FactReader("justfile .justfile", read_justfile),
    FactReader("taskfile.yml taskfile.yaml", read_taskfile),
)
