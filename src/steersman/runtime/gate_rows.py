"""Whether a gate's row and an answer in the inbox fit the tape: one rule for `audit verify` and for the driver.

**Invariant:** an answer counts only where the tape left its gate open, the gate's row says what the tape says, and row
and inbox hold the same answer of the same person.
"""

from steersman.kernel.snapshot import Item
from steersman.ports.journal import Gate, Posted

VOID = "the gate is void: what it asked about has changed"


def gate_row_problem(item: Item, row: Gate | None, run: str, opened: int | None = None) -> str:
    """How the row of an open gate differs from the tape, or nothing; `opened` is when the tape opened it, if known."""
    if row is None:
        return f"gate {item.id} is open on tape, but its row is missing"
    differing = _differing(row, item, run, opened)
    if differing:
        return f"the row of gate {item.id} does not say what the tape gives: {', '.join(differing)}"
    return ""


def answer_problem(posted: Posted, item: Item | None, row: Gate | None) -> str:
    """Why an answer in the inbox may not be taken, or nothing."""
    body = posted.body
    if item is None:
        return VOID
    problem = gate_row_problem(item, row, posted.run)
    if problem or row is None:
        return problem
    if (row.answer, row.person) != (body.get("choice"), body.get("person", "")):
        given = f"{row.answer} by {row.person}" if row.answer else "none"
        return f"an answer to gate {item.id} is waiting in the inbox, but its row has {given}"
    return "" if row.digest == body.get("digest") else VOID


def _differing(gate: Gate, item: Item, run: str, opened: int | None) -> list[str]:
    given = item.input
    wanted = {
        "id": item.id,
        "run": run,
        "job": item.job,
        "digest": given.get("digest"),
        "choices": tuple(given.get("choices", ())),
        "shown": given.get("shown", {}),
        "default": given.get("default", ""),
        "opened": gate.opened if opened is None else opened,
        "due": item.due if item.due is not None else gate.due,  # a timer that has fired is no longer on tape
    }
    return [name for name, should in wanted.items() if getattr(gate, name) != should]
