"""The checks that a project's own files name, and the first `steersman.toml`.

**Invariant:** it reads and proposes; it runs nothing but git and writes nothing into the project.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from steersman.adapters.scan import TreeScanner
from steersman.contracts.commands import Argv
from steersman.judges.planning.facts.checks import checks_of

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
    """Checks by name, each an argv, from the facts of the project: the same scanner that planning goes by."""
    with tempfile.TemporaryDirectory(prefix="steersman-", ignore_cleanup_errors=True) as place:
        facts = TreeScanner(repo, Path(place)).scan("project").facts
    return {name: (_python(argv[0]), *argv[1:]) for name, argv in checks_of(facts).items()}


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
        '# project = "shop"         # what intents call it; with this, one for another project is refused',
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


def _python(program: str) -> str:
    """The name under which this machine has Python; every other program is called as it is."""
    return "python3" if program == "python" and not shutil.which("python") else program


def _list(argv: Argv) -> str:
    return f"[{', '.join(map(_quoted, argv))}]"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
