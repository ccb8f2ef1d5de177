"""The phases of a task: the work of each, and the step on which it is done.

What leads from one to another is in `table.py`.
"""

from steersman.contracts.facts import AgentFacts, BaseFacts, CheckFacts, DeliveryFacts
from steersman.kernel.definition import Choice, Guard, State, child, do, effect, gate, resting, state
from steersman.machines.shared.tree_fragments import (
    EVIDENCE,
    MEASURE,
    MEASURE_AGAIN,
    PREPARE,
    REWRITE,
    tree_baseline_input,
    tree_setup_input,
)
from steersman.machines.task import work
from steersman.machines.task.facts import InspectFacts, PrerequisiteFacts, RecordFacts, RevertFacts

# ── Guards that the work of states depends on ───────────────────────────────────────────────────────────────────────


def step_guard(name: str, sentence: str, *steps: str) -> Guard:
    """A guard that holds on some steps of a phase."""
    return Guard(name, sentence, lambda c, _: c.step in steps, reads=("step",))


# fmt: off
LOOKS_AROUND = step_guard("looks_around", "the tasks that come first are to be looked at", "others")
WAITS = step_guard("waits", "a task that comes first is not there yet", "waiting")
WORKS = step_guard("works", "the phase's own work is to be done", "work")
COMMENTS = step_guard("comments", "the other planners have to look at the draft", "comment")
ASKS = step_guard("asks", "a person has to answer", "questions")
RECORDS = step_guard("records", "the phase's documents are to be written", "record")
INSPECTS = step_guard("inspects", "every document is to be looked at on disk", "inspect", "confirmed")
READY = step_guard("ready", "the phase is over and waits for its person", "ready")
DAMAGED = step_guard("damaged_step", "a document is not what was recorded", "damaged")
RESTORES = step_guard("restores", "recorded documents are to be restored", "restore")
ADOPTS = step_guard("adopts", "a plan changed by hand is to be taken over", "adopt")
STUCK = step_guard("stuck", "it cannot go on without a person", "stuck", "broken", "unwritten")
EVIDENCE_ASKED = step_guard("evidence_asked", "a person has to say what the results are worth", "evidence")
BASE_ASKED = step_guard("base_asked", "where the change would go is to be looked at", "base")
REWRITTEN_ASKED = step_guard("rewritten_asked", "the branch was rewritten, and no person has said that the change may go there", "rewritten")
DECIDES = step_guard("decides", "a person decides", "decide")
DELIVERS = step_guard("delivers", "an accepted change is delivered", "deliver")
DRAFTS = Guard("drafts", "the base tree was checked, and the lead planner drafts", lambda c, _: c.step == "work" and c.workspace == "measured", reads=("step", "workspace"))
PREPARES = Guard("prepares", "the working tree is not ready", lambda c, _: c.step == "work" and c.workspace == "unprepared", reads=("step", "workspace"))
MEASURES = Guard("measures", "the base tree was not checked yet", lambda c, _: c.step == "work" and c.workspace == "ready", reads=("step", "workspace"))
MEASURES_AGAIN = Guard("measures_again", "the base tree is another one than was checked", lambda c, _: c.step == "work" and c.workspace == "moved", reads=("step", "workspace"))
CODES = Guard("codes", "a coder works alone", lambda c, _: c.step == "work" and c.workspace == "measured" and c.codegen == "coder", reads=("step", "workspace", "codegen"))
GOES_ROUND = Guard("goes_round", "a child run builds the change", lambda c, _: c.step == "work" and c.workspace == "measured" and c.codegen == "roundtable", reads=("step", "workspace", "codegen"))
RUNS = Guard("runs", "the base tree was checked, and the suites were not run yet", lambda c, _: c.step == "work" and c.workspace == "measured", reads=("step", "workspace"))
TAKES_BACK = Guard("takes_back", "a delivered change is to be reverted", lambda c, _: c.step == "work" and c.delivered == "yes", reads=("step", "delivered"))
# fmt: on

# ── Jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

