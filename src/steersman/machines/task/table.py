"""Task: a plan, its review, the code, its review, the tests, a person's decision; each phase over files on disk.

A phase is a state, and `step` says how far it is: its work is done, its documents are written (`record`), every recorded
document is inspected on disk (`inspect`), and what they say names the specification's event. With the pace `step` a gate
comes between: the person sees what would happen, says next, and everything is inspected again. A file that is not as
recorded is never trusted: the phase waits at a gate until it is restored or, for the plan itself, adopted. The number of
times that a task goes back is capped; beyond the cap it waits for a person.

`done` is a resting state: the task has its outcome, and only an explicit redo reopens it. No phase is skipped; a person
may waive the guard of a direct successor, with a reason, where there is something to go on with.
"""

from steersman.kernel.build import machine
from steersman.kernel.definition import STAY, Cap, Guard, fold, naming, otherwise, row, table
from steersman.kernel.laws import Before, Law, Never, Only, Possible
from steersman.machines.shared.tree_fragments import (
    ACCEPTS,
    DISK,
    EVIDENCE,
    LOST_COMMITS,
    REWRITE,
    TOUCHES,
    DocumentEvents,
    base_namings,
    document_rows,
    fold_base_failure,
    fold_evidence_accepted,
    fold_failure_detail,
    fold_tree_ready,
)
from steersman.machines.task import context as ctx
from steersman.machines.task import delivery_folds, folds
from steersman.machines.task.events import E
from steersman.machines.task.phases import (
    ADOPT,
    AGAIN,
    CODE,
    COMMENT,
    CREW,
    DAMAGE,
    DAMAGED_PLAN,
    DECIDE,
    DELIVER,
    DRAFT,
    INSPECT_CODE,
    INSPECT_DECISION,
    INSPECT_PLAN,
    INSPECT_PLAN_REVIEW,
    INSPECT_REVERT,
    INSPECT_REVIEW,
    INSPECT_TESTS,
    LOOK_AT_BASE,
    LOOK_AT_OTHERS,
    NEXT,
    OTHERS,
    PHASES,
    QUESTIONS,
    RECORD,
    RESTORE,
    REVIEW_CODE,
    REVIEW_PLAN,
    RUN_SUITES,
    TAKE_BACK,
    S,
    step_guard,
)

# ── Guards ──────────────────────────────────────────────────────────────────────────────────────────────────────────


STILL = ("ready", "stuck", "broken", "unwritten")  # where a person may waive a guard


def _has_usable_change(c: ctx.TaskContext) -> bool:
    has_change = "code/files.json" in c.artifacts and bool(c.tree) and c.tree != c.base_tree
    return c.step in STILL and has_change and not c.beyond


def _person_choice_guard(choice: str) -> Guard:
    return Guard(f"chose_{choice}", f"the person says {choice}", lambda _, e: e.choice == choice)


def _recorded_decision_guard(decision: str) -> Guard:
    return Guard(
        f"decided_{decision}",
        f"the decision on disk is {decision}",
        lambda c, e: c.decision == decision == e.decision,
    )


