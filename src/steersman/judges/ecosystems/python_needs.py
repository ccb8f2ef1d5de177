"""What the tests of a Python project need: extras, groups, requirement files, the environment that tox describes."""

import configparser
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec

from steersman.judges.ecosystems.project import ProjectFiles, strings_in, table_at

# Nearest to tests first: where one line has a match, the lines after it are not needed.
_TEST_WORDS = (("test", "tests", "testing"), ("dev", "develop", "development", "ci"))
_REQUIREMENTS = re.compile(
    r"(?:requirements/|tests?/)?[\w.-]*(?:requirements|reqs)[\w.-]*\.txt|requirements/[\w.-]+\.txt"
)
_VALUED = (
    "--cov",
    "--cov-config",
    "--cov-report",
    "-c",
    "-k",
    "-m",
    "-n",
    "-p",
    "-W",
    "--durations",
    "--ignore",
)
_OWN_FILES = ("requirements.txt", "requirements/base.txt")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PYTEST = re.compile(r"(?<![\w-])pytest(?![\w-])")
_CPYTHON = re.compile(r"py3\d*t?")
_CONDITION = re.compile(r"((?:[\w.,!-]|\{[^{}]*\})+):\s+(.*)")
_CONFIG = ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini")
# What an option of pytest in the project's configuration needs, where nothing else names it.
_PLUGINS = {
    "--cov": "pytest-cov",
    "-n ": "pytest-xdist",
    "--numprocesses": "pytest-xdist",
    "--timeout": "pytest-timeout",
    "asyncio_mode": "pytest-asyncio",
    "--benchmark": "pytest-benchmark",
    "--randomly": "pytest-randomly",
}


class Needs(msgspec.Struct, frozen=True):
    """What has to be installed beside the project."""

    extras: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


def find_needs(files: ProjectFiles, *, pytest: bool) -> list[Needs]:
    """What tests may need, the best guess first: tox's own list, all that is named, pytest alone."""
    tox = read_tox(files)
    named = [r for group in tox.groups for r in expand_group(files.toml("pyproject.toml"), group)]
    told = Needs(tox.extras, tox.files, (*tox.requirements, *named))
    by_tox = [told] if tox.runs_pytest and told != Needs() else []
    least = ("pytest", *_missing_plugins(files, "pytest")) if pytest else ()
    own = tuple(name for name in requirement_files(files.paths) if name in _OWN_FILES)
    return [*by_tox, _all_needs(files, tox, pytest=pytest), Needs(files=own, requirements=least)]


def _all_needs(files: ProjectFiles, tox: "ToxEnvironment", *, pytest: bool) -> Needs:
    """All that the manifests name for tests; pytest too, where it is the runner and nothing installs it."""
    data = files.toml("pyproject.toml")
    extras = dict.fromkeys((*nearest(extras_of(files)), *tox.extras, *_hatch(data)[1]))
    groups = dict.fromkeys((*group_names(data), *tox.groups))
    named = [r for group in groups for r in expand_group(data, group)]
    named += [*tox.requirements, *_hatch(data)[0]]
    named += [r for group in poetry_groups(data) for r in poetry_requirements(data, group)]
    listed = tuple(dict.fromkeys((*_chosen_files(files), *tox.files)))
    installed = " ".join(
        (*named, *(files.text(name) for name in listed), *_extra_requirements(files, extras))
    )
    installed += " ".join(dependencies_of(files))
    missing = _missing_plugins(files, installed) if pytest else ()
    return Needs(tuple(extras), listed, tuple(dict.fromkeys((*named, *missing))))


def names_pytest(files: ProjectFiles) -> bool:
    """Whether a manifest names pytest, or a file is there that only pytest reads."""
    if "pytest.ini" in files.paths or any(p.rpartition("/")[2] == "conftest.py" for p in files.paths):
        return True
    texts = [files.text(name) for name in (*_CONFIG, "setup.py", "Pipfile", *requirement_files(files.paths))]
    return any(_PYTEST.search(text) for text in texts)


def is_installable(files: ProjectFiles) -> bool:
    """Whether `pip install .` has something to install."""
    data = files.toml("pyproject.toml")
    if "setup.py" in files.paths or "[metadata]" in files.text("setup.cfg"):
        return True
    return "build-system" in data or "project" in data or bool(table_at(data, "tool", "poetry"))


def dependencies_of(files: ProjectFiles) -> tuple[str, ...]:
    """The project's own dependencies, as pyproject.toml lists them."""
    data = files.toml("pyproject.toml")
    named = strings_in(table_at(data, "project").get("dependencies"))
    poetry = [n for n in table_at(data, "tool", "poetry", "dependencies") if n != "python"]
    return (*named, *poetry)


