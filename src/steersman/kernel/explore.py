"""The graph of everything a machine can do: states × constants × memory × caps × jobs, followed to a fixpoint.

Just another reader of the definition. Guards that read only constants, memory or caps are answered exactly; guards
that look at facts are answered both ways.
**Invariant:** nothing here calls a fold, a work input or a performer.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

from steersman.errors import DefinitionError
from steersman.kernel.definition import (
    STAY,
    Cap,
    EventDef,
    Guard,
    Job,
    Origin,
    Pairs,
    Row,
    StateDef,
    otherwise,
)
from steersman.kernel.machine import Machine


@dataclass(frozen=True, slots=True)
class Node:
    """One abstract moment of a run."""

    state: str
    constants: tuple[tuple[str, Any], ...]
    memory: tuple[tuple[str, Any], ...]
    counts: tuple[tuple[str, int], ...] = ()
    open: frozenset[str] = frozenset()  # jobs that are running
    planned: frozenset[str] = frozenset()  # jobs this visit has planned


@dataclass(frozen=True, slots=True)
class Edge:
    """One way on; without a row it is a result that came too late: journaled, and the job is over."""

    row: Row | None
    event: EventDef
    target: Node
    bounded: bool  # by a person, or by the number of a job's keys


@dataclass(frozen=True, slots=True)
class Unanswered:
    """An event that can be named where no row may fit."""

    node: Node
    event: EventDef


@dataclass(frozen=True, slots=True)
class Unborn:
    """A beginning for which no row may fit."""

    event: str
    constants: tuple[tuple[str, Any], ...]


@dataclass(slots=True)
class Graph:
    """All that can be reached, and how."""

    edges: dict[Node, list[Edge]] = field(default_factory=dict)
    parents: dict[Node, tuple[Node | None, str]] = field(default_factory=dict)
    taken: set[Row] = field(default_factory=set)
    unanswered: list[Unanswered] = field(default_factory=list)
    unborn: list[Unborn] = field(default_factory=list)
    cases: int = 0

    def way(self, state: str) -> tuple[str, ...]:
        """The shortest way to any moment in this state; empty when there is none."""
        # Nodes are explored breadth first: the first one of a state is a nearest one.
        return next((self.path(n) for n in self.edges if n.state == state), ())

    def path(self, node: Node) -> tuple[str, ...]:
        """The shortest way here, as the events taken and the states they led to."""
        steps: list[str] = []
        at: Node | None = node
        while at is not None:
            before, event = self.parents[at]
            steps.append(f"{event} → {at.state}")
            at = before
        return tuple(reversed(steps))


def explore(m: Machine) -> Graph:
    """Follows, from every state, only what its work can name or a person may send there."""
    graph = Graph()
    queue: deque[Node] = deque()

    def arrive(node: Node, before: Node | None, event: str) -> None:
        if node not in graph.parents:
            graph.parents[node] = (before, event)
            queue.append(node)

    for row, node in _births(m, graph):
        graph.taken.add(row)
        arrive(node, None, row.on.name)
    while queue:
        node = queue.popleft()
        graph.edges[node] = list(_out(m, graph, node))
        for edge in graph.edges[node]:
            if edge.row is not None:
                graph.taken.add(edge.row)
            arrive(edge.target, node, edge.event.name)
    return graph


def _births(m: Machine, graph: Graph) -> Iterator[tuple[Row, Node]]:
    names = sorted(m.constants)
    for values in product(*(m.constants[n] for n in names)):
        constants = tuple(zip(names, values, strict=True))
        memory = tuple((n, m.memory[n][0]) for n in sorted(m.memory))
        blank = Node("", constants, memory)
        for event, rows in ((e, rows) for (source, e), rows in m.lookup.items() if source is None):
            fitting, certain = _fitting(graph, blank, rows)
            if not certain:
                graph.unborn.append(Unborn(event, constants))
            for row in fitting:
                yield row, _enter(m, blank, row, closes=None)


def _out(m: Machine, graph: Graph, node: Node) -> Iterator[Edge]:
    events, certain = _computed(m, node)
    for event in events:
        yield from _follow(m, graph, node, event, closes=None, bounded=False)
    if certain:
        return  # the computed step is in the same commit: nothing else can come between
    for name in sorted(node.open):
        yield from _finish(m, graph, node, m.jobs[name])
    for event in m.events.values():
        if event.origin is Origin.PERSON and (node.state, event.name) in m.lookup:
            yield from _follow(m, graph, node, event, closes=None, bounded=True, sent=True)


def _finish(m: Machine, graph: Graph, node: Node, job: Job) -> Iterator[Edge]:
    """What the end of a running job can bring about; of many, others may still be running."""
    many = any(d.many for s in m.states.values() for d in s.work if d.job is job)
    for event in _possible(node, m.namings[job.name].pairs)[0]:
        if job.name not in node.planned and (node.state, event.name) not in m.lookup:
            yield Edge(None, event, replace(node, open=node.open - {job.name}), bounded=True)
            continue
        yield from _follow(m, graph, node, event, closes=job, bounded=job.kind == "gate")
        if many:
            yield from _follow(m, graph, node, event, closes=None, bounded=True)


def _computed(m: Machine, node: Node) -> tuple[list[EventDef], bool]:
    c = m.computed.get(node.state)
    return _possible(node, c.pairs) if c is not None else ([], False)


def _possible(node: Node, pairs: Pairs) -> tuple[list[EventDef], bool]:
    """The events a first fit over these pairs can give, and whether it surely gives one."""
    events: list[EventDef] = []
    for guard, event in pairs:
        answer = _answer(node, guard)
        if answer is not False and event not in events:
            events.append(event)
        if answer is True:
            return events, True
    return events, False


def _answer(node: Node, guard: Guard) -> bool | None:
    if guard is otherwise:
        return True
    if guard.cap is not None:
        return has_room(node, guard.cap)
    if guard.reads:
        return exactly(node, guard)
    return None


def exactly(node: Node, guard: Guard) -> bool:
    """The answer of a guard that reads constants and memory only."""
    known = SimpleNamespace(**dict(node.constants), **dict(node.memory))
    try:
        return guard.test(known, None) is True
    except AttributeError as error:
        raise DefinitionError(
            f"guard '{guard.name}' says it reads only {', '.join(guard.reads) or 'nothing'}, but looks further: {error}"
        ) from error


def has_room(node: Node, cap: Cap) -> bool:
    """Whether a cap is not full yet."""
    return dict(node.counts).get(cap.name, 0) < trial(cap)


def trial(cap: Cap) -> int:
    """The limit a cap is explored with."""
    return cap.limit if isinstance(cap.limit, int) else cap.trial


def _fitting(graph: Graph, node: Node, rows: tuple[Row, ...]) -> tuple[list[Row], bool]:
    """The rows that may be taken, and whether one surely is."""
    fitting: list[Row] = []
    for row in rows:
        graph.cases += 1
        if row.cap is not None and not has_room(node, row.cap):
            continue
        answer = _answer(node, row.when)
        if answer is not False:
            fitting.append(row)
        if answer is True:
            return fitting, True
    return fitting, False


def _follow(
    m: Machine,
    graph: Graph,
    node: Node,
    event: EventDef,
    *,
    closes: Job | None,
    bounded: bool,
    sent: bool = False,
) -> Iterator[Edge]:
    rows, certain = _fitting(graph, node, m.lookup.get((node.state, event.name), ()))
    if not certain and not sent:
        graph.unanswered.append(Unanswered(node, event))
    for row in rows:
        # Parts of one job are finite, but only as long as the visit lasts.
        finite = bounded and (event.origin in (Origin.PERSON, Origin.GATE) or row.to is STAY)
        yield Edge(row, event, _enter(m, node, row, closes=closes), finite)


def _enter(m: Machine, node: Node, row: Row, *, closes: Job | None) -> Node:
    stay = row.to is STAY
    state = row.to.name if isinstance(row.to, StateDef) else node.state
    memory = tuple((n, row.sets.get(n, v)) for n, v in node.memory) if row.sets else node.memory
    kept = node.open if stay else frozenset(j for j in node.open if m.jobs[j].outlives)
    still = kept - {closes.name} if closes is not None else kept
    moved = Node(
        state, node.constants, memory, _counted(m, node, row), still, node.planned if stay else frozenset()
    )
    fresh = {
        d.job.name for d in m.states[state].work if _answer(moved, d.when) and d.job.name not in moved.planned
    }
    return Node(state, moved.constants, memory, moved.counts, still | fresh, moved.planned | fresh)


def _counted(m: Machine, node: Node, row: Row) -> tuple[tuple[str, int], ...]:
    cleared = {cap for _, cap in m.resets[row.on.name]}
    counts = {c: n for c, n in node.counts if c not in cleared}
    if row.cap is not None:
        counts[row.cap.name] = counts.get(row.cap.name, 0) + 1
    return tuple(sorted(counts.items()))
