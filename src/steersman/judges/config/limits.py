"""Holds a repository's settings against the limits of the person and the organisation: they only tighten.

What a repository asks for beyond a limit is a problem that names the limit's file; what it leaves open is tightened.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steersman.contracts.config import CHAT_AGENT_PREFIX, ENV_REFERENCE, AnyConfig, Budget, Config
from steersman.contracts.limits import OWN_SANDBOX_DEFAULTS, EnvLimits, LimitFile, SettingsLimits
from steersman.judges.replies.strict_json import SchemaProblem
from steersman.kernel.canonical import digest_of

# ── model address ───────────────────────────────────────────────────────────────────────────────────────────────────────

# Reads the address of a model's server: one reading for the limits and for the agents that open the host.
#
# **Invariant:** an address that programs could read differently has no host: with a user, a query, a fragment or a `\`.


_DEFAULT_PORTS = {"http": "80", "https": "443"}
_PLAIN_ADDRESS = re.compile(
    r"(https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:/[^\s?#@\\]*)?", re.ASCII
)


def find_model_host(address: str) -> str:
    """The `host:port` of a plain http or https address; nothing for any other text."""
    match = _PLAIN_ADDRESS.fullmatch(address)
    return f"{match[2].strip('[]').lower()}:{match[3] or _DEFAULT_PORTS[match[1]]}" if match else ""


# ── limits ────────────────────────────────────────────────────────────────────────────────


_SANDBOX_MODES = ("off", "auto", "required")  # the later, the stricter
_VARIABLE_OPTIONS = ("environment", "key_env")  # an agent's options that pass variables on


class _LimitExcess(NamedTuple):
    place: tuple[str | int, ...]  # in the repository's settings
    limit: str  # the dotted name in a file of limits; "": no file can allow it
    value: Any


def complete_own_limits(file: LimitFile) -> LimitFile:
    """The person's own file with what holds where it is silent: nothing is wider than it says."""
    limits = file.limits
    sandbox = replace(
        limits.sandbox,
        **{name: d for name, d in _own_sandbox_defaults() if getattr(limits.sandbox, name) is None},
    )
    env = limits.env if limits.env.names is not None else EnvLimits(names=())
    return replace(file, limits=replace(limits, sandbox=sandbox, env=env))


def _own_sandbox_defaults() -> list[tuple[str, Any]]:
    return [(name, getattr(OWN_SANDBOX_DEFAULTS, name)) for name in OWN_SANDBOX_DEFAULTS.__struct_fields__]


def find_limit_excesses(config: Config, file: LimitFile) -> list[SchemaProblem]:
    """Everything that a configuration asks for beyond a file of limits, with the line that would allow it."""
    excesses = list(_find_config_excesses(config, file.limits))
    return [
        SchemaProblem(
            excess.place,
            _explain_limit_excess(file, excess, _allowing_toml_line(excess.limit, file.limits, excesses)),
        )
        for excess in excesses
    ]


def tighten_config(config: AnyConfig, files: Sequence[LimitFile]) -> tuple[AnyConfig, list[str]]:
    """The configuration within all limits, and what that changed, in words."""
    changes = []
    for file in files:
        mode = max(config.sandbox.mode, file.limits.sandbox.mode or "off", key=_SANDBOX_MODES.index)
        budget = _smaller_budget(config.budget, file.limits.budget)
        if mode != config.sandbox.mode:
            changes.append(f'{file.path}: [sandbox] mode is "{mode}", not "{config.sandbox.mode}"')
        for name in budget.__struct_fields__:
            new, old = getattr(budget, name), getattr(config.budget, name)
            if new != old:
                changes.append(
                    f"{file.path}: [budget] {name} is {new}, not {'unlimited' if old is None else old}"
                )
        config = replace(config, sandbox=replace(config.sandbox, mode=mode), budget=budget)
    return config, changes


def _explain_limit_excess(file: LimitFile, excess: _LimitExcess, line: str) -> str:
    if not excess.limit:
        return "is not a plain address: write https://host:port/path, without user, query or fragment"
    if not file.own:
        return f"{file.path} does not allow this. Take it out, or have the policy changed: {line}"
    table, dot, rest = line.partition(".")
    in_table = f"  (or in its table [{table}]: {rest})" if dot and excess.limit != "agents" else ""
    return f"only your own settings can allow this. To allow it, write at the top of {file.path}: {line}{in_table}"