# ── extras and groups ───────────────────────────────────────────────────────────────────────────────────────────────


def extras_of(files: ProjectFiles) -> dict[str, list[str]]:
    """The extras of a project with their requirements, from pyproject.toml, setup.cfg and setup.py."""
    table = table_at(files.toml("pyproject.toml"), "project", "optional-dependencies")
    found = {name: strings_in(value) for name, value in table.items()}
    section = _ini(files.text("setup.cfg"), "options.extras_require")
    found |= {name: value.split("\n") for name, value in section.items()}
    written = re.search(r"extras_require\s*=\s*\{(.*?)\}", files.text("setup.py"), re.DOTALL)
    names = re.findall(r"['\"]([\w.-]+)['\"]\s*:", written[1]) if written else []
    return {**{name: [] for name in names}, **found}


def _extra_requirements(files: ProjectFiles, extras: Iterable[str]) -> list[str]:
    """What the chosen extras install; of setup.py the whole text may be meant."""
    known = extras_of(files)
    return [r for name in extras for r in known.get(name) or [files.text("setup.py")]]


def nearest(named: dict[str, list[str]]) -> list[str]:
    """The names that are for tests: by their words, else by pytest in their requirements."""
    for words in _TEST_WORDS:
        if found := [name for name in named if name.lower() in words]:
            return found
    return [name for name, requirements in named.items() if _PYTEST.search(" ".join(requirements))]


def group_names(data: dict[str, Any]) -> list[str]:
    """The [dependency-groups] that are for tests."""
    groups = table_at(data, "dependency-groups")
    return nearest({name: strings_in(value) for name, value in groups.items()})


def expand_group(data: dict[str, Any], name: str, seen: tuple[str, ...] = ()) -> list[str]:
    """The requirements of a dependency group, those of included groups too."""
    items = table_at(data, "dependency-groups").get(name)
    found = strings_in(items)
    for item in items if isinstance(items, list) else ():
        inner = item.get("include-group") if isinstance(item, dict) else None
        if isinstance(inner, str) and inner not in seen:
            found += expand_group(data, inner, (*seen, name))
    return found


def poetry_groups(data: dict[str, Any], *, optional: bool = False) -> list[str]:
    """The groups of poetry that are for tests; only the optional ones on demand."""
    groups = table_at(data, "tool", "poetry", "group")
    wanted = {
        n: list(table_at(g, "dependencies")) for n, g in groups.items() if not optional or _is_optional(g)
    }
    found = [name for words in _TEST_WORDS for name in wanted if name.lower() in words]
    old = table_at(data, "tool", "poetry", "dev-dependencies")
    return [*found, *(["dev-dependencies"] if old and not optional else [])]


def _is_optional(group: Any) -> bool:
    return bool(table_at({"group": group}, "group").get("optional"))


def poetry_requirements(data: dict[str, Any], group: str) -> list[str]:
    """The names that a group of poetry installs, without versions: pip does not know poetry's operators."""
    poetry = table_at(data, "tool", "poetry")
    old = group == "dev-dependencies"
    names = table_at(poetry, group) if old else table_at(poetry, "group", group, "dependencies")
    return [name for name in names if name != "python"]


