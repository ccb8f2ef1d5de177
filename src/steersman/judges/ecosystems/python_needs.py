"""What the tests of a Python project need: extras, groups, requirement files, the environment that tox describes."""

import configparser
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec

from steersman.judges.ecosystems.project import ProjectFiles
from steersman.judges.facts.reading import get_manifest_table, list_manifest_texts

# Nearest to tests first: where one line has a match, the lines after it are not needed.
_TEST_GROUP_WORDS = (("test", "tests", "testing"), ("dev", "develop", "development", "ci"))
_REQUIREMENT_FILE = re.compile(
    r"(?:requirements/|tests?/)?[\w.-]*(?:requirements|reqs)[\w.-]*\.txt|requirements/[\w.-]+\.txt"
)
_PYTEST_VALUE_OPTIONS = (
    "--cov", "--cov-config", "--cov-report", "-c", "-k", "-m", "-n", "-p", "-W", "--durations", "--ignore",
)  # fmt: skip
_OWN_REQUIREMENT_FILES = ("requirements.txt", "requirements/base.txt")
_REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PYTEST_WORD = re.compile(r"(?<![\w-])pytest(?![\w-])")
_CPYTHON_FACTOR = re.compile(r"py3\d*t?")
_TOX_CONDITION = re.compile(r"((?:[\w.,!-]|\{[^{}]*\})+):\s+(.*)")
_PYTEST_CONFIG_FILES = ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini")
# What an option of pytest in the project's configuration needs, where nothing else names it.
_PYTEST_PLUGINS = {
    "--cov": "pytest-cov",
    "-n ": "pytest-xdist",
    "--numprocesses": "pytest-xdist",
    "--timeout": "pytest-timeout",
    "asyncio_mode": "pytest-asyncio",
    "--benchmark": "pytest-benchmark",
    "--randomly": "pytest-randomly",
}


class PythonTestNeeds(msgspec.Struct, frozen=True):
    """What has to be installed beside the project."""

    extras: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


def find_python_test_needs(files: ProjectFiles, *, pytest: bool) -> list[PythonTestNeeds]:
    """What tests may need, the best guess first: tox's own list, all that is named, pytest alone."""
    tox = read_tox_environment(files)
    group_requirements = [
        requirement
        for group in tox.groups
        for requirement in expand_dependency_group(files.toml("pyproject.toml"), group)
    ]
    tox_needs = PythonTestNeeds(tox.extras, tox.files, (*tox.requirements, *group_requirements))
    by_tox = [tox_needs] if tox.runs_pytest and tox_needs != PythonTestNeeds() else []
    minimum = ("pytest", *_find_missing_plugins(files, "pytest")) if pytest else ()
    own_files = tuple(name for name in find_requirement_files(files.paths) if name in _OWN_REQUIREMENT_FILES)
    return [
        *by_tox,
        _find_all_test_needs(files, tox, pytest=pytest),
        PythonTestNeeds(files=own_files, requirements=minimum),
    ]


def _find_all_test_needs(files: ProjectFiles, tox: "ToxEnvironment", *, pytest: bool) -> PythonTestNeeds:
    """All that the manifests name for tests; pytest too, where it is the runner and nothing installs it."""
    data = files.toml("pyproject.toml")
    extras = dict.fromkeys(
        (*choose_test_group_names(find_python_extras(files)), *tox.extras, *_read_hatch_environments(data)[1])
    )
    groups = dict.fromkeys((*list_test_dependency_groups(data), *tox.groups))
    requirements = [requirement for group in groups for requirement in expand_dependency_group(data, group)]
    requirements += [*tox.requirements, *_read_hatch_environments(data)[0]]
    requirements += [
        requirement
        for group in list_poetry_test_groups(data)
        for requirement in list_poetry_requirements(data, group)
    ]
    requirement_names = tuple(dict.fromkeys((*_choose_requirement_files(files), *tox.files)))
    installed = " ".join(
        (
            *requirements,
            *(files.text(name) for name in requirement_names),
            *_list_extra_requirements(files, extras),
        )
    )
    installed += " ".join(list_python_dependencies(files))
    missing = _find_missing_plugins(files, installed) if pytest else ()
    return PythonTestNeeds(tuple(extras), requirement_names, tuple(dict.fromkeys((*requirements, *missing))))


