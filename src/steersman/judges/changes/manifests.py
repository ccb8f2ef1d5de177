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

_VERSION_LINE = re.compile(
    r"\s*[\"']?(?:version|__version__|VERSION)[\"']?\s*[:=]\s*[\"']?[\w.+-]*[\"']?,?\s*(?:#.*)?"
)
_PACKAGE_JSON_DEPENDENCY_WORDS = (
    "dependencies devDependencies peerDependencies optionalDependencies bundledDependencies bundleDependencies overrides "
    "resolutions packageManager workspaces pnpm"
)
_PACKAGE_JSON_DEPENDENCY_KEYS = tuple(_PACKAGE_JSON_DEPENDENCY_WORDS.split())
_INSTALL_SCRIPTS = ("preinstall", "install", "postinstall", "prepare", "prepublish")
_DEFAULT_TEST_TARGETS = frozenset({"test", "tests", "check"})
_PACKAGE_JSON_RUNNERS = ("jest", "mocha", "ava", "vitest", "nyc", "c8", "tap")  # with settings in it
_TEST_INI_SECTIONS = ("tool:pytest", "pytest", "aliases", "tox", "testenv", "env", "env_run_base")
_TEST_TOML_TABLES = ("pytest", "tox", "nox", "poe", "taskipy", "pdm.scripts", "hatch.envs", "pixi.tasks")
_MANIFEST_ERRORS = (ValueError, RecursionError, configparser.Error, AttributeError, TypeError)
_MAKE_RULE = re.compile(r"^(?P<targets>[^\s:=#][^:=#\n]{0,2000}?)\s*::?(?!=)(?P<needs>[^=\n]*)$")
_MAKE_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?[\w.-]+\s*(?:[:?+!]|::)?=")
_RECURSIVE_MAKE = re.compile(r"\$[({]MAKE[)}]|\b(?:make|just)\b")


def has_only_version_change(old: str, new: str) -> bool:
    """Whether two texts differ in lines with a version number alone."""
    before, after = old.splitlines(), new.splitlines()
    pairs = zip(before, after, strict=False)
    return len(before) == len(after) and all(
        old_line == new_line or (_VERSION_LINE.fullmatch(old_line) and _VERSION_LINE.fullmatch(new_line))
        for old_line, new_line in pairs
    )


def is_known_manifest(path: str) -> bool:
    """Whether its parts can be told apart here."""
    return _manifest_name(path) in _DEPENDENCY_READERS


def has_test_setting_change(path: str, old: str, new: str, words: frozenset[str]) -> bool:
    """Whether the part that says which tests run, and how, is not the same; `words` are those of the checks."""
    before, after = (_read_test_settings(path, text, words | _DEFAULT_TEST_TARGETS) for text in (old, new))
    return before != after


def has_dependency_change(path: str, old: str, new: str) -> bool:
    """Whether the part that says which packages are installed is not the same."""
    reader = _DEPENDENCY_READERS[_manifest_name(path)]
    return bool(_read_manifest_part(reader, old) != _read_manifest_part(reader, new))


def find_dependency_paths_outside(path: str, text: str) -> tuple[str, ...]:
    """The places outside the tree from which go or cargo would take code, as the manifest names them."""
    match _manifest_name(path):
        case "go.mod" | "go.work":
            dependency_paths = re.findall(r"=>[ \t]*(\.{1,2}/[^\s]*|/[^\s]*)", _remove_go_comments(text))
            dependency_paths += re.findall(r"^\s*(?:use\s+)?(\.\.[^\s)]*|/[^\s)]+)\s*$", _remove_go_comments(text), re.MULTILINE) if _manifest_name(path) == "go.work" else []  # fmt: skip
        case "cargo.toml":
            dependency_paths = list(_find_cargo_dependency_paths(_read_manifest_part(tomllib.loads, text)))
        case _:
            return ()
    return tuple(place for place in dependency_paths if _is_dependency_outside_tree(path, place))


def _is_dependency_outside_tree(path: str, place: str) -> bool:
    depth = 0 if not place.startswith("/") else -1
    for part in (*path.split("/")[:-1], *place.split("/")):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False


def _manifest_name(path: str) -> str:
    return path.rpartition("/")[2].casefold()