def _hatch(data: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The requirements and extras of hatch's environments that run tests."""
    requirements: list[str] = []
    extras: list[str] = []
    for name in ("default", "test", "tests", "hatch-test"):
        env = table_at(data, "tool", "hatch", "envs", name)
        requirements += strings_in(env.get("dependencies")) + strings_in(env.get("extra-dependencies"))
        extras += strings_in(env.get("features"))
    return requirements, extras


# ── requirement files ───────────────────────────────────────────────────────────────────────────────────────────────


def requirement_files(paths: Iterable[str]) -> list[str]:
    """The files of requirements among these paths, sorted."""
    return sorted(path for path in paths if _REQUIREMENTS.fullmatch(path))


def _chosen_files(files: ProjectFiles) -> list[str]:
    """The project's own requirements and, of the others, those nearest to tests."""
    there = requirement_files(files.paths)
    own = [name for name in there if name in _OWN_FILES]
    for words in _TEST_WORDS:
        if found := [name for name in there if set(re.split(r"[^a-z]+", name.lower())) & set(words)]:
            return [*own, *found]
    return own


# ── tox ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class ToxEnvironment(msgspec.Struct, frozen=True):
    """What tox's plain test environment installs, and how it starts pytest."""

    files: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    runs_pytest: bool = False
    paths: tuple[str, ...] = ()  # that it gives to pytest


def read_tox(files: ProjectFiles) -> ToxEnvironment:
    """The [testenv] of tox.ini; lines for some environments alone and substitutions are left out."""
    env = _ini(files.text("tox.ini"), "testenv")
    tests = _test_environments(files)
    lines = [line.strip().replace("{toxinidir}/", "") for line in env.get("deps", "").split("\n")]
    plain = [line for line in (_drop_condition(line, tests) for line in lines) if line and "{" not in line]
    listed = [line[2:].strip() for line in plain if line.startswith("-r")]
    requirements = [line for line in plain if _NAME.match(line)]
    command = _pytest_command(env.get("commands", ""))
    return ToxEnvironment(
        tuple(name for name in listed if name in files.paths),
        tuple(requirements),
        tuple(_words(env.get("extras", ""))),
        tuple(_words(env.get("dependency_groups", ""))),
        bool(command),
        _paths_in(files, command),
    )


def _test_environments(files: ProjectFiles) -> list[set[str]]:
    """The factors of each environment of tox's list that is for a version of CPython."""
    tox = _ini(files.text("tox.ini"), "tox")
    names = _expand_braces(tox.get("envlist", tox.get("env_list", "")))
    factors = [set(name.split("-")) for name in names]
    return [each for each in factors if any(_CPYTHON.fullmatch(factor) for factor in each)]


def _drop_condition(line: str, tests: list[set[str]]) -> str:
    """A line of deps without its condition; empty where the condition does not hold in every test environment.

    Which Python will run the tests is not known here, so a line that only some versions have is left out.
    """
    found = _CONDITION.fullmatch(line)
    if found is None:
        return line
    alternatives = [name.split("-") for name in _expand_braces(found[1])]
    held = all(any(_holds(factors, each) for factors in alternatives) for each in tests)
    return found[2] if tests and held else ""


def _holds(factors: list[str], environment: set[str]) -> bool:
    return all((factor.removeprefix("!") in environment) != factor.startswith("!") for factor in factors)


def _expand_braces(text: str) -> list[str]:
    """The names in a list of tox, with one name for each alternative in braces."""
    names: list[str] = []
    waiting = re.findall(r"(?:[^\s,{}]|\{[^{}]*\})+", text)
    while waiting:
        head, brace, rest = waiting.pop(0).partition("{")
        inner, _, tail = rest.partition("}")
        if brace:
            waiting += [f"{head}{each.strip()}{tail}" for each in inner.split(",")]
        else:
            names.append(head)
    return names


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if _NAME.fullmatch(word)]


def _pytest_command(commands: str) -> list[str]:
    """The words of the first of tox's commands that starts pytest."""
    for line in commands.split("\n"):
        words = [w.rstrip("/") for w in re.sub(r"\{posargs:?([^}]*)\}", r"\1", line).split()]
        if any(word.rpartition("/")[2] in ("pytest", "py.test") for word in words[:4]):
            return words
    return []


def _paths_in(files: ProjectFiles, words: list[str]) -> tuple[str, ...]:
    """The folders and files among the words of a command, each once; the value of an option is none."""
    operands = [word for before, word in pairwise(words) if before not in _VALUED and _is_there(files, word)]
    return tuple(dict.fromkeys(operands))


def _is_there(files: ProjectFiles, path: str) -> bool:
    return path in files.paths or any(p.startswith(f"{path}/") for p in files.paths if path)


def _ini(text: str, section: str) -> dict[str, str]:
    parser = configparser.ConfigParser(
        interpolation=None, strict=False, delimiters=("=",), comment_prefixes=("#", ";")
    )
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    return dict(parser[section]) if section in parser else {}


# ── pytest and its plugins ──────────────────────────────────────────────────────────────────────────────────────────


def _missing_plugins(files: ProjectFiles, installed: str) -> tuple[str, ...]:
    """pytest, and plugins that its configuration uses, where nothing that is installed names them."""
    configured = "\n".join(_pytest_settings(files))
    wanted = [plugin for option, plugin in _PLUGINS.items() if option in configured]
    there = {name.lower() for name in _NAME.findall(installed)}
    return tuple(name for name in dict.fromkeys(("pytest", *wanted)) if name not in there)


def _pytest_settings(files: ProjectFiles) -> list[str]:
    """The lines that configure pytest, wherever they are."""
    table = table_at(files.toml("pyproject.toml"), "tool", "pytest", "ini_options")
    sections = [
        _ini(files.text("pytest.ini"), "pytest"),
        _ini(files.text("tox.ini"), "pytest"),
        _ini(files.text("setup.cfg"), "tool:pytest"),
    ]
    lines = [f"{key} = {value}" for section in (table, *sections) for key, value in section.items()]
    return [line for line in lines if line.startswith(("addopts", "asyncio_mode", "timeout"))]
