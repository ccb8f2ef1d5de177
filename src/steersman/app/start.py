"""Starts runs: what a machine makes of the options, what the run will not use of the checkout, and a driver for it."""

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from steersman.app.principal import Principal
from steersman.app.runs import RunService
from steersman.contracts.config import Config
from steersman.engine.machine_package import MachinePackage, StartOptions, StartPlan
from steersman.engine.ports import Ports
from steersman.engine.project_files import describe_checkout_differences
from steersman.engine.start import StartRequest
from steersman.errors import UserError
from steersman.judges.text import has_visible_text

__all__ = [
    "BackgroundRun",
    "RunOrder",
    "StartRequest",
    "check_order",
    "describe_unused_changes",
    "drive_in_background",
    "plan_request",
    "plan_start",
    "require_package",
    "start_in_background",
]

DRIVER_START_SECONDS = 30.0  # seconds for a driver in the background to claim its run, on a busy machine
DRIVER_POLL_SECONDS = 0.02
ISSUE_TASK_TEXT = "Resolve the issue whose text comes with this task as data."


class RunOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a person orders: a task for a machine, with the options that were given for it."""

    machine: str
    task: str = ""
    issue: str = ""  # text that is not the person's own: data, never the task
    given: Mapping[str, Any] = {}  # the options that have a value
    fix_base: bool = False  # start although checks fail before any change


class BackgroundRun(msgspec.Struct, frozen=True):
    """A run that another process drives, and the file that its driver writes to."""

    run: str
    log: str


def require_package(packages: Mapping[str, MachinePackage], name: str, command_prefix: str) -> MachinePackage:
    """The machine of this name with all that is known of it; the error lists those that are installed."""
    package = packages.get(name)
    if package is None:
        known_names = ", ".join(sorted(packages))
        raise UserError(
            f"there is no machine {name!r}. Choose one of {known_names}, or see `{command_prefix} machine list`"
        )
    return package


def check_order(
    packages: Mapping[str, MachinePackage], order: RunOrder, command_prefix: str = "steersman"
) -> RunOrder:
    """The order with its task; refuses one without a task, or for a machine that another command starts."""
    issue_only = has_visible_text(order.issue) and not has_visible_text(order.task)
    task = ISSUE_TASK_TEXT if issue_only else order.task
    if not has_visible_text(task):
        raise UserError('a run needs a task: steersman run "what to do"')
    started_by = require_package(packages, order.machine, command_prefix).started_by
    if started_by:
        raise UserError(f"{order.machine} is not started by run: use `{command_prefix} {started_by}`")
    return msgspec.structs.replace(order, task=task)


def plan_request(ports: Ports, principal: Principal, config: Config, order: RunOrder) -> StartRequest:
    """The order as the engine takes it; refuses an option that the machine does not take."""
    order = check_order(ports.packages, order, principal.command_prefix)
    start = plan_start(ports, ports.packages[order.machine], config, order.given)
    return StartRequest(
        machine=order.machine,
        task=order.task,
        person=principal.person,
        config=config,
        options={**start.options, **({"red_base": "fix"} if order.fix_base else {})},
        texts=start.texts,
        roles=start.roles,
        issue=order.issue,
    )


def plan_start(ports: Ports, package: MachinePackage, config: Config, given: Mapping[str, Any]) -> StartPlan:
    """What is fixed when a run of this machine begins; an option that the machine does not take is refused."""
    for name in given:
        if name not in package.takes:
            raise UserError(_explain_refused_option(ports, package.machine.name, name))
    if package.plan_start is None:
        return StartPlan(dict(given))
    return package.plan_start(StartOptions(given, config, ports))


def _explain_refused_option(ports: Ports, machine: str, option: str) -> str:
    takers = [name for name, package in ports.packages.items() if option in package.takes]
    flag = f"--{option.replace('_', '-')}"
    hint = f": use --as {' or --as '.join(takers)}" if takers else ""
    return f"{machine} does not take {flag}{hint}"


def describe_unused_changes(ports: Ports, config: Config) -> list[str]:
    """What of the checkout the run does not use, in sentences; UserError where no run can start here."""
    workspace = ports.workspace(config)
    problem = workspace.find_start_problem()
    if problem:
        raise UserError(problem)
    base = workspace.base(config.base or None)
    uncommitted = (
        f"your checkout has uncommitted changes; the run starts from commit {base.commit[:12]} without them"
    )
    differences = describe_checkout_differences(workspace, config, base.commit)
    return [*([uncommitted] if base.dirty else []), *differences]


async def start_in_background(runs: RunService, request: StartRequest) -> BackgroundRun:
    """A new run, durable, that a process of its own drives."""
    _, lock, active_run = await runs.start(request)
    lock.release()
    return drive_in_background(runs.ports, active_run.run)


def drive_in_background(ports: Ports, run: str) -> BackgroundRun:
    """Starts a driver for the run in a process of its own and returns when it has claimed the run or has ended."""
    if ports.start_driver is None:
        raise UserError("no process can be started here: drive the run in this one")
    driver = ports.start_driver(run)
    deadline = time.monotonic() + DRIVER_START_SECONDS
    while ports.locks.owner(run) is None and not driver.has_ended() and time.monotonic() < deadline:
        time.sleep(DRIVER_POLL_SECONDS)
    return BackgroundRun(run, driver.log)
