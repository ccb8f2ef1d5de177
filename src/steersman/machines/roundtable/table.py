"""Roundtable: agents discuss a proposal, a person confirms it, then coder, reviewer and tester go round until the
project's own checks pass on a reviewed tree, or a rule says stop.

Two phases share the states plan, review and test. The proposal phase edits nothing. It ends at a gate in `finalize`, and
only the gate's approval (a confirming follow-up) leads into the implementation phase. There, a round is build → review →
test. A round that fails goes through `iterate`, which counts iterations. `finalize` is a resting state: the run has its
outcome, and only a person's follow-up leaves it.

Namings turn facts into the specification's events. The precedence in `test` is schema_invalid > repeated > failed >
blocked > passed. Missing evidence is a failure: without a command, without a test, or with a blocked command it is never
`tests_passed`.

Evidence is compared with the base tree: in both phases the checks run on it before the first agent is called. A check
that cannot start, or a failure that no person has acknowledged, ends the run before anything was spent. Where the change
touches files that decide about tests or agents, or the results are in question, `test` opens a gate that is bound to the
tree, and only a person's acceptance of exactly that tree leads on.
"""

from steersman.contracts.agent import PROVIDER_CLASSES
from steersman.contracts.facts import (
    AgentFacts,
    BaseFacts,
    BaselineFacts,
    CheckFacts,
    DeliveryFacts,
    SetupFacts,
)
from steersman.kernel.build import machine
from steersman.kernel.definition import (
    ANY,
    STAY,
    Cap,
    EventDef,
    Events,
    GateAnswer,
    Guard,
    Origin,
    State,
    computed,
    do,
    event,
    fold,
    naming,
    otherwise,
    resting,
    room,
    row,
    state,
    table,
)
from steersman.kernel.laws import Before, Never, Only, Possible
from steersman.machines.roundtable import context as ctx
from steersman.machines.roundtable import work
from steersman.machines.roundtable.jobs import (
    ASK_TESTER,
    CONFIRM,
    DELIVER,
    DELIVER_AGAIN,
    DISCUSS_REVIEW,
    DISCUSS_TEST,
    FOLLOWUP,
    IMPLEMENT,
    LOOK_AT_BASE,
    MERGE,
    MOVING,
    PROPOSE,
    RECALL,
    RECHECK,
    REVERT,
    REVERT_DELIVERED,
    REVIEW,
    RUN_CHECKS,
)
from steersman.machines.shared.tree_fragments import (
    ACCEPTS,
    EVIDENCE,
    LOST_COMMITS,
    MEASURE,
    MEASURE_AGAIN,
    PREPARE,
    REWRITE,
    TOUCHES,
    base_namings,
    fold_base_failure,
    fold_evidence_accepted,
    fold_failure_detail,
    fold_tree_ready,
    tree_baseline_input,
    tree_setup_input,
)

# ── Guards that the work of states depends on ───────────────────────────────────────────────────────────────────────

# fmt: off
PROPOSES = Guard("proposes", "executionMode=proposal", lambda c, _: c.phase == "proposal", reads=("phase",))
IMPLEMENTS = Guard("implements", "operator confirm or implementation mode", lambda c, _: c.phase == "implementation", reads=("phase",))
TO_PREPARE = Guard("to_prepare", "the working tree is not ready", lambda c, _: c.workspace == "unprepared", reads=("workspace",), version=2)
TO_MEASURE = Guard("to_measure", "the working tree is ready, and the base tree was not checked yet", lambda c, _: c.workspace == "ready" and c.baseline == "unmeasured", reads=("workspace", "baseline"), version=2)
TO_PROPOSE = Guard("to_propose", "executionMode=proposal, and the base tree was checked", lambda c, _: c.phase == "proposal" and c.workspace == "ready" and c.baseline == "measured", reads=("phase", "workspace", "baseline"))
TO_ASK = Guard("to_ask", "implementing, and the tester has not named its commands", lambda c, _: c.phase == "implementation" and c.tester != "answered", reads=("phase", "tester"))
TO_LOOK = Guard("to_look", "the change is to be merged, and where it would go was not looked at", lambda c, _: c.tester == "answered" and c.deliver == "merge" and c.base == "unseen", reads=("tester", "deliver", "base"))
TO_MEASURE_AGAIN = Guard("to_measure_again", "the change stands on another base tree, which was not checked yet", lambda c, _: c.tester == "answered" and c.base == "seen" and c.baseline == "unmeasured", reads=("tester", "base", "baseline"))
ANSWERED = Guard("answered", "the tester has named its commands, and the change stands on what it would go to", lambda c, _: c.tester == "answered" and c.baseline == "measured" and (c.deliver != "merge" or c.base == "seen"), reads=("tester", "baseline", "deliver", "base"), version=2)
KEEPS_MOVING = Guard("keeps_moving", "the branch has moved too often in a row", lambda c, _: c.base == "parked", reads=("base",))
REWRITTEN = Guard("rewritten", "the branch was rewritten, and no person has said that the change may go there", lambda c, _: c.base == "rewritten", reads=("base",))
OVERTAKEN = Guard("overtaken", "the branch moved between the approval and the merge", lambda c, _: c.handover == "overtaken", reads=("handover",))
QUESTIONED = Guard("questioned", "a person has to say what the results are worth", lambda c, _: c.evidence == "questioned", reads=("evidence",))
SEEN = Guard("seen", "a person has accepted the results", lambda c, _: c.evidence == "accepted", reads=("evidence",))
AWAITS = Guard("awaits", "a proposal awaits the operator", lambda c, _: c.outcome == "await_operator_confirm", reads=("outcome",))
ASKS_MERGE = Guard("asks_merge", "an approved change is to be merged", lambda c, _: c.outcome == "approved" and c.deliver == "merge" and c.handover == "none", reads=("outcome", "deliver", "handover"))
HANDS_OVER = Guard("hands_over", "an approved change may be delivered", lambda c, _: (c.outcome == "approved" and ((c.deliver in ("branch", "draft-pr") and c.handover == "none") or c.handover == "granted")), reads=("outcome", "deliver", "handover"))
TAKES_BACK = Guard("takes_back", "a delivered change is to be reverted", lambda c, _: c.outcome == "approved" and c.handover == "recalled", reads=("outcome", "handover"))
# fmt: on

