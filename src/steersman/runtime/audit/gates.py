"""A run's gate and inbox rows, held against the questions that its tape leaves open; it never answers one."""

from collections.abc import Callable, Iterable, Mapping

from steersman.kernel.snapshot import Item, Snapshot
from steersman.ports.journal import Gate, Posted
from steersman.runtime.audit.verdict import Findings

NOT_ON_TAPE = "not yet on tape, so no anchor speaks for it"


def compare_gates(
    last: Snapshot,
    rows: Iterable[Gate],
    pending: Iterable[Posted],
    found: Findings,
    named: Callable[[str], Gate | None],
    opened: Mapping[str, int],
) -> None:
    """Adds a finding for every gate that is missing, too many, changed, or answered by nobody.

    `named` finds one by its id; `opened` says when the tape opened it.
    """
    asked = {i.id: i for i in last.items.values() if i.kind == "gate"}
    there = {g.id: g for g in rows}
    said = {str(p.body.get("gate")): _said(p) for p in pending if p.kind == "answer"}
    for id_ in sorted(asked.keys() - there.keys()):
        found.add(f"gate {id_} is open on tape, but its row is missing")
    for id_ in sorted(there.keys() - asked.keys()):
        found.add(f"there is a row of gate {id_}, which is not open on tape")
    for id_ in sorted(asked.keys() & there.keys()):
        gate = there[id_]
        differing = _differing(gate, asked[id_], last.run, opened.get(id_, gate.opened))
        if differing:
            found.add(f"the row of gate {id_} does not say what the tape gives: {', '.join(differing)}")
        if found.read("a gate row", lambda id_=id_: named(id_)) != gate:
            found.add(f"the row of gate {id_} is not found under its name: nobody can answer it")
        answer = (gate.answer, gate.person) if gate.answer or gate.person else None
        if answer is not None and said.get(id_) != answer:
            found.add(f"the row of gate {id_} has an answer that nobody has sent")
        if answer is None and id_ in said:
            found.add(f"an answer to gate {id_} is waiting in the inbox, but its row has none")


def waiting(pending: Iterable[Posted]) -> tuple[str, ...]:
    """What people and other runs have sent and the run has not taken: whoever can write to the store could have."""
    return tuple(f"{_what(p)}, {NOT_ON_TAPE}" for p in pending)


def _what(posted: Posted) -> str:
    body = posted.body
    what = body.get({"answer": "choice", "event": "event"}.get(posted.kind, ""), posted.kind)
    return f"{what} by {body.get('person') or 'nobody who is named'}"


def _said(posted: Posted) -> tuple[object, object]:
    return posted.body.get("choice"), posted.body.get("person", "")


def _differing(gate: Gate, item: Item, run: str, opened: int) -> list[str]:
    given = item.input
    wanted = {
        "run": run,
        "job": item.job,
        "digest": given.get("digest"),
        "choices": tuple(given.get("choices", ())),
        "shown": given.get("shown", {}),
        "default": given.get("default", ""),
        "opened": opened,
        "due": item.due if item.due is not None else gate.due,  # a timer that has fired is no longer on tape
    }
    return [name for name, should in wanted.items() if getattr(gate, name) != should]
