"""The error for a broken `steersman.toml`: file, line, field, and what to write instead.

**Invariant:** advice only: whether something is wrong was decided before.
"""

from steersman.contracts.config import config_schema
from steersman.errors import UserError
from steersman.judges.config.toml_lines import find_nearest_toml_line, find_toml_lines
from steersman.judges.replies.schema_problems import SchemaProblem, suggest_known_word

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


_TABLE_STRUCTS: dict[tuple[str, ...], str] = {
    ("commands", "grammars"): "CommandGrammar",
    ("chat", "agents"): "ChatAgent",
    ("chat", "budget"): "ChatBudget",
}


def build_config_error(name: str, text: str, problems: list[SchemaProblem]) -> UserError:
    """All problems in the order of their lines, each with its advice."""
    lines = find_toml_lines(text)
    messages = [
        (find_nearest_toml_line(lines, problem.path) or 1, f"{problem}{_field_advice(problem)}")
        for problem in problems
    ]
    body = [
        f"{name}, line {line}: {message}"
        for line, message in sorted(messages, key=lambda numbered: numbered[0])
    ]
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
    if len(table) > 1 and table[0] == "checks":
        definition = definitions["Check"]
    elif table[:2] == ("worktree", "setup"):
        definition = definitions["SetupStep"]
    else:
        definition = definitions.get(
            _TABLE_STRUCTS.get(table[:2]) or (table[0].capitalize() if table else "Config"), {}
        )
    return sorted(definition.get("properties", {}))