# fmt: off
COMES_AFTER = Guard("comes_after", "other tasks come first", lambda c, _: bool(c.after))
AWAITS = Guard("awaits", "it has not begun: other tasks come first", lambda c, _: c.others == "awaited", reads=("others",))
ALL_THERE = Guard("all_there", "the branch has the change of every task that comes first", lambda _, e: not e.error and e.missing == 0 and bool(e.base and e.base_tree))
SAYS_BEGIN = Guard("says_begin", "the person has it begin all the same, with a reason", lambda _, e: e.choice == "begin" and bool(e.reason))
BROKE = Guard("broke", "the agent broke down", lambda _, e: bool(e.error))
FITS = Guard("fits", "the reply fits its contract", lambda _, e: not e.error and e.reply is not None)
SHARED_WORK = Guard("shared_work", "other planners look at the draft too", lambda c, e: c.panel == "several" and not e.error and e.reply is not None)
DRAFTED_ALONE = Guard("drafted_alone", "the draft fits and no other agent plans", lambda c, e: c.panel == "alone" and not e.error and e.reply is not None)
COMMENT_BROKE = Guard("comment_broke", "no comment is awaited any more, and an agent failed or gave none that fits", lambda c, e: ctx.is_last_comment(c) and ctx.has_failed_reply(c, "comments", e))
LAST_ASKS = Guard("last_asks", "all have commented, and a person has to answer something first", lambda c, e: ctx.is_last_comment(c) and ctx.has_blocking_question(c, e))
LAST_CONCERNED = Guard("last_concerned", "all have commented, and something is to be settled", lambda c, e: ctx.is_last_comment(c) and ctx.has_open_concern(c, e))
LAST_COMMENT = Guard("last_comment", "all have commented", lambda c, _: ctx.is_last_comment(c))
PLAN_OPINION_BROKE = Guard("plan_opinion_broke", "no opinion on the plan is awaited any more, and an agent failed or gave none that fits", lambda c, e: ctx.is_last_plan_opinion(c) and ctx.has_failed_reply(c, "plan_opinions", e))
LAST_PLAN_OPINION = Guard("last_plan_opinion", "all reviewers of the plan have answered", lambda c, _: ctx.is_last_plan_opinion(c))
CODE_OPINION_BROKE = Guard("code_opinion_broke", "no opinion on the change is awaited any more, and an agent failed or gave none that fits", lambda c, e: ctx.is_last_code_opinion(c) and ctx.has_failed_reply(c, "code_opinions", e))
LAST_CODE_OPINION = Guard("last_code_opinion", "all reviewers of the change have answered", lambda c, _: ctx.is_last_code_opinion(c))
LAID_DOWN = Guard("laid_down", "every document is on disk", lambda _, e: bool(e.written) and not e.error_ref)
DAMAGE_FOUND = Guard("damage_found", "a document on disk is not what was recorded", lambda _, e: e.damaged > 0 or not e.seen)
UNSEEN = Guard("unseen", "a person has yet to say next about exactly this", ctx.needs_person_next)
QUESTIONS_LEFT = Guard("questions_left", "blocking questions remain", lambda _, e: e.blocking > 0)
NO_SCOPE = Guard("no_scope", "no valid plan.files.json, and none can be inferred", lambda _, e: e.files == 0)
PLANNED = Guard("planned", "planning.ai.json exists, no blocking questions remain, plan.files.json is valid", lambda _, e: e.blocking == 0 and e.files > 0)
PLAN_BLOCKED = Guard("plan_blocked", "plan-review.json: blocked", lambda _, e: e.blocked)
PLAN_OK = Guard("plan_ok", "plan-review.json: ok is true and blocked is false", lambda _, e: e.ok and not e.blocked)
TREE_READY = Guard("tree_ready", "the working tree is set up", lambda _, e: e.ready)
UNTOUCHED = Guard("untouched", "the child run's change touches nothing that decides about tests or agents", lambda c, e: c.codegen == "roundtable" and e.infrastructure == 0)
CREW_APPROVED = Guard("crew_approved", "the child run approved a tree", lambda _, e: e.success and bool(e.tree))
SAYS_UNCLEAR = Guard("says_unclear", "the coder says that essential parts of the plan are missing", lambda c, _: c.coder_status == "plan_unclear")
SAYS_MISMATCH = Guard("says_mismatch", "the coder says that the plan lacks files", lambda c, _: c.coder_status == "scope_mismatch")
LEAVES_BOUNDS = Guard("leaves_bounds", "changed files, or commands that were wanted, are outside the frozen plan", lambda c, _: c.beyond > 0)
LEAVES_PLAN = Guard("leaves_plan", "changed files are outside plan.files.json", lambda _, e: e.outside > 0)
EMPTY = Guard("empty", "there is no change", lambda c, e: e.copies == 0 or e.patch == 0 or c.tree == c.base_tree)
BUILT = Guard("built", "diff.patch exists and the changed files are in code/files", lambda c, e: e.copies > 0 and e.patch > 0 and e.outside == 0 and e.tree == c.tree)
FLAWED = Guard("flawed", "code-review.json: plan_flawed", lambda _, e: e.decision == "plan_flawed")
PASSES = Guard("passes", "code-review.json: no blocking issue, about this very tree", lambda c, e: e.ok and e.decision == "passes" and e.tree == c.tree)
UNPROVEN = Guard("unproven", "nothing proves that every suite passed on the current tree", lambda c, e: not ctx.is_task_tree_proven(c, e))
TOUCHED = Guard("touched", "what decides about tests or agents is changed, and no person has accepted that", lambda c, _: c.evidence == "touched", reads=("evidence",))
DOUBTED = Guard("doubted", "tests vanished, a check was flaky, or its words speak against it", lambda c, e: ctx.has_doubtful_results(c, e) and c.evidence != "accepted")
PROVEN = Guard("proven", "every suite ran on this tree and passed", ctx.is_task_tree_proven)
CONFLICTS = Guard("conflicts", "the branch has moved, and the change conflicts with it", lambda _, e: e.conflicts > 0 and bool(e.base_tree))
LOST = Guard("lost", "what was delivered before is not there any more", lambda _, e: e.lost)
ABSORBED = Guard("absorbed", "the branch has all of the change already", lambda _, e: e.absorbed)
MOVED = Guard("moved", "the branch has moved", lambda _, e: e.moved and bool(e.tree))
STANDS = Guard("stands", "the branch is where it was", lambda _, e: not e.error and not e.moved and not e.conflicts)
SAYS_NEXT = Guard("says_next", "the person says next", lambda _, e: e.choice == "approve")
SAYS_ADOPT = Guard("says_adopt", "the person wants what is on disk", lambda _, e: e.choice == "adopt")
DONE = Guard("done_well", "the change is where it should be", lambda _, e: e.done)
TAKEN_BACK = Guard("taken_back", "the branch does not have the change any more", lambda _, e: e.status == "reverted")
REVERT_DONE = Guard("revert_done", "record.json: reverted, or nothing was delivered", lambda _, e: e.status in ("reverted", "nothing_delivered"))
WAS_DELIVERED = Guard("was_delivered", "a delivered change that was not reverted", lambda c, _: c.delivered == "yes", reads=("delivered",))
SEEN_BY_PERSON = Guard("seen_by_person", "a person has accepted earlier results", lambda c, _: c.evidence == "accepted", reads=("evidence",))
UNSEEN_RESULTS = Guard("unseen_results", "results that no person has looked at count as accepted", lambda c, _: c.step == "record" and c.evidence == "accepted", reads=("step", "evidence"))
AT_WORK = step_guard("at_work", "it broke in the phase's own work", "broken")
AT_RECORD = step_guard("at_record", "the work is done, and its documents could not be written", "unwritten")
HAS_PLAN = Guard("has_plan", "the phase stands still, and there is a plan to go on with", lambda c, _: c.step in STILL and "planning/planning.ai.json" in c.artifacts)
HAS_SCOPE = Guard("has_scope", "the phase stands still, and there is a plan with its files to go on with", lambda c, _: c.step in STILL and "plan.files.json" in c.artifacts)
HAS_CHANGE = Guard("has_change", "the phase stands still, and there is a change to go on with, inside the frozen plan where there is one", lambda c, _: _has_usable_change(c))
HAS_SEEN = Guard("has_seen", "the phase stands still, there is a change to go on with, and what it does to the tests was accepted", lambda c, _: _has_usable_change(c) and c.evidence != "touched")
UNCHECKED = Guard("unchecked", "the base tree was never checked", lambda c, _: c.workspace in ("unprepared", "ready"), reads=("workspace",))
ACCEPTED = Guard("accepted_outcome", "the outcome is accepted", lambda c, _: c.outcome == "accepted", reads=("outcome",))
REVERTED = Guard("reverted_outcome", "the outcome is reverted", lambda c, _: c.outcome == "reverted", reads=("outcome",))
# fmt: on


