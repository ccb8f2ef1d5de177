"""Known failures: what fails on a base tree and can be acknowledged, and the settings file with these names in it.

**Invariant:** a person's word: nothing that works for a run can acknowledge. Writing changes nothing else in the file.
"""

import os
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from steersman.app.principal import Principal, require_person, require_person_for_run
from steersman.app.runs import RunService
from steersman.app.trust import SettingsTrust
from steersman.contracts.commands import CommandResult
from steersman.contracts.config import Config
from steersman.contracts.limits import LoadedConfig
from steersman.errors import UserError
from steersman.judges.config.toml_lines import add_to_toml_list
from steersman.judges.evidence.baseline import find_acknowledgeable_failures, is_known_failure
from steersman.kernel.snapshot import runtime_field
from steersman.views.base_stop import start_again_command

KNOWN_FAILURES_KEY = "known_failures"


class KnownFailureChoice(msgspec.Struct, frozen=True):
    """What of a base tree's failures is to be acknowledged, and what cannot be."""

    names: tuple[str, ...]  # empty where all of it is acknowledged already
    refused: tuple[tuple[str, str], ...]  # the name of a check, and why
    next_command: str  # starts the run again once they are written


def choose_known_failures(
    runs: RunService, principal: Principal, run: str, config: Config, names: Sequence[str] = ()
) -> KnownFailureChoice:
    """What a person can acknowledge of the failures on a run's base tree: all of it, or only what `names` says."""
    require_person_for_run(runs.ports, principal, run, "acknowledge")
    known = frozenset(config.known_failures)
    results = _read_base_results(runs, principal, run)
    failures = find_acknowledgeable_failures(results, known, config.no_tests)
    if failures.refused and not failures.names:
        reasons = [f"{name} cannot be acknowledged: {reason}" for name, reason in failures.refused]
        advice = "nothing here can be acknowledged: correct these checks in steersman.toml"
        raise UserError("\n".join((*reasons, advice)))
    unknown = [name for name in names if not is_known_failure(name, (*failures.names, *known))]
    if unknown:
        failed = ", ".join(failures.names)
        raise UserError(f"{unknown[0]} did not fail on the base tree; what did: {failed}")
    chosen = tuple(name for name in failures.names if not names or is_known_failure(name, names))
    head = runs.head(run)
    next_command = start_again_command(head.machine, head.title, principal.command_prefix)
    return KnownFailureChoice(chosen, tuple(failures.refused), next_command)


def _read_base_results(runs: RunService, principal: Principal, run: str) -> list[CommandResult]:
    active_run = runs.live(run)
    context: Any = active_run.snapshot.context
    ref = runtime_field(context, "baseline_ref")
    if not ref:
        raise UserError(
            f"no check of run {run} has been run on its base tree: see `{principal.command_prefix} show {run}`"
        )
    try:
        return msgspec.json.decode(active_run.payloads.get(ref), type=list[CommandResult])
    except msgspec.MsgspecError:
        raise UserError(f"the results of run {run} were pruned: start a new run") from None


def edit_known_failures(path: Path, names: Sequence[str]) -> str:
    """The text of the file with these names in known_failures and everything else as it is."""
    try:
        new_text = add_to_toml_list(path.read_text(encoding="utf-8"), KNOWN_FAILURES_KEY, names)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if new_text is None:
        raise UserError(
            f"cannot edit {path} safely; add these to {KNOWN_FAILURES_KEY} by hand: {', '.join(names)}"
        )
    return new_text


def write_known_failures(
    trust: SettingsTrust, principal: Principal, path: Path, text: str, reload: Callable[[], LoadedConfig]
) -> None:
    """Writes what a person has just read; settings that were trusted stay so."""
    require_person(principal)
    was_trusted = trust.is_trusted
    write_settings_file(path, text)
    if was_trusted:
        trust.reload(reload()).record(principal)


def write_settings_file(path: Path, text: str) -> None:
    """Writes steersman.toml, or says who has to look after it."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; check who owns the directory") from None


def write_config_with_backup(path: Path, config_text: str) -> str:
    """Writes the file; one that was there with other words is kept beside it. Returns the path of that copy."""
    backup_path = ""
    try:
        if path.exists() and (old_bytes := path.read_bytes()) != config_text.encode():
            backup_paths = (f"{path}.bak{number or ''}" for number in count())
            backup_path = next(name for name in backup_paths if not os.path.lexists(name))
            Path(backup_path).write_bytes(old_bytes)
    except OSError as error:
        raise UserError(f"cannot keep a copy of {path}: {error.strerror}; move it away yourself") from None
    write_settings_file(path, config_text)
    return backup_path
