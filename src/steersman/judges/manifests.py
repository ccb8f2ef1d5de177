"""What of a project's manifest says which tests run, and what says which packages they run with.

A manifest has many purposes: a version number, a description or a script that no check runs decides nothing.
**Invariant:** pure; a manifest that cannot be read counts as a whole.
"""

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

_VERSION = re.compile(
    r"\s*[\"']?(?:version|__version__|VERSION)[\"']?\s*[:=]\s*[\"']?[\w.+-]*[\"']?,?\s*(?:#.*)?"
)
_NAMED_PACKAGES = (
    "dependencies devDependencies peerDependencies optionalDependencies bundledDependencies bundleDependencies overrides "
    "resolutions packageManager workspaces pnpm"
)
_PACKAGES = tuple(_NAMED_PACKAGES.split())
_INSTALLING = ("preinstall", "install", "postinstall", "prepare", "prepublish")
_ASKED = frozenset({"test", "tests", "check"})
_RUNNERS = ("jest", "mocha", "ava", "vitest", "nyc", "c8", "tap")  # with settings in package.json
_SECTIONS = ("tool:pytest", "pytest", "aliases", "tox", "testenv", "env", "env_run_base")
_TABLES = ("pytest", "tox", "nox", "poe", "taskipy", "pdm.scripts", "hatch.envs", "pixi.tasks")
_UNREADABLE = (ValueError, RecursionError, configparser.Error, AttributeError, TypeError)
_RULE = re.compile(r"^(?P<targets>[^\s:=#][^:=#\n]{0,2000}?)\s*::?(?!=)(?P<needs>[^=\n]*)$")
_ASSIGNS = re.compile(r"\s*(?:export\s+)?[\w.-]+\s*(?:[:?+!]|::)?=")
_CALLS_ITSELF = re.compile(r"\$[({]MAKE[)}]|\b(?:make|just)\b")


def only_version_changed(old: str, new: str) -> bool:
    """Whether two texts differ in lines with a version number alone."""
    before, after = old.splitlines(), new.splitlines()
    pairs = zip(before, after, strict=False)
    return len(before) == len(after) and all(
        a == b or (_VERSION.fullmatch(a) and _VERSION.fullmatch(b)) for a, b in pairs
    )


def is_manifest(path: str) -> bool:
    """Whether its parts can be told apart here."""
    return _name(path) in _DEPENDENCIES


def test_settings_differ(path: str, old: str, new: str, words: frozenset[str]) -> bool:
    """Whether the part that says which tests run, and how, is not the same; `words` are those of the checks."""
    before, after = (_test_settings(path, text, words | _ASKED) for text in (old, new))
    return before != after


def dependencies_differ(path: str, old: str, new: str) -> bool:
    """Whether the part that says which packages are installed is not the same."""
    read = _DEPENDENCIES[_name(path)]
    return bool(_part(read, old) != _part(read, new))


def outside_paths(path: str, text: str) -> tuple[str, ...]:
    """The places outside the tree from which go or cargo would take code, as the manifest names them."""
    match _name(path):
        case "go.mod" | "go.work":
            named = re.findall(r"=>[ \t]*(\.{1,2}/[^\s]*|/[^\s]*)", _without_comments(text))
            named += re.findall(r"^\s*(?:use\s+)?(\.\.[^\s)]*|/[^\s)]+)\s*$", _without_comments(text), re.MULTILINE) if _name(path) == "go.work" else []  # fmt: skip
        case "cargo.toml":
            named = list(_cargo_paths(_part(tomllib.loads, text)))
        case _:
            return ()
    return tuple(place for place in named if _leads_out(path, place))


def _leads_out(path: str, place: str) -> bool:
    depth = 0 if not place.startswith("/") else -1
    for part in (*path.split("/")[:-1], *place.split("/")):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False


def _name(path: str) -> str:
    return path.rpartition("/")[2].casefold()


def _part(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text) if text.strip() else read("{}" if read is _of_package else "")
    except _UNREADABLE:
        return text


