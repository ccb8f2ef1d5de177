"""Compares a run's head row with its tape: every column, or those that need no machine."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from msgspec import structs

from steersman.engine.active_run import head_from_snapshot
from steersman.engine.audit.verdict import AuditFindings
from steersman.kernel.build import Machine
from steersman.kernel.snapshot import Snapshot
from steersman.ports.journal import Head

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
