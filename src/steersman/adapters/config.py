"""Finds and reads `steersman.toml`.

**Invariant:** a file is whole or refused, with every problem at once: file, line, field and what to write instead;
money and time never pass through a binary float.
"""

import datetime
import difflib
import re
import tomllib
from decimal import ROUND_CEILING, Decimal, localcontext
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steersman.contracts.config import MAX_HOURS, MAX_USD, Config, Role, config_schema
from steersman.errors import UserError
from steersman.judges.problems import Problem, problems_of
from steersman.judges.toml_lines import line_of, toml_lines
from steersman.kernel.canonical import digest_of

FILE_NAME = "steersman.toml"
MAX_BYTES = 256 * 1024

_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
# field in the file → field of the contract, how many of its units one is, and the most there may be
_AMOUNTS = {"usd": ("micro_usd", 1_000_000, MAX_USD), "hours": ("seconds", 3_600, MAX_HOURS)}
_ROLE_FIELDS = Role.__struct_fields__
# What to write instead, by the beginning of the path; `*` is any name.
_EXAMPLES: dict[tuple[str, ...], str] = {
    ("version",): "version = 1",
    ("base",): 'base = "main"',
    ("deliver",): 'deliver = "branch"',
    ("known_failures",): 'known_failures = ["tests/test_old.py::test_flaky"]',
    ("worktree", "include"): 'include = [".env.test"]',
    ("worktree", "setup"): 'setup = [["uv", "sync", "--frozen"]]',
    ("worktree",): '[worktree] and below it include = [".env.test"]',
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
    ("rules",): "[rules] and below it max_iterations = 3",
}


class LoadedConfig(NamedTuple):
    """A configuration, where it came from (None: there is no file) and its digest."""

    config: Config
    path: Path | None
    digest: str


def load_config(start: Path) -> LoadedConfig:
    """The configuration for a directory: from the nearest file up to the top of the repository, or the defaults."""
    path = find_config(start)
    config = Config() if path is None else read_config(path)
    return LoadedConfig(config, path, digest_of(config))


def find_config(start: Path) -> Path | None:
    """The nearest `steersman.toml` at or above `start`, never above the top of its repository."""
    start = start.resolve()
    above = [start, *start.parents]
    top = next((n for n, folder in enumerate(above) if (folder / ".git").exists()), 0)
    return next((f / FILE_NAME for f in above[: top + 1] if (f / FILE_NAME).is_file()), None)


def read_config(path: Path) -> Config:
    """The configuration in a file; a UserError lists all its problems."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise UserError(f"{path} is longer than {MAX_BYTES} bytes; shorten it")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line}: not UTF-8; save the file as UTF-8") from None
    return parse_config(text, str(path))


def parse_config(text: str, name: str) -> Config:
    """The configuration in a text; `name` is the file's name for messages."""
    value = _plain(_toml(text, name))
    found = [*_amount_problems(value), *problems_of(_without_amounts(value), config_schema())]
    found += _joined(value) if not found else _near_misses(value)
    if found:
        raise _refused(name, text, found)
    return msgspec.convert(_contract_form(value), Config)


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except RecursionError:
        raise UserError(f"{name}: nested too deeply; flatten it") from None
    except ValueError as error:  # also an integer with thousands of digits
        where = _AT_LINE.search(str(error))
        line = (where and where[1]) or str(max(1, text.rstrip("\n").count("\n") + 1))
        said = _AT_LINE.sub("", str(error))
        raise UserError(f"{name}, line {line}: {said}; the file has to be TOML 1.0") from None


def _plain(value: Any, path: tuple[str, ...] = ()) -> Any:
    """Only what JSON has: dates become text, and so do fractions wherever they are not an amount."""
    match value:
        case dict():
            return {key: _plain(item, (*path, key)) for key, item in value.items()}
        case list():
            return [_plain(item, (*path, "*")) for item in value]
        case Decimal() if len(path) == 2 and path[0] == "budget" and path[1] in _AMOUNTS:
            return value
        case Decimal() | datetime.date() | datetime.time():
            return str(value)
        case int() if not isinstance(value, bool) and abs(value) >= 2**53:
            return str(value)
        case _:
            return value


def _budget(value: dict[str, Any]) -> dict[str, Any]:
    budget = value.get("budget")
    return budget if isinstance(budget, dict) else {}


def _amount_problems(value: dict[str, Any]) -> list[Problem]:
    given = {name: _budget(value)[name] for name in _AMOUNTS if name in _budget(value)}
    return [
        Problem(("budget", name), f"{amount} is not a number above 0 and up to {_AMOUNTS[name][2]}")
        for name, amount in given.items()
        if not _is_amount(amount, _AMOUNTS[name][2])
    ]


