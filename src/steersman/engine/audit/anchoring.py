"""Makes anchors at the project's places and compares them with a tape."""

from collections.abc import Callable, Mapping

from steersman.engine.active_run import require_head
from steersman.engine.audit.verdict import AuditFindings
from steersman.engine.ports import Ports
from steersman.errors import UserError
from steersman.ports.anchors import Anchor, Anchors, RunAnchors


def anchor_run(ports: Ports, run: str, place_name: str = "file") -> Anchor:
    """Signs the run's tape as it is now and stores the anchor at one of the project's places."""
    head = require_head(ports.journal, run)
    return _find_anchor_place(ports.anchors, place_name).store_anchor(
        run, head.seq, head.hash, ports.clock.now()
    )


def _find_anchor_place(places: Mapping[str, Anchors], place_name: str) -> Anchors:
    place = places.get(place_name)
    if place is None:
        raise UserError(
            f"there is no place {place_name!r} for anchors. Choose one of: {', '.join(sorted(places)) or 'none'}"
        )
    return place


def collect_anchors(ports: Ports, run: str) -> RunAnchors:
    """Returns the anchors of a run from all places."""
    anchors_by_place = [place.list_anchors(run) for place in ports.anchors.values()]
    genuine = sorted((a for k in anchors_by_place for a in k.genuine), key=lambda a: a.seq)
    return RunAnchors(
        tuple(genuine),
        tuple(d for k in anchors_by_place for d in k.doubts),
        sum(k.blanks for k in anchors_by_place),
    )


def list_known_runs(ports: Ports) -> list[str]:
    """Returns every run that the store has a trace of or that a genuine anchor names."""
    run_ids = set(ports.journal.list_traced_runs())
    return sorted(run_ids.union(find_anchored_lost_runs(ports, run_ids.__contains__)))


def find_anchored_lost_runs(ports: Ports, is_present: Callable[[str], bool]) -> list[str]:
    """Returns the runs that a genuine anchor names and that `is_present` does not know."""
    anchored_runs = {run for place in ports.anchors.values() for run in place.runs()}
    return sorted(run for run in anchored_runs if not is_present(run) and collect_anchors(ports, run).genuine)


class AnchorComparison:
    """Compares the anchors of a run with its entries, one entry after the other."""

    def __init__(self, run_anchors: RunAnchors) -> None:
        self._waiting: dict[int, set[str]] = {}
        for anchor_entry in run_anchors.genuine:
            self._waiting.setdefault(anchor_entry.seq, set()).add(anchor_entry.hash)
        self._fits = 0  # the last entry that an anchor agrees with
        self.highest = max(self._waiting, default=None)

    def note_entry(self, seq: int, hash_: str, findings: AuditFindings) -> None:
        signed_hashes = self._waiting.pop(seq, None) if self._waiting else None
        if signed_hashes is None:
            return
        if signed_hashes == {hash_}:
            self._fits = seq
        else:
            findings.add(
                f"entry {seq} does not have the hash that was anchored: something from entry {self._fits + 1} to {seq} was rewritten",
                seq,
            )

    def report_missing(self, last_seq: int, findings: AuditFindings) -> None:
        """Adds a finding where an anchor names an entry that the tape does not have."""
        unmatched = sorted(self._waiting)
        if unmatched:
            findings.add(
                f"entry {last_seq + 1} is missing: an anchor says there were {unmatched[-1]} entries",
                last_seq + 1,
            )
