"""Shows the forecast of a run before it starts, and refuses one that cannot be left alone."""

import textwrap
from typing import Any

import msgspec

from steersman.app.dry_run import CheckSettings, DryRun, check_unattended, describe_dry_run
from steersman.app.start import require_package
from steersman.faces.cli.context import EXIT_DONE, CommandContext
from steersman.kernel.machine import Machine
from steersman.views.time_format import FIGURE_LABELS, format_figure


def print_dry_run(context: CommandContext, machine: str, config: Any, options: dict[str, Any]) -> int:
    """`run --dry`: gates that can be reached, the most agent calls, checks, budget; nothing is created."""
    definition = _find_machine(context, machine)
    dry_run = describe_dry_run(context.ports, definition, config, options, _state_directory(context))
    context.set_result({**msgspec.to_builtins(dry_run), "exit_code": EXIT_DONE})
    for line in _dry_run_lines(dry_run):
        context.print(line)
    return EXIT_DONE


def _find_machine(context: CommandContext, name: str) -> Machine:
    return require_package(context.services.installed_packages(), name, context.command_prefix).machine


def _state_directory(context: CommandContext) -> str:
    return str(context.services.project_state_directory(context.project))


def _dry_run_lines(dry_run: DryRun) -> list[str]:
    checks = []
    for name, argv in dry_run.checks.items():
        checks.append(f"    {name}: {' '.join(argv)}")
        checks += [f"      {line}" for line in _check_option_lines(dry_run.check_options[name])]
    limits = [
        f"    {FIGURE_LABELS.get(name, name)}: {format_figure(name, value)}"
        for name, value in dry_run.budget.items()
    ]
    roles = ", ".join(f"{role} = {agent}" for role, agent in dry_run.roles.items())
    return [
        "nothing is created. Such a run would have:",
        _wrap_dry_run_line(f"  gates where it waits for a person: {', '.join(dry_run.gates) or 'none'}"),
        f"  agent calls at most: {dry_run.agent_calls}, with every retry {dry_run.agent_attempts}",
        *(_wrap_dry_run_line(f"    {stretch.calls} after {stretch.after}") for stretch in dry_run.stretches),
        f"  roles: {roles or 'none yet'}",
        "  checks that are always run:"
        if checks
        else "  checks: none, and a run is approved only with evidence",
        *checks,
        "  budget:" if limits else "  budget: no limit",
        *limits,
        *(f"  would not start: {problem}" for problem in dry_run.problems),
    ]


def _wrap_dry_run_line(line: str) -> str:
    return textwrap.fill(line, 80, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)


def _check_option_lines(options: CheckSettings) -> list[str]:
    lines = [f"in the folder {options.cwd}"] if options.cwd else []
    if options.exit_code_is_enough:
        lines.append("its exit code is enough: no test is counted (exit_code_is_enough)")
    if options.no_tests:
        lines.append("runs no tests: it proves nothing by itself (no_tests)")
    return lines


def require_unattended_ready(
    context: CommandContext, machine: str, config: Any, options: dict[str, Any]
) -> None:
    """`run --unattended`: refuses what would stop it halfway; says which gates will wait."""
    definition = _find_machine(context, machine)
    check = check_unattended(context.ports, definition, config, options, _state_directory(context))
    if check.not_isolated:
        context.warn(check.not_isolated, fg="yellow")
    gates = ", ".join(check.gates) or "none"
    context.print(f"agents, disk and git are ready; gates that will wait for you: {gates}")
