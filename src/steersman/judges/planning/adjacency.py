"""The edges of a graph, grouped by the node that they leave. Nodes and edges are numbers.

**Invariant:** edges keep their order. A graph of any size needs only a few lists: one list for each node would be visited
by the garbage collector again and again while the rest is built.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from steersman.contracts.planning.graph import GraphEdge


class GraphAdjacency:
    """Where one can go from each node."""

    def __init__(self, names: Iterable[str], edges: Sequence[GraphEdge]) -> None:
        node_numbers = {name: n for n, name in enumerate(names)}
        self.ends = [node_numbers[edge.to_node] for edge in edges]  # by edge: the node that it leads to
        self.first = [-1] * len(node_numbers)  # by node: its first edge
        self.then = [-1] * len(edges)  # by edge: the next one of the same node
        for edge in range(len(edges) - 1, -1, -1):
            start = node_numbers[edges[edge].from_node]
            self.then[edge], self.first[start] = self.first[start], edge

    def after(self, node: int) -> Iterator[int]:
        """The nodes that its edges lead to."""
        edge = self.first[node]
        while edge >= 0:
            yield self.ends[edge]
            edge = self.then[edge]

    def in_order(self) -> Iterator[int]:
        """Every node after all that lead to it; none that lies on a circle or behind one."""
        waiting_counts = [0] * len(self.first)
        for end in self.ends:
            waiting_counts[end] += 1
        ready = deque(node for node, count in enumerate(waiting_counts) if count == 0)
        while ready:
            node = ready.popleft()
            yield node
            for following in self.after(node):
                waiting_counts[following] -= 1
                if waiting_counts[following] == 0:
                    ready.append(following)
