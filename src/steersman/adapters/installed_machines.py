"""The machines that are installed, by name; each is imported when it is first asked for."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steersman.kernel.build import Machine


def _load_roundtable_machine() -> "Machine":
    from steersman.machines.roundtable import MACHINE

    return MACHINE


def _load_coordinator_machine() -> "Machine":
    from steersman.machines.coordinator import MACHINE

    return MACHINE


def _load_task_machine() -> "Machine":
    from steersman.machines.task import MACHINE

    return MACHINE


ALL_ROLE_NAMES = (
    "planner",
    "coder",
    "reviewer",
    "tester",
)  # of all machines: none has to be imported to read a file
_MACHINE_LOADERS: "dict[str, Callable[[], Machine]]" = {
    "roundtable": _load_roundtable_machine,
    "coordinator": _load_coordinator_machine,
    "task": _load_task_machine,
}


class InstalledMachines(Mapping[str, "Machine"]):
    """The machines by name, as a mapping that imports what it is asked for."""

    def __getitem__(self, name: str) -> "Machine":
        return _MACHINE_LOADERS[name]()

    def __iter__(self) -> "Iterator[str]":
        return iter(_MACHINE_LOADERS)

    def __len__(self) -> int:
        return len(_MACHINE_LOADERS)
