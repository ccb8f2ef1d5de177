"""The error for a broken `steersman.toml`: file, line, field, and what to write instead.

**Invariant:** advice only: whether something is wrong was decided before.
"""

from collections.abc import Iterator
from typing import Any

from steersman.adapters.checks.tree_paths import load_command_grammars
from steersman.contracts.config import config_schema
from steersman.errors import UserError
from steersman.judges.config.toml_lines import find_nearest_toml_line, find_toml_lines
from steersman.judges.evidence.summary_patterns import find_summary_pattern_problem
from steersman.judges.replies.strict_json import SchemaProblem, suggest_known_word
from steersman.judges.text import clip_text

# What to write instead, by the beginning of the path; `*` is any name.
_FIELD_EXAMPLES: dict[tuple[str, ...], str] = {
    ("version",): "version = 1",
    ("base",): 'base = "main"',
    ("deliver",): 'deliver = "branch"',
    ("known_failures",): 'known_failures = ["tests/test_old.py::test_flaky"]',
    ("no_tests",): 'no_tests = ["lint"]',
    ("worktree", "include"): 'include = [".env.test"]',
    ("worktree", "setup"): 'setup = [["uv", "sync", "--frozen"]]',
    ("worktree", "writable"): 'writable = ["build"]',
    ("worktree",): '[worktree] and below it include = [".env.test"]',
    ("checks", "*", "cwd"): 'cwd = "packages/a"',
    ("checks", "*", "summary"): "summary = 'Passed: +(?P<passed>\\d+)'",
    ("checks", "*", "exit_code_is_enough"): "exit_code_is_enough = true",
    ("env",): '[env] and below it CI = "true" or TOKEN = "env:TOKEN"',
    ("checks",): '[checks] and below it unit = ["python", "-m", "pytest", "-q"]',
    ("roles", "*", "agent"): 'agent = "claude"',
    ("roles", "*", "model"): 'model = "sonnet"',
    ("roles", "*", "script"): 'script = "demo.yaml"',
    ("roles", "*", "retries"): "retries = 2",
    ("roles", "*", "seconds"): "seconds = 600",
    ("roles",): '[roles.coder] and below it agent = "claude"',
    ("budget", "usd"): "usd = 8 or usd = 0.50",
    ("budget", "hours"): "hours = 6 or hours = 0.5",
    ("budget", "tokens"): "tokens = 3_000_000",
    ("budget", "turns"): "turns = 40",
    ("budget",): "[budget] and below it usd = 8",
    ("unattended",): '[unattended] and below it on_limit = "wait"',
    ("notify",): '[notify] and below it webhook = "env:STEERSMAN_WEBHOOK"',
    ("rules", "repeated_failure"): 'repeated_failure = "same_command"',
    ("rules", "same_finding"): "same_finding = 3",
    ("rules", "changed_tests"): 'changed_tests = "gate"',
    ("chat", "agents"): '[chat.agents.bob] and below it agent = "claude"',
    ("chat", "budget"): "[chat.budget] and below it usd = 1",
    ("chat",): '[chat] and below it host = "bob"',
    ("redact",): '[redact] and below it env = ["DATABASE_URL"]',
    ("sandbox", "mode"): 'mode = "auto"',
    ("sandbox", "reads"): 'reads = ["~/.cargo/registry"]',
    ("sandbox", "network"): "network = true",
    ("sandbox", "memory_gb"): "memory_gb = 16",
    ("sandbox", "disk_gb"): "disk_gb = 20",
    ("sandbox",): '[sandbox] and below it mode = "auto"',
    ("rules",): "[rules] and below it max_iterations = 3",
    ("commands", "sets"): 'sets = ["tests", "read", "uv"]',
    ("commands", "scripts"): 'scripts = ["lint"]',
    ("commands", "targets"): 'targets = ["verify"]',
    (
        "commands",
        "grammars",
    ): '[commands.grammars.phpunit] and below it start = ["vendor/bin/phpunit"], flags = ["--stop"],'
    ' values = { "--filter" = "name" }, operands = "path"',
    ("commands",): '[commands] and below it sets = ["tests", "read"]',
}


def build_config_error(name: str, text: str, problems: list[SchemaProblem]) -> UserError:
    """All problems in the order of their lines, each with its advice."""
    lines = find_toml_lines(text)
    messages = [(find_nearest_toml_line(lines, p.path) or 1, f"{p}{_field_advice(p)}") for p in problems]
    body = [f"{name}, line {line}: {m}" for line, m in sorted(messages, key=lambda numbered: numbered[0])]
    return UserError("\n".join(["the configuration cannot be used; correct it and try again:", *body]))


def _field_advice(problem: SchemaProblem) -> str:
    if problem.what == "is not a known field":
        known = _list_known_fields(tuple(map(str, problem.path[:-1])))
        return f"; {suggest_known_word(str(problem.path[-1]), known)}"
    names = tuple(str(p) for p in problem.path)
    any_name = (*names[:1], "*", *names[2:])
    examples = [e for k, e in _FIELD_EXAMPLES.items() if k in (names[: len(k)], any_name[: len(k)])]
    return f"; for example: {examples[0]}" if examples and "did you mean" not in problem.what else ""


