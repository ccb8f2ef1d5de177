"""What accepting, delivering and reverting change in the context of a task: one pure fold for each event.

**Invariant:** no state, event or row is named here.
"""

from steersman.contracts.facts import BaseFacts, DeliveryFacts
from steersman.kernel.definition import GateAnswer
from steersman.kernel.ops import Op
from steersman.machines.task.context import TaskContext
from steersman.machines.task.facts import InspectFacts, RevertFacts
from steersman.machines.task.folds import reset_phase_ops


def fold_base_unmoved(_c: TaskContext, facts: BaseFacts) -> tuple[Op, ...]:
    return (("set", "told_ref", facts.told_ref),)


def fold_task_rebase(context: TaskContext, facts: BaseFacts) -> tuple[Op, ...]:
    """The change stands on another commit: it is another tree, to be reviewed and tested again."""
    return (
        *reset_phase_ops(),
        ("set", "base_commit", facts.base),
        ("set", "base_tree", facts.base_tree),
        ("set", "commit", facts.commit),
        ("set", "tree", facts.tree),
        ("set", "patch_ref", facts.patch_ref),
        ("set", "artifacts", {**context.artifacts, **facts.written}),
        ("set", "documents", {**context.documents, **facts.refs}),
        ("set", "laid", {"commit": facts.commit, "base": facts.base}),
        ("set", "delivered_tree", ""),
        ("set", "accepted_tree", ""),
        ("set", "accepted_by", ""),
        ("set", "told_ref", facts.told_ref),
        ("add", "turn", 1),
        ("add", "followed", 1),
    )


def fold_base_unseen(_c: TaskContext, facts: BaseFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", facts.told_ref),)


def fold_task_base_rewritten(_c: TaskContext, facts: BaseFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", facts.told_ref), ("set", "rewritten_tip", facts.base))


def fold_delivery_lost(_c: TaskContext, facts: BaseFacts) -> tuple[Op, ...]:
    """What was delivered is not there: it has to be delivered again, like any other change."""
    return (("set", "delivered_tree", ""), ("set", "detail_ref", facts.told_ref), *_new_base_ops(facts))


def _new_base_ops(facts: BaseFacts | RevertFacts) -> tuple[Op, ...]:
    """From here on the change is the whole of what the task has made, not what it added last; where that is known."""
    return (("set", "base_commit", facts.base), ("set", "base_tree", facts.base_tree)) if facts.base else ()


def fold_base_conflict(_c: TaskContext, facts: BaseFacts) -> tuple[Op, ...]:
    """The coder begins again on the branch as it is now."""
    why = "the branch has moved, and the change conflicts with it: make the change again on what is there now"
    return (
        *reset_phase_ops(),
        ("set", "base_commit", facts.base),
        ("set", "base_tree", facts.base_tree),
        ("set", "commit", facts.base),
        ("set", "tree", facts.base_tree),
        ("set", "must_fix", [{"id": "base", "text": facts.told_ref, "why": why}]),
        ("add", "turn", 1),
    )


def fold_person_decision(_c: TaskContext, answer: GateAnswer) -> tuple[Op, ...]:
    decision_record = {
        "choice": answer.choice,
        "person": answer.person,
        "reason": answer.reason,
        "digest": answer.digest,
    }
    notes: tuple[Op, ...] = (("set", "notes", [answer.text]),) if answer.text else ()
    return (
        ("set", "decided_by", answer.person),
        ("set", "reason", answer.reason),
        *notes,
        ("append", "decisions", decision_record),
    )


def fold_revert_decision(context: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    """Where nothing was delivered there is nothing to revert, and the record says so."""
    status = "pending" if context.delivered == "yes" else "nothing_delivered"
    return (*reset_phase_ops(), ("set", "revert", {"status": status, "detail": ""}))


def fold_task_delivery(context: TaskContext, facts: DeliveryFacts) -> tuple[Op, ...]:
    return (
        ("set", "delivered_tree", context.tree),
        ("set", "delivered_ref", facts.ref),
        ("set", "delivered_commit", facts.commit),
        (
            "set",
            "deliveries",
            [*(commit for commit in context.deliveries if commit != facts.commit), facts.commit],
        ),
        ("set", "url_ref", facts.url_ref),
        ("set", "reverted_commit", ""),
        ("set", "detail_ref", ""),
    )


def fold_task_revert(_c: TaskContext, facts: RevertFacts) -> tuple[Op, ...]:
    """`detail` is empty where the commit is steersman's own."""
    return (
        *_new_base_ops(facts),
        ("set", "reverted_commit", facts.commit),
        ("set", "deliveries", []),
        ("set", "revert", {"status": facts.status, "detail": facts.detail_ref}),
    )


def fold_revert_conflict(_c: TaskContext, facts: RevertFacts) -> tuple[Op, ...]:
    return (
        ("set", "revert", {"status": facts.status, "detail": facts.detail_ref}),
        ("set", "detail_ref", facts.detail_ref),
    )


def fold_revert_refusal(context: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    """The decision is asked for again, with why the change could not be reverted."""
    return (*reset_phase_ops(), ("set", "detail_ref", context.revert.get("detail", "")))
