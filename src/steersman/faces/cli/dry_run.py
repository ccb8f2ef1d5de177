"""Forecasts a run before it starts, and says whether it can be left alone. **Invariant:** creates nothing."""

import os
import shutil
import textwrap
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.errors import SteersmanError, UserError
from steersman.faces.cli.context import EXIT_DONE, CommandContext
from steersman.kernel.machine import Machine
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.forecast import RunForecast, forecast_run
from steersman.views.time_format import FIGURE_LABELS, format_figure

if TYPE_CHECKING:
    from steersman.contracts.config import FrozenConfig
    from steersman.engine.ports import Ports

MIN_UNATTENDED_BYTES = 512 * 1024 * 1024  # bytes that have to be free for a run that nobody watches


def print_dry_run(context: CommandContext, machine: str, config: Any, options: dict[str, Any]) -> int:
    """`run --dry`: gates that can be reached, the most agent calls, checks, budget; nothing is created."""
    definition = require_machine(context, machine)
    run_forecast = _forecast_run(definition, config, options)
    attempts = 1 + max((role_config.retries for role_config in config.roles.values()), default=0)
    fields = {
        "machine": machine,
        "options": options,
        "gates": [*run_forecast.gates, *(["budget"] if _read_budget_limits(config) else [])],
        "agent_calls": run_forecast.calls,
        "agent_attempts": run_forecast.calls * attempts,
        "stretches": msgspec.to_builtins(run_forecast.stretches),
        "roles": {name: role_config.agent for name, role_config in config.roles.items()},
        "checks": {name: list(check.run) for name, check in config.checks.items()},
        "check_options": {name: _check_option_fields(config, name) for name in config.checks},
        "budget": _read_budget_limits(config),
        "problems": find_run_problems(context, definition, config),
        "exit_code": EXIT_DONE,
    }
    context.set_result(fields)
    for line in _dry_run_lines(fields, run_forecast):
        context.print(line)
    return EXIT_DONE


def _dry_run_lines(fields: dict[str, Any], run_forecast: RunForecast) -> list[str]:
    checks = []
    for name, argv in fields["checks"].items():
        checks.append(f"    {name}: {' '.join(argv)}")
        checks += [
            f"      {option_line}" for option_line in _check_option_lines(fields["check_options"][name])
        ]
    limits = [
        f"    {FIGURE_LABELS.get(name, name)}: {format_figure(name, value)}"
        for name, value in fields["budget"].items()
    ]
    return [
        "nothing is created. Such a run would have:",
        _wrap_dry_run_line(f"  gates where it waits for a person: {', '.join(fields['gates']) or 'none'}"),
        f"  agent calls at most: {fields['agent_calls']}, with every retry {fields['agent_attempts']}",
        *(
            _wrap_dry_run_line(f"    after {stretch.after}: {stretch.calls}")
            for stretch in run_forecast.stretches
        ),
        f"  roles: {', '.join(f'{role} = {agent}' for role, agent in fields['roles'].items()) or 'none yet'}",
        "  checks that are always run:"
        if checks
        else "  checks: none, and a run is approved only with evidence",
        *checks,
        "  budget:" if limits else "  budget: no limit",
        *limits,
        *(f"  would not start: {problem_text}" for problem_text in fields["problems"]),
    ]


def _wrap_dry_run_line(line: str) -> str:
    return textwrap.fill(line, 80, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)


def _check_option_fields(config: Any, name: str) -> dict[str, Any]:
    """What decides about a check beside its command."""
    check = config.checks[name]
    return {
        "cwd": check.cwd,
        "exit_code_is_enough": check.exit_code_is_enough,
        "no_tests": name in config.no_tests,
    }


def _check_option_lines(options: dict[str, Any]) -> list[str]:
    lines = [f"in the folder {options['cwd']}"] if options["cwd"] else []
    if options["exit_code_is_enough"]:
        lines.append("its exit code is enough: no test is counted (exit_code_is_enough)")
    if options["no_tests"]:
        lines.append("runs no tests: it proves nothing by itself (no_tests)")
    return lines


