"""What a machine makes of the options that a person gave with a task."""

from collections.abc import Mapping
from typing import Any

from steersman.contracts.config import Config
from steersman.engine.machine_package import MachinePackage, StartOptions, StartPlan
from steersman.engine.ports import Ports
from steersman.errors import UserError


def plan_start(ports: Ports, package: MachinePackage, config: Config, given: Mapping[str, Any]) -> StartPlan:
    """What is fixed when a run of this machine begins; an option that the machine does not take is refused."""
    for name in given:
        if name not in package.takes:
            raise UserError(_refuse_option(ports, package.machine.name, name))
    if package.plan_start is None:
        return StartPlan(dict(given))
    return package.plan_start(StartOptions(given, config, ports))


def _refuse_option(ports: Ports, machine: str, option: str) -> str:
    takers = [name for name, package in ports.packages.items() if option in package.takes]
    flag = f"--{option.replace('_', '-')}"
    hint = f": use --as {' or --as '.join(takers)}" if takers else ""
    return f"{machine} does not take {flag}{hint}"