ROUNDS = Cap("rounds", "max_rounds", resets=(E.questions_answered, E.words_given, E.redo_planning, E.rework_requested, E.retry_requested, E.planning_succeeded))  # fmt: skip
REGRESSIONS = Cap("regressions", "max_regressions", resets=(E.next_requested, E.redo_planning, E.redo_plan_review, E.redo_codegen, E.redo_review, E.redo_test, E.redo_accept, E.rework_requested, E.retry_requested, E.decision_given))  # fmt: skip

MOVES = Cap(
    "moves",
    "max_moves",
    resets=(
        E.base_unmoved,
        E.retry_requested,
        E.rework_requested,
        E.redo_planning,
        E.redo_codegen,
        E.redo_review,
    ),
)

WORK = {"step": "work"}
AROUND = {"step": "others"}
AGAIN_FROM = {"step": "work", "decision": "none"}
REOPENED = {**AGAIN_FROM, "outcome": None}
STOP = {"step": "stuck"}
BROKEN = {"step": "broken"}
DECISIONS = {
    "approve": "accepted",
    "rework": "changes_requested",
    "review": "review_requested",
    "replan": "replan_requested",
    "revert": "revert_requested",
}
EXT = "extension: "
FIRST = "extension: a task may come after others"
GREEN = "extension: the base is checked before the first agent"
PARK = "extension: automatic regressions are capped, then a person decides"
REDO = "§5.4, §8 /redo"

DOCUMENT_EVENTS = DocumentEvents(
    documents_recorded=E.documents_recorded,
    recording_failed=E.recording_failed,
    repair_failed=E.repair_failed,
    documents_damaged=E.documents_damaged,
    phase_ready=E.phase_ready,
    next_requested=E.next_requested,
    rework_requested=E.rework_requested,
    restore_requested=E.restore_requested,
)