def require_unattended_ready(
    context: CommandContext, machine: str, config: Any, options: dict[str, Any]
) -> None:
    """`run --unattended`: refuses what would stop it halfway; says which gates will wait."""
    definition = require_machine(context, machine)
    problem_texts = find_run_problems(context, definition, config)
    if not config.checks:
        problem_texts.append(
            "[checks] is empty, and a run is approved only with evidence: run `steersman init`"
        )
    if problem_texts:
        raise _NotReadyUnattendedError("; ".join(problem_texts))
    gates = [
        *_forecast_run(definition, config, options).gates,
        *(["budget"] if _read_budget_limits(config) else []),
    ]
    sandbox = context.services.open_project_sandbox(config)
    if not sandbox.isolated:
        context.warn(f"{NOT_ISOLATED}: {sandbox.why}; {sandbox.fix}", fg="yellow")
    context.print(
        f"agents, disk and git are ready; gates that will wait for you: {', '.join(gates) or 'none'}"
    )


class _NotReadyUnattendedError(UserError):
    """The run was not started."""

    exit_code = 4


def find_run_problems(context: CommandContext, definition: Machine, config: Any) -> list[str]:
    """What would stop a run from starting, going on or being delivered; each with the fix."""
    return [*find_crew_problems(context, definition, config), *find_delivery_problems(context, config)]


def find_delivery_problems(context: CommandContext, config: Any) -> list[str]:
    """What is missing for handing a change over: found out before it is made; a broken repository is told elsewhere."""
    workspace = context.services.open_ports(context.project, journal=None).workspace(config)
    if workspace.find_start_problem():
        return []
    try:
        missing = workspace.find_delivery_problem(config.deliver, workspace.base(config.base or None).branch)
    except SteersmanError as error:
        return [str(error)]
    return [missing] if missing else []


def _find_role_problems(
    context: CommandContext, ports: "Ports", definition: Machine, config: "FrozenConfig"
) -> list[str]:
    """Finds what would stop an agent of this machine from being called."""
    from steersman.contracts.config import missing_roles_message

    missing_roles = [role for role in definition.roles if role not in config.roles]
    problem_texts = [missing_roles_message(missing_roles)] if missing_roles else []
    for role in (role for role in definition.roles if role in config.roles):
        try:
            ports.agent(role, config)
            if obstacle_text := context.services.find_role_obstacle(config.roles[role]):
                problem_texts.append(f"[roles.{role}] {obstacle_text}")
        except SteersmanError as error:
            problem_texts.append(str(error))
    return problem_texts


def find_crew_problems(context: CommandContext, definition: Machine, config: Any) -> list[str]:
    """What would stop a run from starting or going on: git, a sandbox that is required, agents, disk; each with the fix."""
    ports = context.services.open_ports(context.project, journal=None)
    problem_texts = []
    problem = ports.workspace(config).find_start_problem()
    if problem:
        problem_texts.append(problem)
    try:
        context.services.open_project_sandbox(config)
    except SteersmanError as error:
        problem_texts.append(str(error))
    from steersman.engine.project_files import freeze_current_files

    try:
        frozen = freeze_current_files(ports, config)
    except SteersmanError as error:
        problem_texts.append(str(error))
    else:
        problem_texts += _find_role_problems(context, ports, definition, frozen)
    free_bytes = shutil.disk_usage(
        _nearest_existing_directory(str(context.services.project_state_directory(context.project)))
    ).free
    if free_bytes < MIN_UNATTENDED_BYTES:
        problem_texts.append(f"only {free_bytes // 2**20} MB are free where the store is: make room")
    return problem_texts


def _nearest_existing_directory(path: str) -> str:
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def require_machine(context: CommandContext, name: str) -> Machine:
    """The machine of this name; a UserError that lists those there are."""
    definition = context.services.installed_machines().get(name)
    if definition is None:
        known_names = ", ".join(sorted(context.services.installed_machines()))
        raise UserError(
            f"there is no machine {name!r}. Choose one of {known_names}, or see `{context.command_prefix} machine list`"
        )
    return definition


def _forecast_run(definition: Machine, config: Any, options: dict[str, Any]) -> RunForecast:
    settings = {"deliver": config.deliver, "max_iterations": config.rules.max_iterations, **options}
    return forecast_run(definition, settings)


def _read_budget_limits(config: Any) -> dict[str, int]:
    from steersman.engine.budgets import budget_limits

    return budget_limits(config)
