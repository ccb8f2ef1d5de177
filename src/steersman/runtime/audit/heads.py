"""A run's head row, worked out again from its tape: every column, or those that can be without its machine."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from msgspec import structs

from steersman.kernel.build import Machine
from steersman.kernel.snapshot import Snapshot
from steersman.ports.journal import Head
from steersman.runtime.audit.verdict import Findings
from steersman.runtime.live import head_of

ENDED = ("done", "stopped")


def compare_head(
    head: Head,
    snapshot: Snapshot,
    first: tuple[str, int],
    machines: Mapping[str, Machine],
    old: Any,
    found: Findings,
) -> None:
    """Adds a finding for the columns that the tape gives differently; `first` is title and time of the creation."""
    m = machines.get(snapshot.machine)
    if m is not None and m.digest == snapshot.definition and snapshot.state in m.states:
        wanted: tuple[Head, ...] = (head_of(m, _named(snapshot), *first),)
    else:
        wanted = _without_machine(snapshot, first, old)
        found.unseen.append(
            f"whether its outcome counts as a success: {snapshot.machine} is not installed as it was ({snapshot.definition})"
        )
    differing = min((_differing(head, w) for w in wanted), key=len)
    if differing:
        found.add(f"the head row does not say what the tape gives: {', '.join(differing)}")


def _differing(head: Head, wanted: Head) -> list[str]:
    """SQLite keeps any type in any column: 1 and "1" and 1.0 are not the same here."""
    pairs = ((name, getattr(head, name), getattr(wanted, name)) for name in Head.__struct_fields__)
    return [name for name, is_, should in pairs if type(is_) is not type(should) or is_ != should]


def _named(snapshot: Snapshot) -> Snapshot:
    """The context's fields as attributes, as the machine's own functions read them."""
    return structs.replace(snapshot, context=SimpleNamespace(**snapshot.context))


def _without_machine(snapshot: Snapshot, first: tuple[str, int], old: Any) -> tuple[Head, ...]:
    """The rows there may be: which outcomes are a success only the machine knows; the rest is in its definition."""
    flags = _flags(old, snapshot.state)
    blank = SimpleNamespace(
        states={snapshot.state: SimpleNamespace(resting="resting" in flags, final="final" in flags)},
        successes=(),
        settled=frozenset({snapshot.state} if flags & {"resting", "final"} else ()),
    )
    one = head_of(cast(Machine, blank), _named(snapshot), *first)
    return tuple(structs.replace(one, status=s) for s in ENDED) if one.status in ENDED else (one,)


def _flags(old: Any, state: str) -> set[str]:
    try:
        return set(msgspec.json.decode(old)["states"][state]["flags"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return set()
