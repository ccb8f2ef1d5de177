"""Holds a repository's settings against the limits of the person and the organisation: they only tighten.

What a repository asks for beyond a limit is a problem that names the limit's file; what it leaves open is tightened.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from steersman.contracts.config import ENV_REFERENCE, TALKER, AnyConfig, Budget, Config
from steersman.contracts.limits import OWN_DEFAULTS, EnvLimits, LimitFile, Limits
from steersman.judges.model_address import find_host
from steersman.judges.problems import Problem

_MODES = ("off", "auto", "required")  # the later, the stricter
_NAMES_OF_VARIABLES = ("environment", "key_env")  # an agent's options that pass variables on


class _Excess(NamedTuple):
    place: tuple[str | int, ...]  # in the repository's settings
    limit: str  # the dotted name in a file of limits; "": no file can allow it
    value: Any


def complete_own_limits(file: LimitFile) -> LimitFile:
    """The person's own file with what holds where it is silent: nothing is wider than it says."""
    said = file.limits
    sandbox = replace(said.sandbox, **{n: d for n, d in _defaults() if getattr(said.sandbox, n) is None})
    env = said.env if said.env.names is not None else EnvLimits(names=())
    return replace(file, limits=replace(said, sandbox=sandbox, env=env))


def _defaults() -> list[tuple[str, Any]]:
    return [(name, getattr(OWN_DEFAULTS, name)) for name in OWN_DEFAULTS.__struct_fields__]


def find_excesses(config: Config, file: LimitFile) -> list[Problem]:
    """Everything that a configuration asks for beyond a file of limits, with the line that would allow it."""
    found = list(_asked_beyond(config, file.limits))
    return [Problem(e.place, _explain(file, e, _line_for(e.limit, file.limits, found))) for e in found]


def tighten_config(config: AnyConfig, files: Sequence[LimitFile]) -> tuple[AnyConfig, list[str]]:
    """The configuration within all limits, and what that changed, in words."""
    changes = []
    for file in files:
        mode, budget = _stricter_mode(config, file.limits), _smaller_budget(config.budget, file.limits.budget)
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


def _explain(file: LimitFile, excess: _Excess, line: str) -> str:
    if not excess.limit:
        return "is not a plain address: write https://host:port/path, without user, query or fragment"
    if not file.own:
        return f"{file.path} does not allow this. Take it out, or have the policy changed: {line}"
    table, dot, rest = line.partition(".")
    in_table = f"  (or in its table [{table}]: {rest})" if dot and excess.limit != "agents" else ""
    return f"only your own settings can allow this. To allow it, write at the top of {file.path}: {line}{in_table}"


def _line_for(name: str, limits: Limits, found: Sequence[_Excess]) -> str:
    """A line of TOML that allows everything of this name that is asked for, beside what is allowed already."""
    asked = [e.value for e in found if e.limit == name]
    if name in _LISTS:
        return (
            f"{name} = {json.dumps(list(dict.fromkeys((*_LISTS[name](limits), *asked))), ensure_ascii=False)}"
        )
    return f"{name} = {json.dumps(asked[0])}"


_LISTS: dict[str, Callable[[Limits], Sequence[str]]] = {
    "agents": lambda limits: limits.agents or (),
    "sandbox.reads": lambda limits: limits.sandbox.reads or (),
    "sandbox.hosts": lambda limits: limits.sandbox.hosts or (),
    "env.pass": lambda limits: limits.env.names or (),
}


def _asked_beyond(config: Config, limits: Limits) -> Iterator[_Excess]:
    box, allowed = config.sandbox, limits.sandbox
    if allowed.mode is not None and box.mode == "off" != allowed.mode:
        yield _Excess(("sandbox", "mode"), "sandbox.mode", "off")
    for number, path in enumerate(box.reads):
        if allowed.reads is not None and not any(_is_below(path, place) for place in allowed.reads):
            yield _Excess(("sandbox", "reads", number), "sandbox.reads", path)
    if allowed.network is False and box.network:
        yield _Excess(("sandbox", "network"), "sandbox.network", True)
    for name, value in config.env.items():
        variable = value.removeprefix(ENV_REFERENCE)
        if limits.env.names is not None and value != variable and variable not in limits.env.names:
            yield _Excess(("env", name), "env.pass", variable)
    for keys, player in _players(config):
        yield from (e._replace(place=keys + e.place) for e in _asked_by_agent(player, limits))


def _asked_by_agent(player: Any, limits: Limits) -> Iterator[_Excess]:
    if limits.agents is not None and player.agent not in limits.agents:
        yield _Excess(("agent",), "agents", player.agent)
    for option, host in _hosts(player.options):
        if limits.sandbox.hosts is not None and host not in limits.sandbox.hosts:
            yield _Excess((option,), "sandbox.hosts" if host else "", host)
    for option in _NAMES_OF_VARIABLES:
        for name in _words(player.options.get(option)):
            if limits.env.names is not None and name not in limits.env.names:
                yield _Excess((option,), "env.pass", name)


def _players(config: Config) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield from ((("roles", name), role) for name, role in config.roles.items())
    place = tuple(TALKER.rstrip(".").split("."))
    yield from (((*place, name), agent) for name, agent in config.chat.agents.items())


def _hosts(options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every `host:port` that an agent's options open, with the option: named as such, or as its model's address."""
    for option, value in options.items():
        if option == "hosts":
            yield from ((option, host) for host in _words(value))
        elif option.replace("_", "").lower() == "baseurl":
            yield from ((option, find_host(address)) for address in _words(value))
        elif isinstance(value, dict):
            yield from _hosts(value)


def _words(value: Any) -> list[str]:
    """The words of an option as it was written; the agent refuses what is none when it is made."""
    found = value if isinstance(value, list | tuple) else [value]
    return [word for word in found if isinstance(word, str)]


def _is_below(path: str, place: str) -> bool:
    parts = path.split("/")
    return ".." not in parts and f"{path.rstrip('/')}/".startswith(f"{place.rstrip('/')}/")


def _stricter_mode(config: Config, limits: Limits) -> Any:
    return max(config.sandbox.mode, limits.sandbox.mode or "off", key=_MODES.index)


def _smaller_budget(asked: Budget, ceiling: Budget) -> Budget:
    names = asked.__struct_fields__
    return Budget(**{name: _smaller(getattr(asked, name), getattr(ceiling, name)) for name in names})


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((n for n in (one, other) if n is not None), default=None)
