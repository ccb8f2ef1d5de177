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
    gate_commands,
    gate_question,
    gate_reason,
    render_gate_lines,
)

if TYPE_CHECKING:
    from steersman.ports.journal import Gate
    from steersman.views.base_stop import Remedy
    from steersman.views.run_summary import PayloadReader


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
    open_gates = _list_open_gates(context, run)
    from steersman.engine.projections import read_overrides, recorded_isolation_warning
    from steersman.views.run_summary import override_line

    stalled = {open_gate.id: _describe_stalled_gate(context, open_gate) for open_gate in open_gates}
    ports = context.read_only_runs.ports
    isolation_notes = {gate.run: recorded_isolation_warning(ports, gate.run) for gate in open_gates}
    texts = {gate.run: _open_gate_texts(context, gate.run, alone=run is not None) for gate in open_gates}
    overrides_by_run = {gate.run: read_overrides(ports, gate.run) for gate in open_gates}
    context.set_result(
        [
            {
                **msgspec.to_builtins(open_gate),
                "question": gate_question(open_gate),
                "why": stalled[open_gate.id][0] or gate_reason(open_gate, texts[open_gate.run]),
                "commands": gate_commands(open_gate, context.command_prefix),
                "not_isolated": isolation_notes[open_gate.run],
                "overrides": overrides_by_run[open_gate.run],
                "remedies": stalled[open_gate.id][2],
            }
            for open_gate in open_gates
        ]
    )
    for name, reason in ({} if run else ports.journal.quarantined()).items():
        context.warn(
            f"run {name} is put aside: {reason}: {context.command_prefix} audit verify {name}", fg="red"
        )
    if not open_gates:
        context.print("nothing waits for you")
    titles = {head.run: head.title for head in ports.journal.heads(unfinished=True, limit=100_000)}
    line_limit = None if full else MAX_GATE_TEXT if run else MAX_GATE_EXCERPT
    for gate in open_gates:
        context.print(f"run {gate.run} · {titles.get(gate.run, '')}", bold=True)
        reason, other_commands, remedies = stalled[gate.id]
        gate_lines = render_gate_lines(
            gate,
            texts[gate.run],
            context.command_prefix,
            most=line_limit,
            not_isolated=isolation_notes[gate.run],
            cause=reason,
            more=other_commands,
            waived=[override_line(override) for override in overrides_by_run[gate.run]],
        )
        failures = _gate_failure_lines(context, gate) if run else []
        _print_gate_lines(context, [*failures, *gate_lines], remedies)


def _list_open_gates(context: CommandContext, run: str | None) -> "list[Gate]":
    """The gates that nobody has answered, of one run or of all."""
    run_id = context.read_only_runs.find(run) if run else None
    return [gate for gate in context.read_only_runs.ports.journal.gates(run_id) if not gate.answer]


def _print_gate_lines(context: CommandContext, gate_lines: list[str], remedies: "list[Remedy]") -> None:
    from steersman.views.base_stop import remedy_lines

    for line in (*gate_lines, *([""] if remedies else []), *remedy_lines(remedies)):
        context.print(line)
    context.print()


def _gate_failure_lines(context: CommandContext, gate: "Gate") -> list[str]:
    """What failed among the results that are in question: command, end, and last lines."""
    if gate.job != EVIDENCE_GATE:
        return []
    from steersman.engine.projections import read_run_view

    try:
        checks = read_run_view(context.read_only_runs.ports, gate.run).status.checks
    except SteersmanError:  # that it cannot be read is told with its texts
        return []
    return [line for check_status in checks for line in check_status.failure]


def _describe_stalled_gate(context: CommandContext, gate: "Gate") -> "tuple[str, list[str], list[Remedy]]":
    """Of a task that cannot go on: why, what is legal beside the answer, and what helps where its base tree is red."""
    if gate.job != "again":
        return "", [], []
    from steersman.engine.projections import read_run_view
    from steersman.views.legal_actions import action_command
    from steersman.views.screen import base_remedies_for_run

    try:
        status = read_run_view(context.read_only_runs.ports, gate.run).status
    except SteersmanError:  # that it cannot be read is told with its texts
        return "", [], []
    other_commands = [action_command(word, gate.run, context.command_prefix) for word in status.besides]
    return (
        status.cause,
        other_commands,
        base_remedies_for_run(status, context.command_prefix) if status.base_problem else [],
    )


def _open_gate_texts(context: CommandContext, run: str, *, alone: bool) -> "PayloadReader":
    """The texts of a run; among others, one that cannot be read does not hide what else waits."""
    from steersman.engine.projections import payload_reader

    try:
        return payload_reader(context.read_only_runs.live(run))
    except SteersmanError as error:
        if alone:
            raise
        problem = f"(this text cannot be read: {error})"
        return lambda _: problem
