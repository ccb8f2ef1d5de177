"""A run's gate rows, held against the questions that its tape leaves open; it never answers one."""

from collections.abc import Iterable

from steersman.kernel.snapshot import Item, Snapshot
from steersman.ports.journal import Gate, Posted
from steersman.runtime.audit.verdict import Findings


def compare_gates(last: Snapshot, rows: Iterable[Gate], pending: Iterable[Posted], found: Findings) -> None:
    """Adds a finding for every gate that is missing, too many, changed, or answered by nobody."""
    asked = {i.id: i for i in last.items.values() if i.kind == "gate"}
    there = {g.id: g for g in rows}
    said = {
        (p.body.get("gate"), p.body.get("choice"), p.body.get("person", ""))
        for p in pending
        if p.kind == "answer"
    }
    for id_ in sorted(asked.keys() - there.keys()):
        found.add(f"gate {id_} is open on tape, but its row is missing")
    for id_ in sorted(there.keys() - asked.keys()):
        found.add(f"there is a row of gate {id_}, which is not open on tape")
    for id_ in sorted(asked.keys() & there.keys()):
        gate = there[id_]
        differing = _differing(gate, asked[id_])
        if differing:
            found.add(f"the row of gate {id_} does not say what the tape gives: {', '.join(differing)}")
        if (gate.answer or gate.person) and (id_, gate.answer, gate.person) not in said:
            found.add(f"the row of gate {id_} has an answer that nobody has sent")


def _differing(gate: Gate, item: Item) -> list[str]:
    given = item.input
    wanted = {
        "job": item.job,
        "digest": given.get("digest"),
        "choices": tuple(given.get("choices", ())),
        "shown": given.get("shown", {}),
        "default": given.get("default", ""),
    }
    return [name for name, should in wanted.items() if getattr(gate, name) != should]
