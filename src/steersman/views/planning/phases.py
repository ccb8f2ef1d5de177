"""The phases of a graph as people read them: on what each hangs, what comes before it, and where it leads when it fails.

**Invariant:** read from the graph alone.
"""

from typing import NamedTuple

from steersman.contracts.planning.graph import ONLY_IF, ExecutionGraph, Node


class Told(NamedTuple):
    """What a graph says of one phase."""

    purpose: str
    condition: str  # empty: it always comes
    after: tuple[str, ...]  # phases that have to be over
    instead: str  # the phase that comes when this one does not succeed


def conditions(graph: ExecutionGraph) -> dict[tuple[str, str], str]:
    """By workflow and phase: the words of its condition, where it has one."""
    return {name: told.condition for name, told in phases(graph).items() if told.condition}


def phases(graph: ExecutionGraph) -> dict[tuple[str, str], Told]:
    """By workflow and phase, in the order of the graph: what it says of each."""
    nodes = {node.node_id: node for node in graph.nodes}
    named: dict[str, tuple[str, str]] = {
        id_: (node.workflow_ref, node.phase_ref) for id_, node in nodes.items() if node.phase_ref
    }
    found = {named[id_]: _said(node) for id_, node in nodes.items() if node.node_type == "phase"}
    for edge in graph.edges:
        start, end = named.get(edge.from_node), named.get(edge.to_node)
        if start is None or end is None or nodes[edge.to_node].node_type != "phase":
            continue  # inside of a phase, or from a question
        if edge.edge_type == "fallback":
            found[start] = found[start]._replace(instead=end[1])
        else:
            before = tuple(sorted({*found[end].after, start[1]}))
            found[end] = found[end]._replace(after=before, condition=found[end].condition or edge.condition)
    return found


def _said(node: Node) -> Told:
    purpose, _, condition = node.description.partition(ONLY_IF)
    return Told(purpose, condition, (), "")