# ── States ────────────────────────────────────────────────────────────────────────────────────────────────────


class S(State):
    intake = state("A task or a follow-up is here; the phase decides where it goes.", initial=True)
    plan = state(
        "The working tree is made ready and checked as it is; then the coder drafts a proposal, or the first round begins.",
        do(PREPARE, tree_setup_input, when=TO_PREPARE),
        do(MEASURE, tree_baseline_input, when=TO_MEASURE),
        do(PROPOSE, work.proposal_input, when=TO_PROPOSE, version=3),
    )
    build = state("The coder edits its working tree.", do(IMPLEMENT, work.implementation_input, version=3))
    review = state(
        "The reviewer discusses the proposal, or judges the change.",
        do(DISCUSS_REVIEW, work.review_discussion_input, when=PROPOSES, version=2),
        do(REVIEW, work.change_review_input, when=IMPLEMENTS, version=2),
    )
    test = state(
        "The tester discusses the proposal, or names commands that steersman then runs beside the project's checks.",
        do(DISCUSS_TEST, work.test_discussion_input, when=PROPOSES, version=2),
        do(ASK_TESTER, work.tester_input, when=TO_ASK, version=3),
        do(LOOK_AT_BASE, work.roundtable_base_input, when=TO_LOOK),
        do(MOVING, work.moved_base_gate_input, when=KEEPS_MOVING),
        do(REWRITE, work.moved_base_gate_input, when=REWRITTEN),
        do(MEASURE_AGAIN, tree_baseline_input, when=TO_MEASURE_AGAIN),
        do(RUN_CHECKS, work.check_run_input, when=ANSWERED, version=2),
        do(EVIDENCE, work.roundtable_evidence_gate_input, when=QUESTIONED),
        do(RECALL, work.evidence_recall_input, when=SEEN),
    )
    iterate = state("A round did not suffice; iterations are counted here.")
    finalize = resting(
        "The run has its outcome.",
        do(CONFIRM, work.proposal_gate_input, when=AWAITS),
        do(MERGE, work.merge_gate_input, when=ASKS_MERGE, version=2),
        do(DELIVER, work.roundtable_delivery_input, when=HANDS_OVER, version=2),
        do(RECHECK, work.recheck_gate_input, when=OVERTAKEN),
        do(REVERT, work.roundtable_revert_input, when=TAKES_BACK),
    )


P, X, M = Origin.PERSON, Origin.EFFECT, Origin.MACHINE