def _is_amount(amount: Any, most: int) -> bool:
    if isinstance(amount, bool) or not isinstance(amount, int | Decimal):
        return False
    exact = Decimal(amount)
    return exact.is_finite() and 0 < exact <= most


def _without_amounts(value: dict[str, Any]) -> dict[str, Any]:
    """They were judged exactly, by us; for the schema any number will do."""
    if not _budget(value):
        return value
    return {**value, "budget": {k: 1 if k in _AMOUNTS else v for k, v in _budget(value).items()}}


def _contract_form(value: dict[str, Any]) -> dict[str, Any]:
    budget = {k: v for k, v in _budget(value).items() if k not in _AMOUNTS}
    for name, (field, units, _) in _AMOUNTS.items():
        if name in _budget(value):
            budget[field] = _rounded_up(_budget(value)[name], units)
    roles = {name: _role(table) for name, table in value.get("roles", {}).items()}
    return {**value, "budget": budget, "roles": roles}


def _rounded_up(amount: int | Decimal, units: int) -> int:
    with localcontext() as context:
        context.prec, context.rounding = 40, ROUND_CEILING
        return int((Decimal(amount) * units).to_integral_value())


def _role(table: dict[str, Any]) -> dict[str, Any]:
    known = {k: v for k, v in table.items() if k in _ROLE_FIELDS}
    free = {k: v for k, v in table.items() if k not in _ROLE_FIELDS}
    return {**known, "options": {**known.get("options", {}), **free}}


def _joined(value: dict[str, Any]) -> list[Problem]:
    """What no schema says."""
    found = _near_misses(value)
    for name, role in value.get("roles", {}).items():
        if (role["agent"] == "scripted") != ("script" in role):
            wrong = (
                "is missing: the scripted agent needs one"
                if "script" not in role
                else 'needs agent = "scripted"'
            )
            found.append(Problem(("roles", name, "script"), wrong))
    argvs = [(("checks", name), argv) for name, argv in value.get("checks", {}).items()]
    argvs += [
        (("worktree", "setup", n), argv) for n, argv in enumerate(value.get("worktree", {}).get("setup", ()))
    ]
    found += [
        Problem((*path, 0), "is empty: a program is missing") for path, argv in argvs if not argv[0].strip()
    ]
    for n, path in enumerate(value.get("worktree", {}).get("include", ())):
        if path.startswith(("/", "~")) or ".." in path.split("/"):
            found.append(Problem(("worktree", "include", n), "leaves the repository"))
    return found


def _near_misses(value: dict[str, Any]) -> list[Problem]:
    """A role's table takes any option, but one that is nearly a field of ours is a slip."""
    roles = value.get("roles")
    tables = [(n, t) for n, t in roles.items() if isinstance(t, dict)] if isinstance(roles, dict) else []
    return [
        Problem(
            ("roles", name, key),
            f"is not a known field; did you mean `{near[0]}`? ([roles.{name}.options] takes any name)",
        )
        for name, table in tables
        for key in table
        if key not in _ROLE_FIELDS and (near := difflib.get_close_matches(key, _ROLE_FIELDS, 1, 0.8))
    ]


def _refused(name: str, text: str, found: list[Problem]) -> UserError:
    lines = toml_lines(text)
    told = [(line_of(lines, p.path) or 1, f"{p}{_advice(p)}") for p in found]
    body = [f"{name}, line {line}: {what}" for line, what in sorted(told, key=lambda t: t[0])]
    return UserError("\n".join(["the configuration cannot be used; mend it and try again:", *body]))


def _advice(problem: Problem) -> str:
    if problem.what == "is not a known field":
        return f"; {_did_you_mean(problem.path)}"
    names = tuple(str(p) for p in problem.path)
    any_name = (*names[:1], "*", *names[2:])
    fitting = [e for k, e in _EXAMPLES.items() if k in (names[: len(k)], any_name[: len(k)])]
    return f"; for example: {fitting[0]}" if fitting and "did you mean" not in problem.what else ""


def _did_you_mean(path: tuple[str | int, ...]) -> str:
    known = _known_at(tuple(str(p) for p in path[:-1]))
    near = difflib.get_close_matches(str(path[-1]), known, 1, 0.6)
    return f"did you mean `{near[0]}`?" if near else f"known here are {', '.join(known)}"


def _known_at(table: tuple[str, ...]) -> list[str]:
    parts = config_schema()["$defs"]
    part = parts.get(table[0].capitalize() if table else "Config", {})
    return sorted(part.get("properties", {}))
