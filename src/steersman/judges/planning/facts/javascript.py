"""JavaScript and TypeScript projects: package.json and deno.json."""

import re
from collections.abc import Iterator

from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.reading import json_of, table, text_at
from steersman.judges.planning.facts.stacks import depends
from steersman.judges.planning.facts.tasks import task

NO_TEST = "no test specified"  # what `npm init` writes
_LOCKS = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun"))
_DEPENDENCIES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")


def package(source: Source) -> Iterator[Finding]:
    """All that package.json names."""
    whole = json_of(source.text)
    name = text_at(whole, "name")
    if name:
        yield Finding("package", name, text_at(whole, "version"), root=source.folder).at(
            source.line_of("name")
        )
    yield from _scripts(source, table(whole, "scripts"), _manager(source, text_at(whole, "packageManager")))
    yield from _entries(source, name, whole.get("bin"))
    for group in _DEPENDENCIES:
        found = table(whole, group)
        after = source.line_of(group) if found else 0
        for dependency, wanted in found.items():
            line = source.line_of(dependency, after)
            yield from depends(source, "javascript", dependency, str(wanted), line)
            if dependency == "typescript" and source.has("tsconfig.json"):
                argv = ("npx", "tsc", "--noEmit")
                yield command(source, "type_command", "tsc", argv).at(line)


def _manager(source: Source, declared: str) -> str:
    """Who runs the scripts: as declared, else whose lock file is there."""
    said = declared.partition("@")[0]
    if said in {"npm", "pnpm", "yarn", "bun"}:
        return said
    return next((manager for lock, manager in _LOCKS if source.has(lock)), "npm")


def _scripts(source: Source, scripts: dict[str, object], manager: str) -> Iterator[Finding]:
    after = source.line_of("scripts")
    for name, said in scripts.items():
        if isinstance(said, str) and NO_TEST not in said:
            argv = (manager, "test") if name == "test" and manager != "bun" else (manager, "run", name)
            yield from task(source, manager, name, argv, source.line_of(name, after), said)


def _entries(source: Source, name: str, programs: object) -> Iterator[Finding]:
    line = source.line_of("bin")
    if isinstance(programs, str) and name:
        yield Finding("entry_point", name, programs, root=source.folder).at(line)
    if isinstance(programs, dict):
        for program, path in programs.items():
            yield Finding("entry_point", program, str(path), root=source.folder).at(
                source.line_of(program, line)
            )


def deno(source: Source) -> Iterator[Finding]:
    """Tasks of deno; its own test runner needs none."""
    text = re.sub(r"(?m)^[ \t]*//.*$", "", source.text)
    whole = json_of(text)
    if whole:
        argv = ("deno", "test")
        yield command(source, "test_command", "deno", argv)
    for name in table(whole, "tasks"):
        yield from task(source, "deno-task", name, ("deno", "task", name), source.line_of(name))


READERS = (Reader("package.json", package), Reader("deno.json deno.jsonc", deno))
