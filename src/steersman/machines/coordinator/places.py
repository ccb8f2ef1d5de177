"""Where the planned commands belong: each selected phase of each workflow, what comes before it, what is done in it.

**Invariant:** sorted by the ids of things, never by the order in which somebody happened to write them down; only the
phases of a workflow keep the order that the workflow gives them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from steersman.contracts.planning.content import Workflow, WorkflowPhase
from steersman.contracts.planning.intent import PlannedCommand
from steersman.contracts.planning.words import Phase
from steersman.kernel.canonical import digest_of
from steersman.machines.coordinator.inputs import Inputs

Chosen = tuple[Workflow, WorkflowPhase]

LONGEST = 100  # readable characters of a node's id; what tells two apart is the digest behind them


class Place(NamedTuple):
    """One selected phase of one workflow."""

    workflow: Workflow
    phase: WorkflowPhase
    before: tuple[Phase, ...]  # selected phases that have to be over
    commands: tuple[PlannedCommand, ...]  # that belong here
    node: str  # the id of the phase's node

    def action(self, command: str) -> str:
        """The id of the node of a command in this phase."""
        return node_id("action", self.workflow.id, self.phase.phase, command)


def node_id(kind: str, *parts: str) -> str:
    """The id of a node: readable, and different wherever its parts differ."""
    return f"n_{kind}_{'_'.join(parts)[:LONGEST]}_{digest_of([kind, *parts])[:12]}"


def places(inputs: Inputs) -> tuple[Place, ...]:
    """Every selected phase that the registry knows, by workflow id and then as the workflow declares them."""
    selected = tuple(_selected(inputs))
    chosen: dict[str, set[Phase]] = {}
    for workflow, phase in selected:
        chosen.setdefault(workflow.id, set()).add(phase.phase)
    at = _homes(inputs, selected)
    return tuple(
        Place(
            workflow,
            phase,
            _before(workflow, phase, chosen[workflow.id]),
            tuple(at.get((workflow.id, phase.phase), ())),
            node_id("phase", workflow.id, phase.phase),
        )
        for workflow, phase in selected
    )


def homeless(inputs: Inputs, found: tuple[Place, ...]) -> tuple[PlannedCommand, ...]:
    """Planned commands that belong to no selected phase, by id."""
    placed = {command.command_id for place in found for command in place.commands}
    rest = {c.command_id: c for c in inputs.intent.planned_commands if c.command_id not in placed}
    return tuple(command for _, command in sorted(rest.items()))


def ancestors(found: tuple[Place, ...]) -> dict[str, frozenset[Phase]]:
    """By the node of each phase: every phase of its workflow that comes before it, near or far."""
    before = {(p.workflow.id, p.phase.phase): p.before for p in found}
    return {p.node: _reached(p.workflow.id, p.before, before) for p in found}


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


def _selected(inputs: Inputs) -> Iterator[Chosen]:
    wanted: dict[str, set[Phase]] = {}
    for chosen in inputs.intent.selected_workflows:
        wanted.setdefault(chosen.workflow_id, set()).update(chosen.phases)
    for id_, phases in sorted(wanted.items()):
        if (workflow := inputs.workflow(id_)) is not None:
            yield from ((workflow, phase) for phase in _once(workflow) if phase.phase in phases)


def _once(workflow: Workflow) -> list[WorkflowPhase]:
    """Its phases; of two with one name the first holds."""
    found: dict[Phase, WorkflowPhase] = {}
    for phase in workflow.phases:
        found.setdefault(phase.phase, phase)
    return list(found.values())


def _homes(inputs: Inputs, selected: tuple[Chosen, ...]) -> dict[tuple[str, Phase], list[PlannedCommand]]:
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
    for id_, command in sorted({c.command_id: c for c in inputs.intent.planned_commands}.items()):
        spec = inputs.command(id_)
        phases = tuple(dict.fromkeys(spec.phases)) if spec else ()
        fit = (
            [where for phase in phases for where in named.get((id_, phase), ())]
            or [where for phase in phases for where in free.get(phase, ())]
            or [where for phase in phases for where in made.get(phase, ())]
        )
        for workflow, phase in fit:
            at.setdefault((workflow.id, phase.phase), []).append(command)
    return at


def _before(workflow: Workflow, phase: WorkflowPhase, chosen: set[Phase]) -> tuple[Phase, ...]:
    """The nearest selected phases before this one: what was not selected is stepped over."""
    declared = [p.phase for p in workflow.phases]
    if any(p.after for p in workflow.phases):
        after = {p.phase: p.after for p in workflow.phases}
    else:
        after = {name: tuple(declared[n - 1 : n]) if n else () for n, name in enumerate(declared)}
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