def used_part(path: str, text: str, words: frozenset[str]) -> str:
    """The recipes, scripts and options that are used when these words are asked for; all of it where in doubt."""
    try:
        match _name(path):
            case "makefile" | "gnumakefile" | "justfile" | ".justfile":
                return _recipes(text, words)
            case "package.json" | "composer.json" | "deno.json":
                return _scripts(json.loads(text), words)
            case "pyproject.toml":
                return _tables(tomllib.loads(text))
            case "setup.cfg" | "tox.ini":
                return _sections(text)
            case _:
                return text
    except _UNREADABLE:
        return text


def _recipes(text: str, asked: frozenset[str]) -> str:
    """The recipes of the targets that are asked for and of what these need, and lines such as an include."""
    rules: dict[str, list[str]] = {}
    others: list[str] = []
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in ("\t", " ") and current:
            for target in current:
                rules[target].append(line.strip())
        elif (rule := _RULE.match(line)) is not None:
            current = rule["targets"].split()
            for target in current:
                rules.setdefault(target, []).append(rule["needs"])
        else:
            current = []
            others += [] if line.startswith("#") or _ASSIGNS.match(line) else [line]
    return "\n".join((*_used_recipes(rules, asked), *others))


def _used_recipes(rules: Mapping[str, list[str]], asked: frozenset[str]) -> list[str]:
    wanted = [target for target in rules if target in asked] or list(rules)
    used: dict[str, list[str]] = {}
    while wanted:
        target = wanted.pop()
        if target in rules and target not in used:
            needs, *used[target] = rules[target]
            calls = [line for line in used[target] if _CALLS_ITSELF.search(line)]
            wanted += " ".join((needs, *calls)).replace(";", " ").split()
            used[target] += [needs] if ";" in needs else []
    return [line for lines in used.values() for line in lines]


def _scripts(told: Any, asked: frozenset[str]) -> str:
    """The scripts that are asked for, with those before and after them and those that they ask for in turn."""
    scripts = {**told.get("scripts", {}), **told.get("tasks", {})}
    words, used = set(asked), dict[str, str]()
    while wanted := [name for name in scripts if name not in used and _is_asked(name, words)]:
        for name in wanted:
            used[name] = json.dumps(scripts[name], ensure_ascii=False)
            words |= set(re.split(r"[\s\"'&|;]+", used[name]))
    return "\n".join(used.values() or map(json.dumps, scripts.values()))


def _is_asked(name: str, words: set[str]) -> bool:
    plain = re.sub(r"^(?:pre|post)(?=\w)", "", name)
    return not words.isdisjoint({name, plain, f"@{name}", f"npm:{name}", "t" if plain == "test" else name})


def _tables(told: Mapping[str, Any]) -> str:
    found = []
    for name in _TABLES:
        part: Any = told.get("tool", {})
        for key in name.split("."):
            part = part.get(key, {})
        found.append(json.dumps(part, default=str, ensure_ascii=False) if part else "")
    return "\n".join(found)


def _sections(text: str) -> str:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    wanted = [s for s in parser.sections() if s.partition(":")[0] in _SECTIONS or s in _SECTIONS]
    return "\n".join(f"{key} = {value or ''}" for s in wanted for key, value in parser.items(s))


def _test_settings(path: str, text: str, words: frozenset[str]) -> tuple[Any, ...]:
    """Of a manifest of packages alone nothing; else what is used, and the settings of runners beside it."""
    more: dict[str, Callable[[str], Any]] = {
        "pyproject.toml": lambda t: _tools(tomllib.loads(t), words),
        "package.json": lambda t: {name: part for name, part in json.loads(t).items() if name in _RUNNERS},
        "makefile": _assignments,
        "gnumakefile": _assignments,
        "justfile": _assignments,
        "cargo.toml": _targets,
    }
    name = _name(path)
    if not text.strip() or name in ("go.mod", "go.work"):
        return ()
    used = "" if name == "cargo.toml" else used_part(path, text, words)
    settings = (used.strip(), _part(more[name], text) if name in more else "")
    return settings if any(settings) else ()


