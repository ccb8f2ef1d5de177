"""`revert`: takes a delivered change back, by a commit of its own. **Invariant:** a person's event like any other."""

import click

from steersman.engine.projections import read_run_view
from steersman.faces.cli.context import EXIT_REFUSED, CommandContext, define_command
from steersman.faces.cli.drive import wait_for_verdict
from steersman.faces.cli.person_events import refuse_agent_caller
from steersman.kernel.snapshot import context_fields

REVERT_COMMAND_EVENT = "revert_requested"


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
    """Has a delivered change undone."""
    if context.runs.head(run_id).machine == "task":
        from steersman.errors import UserError
        from steersman.faces.repl.run_actions import RunActions

        if branch:
            raise UserError("a task is taken back where it was delivered to: leave --on out")
        return RunActions(context, run_id).revert(reason)
    refusal_code = refuse_agent_caller(context, run_id, REVERT_COMMAND_EVENT)
    if refusal_code is not None:
        return refusal_code
    data = {"branch": branch, "person": context.person}
    code = wait_for_verdict(
        context, run_id, context.runs.send(run_id, REVERT_COMMAND_EVENT, data, context.person, reason)
    )
    if code == EXIT_REFUSED:
        context.warn(
            _revert_refusal_reason(
                context_fields(read_run_view(context.runs.ports, run_id).snapshot.context)
            ),
            fg="yellow",
        )
    return code


def _revert_refusal_reason(run_fields: dict[str, object]) -> str:
    if run_fields.get("handover") == "reverted":
        return f"it was taken back already, by commit {str(run_fields.get('reverted_commit'))[:12]}"
    if run_fields.get("outcome") != "approved":
        return "it has delivered nothing: only an approved change can be taken back"
    return "it has delivered nothing that could be taken back"
