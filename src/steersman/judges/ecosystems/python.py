"""Python: a virtual environment in the tree (`.venv`), made as the project's lock file or its manifests say.

Checks start `.venv/bin/python` itself: nothing of the machine's own packages is used, and nothing is synchronised
while there is no network.
"""

import configparser
import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from steersman.contracts.config import Check, SetupStep
from steersman.judges.ecosystems.ecosystem import (
    INSTALLED_REASON,
    INSTALLER_REASON,
    LINTER_REASON,
    PACKAGES_REASON,
    RECIPE_REASON,
    Ecosystem,
    FileNameRule,
    ManifestParts,
)
from steersman.judges.ecosystems.project import (
    ProjectFiles,
    SetupPlan,
    SetupProposal,
    is_material_path,
    list_distinct_plans,
    proposed_check_name,
)
from steersman.judges.ecosystems.python_facts import PYTHON_READERS
from steersman.judges.ecosystems.python_needs import (
    PythonTestNeeds,
    find_python_extras,
    find_python_test_needs,
    find_requirement_files,
    has_pytest_mention,
    is_installable_project,
    list_poetry_test_groups,
    list_python_dependencies,
    list_test_dependency_groups,
    read_tox_environment,
)
from steersman.judges.facts.reading import get_manifest_table

_PYTHON_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini")
VENV_PYTHON = ".venv/bin/python"
_PYTHON_TEST_NAME = re.compile(r"(?:.*/)?(?:test_[^/]*|[^/]*_test|tests)\.py")
_PYTEST_STYLE = re.compile(r"^(?:async )?def test|^(?:import|from) pytest\b", re.MULTILINE)


def is_python_test(path: str) -> bool:
    """Whether a path is that of a test module, by its name."""
    return bool(_PYTHON_TEST_NAME.fullmatch(path)) and not is_material_path(path)


def is_requirement_file(path: str) -> bool:
    """Whether a path is that of a file of requirements, at the top of a project or one folder below."""
    return bool(find_requirement_files(["/".join(path.split("/")[-2:]), path.rpartition("/")[2]]))


def propose_python(files: ProjectFiles) -> SetupProposal | None:
    """One proposal for a project with tests: plans by its lock file first, then with pip."""
    tests = sorted(path for path in files.paths if is_python_test(path))
    if not tests:
        return None
    runner = _find_python_runner(files, tests)
    if runner == "unittest" and not any(name in files.paths for name in _PYTHON_MANIFESTS):
        check = Check(("python3", *_unittest_argv(files, tests)), files.folder)
        return SetupProposal(
            "python", files.folder, (SetupPlan((), {proposed_check_name("unittest", files.folder): check}),)
        )
    argv = {
        "pytest": (VENV_PYTHON, "-m", "pytest", "-q"),
        "django": (VENV_PYTHON, "manage.py", "test"),
        "unittest": (VENV_PYTHON, *_unittest_argv(files, tests)),
    }[runner]
    paths = read_tox_environment(files).paths if runner == "pytest" else ()
    checks = {proposed_check_name(runner, files.folder): Check((*argv, *paths), files.folder)}
    pip = _list_pip_setups(files, find_python_test_needs(files, pytest=runner == "pytest"))
    plans = [SetupPlan(steps, checks, env) for steps, env in _list_locked_setups(files)]
    plans += [SetupPlan(steps, checks) for steps in pip]
    return SetupProposal("python", files.folder, list_distinct_plans(plans)[:5])


def _find_python_runner(files: ProjectFiles, tests: list[str]) -> str:
    """pytest where anything names it or a test has its form; else Django's or the standard library's."""
    if has_pytest_mention(files):
        return "pytest"
    texts = [text for path in tests if (text := files.text(path))]
    if any(_PYTEST_STYLE.search(text) for text in texts):
        return "pytest"
    if "manage.py" in files.paths and "django" in files.text("manage.py"):
        return "django"
    return "unittest" if any("unittest" in text for text in texts) else "pytest"


