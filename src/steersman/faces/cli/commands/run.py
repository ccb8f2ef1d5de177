"""`steersman run`: a task for the crew. **Invariant:** there is no flag that approves."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from steersman.contracts.machine_names import DEFAULT_MACHINE
from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, CommandContext, define_command
from steersman.faces.cli.issue_text import ISSUE_OPTION_HELP, ISSUE_TASK_TEXT, read_issue_text
from steersman.judges.text import has_visible_text

if TYPE_CHECKING:
    from steersman.contracts.config import Config
    from steersman.engine.machine_package import StartPlan
    from steersman.engine.start import StartRequest


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
    issue_text = read_issue_text(issue)
    task = task if has_visible_text(task) or not issue_text else ISSUE_TASK_TEXT
    if not has_visible_text(task):
        raise UserError('a run needs a task: steersman run "what to do"')
    from steersman.faces.cli.dry_run import print_dry_run, require_machine, require_unattended_ready

    require_machine(context, machine)
    started_by = context.services.installed_packages()[machine].started_by
    if started_by:
        raise UserError(f"{machine} is not started by run: use `{context.command_prefix} {started_by}`")
    config = context.load_config(ask=not unattended).config
    start = plan_run_start(context, machine, config, {name: value for name, value in given.items() if value})
    options = {**start.options, **({"red_base": "fix"} if fix_base else {})}
    if dry:
        return print_dry_run(context, machine, config, options)
    from steersman.engine.start import StartRequest

    order = StartRequest(machine, task, context.person, config, options, start.texts, start.roles, issue_text)
    if unattended:
        require_unattended_ready(context, machine, config, options)
    warn_uncommitted_changes(context, config)
    context.create_runs()
    return _start_detached_run(context, order) if detach else _start_watched_run(context, order)


def plan_run_start(
    context: CommandContext, machine: str, config: "Config", given: dict[str, Any]
) -> "StartPlan":
    """What the machine makes of the options; other runs are looked up where a store is."""
    from steersman.app.start import plan_start

    journal = context.journal if given.get("after") or context.has_store() else None
    ports = context.services.open_ports(context.project, journal=journal)
    return plan_start(ports, ports.packages[machine], config, given)


def warn_uncommitted_changes(context: CommandContext, config: Any) -> None:
    """Says what of the checkout the run does not use; where no run can start, no store is made."""
    from steersman.engine.project_files import describe_checkout_differences

    workspace = context.services.open_ports(context.project, journal=None).workspace(config)
    problem = workspace.find_start_problem()
    if problem:
        raise UserError(problem)
    base = workspace.base(config.base or None)
    if base.dirty:
        context.warn(
            f"note: your checkout has uncommitted changes; the run starts from commit {base.commit[:12]} without them",
            fg="yellow",
        )
    for difference in describe_checkout_differences(workspace, config, base.commit):
        context.warn(f"note: {difference}", fg="yellow")


def _start_watched_run(context: CommandContext, order: "StartRequest") -> int:
    from steersman.faces.cli.drive import drive_new_run

    return drive_new_run(context, order)


def _start_detached_run(context: CommandContext, order: "StartRequest") -> int:
    from steersman.faces.cli.drive import start_background_driver

    _, lock, active_run = asyncio.run(context.runs.start(order))
    lock.release()
    log = start_background_driver(context, active_run.run)
    context.print(f"{active_run.run}")
    context.print(f"goes on in the background, log in {log}: {context.command_prefix} watch {active_run.run}")
    context.set_result({"run": active_run.run, "log": log, "exit_code": EXIT_DONE})
    return EXIT_DONE
