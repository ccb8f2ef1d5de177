"""`steersman acknowledge`: writes what fails on a run's base tree into `known_failures` of steersman.toml.

**Invariant:** a person's word: nothing that works for a run can acknowledge, and nothing is written unshown.
"""

import click

from steersman.app.known_failures import (
    KNOWN_FAILURES_KEY,
    choose_known_failures,
    edit_known_failures,
    write_known_failures,
)
from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_REFUSED, CommandContext, define_command
from steersman.faces.cli.person_events import refuse_agent_caller
from steersman.faces.cli.trust_prompt import open_settings_trust

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
    choice = choose_known_failures(context.read_only_runs, context.principal, run_id, loaded.config, names)
    for name, reason in choice.refused:
        context.warn(f"{name} cannot be acknowledged: {reason}", fg="yellow")
    if not choice.names:
        context.set_result({"file": str(loaded.path), "added": [], "exit_code": EXIT_DONE})
        context.print(
            f"nothing to add: what fails on the base tree of {run_id} is acknowledged in {loaded.path}"
        )
        return EXIT_DONE
    new_text = edit_known_failures(loaded.path, choice.names)
    context.print(f"to be added to {KNOWN_FAILURES_KEY} in {loaded.path}:")
    for line in _render_acknowledged_names(choice.names):
        context.print(line)
    if not yes and not context.confirm(
        "Acknowledge these failures?", "Add --yes to write without a question"
    ):
        return EXIT_REFUSED
    trust = open_settings_trust(context, loaded)
    write_known_failures(trust, context.principal, loaded.path, new_text, context.read_config)
    context.set_result(
        {
            "file": str(loaded.path),
            "added": list(choice.names),
            "next": [choice.next_command],
            "exit_code": EXIT_DONE,
        }
    )
    context.print(
        f"{len(choice.names)} written; a failure that is not among them still fails a check", fg="green"
    )
    context.print("next:")
    context.print(f"  {choice.next_command}")
    return EXIT_DONE


def _render_acknowledged_names(names: tuple[str, ...]) -> list[str]:
    remaining_count = len(names) - MAX_ACKNOWLEDGED_NAMES
    return [
        *(f"  {name}" for name in names[:MAX_ACKNOWLEDGED_NAMES]),
        *([f"  and {remaining_count} more"] if remaining_count > 0 else []),
    ]
