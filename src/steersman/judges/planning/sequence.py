"""In which order planned commands come: the phases that each belongs to, what comes before them, and who stands beside whom.

In a phase the workflow's own list holds; what it does not list comes after, as the intent lists it. Only neighbours that
do nothing but read stand beside each other.
**Invariant:** decided from intent and registry alone; linear in phases and commands.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, cast

from steersman.contracts.planning.content import CommandSpec, Workflow, WorkflowPhase
from steersman.contracts.planning.intent import ExecutionIntent, PlannedCommand
from steersman.contracts.planning.words import Effect, Phase
from steersman.judges.planning.registry import Registry

Chosen = tuple[Workflow, WorkflowPhase]
Steps = tuple[tuple[PlannedCommand, ...], ...]


class Home(NamedTuple):
    """One selected phase of one workflow."""

    workflow: Workflow
    phase: WorkflowPhase
    before: tuple[Phase, ...]  # selected phases that have to be over
    commands: tuple[PlannedCommand, ...]  # that belong here, in their order


def homes(intent: ExecutionIntent, registry: Registry) -> tuple[Home, ...]:
    """Every selected phase that the registry knows, by workflow id and then as the workflow declares them."""
    selected = tuple(_selected(intent, registry))
    chosen: dict[str, set[Phase]] = {}
    for workflow, phase in selected:
        chosen.setdefault(workflow.id, set()).add(phase.phase)
    at = _at(intent, registry, selected)
    return tuple(
        Home(
            workflow,
            phase,
            _before(workflow, phase, chosen[workflow.id]),
            _in_order(phase, at.get((workflow.id, phase.phase), ())),
        )
        for workflow, phase in selected
    )


def earlier(found: Iterable[Home]) -> tuple[frozenset[Phase], ...]:
    """For each home: every phase of its workflow that comes before it, near or far."""
    found = tuple(found)
    before = {(home.workflow.id, home.phase.phase): home.before for home in found}
    return tuple(_reached(home.workflow.id, home.before, before) for home in found)


def steps(commands: Iterable[PlannedCommand], effects: Callable[[PlannedCommand], Iterable[Effect]]) -> Steps:
    """Commands that follow each other, as steps: neighbours that only read are one, anything else is one by itself."""
    found: list[list[PlannedCommand]] = []
    reading = False
    for command in commands:
        reads = all(effect == "read" for effect in effects(command))
        if reads and reading:
            found[-1].append(command)
        else:
            found.append([command])
        reading = reads
    return tuple(map(tuple, found))


def preceding(intent: ExecutionIntent, registry: Registry) -> dict[str, tuple[str, ...]]:
    """By command: those that come before it wherever it is planned; what a condition may leave undone does not count."""
    found = homes(intent, registry)
    sure = {
        (home.workflow.id, home.phase.phase): {c.command_id for c in home.commands}
        for home in found
        if not home.phase.condition
    }
    before: dict[str, set[str]] = {}
    for home, phases in zip(found, earlier(found), strict=True):
        done = set[str]().union(*(sure.get((home.workflow.id, phase), ()) for phase in phases))
        for step in steps(home.commands, lambda c: effects_of(c, _spec(registry, c.command_id))):
            for command in step:
                known = before.get(command.command_id)
                before[command.command_id] = set(done) if known is None else known & done
            done |= {command.command_id for command in step}
    return {id_: tuple(sorted(some - {id_})) for id_, some in before.items()}


def effects_of(planned: PlannedCommand, spec: CommandSpec | None) -> tuple[Effect, ...]:
    """What a command does to the world: an intent can add to what the registry says, never take away."""
    return tuple(sorted({*planned.effects, *(spec.effects if spec else ())}))


def _spec(registry: Registry, id_: str) -> CommandSpec | None:
    return cast("CommandSpec | None", registry.usable("command", id_))


def _selected(intent: ExecutionIntent, registry: Registry) -> Iterator[Chosen]:
    wanted: dict[str, set[Phase]] = {}
    for chosen in intent.selected_workflows:
        wanted.setdefault(chosen.workflow_id, set()).update(chosen.phases)
    for id_, phases in sorted(wanted.items()):
        workflow = cast("Workflow | None", registry.usable("workflow", id_))
        if workflow is not None:
            yield from ((workflow, phase) for phase in _once(workflow) if phase.phase in phases)


def _once(workflow: Workflow) -> list[WorkflowPhase]:
    """Its phases; of two with one name the first holds."""
    found: dict[Phase, WorkflowPhase] = {}
    for phase in workflow.phases:
        found.setdefault(phase.phase, phase)
    return list(found.values())


def _at(
    intent: ExecutionIntent, registry: Registry, selected: tuple[Chosen, ...]
) -> dict[tuple[str, Phase], list[PlannedCommand]]:
    """The phases that ask for a command by name; where none does, those that ask for none; else all it is made for."""
    named: dict[tuple[str, Phase], list[Chosen]] = {}
    free: dict[Phase, list[Chosen]] = {}
    made: dict[Phase, list[Chosen]] = {}
    for here in selected:
        _, phase = here
        made.setdefault(phase.phase, []).append(here)
        if not phase.commands:
            free.setdefault(phase.phase, []).append(here)
        for id_ in dict.fromkeys(phase.commands):
            named.setdefault((id_, phase.phase), []).append(here)
    at: dict[tuple[str, Phase], list[PlannedCommand]] = {}
    for id_, command in {c.command_id: c for c in intent.planned_commands}.items():
        spec = _spec(registry, id_)
        phases = tuple(dict.fromkeys(spec.phases)) if spec else ()
        fit = (
            [where for phase in phases for where in named.get((id_, phase), ())]
            or [where for phase in phases for where in free.get(phase, ())]
            or [where for phase in phases for where in made.get(phase, ())]
        )
        for workflow, phase in fit:
            at.setdefault((workflow.id, phase.phase), []).append(command)
    return at


def _in_order(phase: WorkflowPhase, commands: Iterable[PlannedCommand]) -> tuple[PlannedCommand, ...]:
    """As the phase lists them; what it does not list comes after, as the intent does."""
    place = {id_: n for n, id_ in reversed(list(enumerate(phase.commands)))}
    return tuple(sorted(commands, key=lambda c: place.get(c.command_id, len(phase.commands))))


def waits(workflow: Workflow) -> dict[Phase, tuple[Phase, ...]]:
    """What each phase waits for; where no phase says so, they follow each other as declared."""
    once = _once(workflow)
    if any(phase.after for phase in once):
        return {phase.phase: phase.after for phase in once}
    names = [phase.phase for phase in once]
    return {name: tuple(names[n - 1 : n]) if n else () for n, name in enumerate(names)}


def _before(workflow: Workflow, phase: WorkflowPhase, chosen: set[Phase]) -> tuple[Phase, ...]:
    """The nearest selected phases before this one: what was not selected is stepped over."""
    after = waits(workflow)
    declared = list(after)
    near: set[Phase] = set()
    seen: set[Phase] = set()
    waiting = list(after[phase.phase])
    while waiting:
        name = waiting.pop()
        if name in chosen:
            near.add(name)
        elif name not in seen:
            seen.add(name)
            waiting.extend(after.get(name, ()))
    return tuple(sorted(near, key=declared.index))


def _reached(
    workflow: str, start: tuple[Phase, ...], before: dict[tuple[str, Phase], tuple[Phase, ...]]
) -> frozenset[Phase]:
    seen: set[Phase] = set()
    waiting = list(start)
    while waiting:
        phase = waiting.pop()
        if phase not in seen:
            seen.add(phase)
            waiting.extend(before[workflow, phase])
    return frozenset(seen)
