"""A run's gate and inbox rows, held against the questions that its tape leaves open; it never answers one."""

from collections.abc import Iterable, Mapping, Sequence

from steersman.kernel.snapshot import Item, Snapshot
from steersman.ports.journal import Gate, Posted
from steersman.runtime.audit.verdict import Findings
from steersman.runtime.gate_rows import answer_problem, gate_row_problem

NOT_ON_TAPE = "not yet on tape, so no anchor speaks for it"


def compare_gates(
    last: Snapshot,
    rows: Iterable[Gate],
    pending: Sequence[Posted],
    found: Findings,
    named: Mapping[str, Gate | None],
    opened: Mapping[str, int],
    *,
    driving: bool = False,
) -> None:
    """Adds a finding for every gate that is missing, too many, changed, or answered by nobody.

    `named` has what the store finds under each row's id; `opened` says when the tape opened it. A gate with an answer in the inbox is left out
    for `driving`: an answer that does not fit is refused on tape when the driver comes to it.
    """
    asked = _open_gates(last)
    there = {g.id: g for g in rows}
    answers = {str(p.body.get("gate")): p for p in pending if p.kind == "answer"}
    for id_ in sorted(there.keys() - asked.keys()):
        found.add(f"there is a row of gate {id_}, which is not open on tape")
    for id_ in sorted(asked.keys() - (answers.keys() if driving else set())):
        gate, answer = there.get(id_), answers.get(id_)
        problem = gate_row_problem(asked[id_], gate, last.run, opened.get(id_))
        if not problem and answer is not None:
            problem = answer_problem(answer, asked[id_], gate)
        if problem:
            found.add(problem)
        if gate is None:
            continue
        if named.get(id_) != gate:
            found.add(f"the row of gate {id_} is not found under its name: nobody can answer it")
        if answer is None and (gate.answer or gate.person):
            found.add(f"the row of gate {id_} has an answer that nobody has sent")


def _open_gates(last: Snapshot) -> dict[str, Item]:
    return {i.id: i for i in last.items.values() if i.kind == "gate"}


def waiting(pending: Iterable[Posted], last: Snapshot) -> tuple[str, ...]:
    """What people and other runs have sent and the run has not taken: whoever can write to the store could have."""
    asked = _open_gates(last)
    return tuple(
        f"{_what(p)}, {NOT_ON_TAPE}"
        + ("; its gate is not open on tape, so it will be refused" if _is_stray(p, asked) else "")
        for p in pending
    )


def _is_stray(posted: Posted, asked: Mapping[str, Item]) -> bool:
    return posted.kind == "answer" and str(posted.body.get("gate")) not in asked


def _what(posted: Posted) -> str:
    body = posted.body
    what = body.get({"answer": "choice", "event": "event"}.get(posted.kind, ""), posted.kind)
    return f"{what} by {body.get('person') or 'nobody who is named'}"
