"""What the files of Python projects say: pyproject.toml, setup.cfg, setup.py, tox, nox, pytest, unittest, Django."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from steersman.contracts.planning.context import FactKind
from steersman.judges.config.toml_lines import find_nearest_toml_line, find_toml_lines
from steersman.judges.facts.finding import (
    PROJECT_TOP,
    FactFinding,
    FactReader,
    ProjectSource,
    command_finding,
    is_anywhere_below,
    marker_reader,
    parent_directory,
    parse_known_dependencies,
)
from steersman.judges.facts.reading import (
    MAX_LINE_WIDTH,
    MAX_TABLE_MEMBERS,
    find_toml_problem,
    get_manifest_table,
    get_manifest_text,
    list_manifest_texts,
    parse_ini_lines,
    parse_manifest_toml,
)
from steersman.judges.text import lazy_pattern

_KNOWN_DEPENDENCIES = parse_known_dependencies(
    frameworks="django flask fastapi starlette litestar tornado aiohttp sanic pyramid bottle werkzeug click celery scrapy "
    "streamlit torch=pytorch tensorflow scikit-learn pandas numpy sqlalchemy pydantic langchain airflow "
    "apache-airflow=airflow dbt-core=dbt",
    databases="psycopg=postgresql psycopg2=postgresql psycopg2-binary=postgresql asyncpg=postgresql mysqlclient=mysql "
    "pymysql=mysql redis pymongo=mongodb motor=mongodb apsw=sqlite aiosqlite=sqlite cassandra-driver=cassandra "
    "elasticsearch neo4j clickhouse-driver=clickhouse",
)
PYTEST_ARGV = ("python", "-m", "pytest", "-q")
UNITTEST_ARGV = ("python", "-m", "unittest", "discover", "-q")
_REQUIREMENT_PATTERN = lazy_pattern(r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})(.*)", re.DOTALL)
_SETUP_NAME_PATTERN = lazy_pattern(r"""^\s{0,40}name\s{0,10}=\s{0,10}["']([\w.-]{1,100})["']""")
# Tools whose table in pyproject.toml, or whose own file, says that they are used.
_PYTHON_TOOLS: dict[str, tuple[tuple[FactKind, tuple[str, ...]], ...]] = {
    "ruff": (("lint_command", ("ruff", "check", ".")),),
    "ruff.format": (("format_command", ("ruff", "format", "--check", ".")),),
    "black": (("format_command", ("black", "--check", ".")),),
    "isort": (("format_command", ("isort", "--check", ".")),),
    "flake8": (("lint_command", ("flake8",)),),
    "pylint": (("lint_command", ("pylint", "--recursive=y", ".")),),
    "mypy": (("type_command", ("mypy", ".")),),
    "pyright": (("type_command", ("pyright",)),),
    "tox": (("test_command", ("tox",)),),
}
_PYTHON_TOOL_FILES = {
    "ruff": "ruff.toml .ruff.toml", "flake8": ".flake8", "mypy": "mypy.ini .mypy.ini", "pylint": ".pylintrc",
    "pyright": "pyrightconfig.json", "isort": ".isort.cfg",
}  # fmt: skip


def _python_tool_findings(source: ProjectSource, name: str, line: int) -> Iterator[FactFinding]:
    for kind, argv in _PYTHON_TOOLS.get(name, ()):
        yield command_finding(source, kind, argv[0], argv).at(line)


def _pytest_finding(source: ProjectSource, line: int) -> FactFinding:
    return command_finding(source, "test_command", "pytest", PYTEST_ARGV).at(line)


def read_pyproject(source: ProjectSource) -> Iterator[FactFinding]:
    """All that pyproject.toml names."""
    document = parse_manifest_toml(source.text)
    lines = find_toml_lines(source.text) if document else {}

    def find_line(*path: str) -> int:
        return find_nearest_toml_line(lines, path) or 0

    tool = get_manifest_table(document, "tool")
    for names in (("project",), ("tool", "poetry")):
        package_table = get_manifest_table(document, *names)
        if get_manifest_text(package_table, "name"):
            name, version = (get_manifest_text(package_table, key) for key in ("name", "version"))
            yield FactFinding("package", name, version, root=source.folder).at(find_line(*names, "name"))
        for script, target in get_manifest_table(package_table, "scripts").items():
            yield FactFinding("entry_point", script, str(target), root=source.folder).at(
                find_line(*names, "scripts", script)
            )
    if "pytest" in tool:
        yield _pytest_finding(source, find_line("tool", "pytest"))
    for name in _PYTHON_TOOLS:
        outer, _, inner = name.partition(".")
        if outer in tool and (not inner or inner in get_manifest_table(tool, outer)):
            yield from _python_tool_findings(source, name, find_line("tool", *name.split(".")))
    if get_manifest_text(get_manifest_table(document, "build-system"), "build-backend"):
        argv = ("python", "-m", "build")
        yield command_finding(source, "build_command", "build", argv).at(
            find_line("build-system", "build-backend")
        )
    for requirement in islice(_list_requirements(document), MAX_TABLE_MEMBERS):
        yield from (
            finding.at(_find_requirement_line(source, requirement))
            for finding in _requirement_findings(source, requirement)
        )


def _list_requirements(project: dict[str, Any]) -> Iterator[str]:
    """Every requirement of a pyproject, whichever table its tool keeps it in."""
    main, poetry = get_manifest_table(project, "project"), get_manifest_table(project, "tool", "poetry")
    groups: list[Any] = [
        main.get("dependencies"),
        get_manifest_table(project, "tool", "uv").get("dev-dependencies"),
    ]
    groups += get_manifest_table(main, "optional-dependencies").values()
    groups += get_manifest_table(project, "dependency-groups").values()
    groups += [poetry.get("dependencies"), poetry.get("dev-dependencies")]
    groups += [get_manifest_table(g, "dependencies") for g in get_manifest_table(poetry, "group").values()]
    yield from (word for group in groups for word in list_manifest_texts(group))


def _requirement_findings(source: ProjectSource, requirement: str) -> Iterator[FactFinding]:
    parts = _REQUIREMENT_PATTERN.match(requirement.strip())
    if parts is None:
        return
    name = re.sub(r"[._-]+", "-", parts[1]).casefold()
    if name == "pytest":
        yield _pytest_finding(source, 0)
    yield from _KNOWN_DEPENDENCIES.findings(source, name, parts[2].strip(), 0)


def _find_requirement_line(source: ProjectSource, requirement: str) -> int:
    """A requirement is a whole text, or a key."""
    shapes = (f'"{requirement}"', f"'{requirement}'", f"{requirement} =", f"{requirement}=")
    return next((line for shape in shapes if (line := source.line_with(shape))), 0)


def read_requirements_file(source: ProjectSource) -> Iterator[FactFinding]:
    """A list of requirements."""
    for number, line in enumerate(source.lines, 1):
        requirement = line[:MAX_LINE_WIDTH].partition("#")[0].strip()
        if requirement and not requirement.startswith("-"):
            yield from (finding.at(number) for finding in _requirement_findings(source, requirement))


def read_python_settings(source: ProjectSource) -> Iterator[FactFinding]:
    """setup.cfg and tox.ini: sections of tools."""
    for section, key, value, line in parse_ini_lines(source.lines):
        if not key and section in ("tool:pytest", "pytest"):
            yield _pytest_finding(source, line)
        elif not key:
            yield from _python_tool_findings(source, section.partition("-")[0], line)
        elif (section, key) == ("metadata", "name"):
            yield FactFinding("package", value, root=source.folder).at(line)
        if source.name == "tox.ini" and not key and section == "testenv":
            yield from _python_tool_findings(source, "tox", line)


def read_setup_script(source: ProjectSource) -> Iterator[FactFinding]:
    """The name in a setup.py, where it is a plain word."""
    for number, line in enumerate(source.lines, 1):
        match = _SETUP_NAME_PATTERN.match(line[:400])
        if match is not None:
            yield FactFinding("package", match[1], root=source.folder).at(number)
            return


def read_conftest(source: ProjectSource) -> Iterator[FactFinding]:
    """pytest's own file at the top of a project or in its folder `tests`."""
    yield _pytest_finding(source, 0)._replace(root=_tested_directory(source.folder))


def read_unittest_file(source: ProjectSource) -> Iterator[FactFinding]:
    """A test that speaks of unittest. Discovery from the top looks into packages only; other folders are named."""
    line = source.line_with("unittest")
    if line:
        root = _tested_directory(source.folder)
        is_plain_directory = root != source.folder and not source.has("__init__.py")
        argv = (*UNITTEST_ARGV, "-s", "tests") if is_plain_directory else UNITTEST_ARGV
        yield FactFinding("test_command", "unittest", " ".join(argv), argv, root).at(line)


def read_django_manage(source: ProjectSource) -> Iterator[FactFinding]:
    """Django's own command."""
    line = source.line_with("DJANGO_SETTINGS_MODULE")
    if line:
        argv = ("python", "manage.py", "test")
        yield command_finding(source, "test_command", "django", argv).at(line)
        yield FactFinding("entry_point", "manage.py", root=source.folder).at(line)
        yield FactFinding("framework", "django", root=source.folder).at(line)


def _tested_directory(directory: str) -> str:
    """What a folder of tests is about: the folder above."""
    return parent_directory(directory) if directory.rpartition("/")[2] == "tests" else directory


def _may_have_tests(directory: str) -> bool:
    return directory == PROJECT_TOP or directory.rpartition("/")[2] == "tests"


def _list_tool_file_readers() -> Iterator[FactReader]:
    for tool, names in _PYTHON_TOOL_FILES.items():
        for kind, argv in _PYTHON_TOOLS[tool]:
            yield marker_reader(names, kind, tool, argv=argv)


PYTHON_READERS = (
    FactReader("pyproject.toml", read_pyproject, None, find_toml_problem),
    FactReader("requirements*.txt requirements*.in", read_requirements_file),
    FactReader("setup.cfg tox.ini", read_python_settings),
    FactReader("setup.py", read_setup_script),
    marker_reader("noxfile.py", "test_command", "nox", argv=("nox",), mark="session"),
    FactReader("conftest.py", read_conftest, _may_have_tests),
    marker_reader("pytest.ini .pytest.ini pytest.toml .pytest.toml", "test_command", "pytest", argv=PYTEST_ARGV),
    *_list_tool_file_readers(),
    FactReader("test*.py", read_unittest_file, _may_have_tests),
    FactReader("manage.py", read_django_manage),
    marker_reader("alembic.ini", "database", "alembic"),
    marker_reader("0001_*.py", "database", "migrations", value="django", where=is_anywhere_below("migrations"), mark="class Migration(migrations.Migration)"),
)  # fmt: skip
