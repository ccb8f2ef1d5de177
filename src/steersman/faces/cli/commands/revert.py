"""`revert`: undoes a delivered change by a new commit. **Invariant:** it is a person's event like any other."""

import click

from steersman.faces.cli.context import EXIT_REFUSED, CommandContext, define_command
from steersman.faces.cli.person_events import post_and_drive


@define_command(
    "revert",
    "steersman revert 261116-abc",
    'steersman revert 261116-abc --on release/1.2 --reason "breaks the import"',
    exits="0 taken back · 1 it could not be: nothing was changed · 2 wrong usage · 4 refused · 5 store trouble",
)
@click.argument("run")
@click.option(
    "--on", "branch", default="", metavar="BRANCH", help="Where the change is (default: where it went)."
)
@click.option("--reason", default="", help="Why; it stays on tape.")
def revert_command(context: CommandContext, *, run: str, branch: str, reason: str) -> int:
    """Take back what RUN has delivered: a commit on top of the branch undoes it, whatever came later.

    Where later commits have changed the same lines, nothing is changed, and the files are named.
    """
    return revert_delivered_change(context, context.runs.find(run), branch, reason)


def revert_delivered_change(context: CommandContext, run_id: str, branch: str, reason: str) -> int:
    """Undoes a delivered change by a new commit."""
    if context.runs.head(run_id).machine == "task":
        from steersman.errors import UserError
        from steersman.faces.repl.run_actions import RunActions

        if branch:
            raise UserError("a task is taken back where it was delivered to: leave --on out")
        return RunActions(context, run_id).revert(reason)
    from steersman.app.actions import explain_refused_revert, post_revert

    code = post_and_drive(
        context, lambda: post_revert(context.runs, context.principal, run_id, branch, reason)
    )
    if code == EXIT_REFUSED and context.principal.may_approve:
        context.warn(explain_refused_revert(context.runs.ports, run_id), fg="yellow")
    return code
