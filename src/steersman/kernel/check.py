"""The model check: what is wrong with a machine, each finding with the shortest path to it."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steersman.kernel.definition import STAY, EventDef, Guard, Origin, StateDef, otherwise
from steersman.kernel.explore import Graph, Node, exactly, explore, has_room
from steersman.kernel.laws import Before, Never, Only
from steersman.kernel.machine import Machine, sources


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    kind: str
    where: str
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        way = f"\n    shortest path: {'  ·  '.join(self.path)}" if self.path else ""
        return f"{self.kind}: {self.where}{way}"


@dataclass(frozen=True, slots=True)
class Report:
    """What the check looked at and what it found."""

    machine: str
    cases: int
    nodes: int
    findings: tuple[Finding, ...]


def check(m: Machine) -> Report:
    """Explores the machine to a fixpoint and reports every finding."""
    graph = explore(m)
    findings = (
        *_exits(m, graph),
        *_open_groups(m, graph),
        *_unused(m),
        *(_unabortable(m, m.abort, graph) if m.abort is not None else ()),
        *_unborn(graph),
        *_unanswered(graph),
        *_unreachable(m, graph),
        *_hidden(m, graph),
        *_dead_ends(m, graph),
        *_loops(graph),
        *_laws(m, graph),
    )
    return Report(m.name, graph.cases, len(graph.edges), tuple(findings))


def _exits(m: Machine, graph: Graph) -> Iterator[Finding]:
    leaving = ((name, row) for (name, _), rows in m.lookup.items() for row in rows if row.to is not STAY)
    for name, row in leaving:
        here, where = m.states.get(name or ""), f"{name} on {row.on.name} ('{row.label}')"
        if here is not None and here.final:
            yield Finding("exit from a final state", where, graph.way(here.name))
        if here is not None and here.resting and row.on.origin not in (Origin.PERSON, Origin.GATE):
            yield Finding("exit from a resting state that nobody asked for", where, graph.way(here.name))


def _open_groups(m: Machine, graph: Graph) -> Iterator[Finding]:
    for (name, event), rows in m.lookup.items():
        last = rows[-1]
        exact = m.events[event].origin is Origin.PERSON and bool(last.when.reads)
        if last.when is not otherwise and not exact:
            yield Finding(
                "guarded rows without otherwise",
                f"{name} on {event}: nothing says what happens when '{last.when.sentence}' is false",
                graph.way(name or ""),
            )


def _unused(m: Machine) -> Iterator[Finding]:
    used = {row.on.name for row in m.rows}
    for name in m.events:
        if name not in used:
            yield Finding("event without a row", name)


def _unabortable(m: Machine, abort: EventDef, graph: Graph) -> Iterator[Finding]:
    for here in m.states.values():
        if not here.final and not here.resting and (here.name, abort.name) not in m.lookup:
            yield Finding("state that cannot be aborted", here.name, graph.way(here.name))


def _unborn(graph: Graph) -> Iterator[Finding]:
    for u in graph.unborn:
        given = ", ".join(f"{name}={value!r}" for name, value in u.constants)
        yield Finding("beginning without a row", f"{u.event} with {given}" if given else u.event)


def _unanswered(graph: Graph) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for u in graph.unanswered:
        if (u.node.state, u.event.name) not in seen:
            seen.add((u.node.state, u.event.name))
            yield Finding(
                "named event without a row", f"{u.event.name} in {u.node.state}", graph.path(u.node)
            )


def _unreachable(m: Machine, graph: Graph) -> Iterator[Finding]:
    reached = {node.state for node in graph.edges}
    for name in m.states:
        if name not in reached:
            yield Finding("unreachable state", name)
    values = {(f, v) for node in graph.edges for f, v in node.memory}
    for field, all_values in m.memory.items():
        for value in all_values:
            if (field, value) not in values:
                yield Finding("memory value that is never reached", f"{field} = {value!r}")


def _hidden(m: Machine, graph: Graph) -> Iterator[Finding]:
    for row in m.rows:
        if row not in graph.taken:
            names = sources(row, tuple(m.states.values()))
            where = ", ".join(str(name) for name in names)
            yield Finding(
                "row that is never taken",
                f"{where} on {row.on.name} when '{row.when.sentence}' ('{row.label}')",
                min((graph.way(name or "") for name in names), key=len),
            )


def _dead_ends(m: Machine, graph: Graph) -> Iterator[Finding]:
    """Moments from which nothing but an abort leads to an outcome."""
    back: dict[Node, list[Node]] = {n: [] for n in graph.edges}
    for node, edges in graph.edges.items():
        for edge in edges:
            if edge.event is not m.abort:
                back[edge.target].append(node)
    alive = {n for n in graph.edges if n.state in m.settled}
    queue = deque(alive)
    while queue:
        before = [n for n in back[queue.popleft()] if n not in alive]
        alive.update(before)
        queue.extend(before)
    stuck: dict[str, Node] = {}
    for node in graph.edges:
        if node not in alive:
            stuck.setdefault(node.state, node)
    for name, node in stuck.items():
        yield Finding("dead end", f"{name}: nothing but an abort leads to an outcome", graph.path(node))


def _loops(graph: Graph) -> Iterator[Finding]:
    """A cycle without a person in it: caps are part of the nodes, so a capped loop is no cycle."""
    free = {n: [e.target for e in edges if not e.bounded] for n, edges in graph.edges.items()}
    seen: set[frozenset[str]] = set()
    for cycle in _cycles(free):
        states = frozenset(n.state for n in cycle)
        if states not in seen:
            seen.add(states)
            way = " → ".join(n.state for n in (*cycle, cycle[0]))
            yield Finding("loop bounded by neither a cap nor a person", way, graph.path(cycle[0]))


def _cycles(free: dict[Node, list[Node]]) -> Iterator[list[Node]]:
    """Shortest cycles that share no node, the nearest to the beginning first."""
    left = _core(free)
    while left:
        start = next(iter(left))
        cycle = _shortest(left, start)
        if cycle:
            yield cycle
        done = {start, *cycle}
        left = _core({n: targets for n, targets in left.items() if n not in done})


def _core(free: dict[Node, list[Node]]) -> dict[Node, list[Node]]:
    """What is left when everything from which no walk goes on for ever is peeled off."""
    left = {n: [t for t in targets if t in free] for n, targets in free.items()}
    back: dict[Node, list[Node]] = {n: [] for n in left}
    for n, targets in left.items():
        for t in targets:
            back[t].append(n)
    ways = {n: len(targets) for n, targets in left.items()}
    queue = deque(n for n, count in ways.items() if count == 0)
    gone = set(queue)
    while queue:
        for before in back[queue.popleft()]:
            ways[before] -= 1
            if ways[before] == 0:
                gone.add(before)
                queue.append(before)
    return {n: [t for t in targets if t not in gone] for n, targets in left.items() if n not in gone}


def _shortest(free: dict[Node, list[Node]], start: Node) -> list[Node]:
    """The shortest way from here back to here; empty when there is none."""
    before: dict[Node, Node] = {}
    queue = deque([start])
    while queue and start not in before:
        node = queue.popleft()
        for target in free[node]:
            if target not in before:
                before[target] = node
                queue.append(target)
    if start not in before:
        return []
    way = [start]
    while before[way[-1]] is not start:
        way.append(before[way[-1]])
    return [start, *reversed(way[1:])]


def _laws(m: Machine, graph: Graph) -> Iterator[Finding]:
    for law in m.laws:
        match law:
            case Never():
                yield from _never(law, graph)
            case Before():
                yield from _before(m, law, graph)
            case Only():
                yield from _only(m, law)
            case _:
                if not any(_in(n, law.state, law.when) for n in graph.edges):
                    yield Finding("broken law", str(law))


def _in(node: Node, state: StateDef, when: Guard | None) -> bool:
    if node.state != state.name or when is None:
        return node.state == state.name
    return exactly(node, when) and (when.cap is None or has_room(node, when.cap))


def _never(law: Never, graph: Graph) -> Iterator[Finding]:
    for node in graph.edges:
        if _in(node, law.state, law.when):
            yield Finding("broken law", str(law), graph.path(node))
            return


def _before(m: Machine, law: Before, graph: Graph) -> Iterator[Finding]:
    """From every beginning (also a reopening) nothing gets to `then` around `first`."""
    born = (n for n in graph.edges if n.state == m.initial.name or graph.parents[n][0] is None)
    starts = [n for n in born if n.state != law.first.name]
    for node in _around(graph, starts, law.first.name):
        if _in(node, law.then, law.when):
            yield Finding("broken law", str(law), graph.path(node))
            return


def _around(graph: Graph, starts: Sequence[Node], avoid: str) -> Iterator[Node]:
    queue, seen = deque(starts), set(starts)
    while queue:
        node = queue.popleft()
        yield node
        for edge in graph.edges[node]:
            if edge.target not in seen and edge.target.state != avoid:
                seen.add(edge.target)
                queue.append(edge.target)


def _only(m: Machine, law: Only) -> Iterator[Finding]:
    for row in m.rows:
        if row.sets.get(law.field) == law.value and row.on not in law.by:
            yield Finding("broken law", f"{law}; but '{row.label}' does it by {row.on.name}")
