"""Builds the graph of everything a machine can do: states × constants × memory × caps × jobs, up to a fixpoint.

Guards that read only constants, memory or caps are answered exactly; guards
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
    NamingPairs,
    Origin,
    Row,
    StateDef,
    otherwise,
)
from steersman.kernel.machine import Machine


@dataclass(frozen=True, slots=True)
class StateNode:
    """One abstract moment of a run."""

    state: str
    constants: tuple[tuple[str, Any], ...]
    memory: tuple[tuple[str, Any], ...]
    counts: tuple[tuple[str, int], ...] = ()
    open: frozenset[str] = frozenset()  # jobs that are running
    planned: frozenset[str] = frozenset()  # jobs this visit has planned


@dataclass(frozen=True, slots=True)
class StateEdge:
    """One way on. An edge without a row is a result that came too late: it is journaled, and the job is over."""

    row: Row | None
    event: EventDef
    target: StateNode
    bounded: bool  # by a person, or by the number of a job's keys


@dataclass(frozen=True, slots=True)
class UnhandledEvent:
    """An event that can be named where no row may fit."""

    node: StateNode
    event: EventDef


@dataclass(frozen=True, slots=True)
class RowlessBeginning:
    """A beginning for which no row may fit."""

    event: str
    constants: tuple[tuple[str, Any], ...]


@dataclass(slots=True)
class StateGraph:
    """All that can be reached, and how."""

    edges: dict[StateNode, list[StateEdge]] = field(default_factory=dict)
    parents: dict[StateNode, tuple[StateNode | None, str]] = field(default_factory=dict)
    taken: set[Row] = field(default_factory=set)
    unanswered: list[UnhandledEvent] = field(default_factory=list)
    unborn: list[RowlessBeginning] = field(default_factory=list)
    cases: int = 0

    def way(self, state: str) -> tuple[str, ...]:
        """The shortest way to any moment in this state; empty when there is none."""
        # Nodes are explored breadth first: the first one of a state is a nearest one.
        return next((self.path(n) for n in self.edges if n.state == state), ())

    def path(self, node: StateNode) -> tuple[str, ...]:
        """The shortest way here, as the events taken and the states they led to."""
        steps: list[str] = []
        at: StateNode | None = node
        while at is not None:
            before, event = self.parents[at]
            steps.append(f"{event} → {at.state}")
            at = before
        return tuple(reversed(steps))


def explore_machine(machine: Machine) -> StateGraph:
    """Follows, from every state, only what its work can name or a person may send there."""
    graph = StateGraph()
    queue: deque[StateNode] = deque()

    def arrive(node: StateNode, before: StateNode | None, event: str) -> None:
        if node not in graph.parents:
            graph.parents[node] = (before, event)
            queue.append(node)

    for row, node in _find_beginnings(machine, graph):
        graph.taken.add(row)
        arrive(node, None, row.on.name)
    while queue:
        node = queue.popleft()
        graph.edges[node] = list(_outgoing_edges(machine, graph, node))
        for edge in graph.edges[node]:
            if edge.row is not None:
                graph.taken.add(edge.row)
            arrive(edge.target, node, edge.event.name)
    return graph


def _find_beginnings(machine: Machine, graph: StateGraph) -> Iterator[tuple[Row, StateNode]]:
    names = sorted(machine.constants)
    for values in product(*(machine.constants[n] for n in names)):
        constants = tuple(zip(names, values, strict=True))
        memory = tuple((n, machine.memory[n][0]) for n in sorted(machine.memory))
        blank = StateNode("", constants, memory)
        for event, rows in ((e, rows) for (source, e), rows in machine.lookup.items() if source is None):
            fitting, certain = _fitting_rows(graph, blank, rows)
            if not certain:
                graph.unborn.append(RowlessBeginning(event, constants))
            for row in fitting:
                yield row, _enter_state_node(machine, blank, row, closes=None)


def _outgoing_edges(machine: Machine, graph: StateGraph, node: StateNode) -> Iterator[StateEdge]:
    events, certain = _computed_state_events(machine, node)
    for event in events:
        yield from _follow_event(machine, graph, node, event, closes=None, bounded=False)
    if certain:
        return  # the computed step is in the same commit: nothing else can come between
    for name in sorted(node.open):
        yield from _job_end_edges(machine, graph, node, machine.jobs[name])
    for event in machine.events.values():
        if event.origin is Origin.PERSON and (node.state, event.name) in machine.lookup:
            yield from _follow_event(machine, graph, node, event, closes=None, bounded=True, sent=True)


def _job_end_edges(machine: Machine, graph: StateGraph, node: StateNode, job: Job) -> Iterator[StateEdge]:
    """What the end of a running job can bring about; of many, others may still be running."""
    is_keyed = any(d.many for s in machine.states.values() for d in s.work if d.job is job)
    for event in _possible_first_fits(node, machine.namings[job.name].pairs)[0]:
        if job.name not in node.planned and (node.state, event.name) not in machine.lookup:
            yield StateEdge(None, event, replace(node, open=node.open - {job.name}), bounded=True)
            continue
        yield from _follow_event(machine, graph, node, event, closes=job, bounded=job.kind == "gate")
        if is_keyed:
            yield from _follow_event(machine, graph, node, event, closes=None, bounded=True)


def _computed_state_events(machine: Machine, node: StateNode) -> tuple[list[EventDef], bool]:
    naming = machine.computed.get(node.state)
    return _possible_first_fits(node, naming.pairs) if naming is not None else ([], False)


def _possible_first_fits(node: StateNode, pairs: NamingPairs) -> tuple[list[EventDef], bool]:
    """The events a first fit over these pairs can give, and whether it surely gives one."""
    events: list[EventDef] = []
    for guard, event in pairs:
        answer = _abstract_guard_answer(node, guard)
        if answer is not False and event not in events:
            events.append(event)
        if answer is True:
            return events, True
    return events, False


def _abstract_guard_answer(node: StateNode, guard: Guard) -> bool | None:
    if guard is otherwise:
        return True
    if guard.cap is not None:
        return has_trial_room(node, guard.cap)
    if guard.reads:
        return is_guard_true_at(node, guard)
    return None


def is_guard_true_at(node: StateNode, guard: Guard) -> bool:
    """The answer of a guard that reads constants and memory only."""
    known = SimpleNamespace(**dict(node.constants), **dict(node.memory))
    try:
        return guard.test(known, None) is True
    except AttributeError as error:
        raise DefinitionError(
            f"guard '{guard.name}' says it reads only {', '.join(guard.reads) or 'nothing'}, but looks further: {error}"
        ) from error


def has_trial_room(node: StateNode, cap: Cap) -> bool:
    """Whether a cap is not full yet."""
    return dict(node.counts).get(cap.name, 0) < trial_limit(cap)


def trial_limit(cap: Cap) -> int:
    """The limit a cap is explored with."""
    return cap.limit if isinstance(cap.limit, int) else cap.trial


def _fitting_rows(graph: StateGraph, node: StateNode, rows: tuple[Row, ...]) -> tuple[list[Row], bool]:
    """The rows that may be taken, and whether one surely is."""
    fitting: list[Row] = []
    for row in rows:
        graph.cases += 1
        if row.cap is not None and not has_trial_room(node, row.cap):
            continue
        answer = _abstract_guard_answer(node, row.when)
        if answer is not False:
            fitting.append(row)
        if answer is True:
            return fitting, True
    return fitting, False


def _follow_event(
    machine: Machine,
    graph: StateGraph,
    node: StateNode,
    event: EventDef,
    *,
    closes: Job | None,
    bounded: bool,
    sent: bool = False,
) -> Iterator[StateEdge]:
    rows, certain = _fitting_rows(graph, node, machine.lookup.get((node.state, event.name), ()))
    if not certain and not sent:
        graph.unanswered.append(UnhandledEvent(node, event))
    for row in rows:
        # Parts of one job are finite, but only as long as the visit lasts.
        finite = bounded and (event.origin in (Origin.PERSON, Origin.GATE) or row.to is STAY)
        yield StateEdge(row, event, _enter_state_node(machine, node, row, closes=closes), finite)


def _enter_state_node(machine: Machine, node: StateNode, row: Row, *, closes: Job | None) -> StateNode:
    stay = row.to is STAY
    state = row.to.name if isinstance(row.to, StateDef) else node.state
    memory = tuple((n, row.sets.get(n, v)) for n, v in node.memory) if row.sets else node.memory
    surviving_jobs = node.open if stay else frozenset(j for j in node.open if machine.jobs[j].outlives)
    open_jobs = surviving_jobs - {closes.name} if closes is not None else surviving_jobs
    moved = StateNode(
        state,
        node.constants,
        memory,
        _counts_after_row(machine, node, row),
        open_jobs,
        node.planned if stay else frozenset(),
    )
    jobs = {
        d.job.name
        for d in machine.states[state].work
        if _abstract_guard_answer(moved, d.when) and d.job.name not in moved.planned
    }
    return StateNode(state, moved.constants, memory, moved.counts, open_jobs | jobs, moved.planned | jobs)


def _counts_after_row(machine: Machine, node: StateNode, row: Row) -> tuple[tuple[str, int], ...]:
    cleared = {cap for _, cap in machine.resets[row.on.name]}
    counts = {c: n for c, n in node.counts if c not in cleared}
    if row.cap is not None:
        counts[row.cap.name] = counts.get(row.cap.name, 0) + 1
    return tuple(sorted(counts.items()))
