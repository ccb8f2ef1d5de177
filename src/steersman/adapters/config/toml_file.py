"""Finds and reads `steersman.toml`.

**Invariant:** a file is accepted completely or rejected, with every problem at once: file, line, field and what to write instead;
money and time never pass through a binary float.
"""

import datetime as dt
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from decimal import ROUND_CEILING, Decimal, InvalidOperation, localcontext
from pathlib import Path
from typing import Any

import msgspec

from steersman.adapters.config.toml_advice import find_command_problems, find_env_problems
from steersman.contracts.config import (
    MAX_HOURS,
    MAX_USD,
    ChatAgent,
    Config,
    Role,
    config_schema,
    expand_argv_commands,
)
from steersman.contracts.limits import LoadedConfig
from steersman.errors import UserError
from steersman.judges.replies.strict_json import SchemaProblem, find_json_schema_problems
from steersman.judges.text import clip_text, has_visible_text, printable_line
from steersman.kernel.canonical import digest_of

SETTINGS_FILE_NAME = "steersman.toml"
MAX_CONFIG_BYTES = 256 * 1024
MAX_CONFIG_LINE = 8192

_TOML_ERROR_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
# file field → (contract field, factor, maximum)
_AMOUNT_UNITS = {"usd": ("micro_usd", 1_000_000, MAX_USD), "hours": ("seconds", 3_600, MAX_HOURS)}
ConfigPath = tuple[str | int, ...]
# Where agents are named, each in a table of its own that takes the agent's own options beside these fields.
_AGENT_TABLES: dict[ConfigPath, tuple[str, ...]] = {
    ("roles",): Role.__struct_fields__,
    ("chat", "agents"): ChatAgent.__struct_fields__,
}
_AGENT_KEYS_NEAR_OURS = ("mode",)  # options of agents that look like a misspelled field
_AMOUNT_TABLES: tuple[ConfigPath, ...] = (("budget",), ("chat", "budget"))  # tables with amounts


def load_config(start: Path, roles: Collection[str] = ()) -> LoadedConfig:
    """The configuration for a directory: from the nearest file up to the top of the repository, or the defaults.

    `roles` are those there are; with none given, any name will do."""
    path = find_config(start)
    config = Config() if path is None else read_config(path, roles)
    return LoadedConfig(config, path, digest_of(config))


def find_config(start: Path) -> Path | None:
    """The nearest `steersman.toml` at or above `start`, never above the top of its repository; never through a link."""
    start = start.resolve()
    above = [start, *start.parents]
    top = next((n for n, directory_above in enumerate(above) if (directory_above / ".git").exists()), 0)
    candidates = (
        path for d in above[: top + 1] if (path := d / SETTINGS_FILE_NAME).is_symlink() or path.is_file()
    )
    config_file = next(candidates, None)
    if config_file is not None and config_file.is_symlink():
        raise UserError(f"cannot use {config_file}: it is a symlink. Replace it with a file or remove it.")
    return config_file


def read_config(path: Path, roles: Collection[str] = ()) -> Config:
    """The configuration in a file; a UserError lists all its problems."""
    return parse_config(read_settings_file(path), str(path), roles)


def read_settings_file(path: Path) -> str:
    """The text of a settings file; a UserError where it cannot be read, is too long or is not UTF-8."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise UserError(f"{path} is longer than {MAX_CONFIG_BYTES} bytes; shorten it")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line}: not UTF-8; save the file as UTF-8") from None
    return text


def parse_config(text: str, name: str, roles: Collection[str] = ()) -> Config:
    """The configuration in a text; `name` is the file's name for messages."""
    tables = parse_exact_toml(text, name)
    unsupported = list(_find_unsupported_values(tables, ()))
    unsupported_paths = {problem.path for problem in unsupported}
    value = _to_json_value(tables, ())
    problems = [*unsupported, *find_amount_problems(value)]
    if problems or not _is_valid_config(value):
        problems += [
            problem
            for problem in find_json_schema_problems(_mask_amounts(value), config_schema())
            if problem.path not in unsupported_paths
        ]
    problems += _find_near_misses(value) if problems else _find_cross_field_problems(value)
    problems += _find_unknown_roles(value, roles)
    if problems:
        from steersman.adapters.config.toml_advice import build_config_error  # only for a file that is wrong

        raise build_config_error(name, text, problems)
    return msgspec.convert(_to_contract_form(value), Config)


