"""`steersman gates`: what waits for a person's answer."""

from typing import TYPE_CHECKING

import click
import msgspec

from steersman.errors import SteersmanError
from steersman.faces.cli.context import CommandContext, define_command
from steersman.views.gates import (
    EVIDENCE_GATE,
    MAX_GATE_EXCERPT,
    MAX_GATE_TEXT,
    describe_gate,
    gate_commands,
    gate_question,
    render_gate_lines,
)

if TYPE_CHECKING:
    from steersman.engine.machine_package import MachinePackage
    from steersman.engine.run_view import RunView
    from steersman.ports.journal import Gate
    from steersman.views.base_stop import Remedy
    from steersman.views.gates import GateView
    from steersman.views.run_summary import GuardOverride, PayloadReader


class _ShownGate(msgspec.Struct, frozen=True, eq=False):
    """An open gate with what is said about it; of a run that cannot be read only that."""

    gate: "GateView"
    text: "PayloadReader"
    package: "MachinePackage | None" = None
    cause: str = ""
    side_commands: tuple[str, ...] = ()
    remedies: "tuple[Remedy, ...]" = ()
    failures: tuple[str, ...] = ()
    overrides: "tuple[GuardOverride, ...]" = ()
    not_isolated: str = ""


@define_command(
    "gates",
    "steersman gates",
    "steersman gates 261116-abc --full",
    exits="0 done · 2 wrong usage · 5 store trouble",
)
@click.argument("run", required=False)
@click.option("--full", is_flag=True, help="The whole texts the gate is about.")
def gates_command(context: CommandContext, *, run: str | None, full: bool) -> None:
    """What waits for a person's answer, with the texts it is about and the commands that answer; of RUN, or of all runs,
    then with the beginning of each text."""
    if not run and not context.has_store():
        context.set_result([])
        context.print("nothing waits for you")
        return
    shown_gates = _list_shown_gates(context, run)
    context.set_result([_gate_fields(context, shown) for shown in shown_gates])
    ports = context.read_only_runs.ports
    for name, reason in ({} if run else ports.journal.quarantined()).items():
        context.warn(
            f"run {name} is put aside: {reason}: {context.command_prefix} audit verify {name}", fg="red"
        )
    if not shown_gates:
        context.print("nothing waits for you")
    titles = {head.run: head.title for head in ports.journal.heads(unfinished=True, limit=100_000)}
    line_limit = None if full else MAX_GATE_TEXT if run else MAX_GATE_EXCERPT
    for shown in shown_gates:
        context.print(f"run {shown.gate.run} · {titles.get(shown.gate.run, '')}", bold=True)
        _print_gate(context, shown, line_limit, with_failures=bool(run))


def _list_shown_gates(context: CommandContext, run: str | None) -> list[_ShownGate]:
    """The gates that nobody has answered, of one run or of all; each run is read once."""
    from steersman.engine.projections import read_run_view

    ports = context.read_only_runs.ports
    run_id = context.read_only_runs.find(run) if run else None
    shown_gates, views = [], dict[str, "RunView | SteersmanError"]()
    for gate in (g for g in ports.journal.gates(run_id) if not g.answer):
        if gate.run not in views:
            try:
                views[gate.run] = read_run_view(ports, gate.run)
            except (
                SteersmanError
            ) as error:  # among others, one that cannot be read does not hide what else waits
                if run is not None:
                    raise
                views[gate.run] = error
        shown_gates.append(_show_gate(context, gate, views[gate.run]))
    return shown_gates


def _show_gate(context: CommandContext, gate: "Gate", view: "RunView | SteersmanError") -> _ShownGate:
    from steersman.engine.machine_package import find_package
    from steersman.views.screen import base_remedies_for_run

    if isinstance(view, SteersmanError):
        problem = f"(this text cannot be read: {view})"
        return _ShownGate(describe_gate(None, gate), lambda _: problem)
    status = view.status
    failing = [line for check in status.checks for line in check.failure] if gate.job == EVIDENCE_GATE else []
    return _ShownGate(
        describe_gate(view.machine, gate),
        view.text,
        find_package(context.read_only_runs.ports.packages, view.machine),
        status.cause,
        status.side_commands,
        tuple(base_remedies_for_run(status, context.command_prefix)) if status.base_problem else (),
        tuple(failing),
        status.overrides,
        status.not_isolated,
    )


def _gate_fields(context: CommandContext, shown: _ShownGate) -> dict[str, object]:
    """One gate for programs."""
    return {
        **msgspec.to_builtins(shown.gate),
        "question": gate_question(shown.gate),
        "why": shown.cause,
        "commands": gate_commands(shown.gate, context.command_prefix),
        "not_isolated": shown.not_isolated,
        "overrides": shown.overrides,
        "remedies": shown.remedies,
    }


def _print_gate(
    context: CommandContext, shown: _ShownGate, line_limit: int | None, *, with_failures: bool
) -> None:
    from steersman.views.base_stop import remedy_lines
    from steersman.views.gates import no_gate_items
    from steersman.views.run_summary import override_line

    gate_lines = render_gate_lines(
        shown.gate,
        shown.text,
        context.command_prefix,
        split_text=shown.package.split_gate_text if shown.package is not None else no_gate_items,
        most=line_limit,
        not_isolated=shown.not_isolated,
        cause=shown.cause,
        more=[f"{context.command_prefix} {command}" for command in shown.side_commands],
        waived=[override_line(override) for override in shown.overrides],
    )
    failures = shown.failures if with_failures else ()
    remedies = remedy_lines(list(shown.remedies))
    for line in (*failures, *gate_lines, *([""] if remedies else []), *remedies):
        context.print(line)
    context.print()
