"""The model check: what is wrong with a machine, each finding with the shortest path to it."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steersman.kernel.definition import STAY, EventDef, Guard, Origin, StateDef, otherwise
from steersman.kernel.explore import StateGraph, StateNode, explore_machine, has_trial_room, is_guard_true_at
from steersman.kernel.laws import Before, Never, Only
from steersman.kernel.machine import Machine, row_source_states


@dataclass(frozen=True, slots=True)
class ModelFinding:
    """One thing that is wrong."""

    kind: str
    where: str
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        path_text = f"\n    shortest path: {'  ·  '.join(self.path)}" if self.path else ""
        return f"{self.kind}: {self.where}{path_text}"


@dataclass(frozen=True, slots=True)
class ModelCheckReport:
    """What the check looked at and what it found."""

    machine: str
    cases: int
    nodes: int
    findings: tuple[ModelFinding, ...]


def check_machine(machine: Machine) -> ModelCheckReport:
    """Explores the machine to a fixpoint and reports every finding."""
    graph = explore_machine(machine)
    findings = (
        *_find_forbidden_exits(machine, graph),
        *_find_groups_without_otherwise(machine, graph),
        *_find_unused_events(machine),
        *(_find_unabortable_states(machine, machine.abort, graph) if machine.abort is not None else ()),
        *_find_rowless_beginnings(graph),
        *_find_unhandled_events(graph),
        *_find_unreachable_states(machine, graph),
        *_find_untaken_rows(machine, graph),
        *_find_dead_ends(machine, graph),
        *_find_unbounded_loops(graph),
        *_find_broken_laws(machine, graph),
    )
    return ModelCheckReport(machine.name, graph.cases, len(graph.edges), tuple(findings))


def _find_forbidden_exits(machine: Machine, graph: StateGraph) -> Iterator[ModelFinding]:
    leaving = (
        (name, row) for (name, _), rows in machine.lookup.items() for row in rows if row.to is not STAY
    )
    for name, row in leaving:
        state, where = machine.states.get(name or ""), f"{name} on {row.on.name} ('{row.label}')"
        if state is not None and state.final:
            yield ModelFinding("exit from a final state", where, graph.way(state.name))
        if state is not None and state.resting and row.on.origin not in (Origin.PERSON, Origin.GATE):
            yield ModelFinding(
                "exit from a resting state without a person's request", where, graph.way(state.name)
            )


def _find_groups_without_otherwise(machine: Machine, graph: StateGraph) -> Iterator[ModelFinding]:
    for (name, event), rows in machine.lookup.items():
        last = rows[-1]
        exact = machine.events[event].origin is Origin.PERSON and bool(last.when.reads)
        if last.when is not otherwise and not exact:
            yield ModelFinding(
                "guarded rows without otherwise",
                f"{name} on {event}: nothing says what happens when '{last.when.sentence}' is false",
                graph.way(name or ""),
            )


def _find_unused_events(machine: Machine) -> Iterator[ModelFinding]:
    used = {row.on.name for row in machine.rows}
    for name in machine.events:
        if name not in used:
            yield ModelFinding("event without a row", name)


def _find_unabortable_states(machine: Machine, abort: EventDef, graph: StateGraph) -> Iterator[ModelFinding]:
    for state in machine.states.values():
        if not state.final and not state.resting and (state.name, abort.name) not in machine.lookup:
            yield ModelFinding("state that cannot be aborted", state.name, graph.way(state.name))


def _find_rowless_beginnings(graph: StateGraph) -> Iterator[ModelFinding]:
    for beginning in graph.unborn:
        constants = ", ".join(f"{name}={value!r}" for name, value in beginning.constants)
        yield ModelFinding(
            "beginning without a row", f"{beginning.event} with {constants}" if constants else beginning.event
        )


def _find_unhandled_events(graph: StateGraph) -> Iterator[ModelFinding]:
    reported: set[tuple[str, str]] = set()
    for unhandled in graph.unanswered:
        if (unhandled.node.state, unhandled.event.name) not in reported:
            reported.add((unhandled.node.state, unhandled.event.name))
            yield ModelFinding(
                "named event without a row",
                f"{unhandled.event.name} in {unhandled.node.state}",
                graph.path(unhandled.node),
            )


def _find_unreachable_states(machine: Machine, graph: StateGraph) -> Iterator[ModelFinding]:
    reached = {node.state for node in graph.edges}
    for name in machine.states:
        if name not in reached:
            yield ModelFinding("unreachable state", name)
    values = {(f, v) for node in graph.edges for f, v in node.memory}
    for field, all_values in machine.memory.items():
        for value in all_values:
            if (field, value) not in values:
                yield ModelFinding("memory value that is never reached", f"{field} = {value!r}")


def _find_untaken_rows(machine: Machine, graph: StateGraph) -> Iterator[ModelFinding]:
    for row in machine.rows:
        if row not in graph.taken:
            names = row_source_states(row, tuple(machine.states.values()))
            where = ", ".join(str(name) for name in names)
            yield ModelFinding(
                "row that is never taken",
                f"{where} on {row.on.name} when '{row.when.sentence}' ('{row.label}')",
                min((graph.way(name or "") for name in names), key=len),
            )


def _find_dead_ends(machine: Machine, graph: StateGraph) -> Iterator[ModelFinding]:
    """Moments from which nothing but an abort leads to an outcome."""
    back: dict[StateNode, list[StateNode]] = {n: [] for n in graph.edges}
    for node, edges in graph.edges.items():
        for edge in edges:
            if edge.event is not machine.abort:
                back[edge.target].append(node)
    alive = {n for n in graph.edges if n.state in machine.settled}
    queue = deque(alive)
    while queue:
        before = [n for n in back[queue.popleft()] if n not in alive]
        alive.update(before)
        queue.extend(before)
    stuck: dict[str, StateNode] = {}
    for node in graph.edges:
        if node not in alive:
            stuck.setdefault(node.state, node)
    for name, node in stuck.items():
        yield ModelFinding("dead end", f"{name}: nothing but an abort leads to an outcome", graph.path(node))


def _find_unbounded_loops(graph: StateGraph) -> Iterator[ModelFinding]:
    """A cycle without a person in it: caps are part of the nodes, so a capped loop is no cycle."""
    free = {n: [e.target for e in edges if not e.bounded] for n, edges in graph.edges.items()}
    reported: set[frozenset[str]] = set()
    for cycle in _find_disjoint_cycles(free):
        states = frozenset(n.state for n in cycle)
        if states not in reported:
            reported.add(states)
            cycle_text = " → ".join(n.state for n in (*cycle, cycle[0]))
            yield ModelFinding("loop bounded by neither a cap nor a person", cycle_text, graph.path(cycle[0]))


def _find_disjoint_cycles(free: dict[StateNode, list[StateNode]]) -> Iterator[list[StateNode]]:
    """Shortest cycles that share no node, the nearest to the beginning first."""
    remaining = _prune_acyclic_nodes(free)
    while remaining:
        start = next(iter(remaining))
        cycle = _shortest_node_cycle(remaining, start)
        if cycle:
            yield cycle
        visited = {start, *cycle}
        remaining = _prune_acyclic_nodes({n: targets for n, targets in remaining.items() if n not in visited})


def _prune_acyclic_nodes(free: dict[StateNode, list[StateNode]]) -> dict[StateNode, list[StateNode]]:
    """What is left when everything from which no walk goes on for ever is peeled off."""
    remaining = {n: [target for target in targets if target in free] for n, targets in free.items()}
    back: dict[StateNode, list[StateNode]] = {n: [] for n in remaining}
    for n, targets in remaining.items():
        for target in targets:
            back[target].append(n)
    exit_counts = {n: len(targets) for n, targets in remaining.items()}
    queue = deque(n for n, count in exit_counts.items() if count == 0)
    pruned = set(queue)
    while queue:
        for before in back[queue.popleft()]:
            exit_counts[before] -= 1
            if exit_counts[before] == 0:
                pruned.add(before)
                queue.append(before)
    return {
        n: [target for target in targets if target not in pruned]
        for n, targets in remaining.items()
        if n not in pruned
    }


def _shortest_node_cycle(free: dict[StateNode, list[StateNode]], start: StateNode) -> list[StateNode]:
    """The shortest way from here back to here; empty when there is none."""
    predecessors: dict[StateNode, StateNode] = {}
    queue = deque([start])
    while queue and start not in predecessors:
        node = queue.popleft()
        for target in free[node]:
            if target not in predecessors:
                predecessors[target] = node
                queue.append(target)
    if start not in predecessors:
        return []
    cycle = [start]
    while predecessors[cycle[-1]] is not start:
        cycle.append(predecessors[cycle[-1]])
    return [start, *reversed(cycle[1:])]


def _find_broken_laws(machine: Machine, graph: StateGraph) -> Iterator[ModelFinding]:
    for law in machine.laws:
        match law:
            case Never():
                yield from _check_never_law(law, graph)
            case Before():
                yield from _check_before_law(machine, law, graph)
            case Only():
                yield from _check_only_law(machine, law)
            case _:
                if not any(_is_node_in_state(n, law.state, law.when) for n in graph.edges):
                    yield ModelFinding("broken law", str(law))


def _is_node_in_state(node: StateNode, state: StateDef, when: Guard | None) -> bool:
    if node.state != state.name or when is None:
        return node.state == state.name
    return is_guard_true_at(node, when) and (when.cap is None or has_trial_room(node, when.cap))


def _check_never_law(law: Never, graph: StateGraph) -> Iterator[ModelFinding]:
    for node in graph.edges:
        if _is_node_in_state(node, law.state, law.when):
            yield ModelFinding("broken law", str(law), graph.path(node))
            return


def _check_before_law(machine: Machine, law: Before, graph: StateGraph) -> Iterator[ModelFinding]:
    """From every beginning (also a reopening) nothing gets to `then` around `first`."""
    born = (n for n in graph.edges if n.state == machine.initial.name or graph.parents[n][0] is None)
    starts = [n for n in born if n.state != law.first.name]
    for node in _walk_avoiding_state(graph, starts, law.first.name):
        if _is_node_in_state(node, law.then, law.when):
            yield ModelFinding("broken law", str(law), graph.path(node))
            return


def _walk_avoiding_state(graph: StateGraph, starts: Sequence[StateNode], avoid: str) -> Iterator[StateNode]:
    queue, visited = deque(starts), set(starts)
    while queue:
        node = queue.popleft()
        yield node
        for edge in graph.edges[node]:
            if edge.target not in visited and edge.target.state != avoid:
                visited.add(edge.target)
                queue.append(edge.target)


def _check_only_law(machine: Machine, law: Only) -> Iterator[ModelFinding]:
    for row in machine.rows:
        if row.sets.get(law.field) == law.value and row.on not in law.by:
            yield ModelFinding("broken law", f"{law}; but '{row.label}' does it by {row.on.name}")