def _unittest_argv(files: ProjectFiles, tests: list[str]) -> tuple[str, ...]:
    """Discovery from the top; a folder of tests that is no package has to be named."""
    directories = sorted({path.partition("/")[0] for path in tests if "/" in path})
    unpackaged = [directory for directory in directories if f"{directory}/__init__.py" not in files.paths]
    at_top = any("/" not in path for path in tests)
    start_options = ("-s", unpackaged[0]) if unpackaged and not at_top else ()
    return ("-m", "unittest", "discover", "-q", *start_options)


def _list_locked_setups(files: ProjectFiles) -> Iterator[tuple[tuple[SetupStep, ...], dict[str, str]]]:
    """Setups by the tool whose lock file the project has."""
    data, folder = files.toml("pyproject.toml"), files.folder
    if "uv.lock" in files.paths:
        workspace_options = ["--all-packages"] if get_manifest_table(data, "tool", "uv", "workspace") else []
        everything = ["--all-extras"] if find_python_extras(files) else []
        everything += ["--all-groups"] if get_manifest_table(data, "dependency-groups") else []
        wanted = [word for name in list_test_dependency_groups(data) for word in ("--group", name)]
        for options in (everything, wanted):
            yield (SetupStep(("uv", "sync", "--frozen", *workspace_options, *options), folder),), {}
    if "poetry.lock" in files.paths:
        extras = (
            ["--all-extras"]
            if get_manifest_table(data, "tool", "poetry", "extras") or find_python_extras(files)
            else []
        )
        groups = [word for name in list_poetry_test_groups(data, optional=True) for word in ("--with", name)]
        env = {"POETRY_VIRTUALENVS_IN_PROJECT": "true", "POETRY_NO_INTERACTION": "1"}
        for options in ([*extras, *groups], []):
            yield (SetupStep(("poetry", "install", *options), folder),), env
    if "pdm.lock" in files.paths:
        yield (SetupStep(("pdm", "install", "--frozen-lockfile"), folder),), {"PDM_NON_INTERACTIVE": "1"}
    if "Pipfile.lock" in files.paths:
        yield (SetupStep(("pipenv", "sync", "--dev"), folder),), {"PIPENV_VENV_IN_PROJECT": "1"}


def _list_pip_setups(files: ProjectFiles, guesses: list[PythonTestNeeds]) -> Iterator[tuple[SetupStep, ...]]:
    """With pip: the project with what its tests need; at last its dependencies without the project itself."""
    for needs in guesses:
        extras = f"[{','.join(needs.extras)}]" if needs.extras else ""
        itself = ("-e", f".{extras}") if is_installable_project(files) else ()
        yield _pip_steps(files, needs.files, (*itself, *needs.requirements))
    yield _pip_steps(files, guesses[-1].files, (*list_python_dependencies(files), *guesses[-1].requirements))


def _pip_steps(files: ProjectFiles, names: tuple[str, ...], words: tuple[str, ...]) -> tuple[SetupStep, ...]:
    """A virtual environment, the requirement files, then the rest: files with hashes stand alone."""
    pip = (VENV_PYTHON, "-m", "pip", "install", "-q")
    steps: list[tuple[str, ...]] = [("python3", "-m", "venv", ".venv")]
    if names:
        steps.append((*pip, *(word for name in names for word in ("-r", name))))
    if words:
        steps.append((*pip, *words))
    return tuple(SetupStep(step, files.folder) for step in steps)


# ── what a change of a manifest touches ─────────────────────────────────────────────────────────────────────────────

_TEST_INI_SECTIONS = ("tool:pytest", "pytest", "aliases", "tox", "testenv", "env", "env_run_base")
_TEST_TOML_TABLES = ("pytest", "tox", "nox", "poe", "taskipy", "pdm.scripts", "hatch.envs", "pixi.tasks")


def _read_test_tables(text: str, _: frozenset[str]) -> str:
    tool = tomllib.loads(text).get("tool", {})
    tables = []
    for name in _TEST_TOML_TABLES:
        part: Any = tool
        for key in name.split("."):
            part = part.get(key, {})
        tables.append(json.dumps(part, default=str, ensure_ascii=False) if part else "")
    return "\n".join(tables)


