"""`revert`: undoes a delivered change by a new commit. **Invariant:** it is a person's event like any other."""

import click

from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_REFUSED, CommandContext, define_command
from steersman.faces.cli.person_events import post_and_drive


@define_command(
    "revert",
    "steersman revert 261116-abc",
    'steersman revert 261116-abc --on release/1.2 --reason "breaks the import"',
    exits="0 undone · 1 not possible, nothing was changed · 2 wrong usage · 4 refused · 5 store trouble",
)
@click.argument("run")
@click.option(
    "--on",
    "branch",
    default="",
    metavar="BRANCH",
    help="The branch with the change (default: the one that it was delivered to).",
)
@click.option("--reason", default="", help="The reason. It is recorded on the tape.")
def revert_command(context: CommandContext, *, run: str, branch: str, reason: str) -> int:
    """Undo what RUN has delivered, with a new commit on the branch. If later commits changed the same lines, the command changes nothing and names the files."""
    return revert_delivered_change(context, context.runs.find(run), branch, reason)


def revert_delivered_change(context: CommandContext, run_id: str, branch: str, reason: str) -> int:
    """Undoes a delivered change by a new commit."""
    from steersman.app.run_words import find_run_package
    from steersman.faces.repl.run_actions import WordPerformer

    if "revert" in find_run_package(context.read_only_runs, run_id).words:
        if branch:
            raise UserError("a task is reverted on the branch that it was delivered to. Leave --on out")
        return WordPerformer(context, run_id).perform("revert", reason)
    from steersman.app.actions import explain_refused_revert, post_revert

    code = post_and_drive(
        context, lambda: post_revert(context.runs, context.principal, run_id, branch, reason)
    )
    if code == EXIT_REFUSED and context.principal.may_approve:
        context.warn(explain_refused_revert(context.runs.ports, run_id), fg="yellow")
    return code