class E(Events):
    task_received = event("A person gives a task.", P, ctx.RoundtableTaskReceived)
    task_followup_received = event("A person confirms, asks for rework or asks for more.", P, GateAnswer, action=FOLLOWUP)  # fmt: skip
    aborted_by_operator = event("A person stops the run.", P, GateAnswer)
    draft_proposal = event("The proposal phase begins.", M)
    implementation_confirmed = event("The implementation phase begins.", M)
    roundtable_reviewer = event("The coder has proposed.", X, AgentFacts)
    roundtable_tester = event("The reviewer has discussed.", X, AgentFacts)
    discussion_complete = event("The tester has discussed; the contract is bound.", X, AgentFacts)
    await_operator_confirm = event("The proposal waits for the operator.", M)
    workspace_ready = event("The working tree is set up.", X, SetupFacts)
    setup_failed = event("The working tree could not be set up.", X, SetupFacts)
    baseline_recorded = event("The project's checks were run on the base tree.", X, BaselineFacts)
    check_cannot_start = event("A check cannot start on the base tree.", X, BaselineFacts)
    base_not_green = event(
        "Checks fail on the base tree, and the failures are not acknowledged.", X, BaselineFacts
    )
    start_coder = event("A round begins.", M)
    start_reviewer = event("The coder has changed the tree.", X, AgentFacts)
    coder_changed_nothing = event("The coder left the tree as it was.", X, AgentFacts)
    review_schema_invalid = event("The reviewer's reply breaks its contract.", X, AgentFacts)
    review_changes_requested = event("The reviewer wants changes.", X, AgentFacts)
    review_approved = event("The reviewer approves.", X, AgentFacts)
    base_unmoved = event("The change stands on what it would be merged into.", X, BaseFacts)
    base_moved = event("The branch has moved: the change stands on it now and is another tree.", X, BaseFacts)
    base_rewritten = event("The branch no longer has the commits that the change was made on.", X, BaseFacts)
    base_refused = event(
        "The change could not be put on top of the branch; it is checked where it is.", X, BaseFacts
    )
    another_look_granted = event("A person has the branch looked at again.", Origin.GATE, GateAnswer)
    rewrite_accepted = event("A person lets the change go to the rewritten branch.", Origin.GATE, GateAnswer)
    tester_replied = event("The tester has named its commands.", X, AgentFacts)
    tester_schema_invalid = event("The tester's reply breaks its contract.", X, AgentFacts)
    tester_command_blocked = event("Nothing failed, but commands were not allowed to run.", X, CheckFacts)
    tests_failed = event("A check really failed.", X, CheckFacts)
    repeated_test_failure = event("The same check failed as in the round before.", X, CheckFacts)
    evidence_questioned = event(
        "Everything passed, but a person has to look at what that proves.", X, CheckFacts
    )
    evidence_accepted = event(
        "A person accepts the results on this very tree.", Origin.GATE, GateAnswer, accepts_evidence=True
    )
    evidence_declined = event("A person sends the change back.", Origin.GATE, GateAnswer)
    tests_passed = event("Every command ran on the current tree and passed.", X, CheckFacts)
    finding_unresolved = event("The same finding stays open.", M)
    max_iterations_reached = event("No iteration is left.", M)
    provider_not_found = event("The agent's program is not installed.", X, AgentFacts)
    provider_auth_error = event("The agent is not logged in.", X, AgentFacts)
    provider_network_error = event("The agent's service cannot be reached.", X, AgentFacts)
    provider_timeout = event("The agent took too long.", X, AgentFacts)
    provider_rate_limited = event("The agent's service limits us.", X, AgentFacts)
    provider_permission_denied = event("The agent was denied what it needs.", X, AgentFacts)
    provider_invalid_request = event("The agent's service refuses the request.", X, AgentFacts)
    provider_protocol_error = event("The agent answered in no known form.", X, AgentFacts)
    provider_crashed = event("The agent broke down.", X, AgentFacts)
    merge_granted = event("A person lets the change be merged.", Origin.GATE, GateAnswer)
    merge_declined = event("A person keeps the change on its branch.", Origin.GATE, GateAnswer)
    delivered = event("The change is delivered.", X, DeliveryFacts)
    delivery_failed = event("The change could not be delivered.", X, DeliveryFacts)
    delivery_overtaken = event("The branch moved after the approval, which is void.", X, DeliveryFacts)
    recheck_granted = event(
        "A person has the change checked on the branch as it is now.", Origin.GATE, GateAnswer
    )
    delivery_requested = event("A person asks for the delivery to be tried again.", P, action=DELIVER_AGAIN)
    revert_requested = event("A person asks to revert a delivered change.", P, ctx.RevertRequested, action=REVERT_DELIVERED)  # fmt: skip
    reverted = event("The change is undone by a commit of its own.", X, DeliveryFacts)
    revert_failed = event("The revert failed and changed nothing.", X, DeliveryFacts)


PROVIDER: tuple[EventDef, ...] = tuple(getattr(E, name) for name in PROVIDER_CLASSES)

