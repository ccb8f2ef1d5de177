"""Compares the rows beside a run's tape with what the tape gives: its head, its gates and inbox, its budgets."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from msgspec import structs

from steersman.engine.active_run import head_from_snapshot
from steersman.engine.audit.verdict import AuditFindings
from steersman.engine.inbox import answer_problem, gate_row_problem
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import JobItem, Snapshot
from steersman.kernel.tape import Entry
from steersman.ports.journal import BudgetRow, Gate, Head, InboxItem

ENDED_STATUSES = ("done", "stopped")


def compare_head(
    head: Head,
    snapshot: Snapshot,
    creation: tuple[str, int],
    machines: Mapping[str, Machine],
    old_definition: Any,
    findings: AuditFindings,
) -> None:
    """Adds a finding for columns that differ from the tape; `creation` is title and time of entry 1."""
    machine = machines.get(snapshot.machine)
    if machine is not None and machine.digest == snapshot.definition and snapshot.state in machine.states:
        heads: tuple[Head, ...] = (head_from_snapshot(machine, _with_attribute_context(snapshot), *creation),)
    else:
        heads = _possible_heads(snapshot, creation, old_definition)
        findings.unseen.append(
            f"whether its outcome counts as a success: {snapshot.machine} is not installed as it was ({snapshot.definition})"
        )
    columns = min((_differing_head_columns(head, possible_head) for possible_head in heads), key=len)
    if columns:
        findings.add(f"the head row does not say what the tape gives: {', '.join(columns)}")


def _differing_head_columns(head: Head, expected_head: Head) -> list[str]:
    """Returns the columns that differ in value or type; SQLite stores any type in any column."""
    columns = ((name, getattr(head, name), getattr(expected_head, name)) for name in Head.__struct_fields__)
    return [
        name for name, actual, expected in columns if type(actual) is not type(expected) or actual != expected
    ]


def _with_attribute_context(snapshot: Snapshot) -> Snapshot:
    """Returns a snapshot whose context has its fields as attributes, as the machine's functions read them."""
    return structs.replace(snapshot, context=SimpleNamespace(**snapshot.context))


def _possible_heads(snapshot: Snapshot, creation: tuple[str, int], old_definition: Any) -> tuple[Head, ...]:
    """Returns the rows that are possible without the machine, which alone knows the outcomes that are a success."""
    flags = _recorded_state_flags(old_definition, snapshot.state)
    machine = SimpleNamespace(
        states={snapshot.state: SimpleNamespace(resting="resting" in flags, final="final" in flags)},
        successes=(),
        settled=frozenset({snapshot.state} if flags & {"resting", "final"} else ()),
    )
    possible_head = head_from_snapshot(cast(Machine, machine), _with_attribute_context(snapshot), *creation)
    return (
        tuple(structs.replace(possible_head, status=s) for s in ENDED_STATUSES)
        if possible_head.status in ENDED_STATUSES
        else (possible_head,)
    )


def _recorded_state_flags(old_definition: Any, state: str) -> set[str]:
    try:
        return set(msgspec.json.decode(old_definition)["states"][state]["flags"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return set()


UNTAPED_FIGURES = frozenset({"refused"})  # refusals beyond those on tape are only counted


class TapeSpending:
    """The costs that a tape's entries record, and the limits that people raised."""

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()
        self.limits: dict[str, int] = {}

    def note_entry(self, entry: Entry) -> None:
        self.figures.update(entry.spent)
        if (
            entry.kind == "gate_answered"
            and isinstance(entry.data, dict)
            and entry.data.get("choice") == "raise"
        ):
            self.limits.update(entry.data.get("limits", {}))


def compare_budget(
    rows: Iterable[BudgetRow],
    spent: TapeSpending,
    children: Iterable[Iterable[BudgetRow]],
    limits: Mapping[str, int] | None,
    *,
    idle: bool,
    findings: AuditFindings,
) -> None:
    """Adds a finding for every figure that differs from the sum of the tapes.

    `limits` are those the run began with, None where they are unknown; `idle` means that no effect is running.
    """
    rows_by_name = {r.name: r for r in rows if r.name not in UNTAPED_FIGURES}
    expected = Counter(spent.figures)
    for child in children:
        expected.update({r.name: r.spent for r in child if r.name not in UNTAPED_FIGURES})
    for name in sorted(rows_by_name.keys() | expected.keys()):
        recorded, expected_amount = rows_by_name[name].spent if name in rows_by_name else 0, expected[name]
        if recorded != expected_amount:
            findings.add(
                f"the budget row of {name} says {recorded!r} spent, the tape gives {expected_amount}"
            )
    if idle:
        reserved_names = sorted(name for name, row in rows_by_name.items() if row.reserved)
        for name in reserved_names:
            findings.add(
                f"the budget row of {name} reserves {rows_by_name[name].reserved!r}, but nothing is under way"
            )
    if limits is None:
        return
    expected_limits = {**limits, **spent.limits}
    for name in sorted(rows_by_name.keys() | expected_limits.keys()):
        limit = rows_by_name[name].limit if name in rows_by_name else None
        if limit != expected_limits.get(name):
            findings.add(
                f"the budget row of {name} has limit {limit!r}, the tape gives {expected_limits.get(name)}"
            )


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
            findings.add(f"the row of gate {id_} is not found under its name, so it cannot be answered")
        if answer is None and (gate.answer or gate.person):
            findings.add(f"the row of gate {id_} has an answer that no command has sent")


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
    return f"{action} by {body.get('person') or 'a person without a name'}"
