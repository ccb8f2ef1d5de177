"""`steersman run`: gives a task to agents and drives it. **Invariant:** there is no flag that approves."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from steersman.contracts.machine_names import DEFAULT_MACHINE
from steersman.faces.cli.context import EXIT_DONE, CommandContext, define_command
from steersman.faces.cli.issue_text import ISSUE_OPTION_HELP, read_issue_text

if TYPE_CHECKING:
    from steersman.app.start import RunOrder, StartRequest
    from steersman.contracts.config import Config


@define_command(
    "run",
    'steersman run "Add a --verbose flag"',
    'steersman run "Fix the rounding bug" --mode implementation --max-iterations 5',
    'steersman run "Rewrite the parser" --dry',
    'steersman run "Make the failing tests pass" --fix-base',
    'steersman run "Port the tests" --detach',
    'steersman run "Fix the rounding bug" --as task --plan ../plan',
    'steersman run "Fix what this report describes" --issue report.md',
    "steersman run --issue report.md",
)
@click.argument("task", required=False, default="")
@click.option("--issue", default="", metavar="FILE", help=ISSUE_OPTION_HELP)
@click.option("--mode", type=click.Choice(["proposal", "implementation"]), default=None,
              help="proposal: the agents discuss a proposal and wait for your approval. implementation: they start to work without one. [default: proposal]")  # fmt: skip
@click.option(
    "--as",
    "machine",
    default=DEFAULT_MACHINE,
    show_default=True,
    metavar="MACHINE",
    help="The state machine: roundtable, task or coordinator.",
)
@click.option(
    "--max-iterations",
    type=click.IntRange(1, 50),
    default=None,
    help="Rounds of code, review and test (default: steersman.toml, else 3).",
)
@click.option("--after", multiple=True, metavar="RUN", help="For --as task: start when that task is accepted and its change is in the branch.")  # fmt: skip
@click.option("--plan", default="", metavar="DIR", help="For --as task: a frozen plan. Files and commands outside it are refused.")  # fmt: skip
@click.option("--key", default="", metavar="FILE", help="The public key (anchor.pub) of the project that froze the plan, if it is another project.")  # fmt: skip
@click.option("--fix-base", is_flag=True, help="Start although checks fail before any change. The run has to make them pass.")  # fmt: skip
@click.option(
    "--dry", is_flag=True, help="Create nothing; show gates, the most agent calls, checks and budget."
)
@click.option(
    "--detach",
    is_flag=True,
    help="Create the run and drive it in the background; returns when its driver has started.",
)
@click.option(
    "--unattended",
    is_flag=True,
    help="First check everything that could stop the run while no person is there.",
)
def run_command(
    context: CommandContext,
    *,
    task: str,
    issue: str,
    machine: str,
    fix_base: bool,
    dry: bool,
    detach: bool,
    unattended: bool,
    **given: Any,
) -> int:
    """Give TASK to the agents and watch them work.

    The command ends when the run waits for a person or has its outcome, and prints the next commands. Ctrl-C leaves the run as it is; `steersman resume` continues it."""
    from steersman.app.start import RunOrder, check_order

    order = RunOrder(
        machine=machine,
        task=task,
        issue=read_issue_text(issue) if issue else "",
        given={name: value for name, value in given.items() if value},
        fix_base=fix_base,
    )
    order = check_order(context.services.installed_packages(), order, context.command_prefix)
    config = context.load_config(ask=not unattended).config
    request = plan_run_start(context, config, order)
    if dry:
        from steersman.faces.cli.dry_run import print_dry_run

        return print_dry_run(context, machine, config, request.options)
    if unattended:
        from steersman.faces.cli.dry_run import require_unattended_ready

        require_unattended_ready(context, machine, config, request.options)
    warn_unused_changes(context, config)
    context.create_runs()
    if detach:
        return _start_detached_run(context, request)
    from steersman.faces.cli.drive import drive_new_run

    return drive_new_run(context, request)


def plan_run_start(context: CommandContext, config: "Config", order: "RunOrder") -> "StartRequest":
    """The order as the engine takes it; other runs are looked up where a store is."""
    from steersman.app.start import plan_request

    with_store = order.given.get("after") or context.has_store()
    ports = context.read_only_runs.ports if with_store else context.ports
    return plan_request(ports, context.principal, config, order)


def warn_unused_changes(context: CommandContext, config: "Config") -> None:
    """Prints what of the checkout the run does not use; where no run can start, no store is made."""
    from steersman.app.start import describe_unused_changes

    for note in describe_unused_changes(context.ports, config):
        context.warn(f"note: {note}", fg="yellow")


def _start_detached_run(context: CommandContext, request: "StartRequest") -> int:
    from steersman.app.start import start_in_background

    started = asyncio.run(start_in_background(context.runs, request))
    watch = f"{context.command_prefix} watch {started.run}"
    context.print(f"{started.run}")
    context.print(f"goes on in the background, log in {started.log}: {watch}")
    context.set_result({"run": started.run, "log": started.log, "exit_code": EXIT_DONE})
    return EXIT_DONE