# ── Guards ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# fmt: off
NEW_PROPOSAL = Guard("proposal_mode", "new task, to be proposed first", lambda c, _: c.mode == "proposal", reads=("mode",))
CONFIRMS = Guard("confirms", "append mode: the operator confirms exactly the proposal that waits", ctx.is_confirming_answer)
PREPARED = Guard("prepared", "implementation loop", lambda c, _: c.phase == "implementation" and c.workspace == "ready" and c.baseline == "measured", reads=("phase", "workspace", "baseline"))
DISCUSSED = Guard("discussed", "proposal complete", lambda c, _: c.phase == "proposal" and c.discussion == "complete", reads=("phase", "discussion"))
REPLIED = Guard("replied", "proposal", lambda _, e: not e.error and bool(e.text_ref))
READY = Guard("ready", "the working tree is set up", lambda _, e: e.ready)
CHANGED = Guard("changed", "coder completed", lambda c, e: not e.error and bool(e.tree) and e.tree != c.tree)
UNCHANGED = Guard("unchanged", "the coder changed nothing", lambda c, e: not e.error and bool(e.tree) and e.tree == c.tree)
APPROVES = Guard("approves", "reviewer decision=approve", lambda _, e: not e.error and e.reply is not None and e.reply["decision"] == "approve")
REQUESTS = Guard("requests_changes", "reviewer decision=changes_requested", lambda _, e: not e.error and e.reply is not None and e.reply["decision"] == "changes_requested")
NAMES_COMMANDS = Guard("names_commands", "the tester's reply names at least one command", lambda _, e: not e.error and e.reply is not None and e.reply["commands"] > 0)
FAILED = Guard("failed", "command result has real failures", lambda _, e: bool(e.error) or e.failed + e.timeout + e.no_tests > 0)
REPEATED = Guard("repeated", "same command failed as previous round", lambda c, e: bool(set(e.failed_commands) & set(c.failed_commands)) if c.repeated == "same_command" else bool(set(e.failure_keys) & set(c.failure_keys)))
BLOCKED = Guard("blocked", "all failures are blocked commands", lambda _, e: e.blocked > 0)
UNPROVEN = Guard("unproven", "nothing is proven about the current tree", lambda c, e: not ctx.is_roundtable_tree_proven(c, e))
TOUCHED = Guard("touched", "what decides about tests or agents is not as it was on the base tree", lambda c, _: c.infrastructure == "changed", reads=("infrastructure",))
DOUBTED = Guard("doubted", "tests vanished, a check was flaky, or its words speak against it", lambda _, e: e.missing + e.flaky + e.doubts > 0)
PASSED = Guard("passed", "all commands pass", lambda c, e: ctx.is_roundtable_tree_proven(c, e) and e.missing + e.flaky + e.doubts == 0)
REJECTS = Guard("rejects", "the operator rejects", lambda _, e: e.choice == "reject")
STANDS = Guard("stands", "what was accepted is what was recorded of the current tree", lambda c, e: ctx.is_roundtable_tree_proven(c, e) and c.accepted_tree == c.tree)
REBASED = Guard("rebased", "the change was put on top of a branch that has moved", lambda _, e: e.moved and bool(e.tree) and not e.absorbed)
BASE_STANDS = Guard("base_stands", "the branch is where it was", lambda _, e: not e.error and not e.moved)
SAYS_AGAIN = Guard("says_again", "the operator says yes", lambda _, e: e.choice == "approve")
OVERTOOK = Guard("overtook", "the branch is not where the change was checked", lambda _, e: e.moved)
BRANCH_ONLY = Guard("branch_only", "the change goes to a branch of its own, so that no branch can move away from it", lambda c, _: c.deliver != "merge", reads=("deliver",))
GRANTED = Guard("granted", "the operator approves this very tree", lambda c, e: e.choice == "approve" and e.digest == c.tree)
DONE = Guard("done", "the change is where it should be", lambda _, e: e.done)
DELIVERY_FAILED = Guard("delivery_failed", "an approved change could not be delivered", lambda c, _: c.outcome == "approved" and c.handover == "failed", reads=("outcome", "handover"))
DELIVERED = Guard("delivered", "an approved change was delivered and not reverted", lambda c, _: c.outcome == "approved" and c.handover == "done", reads=("outcome", "handover"))
# fmt: on


def _provider_error_guard(name: str) -> Guard:
    return Guard(name, f"the agent's error is {name}", lambda _, e: e.error == name)


ERRORS = tuple((_provider_error_guard(e.name), e) for e in PROVIDER)

ITERATIONS = Cap("iterations", "max_iterations", resets=(E.task_followup_received,))
MOVES = Cap("moves", "max_moves", resets=(E.base_unmoved, E.another_look_granted, E.task_followup_received))
STUCK = Guard(
    "stuck", "the same finding stays open while iterations remain", lambda c, _: ctx.is_finding_stuck(c)
)
REMAIN = room("remain", "iterations remaining", ITERATIONS)

# fmt: off
APPROVED = Guard("approved", "the outcome is approved", lambda c, _: c.outcome == "approved", reads=("outcome",))
FIRST_PROPOSED = Guard("first_proposed", "the run began with a proposal", lambda c, _: c.mode == "proposal", reads=("mode",))
UNCONFIRMED = Guard("unconfirmed", "a proposal was wanted and no person confirmed one", lambda c, _: c.mode == "proposal" and c.confirmation == "none", reads=("mode", "confirmation"))
UNMEASURED = Guard("unmeasured", "the base tree was not checked", lambda c, _: c.baseline == "unmeasured", reads=("baseline",))
UNSEEN = Guard("unseen", "the outcome is approved and changed infrastructure or doubtful results were not accepted", lambda c, _: (c.outcome == "approved" and (c.evidence == "questioned" or (c.infrastructure == "changed" and c.evidence != "accepted"))), reads=("outcome", "evidence", "infrastructure"))
UNLOOKED = Guard("unlooked", "the outcome is approved, and no person has looked at what the change would be merged into", lambda c, _: c.outcome == "approved" and c.deliver == "merge" and c.base != "seen", reads=("outcome", "deliver", "base"))
ASKED_TOO_SOON = Guard("asked_too_soon", "a person is asked about a branch that may still be followed", lambda c, _: c.base == "parked", reads=("base",), cap=MOVES)
APPROVED_CHANGED = Guard("approved_changed", "the outcome is approved with changed infrastructure", lambda c, _: c.outcome == "approved" and c.infrastructure == "changed", reads=("outcome", "infrastructure"))
# fmt: on

