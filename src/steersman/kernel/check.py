"""The model check: what is wrong with a machine, each finding with the shortest path to it."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace

from steersman.kernel.build import Machine, sources
from steersman.kernel.definition import STAY, Guard, Origin, StateDef, otherwise
from steersman.kernel.explore import Graph, Node, explore
from steersman.kernel.laws import Before, Never, Only, Possible


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
        *_exits(m),
        *_open_groups(m),
        *_unused(m),
        *_unabortable(m),
        *_unanswered(graph),
        *_unreachable(m, graph),
        *_hidden(m, graph),
        *_dead_ends(m, graph),
        *_loops(graph),
        *_laws(m, graph),
    )
    return Report(m.name, graph.cases, len(graph.edges), tuple(findings))


def _exits(m: Machine) -> Iterator[Finding]:
    for row in m.rows:
        for name in sources(row, tuple(m.states.values())):
            if name is None:
                continue
            here = m.states[name]
            if here.final and row.to is not STAY:
                yield Finding("exit from a final state", f"{name} on {row.on.name} ('{row.label}')")
            if here.resting and row.to is not STAY and row.on.origin not in (Origin.PERSON, Origin.GATE):
                yield Finding(
                    "exit from a resting state that nobody asked for",
                    f"{name} on {row.on.name} ('{row.label}')",
                )


def _open_groups(m: Machine) -> Iterator[Finding]:
    for (name, event), rows in m.lookup.items():
        last = rows[-1]
        exact = m.events[event].origin is Origin.PERSON and bool(last.when.reads)
        if last.when is not otherwise and not exact:
            yield Finding(
                "guarded rows without otherwise",
                f"{name} on {event}: nothing says what happens when '{last.when.sentence}' is false",
            )


def _unused(m: Machine) -> Iterator[Finding]:
    used = {row.on.name for row in m.rows}
    for name in m.events:
        if name not in used:
            yield Finding("event without a row", name)


def _unabortable(m: Machine) -> Iterator[Finding]:
    for here in m.states.values() if m.abort is not None else ():
        if (
            not here.final
            and not here.resting
            and (here.name, m.abort.name if m.abort else "") not in m.lookup
        ):
            yield Finding("state that cannot be aborted", here.name)


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
            where = ", ".join(str(s) for s in sources(row, tuple(m.states.values())))
            yield Finding(
                "row that is never taken",
                f"{where} on {row.on.name} when '{row.when.sentence}' ('{row.label}')",
            )


def _dead_ends(m: Machine, graph: Graph) -> Iterator[Finding]:
    seen: set[str] = set()
    for node, edges in graph.edges.items():
        here = m.states[node.state]
        ways = [e for e in edges if e.event is not m.abort]
        if not ways and not here.final and not here.resting and node.state not in seen:
            seen.add(node.state)
            yield Finding("dead end", f"{node.state}: nothing but an abort leads on", graph.path(node))


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
    """Peels off everything that cannot lie on a cycle, then walks what is left."""
    left = _core(free)
    done: set[Node] = set()
    for start in free:
        if start not in left or start in done:
            continue
        walk: list[Node] = []
        node = start
        while node not in walk:
            walk.append(node)
            node = next(t for t in free[node] if t in left)
        done.update(walk)
        yield walk[walk.index(node) :]


def _core(free: dict[Node, list[Node]]) -> set[Node]:
    """Nodes from which some unbounded walk never ends."""
    ways = {n: len(targets) for n, targets in free.items()}
    back: dict[Node, list[Node]] = {n: [] for n in free}
    for n, targets in free.items():
        for t in targets:
            back[t].append(n)
    queue = deque(n for n, count in ways.items() if count == 0)
    gone = set(queue)
    while queue:
        for before in back[queue.popleft()]:
            ways[before] -= 1
            if ways[before] == 0:
                gone.add(before)
                queue.append(before)
    return set(free) - gone


def _laws(m: Machine, graph: Graph) -> Iterator[Finding]:
    for law in m.laws:
        match law:
            case Never():
                yield from _never(law, graph)
            case Before():
                yield from _before(m, law, graph)
            case Only():
                yield from _only(m, law)
            case Possible():
                if not any(_in(n, law.state, law.when) for n in graph.edges):
                    yield Finding("broken law", str(law))


def _in(node: Node, state: StateDef, when: Guard | None) -> bool:
    if node.state != state.name:
        return False
    return (
        when is None or when.test(SimpleNamespace(**dict(node.constants), **dict(node.memory)), None) is True
    )


def _never(law: Never, graph: Graph) -> Iterator[Finding]:
    for node in graph.edges:
        if _in(node, law.state, law.when):
            yield Finding("broken law", str(law), graph.path(node))
            return


def _before(m: Machine, law: Before, graph: Graph) -> Iterator[Finding]:
    """From every beginning (also a reopening) nothing gets to `then` around `first`."""
    starts = [n for n in graph.edges if n.state == m.initial.name]
    for node in _around(graph, starts, law.first.name):
        if _in(node, law.then, law.when):
            yield Finding("broken law", str(law), graph.path(node))
            return


def _around(graph: Graph, starts: Iterable[Node], avoid: str) -> Iterator[Node]:
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