def _assignments(text: str) -> list[str]:
    return [line for line in text.splitlines() if _ASSIGNS.match(line)]


def _tools(told: Mapping[str, Any], words: frozenset[str]) -> dict[str, Any]:
    """The settings of the tools that checks run, beside those of test runners."""
    return {name: part for name, part in told.get("tool", {}).items() if name in words}


def _targets(text: str) -> dict[str, Any]:
    told = tomllib.loads(text)
    package, library = told.get("package", {}), told.get("lib", {})
    targets = {key: told.get(key) for key in ("test", "bench", "bin", "example")}
    targets |= {key: library.get(key) for key in ("doctest", "harness", "path")}
    targets |= {"of lib": library.get("test"), "build": package.get("build")}
    return {key: value for key, value in targets.items() if value is not None}


def _of_pyproject(text: str) -> Any:
    told = tomllib.loads(text)
    project, tool = told.get("project", {}), told.get("tool", {})
    poetry, uv, hatch = (tool.get(name, {}) for name in ("poetry", "uv", "hatch"))
    return [
        told.get("build-system"),
        told.get("dependency-groups"),
        *(project.get(key) for key in ("dependencies", "optional-dependencies", "requires-python")),
        *(poetry.get(key) for key in ("dependencies", "dev-dependencies", "group", "source")),
        *(
            uv.get(key)
            for key in ("sources", "dev-dependencies", "index", "override-dependencies", "workspace")
        ),
        tool.get("pdm", {}).get("dev-dependencies"),
        hatch.get("envs"),
        tool.get("pixi", {}).get("dependencies"),
    ]


def _of_sections(text: str) -> Any:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    wanted = ("install_requires", "extras_require", "setup_requires", "tests_require", "deps", "requires")
    return [
        (section, key, value)
        for section in parser.sections()
        for key, value in parser.items(section)
        if key in wanted or section == "options.extras_require"
    ]


def _of_package(text: str) -> Any:
    told = json.loads(text)
    scripts = told.get("scripts", {})
    return [*(told.get(key) for key in _PACKAGES), *(scripts.get(name) for name in _INSTALLING)]


def _of_composer(text: str) -> Any:
    told = json.loads(text or "{}")
    return [told.get(key) for key in ("require", "require-dev", "repositories", "config", "autoload-dev")]


def _of_cargo(text: str) -> Any:
    return list(_cargo_tables(tomllib.loads(text)))


def _cargo_tables(told: Any, name: str = "") -> Any:
    if isinstance(told, dict):
        for key, value in told.items():
            if key.endswith("dependencies") or key in ("patch", "replace"):
                yield f"{name}.{key}", value
            elif key in ("target", "workspace") or name.startswith(".target"):
                yield from _cargo_tables(value, f"{name}.{key}")


def _cargo_paths(told: Any) -> list[str]:
    found = []
    for _, table in _cargo_tables(told):
        for value in table.values() if isinstance(table, dict) else ():
            inner = [value, *(value.values() if isinstance(value, dict) else ())]
            found += [v["path"] for v in inner if isinstance(v, dict) and isinstance(v.get("path"), str)]
    return found


def _of_go(text: str) -> Any:
    lines = (line.strip() for line in _without_comments(text).splitlines())
    return [line for line in lines if line and not re.match(r"(?:module|go)\s", line)]


def _without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


_DEPENDENCIES: dict[str, Callable[[str], Any]] = {
    "pyproject.toml": _of_pyproject,
    "setup.cfg": _of_sections,
    "tox.ini": _of_sections,
    "package.json": _of_package,
    "composer.json": _of_composer,
    "cargo.toml": _of_cargo,
    "go.mod": _of_go,
    "go.work": _of_go,
    "makefile": lambda _: "",
    "gnumakefile": lambda _: "",
    "justfile": lambda _: "",
}