WORKING = (S.plan, S.build, S.review, S.test)
AFRESH = {
    "outcome": None,
    "last_round_outcome": None,
    "tester": "unasked",
    "discussion": "open",
    "evidence": "none",
    "handover": "none",
    "base": "unseen",
}
AGAIN = {**AFRESH, "workspace": "unprepared"}
ONTO = "extension: what is delivered was checked on what it goes to"

# fmt: off
TABLE = table(
    #   from         on                           when           to          cap         label                                               source
    row(None,        E.task_received,             NEW_PROPOSAL,  S.intake,   None,       "init run context, emit event",                     "§2",  sets={"phase": "proposal"}),
    row(None,        E.task_received,             otherwise,     S.intake,   None,       "init run context, emit event",                     "§2",  sets={"phase": "implementation"}),
    row(S.finalize,  E.task_followup_received,    CONFIRMS,      S.intake,   None,       "append follow-up message",                         "§2",  sets={**AFRESH, "phase": "implementation", "confirmation": "given"}),
    row(S.finalize,  E.task_followup_received,    otherwise,     S.intake,   None,       "append follow-up message",                         "§2",  sets=AGAIN),
    row(S.intake,    E.draft_proposal,            otherwise,     S.plan,     None,       "run coder in proposal mode",                       "§2"),
    row(S.plan,      E.roundtable_reviewer,       otherwise,     S.review,   None,       "run reviewer in discussion mode",                  "§2"),
    row(S.review,    E.roundtable_tester,         otherwise,     S.test,     None,       "run tester in discussion mode",                    "§2"),
    row(S.test,      E.discussion_complete,       otherwise,     STAY,       None,       "bind the discussion as a contract",                "extension: §4.1, an explicit discussion_complete", sets={"discussion": "complete"}),
    row(S.test,      E.await_operator_confirm,    otherwise,     S.finalize, None,       "persist round summary",                            "§2",  sets={"outcome": "await_operator_confirm"}),
    row(S.intake,    E.implementation_confirmed,  otherwise,     S.plan,     None,       "start implementation loop",                        "§2"),
    row(S.plan,      E.workspace_ready,           otherwise,     STAY,       None,       "the tree is ready for the first round",            "extension: setup is a taped step of its own", sets={"workspace": "ready"}),
    row(S.plan,      E.setup_failed,              otherwise,     S.finalize, None,       "stop: not a coder's round",                        "extension: setup has an outcome of its own", sets={"outcome": "setup_failed"}),
    row((S.plan, S.test), E.baseline_recorded,        otherwise,     STAY,       None,       "keep what the checks say before any change",       "extension: evidence is measured against the base tree", sets={"baseline": "measured"}),
    row(S.plan,      E.check_cannot_start,        otherwise,     S.finalize, None,       "stop before any agent is called",                  "extension: the base is checked before the first agent", sets={"outcome": "check_cannot_start"}),
    row(S.plan,      E.base_not_green,            otherwise,     S.finalize, None,       "stop before any agent is called",                  "extension: the base is checked before the first agent", sets={"outcome": "base_not_green"}),
    row(S.plan,      E.start_coder,               otherwise,     S.build,    ITERATIONS, "run coder impl",                                   "§2"),
    row(S.build,     E.start_reviewer,            TOUCHES,       S.review,   None,       "run reviewer strict JSON",                         "§2",  sets={"infrastructure": "changed", "evidence": "none"}),
    row(S.build,     E.start_reviewer,            otherwise,     S.review,   None,       "run reviewer strict JSON",                         "§2",  sets={"infrastructure": "untouched", "evidence": "none"}),
    row(S.build,     E.coder_changed_nothing,     otherwise,     S.iterate,  None,       "set must-fix: the coder changed nothing",          "extension: no change is a failed round", sets={"last_round_outcome": "coder_changed_nothing"}),
    row(S.review,    E.review_schema_invalid,     otherwise,     S.finalize, None,       "set outcome, stop run",                            "§2",  sets={"outcome": "review_schema_invalid"}),
    row(S.review,    E.review_changes_requested,  otherwise,     S.iterate,  None,       "set must-fix list",                                "§2",  sets={"last_round_outcome": "review_changes_requested"}),
    row(S.review,    E.review_approved,           otherwise,     S.test,     None,       "run tester strict JSON",                           "§2",  sets={"tester": "asked", "base": "unseen"}),
    row(S.test,      E.tester_replied,            otherwise,     STAY,       None,       "run the commands beside the project's checks",     "extension: steersman runs the commands itself", sets={"tester": "answered"}),
    row(S.test,      E.base_unmoved,              otherwise,     STAY,       None,       "check the change where it is",                     ONTO, sets={"base": "seen"}),
    row(S.test,      E.base_moved,                otherwise,     STAY,       MOVES,      "check the change on the branch as it is now",      ONTO, sets={"base": "seen", "baseline": "unmeasured", "evidence": "none"}),
    row(S.test,      E.base_moved,                otherwise,     STAY,       None,       "the branch keeps moving: ask a person",            ONTO, sets={"base": "parked", "baseline": "unmeasured", "evidence": "none"}),
    row(S.test,      E.base_rewritten,            otherwise,     STAY,       None,       "show what would come back, ask a person",          ONTO, sets={"base": "rewritten"}),
    row(S.test,      E.base_refused,              otherwise,     STAY,       None,       "check the change where it is, say why",            ONTO, sets={"base": "seen"}),
    row(S.test,      E.another_look_granted,      otherwise,     S.test,     None,       "look at the branch again",                         ONTO, sets={"base": "unseen"}),
    row(S.test,      E.rewrite_accepted,          otherwise,     S.test,     None,       "put the change alone on the rewritten branch",     ONTO, sets={"base": "unseen"}),
    row(S.test,      E.tester_schema_invalid,     otherwise,     S.iterate,  None,       "set must-fix list",                                "§2",  sets={"last_round_outcome": "tester_schema_invalid"}),
    row(S.test,      E.tester_command_blocked,    otherwise,     S.finalize, None,       "set must-fix, stop run (no iteration)",            "§2",  sets={"outcome": "tester_command_blocked"}),
    row(S.test,      E.tests_failed,              otherwise,     S.iterate,  None,       "set must-fix list with failed command + stderr",   "§2",  sets={"last_round_outcome": "test_failed"}),
    row(S.test,      E.repeated_test_failure,     otherwise,     S.finalize, None,       "set must-fix, stop run (no iteration)",            "§2",  sets={"outcome": "repeated_test_failure"}),
    row(S.test,      E.evidence_questioned,       otherwise,     STAY,       None,       "ask a person, bound to this tree",                 "extension: changed test infrastructure and doubtful results open a gate", sets={"evidence": "questioned"}),
    row(S.test,      E.evidence_accepted,         otherwise,     STAY,       None,       "recall what was recorded of this tree",            "extension: changed test infrastructure and doubtful results open a gate", sets={"evidence": "accepted"}),
    row(S.test,      E.evidence_declined,         otherwise,     S.iterate,  None,       "set must-fix: what the operator does not accept",  "extension: changed test infrastructure and doubtful results open a gate", sets={"evidence": "none", "last_round_outcome": "evidence_declined"}),
    row(S.test,      E.tests_passed,              otherwise,     S.finalize, None,       "clear must-fix, finalize approved",                "§2",  sets={"outcome": "approved", "last_round_outcome": None}),
    row(S.iterate,   E.start_coder,               otherwise,     S.build,    ITERATIONS, "next round build",                                 "§2"),
    row(S.iterate,   E.finding_unresolved,        otherwise,     S.finalize, None,       "stop with what stayed open and what was tried",    "extension: a review loop stops by rule", sets={"outcome": "finding_unresolved"}),
    row(ANY,         E.aborted_by_operator,       otherwise,     S.finalize, None,       "stop and persist canceled",                        "§2",  sets={"outcome": "canceled"}),
    row(S.finalize,  E.aborted_by_operator,       AWAITS,        S.finalize, None,       "reject the proposal that waits",                   "extension: abort while a proposal awaits confirmation", sets={"outcome": "canceled"}),
    row(ANY,         E.max_iterations_reached,    otherwise,     S.finalize, None,       "finalize best effort",                             "§2",  sets={"outcome": "max_iterations_reached"}),
    *(row(WORKING,   e,                           otherwise,     S.finalize, None,       "stop with the provider's own outcome",             "extension: §4.2, §4.4, §4.5 and the other provider classes", sets={"outcome": e.name}) for e in PROVIDER),
    row(S.finalize,  E.merge_granted,             otherwise,     STAY,       None,       "merge what was approved",                          "extension: merge goes through a gate bound to the tree", sets={"handover": "granted"}),
    row(S.finalize,  E.merge_declined,            otherwise,     STAY,       None,       "leave the target alone",                           "extension: merge goes through a gate bound to the tree", sets={"handover": "declined"}),
    row(S.finalize,  E.delivered,                 otherwise,     STAY,       None,       "note where the change is",                         "extension: delivery is a taped effect", sets={"handover": "done"}),
    row(S.finalize,  E.delivery_failed,           otherwise,     STAY,       None,       "note why the change is not there",                 "extension: delivery is a taped effect", sets={"handover": "failed"}),
    row(S.finalize,  E.delivery_overtaken,        otherwise,     STAY,       None,       "the approval is void: ask for another check",      ONTO, sets={"handover": "overtaken"}),
    row(S.finalize,  E.recheck_granted,           otherwise,     S.test,     None,       "check the change on the branch as it is now",      ONTO, sets={"outcome": None, "evidence": "none", "handover": "none", "base": "unseen"}),
    row(S.finalize,  E.delivery_requested,        DELIVERY_FAILED, S.finalize, None,     "try the delivery again",                           "extension: a failed delivery can be repeated", sets={"handover": "none"}),
    row(S.finalize,  E.revert_requested,          DELIVERED,     S.finalize, None,       "revert the change",                                "extension: a delivered change can be reverted, once", sets={"handover": "recalled"}),
    row(S.finalize,  E.reverted,                  otherwise,     STAY,       None,       "note the commit that undoes it",                   "extension: a delivered change can be reverted, once", sets={"handover": "reverted"}),
    row(S.finalize,  E.revert_failed,             otherwise,     STAY,       None,       "note why it stays",                                "extension: a delivered change can be reverted, once", sets={"handover": "done"}),
)
# fmt: on