def _refuse_long_lines(text: str, name: str) -> None:
    """The reader of TOML takes the square of a dotted key's length: a line of 100 KB would cost a minute."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_CONFIG_LINE:
            raise UserError(f"{name}, line {number}: longer than {MAX_CONFIG_LINE} characters; break it up")


def _is_valid_config(value: dict[str, Any]) -> bool:
    """The quick answer for a file without problems: listing them costs more than all the rest."""
    internal = {"micro_usd", "seconds"} & {
        name for table_path in _AMOUNT_TABLES for name in _config_table_at(value, table_path)
    }
    if "version" not in value or internal or not isinstance(value.get("budget", {}), dict):
        return False
    try:
        msgspec.convert(_to_contract_form(value), Config)
    except (msgspec.ValidationError, AttributeError, TypeError):
        return False
    return True


def parse_exact_toml(text: str, name: str) -> dict[str, Any]:
    """The tables of a TOML text, fractions exact; a UserError names file and line."""
    _refuse_long_lines(text, name)
    try:
        value = tomllib.loads(text, parse_float=_parse_exact_decimal)
        _to_json_value(value, ())  # as deep as any contract goes
    except RecursionError:
        raise UserError(f"{name}, line 1: nested too deeply; flatten it") from None
    except ValueError as error:  # also an integer with thousands of digits
        match = _TOML_ERROR_LINE.search(str(error))
        line = (match and match[1]) or str(max(1, text.rstrip("\n").count("\n") + 1))
        message = _TOML_ERROR_LINE.sub("", str(error))
        raise UserError(f"{name}, line {line}: {message}; the file has to be TOML 1.0") from None
    return value


def _parse_exact_decimal(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation:  # an exponent of twenty digits
        return Decimal("nan")


def _is_unsupported_value(value: Any, path: ConfigPath) -> bool:
    """A value JSON has no exact form for, where neither an amount nor a provider's option is written."""
    match value:
        case Decimal() | dt.date() | dt.time():
            return not _is_amount_place(path) and not _is_option_place(path)
        case int():
            return abs(value) >= 2**53 and not _is_option_place(path)
        case _:
            return False


def _is_amount_place(path: ConfigPath) -> bool:
    return path[:-1] in _AMOUNT_TABLES and path[-1] in _AMOUNT_UNITS


def _is_option_place(path: ConfigPath) -> bool:
    """In an agent's table, under a name of the provider's own or inside `options`."""
    agent_table = next((table for table in _AGENT_TABLES if path[: len(table)] == table), None)
    rest = path[len(agent_table) + 1 :] if agent_table is not None else ()
    return bool(rest) and (
        rest[0] not in _AGENT_TABLES[agent_table or ()] or (rest[0] == "options" and len(rest) > 1)
    )


def _find_unsupported_values(value: Any, path: ConfigPath) -> Iterator[SchemaProblem]:
    if _is_unsupported_value(value, path):
        yield SchemaProblem(
            path,
            f"{clip_text(str(value), 40)} does not belong here: no field takes a fraction, a date or such a number",
        )
    for key, item in _iterate_children(value):
        yield from _find_unsupported_values(item, (*path, key))


def _iterate_children(value: Any) -> Iterable[tuple[str | int, Any]]:
    match value:
        case dict():
            return value.items()
        case list():
            return enumerate(value)
        case _:
            return ()


def _to_json_value(value: Any, path: ConfigPath) -> Any:
    """Only what JSON has: in a provider's options fractions and dates become text; odd values become nothing."""
    match value:
        case dict():
            return {key: _to_json_value(item, (*path, key)) for key, item in value.items()}
        case list():
            return [_to_json_value(item, (*path, n)) for n, item in enumerate(value)]
        case _ if _is_unsupported_value(value, path):
            return None
        case Decimal() | dt.date() | dt.time() if not _is_amount_place(path):
            return str(value)
        case int() if abs(value) >= 2**53:
            return str(value)
        case _:
            return value