def has_pytest_mention(files: ProjectFiles) -> bool:
    """Whether a manifest names pytest, or a file is there that only pytest reads."""
    if "pytest.ini" in files.paths or any(path.rpartition("/")[2] == "conftest.py" for path in files.paths):
        return True
    texts = [
        files.text(name)
        for name in (*_PYTEST_CONFIG_FILES, "setup.py", "Pipfile", *find_requirement_files(files.paths))
    ]
    return any(_PYTEST_WORD.search(text) for text in texts)


def is_installable_project(files: ProjectFiles) -> bool:
    """Whether `pip install .` has something to install."""
    data = files.toml("pyproject.toml")
    if "setup.py" in files.paths or "[metadata]" in files.text("setup.cfg"):
        return True
    return "build-system" in data or "project" in data or bool(get_manifest_table(data, "tool", "poetry"))


def list_python_dependencies(files: ProjectFiles) -> tuple[str, ...]:
    """The project's own dependencies, as pyproject.toml lists them."""
    data = files.toml("pyproject.toml")
    listed = list_manifest_texts(get_manifest_table(data, "project").get("dependencies"))
    poetry = [name for name in get_manifest_table(data, "tool", "poetry", "dependencies") if name != "python"]
    return (*listed, *poetry)


# ── extras and groups ───────────────────────────────────────────────────────────────────────────────────────────────


def find_python_extras(files: ProjectFiles) -> dict[str, list[str]]:
    """The extras of a project with their requirements, from pyproject.toml, setup.cfg and setup.py."""
    table = get_manifest_table(files.toml("pyproject.toml"), "project", "optional-dependencies")
    extras = {name: list_manifest_texts(value) for name, value in table.items()}
    section = _read_ini_section(files.text("setup.cfg"), "options.extras_require")
    extras |= {name: value.split("\n") for name, value in section.items()}
    match = re.search(r"extras_require\s*=\s*\{(.*?)\}", files.text("setup.py"), re.DOTALL)
    names = re.findall(r"['\"]([\w.-]+)['\"]\s*:", match[1]) if match else []
    return {**{name: [] for name in names}, **extras}


def _list_extra_requirements(files: ProjectFiles, extras: Iterable[str]) -> list[str]:
    """What the chosen extras install; of setup.py the whole text may be meant."""
    known = find_python_extras(files)
    return [requirement for name in extras for requirement in known.get(name) or [files.text("setup.py")]]


def choose_test_group_names(requirements_by_name: dict[str, list[str]]) -> list[str]:
    """The names that are for tests: by their words, else by pytest in their requirements."""
    for words in _TEST_GROUP_WORDS:
        if names := [name for name in requirements_by_name if name.lower() in words]:
            return names
    return [name for name, r in requirements_by_name.items() if _PYTEST_WORD.search(" ".join(r))]


def list_test_dependency_groups(data: dict[str, Any]) -> list[str]:
    """The [dependency-groups] that are for tests."""
    groups = get_manifest_table(data, "dependency-groups")
    return choose_test_group_names({name: list_manifest_texts(value) for name, value in groups.items()})


def expand_dependency_group(data: dict[str, Any], name: str, visited: tuple[str, ...] = ()) -> list[str]:
    """The requirements of a dependency group, those of included groups too."""
    items = get_manifest_table(data, "dependency-groups").get(name)
    requirements = list_manifest_texts(items)
    for item in items if isinstance(items, list) else ():
        inner = item.get("include-group") if isinstance(item, dict) else None
        if isinstance(inner, str) and inner not in visited:
            requirements += expand_dependency_group(data, inner, (*visited, name))
    return requirements


