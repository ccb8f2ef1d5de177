"""What machines that work on a tree share: setup, the checks before any change, the evidence gate and delivery.

A machine declares these jobs and gates as the work of its states, its events carry the facts, and `base_namings` says
what those facts come to. Which state follows, and what is remembered, is in the machine's own rows and folds.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from steersman.contracts.facts import AgentFacts, BaselineFacts, DeliveryFacts, SetupFacts
from steersman.kernel.definition import (
    Choice,
    EventDef,
    GateAnswer,
    Guard,
    Naming,
    Row,
    StateDef,
    effect,
    gate,
    naming,
    otherwise,
    row,
)
from steersman.kernel.ops import Op
from steersman.views.gates import EVIDENCE_GATE

EVIDENCE = gate(
    EVIDENCE_GATE,
    asks="All checks pass, but the change touches files that a person has to look at. Accept these results for this tree?",
    choices={
        "approve": Choice(
            "accept-evidence", "accept these results on this very tree", "accept-evidence {run} {digest}"
        ),
        "rework": Choice("rework", "send the change back"),
    },
)
REWRITE = gate(
    "rewrite",
    asks="The branch no longer has commits that this change was made on. Put the change alone on the branch as it is now?",
)


PREPARE = effect("prepare", SetupFacts, "setup")
MEASURE = effect("measure", BaselineFacts, "baseline")
MEASURE_AGAIN = effect("measure_again", BaselineFacts, "baseline")

# fmt: off
UNSTARTED = Guard("unstarted", "a check could not be started on the base tree", lambda _, e: bool(e.error) or e.unstarted > 0)
RED = Guard("red", "checks fail on the base tree, the failures are not acknowledged, and this run is not there to fix them", lambda c, e: e.red > 0 and c.red_base == "stop")
TOUCHES = Guard("touches", "the change touches what decides about tests or agents", lambda _, e: e.infrastructure > 0)
LOST_COMMITS = Guard("lost_commits", "the branch was rewritten: it no longer has commits that the change was made on", lambda _, e: e.rewritten > 0)
ACCEPTS = Guard("accepts", "the person accepts the results on this very tree", lambda c, e: e.choice == "approve" and e.digest == c.tree)
# fmt: on


def base_namings(
    ready: Guard,
    *,
    workspace_ready: EventDef,
    setup_failed: EventDef,
    check_cannot_start: EventDef,
    base_not_green: EventDef,
    baseline_recorded: EventDef,
) -> tuple[Naming, ...]:
    """What becomes of setup, by the machine's own guard that the tree is ready, and of the checks before any change."""
    return (
        naming(PREPARE, (ready, workspace_ready), (otherwise, setup_failed)),
        naming(MEASURE_AGAIN, (otherwise, baseline_recorded)),
        naming(
            MEASURE,
            (UNSTARTED, check_cannot_start),
            (RED, base_not_green),
            (otherwise, baseline_recorded),
            version=2,
        ),
    )


class WorkedTree(Protocol):
    """The commits that a run works with."""

    commit: str
    base_commit: str
    base_tree: str


def tree_setup_input(context: WorkedTree) -> dict[str, Any]:
    return {"commit": context.commit or context.base_commit}


def tree_baseline_input(context: WorkedTree) -> dict[str, Any]:
    return {"commit": context.base_commit, "tree": context.base_tree}


def fold_tree_ready(context: WorkedTree, facts: SetupFacts) -> tuple[Op, ...]:
    return (("set", "commit", facts.commit), ("set", "tree", facts.tree)) if not context.commit else ()


def fold_failure_detail(_c: WorkedTree, facts: SetupFacts | AgentFacts | DeliveryFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", facts.detail_ref),)


def fold_base_failure(_c: WorkedTree, facts: BaselineFacts) -> tuple[Op, ...]:
    """Keeps the results for people; the base tree counts as unchecked, and a later attempt checks it again."""
    return (("set", "baseline_ref", facts.results_ref), ("set", "detail_ref", facts.first_ref))


def fold_evidence_accepted(_c: WorkedTree, answer: GateAnswer) -> tuple[Op, ...]:
    return (("set", "accepted_tree", answer.digest), ("set", "accepted_by", answer.person))


def keep_session(role: str, facts: AgentFacts) -> tuple[Op, ...]:
    """What the role's next call may continue; a call without a session leaves the one before in place."""
    return (("put", "sessions", role, facts.session),) if facts.session else ()


# ── document rows ───────────────────────────────────────────────────────────────────────────────────────────────────────

# The rows of a phase whose work becomes documents on disk.
#
# A phase writes its documents (`record`), inspects all of them on disk (`inspect`), and goes on only from what is there. A
# person may go from phase to phase, have a phase done again, and have damaged documents restored. The machine keeps in its
# memory field `step` how far the phase is. What the documents say is in its own rows and namings.


DISK = "extension: §5.2, artifacts are inspected before any transition"
PACE = "extension: a person goes from phase to phase"


class DocumentEvents(msgspec.Struct, frozen=True, eq=False):
    """The machine's own events for what happens to documents."""

    documents_recorded: EventDef
    recording_failed: EventDef
    repair_failed: EventDef
    documents_damaged: EventDef
    phase_ready: EventDef
    next_requested: EventDef
    rework_requested: EventDef
    restore_requested: EventDef


# fmt: off
def document_rows(phases: Sequence[StateDef], paced: Sequence[StateDef], on: DocumentEvents) -> tuple[Row, ...]:
    """The rows of every phase that writes documents, and of those after which a person may say next."""
    return (
        *(row(phase, on.documents_recorded, otherwise, phase, None, "look at what is on disk",             DISK, sets={"step": "inspect"}) for phase in phases),
        *(row(phase, on.recording_failed,   otherwise, phase, None, "no document was written: ask a person", DISK, sets={"step": "unwritten"}) for phase in phases),
        *(row(phase, on.repair_failed,      otherwise, phase, None, "nothing was put right: look again",   DISK, sets={"step": "inspect"}) for phase in phases),
        *(row(phase, on.documents_damaged,  otherwise, phase, None, "name what is wrong, trust nothing",   DISK, sets={"step": "damaged"}) for phase in phases),
        *(row(phase, on.phase_ready,        otherwise, phase, None, "show what would happen",              PACE, sets={"step": "ready"}) for phase in paced),
        *(row(phase, on.next_requested,     otherwise, phase, None, "look again, then go on",              PACE, sets={"step": "confirmed"}) for phase in paced),
        *(row(phase, on.rework_requested,   otherwise, phase, None, "do the phase again",                  PACE, sets={"step": "work"}) for phase in paced),
        *(row(phase, on.restore_requested,  otherwise, phase, None, "put the recorded documents back",     DISK, sets={"step": "restore"}) for phase in phases),
    )
# fmt: on
