"""Where the boxes of an execution graph stand: a row for each step of the longest way there, a band for each lane.

**Invariant:** whole numbers, and nothing but the graph decides them; a graph with a circle is laid out all the same.
"""

from collections.abc import Iterator

import msgspec

from steersman.contracts.planning.graph import ExecutionGraph
from steersman.judges.planning.ways import Ways

WIDTH, HEIGHT = 220, 48  # of a box
GAP_X, GAP_Y = 24, 40
HEAD = 36  # of a band
MARGIN = 20


class Spot(msgspec.Struct, frozen=True, gc=False):
    """The upper left corner of a box."""

    x: int
    y: int


class Band(msgspec.Struct, frozen=True):
    """A lane: where it begins and how wide it is."""

    name: str
    x: int
    width: int


class Layout(msgspec.Struct, frozen=True):
    """Everything that is drawn."""

    width: int
    height: int
    bands: tuple[Band, ...]
    spots: dict[str, Spot]


def layout(graph: ExecutionGraph) -> Layout:
    """The spot of every node."""
    rank = ranks(graph)
    lanes = [(f"{lane.agent_id} ({lane.role})", lane.node_refs) for lane in graph.swimlanes]
    bands: list[Band] = []
    spots: dict[str, Spot] = {}
    x = MARGIN
    for name, refs in _with_loose(lanes, graph, spots):
        columns: dict[int, int] = {}
        for ref in refs:
            column = columns.get(rank[ref], 0)
            columns[rank[ref]] = column + 1
            spots[ref] = Spot(
                x + GAP_X + column * (WIDTH + GAP_X), MARGIN + HEAD + rank[ref] * (HEIGHT + GAP_Y)
            )
        width = GAP_X + max(columns.values(), default=1) * (WIDTH + GAP_X)
        bands.append(Band(name, x, width))
        x += width + GAP_X
    rows = max(rank.values(), default=0) + 1
    return Layout(x, 2 * MARGIN + HEAD + rows * (HEIGHT + GAP_Y), tuple(bands), spots)


def _with_loose(
    lanes: list[tuple[str, tuple[str, ...]]], graph: ExecutionGraph, placed: dict[str, Spot]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The lanes, and when they are placed what is in none of them."""
    yield from lanes
    loose = tuple(node.node_id for node in graph.nodes if node.node_id not in placed)
    if loose:
        yield "no lane", loose


def ranks(graph: ExecutionGraph) -> dict[str, int]:
    """By node: the number of steps of the longest way to it; on a circle, and behind one, as far as it was come."""
    names = [node.node_id for node in graph.nodes]
    ways, steps = Ways(names, graph.edges), [0] * len(names)
    for node in ways.in_order():
        for following in ways.after(node):
            steps[following] = max(steps[following], steps[node] + 1)
    return dict(zip(names, steps, strict=True))
