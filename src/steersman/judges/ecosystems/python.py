"""Python: a virtual environment in the tree (`.venv`), made as the project's lock file or its manifests say.

Checks start `.venv/bin/python` itself: nothing of the machine's own packages is used, and nothing is synchronised
while there is no network.
"""

import re
from collections.abc import Iterator

from steersman.contracts.config import Check, SetupStep
from steersman.judges.ecosystems.project import (
    Plan,
    ProjectFiles,
    Proposal,
    check_name,
    distinct_plans,
    is_material,
    table_at,
)
from steersman.judges.ecosystems.python_needs import (
    Needs,
    dependencies_of,
    extras_of,
    find_needs,
    group_names,
    is_installable,
    names_pytest,
    poetry_groups,
    read_tox,
    requirement_files,
)

MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini")
READ = (
    "pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini", "Pipfile", "conftest.py", "manage.py",
)  # fmt: skip
PYTHON = ".venv/bin/python"
_TEST_NAME = re.compile(r"(?:.*/)?(?:test_[^/]*|[^/]*_test|tests)\.py")
_PYTEST_STYLE = re.compile(r"^(?:async )?def test|^(?:import|from) pytest\b", re.MULTILINE)


def is_python_test(path: str) -> bool:
    """Whether a path is that of a test module, by its name."""
    return bool(_TEST_NAME.fullmatch(path)) and not is_material(path)


def is_requirement_file(path: str) -> bool:
    """Whether a path is that of a file of requirements, at the top of a project or one folder below."""
    return bool(requirement_files(["/".join(path.split("/")[-2:]), path.rpartition("/")[2]]))


def propose_python(files: ProjectFiles) -> Proposal | None:
    """One proposal for a project with tests: plans by its lock file first, then with pip."""
    tests = sorted(path for path in files.paths if is_python_test(path))
    if not tests:
        return None
    runner = _runner(files, tests)
    if runner == "unittest" and not any(name in files.paths for name in MANIFESTS):
        check = Check(("python3", *_unittest(files, tests)), files.folder)
        return Proposal("python", files.folder, (Plan((), {check_name("unittest", files.folder): check}),))
    argv = {
        "pytest": (PYTHON, "-m", "pytest", "-q"),
        "django": (PYTHON, "manage.py", "test"),
        "unittest": (PYTHON, *_unittest(files, tests)),
    }[runner]
    paths = read_tox(files).paths if runner == "pytest" else ()
    checks = {check_name(runner, files.folder): Check((*argv, *paths), files.folder)}
    pip = _pip_setups(files, find_needs(files, pytest=runner == "pytest"))
    plans = [Plan(steps, checks, env) for steps, env in _locked_setups(files)]
    plans += [Plan(steps, checks) for steps in pip]
    return Proposal("python", files.folder, distinct_plans(plans)[:5])


def _runner(files: ProjectFiles, tests: list[str]) -> str:
    """pytest where anything names it or a test has its form; else Django's or the standard library's."""
    if names_pytest(files):
        return "pytest"
    texts = [text for path in tests if (text := files.text(path))]
    if any(_PYTEST_STYLE.search(text) for text in texts):
        return "pytest"
    if "manage.py" in files.paths and "django" in files.text("manage.py"):
        return "django"
    return "unittest" if any("unittest" in text for text in texts) else "pytest"


def _unittest(files: ProjectFiles, tests: list[str]) -> tuple[str, ...]:
    """Discovery from the top; a folder of tests that is no package has to be named."""
    folders = sorted({path.partition("/")[0] for path in tests if "/" in path})
    plain = [folder for folder in folders if f"{folder}/__init__.py" not in files.paths]
    at_top = any("/" not in path for path in tests)
    where = ("-s", plain[0]) if plain and not at_top else ()
    return ("-m", "unittest", "discover", "-q", *where)


def _locked_setups(files: ProjectFiles) -> Iterator[tuple[tuple[SetupStep, ...], dict[str, str]]]:
    """Setups by the tool whose lock file the project has."""
    data, folder = files.toml("pyproject.toml"), files.folder
    if "uv.lock" in files.paths:
        whole = ["--all-packages"] if table_at(data, "tool", "uv", "workspace") else []
        everything = ["--all-extras"] if extras_of(files) else []
        everything += ["--all-groups"] if table_at(data, "dependency-groups") else []
        wanted = [word for name in group_names(data) for word in ("--group", name)]
        for more in (everything, wanted):
            yield (SetupStep(("uv", "sync", "--frozen", *whole, *more), folder),), {}
    if "poetry.lock" in files.paths:
        extras = ["--all-extras"] if table_at(data, "tool", "poetry", "extras") or extras_of(files) else []
        groups = [word for name in poetry_groups(data, optional=True) for word in ("--with", name)]
        env = {"POETRY_VIRTUALENVS_IN_PROJECT": "true", "POETRY_NO_INTERACTION": "1"}
        for more in ([*extras, *groups], []):
            yield (SetupStep(("poetry", "install", *more), folder),), env
    if "pdm.lock" in files.paths:
        yield (SetupStep(("pdm", "install", "--frozen-lockfile"), folder),), {"PDM_NON_INTERACTIVE": "1"}
    if "Pipfile.lock" in files.paths:
        yield (SetupStep(("pipenv", "sync", "--dev"), folder),), {"PIPENV_VENV_IN_PROJECT": "1"}


def _pip_setups(files: ProjectFiles, guesses: list[Needs]) -> Iterator[tuple[SetupStep, ...]]:
    """With pip: the project with what its tests need; at last its dependencies without the project itself."""
    for needs in guesses:
        extras = f"[{','.join(needs.extras)}]" if needs.extras else ""
        itself = ("-e", f".{extras}") if is_installable(files) else ()
        yield _pip_steps(files, needs.files, (*itself, *needs.requirements))
    yield _pip_steps(files, guesses[-1].files, (*dependencies_of(files), *guesses[-1].requirements))


def _pip_steps(
    files: ProjectFiles, requirement_names: tuple[str, ...], words: tuple[str, ...]
) -> tuple[SetupStep, ...]:
    """A virtual environment, the requirement files, then the rest: files with hashes stand alone."""
    pip = (PYTHON, "-m", "pip", "install", "-q")
    steps: list[tuple[str, ...]] = [("python3", "-m", "venv", ".venv")]
    if requirement_names:
        steps.append((*pip, *(word for name in requirement_names for word in ("-r", name))))
    if words:
        steps.append((*pip, *words))
    return tuple(SetupStep(step, files.folder) for step in steps)
