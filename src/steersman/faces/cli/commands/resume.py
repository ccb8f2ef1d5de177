"""`resume` and `fork`: driving on from the end of a tape, or from any entry of it in a run of its own."""

import click

from steersman.errors import SteersmanError
from steersman.faces.cli.context import EXIT_DONE, EXIT_USAGE, EXIT_WAITING, CommandContext, define_command
from steersman.faces.cli.drive import resume_and_drive
from steersman.ports.journal import Head


@define_command(
    "resume", "steersman resume", "steersman resume 261116-abc", "steersman resume 261116-abc --take-over"
)
@click.argument("run", required=False)
@click.option(
    "--take-over",
    is_flag=True,
    help="Take the run over from a driver that is suspended or hangs. What that driver writes later is refused.",
)
@click.option("--detach", is_flag=True, help="Drive the run in the background.")
@click.option("--despite-verify", metavar="REASON", default=None,
              help="Continue although `audit verify` rejects the run. Your name and the reason are recorded on the tape.")  # fmt: skip
def resume_command(
    context: CommandContext, *, run: str | None, take_over: bool, detach: bool, despite_verify: str | None
) -> int:
    """Continue RUN from the end of its tape. Without RUN, the only run that can go on; if there are several, the command lists them."""
    _settle_cut_deliveries(context)
    if run is None:
        ready_heads = _list_ready_runs(context)
        if len(ready_heads) != 1:
            return _print_ready_runs(context, ready_heads)
        run = ready_heads[0].run
    run_id = context.runs.find(run)
    if despite_verify is not None:
        return _resume_despite_verify(context, run_id, despite_verify, take_over=take_over)
    if detach:
        from steersman.app.start import drive_in_background

        log = drive_in_background(context.runs.ports, run_id).log
        context.print(
            f"run {run_id} goes on in the background, log in {log}: {context.command_prefix} watch {run_id}"
        )
        context.set_result({"run": run_id, "log": log, "exit_code": 0})
        return 0
    return resume_and_drive(context, run_id, take_over=take_over)


def _resume_despite_verify(context: CommandContext, run: str, reason: str, *, take_over: bool) -> int:
    from steersman.faces.cli.person_events import refuse_agent_caller

    refusal_code = refuse_agent_caller(context, run, "resume --despite-verify")
    if refusal_code is not None:
        return refusal_code
    return resume_and_drive(context, run, take_over=take_over, despite_reason=reason)


def _settle_cut_deliveries(context: CommandContext) -> None:
    """Finishes or undoes deliveries that were cut short, of whichever run."""
    try:
        settled = context.runs.ports.workspace(context.read_config().config).settle_interrupted_deliveries()
    except SteersmanError as error:
        context.print(str(error))
        return
    for settled_text in settled:
        context.print(settled_text)


def _list_ready_runs(context: CommandContext) -> list[Head]:
    """Returns the runs that would go on if a driver took them now."""
    journal, now = context.runs.ports.journal, context.runs.ports.clock.now()
    return [
        head
        for head in context.runs.resumable()
        if head.status == "working" or (head.due is not None and head.due <= now) or journal.pending(head.run)
    ]


def _print_ready_runs(context: CommandContext, ready_heads: list[Head]) -> int:
    """Says which runs can go on, or that none can."""
    context.set_result(
        [
            {"run": ready_head.run, "state": ready_head.state, "title": ready_head.title}
            for ready_head in ready_heads
        ]
    )
    for head in ready_heads:
        context.print(f"{context.command_prefix} resume {head.run}    {head.state} · {head.title}")
    if ready_heads:
        context.print("several runs can be resumed. Name one")
        return EXIT_USAGE
    waiting_heads = context.runs.ports.journal.heads(unfinished=True)
    waiting_text = (
        f"{len(waiting_heads)} wait for a person: {context.command_prefix} gates"
        if waiting_heads
        else "and none waits"
    )
    context.print(f"no run can go on by itself now, {waiting_text}")
    return EXIT_WAITING if waiting_heads else EXIT_DONE


@define_command(
    "fork",
    "steersman fork 261116-abc --at 12",
    "steersman audit tape 261116-abc   # the entries to choose from",
)
@click.argument("run")
@click.option(
    "--at", type=click.IntRange(1), default=None, help="The entry to start from (default: the last)."
)
@click.option("--hold", is_flag=True, help="Create the new run, but do not start it.")
def fork_command(context: CommandContext, *, run: str, at: int | None, hold: bool) -> int:
    """Start a new run from the state and the tree that RUN had after one of its entries. RUN itself does not change."""
    import asyncio

    from steersman.app.actions import fork_run_at
    from steersman.faces.cli.person_events import refuse_agent_caller

    run_id = context.runs.find(run)
    refusal_code = refuse_agent_caller(context, run_id, "fork")
    if refusal_code is not None:
        return refusal_code
    forked = asyncio.run(fork_run_at(context.runs, context.principal, run_id, at))
    new_run = forked.run
    context.print(f"run {new_run} begins as {run_id} was after entry {forked.entry}")
    if hold:
        context.print(f"  {context.command_prefix} resume {new_run}")
        context.set_result({"run": new_run, "from": run_id, "exit_code": 0})
        return 0
    return resume_and_drive(context, new_run)