def _read_test_sections(text: str, _: frozenset[str]) -> str:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    wanted = [
        s for s in parser.sections() if s.partition(":")[0] in _TEST_INI_SECTIONS or s in _TEST_INI_SECTIONS
    ]
    return "\n".join(f"{key} = {value or ''}" for section in wanted for key, value in parser.items(section))


def _read_tool_settings(text: str, words: frozenset[str]) -> dict[str, Any]:
    """The settings of the tools that checks run, beside those of test runners."""
    return {name: part for name, part in tomllib.loads(text).get("tool", {}).items() if name in words}


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


PYTHON = Ecosystem(
    name="python",
    manifests=_PYTHON_MANIFESTS,
    proposal_inputs=(
        "pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini", "Pipfile", "conftest.py", "manage.py",
    ),
    is_further_input=is_requirement_file,
    is_test=is_python_test,
    propose=propose_python,
    fact_readers=PYTHON_READERS,
    preferred_runners=(("pytest", "django", "unittest"),),
    lock_files="uv.lock poetry.lock pdm.lock Pipfile.lock pylock*.toml",
    install_inputs="pyproject.toml setup.py setup.cfg tox.ini Pipfile *requirements*.txt requirements*.in constraints*.txt environment.yml .python-version",
    installed_entries=".venv venv env .tox .nox *.egg-info *.dist-info __pycache__",
    manifest_parts={
        "pyproject.toml": ManifestParts(
            dependencies=_read_pyproject_dependencies, used=_read_test_tables, settings=_read_tool_settings),
        "setup.cfg tox.ini": ManifestParts(dependencies=_read_ini_dependencies, used=_read_test_sections),
    },
    decisive_files=(
        FileNameRule("pytest loads it", "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml pytest_plugin*.py"),
        FileNameRule("Python's tools read their settings in it", "pyproject.toml setup.cfg tox.ini tox.toml"),
        FileNameRule(LINTER_REASON, ".coveragerc ruff.toml .ruff.toml mypy.ini .mypy.ini .flake8 .pylintrc pylintrc pyrightconfig.json .isort.cfg", about="linter"),
        FileNameRule("Python runs it at start-up", "sitecustomize.py usercustomize.py *.pth pyvenv.cfg"),
        FileNameRule(RECIPE_REASON, "noxfile.py", about="recipe"),
        FileNameRule(INSTALLER_REASON, "setup.py hatch_build.py", about="dependencies"),
        FileNameRule(PACKAGES_REASON, "requirements*.txt requirements*.in constraints*.txt uv.toml poetry.toml Pipfile environment.yml environment.yaml", about="dependencies"),
        FileNameRule(INSTALLED_REASON, "*.pyc *.pyo *.egg-link entry_points.txt", folders=".venv venv site-packages __pycache__ .eggs *.egg-info *.dist-info", about="dependencies"),
    ),
    test_files="test.py tests.py",
    program_files={"pytest py.test tox nox uv poetry hatch pdm poe": "pytest.ini .pytest.ini tox.ini setup.cfg pyproject.toml noxfile.py"},
    launchers="uv poetry hatch pdm pipenv rye coverage",
    test_runners="py.test",
    toolchain_variables="PYENV_ROOT PYENV_VERSION UV_PYTHON UV_PYTHON_INSTALL_DIR",
    network_variables="PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_TRUSTED_HOST PIP_DEFAULT_TIMEOUT UV_INDEX_URL "
    "UV_DEFAULT_INDEX UV_EXTRA_INDEX_URL UV_INDEX UV_HTTP_TIMEOUT UV_NATIVE_TLS POETRY_HTTP_BASIC_USERNAME "
    "POETRY_HTTP_BASIC_PASSWORD",
    cache_directories={"PIP_CACHE_DIR": ".cache/pip", "UV_CACHE_DIR": ".cache/uv"},
    offline_variables={"UV_OFFLINE": "1"},
)  # fmt: skip
