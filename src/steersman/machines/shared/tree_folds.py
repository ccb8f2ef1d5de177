"""What machines on a tree remember of setup, the checks before any change, the evidence gate and delivery."""

from typing import Any, Protocol

from steersman.contracts.facts import AgentFacts, BaselineFacts, DeliveryFacts, SetupFacts
from steersman.kernel.definition import GateAnswer
from steersman.kernel.ops import Op


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
