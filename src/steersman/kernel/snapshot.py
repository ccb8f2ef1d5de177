"""Everything a run is at one moment, as plain data: what `step` reads and what applying an entry gives."""

from typing import Any

import msgspec

from steersman.kernel.canonical import digest_of


class JobItem(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A job that is planned and not over: its id is `<run>:<seq>:<n>`."""

    id: str
    job: str
    kind: str
    key: str
    input: dict[str, Any]
    visit: int
    attempt: int = 1
    starts: int = 1  # more than once: the effect may have run twice, and is shown so
    due: int | None = None
    outlives: bool = False
    held: bool = False  # does not start before a budget gate is answered
    retry: str = ""  # why there is a further attempt
    hint: str = ""  # payload that the further attempt is given
    parts: dict[str, Any] = {}  # facts of the parts that are finished, never redone


class Snapshot(msgspec.Struct, omit_defaults=True, gc=False):
    """A run after its entry number `seq`."""

    run: str
    machine: str
    definition: str
    state: str
    context: Any
    visit: int = 0  # the entry that entered this state
    counts: dict[str, int] = {}
    planned: tuple[str, ...] = ()  # keys already planned in this visit
    items: dict[str, JobItem] = {}
    budget: dict[str, int] = {}
    seq: int = 0
    hash: str = ""
    at: int = 0
    epoch: int = 0
    root: str = ""
    parent: str = ""
    refused: int = 0
    context_version: int = 1
    ended: str = ""  # an outcome given from outside the table: canceled in place


def state_hash(snapshot: Snapshot) -> str:
    """One digest over everything a run is; a log counts by its rolling digest, however long it is."""
    return digest_of(
        [
            snapshot.state,
            snapshot.visit,
            context_fields(snapshot.context),
            snapshot.counts,
            snapshot.planned,
            snapshot.items,
            snapshot.budget,
            snapshot.definition,
            snapshot.ended,
        ]
    )


def context_fields(context: Any) -> dict[str, Any]:
    """A context's fields by name, typed or plain."""
    if isinstance(context, dict):
        return context
    return {name: getattr(context, name) for name in context.__struct_fields__}


RUNTIME_FIELDS = (
    "task_ref",
    "config_ref",
    "base_commit",
    "baseline_ref",
    "bounds_ref",
    "commit",
    "tree",
    "delivered_ref",
    "delivered_commit",
)


def runtime_field(context: Any, name: str) -> str:
    """One of the few fields that the runtime itself looks for in any context; empty where a machine has none.

    The task's text, the frozen configuration, the commit that work begins on and its checks, the plan that bounds it, the change, and where it went.
    """
    if name not in RUNTIME_FIELDS:
        raise KeyError(name)
    return str(context_fields(context).get(name) or "")
