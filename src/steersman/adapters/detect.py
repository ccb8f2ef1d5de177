"""The checks that a project's own files name, and the first `steersman.toml`.

**Invariant:** it reads and proposes; it runs nothing but git and writes nothing into the project.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from steersman.adapters.scan import TreeScanner
from steersman.contracts.commands import Argv
from steersman.contracts.config import Check, Config
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
    config: Config,
    roles: Mapping[str, Mapping[str, str]],
    known_failures: Sequence[str] = (),
) -> str:
    """A commented `steersman.toml` that `load_config` reads back as given."""
    base, worktree = config.base, config.worktree
    lines = [
        "# What steersman does in this repository. Every key is explained in the reference.",
        "version = 1",
        '# project = "shop"         # what intents call it; with this, one for another project is refused',
        f"base = {_quoted(base)}" if base else '# base = "main"            # the branch runs start from',
        f"deliver = {_quoted(config.deliver)}         # branch | merge | draft-pr",
        *([f"known_failures = {_block(known_failures)}"] if known_failures else []),
        "",
        "[worktree]" if worktree.setup else "# [worktree]",
        '# include = [".env.test"]           # files git does not know, copied into each working tree',
        *(
            ["setup = [                          # run once in each fresh working tree, with the network"]
            if worktree.setup
            else ['# setup = [["uv", "sync"]]          # run once in each fresh working tree']
        ),
        *(f"    {_command(step.run, step.cwd)}," for step in worktree.setup),
        *(["]"] if worktree.setup else []),
        "",
        "[checks]                            # always run; a tester only adds to them",
        *(f"{_key(name)} = {_check(check)}" for name, check in config.checks.items()),
        *([] if config.checks else ['# unit = ["python", "-m", "pytest", "-q"]']),
        *_env_lines(config.env),
        *(line for role, table in roles.items() for line in _role_lines(role, table)),
        "",
        *_rule_lines(config),
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


def _env_lines(env: Mapping[str, str]) -> list[str]:
    head = '[env]                               # for setup and checks; "env:NAME" passes one through'
    return ["", head, *(f"{name} = {_quoted(value)}" for name, value in env.items())] if env else []


def _rule_lines(config: Config) -> list[str]:
    seconds = config.rules.check_seconds
    return ["[rules]", f"check_seconds = {seconds}", ""] if seconds != Config().rules.check_seconds else []


def _check(check: Check) -> str:
    more = [f"summary = {_quoted(check.summary)}"] if check.summary else []
    more += ["exit_code_is_enough = true"] if check.exit_code_is_enough else []
    return _command(check.run, check.cwd, more)


def _command(run: Argv, cwd: str, more: Sequence[str] = ()) -> str:
    """A command as its list alone, or as a table where there is more to say."""
    fields = [*([f"cwd = {_quoted(cwd)}"] if cwd else []), *more]
    return f"{{ {', '.join([f'run = {_list(run)}', *fields])} }}" if fields else _list(run)


def _block(names: Sequence[str]) -> str:
    """A list with one name in each line."""
    return "\n".join(["[", *(f"    {_quoted(name)}," for name in names), "]"])


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
