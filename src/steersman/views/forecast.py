"""Forecasts a run before it starts: the gates that it can reach, and the most agent calls that its caps allow.

It explores the same graph as the model check, with the project's settings in place of the trial ones.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.kernel.definition import Cap, Guard, NamingPairs, Origin, otherwise
from steersman.kernel.explore import StateEdge, StateGraph, StateNode, explore_machine
from steersman.kernel.machine import Machine

MAX_EXPLORED_ROUNDS = 4  # further rounds add the same again


class UnattendedStretch(msgspec.Struct, frozen=True):
    """The most agent calls between two decisions of a person."""

    after: str  # "start", or the gate and what was answered
    calls: int


class RunForecast(msgspec.Struct, frozen=True):
    """The gates that a run can reach, and its longest unattended stretches."""

    gates: tuple[str, ...]
    stretches: tuple[UnattendedStretch, ...]

    @property
    def calls(self) -> int:
        """The most calls when no person asks for rework."""
        first = [s.calls for s in self.stretches if s.after == "start"]
        return sum(first) + max((s.calls for s in self.stretches if s.after != "start"), default=0)


def forecast_run(machine: Machine, settings: Mapping[str, Any]) -> RunForecast:
    """Forecasts a new run with these constants and limits."""
    over = max((n - MAX_EXPLORED_ROUNDS for n in _setting_cap_limits(machine, settings).values()), default=0)
    forecast_now = _explore_forecast(machine, settings, 0)
    if over <= 0:
        return forecast_now
    fewer = _explore_forecast(machine, settings, 1)
    grown = [
        UnattendedStretch(a.after, a.calls + over * (a.calls - b.calls))
        for a, b in zip(forecast_now.stretches, fewer.stretches, strict=True)
    ]
    return RunForecast(forecast_now.gates, tuple(grown))


def _setting_cap_limits(machine: Machine, settings: Mapping[str, Any]) -> dict[str, int]:
    """Returns the caps whose limit is a setting."""
    return {
        c.name: int(settings[c.limit])
        for c in machine.caps.values()
        if isinstance(c.limit, str) and c.limit in settings
    }


def _explore_forecast(machine: Machine, settings: Mapping[str, Any], less: int) -> RunForecast:
    limits = {
        name: max(1, min(n, MAX_EXPLORED_ROUNDS) - less)
        for name, n in _setting_cap_limits(machine, settings).items()
    }
    chosen = {name: (settings[name],) if name in settings else v for name, v in machine.constants.items()}
    graph = explore_machine(replace(_apply_real_limits(machine, limits), constants=chosen))
    longest = _LongestStretch(machine, graph)
    gates = sorted({j for node in graph.edges for j in node.open if machine.jobs[j].kind == "gate"})
    births = [n for n, (before, _) in graph.parents.items() if before is None]
    stretches = {
        "start": max((longest.calls(n) + _count_agent_jobs(machine, n.open) for n in births), default=0)
    }
    for node, edges in graph.edges.items():
        for edge in edges:
            name = _gate_answer_label(machine, node, edge)
            if name:
                calls = longest.calls(edge.target) + longest.new(node, edge)
                stretches[name] = max(stretches.get(name, 0), calls)
    return RunForecast(
        tuple(gates),
        tuple(UnattendedStretch(name, n) for name, n in stretches.items() if n or name == "start"),
    )


def _gate_answer_label(machine: Machine, node: StateNode, edge: StateEdge) -> str:
    """Returns the label of a gate's answer that starts work; empty for other steps."""
    asks = [j for j in node.open if machine.jobs[j].kind == "gate" and j not in edge.target.open]
    if (
        node.state not in machine.settled
        or _is_same_stretch(machine, edge)
        or not edge.bounded
        or not asks
        or edge.row is None
        or not any(e is edge.event for _, e in machine.namings[asks[0]].pairs)
    ):
        return ""
    when = edge.row.when
    return f"{asks[0]}: {edge.row.label if when is otherwise else when.sentence}"


def _is_same_stretch(machine: Machine, edge: StateEdge) -> bool:
    """Whether an edge is a gate's answer that resets no cap, so that its calls count with those before."""
    return edge.event.origin is Origin.GATE and not machine.resets[edge.event.name]


class _LongestStretch:
    """Finds the longest path to the next decision of a person, in agent calls; caps bound every loop."""

    def __init__(self, machine: Machine, graph: StateGraph) -> None:
        self.m, self.graph = machine, graph
        self._known: dict[StateNode, int] = {}

    def calls(self, node: StateNode) -> int:
        if node not in self._known:
            self._known[node] = 0  # a cycle that the model check allows counts once
            within = node.state not in self.m.settled
            free = [
                e
                for e in self.graph.edges[node]
                if not e.bounded or _is_same_stretch(self.m, e) or (within and e.event.origin is Origin.GATE)
            ]
            self._known[node] = max((self.new(node, e) + self.calls(e.target) for e in free), default=0)
        return self._known[node]

    def new(self, node: StateNode, edge: StateEdge) -> int:
        """Returns the agent calls that a step starts."""
        before = (
            node.planned
            if edge.target.state == node.state and edge.target.planned >= node.planned
            else frozenset()
        )
        return _count_agent_jobs(self.m, edge.target.planned - before)


def _count_agent_jobs(machine: Machine, jobs: frozenset[str]) -> int:
    return sum(1 for j in jobs if machine.jobs[j].does == "agent")


def _apply_real_limits(machine: Machine, limits: Mapping[str, int]) -> Machine:
    """Returns the machine with real limits in place of the trial ones."""
    caps = {id(c): replace(c, trial=limits.get(c.name, c.trial)) for c in machine.caps.values()}
    rows = {
        id(r): replace(r, cap=_replace_row_cap(r.cap, caps), when=_replace_guard_cap(r.when, caps))
        for r in machine.rows
    }
    return replace(
        machine,
        rows=tuple(rows.values()),
        lookup={key: tuple(rows[id(r)] for r in group) for key, group in machine.lookup.items()},
        computed={
            key: replace(c, pairs=_replace_pair_caps(c.pairs, caps)) for key, c in machine.computed.items()
        },
        namings={
            key: replace(n, pairs=_replace_pair_caps(n.pairs, caps)) for key, n in machine.namings.items()
        },
    )


def _replace_row_cap(cap: Cap | None, caps: Mapping[int, Cap]) -> Cap | None:
    return caps.get(id(cap), cap) if cap is not None else None


def _replace_guard_cap(guard: Guard, caps: Mapping[int, Cap]) -> Guard:
    return replace(guard, cap=_replace_row_cap(guard.cap, caps)) if guard.cap is not None else guard


def _replace_pair_caps(pairs: NamingPairs, caps: Mapping[int, Cap]) -> NamingPairs:
    return tuple((_replace_guard_cap(g, caps), e) for g, e in pairs)