# ── Namings: how facts become events ────────────────────────────────────────────────────────────────────────────────

# fmt: off
NAMES = (
    naming(PROPOSE, *ERRORS, (REPLIED, E.roundtable_reviewer), (otherwise, E.provider_protocol_error)),
    naming(DISCUSS_REVIEW, *ERRORS, (REPLIED, E.roundtable_tester), (otherwise, E.provider_protocol_error)),
    naming(DISCUSS_TEST, *ERRORS, (REPLIED, E.discussion_complete), (otherwise, E.provider_protocol_error)),
    *base_namings(READY, workspace_ready=E.workspace_ready, setup_failed=E.setup_failed, check_cannot_start=E.check_cannot_start, base_not_green=E.base_not_green, baseline_recorded=E.baseline_recorded),
    naming(IMPLEMENT, *ERRORS, (CHANGED, E.start_reviewer), (UNCHANGED, E.coder_changed_nothing), (otherwise, E.provider_protocol_error)),
    naming(REVIEW, *ERRORS, (APPROVES, E.review_approved), (REQUESTS, E.review_changes_requested), (otherwise, E.review_schema_invalid)),
    naming(ASK_TESTER, *ERRORS, (NAMES_COMMANDS, E.tester_replied), (otherwise, E.tester_schema_invalid)),
    naming(RUN_CHECKS, (REPEATED, E.repeated_test_failure), (FAILED, E.tests_failed), (BLOCKED, E.tester_command_blocked), (UNPROVEN, E.tests_failed), (TOUCHED, E.evidence_questioned), (DOUBTED, E.evidence_questioned), (PASSED, E.tests_passed), (otherwise, E.tests_failed)),
    naming(EVIDENCE, (REJECTS, E.aborted_by_operator), (ACCEPTS, E.evidence_accepted), (otherwise, E.evidence_declined)),
    naming(RECALL, (STANDS, E.tests_passed), (otherwise, E.tests_failed)),
    naming(CONFIRM, (REJECTS, E.aborted_by_operator), (otherwise, E.task_followup_received)),
    naming(MERGE, (GRANTED, E.merge_granted), (otherwise, E.merge_declined)),
    naming(LOOK_AT_BASE, (LOST_COMMITS, E.base_rewritten), (REBASED, E.base_moved), (BASE_STANDS, E.base_unmoved), (otherwise, E.base_refused)),
    naming(MOVING, (REJECTS, E.aborted_by_operator), (otherwise, E.another_look_granted)),
    naming(REWRITE, (REJECTS, E.aborted_by_operator), (SAYS_AGAIN, E.rewrite_accepted), (otherwise, E.another_look_granted)),
    naming(RECHECK, (SAYS_AGAIN, E.recheck_granted), (otherwise, E.merge_declined)),
    naming(DELIVER, (DONE, E.delivered), (BRANCH_ONLY, E.delivery_failed), (OVERTOOK, E.delivery_overtaken), (otherwise, E.delivery_failed), version=3),
    naming(REVERT, (DONE, E.reverted), (otherwise, E.revert_failed)),
)
# fmt: on
COMPUTES = (
    computed(S.intake, (IMPLEMENTS, E.implementation_confirmed), (otherwise, E.draft_proposal)),
    computed(S.plan, (PREPARED, E.start_coder)),
    computed(S.test, (DISCUSSED, E.await_operator_confirm)),
    computed(
        S.iterate,
        (STUCK, E.finding_unresolved),
        (REMAIN, E.start_coder),
        (otherwise, E.max_iterations_reached),
    ),
)
FOLDS = (
    fold(E.roundtable_reviewer, ctx.fold_coder_proposal, version=2),
    fold(E.roundtable_tester, ctx.fold_reviewer_notes, version=2),
    fold(E.discussion_complete, ctx.fold_discussion_contract, version=2),
    fold(E.await_operator_confirm, ctx.fold_proposal_summary),
    fold(E.task_followup_received, ctx.fold_followup_message),
    fold(E.workspace_ready, fold_tree_ready),
    fold(E.setup_failed, fold_failure_detail),
    fold(E.baseline_recorded, ctx.fold_roundtable_baseline),
    fold(E.check_cannot_start, fold_base_failure),
    fold(E.base_not_green, fold_base_failure),
    fold(E.start_coder, ctx.fold_round_start),
    fold(E.start_reviewer, ctx.fold_coder_change, version=3),
    fold(E.coder_changed_nothing, ctx.fold_coder_no_change, version=3),
    fold(E.review_changes_requested, ctx.fold_review_changes, version=2),
    fold(E.review_approved, ctx.fold_review_approval, version=2),
    fold(E.review_schema_invalid, ctx.fold_invalid_review),
    fold(E.tester_replied, ctx.fold_tester_commands, version=2),
    fold(E.tester_schema_invalid, ctx.fold_invalid_tester_reply),
    fold(E.tests_failed, ctx.fold_checks_failed),
    fold(E.tester_command_blocked, ctx.fold_checks_stopped),
    fold(E.repeated_test_failure, ctx.fold_checks_stopped),
    fold(E.evidence_questioned, ctx.fold_questioned_evidence),
    fold(E.evidence_accepted, fold_evidence_accepted),
    fold(E.evidence_declined, ctx.fold_evidence_refusal),
    fold(E.tests_passed, ctx.fold_checks_passed, version=2),
    fold(E.finding_unresolved, ctx.fold_escalation_pack),
    fold(E.max_iterations_reached, ctx.fold_escalation_pack),
    *(fold(e, fold_failure_detail) for e in PROVIDER),
    fold(E.base_unmoved, ctx.fold_base_look),
    fold(E.base_moved, ctx.fold_roundtable_rebase),
    fold(E.base_refused, ctx.fold_base_look),
    fold(E.base_rewritten, ctx.fold_roundtable_base_rewritten),
    fold(E.merge_granted, ctx.fold_merge_approval),
    fold(E.delivered, ctx.fold_roundtable_delivery),
    fold(E.delivery_overtaken, fold_failure_detail),
    fold(E.recheck_granted, ctx.fold_recheck_request),
    fold(E.delivery_failed, fold_failure_detail),
    fold(E.delivery_requested, ctx.fold_delivery_request),
    fold(E.revert_requested, ctx.fold_revert_request),
    fold(E.reverted, ctx.fold_roundtable_revert),
    fold(E.revert_failed, fold_failure_detail),
)
LAWS = (
    Only("outcome", "approved", by=(E.tests_passed,)),
    Only("outcome", "canceled", by=(E.aborted_by_operator,)),
    Before(S.build, then=S.finalize, when=APPROVED),
    Before(S.review, then=S.finalize, when=APPROVED),
    Before(S.test, then=S.finalize, when=APPROVED),
    Never(S.build, when=PROPOSES),
    Never(S.build, when=UNCONFIRMED),
    Never(S.build, when=UNMEASURED),
    Never(S.review, when=UNMEASURED),
    Never(S.finalize, when=UNSEEN),
    Never(S.finalize, when=UNLOOKED),
    Never(S.test, when=ASKED_TOO_SOON),
    Only("evidence", "accepted", by=(E.evidence_accepted,)),
    Possible(S.finalize, when=APPROVED_CHANGED),
    Possible(S.finalize, when=APPROVED),
    Possible(S.build, when=FIRST_PROPOSED),
)