def _config_table_at(value: Any, table_path: ConfigPath) -> dict[str, Any]:
    """The table at a place; an empty one where there is none."""
    for key in table_path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _replace_table_at(value: dict[str, Any], table_path: ConfigPath, table: dict[str, Any]) -> dict[str, Any]:
    """The same with another table at a place that is there."""
    key = str(table_path[0])
    inner = table if len(table_path) == 1 else _replace_table_at(value[key], table_path[1:], table)
    return {**value, key: inner}


def find_amount_problems(value: dict[str, Any]) -> list[SchemaProblem]:
    """What is wrong with the amounts of money and time in a file."""
    amounts = [
        (amount_path, name, _config_table_at(value, amount_path)[name])
        for amount_path in _AMOUNT_TABLES
        for name in _AMOUNT_UNITS
        if name in _config_table_at(value, amount_path)
    ]
    return [
        SchemaProblem(
            (*table_path, name),
            f"{_format_amount(amount)} is not a number above 0 and up to {_AMOUNT_UNITS[name][2]}",
        )
        for table_path, name, amount in amounts
        if not _is_valid_amount(amount, _AMOUNT_UNITS[name][2])
    ]


def _format_amount(amount: Any) -> str:
    return clip_text(str(amount) if isinstance(amount, int | Decimal) else repr(amount), 40)


def _is_valid_amount(amount: Any, maximum: int) -> bool:
    if isinstance(amount, bool) or not isinstance(amount, int | Decimal):
        return False
    exact = Decimal(amount)
    return exact.is_finite() and 0 < exact <= maximum


def _mask_amounts(value: dict[str, Any]) -> dict[str, Any]:
    """They were judged exactly, by us; for the schema any number will do."""
    for table_path in _AMOUNT_TABLES:
        table = _config_table_at(value, table_path)
        if table:
            value = _replace_table_at(
                value, table_path, {k: 1 if k in _AMOUNT_UNITS else v for k, v in table.items()}
            )
    return value


def _to_contract_form(value: dict[str, Any]) -> dict[str, Any]:
    value = expand_argv_commands(value)
    for table_path in _AMOUNT_TABLES:
        if _config_table_at(value, table_path):
            value = _replace_table_at(value, table_path, convert_amounts(_config_table_at(value, table_path)))
    for table_path, fields in _AGENT_TABLES.items():
        if tables := _config_table_at(value, table_path):
            value = _replace_table_at(
                value,
                table_path,
                {name: _collect_agent_options(table, fields) for name, table in tables.items()},
            )
    return value


def convert_amounts(table: dict[str, Any]) -> dict[str, Any]:
    """A table with its dollars and hours in the units of the contract, rounded up."""
    converted = {
        _AMOUNT_UNITS[k][0]: _round_up_amount(v, _AMOUNT_UNITS[k][1])
        for k, v in table.items()
        if k in _AMOUNT_UNITS
    }
    return {**{k: v for k, v in table.items() if k not in _AMOUNT_UNITS}, **converted}


def _round_up_amount(amount: int | Decimal, units: int) -> int:
    with localcontext() as context:
        context.prec, context.rounding = 40, ROUND_CEILING
        return int((Decimal(amount) * units).to_integral_value())