def _read_manifest_part(reader: Callable[[str], Any], text: str) -> Any:
    try:
        return (
            reader(text)
            if text.strip()
            else reader("{}" if reader is _read_package_json_dependencies else "")
        )
    except _MANIFEST_ERRORS:
        return text


def used_manifest_part(path: str, text: str, words: frozenset[str]) -> str:
    """The recipes, scripts and options that are used when these words are asked for; all of it where in doubt."""
    try:
        match _manifest_name(path):
            case "makefile" | "gnumakefile" | "justfile" | ".justfile":
                return _read_make_recipes(text, words)
            case "package.json" | "deno.json":
                return _read_used_scripts(json.loads(text), words)
            case "pyproject.toml":
                return _read_test_tables(tomllib.loads(text))
            case "setup.cfg" | "tox.ini":
                return _read_test_sections(text)
            case _:
                return text
    except _MANIFEST_ERRORS:
        return text


def _read_make_recipes(text: str, target_words: frozenset[str]) -> str:
    """The recipes of the targets that are asked for and of what these need, and lines such as an include."""
    rules: dict[str, list[str]] = {}
    others: list[str] = []
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in ("\t", " ") and current:
            for target in current:
                rules[target].append(line.strip())
        elif (rule := _MAKE_RULE.match(line)) is not None:
            current = rule["targets"].split()
            for target in current:
                rules.setdefault(target, []).append(rule["needs"])
        else:
            current = []
            others += [] if line.startswith("#") or _MAKE_ASSIGNMENT.match(line) else [line]
    return "\n".join((*_collect_used_recipes(rules, target_words), *others))


def _collect_used_recipes(rules: Mapping[str, list[str]], target_words: frozenset[str]) -> list[str]:
    wanted = [target for target in rules if target in target_words] or list(rules)
    used: dict[str, list[str]] = {}
    while wanted:
        target = wanted.pop()
        if target in rules and target not in used:
            needs, *used[target] = rules[target]
            calls = [line for line in used[target] if _RECURSIVE_MAKE.search(line)]
            wanted += " ".join((needs, *calls)).replace(";", " ").split()
            used[target] += [needs] if ";" in needs else []
    return [line for lines in used.values() for line in lines]


def _read_used_scripts(manifest: Any, script_words: frozenset[str]) -> str:
    """The scripts that are asked for, with those before and after them and those that they ask for in turn."""
    scripts = {**manifest.get("scripts", {}), **manifest.get("tasks", {})}
    words, used = set(script_words), dict[str, str]()
    while wanted := [name for name in scripts if name not in used and _is_used_script(name, words)]:
        for name in wanted:
            used[name] = json.dumps(scripts[name], ensure_ascii=False)
            words |= set(re.split(r"[\s\"'&|;]+", used[name]))
    return "\n".join(used.values() or map(json.dumps, scripts.values()))


def _is_used_script(name: str, words: set[str]) -> bool:
    plain = re.sub(r"^(?:pre|post)(?=\w)", "", name)
    return not words.isdisjoint({name, plain, f"@{name}", f"npm:{name}", "t" if plain == "test" else name})


def _read_test_tables(pyproject: Mapping[str, Any]) -> str:
    tables = []
    for name in _TEST_TOML_TABLES:
        part: Any = pyproject.get("tool", {})
        for key in name.split("."):
            part = part.get(key, {})
        tables.append(json.dumps(part, default=str, ensure_ascii=False) if part else "")
    return "\n".join(tables)


def _read_test_sections(text: str) -> str:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    wanted = [
        section
        for section in parser.sections()
        if section.partition(":")[0] in _TEST_INI_SECTIONS or section in _TEST_INI_SECTIONS
    ]
    return "\n".join(f"{key} = {value or ''}" for section in wanted for key, value in parser.items(section))