# fmt: off
TABLE = table(
    #   from           on                           when             to              cap          label                                              source
    row(None,          E.task_received,             COMES_AFTER,     S.planning,     None,        "a task begins after others",                      FIRST, sets={**AROUND, "others": "awaited"}),
    row(None,          E.task_received,             otherwise,       S.planning,     None,        "a task begins",                                   "§2", sets=WORK),
    # planning
    row(S.planning,    E.others_there,              otherwise,       S.planning,     None,        "begin on what the others have left",              FIRST, sets={**WORK, "others": "none"}),
    row(S.planning,    E.others_missing,            otherwise,       S.planning,     None,        "say which, and wait",                             FIRST, sets={"step": "waiting"}),
    row(S.planning,    E.another_look_requested,    otherwise,       S.planning,     None,        "look at the others again",                        FIRST, sets=AROUND),
    row(S.planning,    E.begin_requested,           otherwise,       S.planning,     None,        "begin without them",                              FIRST, sets={**WORK, "others": "none"}),
    row(S.planning,    E.workspace_ready,           otherwise,       STAY,           None,        "the tree is ready",                               EXT + "setup is a taped step of its own", sets={"workspace": "ready"}),
    row(S.planning,    E.setup_failed,              otherwise,       S.planning,     None,        "the tree is not ready: ask a person",             EXT + "setup is a taped step of its own", sets=BROKEN),
    row(S.planning,    E.check_cannot_start,        otherwise,       S.planning,     None,        "no planner is asked: say why, ask a person",      GREEN, sets=BROKEN),
    row(S.planning,    E.base_not_green,            otherwise,       S.planning,     None,        "no planner is asked: say why, ask a person",      GREEN, sets=BROKEN),
    row((S.planning, S.codegen, S.test), E.baseline_recorded, otherwise, STAY,       None,        "keep what the checks say before any change",      EXT + "evidence is measured against the base tree", sets={"workspace": "measured"}),
    row(S.planning,    E.plan_drafted,              otherwise,       S.planning,     None,        "the other planners look at the draft",            EXT + "several planners", sets={"step": "comment"}),
    row(S.planning,    E.plan_commented,            otherwise,       STAY,           None,        "keep the comment",                                EXT + "several planners"),
    row(S.planning,    E.round_needed,              otherwise,       S.planning,     ROUNDS,      "re-plan",                                         "§4 actors.planning.round", sets=WORK),
    row(S.planning,    E.round_needed,              otherwise,       S.planning,     None,        "the planners do not agree: ask a person",         PARK, sets=BROKEN),
    row(S.planning,    E.planning_converged,        otherwise,       S.planning,     None,        "lay the plan down",                               "§3.1", sets={"step": "record"}),
    row(S.planning,    E.questions_open,            otherwise,       S.planning,     None,        "ask the person",                                  "§3.1 no blocking questions remain", sets={"step": "questions"}),
    row(S.planning,    E.questions_answered,        otherwise,       S.planning,     None,        "re-plan with the answers",                        "§4 actors.planning.round", sets=WORK),
    row(S.planning,    E.scope_missing,             otherwise,       S.planning,     ROUNDS,      "re-plan: name the files",                         "§3.1 a valid plan.files.json", sets=WORK),
    row(S.planning,    E.scope_missing,             otherwise,       S.planning,     None,        "no scope: ask a person",                          PARK, sets=STOP),
    row(S.planning,    E.planning_succeeded,        otherwise,       S.plan_review,  None,        "planning succeeded",                              "§3.1", sets=WORK, waivable=HAS_PLAN),
    # plan_review
    row(S.plan_review, E.plan_reviewed,             otherwise,       STAY,           None,        "keep the opinion",                                EXT + "several reviewers"),
    row(S.plan_review, E.plan_reviews_complete,     otherwise,       S.plan_review,  None,        "lay the review down",                             "§3.2", sets={"step": "record"}),
    row(S.plan_review, E.review_ok,                 otherwise,       S.codegen,      None,        "review ok",                                       "§3.2", sets=WORK, waivable=HAS_SCOPE),
    row(S.plan_review, E.review_needs_changes,      otherwise,       S.planning,     REGRESSIONS, "review needs changes",                            "§3.3", sets=WORK),
    row(S.plan_review, E.review_needs_changes,      otherwise,       S.plan_review,  None,        "too often: ask a person",                         PARK, sets=STOP),
    row(S.plan_review, E.review_blocked,            otherwise,       S.planning,     REGRESSIONS, "review blocked",                                  "§3.3", sets=WORK),
    row(S.plan_review, E.review_blocked,            otherwise,       S.plan_review,  None,        "too often: ask a person",                         PARK, sets=STOP),
    # codegen
    row(S.codegen,     E.code_written,              TOUCHES,         S.codegen,      None,        "lay the change down",                             "§3.4", sets={"step": "record", "evidence": "touched"}),
    row(S.codegen,     E.code_written,              otherwise,       S.codegen,      None,        "lay the change down",                             "§3.4", sets={"step": "record", "evidence": "plain"}),
    row(S.codegen,     E.crew_done,                 otherwise,       S.codegen,      None,        "record the child run's change",                      EXT + "codegen as a child run", sets={"step": "record", "evidence": "touched"}),
    row(S.codegen,     E.crew_failed,               otherwise,       S.codegen,      None,        "the child run ended without approval: ask a person",   EXT + "codegen as a child run", sets=BROKEN),
    row(S.codegen,     E.codegen_completed,         otherwise,       S.review,       None,        "codegen completed",                               "§3.4", sets=WORK, waivable=HAS_CHANGE),
    row(S.codegen,     E.codegen_empty,             otherwise,       S.codegen,      REGRESSIONS, "re-run codegen",                                  "§2 codegen → codegen", sets=WORK),
    row(S.codegen,     E.codegen_empty,             otherwise,       S.codegen,      None,        "no change, too often: ask a person",              PARK, sets=STOP),
    row(S.codegen,     E.scope_mismatch,            otherwise,       S.planning,     REGRESSIONS, "scope mismatch",                                  "§3.5", sets=WORK),
    row(S.codegen,     E.scope_mismatch,            otherwise,       S.codegen,      None,        "too often: ask a person",                         PARK, sets=STOP),
    row(S.codegen,     E.bounds_left,               otherwise,       S.codegen,      REGRESSIONS, "re-run codegen: it left the frozen plan",         "§2 codegen → codegen", sets=WORK),
    row(S.codegen,     E.bounds_left,               otherwise,       S.codegen,      None,        "too often: ask a person",                         PARK, sets=STOP),
    row(S.codegen,     E.plan_unclear,              otherwise,       S.plan_review,  REGRESSIONS, "plan unclear",                                    "§3.5", sets=WORK),
    row(S.codegen,     E.plan_unclear,              otherwise,       S.codegen,      None,        "too often: ask a person",                         PARK, sets=STOP),
    # review
    row(S.review,      E.code_reviewed,             otherwise,       STAY,           None,        "keep the opinion",                                EXT + "several reviewers"),
    row(S.review,      E.code_reviews_complete,     otherwise,       S.review,       None,        "lay the review down",                             "§3.6", sets={"step": "record"}),
    row(S.review,      E.review_passes,             otherwise,       S.test,         None,        "review passes",                                   "§3.6", sets=WORK, waivable=HAS_CHANGE),
    row(S.review,      E.needs_code_changes,        otherwise,       S.codegen,      REGRESSIONS, "needs code changes",                              "§3.7", sets=WORK),
    row(S.review,      E.needs_code_changes,        otherwise,       S.review,       None,        "too often: ask a person",                         PARK, sets=STOP),
    row(S.review,      E.plan_flawed,               otherwise,       S.planning,     REGRESSIONS, "plan flawed",                                     "§3.7", sets=WORK),
    row(S.review,      E.plan_flawed,               otherwise,       S.review,       None,        "too often: ask a person",                         PARK, sets=STOP),
    # test
    row(S.test,        E.suites_run,                SEEN_BY_PERSON,  S.test,         None,        "write the report: no person has seen these results", "§3.8", sets={"step": "record", "evidence": "touched"}),
    row(S.test,        E.suites_run,                otherwise,       S.test,         None,        "lay the report down",                             "§3.8", sets={"step": "record"}),
    row(S.test,        E.evidence_questioned,       otherwise,       S.test,         None,        "ask a person, bound to this tree",                EXT + "changed test infrastructure and doubtful results open a gate", sets={"step": "evidence"}),
    row(S.test,        E.evidence_accepted,         otherwise,       S.test,         None,        "look at what was recorded of this tree",          EXT + "changed test infrastructure and doubtful results open a gate", sets={"step": "confirmed", "evidence": "accepted"}),
    row(S.test,        E.evidence_declined,         otherwise,       S.codegen,      None,        "a person sends the change back",                  EXT + "changed test infrastructure and doubtful results open a gate", sets={"step": "work"}),
    row(S.test,        E.tests_complete,            otherwise,       S.accept,       None,        "tests complete",                                  "§3.8", sets={"step": "base"}, waivable=HAS_SEEN),
    row(S.test,        E.test_failures,             otherwise,       S.codegen,      REGRESSIONS, "test failures",                                   "§3.9", sets={"step": "work"}),
    row(S.test,        E.test_failures,             otherwise,       S.test,         None,        "too often: ask a person",                         PARK, sets=STOP),
    # accept
    row(S.accept,      E.base_unmoved,              otherwise,       S.accept,       None,        "ask for the decision",                            EXT + "what is accepted stands on what it goes to", sets={"step": "decide"}),
    row(S.accept,      E.base_moved,                otherwise,       S.review,       MOVES,       "unclear / needs review: another tree",            "§2 accept → review; a changed tree is reviewed and tested again", sets={"decision": "none", "step": "work", "workspace": "moved"}),
    row(S.accept,      E.base_moved,                otherwise,       S.review,       None,        "the branch keeps moving: ask a person",           PARK, sets={"decision": "none", "step": "broken", "workspace": "moved"}),
    row(S.accept,      E.base_conflicts,            otherwise,       S.codegen,      REGRESSIONS, "requires further changes: it conflicts",          "§2 accept → codegen; a changed tree is reviewed and tested again", sets={"decision": "none", "step": "work", "workspace": "moved"}),
    row(S.accept,      E.base_conflicts,            otherwise,       S.codegen,      None,        "the branch keeps moving: ask a person",           PARK, sets={"decision": "none", "step": "broken", "workspace": "moved"}),
    row(S.accept,      E.base_rewritten,            otherwise,       S.accept,       None,        "show what would come back: ask a person",         EXT + "what the person has dropped does not come back", sets={"decision": "none", "step": "rewritten"}),
    row(S.accept,      E.rewrite_accepted,          otherwise,       S.accept,       None,        "put the change alone on the rewritten branch",    EXT + "what the person has dropped does not come back", sets={"step": "base"}),
    row(S.accept,      E.rewrite_declined,          otherwise,       S.accept,       None,        "leave the branch alone",                          EXT + "what the person has dropped does not come back", sets={"step": "broken"}),
    row(S.accept,      E.base_absorbed,             otherwise,       S.accept,       None,        "no change is left: ask a person",                 EXT + "an empty change is never accepted", sets={"decision": "none", "step": "broken"}),
    row(S.accept,      E.delivery_lost,             otherwise,       S.accept,       REGRESSIONS, "look where it would go",                          EXT + "what was delivered can be lost", sets={"decision": "none", "step": "base"}),
    row(S.accept,      E.delivery_lost,             otherwise,       S.accept,       None,        "it keeps getting lost: ask a person",             PARK, sets={"decision": "none", "step": "broken"}),
    row(S.accept,      E.base_unseen,               otherwise,       S.accept,       None,        "say why: ask a person",                           EXT + "what is accepted stands on what it goes to", sets={"decision": "none", "step": "broken"}),
    *(row(S.accept,    E.decision_given,            _person_choice_guard(choice), S.accept,      None,        "lay the decision down",                           "§3.10, §3.11", sets={"step": "record", "decision": decision}) for choice, decision in DECISIONS.items()),
    row(S.accept,      E.decision_given,            otherwise,       S.accept,       None,        "no person decided: ask again",                       EXT + "no answer is never an approval", sets={"step": "broken"}),
    row(S.accept,      E.decision_recorded,         otherwise,       S.accept,       None,        "hand the change over",                            "§3.10", sets={"step": "deliver"}),
    row(S.accept,      E.accepted,                  otherwise,       S.done,         None,        "accepted",                                        "§3.10", sets={"outcome": "accepted", "delivered": "yes", "decision": "none"}),
    row(S.accept,      E.delivery_failed,           otherwise,       S.accept,       None,        "note why, look where the branch is now",          EXT + "a branch that moved while the decision was made", sets={"step": "base", "decision": "none"}),
    row(S.accept,      E.requires_further_changes,  otherwise,       S.codegen,      None,        "requires further changes",                        "§2", sets={"step": "work", "decision": "none"}),
    row(S.accept,      E.needs_review,              otherwise,       S.review,       None,        "unclear / needs review",                          "§2", sets={"step": "work", "decision": "none"}),
    row(S.accept,      E.upstream_problem,          otherwise,       S.planning,     None,        "upstream problem",                                "§2", sets={"step": "work", "decision": "none"}),
    row(S.accept,      E.revert_requested,          WAS_DELIVERED,   S.revert,       None,        "revert requested",                                "§3.11", sets={"step": "work", "decision": "none"}),
    row(S.accept,      E.revert_requested,          otherwise,       S.revert,       None,        "revert requested: nothing was delivered",         "§3.11", sets={"step": "record", "decision": "none"}),
    # revert
    row(S.revert,      E.change_reverted,           otherwise,       S.revert,       None,        "lay the record down",                             "§3.12", sets={"step": "record", "delivered": "reverted", "workspace": "moved"}),
    row(S.revert,      E.revert_conflicted,         otherwise,       S.revert,       None,        "lay down why it could not be",                    EXT + "a conflicted revert returns to accept", sets={"step": "record"}),
    row(S.revert,      E.revert_recorded,           otherwise,       S.done,         None,        "reverted",                                        "§3.12", sets={"outcome": "reverted"}),
    row(S.revert,      E.revert_refused,            otherwise,       S.accept,       None,        "it conflicts: decide otherwise",                  EXT + "a conflicted revert returns to accept", sets={"step": "decide"}),
    # in every phase
    row(S.codegen,     E.documents_recorded,        UNTOUCHED,       S.codegen,      None,        "look at what is on disk: the tests are as they were", DISK, sets={"step": "inspect", "evidence": "plain"}),
    *document_rows(PHASES, PHASES[:5], DOCUMENT_EVENTS),
    *(row(phase, E.agent_failed, otherwise, phase, None,    "name what broke: ask a person",                   EXT + "an agent that breaks costs no phase", sets=BROKEN) for phase in (S.planning, S.plan_review, S.codegen, S.review)),
    row(S.planning,    E.adoption_requested,        otherwise,       S.planning,     None,        "take the plan over as it is",                     DISK, sets={"step": "adopt"}),
    *(row(phase,       E.retry_requested,           AT_RECORD,       phase,          None,        "lay it down again",                               PARK, sets={"step": "record"}) for phase in PHASES[:6]),
    row(S.revert,      E.retry_requested,           otherwise,       S.revert,       None,        "lay the record down again",                       PARK, sets={"step": "record"}),
    *(row(phase,       E.retry_requested,           AT_WORK,         phase,          None,        "do the work again",                               PARK, sets=WORK) for phase in PHASES[:4]),
    row(S.accept,      E.retry_requested,           otherwise,       S.accept,       None,        "look where the change would go again",            PARK, sets={"step": "base", "decision": "none"}),
    row(S.test,        E.retry_requested,           otherwise,       S.test,         None,        "run the suites again",                            PARK, sets=WORK),
    *(row(phase,       E.retry_requested,           otherwise,       phase,          None,        "look again",                                      PARK, sets={"step": "confirmed"}) for phase in PHASES[:4]),
    row(S.planning,    E.words_given,               AWAITS,          STAY,           None,        "keep it for the next agent",                  FIRST),
    row(S.planning,    E.words_given,               otherwise,       S.planning,     None,        "re-plan (redo) with what was said",               "§2 planning → planning", sets=WORK),
    row(PHASES[1:],    E.words_given,               otherwise,       STAY,           None,        "keep it for the next agent",                  EXT + "people may speak at any time"),
    # redo
    row(S.planning,    E.redo_planning,             AWAITS,          S.planning,     None,        "look at the others first",                        FIRST, sets=AROUND),
    row((S.planning, S.plan_review, S.codegen, S.review, S.accept), E.redo_planning, otherwise, S.planning, None, "re-plan (redo)",              REDO, sets=AGAIN_FROM),
    row((S.plan_review, S.codegen), E.redo_plan_review, otherwise,   S.plan_review,  None,        "review the plan again",                           REDO, sets=AGAIN_FROM),
    row((S.codegen, S.review, S.test, S.accept), E.redo_codegen, otherwise, S.codegen, None,      "re-run codegen",                                  REDO, sets=AGAIN_FROM),
    row((S.review, S.accept), E.redo_review,        otherwise,       S.review,       None,        "review again",                                    REDO, sets=AGAIN_FROM),
    row(S.test,        E.redo_test,                 otherwise,       S.test,         None,        "test again",                                      REDO, sets=AGAIN_FROM),
    row(S.done,        E.redo_planning,             otherwise,       S.planning,     None,        "reopen with another plan",                        REDO, sets=REOPENED),
    row(S.done,        E.redo_codegen,              otherwise,       S.codegen,      None,        "reopen with another change",                      REDO, sets=REOPENED),
    row(S.done,        E.redo_accept,               WAS_DELIVERED,   S.accept,       None,        "reopen the decision",                             REDO, sets={**REOPENED, "step": "decide"}),
)
# fmt: on

