"""What a phase is there for, and whether anything of that is left in it.

**Invariant:** a phase that is there to change something is not served by commands that only look, nor by those that
only record what others changed.
"""

from collections.abc import Container, Iterator

from steersman.contracts.planning.words import PlanPhase
from steersman.judges.planning.plan_inputs import CHANGING_EFFECTS, PlanInputs
from steersman.machines.coordinator.places import SelectedPhase

# The phases that leave something otherwise than it was; in all others looking can be the whole of it.
CHANGING_PHASES: tuple[PlanPhase, ...] = ("implementation", "release", "operations")


def is_purpose_unmet(inputs: PlanInputs, place: SelectedPhase, kept_ids: Container[str]) -> bool:
    """Whether nothing of what a phase is there for is left, when only some commands are kept."""
    commands = [command for command in place.commands if command.command_id in kept_ids]
    return not any(map(inputs.changes, commands)) if is_changing_phase(inputs, place) else not commands


def find_unmet_phases(
    inputs: PlanInputs, selected_phases: tuple[SelectedPhase, ...], kept_ids: Container[str]
) -> Iterator[SelectedPhase]:
    """The phases that have to show something and could not."""
    return (
        place
        for place in selected_phases
        if place.phase.needs_command and is_purpose_unmet(inputs, place, kept_ids)
    )


def is_changing_phase(inputs: PlanInputs, place: SelectedPhase) -> bool:
    """Whether a phase is there to change something: one of those that do, and a command of it would."""
    listed = (inputs.command(id_) for id_ in place.phase.commands)
    return place.phase.phase in CHANGING_PHASES and (
        any(map(inputs.changes, place.commands))
        or any(spec and not spec.records and not CHANGING_EFFECTS.isdisjoint(spec.effects) for spec in listed)
    )