LOOK_AT_OTHERS = effect("look_at_others", PrerequisiteFacts, "task_others")
OTHERS = gate(
    "others",
    asks="Another task comes first, and its change is not in the branch. Look again, or begin without it?",
    choices={
        "retry": Choice("next", "look at the others again", "tasks next {run}"),
        "begin": Choice(
            "begin",
            "begin without them, with a reason",
            'tasks begin {run} --reason "why"',
            required="a task that begins without the others needs a reason: say why it may",
        ),
    },
)
DRAFT = effect("draft", AgentFacts, "agent")
COMMENT = effect("comment", AgentFacts, "agent")
QUESTIONS = gate(
    "questions",
    asks="The plan asks first. What is the answer?",
    choices={"answer": Choice("answer", "answer what the plan asks", "tasks answer {run}")},
)
REVIEW_PLAN = effect("review_plan", AgentFacts, "agent")
CODE = effect("code", AgentFacts, "agent", edits=True)
CREW = child("crew")
REVIEW_CODE = effect("review_code", AgentFacts, "agent")
RUN_SUITES = effect("run_suites", CheckFacts, "checks")
LOOK_AT_BASE = effect("look_at_base", BaseFacts, "task_base")
DECIDE = gate(
    "decide",
    asks="Shall this change be accepted?",
    choices={
        "approve": Choice("accept", "accept exactly this change", "tasks accept {run}", shows_change=True),
        "rework": Choice("codegen", "have it changed further", 'tasks redo {run} codegen "what to change"'),
        "review": Choice("review code", "have it reviewed again", "tasks redo {run} review"),
        "replan": Choice("plan", "the plan is the problem", "tasks redo {run} planning"),
        "revert": Choice("revert", "take it back", "tasks revert {run}", ends=True),
    },
)
DELIVER = effect("deliver", DeliveryFacts, "task_deliver")
TAKE_BACK = effect("take_back", RevertFacts, "task_revert")

RECORD = effect("record", RecordFacts, "task_record")
RESTORE = effect("restore", RecordFacts, "task_restore")
ADOPT = effect("adopt", RecordFacts, "task_adopt")
NEXT = gate(
    "next",
    yields=True,
    asks="The phase is over. Shall it go on?",
    choices={"approve": Choice("next", "go on", "tasks next {run}"), "rework": Choice("", "")},
)
RESTORE_CHOICE = Choice("restore", "put the recorded documents back", "tasks restore {run}")
DAMAGE = gate(
    "damage",
    asks="What is on disk is not what was recorded. Put it back?",
    choices={"restore": RESTORE_CHOICE},
)
DAMAGED_PLAN = gate(
    "damaged_plan",
    asks="The plan on disk is not what was recorded. Put it back, or take it over?",
    choices={
        "restore": RESTORE_CHOICE,
        "adopt": Choice("adopt", "take the plan over as it is on disk", "tasks adopt {run}"),
    },
)
AGAIN = gate(
    "again",
    yields=True,
    asks="It cannot go on by itself. Try again?",
    choices={"retry": Choice("retry", "try again", "tasks retry {run}")},
)

INSPECT_PLAN = effect("inspect_plan", InspectFacts, "task_inspect")
INSPECT_PLAN_REVIEW = effect("inspect_plan_review", InspectFacts, "task_inspect")
INSPECT_CODE = effect("inspect_code", InspectFacts, "task_inspect")
INSPECT_REVIEW = effect("inspect_review", InspectFacts, "task_inspect")
INSPECT_TESTS = effect("inspect_tests", InspectFacts, "task_inspect")
INSPECT_DECISION = effect("inspect_decision", InspectFacts, "task_inspect")
INSPECT_REVERT = effect("inspect_revert", InspectFacts, "task_inspect")

SHARED_PHASE_WORK = (
    do(RESTORE, work.document_restore_input, when=RESTORES),
    do(NEXT, work.next_phase_gate_input, when=READY),
    do(AGAIN, work.retry_gate_input, when=STUCK),
)