def _list_known_fields(table: tuple[str, ...]) -> list[str]:
    definitions = config_schema()["$defs"]
    node = definitions["Config"]
    for name in table:
        inner = node.get("properties", {}).get(name) or node.get("additionalProperties") or node.get("items")
        node = _resolve_table_schema(inner, definitions) if isinstance(inner, dict) else {}
    return sorted(node.get("properties", {}))


def _resolve_table_schema(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """What a reference, or the form of a table beside that of a list, leads to."""
    node = node.get("then", node)
    resolved: dict[str, Any] = definitions[node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return resolved


# ── command problems ────────────────────────────────────────────────────────────────────────────────────────────────────

# What no schema says about the commands, folders and variables of `steersman.toml`.
#
# **Invariant:** looks at the text alone; whether a folder is in the tree, and no link out of it, is asked when a
# command starts.


_RESERVED_VARIABLES = ("PATH", "HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE")  # steersman sets them


def find_command_problems(value: dict[str, Any]) -> Iterator[SchemaProblem]:
    """Empty programs, folders outside the tree, patterns that count nothing, choices that contradict each other."""
    worktree = value.get("worktree", {})
    for name, check in value.get("checks", {}).items():
        yield from _find_run_problems(("checks", name), check)
        if isinstance(check, dict):
            yield from _find_check_problems(name, check, value.get("no_tests", ()))
    for index, step in enumerate(worktree.get("setup", ())):
        yield from _find_run_problems(("worktree", "setup", index), step)
    for index, path in enumerate(worktree.get("writable", ())):
        if problem := repository_path_problem(path) or ("" if path else "is empty: name a folder or a file"):
            yield SchemaProblem(("worktree", "writable", index), problem)
    yield from _find_grammar_problems(value.get("commands", {}).get("grammars", {}))


def _find_grammar_problems(grammars: dict[str, Any]) -> Iterator[SchemaProblem]:
    """A grammar refers to one of the project's own, or to one that ships."""
    shipped = (
        {name for grammar_set in load_command_grammars().values() for name in grammar_set.grammars}
        if grammars
        else set()
    )
    for name, grammar in grammars.items():
        references: list[tuple[tuple[str | int, ...], Any]] = []
        if "like" in grammar:
            references.append((("like",), grammar["like"]))
        references += [(("runs", index), inner) for index, inner in enumerate(grammar.get("runs", ()))]
        for path, reference in references:
            if reference not in grammars and reference not in shipped:
                known = "name one of [commands.grammars] or of the reference of commands"
                yield SchemaProblem(
                    ("commands", "grammars", name, *path), f"{reference!r} is no grammar: {known}"
                )


def _find_run_problems(path: tuple[str | int, ...], command: Any) -> Iterator[SchemaProblem]:
    argv = command["run"] if isinstance(command, dict) else command
    if not argv[0].strip():
        place = (*path, "run", 0) if isinstance(command, dict) else (*path, 0)
        yield SchemaProblem(place, "is empty: a program is missing")
    if isinstance(command, dict) and (problem := repository_path_problem(command.get("cwd", ""))):
        yield SchemaProblem((*path, "cwd"), problem)


def _find_check_problems(name: str, check: dict[str, Any], no_tests: list[str]) -> Iterator[SchemaProblem]:
    pattern, by_exit_code = check.get("summary", ""), check.get("exit_code_is_enough", False)
    if pattern and (problem := find_summary_pattern_problem(pattern)):
        yield SchemaProblem(("checks", name, "summary"), problem)
    if pattern and by_exit_code:
        yield SchemaProblem(
            ("checks", name, "exit_code_is_enough"),
            "contradicts `summary`, which counts tests: keep one of them",
        )
    if name in no_tests and (pattern or by_exit_code):
        field = "summary" if pattern else "exit_code_is_enough"
        yield SchemaProblem(
            ("checks", name, field), "contradicts `no_tests`, which says that it runs none: keep one of them"
        )


def repository_path_problem(path: str) -> str:
    """Why a path is not inside the tree by its words; "" where it is."""
    parts = path.split("/")
    if path.startswith(("/", "~")):
        return "is not relative: write it from the top of the repository"
    if ".." in parts:
        return "leaves the repository: write it without `..`"
    if ".git" in (part.lower() for part in parts):
        return "is inside git's own folder"
    return ""


def find_env_problems(env: dict[str, str]) -> Iterator[SchemaProblem]:
    """Variables that steersman sets itself, and a pass-through without a name."""
    for name, value in env.items():
        if name in _RESERVED_VARIABLES or name.startswith("STEERSMAN_"):
            yield SchemaProblem(("env", name), "is set by steersman itself: leave it out")
        variable = value.removeprefix("env:")
        if variable != value and not variable.isidentifier():
            yield SchemaProblem(("env", name), f"{clip_text(value, 40)!r} names no variable: write env:NAME")
