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
# What may change without a question: none of it starts, reaches or widens anything, or weakens evidence, review or
# redaction. docs/how-to/trust-a-repository.md has the same list.
HARMLESS = (
    *("version", "budget", "unattended.on_limit", "chat.budget", "chat.history", "chat.history_bytes"),
    *("rules.max_iterations", "rules.same_finding", "rules.check_seconds"),
    *("task.max_rounds", "task.max_regressions", "roles.*.retries"),
    *("roles.*.seconds", "roles.*.start_seconds", "roles.*.idle_seconds"),
    *("chat.agents.*.seconds", "chat.agents.*.start_seconds", "chat.agents.*.idle_seconds"),
)
_HARMLESS_KEYS = {
    length: tuple(keys for place in HARMLESS if len(keys := place.split(".")) == length)
    for length in (1, 2, 3, 4)
}
_FILE = re.compile(r"(\.steersman/(?:.*/)?)([^/]+)()")
_MEMBER = re.compile(r'((?:checks|env|roles|chat\.agents)\.)("(?:[^"\\]|\\.)*"|[^.]+)(.*)')
_PLAIN_NAME = re.compile(r"[\w.+@-]+")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def list_powerful_lines(config: Config, files: Mapping[str, str]) -> tuple[Line, ...]:
    """Every powerful part as one line; `files` are those below `.steersman/`, by path, each with what stands for it."""
    default = dict(_find_leaves(msgspec.to_builtins(Config()), ()))
    leaves = _find_leaves(msgspec.to_builtins(config), ())
    lines = [(_name_place(keys), _write_value(v)) for keys, v in leaves if _is_written(keys, v, default)]
    return (*sorted(lines), *sorted(files.items()))


def digest_lines(lines: Sequence[Line]) -> str:
    """The digest that a person trusts: the same lines have the same one on every machine."""
    return digest_of([list(line) for line in lines])[:DIGEST_LENGTH]


def is_file_line(line: Line) -> bool:
    """Whether a line stands for a file beside steersman.toml, such as a prompt; no field begins with a dot."""
    return line[0].startswith(".")


def group_lines(lines: Sequence[Line]) -> list[str]:
    """The lines as text in which fields of one name, and files of one folder, share a row; the shortest rows first.

    Nothing is left out but the digests of files."""
    groups: dict[tuple[str, str], dict[str, list[str]]] = {}
    for place, value in lines:
        match = _FILE.fullmatch(place) or _MEMBER.fullmatch(place)
        table, name, field = match.groups() if match else (place, "", "")
        if table.startswith(".steersman/") and not _PLAIN_NAME.fullmatch(name):
            name = _write_value(name)
        short = "a file" if is_file_line((place, value)) and value.startswith("sha256 ") else value
        groups.setdefault((table, field), {}).setdefault(short, []).append(name)
    rows = [_write_group(*key, members) for key, members in groups.items()]
    return sorted(rows, key=len)


def _write_group(table: str, field: str, members: Mapping[str, Sequence[str]]) -> str:
    values = [(names, value) for value, names in members.items()]
    if len(values) == len(values[0][0]) == 1:
        return f"{table}{values[0][0][0]}{field} = {values[0][1]}"
    return f"{table}*{field}: " + "; ".join(f"{', '.join(names)}={value}" for names, value in values)


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
    else:
        yield keys, value


def _is_written(keys: Keys, value: Any, default: Mapping[Keys, Any]) -> bool:
    """Whether the file says more than the default; in a table of free names a field that is not written is empty."""
    if keys in default:
        return bool(default[keys] != value)
    return "options" in keys[:-1] or value not in (None, (), {})


def _is_harmless(keys: Keys) -> bool:
    return any(
        all(part in ("*", key) for part, key in zip(place, keys, strict=True))
        for place in _HARMLESS_KEYS.get(len(keys), ())
    )


def _name_place(keys: Keys) -> str:
    """The place as TOML writes it, whole: two places never look the same."""
    words = [f"[{k}]" if isinstance(k, int) else f".{_write_key(k)}" for k in keys]
    return "".join(words).removeprefix(".")


def _write_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _write_value(key)


def _write_value(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
