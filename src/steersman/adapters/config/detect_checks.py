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
from steersman.judges.facts.sentence import select_detected_checks

_ROLE_EXAMPLE_LINES = (
    "",
    "# [roles.coder]                     # the same for [roles.reviewer] and [roles.tester]",
    '# agent = "claude"                  # or codex, gemini, opencode; a run needs all three roles',
)
_COMMAND_EXAMPLE_LINES = (
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
    with tempfile.TemporaryDirectory(prefix="steersman-", ignore_cleanup_errors=True) as scratch_path:
        facts = TreeScanner(repo, Path(scratch_path)).scan("project").facts
    return {
        name: (_local_python_name(argv[0]), *argv[1:]) for name, argv in select_detected_checks(facts).items()
    }


def render_config(
    *, config: Config, roles: Mapping[str, Mapping[str, str]], known_failures: Sequence[str] = ()
) -> str:
    """A commented `steersman.toml` that `load_config` reads back as given."""
    base, worktree = config.base, config.worktree
    lines = [
        "# What steersman does in this repository. Every key is explained in the reference.",
        "version = 1",
        '# project = "shop"         # what intents call it; with this, one for another project is refused',
        f"base = {_quote_toml_string(base)}"
        if base
        else '# base = "main"            # the branch runs start from',
        f"deliver = {_quote_toml_string(config.deliver)}         # branch | merge | draft-pr",
        *([f"known_failures = {_render_toml_block(known_failures)}"] if known_failures else []),
        "",
        "[worktree]" if worktree.setup else "# [worktree]",
        '# include = [".env.test"]           # files git does not know, copied into each working tree',
        *(
            ["setup = [                          # run once in each fresh working tree, with the network"]
            if worktree.setup
            else ['# setup = [["uv", "sync"]]          # run once in each fresh working tree']
        ),
        *(f"    {_render_command_value(step.run, step.cwd)}," for step in worktree.setup),
        *(["]"] if worktree.setup else []),
        "",
        "[checks]                            # always run; a tester only adds to them",
        *(f"{_render_toml_key(name)} = {_render_check_value(c)}" for name, c in config.checks.items()),
        *([] if config.checks else ['# unit = ["python", "-m", "pytest", "-q"]']),
        *_render_env_lines(config.env),
        *(line for role, table in roles.items() for line in _render_role_lines(role, table)),
        *([] if roles else _ROLE_EXAMPLE_LINES),
        "",
        *_render_rule_lines(config),
        *_COMMAND_EXAMPLE_LINES,
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


def _render_env_lines(env: Mapping[str, str]) -> list[str]:
    head = '[env]                               # for setup and checks; "env:NAME" passes one through'
    return (
        ["", head, *(f"{name} = {_quote_toml_string(value)}" for name, value in env.items())] if env else []
    )


def _render_rule_lines(config: Config) -> list[str]:
    seconds = config.rules.check_seconds
    return ["[rules]", f"check_seconds = {seconds}", ""] if seconds != Config().rules.check_seconds else []


def _render_check_value(check: Check) -> str:
    extra_fields = [f"summary = {_quote_toml_string(check.summary)}"] if check.summary else []
    extra_fields += ["exit_code_is_enough = true"] if check.exit_code_is_enough else []
    return _render_command_value(check.run, check.cwd, extra_fields)


def _render_command_value(run: Argv, cwd: str, extra_fields: Sequence[str] = ()) -> str:
    """A command as its list alone, or as a table where there is more to say."""
    fields = [*([f"cwd = {_quote_toml_string(cwd)}"] if cwd else []), *extra_fields]
    return (
        f"{{ {', '.join([f'run = {_render_argv_list(run)}', *fields])} }}"
        if fields
        else _render_argv_list(run)
    )


def _render_toml_block(names: Sequence[str]) -> str:
    """A list with one name in each line."""
    return "\n".join(["[", *(f"    {_quote_toml_string(name)}," for name in names), "]"])


def _render_role_lines(role: str, table: Mapping[str, str]) -> list[str]:
    return [
        "",
        f"[roles.{_render_toml_key(role)}]",
        *(f"{_render_toml_key(key)} = {_quote_toml_string(value)}" for key, value in table.items()),
    ]


def _local_python_name(program: str) -> str:
    """The name under which this machine has Python; every other program is called as it is."""
    return "python3" if program == "python" and not shutil.which("python") else program


def _render_argv_list(argv: Argv) -> str:
    return f"[{', '.join(map(_quote_toml_string, argv))}]"


def _render_toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quote_toml_string(name)


def _quote_toml_string(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
