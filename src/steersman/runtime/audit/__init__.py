"""Questions to a tape: is it whole, would it be decided the same again, what does it say; and its anchors and pruning.

**Invariant:** reading changes no tape; only `prune` appends, one entry, and drops texts with it. A run that was put
aside and fits is released.
"""

from steersman.runtime.audit.anchoring import anchor, kept_anchors, known_runs, lost_runs
from steersman.runtime.audit.exporting import export
from steersman.runtime.audit.pruning import prune
from steersman.runtime.audit.reading import Replayed, decisions, replay, tape
from steersman.runtime.audit.verdict import Verdict
from steersman.runtime.audit.verifying import around, audited, missing, verify

__all__ = [
    "Replayed",
    "Verdict",
    "anchor",
    "around",
    "audited",
    "decisions",
    "export",
    "kept_anchors",
    "known_runs",
    "lost_runs",
    "missing",
    "prune",
    "replay",
    "tape",
    "verify",
]
