"""Where the boxes of an execution graph stand: a row for each step of the longest way there, a band for each lane.

**Invariant:** whole numbers, and nothing but the graph decides them; a graph with a circle is laid out all the same.
"""

from collections.abc import Iterator

import msgspec

from steersman.contracts.planning.graph import ExecutionGraph
from steersman.judges.planning.adjacency import GraphAdjacency

NODE_WIDTH, NODE_HEIGHT = 220, 48  # of a box
NODE_GAP_X, NODE_GAP_Y = 24, 40
LANE_HEADER_HEIGHT = 36  # of a band
DRAWING_MARGIN = 20


class NodePosition(msgspec.Struct, frozen=True, gc=False):
    """The upper left corner of a box."""

    x: int
    y: int


class LaneBand(msgspec.Struct, frozen=True):
    """A lane: where it begins and how wide it is."""

    name: str
    x: int
    width: int


class GraphLayout(msgspec.Struct, frozen=True):
    """Everything that is drawn."""

    width: int
    height: int
    bands: tuple[LaneBand, ...]
    spots: dict[str, NodePosition]


def layout_graph(graph: ExecutionGraph) -> GraphLayout:
    """The spot of every node."""
    rank = compute_node_ranks(graph)
    lanes = [(f"{lane.agent_id} ({lane.role})", lane.node_refs) for lane in graph.swimlanes]
    bands: list[LaneBand] = []
    spots: dict[str, NodePosition] = {}
    left = DRAWING_MARGIN
    for name, refs in _lanes_with_unassigned(lanes, graph, spots):
        columns: dict[int, int] = {}
        for ref in refs:
            column = columns.get(rank[ref], 0)
            columns[rank[ref]] = column + 1
            spots[ref] = NodePosition(
                left + NODE_GAP_X + column * (NODE_WIDTH + NODE_GAP_X),
                DRAWING_MARGIN + LANE_HEADER_HEIGHT + rank[ref] * (NODE_HEIGHT + NODE_GAP_Y),
            )
        width = NODE_GAP_X + max(columns.values(), default=1) * (NODE_WIDTH + NODE_GAP_X)
        bands.append(LaneBand(name, left, width))
        left += width + NODE_GAP_X
    rows = max(rank.values(), default=0) + 1
    return GraphLayout(
        left, 2 * DRAWING_MARGIN + LANE_HEADER_HEIGHT + rows * (NODE_HEIGHT + NODE_GAP_Y), tuple(bands), spots
    )


def _lanes_with_unassigned(
    lanes: list[tuple[str, tuple[str, ...]]], graph: ExecutionGraph, placed: dict[str, NodePosition]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The lanes, and when they are placed what is in none of them."""
    yield from lanes
    unassigned = tuple(node.node_id for node in graph.nodes if node.node_id not in placed)
    if unassigned:
        yield "no lane", unassigned


def compute_node_ranks(graph: ExecutionGraph) -> dict[str, int]:
    """By node: the number of steps of the longest way to it; on a circle, and behind one, as far as it was come."""
    names = [node.node_id for node in graph.nodes]
    adjacency, steps = GraphAdjacency(names, graph.edges), [0] * len(names)
    for node in adjacency.in_order():
        for following in adjacency.after(node):
            steps[following] = max(steps[following], steps[node] + 1)
    return dict(zip(names, steps, strict=True))
