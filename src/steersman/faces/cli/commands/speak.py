"""`send`, `followup`, `abort`: a person's events. The kernel refuses what a person may not cause, and says so on tape."""

from typing import Any

import click

from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext, define_command
from steersman.faces.cli.person_events import post_and_drive
from steersman.judges.text import escape_surrogates, has_visible_text


@define_command(
    "send",
    'steersman send 261116-abc aborted_by_operator --data \'{"choice": "abort"}\'',
    "steersman why 261116-abc      # what is legal now",
)
@click.argument("run")
@click.argument("event")
@click.option("--data", default="{}", metavar="JSON", help="The data of the event, as a JSON object.")
@click.option("--reason", default="", help="The reason. It is recorded on the tape.")
def send_command(context: CommandContext, *, run: str, event: str, data: str, reason: str) -> int:
    """Send RUN an EVENT by its name. Only events of persons are allowed. If the event is not legal now, the command prints what is legal, and the refusal is recorded too."""
    return send_person_event(context, context.runs.find(run), event, _parse_event_data(data), reason)


@define_command(
    "followup",
    'steersman followup 261116-abc "also handle negative numbers"',
    "steersman followup 261116-abc --confirm",
)
@click.argument("run")
@click.argument("text", required=False, default="")
@click.option("--confirm", is_flag=True, help="Approve the proposal that waits. The same as `approve`.")
def followup_command(context: CommandContext, *, run: str, text: str, confirm: bool) -> int:
    """Give a RUN that has its outcome another task, TEXT. Rounds are counted from zero again. The budget is not reset."""
    run_id = context.runs.find(run)
    if confirm == has_visible_text(text):
        raise UserError('a follow-up is either words or --confirm: steersman followup RUN "what else"')
    return _confirm_proposal(context, run_id) if confirm else send_followup(context, run_id, text)


def send_followup(context: CommandContext, run: str, text: str) -> int:
    """Asks a run that has its outcome for more, and drives it."""
    from steersman.app.actions import post_follow_up

    return post_and_drive(context, lambda: post_follow_up(context.runs, context.principal, run, text))


def _confirm_proposal(context: CommandContext, run: str) -> int:
    from steersman.app.actions import confirm_proposal

    return post_and_drive(context, lambda: confirm_proposal(context.runs, context.principal, run))


@define_command(
    "abort",
    "steersman abort 261116-abc",
    'steersman abort 261116-abc --reason "wrong branch"',
    exits="0 the run has ended as asked · 2 wrong usage · 4 refused · 5 store trouble",
)
@click.argument("run")
@click.option("--reason", default="", help="The reason. It is recorded on the tape.")
def abort_command(context: CommandContext, *, run: str, reason: str) -> int:
    """End RUN for good, and stop every program that it has started."""
    return abort_run(context, context.runs.find(run), reason)


def abort_run(context: CommandContext, run: str, reason: str) -> int:
    """Stops a run for good."""
    from steersman.app.actions import post_abort

    return post_and_drive(context, lambda: post_abort(context.runs, context.principal, run, reason))


def send_person_event(
    context: CommandContext, run: str, event: str, data: dict[str, Any], reason: str
) -> int:
    """Sends a person's event and drives the run until the verdict."""
    from steersman.app.actions import post_event

    return post_and_drive(
        context, lambda: post_event(context.runs, context.principal, run, event, data, reason)
    )


def _parse_event_data(json_text: str) -> dict[str, Any]:
    import msgspec

    try:
        return msgspec.json.decode(escape_surrogates(json_text), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UserError(
            f'--data is not a JSON object: {error}; write for example \'{{"choice": "…"}}\''
        ) from None
