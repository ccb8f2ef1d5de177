"""Finds and reads `steersman.toml`.

**Invariant:** a file is whole or refused, with every problem at once: file, line, field and what to write instead;
money and time never pass through a binary float.
"""

import datetime as dt
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from decimal import ROUND_CEILING, Decimal, InvalidOperation, localcontext
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steersman.adapters.config_commands import command_problems, env_problems
from steersman.contracts.config import (
    MAX_HOURS,
    MAX_USD,
    ChatAgent,
    Config,
    Role,
    config_schema,
    expand_commands,
)
from steersman.errors import UserError
from steersman.judges.problems import Problem, problems_of
from steersman.judges.text import clip, one_line, visible
from steersman.kernel.canonical import digest_of

FILE_NAME = "steersman.toml"
MAX_BYTES = 256 * 1024
MAX_LINE = 8192

_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
# field in the file → field of the contract, how many of its units one is, and the most there may be
_AMOUNTS = {"usd": ("micro_usd", 1_000_000, MAX_USD), "hours": ("seconds", 3_600, MAX_HOURS)}
Keys = tuple[str | int, ...]
# Where agents are named, each in a table of its own that takes the agent's own options beside these fields.
_AGENTS: dict[Keys, tuple[str, ...]] = {
    ("roles",): Role.__struct_fields__,
    ("chat", "agents"): ChatAgent.__struct_fields__,
}
_PLACES: tuple[Keys, ...] = (("budget",), ("chat", "budget"))  # tables with amounts


class LoadedConfig(NamedTuple):
    """A configuration, where it came from (None: there is no file) and its digest."""

    config: Config
    path: Path | None
    digest: str
    powerful: tuple[tuple[str, str], ...] = ()  # the lines that need a person's trust
    base_commit: str = ""  # the prompts among these lines are its files
    tightened: tuple[str, ...] = ()  # what the limits of this machine changed, in words
    excesses: tuple[str, ...] = ()  # what they do not allow, in words; only in settings to look at


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
    top = next((n for n, folder in enumerate(above) if (folder / ".git").exists()), 0)
    there = (path for f in above[: top + 1] if (path := f / FILE_NAME).is_symlink() or path.is_file())
    found = next(there, None)
    if found is not None and found.is_symlink():
        raise UserError(f"cannot use {found}: it is a symlink. Replace it with a file or remove it.")
    return found


def read_config(path: Path, roles: Collection[str] = ()) -> Config:
    """The configuration in a file; a UserError lists all its problems."""
    return parse_config(read_settings_file(path), str(path), roles)


def read_settings_file(path: Path) -> str:
    """The text of a settings file; a UserError where it cannot be read, is too long or is not UTF-8."""
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
    return text


def parse_config(text: str, name: str, roles: Collection[str] = ()) -> Config:
    """The configuration in a text; `name` is the file's name for messages."""
    written = parse_toml(text, name)
    odd = list(_odd(written, ()))
    seen = {p.path for p in odd}
    value = _plain(written, ())
    found = [*odd, *amount_problems(value)]
    if found or not _fits(value):
        found += [p for p in problems_of(_without_amounts(value), config_schema()) if p.path not in seen]
    found += _near_misses(value) if found else _joined(value)
    found += _unplayed(value, roles)
    if found:
        from steersman.adapters.config_advice import refused  # only for a file that is wrong

        raise refused(name, text, found)
    return msgspec.convert(_contract_form(value), Config)


def _refuse_long_lines(text: str, name: str) -> None:
    """The reader of TOML takes the square of a dotted key's length: a line of 100 KB would cost a minute."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_LINE:
            raise UserError(f"{name}, line {number}: longer than {MAX_LINE} characters; break it up")


def _fits(value: dict[str, Any]) -> bool:
    """The quick answer for a file without problems: listing them costs more than all the rest."""
    internal = {"micro_usd", "seconds"} & {name for place in _PLACES for name in _table(value, place)}
    if "version" not in value or internal or not isinstance(value.get("budget", {}), dict):
        return False
    try:
        msgspec.convert(_contract_form(value), Config)
    except (msgspec.ValidationError, AttributeError, TypeError):
        return False
    return True


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The tables of a TOML text, fractions exact; a UserError names file and line."""
    _refuse_long_lines(text, name)
    try:
        value = tomllib.loads(text, parse_float=_exact)
        _plain(value, ())  # as deep as any of ours goes
    except RecursionError:
        raise UserError(f"{name}, line 1: nested too deeply; flatten it") from None
    except ValueError as error:  # also an integer with thousands of digits
        where = _AT_LINE.search(str(error))
        line = (where and where[1]) or str(max(1, text.rstrip("\n").count("\n") + 1))
        said = _AT_LINE.sub("", str(error))
        raise UserError(f"{name}, line {line}: {said}; the file has to be TOML 1.0") from None
    return value


