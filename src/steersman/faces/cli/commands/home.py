"""Plain `steersman`: what waits for you, what can be resumed, what next."""

import time
from contextlib import suppress

from steersman.errors import SteersmanError
from steersman.faces.cli.context import CommandContext, define_command, terminal_columns
from steersman.ports.journal import Gate, Head
from steersman.views.base_stop import BASE_NOT_GREEN, base_stop_remedies, remedy_lines
from steersman.views.gates import GateView, describe_gate, gate_question
from steersman.views.listing import find_broken_runs, run_table_lines

RECENT_RUNS = 5


@define_command("home", "steersman")
def home_command(context: CommandContext) -> None:
    """What waits for you, what can be resumed, what next."""
    _print_trust_notice(context)
    if not context.has_store():
        _print_welcome(context)
        return
    journal, prefix = context.journal, context.command_prefix
    heads = journal.heads(unfinished=True)
    open_gates = _describe_open_gates(context, [gate for gate in journal.gates() if not gate.answer], heads)
    working = [head for head in heads if head.status == "working"]
    find_owner, root = context.services.find_run_owner, context.project_root
    idle_heads = [head for head in working if not find_owner(root, head.run)]
    busy_heads = [head for head in working if head not in idle_heads]
    last_heads = [head for head in journal.heads(limit=50) if not head.parent][:RECENT_RUNS]
    broken = find_broken_runs([*heads, *last_heads], journal.quarantined())
    sections = {
        "waits for you:": [f"{g.run}  {gate_question(g)}   {prefix} gates {g.run}" for g in open_gates],
        "can be resumed:": [f"{h.run}  {h.state}  {h.title}   {prefix} resume {h.run}" for h in idle_heads],
        "being driven:": [f"{h.run}  {h.state}  {h.title}   {prefix} watch {h.run}" for h in busy_heads],
        "broken:": [f"{run}  {reason}   {prefix} audit verify {run}" for run, reason in broken.items()],
        "last runs:": run_table_lines(last_heads, broken, time.time_ns() // 1_000_000, terminal_columns())[
            1:
        ],
    }
    for title, lines in sections.items():
        _print_home_section(context, title, lines)
    if (
        last_heads and last_heads[0].outcome == BASE_NOT_GREEN
    ):  # only the newest run: an older one may be settled
        remedies = base_stop_remedies(
            BASE_NOT_GREEN,
            last_heads[0].run,
            last_heads[0].machine,
            last_heads[0].title,
            prefix,
        )
        _print_home_section(
            context,
            f"{last_heads[0].run} stopped because checks fail on the base tree:",
            remedy_lines(remedies),
        )
    context.print(f'next: {prefix} run "what to do" · {prefix} runs · {prefix} --help')


def _describe_open_gates(context: CommandContext, gates: list[Gate], heads: list[Head]) -> list[GateView]:
    """Each gate with the words of its run's machine, which is imported for it."""
    machines = context.services.installed_machines() if gates else {}
    names = {head.run: head.machine for head in heads}
    return [describe_gate(machines.get(names.get(gate.run, "")), gate) for gate in gates]


def _print_trust_notice(context: CommandContext) -> None:
    """Says what is not trusted yet; settings that cannot be read are told by the commands that need them."""
    from steersman.faces.cli.trust_prompt import open_settings_trust, trust_command_text

    with suppress(SteersmanError):
        trust = open_settings_trust(context, context.read_config(only_look=True))
        if not trust.is_trusted:
            context.print(f"{trust.describe_state()}.", fg="yellow")
            context.print(f"Nothing of it is started until you trust it: {trust_command_text(context)}\n")


def _print_home_section(context: CommandContext, title: str, lines: list[str]) -> None:
    if lines:
        context.print(title, bold=True)
        for line in lines:
            context.print(f"  {line}")
        context.print()


def _print_welcome(context: CommandContext) -> None:
    context.print(f"nothing has been run in {context.project_root} yet.", bold=True)
    for command, description in (
        ("demo", "watch a whole run in a temporary repository"),
        ("init", "find this project's checks and write steersman.toml"),
        ('run "what to do"', "give the agents a task"),
        ("--help", "everything else"),
    ):
        context.print(f"  {f'{context.command_prefix} {command}':38}  {description}")
