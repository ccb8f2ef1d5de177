"""Lists the parts of a repository's settings that need a person's trust: what starts programs, reads, writes or widens.

**Invariant:** a field is powerful unless it is listed here as harmless, so a new field needs trust until someone decides.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from steersman.contracts.config import Config
from steersman.kernel.canonical import digest_of

Line = tuple[str, str]  # a place, such as checks.unit.run, and its value as JSON or in words
Keys = tuple[str | int, ...]

DIGEST_LENGTH = 32  # hexadecimal digits: 128 bits, and a command with it fits a line of a terminal
_HARMLESS_TABLES = (
    *("version", "project", "deliver", "known_failures", "no_tests", "budget", "unattended", "rules", "task"),
    "redact",
)
_HARMLESS_CHAT = ("host", "history", "history_bytes", "budget")
_HARMLESS_OF_AGENT = ("retries", "seconds", "start_seconds", "idle_seconds", "aliases")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def list_powerful_lines(config: Config, files: Mapping[str, str]) -> tuple[Line, ...]:
    """Every powerful part as one line; `files` are those below `.steersman/`, by path, each with what stands for it."""
    default = dict(_find_leaves(msgspec.to_builtins(Config()), ()))
    leaves = _find_leaves(msgspec.to_builtins(config), ())
    lines = [(_name_place(keys), _write_value(value)) for keys, value in leaves if default.get(keys) != value]
    return (*sorted(lines), *sorted(files.items()))


def digest_lines(lines: Sequence[Line]) -> str:
    """The digest that a person trusts: the same lines have the same one on every machine."""
    return digest_of([list(line) for line in lines])[:DIGEST_LENGTH]


def is_file_line(line: Line) -> bool:
    """Whether a line stands for a file beside steersman.toml, such as a prompt; no field begins with a dot."""
    return line[0].startswith(".")


def compare_lines(old: Sequence[Line], new: Sequence[Line]) -> list[tuple[str, str | None, str | None]]:
    """The places whose value differs, with the old and the new value; None where there is none."""
    before, after = dict(old), dict(new)
    places = dict.fromkeys([*after, *before])
    return [(p, before.get(p), after.get(p)) for p in places if before.get(p) != after.get(p)]


def _find_leaves(value: Any, keys: Keys) -> Iterator[tuple[Keys, Any]]:
    if _is_harmless(keys):
        return
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _find_leaves(item, (*keys, name))
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            yield from _find_leaves(item, (*keys, number))
    elif (
        value or "options" in keys[:-1]
    ):  # an empty field is one that is not written; an agent's option is not
        yield keys, value


def _is_harmless(keys: Keys) -> bool:
    match keys:
        case (table,):
            return table in _HARMLESS_TABLES
        case ("chat", field):
            return field in _HARMLESS_CHAT
        case ("roles", _, field) | ("chat", "agents", _, field):
            return field in _HARMLESS_OF_AGENT
        case _:
            return False


def _name_place(keys: Keys) -> str:
    """The place as TOML writes it, whole: two places never look the same."""
    words = [f"[{k}]" if isinstance(k, int) else f".{_write_key(k)}" for k in keys]
    return "".join(words).removeprefix(".")


def _write_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _write_value(key)


def _write_value(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