class S(State):
    planning = state(
        "The base tree is checked; then planners draft, question and settle a plan.",
        do(LOOK_AT_OTHERS, work.prerequisites_input, when=LOOKS_AROUND),
        do(OTHERS, work.prerequisites_gate_input, when=WAITS),
        do(PREPARE, tree_setup_input, when=PREPARES),
        do(MEASURE, tree_baseline_input, when=MEASURES),
        do(MEASURE_AGAIN, tree_baseline_input, when=MEASURES_AGAIN),
        do(DRAFT, work.plan_draft_input, when=DRAFTS, version=2),
        do(COMMENT, each=work.plan_comment_inputs, when=COMMENTS),
        do(QUESTIONS, work.plan_questions_gate_input, when=ASKS),
        do(INSPECT_PLAN, work.plan_inspection_input, when=INSPECTS),
        do(ADOPT, work.plan_adoption_input, when=ADOPTS),
        do(DAMAGED_PLAN, work.damage_gate_input, when=DAMAGED),
        do(RECORD, work.plan_record_input, when=RECORDS),
        *SHARED_PHASE_WORK,
        initial=True,
    )
    plan_review = state(
        "Reviewers judge the plan.",
        do(REVIEW_PLAN, each=work.plan_review_inputs, when=WORKS),
        do(INSPECT_PLAN_REVIEW, work.plan_review_inspection_input, when=INSPECTS),
        do(DAMAGE, work.damage_gate_input, when=DAMAGED),
        do(RECORD, work.plan_review_record_input, when=RECORDS),
        *SHARED_PHASE_WORK,
    )
    codegen = state(
        "The plan becomes code in a working tree of its own.",
        do(MEASURE_AGAIN, tree_baseline_input, when=MEASURES_AGAIN),
        do(CODE, work.task_code_input, when=CODES),
        do(CREW, work.crew_run_input, when=GOES_ROUND, version=2),
        do(INSPECT_CODE, work.code_inspection_input, when=INSPECTS),
        do(DAMAGE, work.damage_gate_input, when=DAMAGED),
        do(RECORD, work.code_record_input, when=RECORDS),
        *SHARED_PHASE_WORK,
    )
    review = state(
        "Reviewers judge the change.",
        do(REVIEW_CODE, each=work.code_review_inputs, when=WORKS),
        do(INSPECT_REVIEW, work.code_review_inspection_input, when=INSPECTS),
        do(DAMAGE, work.damage_gate_input, when=DAMAGED),
        do(RECORD, work.code_review_record_input, when=RECORDS),
        *SHARED_PHASE_WORK,
    )
    test = state(
        "Suites, linters and static analysis run on the recorded tree.",
        do(MEASURE_AGAIN, tree_baseline_input, when=MEASURES_AGAIN),
        do(RUN_SUITES, work.suite_run_input, when=RUNS, version=2),
        do(EVIDENCE, work.task_evidence_gate_input, when=EVIDENCE_ASKED),
        do(INSPECT_TESTS, work.test_inspection_input, when=INSPECTS),
        do(DAMAGE, work.damage_gate_input, when=DAMAGED),
        do(RECORD, work.test_record_input, when=RECORDS),
        *SHARED_PHASE_WORK,
    )
    accept = state(
        "A person sees all of it and decides.",
        do(LOOK_AT_BASE, work.task_base_input, when=BASE_ASKED, version=2),
        do(REWRITE, work.task_rewrite_gate_input, when=REWRITTEN_ASKED),
        do(DECIDE, work.decision_gate_input, when=DECIDES),
        do(INSPECT_DECISION, work.decision_inspection_input, when=INSPECTS),
        do(DELIVER, work.task_delivery_input, when=DELIVERS),
        do(DAMAGE, work.damage_gate_input, when=DAMAGED),
        do(RECORD, work.decision_record_input, when=RECORDS),
        *SHARED_PHASE_WORK,
    )
    revert = state(
        "A delivered change is reverted.",
        do(TAKE_BACK, work.task_revert_input, when=TAKES_BACK),
        do(INSPECT_REVERT, work.revert_inspection_input, when=INSPECTS),
        do(DAMAGE, work.damage_gate_input, when=DAMAGED),
        do(RECORD, work.revert_record_input, when=RECORDS),
        *SHARED_PHASE_WORK,
    )
    done = resting("The task has its outcome.")


PHASES = (S.planning, S.plan_review, S.codegen, S.review, S.test, S.accept, S.revert)
