"""JavaScript and TypeScript projects: package.json and deno.json."""

import re
from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.reading import get_manifest_table, get_manifest_text, parse_manifest_json
from steersman.judges.facts.stacks import dependency_findings
from steersman.judges.facts.tasks import task_findings

NPM_NO_TEST_TEXT = "no test specified"  # what `npm init` writes
_MANAGER_LOCK_FILES = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lockb", "bun"),
    ("bun.lock", "bun"),
)
_DEPENDENCY_TABLES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")


def read_package_json(source: ProjectSource) -> Iterator[FactFinding]:
    """All that package.json names."""
    document = parse_manifest_json(source.text)
    name = get_manifest_text(document, "name")
    if name:
        yield FactFinding("package", name, get_manifest_text(document, "version"), root=source.folder).at(
            source.line_of("name")
        )
    yield from _read_package_scripts(
        source,
        get_manifest_table(document, "scripts"),
        _find_package_manager(source, get_manifest_text(document, "packageManager")),
    )
    yield from _read_package_programs(source, name, document.get("bin"))
    for group in _DEPENDENCY_TABLES:
        dependencies = get_manifest_table(document, group)
        group_line = source.line_of(group) if dependencies else 0
        for dependency, version in dependencies.items():
            line = source.line_of(dependency, group_line)
            yield from dependency_findings(source, "javascript", dependency, str(version), line)
            if dependency == "typescript" and source.has("tsconfig.json"):
                argv = ("npx", "tsc", "--noEmit")
                yield command_finding(source, "type_command", "tsc", argv).at(line)


def _find_package_manager(source: ProjectSource, declared: str) -> str:
    """Who runs the scripts: as declared, else whose lock file is there."""
    manager_name = declared.partition("@")[0]
    if manager_name in {"npm", "pnpm", "yarn", "bun"}:
        return manager_name
    return next((manager for lock, manager in _MANAGER_LOCK_FILES if source.has(lock)), "npm")


def _read_package_scripts(
    source: ProjectSource, scripts: dict[str, object], manager: str
) -> Iterator[FactFinding]:
    scripts_line = source.line_of("scripts")
    for name, script in scripts.items():
        if isinstance(script, str) and NPM_NO_TEST_TEXT not in script:
            argv = (manager, "test") if name == "test" and manager != "bun" else (manager, "run", name)
            yield from task_findings(source, manager, name, argv, source.line_of(name, scripts_line), script)


def _read_package_programs(source: ProjectSource, name: str, programs: object) -> Iterator[FactFinding]:
    line = source.line_of("bin")
    if isinstance(programs, str) and name:
        yield FactFinding("entry_point", name, programs, root=source.folder).at(line)
    if isinstance(programs, dict):
        for program, path in programs.items():
            yield FactFinding("entry_point", program, str(path), root=source.folder).at(
                source.line_of(program, line)
            )


def read_deno_json(source: ProjectSource) -> Iterator[FactFinding]:
    """Tasks of deno; its own test runner needs none."""
    text = re.sub(r"(?m)^[ \t]*//.*$", "", source.text)
    document = parse_manifest_json(text)
    if document:
        argv = ("deno", "test")
        yield command_finding(source, "test_command", "deno", argv)
    for name in get_manifest_table(document, "tasks"):
        yield from task_findings(source, "deno-task", name, ("deno", "task", name), source.line_of(name))


JAVASCRIPT_READERS = (
    FactReader("package.json", read_package_json),
    FactReader("deno.json deno.jsonc", read_deno_json),
)
