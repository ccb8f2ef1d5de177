"""The order of planned commands: the phases of each command, what comes before it, and which commands stand side by side.

In a phase the list of the workflow gives the order. Other commands follow in the order of the intent. Only neighbours
that do nothing but read stand side by side.
**Invariant:** intent and registry alone decide. The time is linear in phases and commands.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, cast

from steersman.contracts.planning.content import CommandSpec, Workflow, WorkflowPhase
from steersman.contracts.planning.intent import ExecutionIntent, PlannedCommand
from steersman.contracts.planning.words import CommandEffect, PlanPhase
from steersman.judges.planning.registry import Registry

PhaseOfWorkflow = tuple[Workflow, WorkflowPhase]
CommandSteps = tuple[tuple[PlannedCommand, ...], ...]


class PlannedPhase(NamedTuple):
    """One selected phase of one workflow."""

    workflow: Workflow
    phase: WorkflowPhase
    before: tuple[PlanPhase, ...]  # selected phases that have to be over
    commands: tuple[PlannedCommand, ...]  # that belong here, in their order


def find_selected_phases(intent: ExecutionIntent, registry: Registry) -> tuple[PlannedPhase, ...]:
    """Every selected phase that the registry knows, by workflow id and then as the workflow declares them."""
    selected = tuple(_select_workflow_phases(intent, registry))
    chosen: dict[str, set[PlanPhase]] = {}
    for workflow, phase in selected:
        chosen.setdefault(workflow.id, set()).add(phase.phase)
    assigned = _assign_commands(intent, registry, selected)
    return tuple(
        PlannedPhase(
            workflow,
            phase,
            _nearest_selected_phases(workflow, phase, chosen[workflow.id]),
            _order_phase_commands(phase, assigned.get((workflow.id, phase.phase), ())),
        )
        for workflow, phase in selected
    )


def find_earlier_phases(selected_phases: Iterable[PlannedPhase]) -> tuple[frozenset[PlanPhase], ...]:
    """For each home: every phase of its workflow that comes before it, near or far."""
    selected_phases = tuple(selected_phases)
    predecessors = {(s.workflow.id, s.phase.phase): s.before for s in selected_phases}
    return tuple(_reach_earlier_phases(s.workflow.id, s.before, predecessors) for s in selected_phases)


def group_command_steps(
    commands: Iterable[PlannedCommand], effects: Callable[[PlannedCommand], Iterable[CommandEffect]]
) -> CommandSteps:
    """Commands that follow each other, as steps: neighbours that only read are one, anything else is one by itself."""
    groups: list[list[PlannedCommand]] = []
    was_reading = False
    for command in commands:
        is_reading = all(effect == "read" for effect in effects(command))
        if is_reading and was_reading:
            groups[-1].append(command)
        else:
            groups.append([command])
        was_reading = is_reading
    return tuple(map(tuple, groups))


def find_preceding_commands(intent: ExecutionIntent, registry: Registry) -> dict[str, tuple[str, ...]]:
    """By command: those that come before it wherever it is planned; what a condition may leave undone does not count."""
    selected_phases = find_selected_phases(intent, registry)
    unconditional = {
        (selected.workflow.id, selected.phase.phase): {c.command_id for c in selected.commands}
        for selected in selected_phases
        if not selected.phase.condition
    }
    preceding_ids: dict[str, set[str]] = {}
    for selected, phases in zip(selected_phases, find_earlier_phases(selected_phases), strict=True):
        done_ids = set[str]().union(
            *(unconditional.get((selected.workflow.id, phase), ()) for phase in phases)
        )
        for step in group_command_steps(
            selected.commands, lambda c: combined_effects(c, _find_usable_command(registry, c.command_id))
        ):
            for command in step:
                known_ids = preceding_ids.get(command.command_id)
                preceding_ids[command.command_id] = (
                    set(done_ids) if known_ids is None else known_ids & done_ids
                )
            done_ids |= {command.command_id for command in step}
    return {id_: tuple(sorted(ids - {id_})) for id_, ids in preceding_ids.items()}


def combined_effects(planned: PlannedCommand, spec: CommandSpec | None) -> tuple[CommandEffect, ...]:
    """The effects of a command. An intent can add to what the registry says, never remove."""
    return tuple(sorted({*planned.effects, *(spec.effects if spec else ())}))


def _find_usable_command(registry: Registry, id_: str) -> CommandSpec | None:
    return cast("CommandSpec | None", registry.usable("command", id_))


def _select_workflow_phases(intent: ExecutionIntent, registry: Registry) -> Iterator[PhaseOfWorkflow]:
    phases_by_workflow: dict[str, set[PlanPhase]] = {}
    for selected in intent.selected_workflows:
        phases_by_workflow.setdefault(selected.workflow_id, set()).update(selected.phases)
    for id_, phases in sorted(phases_by_workflow.items()):
        workflow = cast("Workflow | None", registry.usable("workflow", id_))
        if workflow is not None:
            yield from ((workflow, phase) for phase in _unique_phases(workflow) if phase.phase in phases)


def _unique_phases(workflow: Workflow) -> list[WorkflowPhase]:
    """Its phases; of two with one name the first holds."""
    phases_by_name: dict[PlanPhase, WorkflowPhase] = {}
    for phase in workflow.phases:
        phases_by_name.setdefault(phase.phase, phase)
    return list(phases_by_name.values())


def _assign_commands(
    intent: ExecutionIntent, registry: Registry, selected: tuple[PhaseOfWorkflow, ...]
) -> dict[tuple[str, PlanPhase], list[PlannedCommand]]:
    """The phases that ask for a command by name; where none does, those that ask for none; else all it is made for."""
    by_command: dict[tuple[str, PlanPhase], list[PhaseOfWorkflow]] = {}
    open_phases: dict[PlanPhase, list[PhaseOfWorkflow]] = {}
    by_phase: dict[PlanPhase, list[PhaseOfWorkflow]] = {}
    for candidate in selected:
        _, phase = candidate
        by_phase.setdefault(phase.phase, []).append(candidate)
        if not phase.commands:
            open_phases.setdefault(phase.phase, []).append(candidate)
        for id_ in dict.fromkeys(phase.commands):
            by_command.setdefault((id_, phase.phase), []).append(candidate)
    assigned: dict[tuple[str, PlanPhase], list[PlannedCommand]] = {}
    for id_, command in {c.command_id: c for c in intent.planned_commands}.items():
        spec = _find_usable_command(registry, id_)
        phases = tuple(dict.fromkeys(spec.phases)) if spec else ()
        matches = (
            [match for phase in phases for match in by_command.get((id_, phase), ())]
            or [match for phase in phases for match in open_phases.get(phase, ())]
            or [match for phase in phases for match in by_phase.get(phase, ())]
        )
        for workflow, phase in matches:
            assigned.setdefault((workflow.id, phase.phase), []).append(command)
    return assigned


def _order_phase_commands(
    phase: WorkflowPhase, commands: Iterable[PlannedCommand]
) -> tuple[PlannedCommand, ...]:
    """As the phase lists them; what it does not list comes after, as the intent does."""
    position = {id_: n for n, id_ in reversed(list(enumerate(phase.commands)))}
    return tuple(sorted(commands, key=lambda c: position.get(c.command_id, len(phase.commands))))


def find_phase_prerequisites(workflow: Workflow) -> dict[PlanPhase, tuple[PlanPhase, ...]]:
    """What each phase waits for; where no phase says so, they follow each other as declared."""
    unique_phases = _unique_phases(workflow)
    if any(phase.after for phase in unique_phases):
        return {phase.phase: phase.after for phase in unique_phases}
    names = [phase.phase for phase in unique_phases]
    return {name: tuple(names[n - 1 : n]) if n else () for n, name in enumerate(names)}


def _nearest_selected_phases(
    workflow: Workflow, phase: WorkflowPhase, chosen: set[PlanPhase]
) -> tuple[PlanPhase, ...]:
    """The nearest selected phases before this one: what was not selected is stepped over."""
    prerequisites = find_phase_prerequisites(workflow)
    declared = list(prerequisites)
    nearest: set[PlanPhase] = set()
    skipped: set[PlanPhase] = set()
    pending = list(prerequisites[phase.phase])
    while pending:
        name = pending.pop()
        if name in chosen:
            nearest.add(name)
        elif name not in skipped:
            skipped.add(name)
            pending.extend(prerequisites.get(name, ()))
    return tuple(sorted(nearest, key=declared.index))


def _reach_earlier_phases(
    workflow: str,
    start: tuple[PlanPhase, ...],
    predecessors: dict[tuple[str, PlanPhase], tuple[PlanPhase, ...]],
) -> frozenset[PlanPhase]:
    reached: set[PlanPhase] = set()
    pending = list(start)
    while pending:
        phase = pending.pop()
        if phase not in reached:
            reached.add(phase)
            pending.extend(predecessors[workflow, phase])
    return frozenset(reached)
