"""The edges of a graph by the node that they leave.

**Invariant:** in the order of the edges; two containers for a graph of any size: a list for every node would be gone
over by the garbage collector again and again while the rest is being made.
"""

from collections.abc import Iterator, Sequence

from steersman.contracts.planning.graph import Edge


class Ways:
    """Where one can go from each node."""

    def __init__(self, edges: Sequence[Edge]) -> None:
        self._edges = edges
        self._first: dict[str, int] = {}  # by node: the number of its first edge
        self._next = [-1] * len(edges)  # by edge: the next one of the same node
        for number in range(len(edges) - 1, -1, -1):
            start = edges[number].from_node
            self._next[number] = self._first.get(start, -1)
            self._first[start] = number

    def after(self, node: str) -> Iterator[str]:
        """The nodes that its edges lead to."""
        number = self._first.get(node, -1)
        while number >= 0:
            yield self._edges[number].to_node
            number = self._next[number]
