"""Reads the limits of this machine: the person's own settings file and the organisation's policy.

**Invariant:** a limit that cannot be read is an error, never no limit.
"""

import os
from pathlib import Path

import msgspec

from steersman.adapters.config.state_paths import user_settings_path
from steersman.adapters.config.toml_file import (
    LoadedConfig,
    convert_amounts,
    find_amount_problems,
    parse_exact_toml,
    read_settings_file,
)
from steersman.contracts.config import AnyConfig
from steersman.contracts.limits import LimitFile, SettingsLimits
from steersman.errors import UserError
from steersman.judges.config.limits import complete_own_limits, find_limit_excesses, tighten_config

POLICY_PATH = "/etc/steersman/policy.toml"
POLICY_VARIABLE = "STEERSMAN_POLICY"


def apply_config_limits(loaded: LoadedConfig, *, only_look: bool = False) -> LoadedConfig:
    """The settings within every limit that holds here; a UserError lists what they ask for beyond one.

    For who only looks they stay as they are written, with a list of what is asked for beyond a limit."""
    config, changes, excesses = limit_config(loaded.config)
    if only_look:
        return loaded._replace(excesses=tuple(excesses))
    if excesses:
        advice = "Read what the settings can do first: steersman trust --show"
        raise UserError("\n".join([*(f"{loaded.path}: {excess}" for excess in excesses), advice]))
    return loaded._replace(config=config, tightened=tuple(changes))


def limit_config(config: AnyConfig) -> tuple[AnyConfig, list[str], list[str]]:
    """A configuration within every limit that holds here, what that changed, and what it asks for beyond one."""
    files = read_limit_files()
    problems = [str(problem) for file in files for problem in find_limit_excesses(config, file)]
    return *tighten_config(config, files), problems


def read_limit_files() -> tuple[LimitFile, ...]:
    """The person's own file first, with its defaults where there is none, then every policy that holds."""
    own_path = user_settings_path()
    limits = read_limits_from(Path(own_path)) if os.path.lexists(own_path) else SettingsLimits()
    named_policy = os.environ.get(POLICY_VARIABLE, "")
    policies = [
        *([POLICY_PATH] if os.path.lexists(POLICY_PATH) else []),
        *([named_policy] if named_policy else []),
    ]
    own_file = complete_own_limits(LimitFile(own_path, limits, own=True))
    return (own_file, *(LimitFile(path, read_limits_from(Path(path))) for path in policies))


def read_limits_from(path: Path) -> SettingsLimits:
    """The limits in one file; a UserError names what is wrong with it."""
    value = parse_exact_toml(read_settings_file(path), str(path))
    if problems := find_amount_problems(value):
        raise UserError(f"{path}: {'; '.join(map(str, problems))}")
    if isinstance(budget := value.get("budget"), dict):
        value["budget"] = convert_amounts(budget)
    try:
        return msgspec.convert(value, SettingsLimits)
    except msgspec.ValidationError as error:
        known_fields = "agents, [sandbox] mode, reads, network and hosts, [env] pass, [budget]"
        raise UserError(f"{path}: {error}; it knows {known_fields}") from None
