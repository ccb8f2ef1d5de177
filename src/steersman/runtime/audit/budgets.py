"""A run's budget rows, held against what its tape and its children have spent."""

from collections import Counter
from collections.abc import Iterable, Mapping

from steersman.kernel.tape import Entry
from steersman.ports.journal import BudgetRow
from steersman.runtime.audit.verdict import Findings

UNTAPED = frozenset({"refused"})  # refusals beyond those on tape are only counted


class Spent:
    """What the entries of a tape say they cost, and the limits that people have raised."""

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()
        self.limits: dict[str, int] = {}

    def see(self, entry: Entry) -> None:
        self.figures.update(entry.spent)
        if (
            entry.kind == "gate_answered"
            and isinstance(entry.data, dict)
            and entry.data.get("choice") == "raise"
        ):
            self.limits.update(entry.data.get("limits", {}))


def compare_budget(
    rows: Iterable[BudgetRow],
    spent: Spent,
    children: Iterable[Iterable[BudgetRow]],
    limits: Mapping[str, int] | None,
    *,
    idle: bool,
    found: Findings,
) -> None:
    """Adds a finding for every figure that is not what the tapes add up to.

    `limits` are those the run began with, None where they cannot be told; `idle` says that nothing is under way.
    """
    there = {r.name: r for r in rows if r.name not in UNTAPED}
    wanted = Counter(spent.figures)
    for child in children:
        wanted.update({r.name: r.spent for r in child if r.name not in UNTAPED})
    for name in sorted(there.keys() | wanted.keys()):
        has, should = there[name].spent if name in there else 0, wanted[name]
        if has != should:
            found.add(f"the budget row of {name} says {has!r} spent, the tape gives {should}")
    if idle:
        kept = sorted(name for name, row in there.items() if row.reserved)
        for name in kept:
            found.add(f"the budget row of {name} reserves {there[name].reserved!r}, but nothing is under way")
    if limits is None:
        return
    bound = {**limits, **spent.limits}
    for name in sorted(there.keys() | bound.keys()):
        limit = there[name].limit if name in there else None
        if limit != bound.get(name):
            found.add(f"the budget row of {name} has limit {limit!r}, the tape gives {bound.get(name)}")
