"""Where a check begins: the files that the program behind an argv reads before it runs anything.

`make` reads a Makefile, `npm test` the scripts of a package.json, pytest four files of settings. What such a file says
is looked through for the files that it runs; of a file with many purposes only the part that speaks of running.
**Invariant:** pure; a part that cannot be told from the rest counts as a part that runs.
"""

import configparser
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

_PYTEST = "pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg pyproject.toml conftest.py"
# fmt: off
READS = {  # programs: the files that they read, by name
    "make gmake bmake": "makefile gnumakefile bsdmakefile",
    "npm npx pnpm pnpx yarn bun bunx node nx turbo lerna jest vitest mocha ava karma tap nyc c8 wireit":
        "package.json jest.config.* vitest.config.* vite.config.* .mocharc* ava.config.* karma.conf.* "
        "playwright.config.* cypress.config.* nx.json turbo.json lerna.json project.json",
    "deno": "deno.json deno.jsonc",
    "pytest py.test": _PYTEST,
    "tox": f"{_PYTEST} tox.toml",
    "nox": f"{_PYTEST} noxfile.py",
    "uv poetry hatch pdm rye pipenv poe task pixi": f"{_PYTEST} pipfile pixi.toml",
    "invoke inv": "tasks.py",
    "fab": "fabfile.py",
    "doit": "dodo.py",
    "just": "justfile .justfile",
    "go-task taskfile": "taskfile*.yml taskfile*.yaml",
    "mage": "magefile.go",
    "rake bundle rspec": "rakefile .rspec",
    "composer phpunit pest": "composer.json phpunit.xml*",
    "mix": "mix.exs",
    "cargo": "cargo.toml config.toml",
    "mvn mvnw": "pom.xml",
    "gradle gradlew": "*.gradle *.gradle.kts",
    "ant": "build.xml",
    "sbt": "build.sbt",
    "dotnet msbuild": "*.csproj *.fsproj *.vbproj directory.build.*",
    "cmake ctest": "cmakelists.txt cmakepresets.json",
    "meson ninja": "meson.build",
    "scons": "sconstruct",
    "pre-commit": ".pre-commit-config.yaml",
    "lefthook": "lefthook.y*ml",
    "prove": ".proverc",
    "earthly": "earthfile",
    "swift": "package.swift",
    "dart flutter": "dart_test.yaml",
}
# fmt: on
PROGRAMS = {program: files for programs, files in READS.items() for program in programs.split()}
PROGRAMS["task"] += " taskfile*.yml taskfile*.yaml"
ALL = " ".join(PROGRAMS.values())

_SETTINGS_OF_RUNNERS = (
    "jest",
    "mocha",
    "ava",
    "vitest",
    "nyc",
    "c8",
    "tap",
    "karma",
    "lint-staged",
    "wireit",
)
_SECTIONS = ("tool:pytest", "pytest", "aliases", "tox", "testenv", "nosetests", "env", "env_run_base")
_TABLES = ("pytest", "tox", "nox", "poe", "taskipy", "pdm.scripts", "hatch.envs", "pixi.tasks", "invoke")
_RULE = re.compile(r"^(?P<targets>[^\s:=#][^:=#\n]{0,2000}?)\s*::?(?!=)(?P<needs>[^=\n]*)$")
_VARIABLE = re.compile(r"^\s*(?:export\s+)?(?P<name>[\w.-]+)\s*(?:[:?+!]|::)?=\s*(?P<value>.*)$")
_USE = re.compile(r"\$[({](?P<name>[\w.-]+)[)}]|\{\{\s*(?P<just>[\w-]+)\s*\}\}")
_CALLS_ITSELF = re.compile(r"\$[({]MAKE[)}]|\b(?:make|just)\b")
_LONGEST = 20_000  # characters of a line whose variables are put in


def runs(path: str, text: str, asked: frozenset[str]) -> str:
    """The part of an entry file that says what is run when these words are asked for; all of it where in doubt."""
    name = path.rpartition("/")[2].casefold()
    try:
        match name:
            case "makefile" | "gnumakefile" | "bsdmakefile" | "justfile" | ".justfile":
                return _recipes(text, asked)
            case "package.json" | "composer.json" | "deno.json":
                return _scripts(json.loads(text), asked)
            case "pyproject.toml":
                return _tables(tomllib.loads(text))
            case "cargo.toml":
                return _targets(tomllib.loads(text))
            case "setup.cfg" | "tox.ini":
                return _sections(text)
            case _:
                return text
    except (ValueError, RecursionError, configparser.Error, AttributeError, TypeError):
        return text


