"""Summarizes the phases of a plan's graph: condition, predecessors, and the fallback of each.

**Invariant:** a function of the graph alone.
"""

from typing import NamedTuple

from steersman.contracts.planning.graph import CONDITION_MARKER, ExecutionGraph, GraphNode


class PhaseSummary(NamedTuple):
    """One phase of a graph."""

    purpose: str
    condition: str  # empty: the phase always runs
    after: tuple[str, ...]  # phases that have to end first
    instead: str  # the fallback phase


def find_phase_conditions(graph: ExecutionGraph) -> dict[tuple[str, str], str]:
    """Returns the condition of each phase that has one, by workflow and phase."""
    return {name: s.condition for name, s in summarize_graph_phases(graph).items() if s.condition}


def summarize_graph_phases(graph: ExecutionGraph) -> dict[tuple[str, str], PhaseSummary]:
    """Returns a summary of each phase, by workflow and phase, in the order of the graph."""
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
            continue  # within a phase, or from a question
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
