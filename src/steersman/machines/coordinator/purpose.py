"""What a phase is there for, and whether anything of that is left in it.

**Invariant:** a phase that is there to change something is not served by commands that only look, nor by those that
only record what others changed.
"""

from collections.abc import Container, Iterator

from steersman.contracts.planning.words import Phase
from steersman.machines.coordinator.inputs import CHANGING, Inputs
from steersman.machines.coordinator.places import Place

# The phases that leave something otherwise than it was; in all others looking can be the whole of it.
MAKING: tuple[Phase, ...] = ("implementation", "release", "operations")


def bare(inputs: Inputs, place: Place, kept: Container[str]) -> bool:
    """Whether nothing of what a phase is there for is left, when only some commands are kept."""
    left = [command for command in place.commands if command.command_id in kept]
    return not any(map(inputs.changes, left)) if makes(inputs, place) else not left


def lacking(inputs: Inputs, found: tuple[Place, ...], kept: Container[str]) -> Iterator[Place]:
    """The phases that have to show something and could not."""
    return (place for place in found if place.phase.needs_command and bare(inputs, place, kept))


def makes(inputs: Inputs, place: Place) -> bool:
    """Whether a phase is there to change something: one of those that do, and a command of it would."""
    listed = (inputs.command(id_) for id_ in place.phase.commands)
    return place.phase.phase in MAKING and (
        any(map(inputs.changes, place.commands))
        or any(spec and not spec.records and not CHANGING.isdisjoint(spec.effects) for spec in listed)
    )
