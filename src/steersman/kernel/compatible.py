"""Whether a changed machine may go on with a paused run: only what the run can still reach counts."""

from collections.abc import Iterable
from typing import Any


def reachable_states(definition: dict[str, Any], state: str) -> set[str]:
    """The states that rows lead to from here."""
    states, queue = {state}, [state]
    while queue:
        state_data = definition["states"].get(queue.pop(), {"rows": []})
        for row in state_data["rows"]:
            if row["to"] != "stay" and row["to"] not in states:
                states.add(row["to"])
                queue.append(row["to"])
    return states


def find_definition_changes(
    old: dict[str, Any], new: dict[str, Any], state: str, running: Iterable[str] = ()
) -> list[str]:
    """Returns what has changed in the part of a machine that a run can still reach, in words.

    `running` are the jobs under way: one that outlives its state is named wherever the run is by then.
    """
    changes = [
        f"{what} is {new[key]}, was {old[key]}"
        for key, what in (
            ("kernel", "the kernel's version"),
            ("abort", "its abort"),
            ("successes", "what counts as success"),
        )
        if old[key] != new[key]
    ]
    changes += [
        f"job {name} is gone"
        if _find_job_definition(new, name) is None
        else f"job {name}: it or its naming changed"
        for name in sorted(running)
        if _find_job_definition(old, name) != _find_job_definition(new, name)
    ]
    for name in sorted(reachable_states(old, state)):
        before, after = old["states"][name], new["states"].get(name)
        if after is None:
            changes.append(f"state {name} is gone")
        elif before != after:
            changes += [f"{name}: {what}" for what in _find_state_changes(before, after)]
    return changes


def _find_job_definition(definition: dict[str, Any], name: str) -> Any:
    work = (w for s in definition["states"].values() for w in s["work"])
    return next(((w["job"], w["naming"]) for w in work if w["job"][0] == name), None)


def _find_state_changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    changes = [f"its {key} changed" for key in ("flags", "computed", "work") if before[key] != after[key]]
    old, new = _group_rows_by_event(before["rows"]), _group_rows_by_event(after["rows"])
    for event in sorted(old.keys() | new.keys()):
        if event not in new:
            changes.append(f"no row on {event} any more")
        elif event not in old:
            changes.append(f"a new row on {event}")
        elif old[event] != new[event]:
            changes.append(f"its rows on {event} changed ({_changed_row_fields(old[event], new[event])})")
    return changes


def _group_rows_by_event(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    rows_by_event: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        rows_by_event.setdefault(row["on"], []).append(row)
    return rows_by_event


def _changed_row_fields(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> str:
    if len(old) != len(new):
        return f"{len(old)} rows, now {len(new)}"
    return ", ".join(sorted({k for o, n in zip(old, new, strict=True) for k in o if o[k] != n.get(k)}))
