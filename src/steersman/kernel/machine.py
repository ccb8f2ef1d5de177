"""The machine itself: an immutable value, and the few questions every reader of it asks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from steersman.kernel.definition import Cap, ComputedNaming, EventDef, Fold, Guard, Job, Naming, Row, StateDef
from steersman.kernel.laws import Law


class Machine(msgspec.Struct, frozen=True, eq=False):
    """An immutable, executable definition: the published table is the executed table."""

    name: str
    meaning: str
    states: dict[str, StateDef]
    events: dict[str, EventDef]
    rows: tuple[Row, ...]
    namings: dict[str, Naming]
    computed: dict[str, ComputedNaming]
    folds: dict[str, Fold]
    laws: tuple[Law, ...]
    context: type[msgspec.Struct]
    context_version: int
    upcasts: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]
    constants: Mapping[str, tuple[Any, ...]]
    memory: Mapping[str, tuple[Any, ...]]
    jobs: dict[str, Job]
    caps: dict[str, Cap]
    lookup: dict[tuple[str | None, str], tuple[Row, ...]]
    resets: dict[str, tuple[tuple[str, str], ...]]  # event -> ops that clear its caps
    settled: frozenset[str]  # states in which a run has its outcome
    eventful: frozenset[str]  # states that bring about something by themselves: an event, a seal
    tracked: frozenset[str]  # constants and memory: rows alone may change them
    abort: EventDef | None
    successes: tuple[str, ...]
    roles: tuple[str, ...]
    begin: Callable[[dict[str, Any]], tuple[EventDef, Any, Any]] | None
    begin_version: int
    initial: StateDef
    tree: bool = True  # its runs work on a tree of the repository
    digest: str = ""

    def __repr__(self) -> str:
        return f"<Machine {self.name} {self.digest}>"


def row_source_states(row: Row, states: Sequence[StateDef]) -> tuple[str | None, ...]:
    """The names of the states a row starts from; None is creation."""
    match row.source:
        case None:
            return (None,)
        case StateDef() as state:
            return (state.name,)
        case tuple() as states_of_row:
            return tuple(s.name for s in states_of_row)
        case _:
            return tuple(s.name for s in states if not (s.final or s.resting))


def machine_guards(machine: Machine) -> tuple[Guard, ...]:
    """Every guard of a machine, each once, in the order of the file."""
    guards_by_id: dict[int, Guard] = {}
    for guard in (
        *(r.when for r in machine.rows),
        *(guard for n in machine.namings.values() for guard, _ in n.pairs),
        *(guard for c in machine.computed.values() for guard, _ in c.pairs),
        *(d.when for s in machine.states.values() for d in s.work),
    ):
        guards_by_id.setdefault(id(guard), guard)
    return tuple(guards_by_id.values())


def cap_limit(cap: Cap, context: Any) -> int:
    """How often a cap's row may be taken in this run."""
    return cap.limit if isinstance(cap.limit, int) else int(getattr(context, cap.limit))