def list_poetry_test_groups(data: dict[str, Any], *, optional: bool = False) -> list[str]:
    """The groups of poetry that are for tests; only the optional ones on demand."""
    groups = get_manifest_table(data, "tool", "poetry", "group")
    wanted = {
        group_name: list(get_manifest_table(group, "dependencies"))
        for group_name, group in groups.items()
        if not optional or _is_optional_poetry_group(group)
    }
    names = [name for words in _TEST_GROUP_WORDS for name in wanted if name.lower() in words]
    legacy_group = get_manifest_table(data, "tool", "poetry", "dev-dependencies")
    return [*names, *(["dev-dependencies"] if legacy_group and not optional else [])]


def _is_optional_poetry_group(group: Any) -> bool:
    return bool(get_manifest_table({"group": group}, "group").get("optional"))


def list_poetry_requirements(data: dict[str, Any], group: str) -> list[str]:
    """The names that a group of poetry installs, without versions: pip does not know poetry's operators."""
    poetry = get_manifest_table(data, "tool", "poetry")
    is_legacy = group == "dev-dependencies"
    names = (
        get_manifest_table(poetry, group)
        if is_legacy
        else get_manifest_table(poetry, "group", group, "dependencies")
    )
    return [name for name in names if name != "python"]


def _read_hatch_environments(data: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The requirements and extras of hatch's environments that run tests."""
    requirements: list[str] = []
    extras: list[str] = []
    for name in ("default", "test", "tests", "hatch-test"):
        env = get_manifest_table(data, "tool", "hatch", "envs", name)
        requirements += list_manifest_texts(env.get("dependencies")) + list_manifest_texts(
            env.get("extra-dependencies")
        )
        extras += list_manifest_texts(env.get("features"))
    return requirements, extras


# ── requirement files ───────────────────────────────────────────────────────────────────────────────────────────────


def find_requirement_files(paths: Iterable[str]) -> list[str]:
    """The files of requirements among these paths, sorted."""
    return sorted(path for path in paths if _REQUIREMENT_FILE.fullmatch(path))


def _choose_requirement_files(files: ProjectFiles) -> list[str]:
    """The project's own requirements and, of the others, those nearest to tests."""
    requirement_names = find_requirement_files(files.paths)
    own_names = [name for name in requirement_names if name in _OWN_REQUIREMENT_FILES]
    for words in _TEST_GROUP_WORDS:
        if test_names := [
            name for name in requirement_names if set(re.split(r"[^a-z]+", name.lower())) & set(words)
        ]:
            return [*own_names, *test_names]
    return own_names


# ── tox ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class ToxEnvironment(msgspec.Struct, frozen=True):
    """What tox's plain test environment installs, and how it starts pytest."""

    files: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    runs_pytest: bool = False
    paths: tuple[str, ...] = ()  # that it gives to pytest


def read_tox_environment(files: ProjectFiles) -> ToxEnvironment:
    """The [testenv] of tox.ini; lines for some environments alone and substitutions are left out."""
    env = _read_ini_section(files.text("tox.ini"), "testenv")
    tests = _list_tox_test_environments(files)
    lines = [line.strip().replace("{toxinidir}/", "") for line in env.get("deps", "").split("\n")]
    plain = [
        line for line in (_drop_tox_condition(line, tests) for line in lines) if line and "{" not in line
    ]
    listed = [line[2:].strip() for line in plain if line.startswith("-r")]
    requirements = [line for line in plain if _REQUIREMENT_NAME.match(line)]
    command = _find_pytest_command(env.get("commands", ""))
    return ToxEnvironment(
        tuple(name for name in listed if name in files.paths),
        tuple(requirements),
        tuple(_split_requirement_words(env.get("extras", ""))),
        tuple(_split_requirement_words(env.get("dependency_groups", ""))),
        bool(command),
        _find_paths_in_command(files, command),
    )


def _list_tox_test_environments(files: ProjectFiles) -> list[set[str]]:
    """The factors of each environment of tox's list that is for a version of CPython."""
    tox = _read_ini_section(files.text("tox.ini"), "tox")
    names = _expand_tox_braces(tox.get("envlist", tox.get("env_list", "")))
    factors = [set(name.split("-")) for name in names]
    return [
        environment
        for environment in factors
        if any(_CPYTHON_FACTOR.fullmatch(factor) for factor in environment)
    ]


def _drop_tox_condition(line: str, tests: list[set[str]]) -> str:
    """A line of deps without its condition; empty where the condition does not hold in every test environment.

    Which Python will run the tests is not known here, so a line that only some versions have is left out.
    """
    match = _TOX_CONDITION.fullmatch(line)
    if match is None:
        return line
    alternatives = [name.split("-") for name in _expand_tox_braces(match[1])]
    applies = all(
        any(_matches_tox_factors(factors, environment) for factors in alternatives) for environment in tests
    )
    return match[2] if tests and applies else ""


def _matches_tox_factors(factors: list[str], environment: set[str]) -> bool:
    return all((factor.removeprefix("!") in environment) != factor.startswith("!") for factor in factors)


def _expand_tox_braces(text: str) -> list[str]:
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


def _split_requirement_words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if _REQUIREMENT_NAME.fullmatch(word)]


