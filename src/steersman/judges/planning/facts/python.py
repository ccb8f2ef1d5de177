"""Python projects: pyproject.toml, setup.cfg, setup.py, tox, nox, pytest, unittest, Django, requirements."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from steersman.contracts.planning.context import FactKind
from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import TOP, Finding, Reader, Source, command, folder_of
from steersman.judges.planning.facts.reading import (
    MOST_MEMBERS,
    WIDEST,
    ini_of,
    table,
    text_at,
    toml_of,
    words,
)
from steersman.judges.planning.facts.stacks import depends
from steersman.judges.toml_lines import line_of, toml_lines

PYTEST = ("python", "-m", "pytest", "-q")
UNITTEST = ("python", "-m", "unittest", "discover", "-q")
_REQUIREMENT = later(r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})(.*)", re.DOTALL)
_SETUP_NAME = later(r"""^\s{0,40}name\s{0,10}=\s{0,10}["']([\w.-]{1,100})["']""")
# Tools whose table in pyproject.toml, or whose own file, says that they are used.
_TOOLS: dict[str, tuple[tuple[FactKind, tuple[str, ...]], ...]] = {
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
_FILES = {"ruff.toml": "ruff", ".ruff.toml": "ruff", ".flake8": "flake8", "mypy.ini": "mypy", ".mypy.ini": "mypy",
          ".pylintrc": "pylint", "pyrightconfig.json": "pyright", ".isort.cfg": "isort"}  # fmt: skip


def _tool(source: Source, name: str, line: int) -> Iterator[Finding]:
    for kind, argv in _TOOLS.get(name, ()):
        yield command(source, kind, argv[0], argv).at(line)


def _tests(source: Source, line: int) -> Finding:
    return command(source, "test_command", "pytest", PYTEST).at(line)


def pyproject(source: Source) -> Iterator[Finding]:
    """All that pyproject.toml names."""
    whole = toml_of(source.text)
    lines = toml_lines(source.text) if whole else {}

    def line(*path: str) -> int:
        return line_of(lines, path) or 0

    tool = table(whole, "tool")
    for names in (("project",), ("tool", "poetry")):
        own = table(whole, *names)
        if text_at(own, "name"):
            yield Finding("package", text_at(own, "name"), text_at(own, "version"), root=source.folder).at(
                line(*names, "name")
            )
        for script, target in table(own, "scripts").items():
            yield Finding("entry_point", script, str(target), root=source.folder).at(
                line(*names, "scripts", script)
            )
    if "pytest" in tool:
        yield _tests(source, line("tool", "pytest"))
    for name in _TOOLS:
        outer, _, inner = name.partition(".")
        if outer in tool and (not inner or inner in table(tool, outer)):
            yield from _tool(source, name, line("tool", *name.split(".")))
    if text_at(table(whole, "build-system"), "build-backend"):
        argv = ("python", "-m", "build")
        yield command(source, "build_command", "build", argv).at(line("build-system", "build-backend"))
    for requirement in islice(_requirements(whole), MOST_MEMBERS):
        yield from (finding.at(_line_of(source, requirement)) for finding in _required(source, requirement))


def _requirements(project: dict[str, Any]) -> Iterator[str]:
    """Every requirement of a pyproject, whichever table its tool keeps it in."""
    main, poetry = table(project, "project"), table(project, "tool", "poetry")
    groups: list[Any] = [main.get("dependencies"), table(project, "tool", "uv").get("dev-dependencies")]
    groups += table(main, "optional-dependencies").values()
    groups += table(project, "dependency-groups").values()
    groups += [poetry.get("dependencies"), poetry.get("dev-dependencies")]
    groups += [table(group, "dependencies") for group in table(poetry, "group").values()]
    yield from (word for group in groups for word in words(group))


def _required(source: Source, requirement: str) -> Iterator[Finding]:
    parts = _REQUIREMENT.match(requirement.strip())
    if parts is None:
        return
    name = re.sub(r"[._-]+", "-", parts[1]).casefold()
    if name == "pytest":
        yield _tests(source, 0)
    yield from depends(source, "python", name, parts[2].strip(), 0)


def _line_of(source: Source, requirement: str) -> int:
    """A requirement is a whole text, or a key."""
    shapes = (f'"{requirement}"', f"'{requirement}'", f"{requirement} =", f"{requirement}=")
    return next((line for shape in shapes if (line := source.line_with(shape))), 0)


def requirements(source: Source) -> Iterator[Finding]:
    """A list of requirements."""
    for number, line in enumerate(source.lines, 1):
        wanted = line[:WIDEST].partition("#")[0].strip()
        if wanted and not wanted.startswith("-"):
            yield from (finding.at(number) for finding in _required(source, wanted))


def settings(source: Source) -> Iterator[Finding]:
    """setup.cfg and tox.ini: sections of tools."""
    for line in ini_of(source.lines):
        section = line.path[0]
        if line.path in {("tool:pytest",), ("pytest",)}:
            yield _tests(source, line.number)
        elif len(line.path) == 1:
            yield from _tool(source, section.partition("-")[0], line.number)
        elif line.path == ("metadata", "name"):
            yield Finding("package", line.value, root=source.folder).at(line.number)
        if source.name == "tox.ini" and line.path == ("testenv",):
            yield from _tool(source, "tox", line.number)


def noxfile(source: Source) -> Iterator[Finding]:
    """Sessions of nox: there is at least one."""
    line = source.line_with("@nox.session") or source.line_with("@session")
    if line:
        yield command(source, "test_command", "nox", ("nox",)).at(line)


def setup_script(source: Source) -> Iterator[Finding]:
    """The name in a setup.py, where it is a plain word."""
    for number, line in enumerate(source.lines, 1):
        found = _SETUP_NAME.match(line[:400])
        if found is not None:
            yield Finding("package", found[1], root=source.folder).at(number)
            return


def conftest(source: Source) -> Iterator[Finding]:
    """pytest's own file at the top of a project or in its folder `tests`."""
    yield _tests(source, 0)._replace(root=_project_of(source.folder))


def own_file(source: Source) -> Iterator[Finding]:
    """A file that is there for one tool alone."""
    if source.name.casefold().strip(".") in {"pytest.ini", "pytest.toml"}:
        yield _tests(source, 0)
    yield from _tool(source, _FILES.get(source.name, ""), 0)


def unittests(source: Source) -> Iterator[Finding]:
    """A test that speaks of unittest. Discovery from the top looks into packages only; other folders are named."""
    line = source.line_with("unittest")
    if line:
        root = _project_of(source.folder)
        plain = root != source.folder and not source.has("__init__.py")
        argv = (*UNITTEST, "-s", "tests") if plain else UNITTEST
        yield Finding("test_command", "unittest", " ".join(argv), argv, root).at(line)


def django(source: Source) -> Iterator[Finding]:
    """Django's own command."""
    line = source.line_with("DJANGO_SETTINGS_MODULE")
    if line:
        argv = ("python", "manage.py", "test")
        yield command(source, "test_command", "django", argv).at(line)
        yield Finding("entry_point", "manage.py", root=source.folder).at(line)
        yield Finding("framework", "django", root=source.folder).at(line)


def _project_of(folder: str) -> str:
    """What a folder of tests is about: the folder above."""
    return folder_of(folder) if folder.rpartition("/")[2] == "tests" else folder


def _may_have_tests(folder: str) -> bool:
    return folder == TOP or folder.rpartition("/")[2] == "tests"


READERS = (
    Reader("pyproject.toml", pyproject),
    Reader("requirements*.txt requirements*.in", requirements),
    Reader("setup.cfg tox.ini", settings),
    Reader("setup.py", setup_script),
    Reader("noxfile.py", noxfile),
    Reader("conftest.py", conftest, _may_have_tests),
    Reader("pytest.ini .pytest.ini pytest.toml .pytest.toml " + " ".join(_FILES), own_file),
    Reader("test*.py", unittests, _may_have_tests),
    Reader("manage.py", django),
)
