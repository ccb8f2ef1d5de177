"""Compares gate rows and inbox answers with the tape; `audit verify` and the driver use the same rule.

**Invariant:** an answer counts only where its gate is open on tape, the gate's row equals the tape, and row and inbox
hold the same answer of the same person.
"""

from steersman.kernel.snapshot import JobItem
from steersman.ports.journal import Gate, InboxItem

VOID_GATE = "the gate is void: what it asked about has changed"


def gate_row_problem(item: JobItem, row: Gate | None, run: str, opened_at: int | None = None) -> str:
    """Returns how the row of an open gate differs from the tape, or nothing; `opened_at` is its time on tape, if known."""
    if row is None:
        return f"gate {item.id} is open on tape, but its row is missing"
    differing_fields = _differing_gate_fields(row, item, run, opened_at)
    if differing_fields:
        return f"the row of gate {item.id} does not say what the tape gives: {', '.join(differing_fields)}"
    return ""


def answer_problem(inbox_item: InboxItem, item: JobItem | None, row: Gate | None) -> str:
    """Returns why the run may not take an answer from the inbox, or nothing."""
    body = inbox_item.body
    if item is None:
        return VOID_GATE
    problem = gate_row_problem(item, row, inbox_item.run)
    if problem or row is None:
        return problem
    if (row.answer, row.person) != (body.get("choice"), body.get("person", "")):
        row_answer = f"{row.answer} by {row.person}" if row.answer else "none"
        return f"an answer to gate {item.id} is waiting in the inbox, but its row has {row_answer}"
    return "" if row.digest == body.get("digest") else VOID_GATE


def _differing_gate_fields(gate: Gate, item: JobItem, run: str, opened_at: int | None) -> list[str]:
    gate_input = item.input
    expected_fields = {
        "id": item.id,
        "run": run,
        "job": item.job,
        "digest": gate_input.get("digest"),
        "choices": tuple(gate_input.get("choices", ())),
        "shown": gate_input.get("shown", {}),
        "default": gate_input.get("default", ""),
        "opened": gate.opened if opened_at is None else opened_at,
        "due": item.due if item.due is not None else gate.due,  # a timer that has fired is no longer on tape
    }
    return [name for name, expected in expected_fields.items() if getattr(gate, name) != expected]
