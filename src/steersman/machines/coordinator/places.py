"""Where the planned commands belong: each selected phase of each workflow, what comes before it, what is done in it.

**Invariant:** a workflow says what comes first or, where it is silent, the intent's list of commands; anything
else is sorted by the ids of things, never by the order in which somebody happened to write it down.
"""

from typing import NamedTuple

from steersman.contracts.planning.content import Workflow, WorkflowPhase
from steersman.contracts.planning.intent import PlannedCommand
from steersman.contracts.planning.words import PlanPhase
from steersman.judges.planning.plan_inputs import PlanInputs
from steersman.judges.planning.sequence import PlannedPhase, find_earlier_phases, find_selected_phases
from steersman.kernel.canonical import digest_of

# Readable characters of a node's id; what tells two apart is the digest behind them.
MAX_READABLE_NODE_ID = 100


class SelectedPhase(NamedTuple):
    """One selected phase of one workflow."""

    workflow: Workflow
    phase: WorkflowPhase
    before: tuple[PlanPhase, ...]  # selected phases that have to be over
    commands: tuple[PlannedCommand, ...]  # that belong here, in their order
    node: str  # the id of the phase's node
    earlier: frozenset[PlanPhase]  # every selected phase before it, near or far

    def action(self, command: str) -> str:
        """The id of the node of a command in this phase."""
        return graph_node_id("action", self.workflow.id, self.phase.phase, command)


def graph_node_id(kind: str, *parts: str) -> str:
    """The id of a node: readable, and different wherever its parts differ."""
    return f"n_{kind}_{'_'.join(parts)[:MAX_READABLE_NODE_ID]}_{digest_of([kind, *parts])[:12]}"


def select_phases(inputs: PlanInputs) -> tuple[SelectedPhase, ...]:
    """Every selected phase that the registry knows, by workflow id and then as the workflow declares them."""
    workflow_homes = find_selected_phases(inputs.intent, inputs.registry)
    return tuple(
        _build_selected_phase(home, before)
        for home, before in zip(workflow_homes, find_earlier_phases(workflow_homes), strict=True)
    )


def _build_selected_phase(home: PlannedPhase, before: frozenset[PlanPhase]) -> SelectedPhase:
    return SelectedPhase(
        *home, node=graph_node_id("phase", home.workflow.id, home.phase.phase), earlier=before
    )


def find_phaseless_commands(
    inputs: PlanInputs, selected_phases: tuple[SelectedPhase, ...]
) -> tuple[PlannedCommand, ...]:
    """Planned commands that belong to no selected phase, by id."""
    placed = {command.command_id for place in selected_phases for command in place.commands}
    rest = {c.command_id: c for c in inputs.intent.planned_commands if c.command_id not in placed}
    return tuple(command for _, command in sorted(rest.items()))