def _collect_agent_options(table: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    known = {k: v for k, v in table.items() if k in fields}
    extra = {k: v for k, v in table.items() if k not in fields}
    return {**known, "options": {**known.get("options", {}), **extra}}


def _find_cross_field_problems(value: dict[str, Any]) -> list[SchemaProblem]:
    """What no schema says."""
    problems = _find_near_misses(value)
    for table_path, fields in _AGENT_TABLES.items():
        for name, role in _config_table_at(value, table_path).items():
            problems += (
                SchemaProblem((*table_path, name, field), message)
                for field, message in _find_script_problems(role)
            )
            problems += (
                SchemaProblem((*table_path, name, field), message)
                for field, message in _find_surplus_options(role, fields)
            )
    problems += _find_chat_name_problems(
        _config_table_at(value, ("chat", "agents")), _config_table_at(value, ("chat",)).get("host")
    )
    problems += find_command_problems(value)
    problems += find_env_problems(value.get("env", {}))
    problems += [
        SchemaProblem(("no_tests", index), f"{clip_text(name, 40)!r} is no check: name one of [checks]")
        for index, name in enumerate(value.get("no_tests", ()))
        if name not in value.get("checks", {})
    ]
    for index, path in enumerate(value.get("worktree", {}).get("include", ())):
        if path.startswith(("/", "~")) or ".." in path.split("/"):
            problems.append(SchemaProblem(("worktree", "include", index), "leaves the repository"))
    return problems


def _find_script_problems(role: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The scripted agent has a script; no other agent has one."""
    agent = role["agent"]
    if agent == "scripted":
        if "script" not in role:
            yield "script", "is missing: the scripted agent needs one"
    elif "script" in role:
        if _find_closest_name(agent, ["scripted"], 0.7):
            yield "agent", f"{clip_text(agent, 40)!r} is no agent; did you mean `scripted`?"
        else:
            yield "script", 'needs agent = "scripted"'


def _find_surplus_options(role: dict[str, Any], fields: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Agents refuse options that they do not have when they are made; the scripted one has none."""
    if role["agent"] == "scripted":
        yield from ((key, "is nothing the scripted agent takes") for key in role if key not in fields)


def _find_unknown_roles(value: dict[str, Any], roles: Collection[str]) -> Iterator[SchemaProblem]:
    """Roles that no machine has and no task names."""
    task_table = _config_table_at(value, ("task",))
    lists = [task_table.get(name) for name in ("planners", "plan_reviewers", "code_reviewers")]
    listed = {r for names in lists if isinstance(names, list) for r in names if isinstance(r, str)}
    for name in _config_table_at(value, ("roles",)) if roles else ():
        if name not in listed and name not in roles:
            known = {*roles, *listed}
            closest = _find_closest_name(name, known, 0.6)
            hint = f"did you mean `{closest[0]}`?" if closest else f"there are {', '.join(sorted(known))}"
            yield SchemaProblem(("roles", name), f"is a role that no machine has; {hint}")


def _find_chat_name_problems(chat_agents: dict[str, Any], host: str | None) -> Iterator[SchemaProblem]:
    """No two agents have the same name, in capitals or not: a name calls exactly one."""
    from steersman.judges.replies.mentions import fold_mention_name  # few projects have any

    owners: dict[str, str] = {}
    spellings: list[tuple[str, str, ConfigPath]] = [(name, name, ()) for name in chat_agents]
    spellings += [
        (name, word, ("aliases", n))
        for name, t in chat_agents.items()
        for n, word in enumerate(t.get("aliases", ()))
    ]
    for name, word, subpath in spellings:
        if not has_visible_text(word) or printable_line(word) != word:
            yield SchemaProblem(
                ("chat", "agents", name, *subpath), f"{word!r} has a character that cannot be seen"
            )
        other = owners.setdefault(fold_mention_name(word), name)
        if other != name or (subpath and fold_mention_name(word) == fold_mention_name(name)):
            yield SchemaProblem(
                ("chat", "agents", name, *subpath), f"{word!r} is a name of {other!r} already"
            )
    if host is not None and host not in chat_agents:
        yield SchemaProblem(("chat", "host"), f"there is no agent {host!r}: name one of [chat.agents]")


def _find_near_misses(value: dict[str, Any]) -> list[SchemaProblem]:
    """An agent's table takes any option, but one that is nearly a field of steersman is a slip."""
    return [
        SchemaProblem(
            (*table_path, name, key),
            f"is not a known field; did you mean `{closest[0]}`? (its options = {{ … }} takes any name)",
        )
        for table_path, fields in _AGENT_TABLES.items()
        for name, table in _config_table_at(value, table_path).items()
        for key in (table if isinstance(table, dict) else ())
        if key not in (*fields, *_AGENT_KEYS_NEAR_OURS) and (closest := _find_closest_name(key, fields, 0.8))
    ]


def _find_closest_name(word: str, names: Iterable[str], cutoff: float) -> list[str]:
    """The name that was meant, where one is near."""
    import difflib  # slow to import, and only for what is misspelt

    return difflib.get_close_matches(word, list(names), 1, cutoff)