def _recipes(text: str, asked: frozenset[str]) -> str:
    """The recipes of the targets that are asked for and of what these need, variables put in."""
    rules, variables, others = _parsed(text.replace("\\\n", " "))
    wanted = [t for t in rules if t in asked] or list(rules)
    taken: dict[str, None] = {}
    while wanted:
        target = wanted.pop()
        if target in rules and target not in taken:
            taken[target] = None
            needs, *recipe = (_filled(line, variables) for line in rules[target])
            wanted += " ".join((needs, *(line for line in recipe if _CALLS_ITSELF.search(line)))).split()
    lines = [line for target in taken for line in rules[target][1:]]
    return "\n".join(_filled(line, variables) for line in (*lines, *others))


def _parsed(text: str) -> tuple[dict[str, list[str]], dict[str, str], list[str]]:
    """Targets with their needs and then their recipe; variables; lines that are neither, such as an include."""
    rules: dict[str, list[str]] = {}
    variables: dict[str, str] = {}
    others: list[str] = []
    current: list[str] = []
    for line in text.splitlines():
        if line[:1] in ("\t", " ") and current:
            for target in current:
                rules[target].append(line.strip().lstrip("@-+"))
        elif (found := _VARIABLE.match(line)) is not None:
            current = []
            variables[found["name"]] = f"{variables.get(found['name'], '')} {found['value']}".strip()
        elif (found := _RULE.match(line)) is not None:
            needs, _, recipe = found["needs"].partition(";")
            current = found["targets"].split()
            for target in current:
                rules.setdefault(target, [""])
                rules[target][0] += f" {needs}"
                rules[target] += [recipe.strip().lstrip("@-+")] if recipe else []
        elif line.strip() and not line.startswith("#"):
            current = []
            others.append(line)
    return rules, variables, others


def _filled(line: str, variables: Mapping[str, str]) -> str:
    for _ in range(4):  # a variable made of others made of others
        new = _USE.sub(lambda m: variables.get(m["name"] or m["just"], m[0]), line[:_LONGEST])
        if new == line:
            break
        line = new
    return line


def _scripts(told: Any, asked: frozenset[str]) -> str:
    """The scripts that are asked for, with those before and after them and those that they ask for in turn."""
    scripts = {**told.get("scripts", {}), **told.get("tasks", {})}
    words = set(asked)
    taken: dict[str, str] = {}
    while wanted := [n for n in scripts if n not in taken and _is_asked(n, words)]:
        for name in wanted:
            taken[name] = "\n".join(_strings(scripts[name]))
            words |= set(re.split(r"[\s\"'&|;]+", taken[name]))
    settings = (told[key] for key in _SETTINGS_OF_RUNNERS if key in told)
    return "\n".join(
        (
            *(taken.values() or [s for v in scripts.values() for s in _strings(v)]),
            *(s for v in settings for s in _strings(v)),
        )
    )


def _is_asked(name: str, words: set[str]) -> bool:
    plain = re.sub(r"^(?:pre|post)(?=\w)", "", name)
    forms = {name, plain, f"@{name}", f"npm:{name}"}
    return not words.isdisjoint(forms | ({"t", "tst", "it", "cit"} if plain == "test" else set()))


def _strings(value: Any, key: str = "") -> Iterator[str]:
    """Every text in a value, one line each, with the name it stands under; those of a list on one line."""
    match value:
        case str():
            yield f"{key} = {value}" if key else value
        case dict():
            for name, part in value.items():
                yield from _strings(part, str(name))
        case list():
            yield " ".join((f"{key} =", *(word for part in value for word in _strings(part))))
        case _:
            return


def _tables(told: Mapping[str, Any]) -> str:
    tool = told.get("tool", {})
    found: list[str] = []
    for name in _TABLES:
        part: Any = tool
        for key in name.split("."):
            part = part.get(key, {})
        found += _strings(part)
    return "\n".join(found)


def _targets(told: Mapping[str, Any]) -> str:
    """What cargo runs beside the product: its build script, and tests that lie elsewhere."""
    build = told.get("package", {}).get("build", "build.rs")
    paths = [target.get("path", "") for kind in ("test", "bench") for target in told.get(kind, [])]
    return "\n".join(f"run {path}" for path in (build, *paths))


def _sections(text: str) -> str:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    wanted = [s for s in parser.sections() if s.partition(":")[0] in _SECTIONS or s in _SECTIONS]
    return "\n".join(f"{key} = {value or ''}" for s in wanted for key, value in parser.items(s))