def _read_test_settings(path: str, text: str, words: frozenset[str]) -> tuple[Any, ...]:
    """Of a manifest of packages alone nothing; else what is used, and the settings of runners beside it."""
    extra_readers: dict[str, Callable[[str], Any]] = {
        "pyproject.toml": lambda content: _read_tool_settings(tomllib.loads(content), words),
        "package.json": lambda content: {
            name: part for name, part in json.loads(content).items() if name in _PACKAGE_JSON_RUNNERS
        },
        "makefile": _read_make_assignments,
        "gnumakefile": _read_make_assignments,
        "justfile": _read_make_assignments,
        "cargo.toml": _read_cargo_targets,
    }
    name = _manifest_name(path)
    if not text.strip() or name in ("go.mod", "go.work"):
        return ()
    used = "" if name == "cargo.toml" else used_manifest_part(path, text, words)
    settings = (used.strip(), _read_manifest_part(extra_readers[name], text) if name in extra_readers else "")
    return settings if any(settings) else ()


def _read_make_assignments(text: str) -> list[str]:
    return [line for line in text.splitlines() if _MAKE_ASSIGNMENT.match(line)]


def _read_tool_settings(pyproject: Mapping[str, Any], words: frozenset[str]) -> dict[str, Any]:
    """The settings of the tools that checks run, beside those of test runners."""
    return {name: part for name, part in pyproject.get("tool", {}).items() if name in words}


def _read_cargo_targets(text: str) -> dict[str, Any]:
    manifest = tomllib.loads(text)
    package, library = manifest.get("package", {}), manifest.get("lib", {})
    targets = {key: manifest.get(key) for key in ("test", "bench", "bin", "example")}
    targets |= {key: library.get(key) for key in ("doctest", "harness", "path")}
    targets |= {"of lib": library.get("test"), "build": package.get("build")}
    return {key: value for key, value in targets.items() if value is not None}


def _read_pyproject_dependencies(text: str) -> Any:
    pyproject = tomllib.loads(text)
    project, tool = pyproject.get("project", {}), pyproject.get("tool", {})
    poetry, uv, hatch = (tool.get(name, {}) for name in ("poetry", "uv", "hatch"))
    return [
        pyproject.get("build-system"),
        pyproject.get("dependency-groups"),
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


def _read_ini_dependencies(text: str) -> Any:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    wanted = ("install_requires", "extras_require", "setup_requires", "tests_require", "deps", "requires")
    return [
        (section, key, value)
        for section in parser.sections()
        for key, value in parser.items(section)
        if key in wanted or section == "options.extras_require"
    ]


def _read_package_json_dependencies(text: str) -> Any:
    manifest = json.loads(text)
    scripts = manifest.get("scripts", {})
    return [
        *(manifest.get(key) for key in _PACKAGE_JSON_DEPENDENCY_KEYS),
        *(scripts.get(name) for name in _INSTALL_SCRIPTS),
    ]


def _read_cargo_dependencies(text: str) -> Any:
    return list(_find_cargo_dependency_tables(tomllib.loads(text)))


def _find_cargo_dependency_tables(table: Any, name: str = "") -> Any:
    if isinstance(table, dict):
        for key, value in table.items():
            if key.endswith("dependencies") or key in ("patch", "replace"):
                yield f"{name}.{key}", value
            elif key in ("target", "workspace") or name.startswith(".target"):
                yield from _find_cargo_dependency_tables(value, f"{name}.{key}")


def _find_cargo_dependency_paths(manifest: Any) -> list[str]:
    paths = []
    for _, table in _find_cargo_dependency_tables(manifest):
        for value in table.values() if isinstance(table, dict) else ():
            inner = [value, *(value.values() if isinstance(value, dict) else ())]
            paths += [
                spec["path"] for spec in inner if isinstance(spec, dict) and isinstance(spec.get("path"), str)
            ]
    return paths


def _read_go_dependencies(text: str) -> Any:
    lines = (line.strip() for line in _remove_go_comments(text).splitlines())
    return [line for line in lines if line and not re.match(r"(?:module|go)\s", line)]


def _remove_go_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


_DEPENDENCY_READERS: dict[str, Callable[[str], Any]] = {
    "pyproject.toml": _read_pyproject_dependencies,
    "setup.cfg": _read_ini_dependencies,
    "tox.ini": _read_ini_dependencies,
    "package.json": _read_package_json_dependencies,
    "cargo.toml": _read_cargo_dependencies,
    "go.mod": _read_go_dependencies,
    "go.work": _read_go_dependencies,
    "makefile": lambda _: "",
    "gnumakefile": lambda _: "",
    "justfile": lambda _: "",
}
