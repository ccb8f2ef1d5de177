"""What of a machine decides, as plain data, and its digest: the name under which a run was made.

Words for people (labels, meanings, sections) are not part of it; every declared version is.
"""

from typing import Any

from steersman.kernel.canonical import digest_of
from steersman.kernel.definition import STAY, Cap, Do, Guard, Pairs, Row
from steersman.kernel.machine import Machine

KERNEL_VERSION = 1


def definition(m: Machine) -> dict[str, Any]:
    """The part of a machine that decides, as plain data: stored with the first run that uses it."""
    return {
        "name": m.name,
        "kernel": KERNEL_VERSION,
        "context_version": m.context_version,
        "abort": m.abort.name if m.abort is not None else None,
        "successes": sorted(m.successes),
        "begin": m.begin_version,
        "creation": part(m, None),
        "states": {s: part(m, s) for s in m.states},
    }


def definition_digest(m: Machine) -> str:
    """The name of a definition: changes when anything that decides changes."""
    return digest_of(definition(m))[:16]


def part(m: Machine, name: str | None) -> dict[str, Any]:
    """Everything that decides what a run in this state can do: rows, work, namings, computed, folds, all with versions."""
    rows = [_row(m, r) for (s, _), group in m.lookup.items() if s == name for r in group]
    here = m.states[name] if name is not None else None
    comp = m.computed.get(name) if name is not None else None
    return {
        "flags": sorted(here.flags) if here else [],
        "rows": sorted(rows, key=lambda r: str(r["on"])),  # stable: the order within one event is kept
        "work": [_work(m, d) for d in here.work] if here else [],
        "computed": _pairs(comp.pairs, comp.version) if comp else None,
    }


def _row(m: Machine, r: Row) -> dict[str, Any]:
    f = m.folds.get(r.on.name)
    return {
        "on": r.on.name,
        "event_version": r.on.version,
        "origin": r.on.origin.value,
        "when": _guard(r.when),
        "to": "stay" if r.to is STAY else r.to.name,
        "cap": _cap(r.cap) if r.cap else None,
        "sets": dict(r.sets),
        "fold": f.version if f else 0,
        "waivable": r.waivable.name if r.waivable is not None else False,
    }


def _work(m: Machine, d: Do) -> dict[str, Any]:
    n = m.namings[d.job.name]
    yields = ["yields"] if d.job.yields else []
    return {
        "job": [d.job.name, d.job.kind, d.job.does, d.job.outlives, d.job.edits, d.job.version, *yields],
        "when": _guard(d.when),
        "version": d.version,
        "naming": _pairs(n.pairs, n.version),
    }


def _guard(g: Guard) -> list[Any]:
    return [g.name, g.version, list(g.reads), _cap(g.cap) if g.cap else None]


def _cap(c: Cap) -> list[Any]:
    return [c.name, c.limit, c.version, c.per is not None, [e.name for e in c.resets]]


def _pairs(pairs: Pairs, version: int) -> dict[str, Any]:
    return {"version": version, "pairs": [[_guard(g), e.name] for g, e in pairs]}
