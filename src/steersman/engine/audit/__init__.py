"""Verifies, replays, exports, anchors and prunes tapes.

**Invariant:** reading changes no tape. Only `prune` appends, one entry, and removes texts with it. `verify` releases a
quarantined run whose tape fits again.
"""

from steersman.engine.audit.anchoring import (
    anchor_run,
    collect_anchors,
    find_anchored_lost_runs,
    list_known_runs,
)
from steersman.engine.audit.exporting import export_run
from steersman.engine.audit.pruning import prune_run
from steersman.engine.audit.reading import ReplayResult, read_tape, replay_run, run_decision_hash
from steersman.engine.audit.verdict import AuditVerdict
from steersman.engine.audit.verifying import audit_missing_run, audit_run, audit_store, verify_run

__all__ = [
    "AuditVerdict",
    "ReplayResult",
    "anchor_run",
    "audit_missing_run",
    "audit_run",
    "audit_store",
    "collect_anchors",
    "export_run",
    "find_anchored_lost_runs",
    "list_known_runs",
    "prune_run",
    "read_tape",
    "replay_run",
    "run_decision_hash",
    "verify_run",
]
