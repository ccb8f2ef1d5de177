"""Audits: reads, verifies, replays, anchors, prunes and exports tapes, and finds runs that only an anchor remembers.

**Invariant:** only `prune_texts` changes a tape, and no process that works for a run gets past it.
"""

from collections.abc import Iterator
from functools import cached_property

import msgspec

from steersman.app.principal import Principal, require_person_for_run
from steersman.app.runs import RunService
from steersman.engine.audit import (
    AuditVerdict,
    ReplayResult,
    anchor_run,
    audit_missing_run,
    audit_run,
    audit_store,
    collect_anchors,
    export_run,
    find_anchored_lost_runs,
    list_known_runs,
    prune_run,
    read_tape,
    replay_run,
)
from steersman.engine.audit.pruning import PruneResult
from steersman.engine.machine_package import find_package
from steersman.engine.ports import Ports
from steersman.engine.projections import read_run_view
from steersman.errors import UnknownRunError, UserError
from steersman.kernel.replay import BadEntry
from steersman.kernel.tape import Entry
from steersman.ports.anchors import Anchor

__all__ = [
    "AuditVerdict",
    "PruneResult",
    "ReplayResult",
    "StoreAudit",
    "anchor_tape",
    "export_tape",
    "find_missing_runs",
    "prune_texts",
    "read_tape_entries",
    "read_tape_form",
    "replay_tape",
]

MAX_LISTED_MATCHES = 20


class StoreAudit:
    """Verifies the runs of a project; where the store is gone, the runs that a genuine anchor names."""

    def __init__(self, ports: Ports, *, has_store: bool = True) -> None:
        self.ports, self.has_store = ports, has_store

    @cached_property
    def runs(self) -> list[str]:
        """Every run that the store has a trace of or that a genuine anchor names."""
        return (
            list_known_runs(self.ports) if self.has_store else find_missing_runs(self.ports, has_store=False)
        )

    def find_run(self, prefix: str) -> str:
        """The run with this id or unique prefix, also where its head row is gone."""
        matches = [prefix] if prefix in self.runs else [run for run in self.runs if run.startswith(prefix)]
        matches = [run for run in matches if "." not in run] or matches
        if not matches:
            raise UnknownRunError(prefix)
        if len(matches) > 1:
            raise UserError(
                f"{prefix!r} could be {', '.join(matches[:MAX_LISTED_MATCHES])}: write more of it"
            )
        return matches[0]

    def verify_run(self, run: str) -> AuditVerdict:
        """Whether chain, state, seals, snapshot, head, texts, anchors and git refs of a run agree."""
        return audit_run(self.ports, run) if self.has_store else audit_missing_run(self.ports, run)

    def verify_all(self) -> list[AuditVerdict]:
        """The verdict on every run, and on the rest of the store where something is wrong with it."""
        verdicts = [self.verify_run(run) for run in self.runs]
        rest = audit_store(self.ports) if self.has_store else None
        return verdicts if rest is None or (rest.ok and not rest.gone) else [*verdicts, rest]


def find_missing_runs(ports: Ports, *, has_store: bool = True) -> list[str]:
    """Every run with a genuine anchor that the store does not list; without a store, all of them."""
    return find_anchored_lost_runs(ports, lambda run: has_store and ports.journal.find_runs(run)[:1] == [run])


def read_tape_entries(runs: RunService, name: str, after: int = 0) -> Iterator[tuple[Entry, str] | BadEntry]:
    """The entries of a run behind a number, each with its hash; ends at the first one that is not as it was written."""
    for link in read_tape(runs.ports.journal, runs.find(name)):
        if isinstance(link, BadEntry) or link[0].seq > after:
            yield link


def read_tape_form(runs: RunService, name: str, form: str) -> msgspec.Struct:
    """The tape of a run as a document that its machine defines."""
    view = read_run_view(runs.ports, runs.find(name))
    forms = find_package(runs.ports.packages, view.machine).tape_forms
    if form not in forms:
        raise UserError(f"run {view.snapshot.run} has no tape in the form {form}: it is no plan")
    return forms[form](view)


def replay_tape(runs: RunService, name: str) -> ReplayResult:
    """Decides every recorded step of a run again and compares."""
    head = runs.head(runs.find(name))
    machine = runs.ports.machines.get(head.machine)
    if machine is None:
        raise UserError(f"run {head.run} needs machine {head.machine}, which is not installed here")
    return replay_run(runs.ports.journal, machine, head.run)


def anchor_tape(runs: RunService, name: str, place: str) -> Anchor:
    """Signs the tape of a run as it is now and keeps the signature at a place outside the store."""
    return anchor_run(runs.ports, runs.find(name), place)


def prune_texts(runs: RunService, principal: Principal, run: str, reason: str = "") -> PruneResult:
    """Deletes every text of a finished run and its child runs; entries, hashes and state stay."""
    require_person_for_run(runs.ports, principal, run, "prune")
    return prune_run(runs.ports, run, principal.person, reason)


def export_tape(runs: RunService, name: str, *, payloads: bool = False) -> Iterator[bytes]:
    """A run as lines of canonical JSON with its anchors, which other programs can verify."""
    run, ports = runs.find(name), runs.ports
    return export_run(ports.journal, run, payloads=payloads, anchors=collect_anchors(ports, run))
