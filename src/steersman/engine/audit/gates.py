"""Compares a run's gate and inbox rows with the gates that its tape leaves open."""

from collections.abc import Iterable, Mapping, Sequence

from steersman.engine.audit.verdict import AuditFindings
from steersman.engine.inbox import answer_problem, gate_row_problem
from steersman.kernel.snapshot import JobItem, Snapshot
from steersman.ports.journal import Gate, InboxItem

NOT_ON_TAPE = "not yet on tape, so no anchor speaks for it"


def compare_gates(
    snapshot: Snapshot,
    rows: Iterable[Gate],
    pending: Sequence[InboxItem],
    findings: AuditFindings,
    rows_by_id: Mapping[str, Gate | None],
    opened_at: Mapping[str, int],
    *,
    driving: bool = False,
) -> None:
    """Adds a finding for every gate row that is missing, extra, changed, or has an answer that no person sent.

    `rows_by_id` has the row that the store finds under each id, `opened_at` when the tape opened the gate. `driving`
    leaves out gates with an answer in the inbox: the driver refuses an answer that does not fit.
    """
    open_gates = _open_gates(snapshot)
    gates_by_id = {g.id: g for g in rows}
    answers = {str(p.body.get("gate")): p for p in pending if p.kind == "answer"}
    for id_ in sorted(gates_by_id.keys() - open_gates.keys()):
        findings.add(f"there is a row of gate {id_}, which is not open on tape")
    for id_ in sorted(open_gates.keys() - (answers.keys() if driving else set())):
        gate, answer = gates_by_id.get(id_), answers.get(id_)
        problem = gate_row_problem(open_gates[id_], gate, snapshot.run, opened_at.get(id_))
        if not problem and answer is not None:
            problem = answer_problem(answer, open_gates[id_], gate)
        if problem:
            findings.add(problem)
        if gate is None:
            continue
        if rows_by_id.get(id_) != gate:
            findings.add(f"the row of gate {id_} is not found under its name: nobody can answer it")
        if answer is None and (gate.answer or gate.person):
            findings.add(f"the row of gate {id_} has an answer that nobody has sent")


def _open_gates(snapshot: Snapshot) -> dict[str, JobItem]:
    return {i.id: i for i in snapshot.items.values() if i.kind == "gate"}


def describe_waiting_items(pending: Iterable[InboxItem], snapshot: Snapshot) -> tuple[str, ...]:
    """Describes inbox items that the run has not taken; a program that can write to the store could have posted them."""
    open_gates = _open_gates(snapshot)
    return tuple(
        f"{_describe_inbox_item(p)}, {NOT_ON_TAPE}"
        + ("; its gate is not open on tape, so it will be refused" if _is_stray_answer(p, open_gates) else "")
        for p in pending
    )


def _is_stray_answer(inbox_item: InboxItem, open_gates: Mapping[str, JobItem]) -> bool:
    return inbox_item.kind == "answer" and str(inbox_item.body.get("gate")) not in open_gates


def _describe_inbox_item(inbox_item: InboxItem) -> str:
    body = inbox_item.body
    action = body.get({"answer": "choice", "event": "event"}.get(inbox_item.kind, ""), inbox_item.kind)
    return f"{action} by {body.get('person') or 'nobody who is named'}"
