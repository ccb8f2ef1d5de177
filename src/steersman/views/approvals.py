"""Says which tree a run has delivered, and which people let it through: read from the tape, so that it stays true of that
delivery whatever came later."""

from collections.abc import Sequence

import msgspec

from steersman.kernel.tape import Entry

# What a person's answer sets on the tape, in words; of these two the answer counts only for the tree that it named.
_APPROVAL_WORDS = {
    "confirmed_by": "confirmed the proposal",
    "accepted_by": "accepted the evidence at its gate",
    "merged_by": "approved the merge at its gate",
    "decided_by": "accepted the change",
}
_BOUND_TO_TREE = ("accepted_by", "merged_by")


class Approval(msgspec.Struct, frozen=True):
    """One person's word that a delivery stands on."""

    person: str
    what: str
    digest: str  # of the tree or the contract that the answer named
    seq: int


class DeliveredTree(msgspec.Struct, frozen=True):
    """The newest delivery of a run."""

    tree: str
    commit: str
    approvals: tuple[Approval, ...] = ()


def find_delivered_tree(entries: Sequence[Entry]) -> DeliveredTree | None:
    """The newest delivery, with everybody whose word it stands on; None where nothing was delivered."""
    approvals: dict[str, Approval] = {}
    delivered: DeliveredTree | None = None
    for entry in entries:
        data = entry.data if isinstance(entry.data, dict) else {}
        sets = {op[1]: op[2] for op in entry.ops if op[0] == "set"}
        for field in _APPROVAL_WORDS.keys() & sets.keys():
            approvals.pop(field, None)
            if sets[field] and data.get("choice", "") == "approve":
                approvals[field] = Approval(
                    sets[field], _APPROVAL_WORDS[field], data.get("digest", ""), entry.seq
                )
        if sets.get("delivered_commit"):
            tree = data.get("tree", "")
            counts = [a for field, a in approvals.items() if field not in _BOUND_TO_TREE or a.digest == tree]
            delivered = DeliveredTree(
                tree, sets["delivered_commit"], tuple(sorted(counts, key=lambda a: a.seq))
            )
    return delivered
