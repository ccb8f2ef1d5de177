"""What machines that work on a tree share: setup, the checks before any change, the evidence gate and delivery.

A machine declares these jobs and gates as the work of its states, its events carry the facts, and `base_namings` says
what those facts come to. Which state follows, and what is remembered, is in the machine's own rows and folds.
"""

from typing import Any, Protocol

from steersman.contracts.facts import AgentFacts, BaselineFacts, DeliveryFacts, SetupFacts
from steersman.kernel.definition import (
    Choice,
    EventDef,
    GateAnswer,
    Guard,
    Naming,
    effect,
    gate,
    naming,
    otherwise,
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
RED = Guard("red", "checks fail on the base tree, nobody has acknowledged that, and this run is not there to fix them", lambda c, e: e.red > 0 and c.red_base == "stop")
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
