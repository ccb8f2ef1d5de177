"""The events of a task: what happened, who may cause it, and what it carries.

What each one leads to is in `table.py`.
"""

from steersman.contracts.facts import (
    AgentFacts,
    BaseFacts,
    BaselineFacts,
    CheckFacts,
    DeliveryFacts,
    SetupFacts,
)
from steersman.kernel.definition import Action, ChildEnded, Events, GateAnswer, Origin, event
from steersman.machines.task import context as ctx
from steersman.machines.task.facts import InspectFacts, PrerequisiteFacts, RecordFacts, RevertFacts

P, G, X, C = Origin.PERSON, Origin.GATE, Origin.EFFECT, Origin.CHILD


def redo_action(phase: str) -> Action:
    """What a person types to have a phase done again."""
    return Action(f"redo {phase}", command=f"tasks redo {{run}} {phase}")


# fmt: off
class E(Events):
    task_received = event("A person gives a task.", P, ctx.TaskReceived)
    words_given = event("A person says something to the next agent.", P, ctx.PersonWords, action=Action("say", command='tasks say {run} "…"'))
    redo_planning = event("A person wants another plan.", P, ctx.PersonWords, action=redo_action("planning"))
    redo_plan_review = event("A person has the plan reviewed again.", P, ctx.PersonWords, action=redo_action("plan_review"))
    redo_codegen = event("A person has it built again.", P, ctx.PersonWords, action=redo_action("codegen"))
    redo_review = event("A person has the change reviewed again.", P, ctx.PersonWords, action=redo_action("review"))
    redo_test = event("A person has the suites run again.", P, ctx.PersonWords, action=redo_action("test"))
    redo_accept = event("A person reopens the decision about a delivered change.", P, ctx.PersonWords, action=redo_action("accept"))
    others_there = event("The change of every task that comes first is in the branch.", X, PrerequisiteFacts)
    others_missing = event("A task that comes first is not accepted, or its change is not in the branch.", X, PrerequisiteFacts)
    begin_requested = event("A person has it begin without the others, and says why.", G, GateAnswer, waives="without the others")
    another_look_requested = event("A person has the others looked at again.", G, GateAnswer)
    plan_drafted = event("The lead planner has a draft; the others look at it.", X, AgentFacts)
    plan_commented = event("Another planner has looked at the draft.", X, AgentFacts)
    round_needed = event("The planners have something to settle.", X, AgentFacts)
    planning_converged = event("The planners have nothing left to settle among themselves.", X, AgentFacts)
    questions_open = event("The plan asks what a person has to answer first.", X, InspectFacts)
    questions_answered = event("A person has answered.", G, GateAnswer)
    scope_missing = event("The plan names no file that may be touched.", X, InspectFacts)
    planning_succeeded = event("There is a plan, its scope is known, and nothing blocks it.", X, InspectFacts)
    plan_reviewed = event("A reviewer has judged the plan; others have not.", X, AgentFacts)
    plan_reviews_complete = event("Every reviewer has judged the plan.", X, AgentFacts)
    review_ok = event("The plan may be built.", X, InspectFacts)
    review_needs_changes = event("The plan has to be changed.", X, InspectFacts)
    review_blocked = event("A reviewer blocks the plan.", X, InspectFacts)
    workspace_ready = event("The working tree is set up.", X, SetupFacts)
    setup_failed = event("The working tree could not be set up.", X, SetupFacts)
    baseline_recorded = event("The project's checks were run on the base tree.", X, BaselineFacts)
    check_cannot_start = event("A check cannot start on the base tree.", X, BaselineFacts)
    base_not_green = event("Checks fail on the base tree, and the failures are not acknowledged.", X, BaselineFacts)
    code_written = event("The coder has worked.", X, AgentFacts)
    crew_done = event("The child run has approved the change.", C, ChildEnded)
    crew_failed = event("The child run ended without approval.", C, ChildEnded)
    codegen_completed = event("There is a change, and all of it is inside the plan.", X, InspectFacts)
    codegen_empty = event("Nothing was changed.", X, InspectFacts)
    scope_mismatch = event("The change leaves what was planned.", X, InspectFacts)
    bounds_left = event("The change leaves the frozen plan that bounds the task.", X, InspectFacts)
    plan_unclear = event("The coder cannot build this plan.", X, InspectFacts)
    code_reviewed = event("A reviewer has judged the change; others have not.", X, AgentFacts)
    code_reviews_complete = event("Every reviewer has judged the change.", X, AgentFacts)
    review_passes = event("No reviewer has a blocking issue.", X, InspectFacts)
    needs_code_changes = event("The change has to be changed.", X, InspectFacts)
    plan_flawed = event("The plan itself is wrong.", X, InspectFacts)
    suites_run = event("Every suite has run, or was kept from it.", X, CheckFacts)
    tests_complete = event("Every suite ran on this tree and passed.", X, InspectFacts)
    test_failures = event("A suite, a linter or an analysis failed, or nothing proves that none did.", X, InspectFacts)
    evidence_questioned = event("Everything passed, but a person has to look at what that proves.", X, InspectFacts)
    evidence_accepted = event("A person accepts the results on this very tree.", G, GateAnswer, accepts_evidence=True)
    evidence_declined = event("A person sends the change back.", G, GateAnswer)
    base_unmoved = event("The change stands on what it would go to.", X, BaseFacts)
    base_moved = event("The change stands on a newer commit now: it is another tree.", X, BaseFacts)
    base_rewritten = event("The branch no longer has the commits that the change was made on.", X, BaseFacts)
    rewrite_accepted = event("A person lets the change go to the rewritten branch.", G, GateAnswer)
    rewrite_declined = event("A person keeps the change from the rewritten branch.", G, GateAnswer)
    base_conflicts = event("The change conflicts with newer commits.", X, BaseFacts)
    base_absorbed = event("The branch has all of the change already: nothing is left to hand over.", X, BaseFacts)
    delivery_lost = event("What was delivered before is not there any more.", X, BaseFacts)
    base_unseen = event("Where the change would go could not be looked at.", X, BaseFacts)
    decision_given = event("A person has decided.", G, GateAnswer)
    decision_recorded = event("The decision is on disk, and it is: accepted.", X, InspectFacts)
    accepted = event("The accepted change is delivered.", X, DeliveryFacts)
    delivery_failed = event("The accepted change could not be delivered.", X, DeliveryFacts)
    requires_further_changes = event("The decision is: further changes.", X, InspectFacts)
    needs_review = event("The decision is: to be reviewed again.", X, InspectFacts)
    upstream_problem = event("The decision is: the plan is the problem.", X, InspectFacts)
    revert_requested = event("The decision is: take it back.", X, InspectFacts)
    change_reverted = event("The change is undone by a commit of its own.", X, RevertFacts)
    revert_conflicted = event("The revert failed and changed nothing.", X, RevertFacts)
    revert_recorded = event("The record of the revert is on disk.", X, InspectFacts)
    revert_refused = event("The reason why the revert failed is on disk.", X, InspectFacts)
    documents_recorded = event("The phase's documents are written.", X, RecordFacts)
    recording_failed = event("The phase's documents could not be written.", X, RecordFacts)
    agent_failed = event("An agent broke down, or never gave an answer that fits.", X, AgentFacts)
    phase_ready = event("The phase is over; what it says waits for its person.", X, InspectFacts)
    next_requested = event("A person says: next.", G, GateAnswer)
    rework_requested = event("A person wants the phase done again.", G, GateAnswer)
    documents_damaged = event("A document on disk is not what was recorded.", X, InspectFacts)
    restore_requested = event("A person restores recorded documents.", G, GateAnswer)
    adoption_requested = event("A person wants the plan as it is on disk.", G, GateAnswer)
    repair_failed = event("Documents could not be restored or taken over.", X, RecordFacts)
    retry_requested = event("A person has it tried again.", G, GateAnswer)
# fmt: on
