"""The machines that are installed, by name; each is imported when it is first asked for.

Beside the built-in ones these are the packages that an installed distribution names as entry points in the group
`steersman.machines`: the name of the entry point is the machine's, and its value leads to a `MachinePackage`.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from steersman.engine.machine_package import MachinePackage
    from steersman.kernel.machine import Machine

ENTRY_POINT_GROUP = "steersman.machines"
BUILT_IN_MACHINES = ("roundtable", "coordinator", "task")
BUILT_IN_ROLES = ("planner", "coder", "reviewer", "tester")  # no machine has to be imported to read a file


class InstalledPackages(Mapping[str, "MachinePackage"]):
    """The packages by the names of their machines, as a mapping that imports what it is asked for."""

    def __getitem__(self, name: str) -> "MachinePackage":
        return _load_package(name)

    def __iter__(self) -> Iterator[str]:
        return iter((*BUILT_IN_MACHINES, *sorted(_entry_points())))

    def __len__(self) -> int:
        return len(BUILT_IN_MACHINES) + len(_entry_points())


class InstalledMachines(Mapping[str, "Machine"]):
    """The machines themselves, in the same way."""

    def __getitem__(self, name: str) -> "Machine":
        if name in BUILT_IN_MACHINES:  # without what a package adds for views
            machine: Machine = import_module(f"steersman.machines.{name}.table").MACHINE
            return machine
        return _load_package(name).machine

    def __iter__(self) -> Iterator[str]:
        return iter(InstalledPackages())

    def __len__(self) -> int:
        return len(InstalledPackages())


class RoleNames(Collection[str]):
    """The roles of every machine; those of installed distributions are looked up where a built-in one does not fit."""

    def __contains__(self, name: object) -> bool:
        return name in BUILT_IN_ROLES or any(name == role for role in self)

    def __iter__(self) -> Iterator[str]:
        added = (role for name in _entry_points() for role in _load_package(name).machine.roles)
        return iter(dict.fromkeys((*BUILT_IN_ROLES, *added)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True


@cache
def _load_package(name: str) -> "MachinePackage":
    """A machine's package; a KeyError where there is none of this name, and a UserError where it is another's."""
    from steersman.errors import UserError

    if name in BUILT_IN_MACHINES:
        built_in: MachinePackage = import_module(f"steersman.machines.{name}.package").PACKAGE
        return built_in
    package: MachinePackage = _entry_points()[name].load()
    if package.machine.name != name:
        raise UserError(
            f"the entry point {name!r} in {ENTRY_POINT_GROUP} leads to the machine {package.machine.name!r}: give both one name"
        )
    return package


@cache
def _entry_points() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points

    found = entry_points(group=ENTRY_POINT_GROUP)
    return {point.name: point for point in found if point.name not in BUILT_IN_MACHINES}