def _find_pytest_command(commands: str) -> list[str]:
    """The words of the first of tox's commands that starts pytest."""
    for line in commands.split("\n"):
        words = [part.rstrip("/") for part in re.sub(r"\{posargs:?([^}]*)\}", r"\1", line).split()]
        if any(word.rpartition("/")[2] in ("pytest", "py.test") for word in words[:4]):
            return words
    return []


def _find_paths_in_command(files: ProjectFiles, words: list[str]) -> tuple[str, ...]:
    """The folders and files among the words of a command, each once; the value of an option is none."""
    operands = [
        word
        for before, word in pairwise(words)
        if before not in _PYTEST_VALUE_OPTIONS and _is_project_path(files, word)
    ]
    return tuple(dict.fromkeys(operands))


def _is_project_path(files: ProjectFiles, path: str) -> bool:
    return path in files.paths or any(known_path.startswith(f"{path}/") for known_path in files.paths if path)


def _read_ini_section(text: str, section: str) -> dict[str, str]:
    parser = configparser.ConfigParser(
        interpolation=None, strict=False, delimiters=("=",), comment_prefixes=("#", ";")
    )
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    return dict(parser[section]) if section in parser else {}


# ── pytest and its plugins ──────────────────────────────────────────────────────────────────────────────────────────


def _find_missing_plugins(files: ProjectFiles, installed: str) -> tuple[str, ...]:
    """pytest, and plugins that its configuration uses, where nothing that is installed names them."""
    configured = "\n".join(_read_pytest_settings(files))
    wanted = [plugin for option, plugin in _PYTEST_PLUGINS.items() if option in configured]
    installed_names = {name.lower() for name in _REQUIREMENT_NAME.findall(installed)}
    return tuple(name for name in dict.fromkeys(("pytest", *wanted)) if name not in installed_names)


def _read_pytest_settings(files: ProjectFiles) -> list[str]:
    """The lines that configure pytest, wherever they are."""
    table = get_manifest_table(files.toml("pyproject.toml"), "tool", "pytest", "ini_options")
    sections = [
        _read_ini_section(files.text("pytest.ini"), "pytest"),
        _read_ini_section(files.text("tox.ini"), "pytest"),
        _read_ini_section(files.text("setup.cfg"), "tool:pytest"),
    ]
    lines = [f"{key} = {value}" for section in (table, *sections) for key, value in section.items()]
    return [line for line in lines if line.startswith(("addopts", "asyncio_mode", "timeout"))]