# ── Namings: how facts become events ────────────────────────────────────────────────────────────────────────────────

LOOKED = ((DAMAGE_FOUND, E.documents_damaged),)
SEEN = (*LOOKED, (UNSEEN, E.phase_ready))

# fmt: off
NAMES = (
    naming(LOOK_AT_OTHERS, (ALL_THERE, E.others_there), (otherwise, E.others_missing)),
    naming(OTHERS, (SAYS_BEGIN, E.begin_requested), (otherwise, E.another_look_requested)),
    naming(DRAFT, (BROKE, E.agent_failed), (SHARED_WORK, E.plan_drafted), (DRAFTED_ALONE, E.planning_converged), (otherwise, E.agent_failed)),
    naming(COMMENT, (COMMENT_BROKE, E.agent_failed), (LAST_ASKS, E.planning_converged), (LAST_CONCERNED, E.round_needed), (LAST_COMMENT, E.planning_converged), (otherwise, E.plan_commented)),
    naming(QUESTIONS, (otherwise, E.questions_answered)),
    naming(INSPECT_PLAN, *LOOKED, (QUESTIONS_LEFT, E.questions_open), (NO_SCOPE, E.scope_missing), (UNSEEN, E.phase_ready), (PLANNED, E.planning_succeeded), (otherwise, E.documents_damaged)),
    naming(REVIEW_PLAN, (PLAN_OPINION_BROKE, E.agent_failed), (LAST_PLAN_OPINION, E.plan_reviews_complete), (otherwise, E.plan_reviewed)),
    naming(INSPECT_PLAN_REVIEW, *SEEN, (PLAN_BLOCKED, E.review_blocked), (PLAN_OK, E.review_ok), (otherwise, E.review_needs_changes)),
    *base_namings(TREE_READY, workspace_ready=E.workspace_ready, setup_failed=E.setup_failed, check_cannot_start=E.check_cannot_start, base_not_green=E.base_not_green, baseline_recorded=E.baseline_recorded),
    naming(CODE, (BROKE, E.agent_failed), (FITS, E.code_written), (otherwise, E.agent_failed)),
    naming(CREW, (CREW_APPROVED, E.crew_done), (otherwise, E.crew_failed)),
    naming(INSPECT_CODE, *SEEN, (LEAVES_BOUNDS, E.bounds_left), (SAYS_UNCLEAR, E.plan_unclear), (SAYS_MISMATCH, E.scope_mismatch), (LEAVES_PLAN, E.scope_mismatch), (EMPTY, E.codegen_empty), (BUILT, E.codegen_completed), (otherwise, E.documents_damaged)),
    naming(REVIEW_CODE, (CODE_OPINION_BROKE, E.agent_failed), (LAST_CODE_OPINION, E.code_reviews_complete), (otherwise, E.code_reviewed)),
    naming(INSPECT_REVIEW, *SEEN, (FLAWED, E.plan_flawed), (PASSES, E.review_passes), (otherwise, E.needs_code_changes)),
    naming(RUN_SUITES, (otherwise, E.suites_run)),
    naming(INSPECT_TESTS, *SEEN, (UNPROVEN, E.test_failures), (TOUCHED, E.evidence_questioned), (DOUBTED, E.evidence_questioned), (PROVEN, E.tests_complete), (otherwise, E.test_failures)),
    naming(EVIDENCE, (ACCEPTS, E.evidence_accepted), (otherwise, E.evidence_declined)),
    naming(LOOK_AT_BASE, (LOST, E.delivery_lost), (LOST_COMMITS, E.base_rewritten), (ABSORBED, E.base_absorbed), (CONFLICTS, E.base_conflicts), (MOVED, E.base_moved), (STANDS, E.base_unmoved), (otherwise, E.base_unseen), version=2),
    naming(REWRITE, (SAYS_NEXT, E.rewrite_accepted), (otherwise, E.rewrite_declined)),
    naming(DECIDE, (otherwise, E.decision_given)),
    naming(INSPECT_DECISION, *LOOKED, (_recorded_decision_guard("accepted"), E.decision_recorded), (_recorded_decision_guard("changes_requested"), E.requires_further_changes), (_recorded_decision_guard("review_requested"), E.needs_review), (_recorded_decision_guard("replan_requested"), E.upstream_problem), (_recorded_decision_guard("revert_requested"), E.revert_requested), (otherwise, E.documents_damaged)),
    naming(DELIVER, (DONE, E.accepted), (otherwise, E.delivery_failed)),
    naming(TAKE_BACK, (TAKEN_BACK, E.change_reverted), (otherwise, E.revert_conflicted)),
    naming(INSPECT_REVERT, *LOOKED, (REVERT_DONE, E.revert_recorded), (otherwise, E.revert_refused)),
    naming(RECORD, (LAID_DOWN, E.documents_recorded), (otherwise, E.recording_failed)),
    naming(RESTORE, (LAID_DOWN, E.documents_recorded), (otherwise, E.repair_failed)),
    naming(ADOPT, (LAID_DOWN, E.documents_recorded), (otherwise, E.repair_failed)),
    naming(NEXT, (SAYS_NEXT, E.next_requested), (otherwise, E.rework_requested)),
    naming(DAMAGED_PLAN, (SAYS_ADOPT, E.adoption_requested), (otherwise, E.restore_requested)),
    naming(DAMAGE, (otherwise, E.restore_requested)),
    naming(AGAIN, (otherwise, E.retry_requested)),
)
# fmt: on
# fmt: off
RAISED = {folds.fold_task_baseline: 2, folds.fold_suite_results: 2, folds.fold_test_failures: 2}  # versions of folds that were changed
FOLDS = tuple(fold(e, change, version=RAISED.get(change, 1)) for change, events in (
    (folds.fold_person_words, (E.words_given,)),
    (folds.fold_prerequisites_present, (E.others_there,)),
    (folds.fold_prerequisites_missing, (E.others_missing,)),
    (folds.fold_replan_request, (E.redo_planning,)),
    (folds.fold_plan_draft, (E.plan_drafted,)),
    (folds.fold_plan_comment, (E.plan_commented,)),
    (folds.fold_planning_round, (E.round_needed,)),
    (folds.fold_planning_converged, (E.planning_converged,)),
    (folds.fold_inspection, (E.questions_open, E.evidence_questioned, E.phase_ready)),
    (folds.fold_plan_answers, (E.questions_answered,)),
    (folds.fold_scope_missing, (E.scope_missing,)),
    (folds.fold_phase_entry, (E.planning_succeeded, E.review_ok, E.codegen_completed, E.review_passes, E.tests_complete, E.requires_further_changes, E.needs_review, E.upstream_problem)),
    (folds.fold_plan_opinion, (E.plan_reviewed, E.plan_reviews_complete)),
    (folds.fold_code_opinion, (E.code_reviewed, E.code_reviews_complete)),
    (folds.fold_plan_rejection, (E.review_needs_changes, E.review_blocked)),
    (fold_tree_ready, (E.workspace_ready,)),
    (fold_failure_detail, (E.setup_failed,)),
    (folds.fold_task_baseline, (E.baseline_recorded,)),
    (fold_base_failure, (E.check_cannot_start, E.base_not_green)),
    (folds.fold_code_change, (E.code_written,)),
    (folds.fold_crew_change, (E.crew_done,)),
    (folds.fold_empty_change, (E.codegen_empty,)),
    (folds.fold_scope_mismatch, (E.scope_mismatch,)),
    (folds.fold_bounds_violation, (E.bounds_left,)),
    (folds.fold_unclear_plan, (E.plan_unclear,)),
    (folds.fold_code_rejection, (E.needs_code_changes,)),
    (folds.fold_flawed_plan, (E.plan_flawed,)),
    (folds.fold_suite_results, (E.suites_run,)),
    (folds.fold_test_failures, (E.test_failures,)),
    (fold_evidence_accepted, (E.evidence_accepted,)),
    (folds.fold_task_evidence_declined, (E.evidence_declined,)),
    (delivery_folds.fold_base_unmoved, (E.base_unmoved,)),
    (delivery_folds.fold_task_rebase, (E.base_moved,)),
    (delivery_folds.fold_base_conflict, (E.base_conflicts,)),
    (delivery_folds.fold_base_unseen, (E.base_unseen, E.base_absorbed)),
    (delivery_folds.fold_task_base_rewritten, (E.base_rewritten,)),
    (delivery_folds.fold_delivery_lost, (E.delivery_lost,)),
    (delivery_folds.fold_person_decision, (E.decision_given,)),
    (delivery_folds.fold_task_delivery, (E.accepted,)),
    (fold_failure_detail, (E.delivery_failed,)),
    (delivery_folds.fold_revert_decision, (E.revert_requested,)),
    (delivery_folds.fold_task_revert, (E.change_reverted,)),
    (delivery_folds.fold_revert_conflict, (E.revert_conflicted,)),
    (delivery_folds.fold_revert_refusal, (E.revert_refused,)),
    (folds.fold_recorded_documents, (E.documents_recorded,)),
    (folds.fold_recording_failure, (E.recording_failed,)),
    (folds.fold_repair_failure, (E.repair_failed,)),
    (folds.fold_agent_failure, (E.agent_failed,)),
    (folds.fold_next_request, (E.next_requested,)),
    (folds.fold_rework_request, (E.rework_requested,)),
    (folds.fold_document_damage, (E.documents_damaged,)),
    (folds.fold_person_choice, (E.begin_requested, E.another_look_requested, E.restore_requested, E.adoption_requested, E.retry_requested)),
    (folds.fold_redo_request, (E.redo_plan_review, E.redo_codegen, E.redo_review, E.redo_test, E.redo_accept)),
) for e in events)
# fmt: on
LAWS: tuple[Law, ...] = (
    Only("outcome", "accepted", by=(E.accepted,)),
    Only("outcome", "reverted", by=(E.revert_recorded,)),
    Only("decision", "accepted", by=(E.decision_given,)),
    Only("delivered", "yes", by=(E.accepted,)),
    Only("evidence", "accepted", by=(E.evidence_accepted,)),
    Never(S.accept, when=TOUCHED),
    *(Never(phase, when=AWAITS) for phase in (*PHASES[1:], S.done)),
    *(Never(phase, when=UNCHECKED) for phase in PHASES[1:]),
    Never(S.test, when=UNSEEN_RESULTS),
    Before(S.plan_review, then=S.codegen),
    Before(S.codegen, then=S.review),
    Before(S.review, then=S.test),
    Before(S.test, then=S.accept),
    Before(S.accept, then=S.done),
    Possible(S.done, when=ACCEPTED),
    Possible(S.done, when=REVERTED),
)

MACHINE = machine(
    "task",
    "A task's life over its files: planned, reviewed, built, reviewed, tested, accepted, reverted.",
    states=S,
    events=E,
    rows=TABLE,
    context=ctx.TaskContext,
    context_version=2,
    upcasts={1: ctx.upcast_checked_base},
    namings=NAMES,
    folds=FOLDS,
    laws=LAWS,
    constants={
        "codegen": ("coder", "roundtable"),
    },
    memory={
        "step": (
            "work", "others", "waiting", "comment", "questions", "record", "inspect", "ready", "confirmed", "damaged", "restore", "adopt", "stuck", "broken", "unwritten",
            "evidence", "base", "rewritten", "decide", "deliver",
        ),
        "others": ("none", "awaited"),
        "workspace": ("unprepared", "ready", "measured", "moved"),
        "evidence": ("plain", "touched", "accepted"),
        "decision": ("none", *DECISIONS.values()),
        "delivered": ("no", "yes", "reverted"),
        "outcome": (None, "accepted", "reverted"),
    },
    successes=("accepted",),
    roles=(),
    begin=lambda request: (E.task_received, *ctx.begin_task(request)),
    begin_version=2,
)  # fmt: skip
