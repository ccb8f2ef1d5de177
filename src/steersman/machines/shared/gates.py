"""Gates that more than one machine opens, with their words."""

from steersman.kernel.definition import Choice, gate
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
