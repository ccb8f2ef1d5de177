"""What a run could come to before it is started: the gates it can reach, and the most agent calls its caps allow.

Read from the same graph that the model check explores, with the project's own settings in place of the trial ones.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.kernel.definition import Cap, Guard, Origin, Pairs, otherwise
from steersman.kernel.explore import Edge, Graph, Node, explore
from steersman.kernel.machine import Machine

MOST = 4  # rounds that are explored; further ones add the same again


class Stretch(msgspec.Struct, frozen=True):
    """From one person's word to the next: how many agent calls at most."""

    after: str  # "start", or the gate and what was answered
    calls: int


class Forecast(msgspec.Struct, frozen=True):
    """What may happen."""

    gates: tuple[str, ...]
    stretches: tuple[Stretch, ...]

    @property
    def calls(self) -> int:
        """The most calls without anybody asking for rework."""
        first = [s.calls for s in self.stretches if s.after == "start"]
        return sum(first) + max((s.calls for s in self.stretches if s.after != "start"), default=0)


def forecast(m: Machine, settings: Mapping[str, Any]) -> Forecast:
    """For a new run with these constants and limits."""
    over = max((n - MOST for n in _limits(m, settings).values()), default=0)
    found = _explored(m, settings, 0)
    if over <= 0:
        return found
    fewer = _explored(m, settings, 1)
    grown = [
        Stretch(a.after, a.calls + over * (a.calls - b.calls))
        for a, b in zip(found.stretches, fewer.stretches, strict=True)
    ]
    return Forecast(found.gates, tuple(grown))


def _limits(m: Machine, settings: Mapping[str, Any]) -> dict[str, int]:
    """Caps whose limit is a setting."""
    return {
        c.name: int(settings[c.limit])
        for c in m.caps.values()
        if isinstance(c.limit, str) and c.limit in settings
    }


def _explored(m: Machine, settings: Mapping[str, Any], less: int) -> Forecast:
    limits = {name: max(1, min(n, MOST) - less) for name, n in _limits(m, settings).items()}
    chosen = {name: (settings[name],) if name in settings else values for name, values in m.constants.items()}
    graph = explore(replace(_limited(m, limits), constants=chosen))
    longest = _Longest(m, graph)
    gates = sorted({j for node in graph.edges for j in node.open if m.jobs[j].kind == "gate"})
    births = [n for n, (before, _) in graph.parents.items() if before is None]
    stretches = {"start": max((longest.calls(n) + _agents(m, n.open) for n in births), default=0)}
    for node, edges in graph.edges.items():
        for edge in edges:
            name = _answered(m, node, edge)
            if name:
                calls = longest.calls(edge.target) + longest.new(node, edge)
                stretches[name] = max(stretches.get(name, 0), calls)
    return Forecast(
        tuple(gates), tuple(Stretch(name, n) for name, n in stretches.items() if n or name == "start")
    )


def _answered(m: Machine, node: Node, edge: Edge) -> str:
    """A gate's answer that starts work, in words; nothing for other steps."""
    asks = [j for j in node.open if m.jobs[j].kind == "gate" and j not in edge.target.open]
    if (
        node.state not in m.settled
        or _goes_on(m, edge)
        or not edge.bounded
        or not asks
        or edge.row is None
        or not any(e is edge.event for _, e in m.namings[asks[0]].pairs)
    ):
        return ""
    when = edge.row.when
    return f"{asks[0]}: {edge.row.label if when is otherwise else when.sentence}"


def _goes_on(m: Machine, edge: Edge) -> bool:
    """A gate's answer that gives no cap back: what it starts counts with what came before."""
    return edge.event.origin is Origin.GATE and not m.resets[edge.event.name]


class _Longest:
    """The longest way to the next person's word, counted in agent calls; loops are bounded, so there is one."""

    def __init__(self, m: Machine, graph: Graph) -> None:
        self.m, self.graph = m, graph
        self._known: dict[Node, int] = {}

    def calls(self, node: Node) -> int:
        if node not in self._known:
            self._known[node] = 0  # a cycle that the check has let through counts once
            within = node.state not in self.m.settled
            free = [
                e
                for e in self.graph.edges[node]
                if not e.bounded or _goes_on(self.m, e) or (within and e.event.origin is Origin.GATE)
            ]
            self._known[node] = max((self.new(node, e) + self.calls(e.target) for e in free), default=0)
        return self._known[node]

    def new(self, node: Node, edge: Edge) -> int:
        """Agent calls that a step begins."""
        before = (
            node.planned
            if edge.target.state == node.state and edge.target.planned >= node.planned
            else frozenset()
        )
        return _agents(self.m, edge.target.planned - before)


def _agents(m: Machine, jobs: frozenset[str]) -> int:
    return sum(1 for j in jobs if m.jobs[j].does == "agent")


def _limited(m: Machine, limits: Mapping[str, int]) -> Machine:
    """The same machine with real limits where the check uses trial ones."""
    caps = {id(c): replace(c, trial=limits.get(c.name, c.trial)) for c in m.caps.values()}
    rows = {id(r): replace(r, cap=_cap(r.cap, caps), when=_guard(r.when, caps)) for r in m.rows}
    return replace(
        m,
        rows=tuple(rows.values()),
        lookup={key: tuple(rows[id(r)] for r in group) for key, group in m.lookup.items()},
        computed={key: replace(c, pairs=_pairs(c.pairs, caps)) for key, c in m.computed.items()},
        namings={key: replace(n, pairs=_pairs(n.pairs, caps)) for key, n in m.namings.items()},
    )


def _cap(cap: Cap | None, caps: Mapping[int, Cap]) -> Cap | None:
    return caps.get(id(cap), cap) if cap is not None else None


def _guard(guard: Guard, caps: Mapping[int, Cap]) -> Guard:
    return replace(guard, cap=_cap(guard.cap, caps)) if guard.cap is not None else guard


def _pairs(pairs: Pairs, caps: Mapping[int, Cap]) -> Pairs:
    return tuple((_guard(g, caps), e) for g, e in pairs)
