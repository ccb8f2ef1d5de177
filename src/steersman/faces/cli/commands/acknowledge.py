"""`steersman acknowledge`: writes what fails on a run's base tree into `known_failures` of steersman.toml.

**Invariant:** a person's word: nothing that works for a run can acknowledge, and nothing is written unshown.
"""

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import click

from steersman.contracts.commands import CommandResult
from steersman.contracts.config import Config
from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_REFUSED, CommandContext, define_command
from steersman.faces.cli.person_events import refuse_agent_caller
from steersman.faces.cli.trust_prompt import is_config_trusted, record_trust
from steersman.kernel.snapshot import runtime_field

KNOWN_FAILURES_KEY = "known_failures"
MAX_ACKNOWLEDGED_NAMES = 12


@define_command(
    "acknowledge",
    "steersman acknowledge 261116-abc",
    "steersman acknowledge 261116-abc tests/test_shop.py::test_cart --yes",
    exits="0 written, or nothing to write · 2 wrong usage · 4 you did not agree",
)
@click.argument("run")
@click.argument("names", nargs=-1)
@click.option("--yes", is_flag=True, help="Write the file without a question.")
def acknowledge_command(context: CommandContext, *, run: str, names: tuple[str, ...], yes: bool) -> int:
    """Accept failures on the base tree of RUN: all of them, or only NAMES.

    The command adds the names to `known_failures` in steersman.toml and changes nothing else in the file. Later runs start although these tests fail."""
    run_id = context.read_only_runs.find(run)
    refusal_code = refuse_agent_caller(context, run_id, "acknowledge")
    if refusal_code is not None:
        return refusal_code
    loaded = context.read_config()
    if loaded.path is None:
        raise UserError(f"there is no steersman.toml to write to: run `{context.command_prefix} init` first")
    chosen_names = _choose_acknowledged_names(
        context, _load_base_results(context, run_id), names, loaded.config
    )
    if not chosen_names:
        context.set_result({"file": str(loaded.path), "added": [], "exit_code": EXIT_DONE})
        context.print(
            f"nothing to add: what fails on the base tree of {run_id} is acknowledged in {loaded.path}"
        )
        return EXIT_DONE
    new_text = edit_known_failures(loaded.path, chosen_names)
    for line in (
        f"to be added to {KNOWN_FAILURES_KEY} in {loaded.path}:",
        *_render_acknowledged_names(chosen_names),
    ):
        context.print(line)
    if not yes and not context.confirm(
        "Acknowledge these failures?", "Add --yes to write without a question"
    ):
        return EXIT_REFUSED
    write_known_failures(context, loaded, new_text)
    next_command = _next_run_command(context, run_id)
    context.set_result(
        {
            "file": str(loaded.path),
            "added": list(chosen_names),
            "next": [next_command],
            "exit_code": EXIT_DONE,
        }
    )
    context.print(
        f"{len(chosen_names)} written; a failure that is not among them still fails a check", fg="green"
    )
    context.print("next:")
    context.print(f"  {next_command}")
    return EXIT_DONE


def _load_base_results(context: CommandContext, run: str) -> list[CommandResult]:
    import msgspec

    run_context: Any = context.read_only_runs.live(run).snapshot.context
    ref = runtime_field(run_context, "baseline_ref")
    if not ref:
        raise UserError(
            f"no check of run {run} has been run on its base tree: see `{context.command_prefix} show {run}`"
        )
    try:
        return msgspec.json.decode(
            context.read_only_runs.live(run).payloads.get(ref), type=list[CommandResult]
        )
    except msgspec.MsgspecError:
        raise UserError(f"the results of run {run} were pruned: start a new run") from None


def _choose_acknowledged_names(
    context: CommandContext, results: list[CommandResult], names: tuple[str, ...], config: Config
) -> tuple[str, ...]:
    from steersman.judges.evidence.baseline import find_acknowledgeable_failures, is_known_failure

    known_failures = frozenset(config.known_failures)
    acknowledgeable_failures = find_acknowledgeable_failures(results, known_failures, config.no_tests)
    for name, reason in acknowledgeable_failures.refused:
        context.warn(f"{name} cannot be acknowledged: {reason}", fg="yellow")
    if acknowledgeable_failures.refused and not acknowledgeable_failures.names:
        raise UserError("nothing here can be acknowledged: correct the checks above in steersman.toml")
    unknown_names = [
        name
        for name in names
        if not is_known_failure(name, (*acknowledgeable_failures.names, *known_failures))
    ]
    if unknown_names:
        raise UserError(
            f"{unknown_names[0]} did not fail on the base tree; what did: {', '.join(acknowledgeable_failures.names)}"
        )
    return (
        tuple(
            failure_name
            for failure_name in acknowledgeable_failures.names
            if is_known_failure(failure_name, names)
        )
        if names
        else acknowledgeable_failures.names
    )


def edit_known_failures(path: Path, names: Sequence[str]) -> str:
    """The text of the file with these names in known_failures and everything else as it is."""
    from steersman.judges.config.toml_lines import add_to_toml_list

    try:
        new_text = add_to_toml_list(path.read_text(encoding="utf-8"), KNOWN_FAILURES_KEY, names)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if new_text is None:
        raise UserError(
            f"cannot edit {path} safely; add these to {KNOWN_FAILURES_KEY} by hand: {', '.join(names)}"
        )
    return new_text


def write_known_failures(context: CommandContext, loaded: Any, text: str) -> None:
    """Writes what a person has just read; settings that were trusted stay so."""
    was_trusted = is_config_trusted(context, loaded)
    write_settings_file(loaded.path, text)
    if was_trusted:
        record_trust(context, loaded, context.read_config().powerful)


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


def _render_acknowledged_names(names: tuple[str, ...]) -> list[str]:
    remaining_count = len(names) - MAX_ACKNOWLEDGED_NAMES
    return [
        *(f"  {name}" for name in names[:MAX_ACKNOWLEDGED_NAMES]),
        *([f"  and {remaining_count} more"] if remaining_count > 0 else []),
    ]


def _next_run_command(context: CommandContext, run: str) -> str:
    from steersman.views.base_stop import start_again_command

    active_run = context.read_only_runs.live(run)
    return start_again_command(active_run.snapshot.machine, active_run.title, context.command_prefix)
