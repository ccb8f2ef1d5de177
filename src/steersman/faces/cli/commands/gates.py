"""`steersman gates`: what waits for a person's answer."""

from typing import TYPE_CHECKING

import click
import msgspec

from steersman.faces.cli.context import CommandContext, define_command
from steersman.views.gates import (
    MAX_GATE_EXCERPT,
    MAX_GATE_TEXT,
    gate_commands,
    gate_question,
    render_gate_lines,
)

if TYPE_CHECKING:
    from steersman.app.gates import OpenGate


@define_command(
    "gates",
    "steersman gates",
    "steersman gates 261116-abc --full",
    exits="0 done · 2 wrong usage · 5 store trouble",
)
@click.argument("run", required=False)
@click.option("--full", is_flag=True, help="Print the whole texts.")
def gates_command(context: CommandContext, *, run: str | None, full: bool) -> None:
    """List the gates that wait for a person, with their texts and the commands that answer them: the gates of RUN, or of all runs with the beginning of each text."""
    if not run and not context.has_store():
        context.set_result([])
        context.print("nothing waits for you")
        return
    from steersman.app.gates import list_open_gates

    ports = context.read_only_runs.ports
    open_gates = list_open_gates(ports, context.command_prefix, run)
    context.set_result([_gate_fields(context, shown) for shown in open_gates])
    for name, reason in ({} if run else ports.journal.quarantined()).items():
        context.warn(
            f"run {name} is put aside: {reason}: {context.command_prefix} audit verify {name}", fg="red"
        )
    if not open_gates:
        context.print("nothing waits for you")
    titles = {head.run: head.title for head in ports.journal.heads(unfinished=True, limit=100_000)}
    line_limit = None if full else MAX_GATE_TEXT if run else MAX_GATE_EXCERPT
    for shown in open_gates:
        context.print(f"run {shown.gate.run} · {titles.get(shown.gate.run, '')}", bold=True)
        _print_gate(context, shown, line_limit, with_failures=bool(run))


def _gate_fields(context: CommandContext, shown: "OpenGate") -> dict[str, object]:
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
    context: CommandContext, shown: "OpenGate", line_limit: int | None, *, with_failures: bool
) -> None:
    from steersman.views.base_stop import remedy_lines
    from steersman.views.run_summary import override_line

    gate_lines = render_gate_lines(
        shown.gate,
        shown.text,
        context.command_prefix,
        split_text=shown.split_text,
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
