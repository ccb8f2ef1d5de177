"""`send`, `followup`, `abort`: a person's events. The kernel refuses what a person may not cause, and says so on tape."""

from typing import Any

import click

from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext, define_command
from steersman.faces.cli.drive import wait_for_verdict
from steersman.faces.cli.person_events import refuse_agent_caller
from steersman.judges.text import escape_surrogates, has_visible_text

FOLLOWUP_COMMAND_EVENT = "task_followup_received"


@define_command(
    "send",
    'steersman send 261116-abc aborted_by_operator --data \'{"choice": "abort"}\'',
    "steersman why 261116-abc      # what is legal now",
)
@click.argument("run")
@click.argument("event")
@click.option("--data", default="{}", metavar="JSON", help="What the event carries.")
@click.option("--reason", default="", help="Why; it stays on tape.")
def send_command(context: CommandContext, *, run: str, event: str, data: str, reason: str) -> int:
    """Send RUN an EVENT that a person may cause. A refused one is on tape too, and what is legal now is shown."""
    return send_person_event(context, context.runs.find(run), event, _parse_event_data(data), reason)


@define_command(
    "followup",
    'steersman followup 261116-abc "also handle negative numbers"',
    "steersman followup 261116-abc --confirm",
)
@click.argument("run")
@click.argument("text", required=False, default="")
@click.option("--confirm", is_flag=True, help="Confirm the proposal that waits: the same as `approve`.")
def followup_command(context: CommandContext, *, run: str, text: str, confirm: bool) -> int:
    """Ask a RUN that has its outcome for more. Iterations start afresh, budgets do not."""
    run_id = context.runs.find(run)
    if confirm == has_visible_text(text):
        raise UserError('a follow-up is either words or --confirm: steersman followup RUN "what else"')
    return _confirm_proposal(context, run_id) if confirm else send_followup(context, run_id, text)


def send_followup(context: CommandContext, run: str, text: str) -> int:
    """A person's words to a run that has its outcome."""
    ref = context.runs.text(run, text)
    return send_person_event(
        context,
        run,
        FOLLOWUP_COMMAND_EVENT,
        {"choice": "followup", "text": ref, "person": context.person},
        "",
    )


def _confirm_proposal(context: CommandContext, run: str) -> int:
    refusal_code = refuse_agent_caller(context, run, "approve")
    if refusal_code is not None:
        return refusal_code
    open_gates = [
        open_gate
        for open_gate in context.runs.ports.journal.gates(run)
        if not open_gate.answer and open_gate.job == "confirm"
    ]
    if not open_gates:
        raise UserError(f"run {run} has no proposal to confirm: see `{context.command_prefix} why {run}`")
    return wait_for_verdict(context, run, context.runs.answer(open_gates[0], "approve", context.person))


@define_command(
    "abort",
    "steersman abort 261116-abc",
    'steersman abort 261116-abc --reason "wrong branch"',
    exits="0 the run has stopped as asked · 2 wrong usage · 4 refused · 5 store trouble",
)
@click.argument("run")
@click.option("--reason", default="", help="Why; it stays on tape.")
def abort_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Stop RUN for good, with everything it has started."""
    return abort_run(context, context.runs.find(run), reason)


def abort_run(context: CommandContext, run: str, reason: str) -> int:
    """Ends a run for good."""
    refusal_code = refuse_agent_caller(context, run, "abort")
    if refusal_code is not None:
        return refusal_code
    return wait_for_verdict(context, run, context.runs.abort(run, context.person, reason), wanted_end=True)


def send_person_event(
    context: CommandContext, run: str, event: str, data: dict[str, Any], reason: str
) -> int:
    """A person's event, and what became of it."""
    refusal_code = refuse_agent_caller(context, run, event)
    if refusal_code is not None:
        return refusal_code
    return wait_for_verdict(context, run, context.runs.send(run, event, data, context.person, reason))


def _parse_event_data(json_text: str) -> dict[str, Any]:
    import msgspec

    try:
        return msgspec.json.decode(escape_surrogates(json_text), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UserError(
            f'--data is not a JSON object: {error}; write for example \'{{"choice": "…"}}\''
        ) from None