def _exact(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation:  # an exponent of twenty digits
        return Decimal("nan")


def _is_odd(value: Any, path: Keys) -> bool:
    """A value JSON has no exact form for, where neither an amount nor a provider's option is written."""
    match value:
        case Decimal() | dt.date() | dt.time():
            return not _is_amount_place(path) and not _is_option_place(path)
        case int():
            return abs(value) >= 2**53 and not _is_option_place(path)
        case _:
            return False


def _is_amount_place(path: Keys) -> bool:
    return path[:-1] in _PLACES and path[-1] in _AMOUNTS


def _is_option_place(path: Keys) -> bool:
    """In an agent's table, under a name of the provider's own or inside `options`."""
    place = next((p for p in _AGENTS if path[: len(p)] == p), None)
    inside = path[len(place) + 1 :] if place is not None else ()
    return bool(inside) and (
        inside[0] not in _AGENTS[place or ()] or (inside[0] == "options" and len(inside) > 1)
    )


def _odd(value: Any, path: Keys) -> Iterator[Problem]:
    if _is_odd(value, path):
        yield Problem(
            path,
            f"{clip(str(value), 40)} does not belong here: no field takes a fraction, a date or such a number",
        )
    for key, item in _items(value):
        yield from _odd(item, (*path, key))


def _items(value: Any) -> Iterable[tuple[str | int, Any]]:
    match value:
        case dict():
            return value.items()
        case list():
            return enumerate(value)
        case _:
            return ()


def _plain(value: Any, path: Keys) -> Any:
    """Only what JSON has: in a provider's options fractions and dates become text; odd values become nothing."""
    match value:
        case dict():
            return {key: _plain(item, (*path, key)) for key, item in value.items()}
        case list():
            return [_plain(item, (*path, n)) for n, item in enumerate(value)]
        case _ if _is_odd(value, path):
            return None
        case Decimal() | dt.date() | dt.time() if not _is_amount_place(path):
            return str(value)
        case int() if abs(value) >= 2**53:
            return str(value)
        case _:
            return value


def _table(value: Any, place: Keys) -> dict[str, Any]:
    """The table at a place; an empty one where there is none."""
    for key in place:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _with(value: dict[str, Any], place: Keys, table: dict[str, Any]) -> dict[str, Any]:
    """The same with another table at a place that is there."""
    key = str(place[0])
    inner = table if len(place) == 1 else _with(value[key], place[1:], table)
    return {**value, key: inner}


def amount_problems(value: dict[str, Any]) -> list[Problem]:
    """What is wrong with the amounts of money and time in a file."""
    given = [
        (p, name, _table(value, p)[name]) for p in _PLACES for name in _AMOUNTS if name in _table(value, p)
    ]
    return [
        Problem((*place, name), f"{_shown(amount)} is not a number above 0 and up to {_AMOUNTS[name][2]}")
        for place, name, amount in given
        if not _is_amount(amount, _AMOUNTS[name][2])
    ]


def _shown(amount: Any) -> str:
    return clip(str(amount) if isinstance(amount, int | Decimal) else repr(amount), 40)


def _is_amount(amount: Any, most: int) -> bool:
    if isinstance(amount, bool) or not isinstance(amount, int | Decimal):
        return False
    exact = Decimal(amount)
    return exact.is_finite() and 0 < exact <= most


def _without_amounts(value: dict[str, Any]) -> dict[str, Any]:
    """They were judged exactly, by us; for the schema any number will do."""
    for place in _PLACES:
        table = _table(value, place)
        if table:
            value = _with(value, place, {k: 1 if k in _AMOUNTS else v for k, v in table.items()})
    return value


def _contract_form(value: dict[str, Any]) -> dict[str, Any]:
    value = expand_commands(value)
    for place in _PLACES:
        if _table(value, place):
            value = _with(value, place, convert_amounts(_table(value, place)))
    for place, fields in _AGENTS.items():
        if tables := _table(value, place):
            value = _with(value, place, {name: _agent(table, fields) for name, table in tables.items()})
    return value


def convert_amounts(table: dict[str, Any]) -> dict[str, Any]:
    """A table with its dollars and hours in the units of the contract, rounded up."""
    written = {_AMOUNTS[k][0]: _rounded_up(v, _AMOUNTS[k][1]) for k, v in table.items() if k in _AMOUNTS}
    return {**{k: v for k, v in table.items() if k not in _AMOUNTS}, **written}


def _rounded_up(amount: int | Decimal, units: int) -> int:
    with localcontext() as context:
        context.prec, context.rounding = 40, ROUND_CEILING
        return int((Decimal(amount) * units).to_integral_value())


def _agent(table: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    known = {k: v for k, v in table.items() if k in fields}
    free = {k: v for k, v in table.items() if k not in fields}
    return {**known, "options": {**known.get("options", {}), **free}}


def _joined(value: dict[str, Any]) -> list[Problem]:
    """What no schema says."""
    found = _near_misses(value)
    for place, fields in _AGENTS.items():
        for name, role in _table(value, place).items():
            found += (Problem((*place, name, field), wrong) for field, wrong in _script(role))
            found += (Problem((*place, name, field), wrong) for field, wrong in _surplus(role, fields))
    found += _names(_table(value, ("chat", "agents")), _table(value, ("chat",)).get("host"))
    found += command_problems(value)
    found += env_problems(value.get("env", {}))
    found += [
        Problem(("no_tests", n), f"{clip(name, 40)!r} is no check: name one of [checks]")
        for n, name in enumerate(value.get("no_tests", ()))
        if name not in value.get("checks", {})
    ]
    for n, path in enumerate(value.get("worktree", {}).get("include", ())):
        if path.startswith(("/", "~")) or ".." in path.split("/"):
            found.append(Problem(("worktree", "include", n), "leaves the repository"))
    return found


def _script(role: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The scripted agent has a script; no other agent has one."""
    agent = role["agent"]
    if agent == "scripted":
        if "script" not in role:
            yield "script", "is missing: the scripted agent needs one"
    elif "script" in role:
        if _near(agent, ["scripted"], 0.7):
            yield "agent", f"{clip(agent, 40)!r} is no agent; did you mean `scripted`?"
        else:
            yield "script", 'needs agent = "scripted"'


def _surplus(role: dict[str, Any], fields: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Agents refuse options that they do not have when they are made; the scripted one has none."""
    if role["agent"] == "scripted":
        yield from ((key, "is nothing the scripted agent takes") for key in role if key not in fields)


def _unplayed(value: dict[str, Any], roles: Collection[str]) -> Iterator[Problem]:
    """A role that no machine has and no task names is nobody's."""
    task = _table(value, ("task",))
    lists = [task.get(name) for name in ("planners", "plan_reviewers", "code_reviewers")]
    roles = (
        {*roles, *(r for names in lists if isinstance(names, list) for r in names if isinstance(r, str))}
        if roles
        else roles
    )
    for name in _table(value, ("roles",)) if roles else ():
        if name not in roles:
            near = _near(name, roles, 0.6)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(sorted(roles))}"
            yield Problem(("roles", name), f"is a role that no machine has; {hint}")


def _names(talkers: dict[str, Any], host: str | None) -> Iterator[Problem]:
    """Whoever is called answers alone: no two have the same name, whatever its capitals."""
    from steersman.judges.mentions import folded  # few projects have any

    taken: dict[str, str] = {}
    called: list[tuple[str, str, Keys]] = [(name, name, ()) for name in talkers]
    called += [
        (name, word, ("aliases", n))
        for name, t in talkers.items()
        for n, word in enumerate(t.get("aliases", ()))
    ]
    for name, word, where in called:
        if not visible(word) or one_line(word) != word:
            yield Problem(("chat", "agents", name, *where), f"{word!r} has a character that cannot be seen")
        other = taken.setdefault(folded(word), name)
        if other != name or (where and folded(word) == folded(name)):
            yield Problem(("chat", "agents", name, *where), f"{word!r} is a name of {other!r} already")
    if host is not None and host not in talkers:
        yield Problem(("chat", "host"), f"nobody is called {host!r}: name one of [chat.agents]")


def _near_misses(value: dict[str, Any]) -> list[Problem]:
    """An agent's table takes any option, but one that is nearly a field of ours is a slip."""
    return [
        Problem(
            (*place, name, key),
            f"is not a known field; did you mean `{near[0]}`? (its options = {{ … }} takes any name)",
        )
        for place, fields in _AGENTS.items()
        for name, table in _table(value, place).items()
        for key in (table if isinstance(table, dict) else ())
        if key not in fields and (near := _near(key, fields, 0.8))
    ]


def _near(word: str, names: Iterable[str], alike: float) -> list[str]:
    """The name that was meant, where one is near."""
    import difflib  # slow to import, and only for what is misspelt

    return difflib.get_close_matches(word, list(names), 1, alike)