def _allowing_toml_line(name: str, limits: SettingsLimits, excesses: Sequence[_LimitExcess]) -> str:
    """A line of TOML that allows everything of this name that is asked for, beside what is allowed already."""
    values = [excess.value for excess in excesses if excess.limit == name]
    if name in _LIST_LIMITS:
        return f"{name} = {json.dumps(list(dict.fromkeys((*_LIST_LIMITS[name](limits), *values))), ensure_ascii=False)}"
    return f"{name} = {json.dumps(values[0])}"


_LIST_LIMITS: dict[str, Callable[[SettingsLimits], Sequence[str]]] = {
    "agents": lambda limits: limits.agents or (),
    "sandbox.reads": lambda limits: limits.sandbox.reads or (),
    "sandbox.hosts": lambda limits: limits.sandbox.hosts or (),
    "env.pass": lambda limits: limits.env.names or (),
}


def _find_config_excesses(config: Config, limits: SettingsLimits) -> Iterator[_LimitExcess]:
    sandbox, allowed = config.sandbox, limits.sandbox
    if allowed.mode is not None and sandbox.mode == "off" != allowed.mode:
        yield _LimitExcess(("sandbox", "mode"), "sandbox.mode", "off")
    for number, path in enumerate(sandbox.reads):
        if allowed.reads is not None and not any(_is_path_below(path, place) for place in allowed.reads):
            yield _LimitExcess(("sandbox", "reads", number), "sandbox.reads", path)
    if allowed.network is False and sandbox.network:
        yield _LimitExcess(("sandbox", "network"), "sandbox.network", True)
    for name, value in config.env.items():
        variable = value.removeprefix(ENV_REFERENCE)
        if limits.env.names is not None and value != variable and variable not in limits.env.names:
            yield _LimitExcess(("env", name), "env.pass", variable)
    for keys, agent in _list_configured_agents(config):
        yield from (e._replace(place=keys + e.place) for e in _find_agent_excesses(agent, limits))


def _find_agent_excesses(agent: Any, limits: SettingsLimits) -> Iterator[_LimitExcess]:
    if limits.agents is not None and agent.agent not in limits.agents:
        yield _LimitExcess(("agent",), "agents", agent.agent)
    for option, host in _find_option_hosts(agent.options):
        if limits.sandbox.hosts is not None and host not in limits.sandbox.hosts:
            yield _LimitExcess((option,), "sandbox.hosts" if host else "", host)
    for option in _VARIABLE_OPTIONS:
        for name in _list_option_words(agent.options.get(option)):
            if limits.env.names is not None and name not in limits.env.names:
                yield _LimitExcess((option,), "env.pass", name)


def _list_configured_agents(config: Config) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield from ((("roles", name), role) for name, role in config.roles.items())
    place = tuple(CHAT_AGENT_PREFIX.rstrip(".").split("."))
    yield from (((*place, name), agent) for name, agent in config.chat.agents.items())


def _find_option_hosts(options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every `host:port` that an agent's options open, with the option: named as such, or as its model's address."""
    for option, value in options.items():
        if option == "hosts":
            yield from ((option, host) for host in _list_option_words(value))
        elif option.replace("_", "").lower() == "baseurl":
            yield from ((option, find_model_host(address)) for address in _list_option_words(value))
        elif isinstance(value, dict):
            yield from _find_option_hosts(value)


def _list_option_words(value: Any) -> list[str]:
    """The words of an option as it was written; the agent refuses what is none when it is made."""
    items = value if isinstance(value, list | tuple) else [value]
    return [word for word in items if isinstance(word, str)]


def _is_path_below(path: str, place: str) -> bool:
    parts = path.split("/")
    return ".." not in parts and f"{path.rstrip('/')}/".startswith(f"{place.rstrip('/')}/")


def _smaller_budget(requested: Budget, ceiling: Budget) -> Budget:
    names = requested.__struct_fields__
    return Budget(
        **{name: _smaller_limit(getattr(requested, name), getattr(ceiling, name)) for name in names}
    )


def _smaller_limit(left: int | None, right: int | None) -> int | None:
    return min((limit for limit in (left, right) if limit is not None), default=None)


# ── powerful parts ──────────────────────────────────────────────────────────────────────────────────────────────────────

# Lists the parts of a repository's settings that need a person's trust: what starts programs, reads, writes or widens.
#
# **Invariant:** a field is powerful unless it is listed here as harmless, so a new field needs trust until someone decides.


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
