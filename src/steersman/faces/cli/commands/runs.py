"""`steersman runs`: the listing, as cheap as its libraries."""

import time

import click

from steersman.faces.cli.context import CommandContext, define_command, terminal_columns
from steersman.views.listing import find_broken_runs, run_head_data, run_table_lines

DEFAULT_RUN_LIMIT = 20


@define_command(
    "runs",
    "steersman runs",
    "steersman runs --unfinished",
    "steersman runs --all --json",
    exits="0 done · 2 wrong usage · 5 store trouble",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help=f"List all runs, and child runs too (default: the last {DEFAULT_RUN_LIMIT} without child runs).",
)
@click.option("--unfinished", is_flag=True, help="List only runs that have no outcome or wait for a person.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=None, help="Show at most this many.")
def runs_command(context: CommandContext, *, everything: bool, unfinished: bool, limit: int | None) -> None:
    """List runs, the last changed first."""
    context.quiet = context.as_json
    if not context.has_store():
        context.set_result([])
        if not (context.services.list_anchored_runs(context.project_root) and _warn_missing_runs(context)):
            context.print(f'nothing has been run here yet: start with `{context.command_prefix} run "…"`')
        return
    journal = context.journal
    heads = journal.heads(
        unfinished=unfinished, limit=limit or (100_000 if everything else 10 * DEFAULT_RUN_LIMIT)
    )
    if not everything:
        heads = [head for head in heads if not head.parent][: limit or DEFAULT_RUN_LIMIT]
    broken = find_broken_runs(heads, journal.quarantined())
    listed_runs = {head.run for head in heads}
    if any(
        journal.find_runs(run)[:1] != [run]
        for run in context.services.list_anchored_runs(context.project_root) - listed_runs
    ):
        _warn_missing_runs(context)
    working_heads = [head for head in heads if head.status == "working" and head.run not in broken]
    idle_runs = [
        head.run
        for head in working_heads
        if not context.services.find_run_owner(context.project_root, head.run)
    ]
    if context.as_json:
        context.set_result([{**run_head_data(head, broken), "idle": head.run in idle_runs} for head in heads])
        return
    if not heads:
        empty_text = "no run is unfinished" if unfinished else "nothing has been run here yet"
        context.print(f'{empty_text}: start with `{context.command_prefix} run "…"`')
        return
    for line_number, line in enumerate(
        run_table_lines(heads, broken, time.time_ns() // 1_000_000, terminal_columns())
    ):
        context.print(line, bold=line_number == 0)
    for run in idle_runs:
        context.print(f"run {run} has no driver: {context.command_prefix} resume {run}", fg="yellow")


def _warn_missing_runs(context: CommandContext) -> bool:
    """A word beside the listing about what should be in it."""
    from steersman.faces.cli.missing_runs import (
        find_project_missing_runs,
        missing_runs_hint,
    )  # slow to import

    missing_runs = find_project_missing_runs(context)
    if missing_runs:
        context.warn(missing_runs_hint(context, missing_runs), fg="red")
    return bool(missing_runs)
