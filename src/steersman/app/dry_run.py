"""Before a run: what it could come to, what would stop it, and whether it can be left alone.

**Invariant:** creates nothing.
"""

import os
import shutil
from typing import Any

import msgspec

from steersman.contracts.config import Config, FrozenConfig, missing_roles_message
from steersman.engine.ports import Ports
from steersman.engine.project_files import freeze_current_files
from steersman.engine.run_writer import budget_limits
from steersman.errors import SteersmanError, UserError
from steersman.kernel.machine import Machine
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.forecast import RunForecast, UnattendedStretch, forecast_run

MIN_UNATTENDED_BYTES = 512 * 1024 * 1024  # bytes that have to be free for an unattended run


class CheckSettings(msgspec.Struct, frozen=True):
    """What decides about a check beside its command."""

    cwd: str
    exit_code_is_enough: bool
    no_tests: bool


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run could come to; nothing of it exists."""

    machine: str
    options: dict[str, Any]
    gates: tuple[str, ...]  # where it can wait for a person
    agent_calls: int  # at most
    agent_attempts: int  # at most, with every retry
    stretches: tuple[UnattendedStretch, ...]
    roles: dict[str, str]  # role -> agent
    checks: dict[str, tuple[str, ...]]
    check_options: dict[str, CheckSettings]
    budget: dict[str, int]
    problems: tuple[str, ...]  # what would stop it from starting


class FreeSpace(msgspec.Struct, frozen=True):
    """How much can be written at the nearest folder that exists."""

    directory: str
    bytes: int


class UnattendedCheck(msgspec.Struct, frozen=True):
    """That a run can be left alone: where it will wait, and why its agents are not isolated where they are not."""

    gates: tuple[str, ...]
    not_isolated: str


class NotReadyUnattendedError(UserError):
    """Something would stop the run halfway; it was not started."""

    exit_code = 4


def describe_dry_run(
    ports: Ports, machine: Machine, config: Config, options: dict[str, Any], state_directory: str
) -> DryRun:
    """What a run with these options could come to, and what would stop it."""
    forecast = _forecast_with_settings(machine, config, options)
    attempts = 1 + max((role.retries for role in config.roles.values()), default=0)
    return DryRun(
        machine=machine.name,
        options=options,
        gates=_list_reachable_gates(forecast, config),
        agent_calls=forecast.calls,
        agent_attempts=forecast.calls * attempts,
        stretches=forecast.stretches,
        roles={name: role.agent for name, role in config.roles.items()},
        checks={name: check.run for name, check in config.checks.items()},
        check_options={
            name: CheckSettings(check.cwd, check.exit_code_is_enough, name in config.no_tests)
            for name, check in config.checks.items()
        },
        budget=budget_limits(config),
        problems=tuple(find_run_problems(ports, machine, config, state_directory)),
    )


def check_unattended(
    ports: Ports, machine: Machine, config: Config, options: dict[str, Any], state_directory: str
) -> UnattendedCheck:
    """Refuses a run that something would stop halfway while no person watches."""
    problems = find_run_problems(ports, machine, config, state_directory)
    if not config.checks:
        problems.append("[checks] is empty, and a run is approved only with evidence: run `steersman init`")
    if problems:
        raise NotReadyUnattendedError("; ".join(problems))
    forecast = _forecast_with_settings(machine, config, options)
    sandbox = ports.sandbox(config) if ports.sandbox is not None else None
    not_isolated = sandbox is not None and not sandbox.isolated
    return UnattendedCheck(
        _list_reachable_gates(forecast, config),
        f"{NOT_ISOLATED}: {sandbox.why}; {sandbox.fix}" if sandbox is not None and not_isolated else "",
    )


def _forecast_with_settings(machine: Machine, config: Config, options: dict[str, Any]) -> RunForecast:
    settings = {"deliver": config.deliver, "max_iterations": config.rules.max_iterations, **options}
    return forecast_run(machine, settings)


def _list_reachable_gates(forecast: RunForecast, config: Config) -> tuple[str, ...]:
    return (*forecast.gates, *(["budget"] if budget_limits(config) else []))


def find_run_problems(ports: Ports, machine: Machine, config: Config, state_directory: str) -> list[str]:
    """What would stop a run from starting, going on or being delivered; each with the fix."""
    return [
        *find_crew_problems(ports, machine, config, state_directory),
        *find_delivery_problems(ports, config),
    ]


def find_delivery_problems(ports: Ports, config: Config) -> list[str]:
    """What is missing for handing a change over; nothing of a broken repository, which `find_crew_problems` reports."""
    workspace = ports.workspace(config)
    if workspace.find_start_problem():
        return []
    try:
        missing = workspace.find_delivery_problem(config.deliver, workspace.base(config.base or None).branch)
    except SteersmanError as error:
        return [str(error)]
    return [missing] if missing else []


def find_crew_problems(ports: Ports, machine: Machine, config: Config, state_directory: str) -> list[str]:
    """What would stop a run from starting or going on: git, a sandbox that is required, agents, disk; each with the fix."""
    problem = ports.workspace(config).find_start_problem()
    problems = [problem] if problem else []
    try:
        if ports.sandbox is not None:
            ports.sandbox(config)
    except SteersmanError as error:
        problems.append(str(error))
    try:
        frozen = freeze_current_files(ports, config)
    except SteersmanError as error:
        problems.append(str(error))
    else:
        problems += _find_role_problems(ports, machine, frozen)
    free_bytes = measure_free_space(state_directory).bytes
    if free_bytes < MIN_UNATTENDED_BYTES:
        problems.append(f"only {free_bytes // 2**20} MB are free where the store is: make room")
    return problems


def _find_role_problems(ports: Ports, machine: Machine, config: FrozenConfig) -> list[str]:
    missing = [role for role in machine.roles if role not in config.roles]
    problems = [missing_roles_message(missing)] if missing else []
    for role in (role for role in machine.roles if role in config.roles):
        try:
            ports.agent(role, config)
            if obstacle := ports.role_obstacle(config.roles[role]):
                problems.append(f"[roles.{role}] {obstacle}")
        except SteersmanError as error:
            problems.append(str(error))
    return problems


def measure_free_space(directory: str) -> FreeSpace:
    """The space that is free where a folder is or will be."""
    while not os.path.exists(directory):
        directory = os.path.dirname(directory)
    return FreeSpace(directory, shutil.disk_usage(directory).free)
