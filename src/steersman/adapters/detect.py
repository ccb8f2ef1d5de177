"""What a project says about itself: the checks its own files name, and the first `steersman.toml`.

**Invariant:** it reads and proposes; it runs nothing and writes nothing.
"""

import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steersman.contracts.commands import Argv

_READ_AT_MOST = 512 * 1024
_PYTEST = re.compile(r"pytest(?![\w-])", re.IGNORECASE)  # the tool itself, not pytest-something alone
_MAKE_TEST = re.compile(r"^test[ \t]*:(?!=)", re.MULTILINE)
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_NO_NPM_TEST = "no test specified"  # what `npm init` writes
_COMMANDS = (
    "# [commands]                        # what a tester may add; ask with `steersman check command`",
    '# sets = ["tests", "read"]          # known programs; without this line those that test',
    '# targets = ["verify"]              # of make, gradle, mvn; `scripts` are those of npm and the like',
    "# [commands.grammars.phpunit]       # one program more, word for word",
    '# start = ["vendor/bin/phpunit"]    # its first words',
    '# flags = ["--stop-on-failure"]     # options without a value',
    '# values = { "--filter" = "name" }  # options with one, and of which kind',
    '# operands = "path"                 # what may follow',
    '# proves = "tests"                  # or "check": its exit code alone',
)


def detect_checks(repo: Path) -> dict[str, Argv]:
    """Checks by name, each an argv, from the project's own files; a bare Makefile counts where nothing else does."""
    found = dict(_found(repo))
    if not found and any(_MAKE_TEST.search(_text(repo / name)) for name in _MAKEFILES):
        return {"make": ("make", "test")}
    return found


def render_config(
    *,
    checks: Mapping[str, Argv],
    roles: Mapping[str, Mapping[str, str]],
    base: str | None = None,
    deliver: str = "branch",
) -> str:
    """A commented `steersman.toml` that `load_config` reads back as given."""
    lines = [
        "# What steersman does in this repository. Every key is explained in the reference.",
        "version = 1",
        f"base = {_quoted(base)}" if base else '# base = "main"            # the branch runs start from',
        f"deliver = {_quoted(deliver)}         # branch | merge | draft-pr",
        "",
        "# [worktree]",
        '# include = [".env.test"]           # files git does not know, copied into each working tree',
        '# setup = [["uv", "sync"]]          # run once in each fresh working tree',
        "",
        "[checks]                            # always run; a tester only adds to them",
        *(f"{_key(name)} = {_list(argv)}" for name, argv in checks.items()),
        *([] if checks else ['# unit = ["python", "-m", "pytest", "-q"]']),
        *(line for role, table in roles.items() for line in _role_lines(role, table)),
        "",
        *_COMMANDS,
        "",
        "# [budget]                          # for a run and all its children",
        "# usd = 8",
        "# tokens = 3_000_000",
        "# hours = 6",
        "",
        "# [unattended]",
        '# on_limit = "wait"                 # wait | stop',
    ]
    return "\n".join(lines) + "\n"


def _role_lines(role: str, table: Mapping[str, str]) -> list[str]:
    return ["", f"[roles.{_key(role)}]", *(f"{_key(key)} = {_quoted(value)}" for key, value in table.items())]


def _python() -> str:
    """The name under which this machine has Python."""
    return "python" if shutil.which("python") else "python3"


def _found(repo: Path) -> Iterator[tuple[str, Argv]]:
    if _uses_pytest(repo):
        yield "pytest", (_python(), "-m", "pytest", "-q")
    elif _uses_unittest(repo):
        yield "unittest", (_python(), "-m", "unittest", "discover", "-q", *_unittest_folder(repo))
    script = _npm_test(repo)
    if script and _NO_NPM_TEST not in script:
        yield "npm", ("npm", "test")
    if (repo / "go.mod").is_file():
        yield "go", ("go", "test", "./...")
    if (repo / "Cargo.toml").is_file():
        yield "cargo", ("cargo", "test")


def _uses_pytest(repo: Path) -> bool:
    if (
        (repo / "pytest.ini").is_file()
        or (repo / "conftest.py").is_file()
        or (repo / "tests/conftest.py").is_file()
    ):
        return True
    if "[tool:pytest]" in _text(repo / "setup.cfg") or "[pytest]" in _text(repo / "tox.ini"):
        return True
    project = _toml(repo / "pyproject.toml")
    try:
        return "pytest" in project.get("tool", {}) or any(map(_PYTEST.match, _requirements(project)))
    except (AttributeError, TypeError):  # tables where lists should be, or the other way round
        return False


def _requirements(project: dict[str, Any]) -> Iterator[str]:
    """Every requirement of a pyproject, whichever table its tool keeps it in."""
    main, tool = project.get("project", {}), project.get("tool", {})
    groups = [main.get("dependencies", [])]
    for table in (main.get("optional-dependencies", {}), project.get("dependency-groups", {})):
        groups += table.values()
    groups.append(tool.get("uv", {}).get("dev-dependencies", []))
    poetry = tool.get("poetry", {})
    groups += [poetry.get("dependencies", {}), poetry.get("dev-dependencies", {})]
    groups += [group.get("dependencies", {}) for group in poetry.get("group", {}).values()]
    yield from (str(name) for group in groups for name in group)


def _uses_unittest(repo: Path) -> bool:
    return any(_has_unittest(folder) for folder in (repo / "tests", repo))


def _has_unittest(folder: Path) -> bool:
    return any("unittest" in _text(path) for path in sorted(folder.glob("test*.py"))[:50])


def _unittest_folder(repo: Path) -> Argv:
    """Discovery from the top looks into packages only; where tests lie at the top, it starts there."""
    if (repo / "tests/__init__.py").is_file() or not _has_unittest(repo / "tests"):
        return ()
    return ("-s", "tests")


def _npm_test(repo: Path) -> str:
    try:
        package = json.loads(_text(repo / "package.json") or "{}")
        script = package.get("scripts", {}).get("test", "")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return script if isinstance(script, str) else ""


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except (ValueError, RecursionError):
        return {}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_READ_AT_MOST).decode("utf-8", "replace")
    except OSError:
        return ""


def _list(argv: Argv) -> str:
    return f"[{', '.join(map(_quoted, argv))}]"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
