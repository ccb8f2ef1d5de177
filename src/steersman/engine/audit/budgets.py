"""Compares a run's budget rows with what its tape and its children have spent."""

from collections import Counter
from collections.abc import Iterable, Mapping

from steersman.engine.audit.verdict import AuditFindings
from steersman.kernel.tape import Entry
from steersman.ports.journal import BudgetRow

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