MACHINE = machine(
    "roundtable",
    "Proposal discussion, the operator's confirmation, then rounds of coder, reviewer and tester.",
    states=S,
    events=E,
    rows=TABLE,
    context=ctx.RoundtableContext,
    context_version=4,
    upcasts={1: ctx.upcast_add_sessions, 2: ctx.upcast_unchanged, 3: ctx.upcast_red_base_fix},
    namings=NAMES,
    computes=COMPUTES,
    folds=FOLDS,
    laws=LAWS,
    constants={"mode": ("proposal", "implementation"), "deliver": ("branch", "merge", "draft-pr", "none")},
    memory={
        "phase": ("proposal", "implementation"),
        "outcome": (
            None, "await_operator_confirm", "approved", "review_schema_invalid", "tester_command_blocked", "repeated_test_failure",
            "max_iterations_reached", "finding_unresolved", "canceled", "setup_failed", "check_cannot_start", "base_not_green", *PROVIDER_CLASSES,
        ),
        "last_round_outcome": (
            None, "coder_changed_nothing", "review_changes_requested", "tester_schema_invalid", "test_failed", "evidence_declined",
        ),
        "confirmation": ("none", "given"),
        "workspace": ("unprepared", "ready"),
        "tester": ("unasked", "asked", "answered"),
        "discussion": ("open", "complete"),
        "baseline": ("unmeasured", "measured"),
        "infrastructure": ("untouched", "changed"),
        "evidence": ("none", "questioned", "accepted"),
        "base": ("unseen", "seen", "parked", "rewritten"),
        "handover": ("none", "granted", "overtaken", "declined", "done", "failed", "recalled", "reverted"),
    },
    abort=E.aborted_by_operator,
    successes=("approved",),
    roles=("coder", "reviewer", "tester"),
    begin=lambda request: (E.task_received, *ctx.begin_roundtable(request)),
    begin_version=4,
)  # fmt: skip
