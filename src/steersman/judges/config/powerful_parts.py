"""Lists the parts of a repository's settings that need a person's trust: what starts programs, reads, writes or widens.

**Invariant:** a field is powerful unless it is listed here as harmless, so a new field needs trust until someone decides.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from steersman.contracts.config import Config
from steersman.kernel.canonical import digest_of

SettingLine = tuple[str, str]  # a place, such as checks.unit.run, and its value as JSON or in words
SettingKeys = tuple[str | int, ...]

TRUST_DIGEST_LENGTH = 32  # hexadecimal digits: 128 bits, and a command with it fits a line of a terminal
# What may change without a question: none of it starts, reaches or widens anything, or weakens evidence, review or
# redaction. docs/how-to/trust-a-repository.md has the same list.
HARMLESS_SETTINGS = (
    *("version", "budget", "unattended.on_limit", "chat.budget", "chat.history", "chat.history_bytes"),
    *("rules.max_iterations", "rules.same_finding", "rules.check_seconds"),
    *("task.max_rounds", "task.max_regressions", "roles.*.retries"),
    *("roles.*.seconds", "roles.*.start_seconds", "roles.*.idle_seconds"),
    *("chat.agents.*.seconds", "chat.agents.*.start_seconds", "chat.agents.*.idle_seconds"),
)
_HARMLESS_KEYS = {
    length: tuple(keys for place in HARMLESS_SETTINGS if len(keys := place.split(".")) == length)
    for length in (1, 2, 3, 4)
}
_STEERSMAN_FILE = re.compile(r"(\.steersman/(?:.*/)?)([^/]+)()")
_TABLE_MEMBER = re.compile(r'((?:checks|env|roles|chat\.agents)\.)("(?:[^"\\]|\\.)*"|[^.]+)(.*)')
_PLAIN_FILE_NAME = re.compile(r"[\w.+@-]+")
_BARE_TOML_KEY = re.compile(r"[A-Za-z0-9_-]+")


def list_powerful_lines(config: Config, files: Mapping[str, str]) -> tuple[SettingLine, ...]:
    """Every powerful part as one line; `files` are those below `.steersman/`, by path, each with what stands for it."""
    default = dict(_find_setting_leaves(msgspec.to_builtins(Config()), ()))
    leaves = _find_setting_leaves(msgspec.to_builtins(config), ())
    lines = [
        (_name_setting_place(keys), _write_setting_value(value))
        for keys, value in leaves
        if _is_setting_written(keys, value, default)
    ]
    return (*sorted(lines), *sorted(files.items()))


def digest_setting_lines(lines: Sequence[SettingLine]) -> str:
    """The digest that a person trusts: the same lines have the same one on every machine."""
    return digest_of([list(line) for line in lines])[:TRUST_DIGEST_LENGTH]


def is_file_setting_line(line: SettingLine) -> bool:
    """Whether a line stands for a file beside steersman.toml, such as a prompt; no field begins with a dot."""
    return line[0].startswith(".")


def group_setting_lines(lines: Sequence[SettingLine]) -> list[str]:
    """The lines as text in which fields of one name, and files of one folder, share a row; the shortest rows first.

    Nothing is left out but the digests of files."""
    groups: dict[tuple[str, str], dict[str, list[str]]] = {}
    for place, value in lines:
        match = _STEERSMAN_FILE.fullmatch(place) or _TABLE_MEMBER.fullmatch(place)
        table, name, field = match.groups() if match else (place, "", "")
        if table.startswith(".steersman/") and not _PLAIN_FILE_NAME.fullmatch(name):
            name = _write_setting_value(name)
        short = "a file" if is_file_setting_line((place, value)) and value.startswith("sha256 ") else value
        groups.setdefault((table, field), {}).setdefault(short, []).append(name)
    rows = [_write_setting_group(*key, members) for key, members in groups.items()]
    return sorted(rows, key=len)


def _write_setting_group(table: str, field: str, members: Mapping[str, Sequence[str]]) -> str:
    values = [(names, value) for value, names in members.items()]
    if len(values) == len(values[0][0]) == 1:
        return f"{table}{values[0][0][0]}{field} = {values[0][1]}"
    return f"{table}*{field}: " + "; ".join(f"{', '.join(names)}={value}" for names, value in values)


def compare_setting_lines(
    old: Sequence[SettingLine], new: Sequence[SettingLine]
) -> list[tuple[str, str | None, str | None]]:
    """The places whose value differs, with the old and the new value; None where there is none."""
    before, after = dict(old), dict(new)
    places = dict.fromkeys([*after, *before])
    return [(p, before.get(p), after.get(p)) for p in places if before.get(p) != after.get(p)]


def _find_setting_leaves(value: Any, keys: SettingKeys) -> Iterator[tuple[SettingKeys, Any]]:
    if _is_harmless_setting(keys):
        return
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _find_setting_leaves(item, (*keys, name))
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            yield from _find_setting_leaves(item, (*keys, number))
    else:
        yield keys, value


def _is_setting_written(keys: SettingKeys, value: Any, default: Mapping[SettingKeys, Any]) -> bool:
    """Whether the file says more than the default; in a table of free names a field that is not written is empty."""
    if keys in default:
        return bool(default[keys] != value)
    return "options" in keys[:-1] or value not in (None, (), {})


def _is_harmless_setting(keys: SettingKeys) -> bool:
    return any(
        all(part in ("*", key) for part, key in zip(place, keys, strict=True))
        for place in _HARMLESS_KEYS.get(len(keys), ())
    )


def _name_setting_place(keys: SettingKeys) -> str:
    """The place as TOML writes it, whole: two places never look the same."""
    words = [f"[{key}]" if isinstance(key, int) else f".{_write_setting_key(key)}" for key in keys]
    return "".join(words).removeprefix(".")


def _write_setting_key(key: str) -> str:
    return key if _BARE_TOML_KEY.fullmatch(key) else _write_setting_value(key)


def _write_setting_value(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
