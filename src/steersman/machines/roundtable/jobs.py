"""The jobs of a roundtable, and what a person can type: effects, gates with their choices, actions."""

from steersman.contracts.facts import AgentFacts, BaseFacts, CheckFacts, DeliveryFacts
from steersman.kernel.definition import Action, Choice, effect, gate

PROPOSE = effect("propose", AgentFacts, "agent")
DISCUSS_REVIEW = effect("discuss_review", AgentFacts, "agent")
DISCUSS_TEST = effect("discuss_test", AgentFacts, "agent")
IMPLEMENT = effect("implement", AgentFacts, "agent", edits=True)
REVIEW = effect("review", AgentFacts, "agent")
ASK_TESTER = effect("ask_tester", AgentFacts, "agent")
RUN_CHECKS = effect("run_checks", CheckFacts, "checks")
RECALL = effect("recall", CheckFacts, "recall")
CONFIRM = gate(
    "confirm",
    asks="Shall this proposal be implemented?",
    choices={
        "approve": Choice("approve", "implement exactly this proposal"),
        "rework": Choice(
            "rework",
            "have another proposal written",
            takes="text",
            required="rework needs words: say what to change",
        ),
        "reject": Choice("reject", "implement nothing and end the run", ends=True),
    },
)
LOOK_AT_BASE = effect("look_at_base", BaseFacts, "base")
MOVING = gate(
    "moving", asks="The branch has moved too often in a row. Look at it again? Reject stops the run."
)
RECHECK = gate(
    "recheck",
    asks="The branch moved after your approval, which is void. Check the change on the branch as it is now?",
    choices={
        "approve": Choice("approve", "check the change on the branch as it is now"),
        "reject": Choice("reject", "deliver nothing"),
    },
)
MERGE = gate(
    "merge",
    asks="Shall this change be merged?",
    choices={
        "approve": Choice("approve", "merge exactly this change"),
        "reject": Choice("reject", "merge nothing"),
    },
)
DELIVER = effect("deliver", DeliveryFacts, "deliver")
REVERT = effect("revert", DeliveryFacts, "revert")

FOLLOWUP = Action(
    "followup",
    "ask a run that has its outcome for more",
    'followup {run} "…"',
    required="a follow-up needs words: /followup what else",
)
DELIVER_AGAIN = Action("deliver", "try a failed delivery again")
REVERT_DELIVERED = Action("revert", "take the delivered change back", "revert {run}")
