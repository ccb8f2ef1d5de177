"""The phases of a graph as people read them: on what each hangs, what comes before it, and where it leads when it fails.

**Invariant:** read from the graph alone.
"""

from typing import NamedTuple

from steersman.contracts.planning.graph import CONDITION_MARKER, ExecutionGraph, GraphNode


class PhaseSummary(NamedTuple):
    """What a graph says of one phase."""

    purpose: str
    condition: str  # empty: it always comes
    after: tuple[str, ...]  # phases that have to be over
    instead: str  # the phase that comes when this one does not succeed


def find_phase_conditions(graph: ExecutionGraph) -> dict[tuple[str, str], str]:
    """By workflow and phase: the words of its condition, where it has one."""
    return {
        name: summary.condition
        for name, summary in summarize_graph_phases(graph).items()
        if summary.condition
    }


def summarize_graph_phases(graph: ExecutionGraph) -> dict[tuple[str, str], PhaseSummary]:
    """By workflow and phase, in the order of the graph: what it says of each."""
    nodes = {node.node_id: node for node in graph.nodes}
    phase_by_node: dict[str, tuple[str, str]] = {
        id_: (node.workflow_ref, node.phase_ref) for id_, node in nodes.items() if node.phase_ref
    }
    summaries = {
        phase_by_node[id_]: _summarize_phase_node(node)
        for id_, node in nodes.items()
        if node.node_type == "phase"
    }
    for edge in graph.edges:
        start, end = phase_by_node.get(edge.from_node), phase_by_node.get(edge.to_node)
        if start is None or end is None or nodes[edge.to_node].node_type != "phase":
            continue  # inside of a phase, or from a question
        if edge.edge_type == "fallback":
            summaries[start] = summaries[start]._replace(instead=end[1])
        else:
            earlier = tuple(sorted({*summaries[end].after, start[1]}))
            summaries[end] = summaries[end]._replace(
                after=earlier, condition=summaries[end].condition or edge.condition
            )
    return summaries


def _summarize_phase_node(node: GraphNode) -> PhaseSummary:
    purpose, _, condition = node.description.partition(CONDITION_MARKER)
    return PhaseSummary(purpose, condition, (), "")
