"""`steersman machine …`: the published tables are the executed tables."""

import asyncio
from typing import Any

import click

from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, CommandContext, define_command
from steersman.faces.cli.main import LazyGroup

MACHINE_MODULE = "machine"
MACHINE_COMMANDS = {
    "list": (f"{MACHINE_MODULE}:machine_list_command", "List the machines."),
    "show": (
        f"{MACHINE_MODULE}:machine_show_command",
        "Print a machine's table as Markdown, Mermaid or JSON.",
    ),
    "check": (
        f"{MACHINE_MODULE}:machine_check_command",
        "Explore every case of a machine and report problems.",
    ),
    "migrate": (
        f"{MACHINE_MODULE}:machine_migrate_command",
        "Move a paused run to the present version of its machine.",
    ),
    "lock": (
        f"{MACHINE_MODULE}:machine_lock_command",
        "Write or check the lock file of all deciding functions.",
    ),
}
MACHINE_EXIT_CODES = "0 done · 1 there are findings · 2 wrong usage"


@click.group(
    "machine",
    cls=LazyGroup,
    known=MACHINE_COMMANDS,
    no_args_is_help=False,
    epilog=f"Exit codes: {MACHINE_EXIT_CODES}",
)
def machine_group() -> None:
    """List, show, check, migrate and lock the state machines."""


@define_command("list", "steersman machine list", exits=MACHINE_EXIT_CODES)
def machine_list_command(context: CommandContext) -> None:
    """List the machines with their states, rows and definition digest."""
    machine_fields = [
        {
            "name": definition.name,
            "meaning": definition.meaning,
            "states": len(definition.states),
            "rows": len(definition.rows),
            "digest": definition.digest,
        }
        for definition in context.services.installed_machines().values()
    ]
    context.set_result(machine_fields)
    for definition in machine_fields:
        context.print(
            f"{definition['name']}  {definition['meaning']}  {definition['states']} states, {definition['rows']} rows, digest {definition['digest']}"
        )


@define_command(
    "show",
    "steersman machine show roundtable",
    "steersman machine show roundtable --format mermaid",
    "steersman machine show roundtable --format json",
    exits=MACHINE_EXIT_CODES,
)
@click.argument("name")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "mermaid", "json"]),
    default=None,
    help="[default: markdown]",
)
@click.option("--all", "stay_rows", is_flag=True, help="Include extension rows that stay in their state.")
def machine_show_command(context: CommandContext, *, name: str, form: str | None, stay_rows: bool) -> None:
    """Print the table of machine NAME: states, rows with guards, caps, labels and sources, and laws. Rows of the specification come first. JSON has every row in the order of evaluation."""
    definition = _find_installed_machine(context, name)
    match form or ("json" if context.as_json else "markdown"):
        case "json":
            import msgspec

            from steersman.views.machine_json import machine_json

            if context.as_json:
                context.set_result(machine_json(definition))
                return
            context.print(msgspec.json.format(msgspec.json.encode(machine_json(definition))).decode())
        case "mermaid":
            from steersman.views.mermaid import machine_diagram

            _print_machine_text(
                context, definition.name, "mermaid", machine_diagram(definition, stay_rows=stay_rows)
            )
        case _:
            from steersman.views.markdown import machine_markdown

            _print_machine_text(
                context, definition.name, "markdown", machine_markdown(definition, stay_rows=stay_rows)
            )


def _print_machine_text(context: CommandContext, name: str, form: str, machine_text: str) -> None:
    context.set_result({"name": name, form: machine_text})
    context.print(machine_text.rstrip("\n"))


@define_command(
    "check", "steersman machine check", "steersman machine check roundtable", exits=MACHINE_EXIT_CODES
)
@click.argument("name", required=False)
def machine_check_command(context: CommandContext, *, name: str | None) -> int:
    """Explore every case of machine NAME, or of every machine, and print the number of cases and every finding."""
    from steersman.kernel.check import check_machine as explore_machine

    definitions = (
        [_find_installed_machine(context, name)]
        if name
        else list(context.services.installed_machines().values())
    )
    reports = [explore_machine(definition) for definition in definitions]
    context.set_result([_model_check_fields(check_report) for check_report in reports])
    for check_report in reports:
        context.print(
            f"{check_report.machine}: {check_report.cases} cases, {len(check_report.findings) or 'no'} finding{'s' if len(check_report.findings) != 1 else ''}"
        )
        for finding in check_report.findings:
            context.print(f"  {finding}", fg="red")
    return EXIT_ENDED if any(check_report.findings for check_report in reports) else EXIT_DONE


def _model_check_fields(check_report: Any) -> dict[str, Any]:
    finding_fields = [
        {"kind": check_finding.kind, "where": check_finding.where, "path": list(check_finding.path)}
        for check_finding in check_report.findings
    ]
    return {"machine": check_report.machine, "cases": check_report.cases, "findings": finding_fields}


@define_command("migrate", 'steersman machine migrate 261116-abc --reason "the new table only adds a row"')
@click.argument("run")
@click.option(
    "--reason",
    required=True,
    help="The reason why the run may go on under another table. It is recorded on the tape.",
)
def machine_migrate_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Move the paused RUN to the present version of its machine."""
    from steersman.faces.cli.person_events import refuse_agent_caller

    run_id = context.runs.find(run)
    refusal_code = refuse_agent_caller(context, run_id, "migrate")
    if refusal_code is not None:
        return refusal_code
    head = asyncio.run(context.runs.migrate(run_id, context.person, reason))
    context.set_result(
        {"run": run_id, "definition": head.definition, "state": head.state, "exit_code": EXIT_DONE}
    )
    context.print(
        f"run {run_id} is on definition {head.definition} now, in {head.state}: {context.command_prefix} resume {run_id}"
    )
    return EXIT_DONE


@define_command(
    "lock",
    "steersman machine lock --check",
    "steersman machine lock   # after a version was raised",
    exits=MACHINE_EXIT_CODES,
)
@click.option(
    "--check",
    "only",
    is_flag=True,
    help="Change nothing; exit with 1 if a function changed without its version.",
)
@click.option("--file", "path", default=None, metavar="FILE", help="The lock file (default: machines.lock).")
def machine_lock_command(context: CommandContext, *, only: bool, path: str | None) -> int:
    """Write the lock file: a hash of every function and constant that decides. With --check, compare it."""
    lockfile_adapter = context.services.load_decision_lockfile()
    lock_path = path or str(lockfile_adapter.LOCK_PATH)
    problem_texts = (
        lockfile_adapter.check_machine_lock(lock_path)
        if only
        else _write_decision_lock(lockfile_adapter, lock_path)
    )
    context.set_result(
        {
            "file": lock_path,
            "problems": problem_texts,
            "exit_code": EXIT_ENDED if problem_texts else EXIT_DONE,
        }
    )
    for problem in problem_texts:
        context.print(problem, fg="red")
    if not problem_texts:
        context.print(f"{lock_path} is current" if only else f"{lock_path} is written")
    return EXIT_ENDED if problem_texts else EXIT_DONE


def _write_decision_lock(lockfile_adapter: Any, lock_path: str) -> list[str]:
    lockfile_adapter.write_machine_lock(lock_path)
    return []


def _find_installed_machine(context: CommandContext, name: str) -> Any:
    known_machines = context.services.installed_machines()
    if name not in known_machines:
        raise UserError(f"there is no machine {name!r}. Choose one of {', '.join(sorted(known_machines))}")
    return known_machines[name]
