"""The phases of a task: the work of each, and on which step it is done.

What leads from one to another is in `table.py`. **Invariant:** a phase's work starts however the phase was entered.
"""

from steersman.contracts.facts import AgentFacts, BaselineFacts, CheckFacts, DeliveryFacts, SetupFacts
from steersman.contracts.task.facts import BaseFacts, InspectFacts, OthersFacts, RecordFacts, RevertFacts
from steersman.kernel.definition import Guard, State, child, do, effect, gate, resting, state
from steersman.machines.task import work

# ── Guards that the work of states depends on ───────────────────────────────────────────────────────────────────────


def at(name: str, sentence: str, *steps: str) -> Guard:
    """A guard that holds on some steps of a phase."""
    return Guard(name, sentence, lambda c, _: c.step in steps, reads=("step",))


# fmt: off
LOOKS_AROUND = at("looks_around", "the tasks that come first are to be looked at", "others")
WAITS = at("waits", "a task that comes first is not there yet", "waiting")
WORKS = at("works", "the phase's own work is to be done", "work")
COMMENTS = at("comments", "the other planners have to look at the draft", "comment")
ASKS = at("asks", "a person has to answer", "questions")
RECORDS = at("records", "the phase's documents are to be laid down", "record")
INSPECTS = at("inspects", "every document is to be looked at on disk", "inspect", "confirmed")
READY = at("ready", "the phase is over and waits for its person", "ready")
DAMAGED = at("damaged_step", "a document is not what was recorded", "damaged")
RESTORES = at("restores", "recorded documents are to be put back", "restore")
ADOPTS = at("adopts", "a plan changed by hand is to be taken over", "adopt")
STUCK = at("stuck", "it cannot go on without a person", "stuck", "broken", "unwritten")
EVIDENCE_ASKED = at("evidence_asked", "a person has to say what the results are worth", "evidence")
BASE_ASKED = at("base_asked", "where the change would go is to be looked at", "base")
REWRITTEN_ASKED = at("rewritten_asked", "the branch was rewritten, and nobody has said that the change may go there", "rewritten")
DECIDES = at("decides", "a person decides", "decide")
DELIVERS = at("delivers", "an accepted change is handed over", "deliver")
DRAFTS = Guard("drafts", "the base tree was checked, and the lead planner drafts", lambda c, _: c.step == "work" and c.workspace == "measured", reads=("step", "workspace"))
PREPARES = Guard("prepares", "the working tree is not ready", lambda c, _: c.step == "work" and c.workspace == "unprepared", reads=("step", "workspace"))
MEASURES = Guard("measures", "the base tree was not checked yet", lambda c, _: c.step == "work" and c.workspace == "ready", reads=("step", "workspace"))
MEASURES_AGAIN = Guard("measures_again", "the base tree is another one than was checked", lambda c, _: c.step == "work" and c.workspace == "moved", reads=("step", "workspace"))
CODES = Guard("codes", "a coder works alone", lambda c, _: c.step == "work" and c.workspace == "measured" and c.codegen == "coder", reads=("step", "workspace", "codegen"))
GOES_ROUND = Guard("goes_round", "a crew goes round", lambda c, _: c.step == "work" and c.workspace == "measured" and c.codegen == "roundtable", reads=("step", "workspace", "codegen"))
RUNS = Guard("runs", "the base tree was checked, and the suites were not run yet", lambda c, _: c.step == "work" and c.workspace == "measured", reads=("step", "workspace"))
TAKES_BACK = Guard("takes_back", "what was delivered is to be taken back", lambda c, _: c.step == "work" and c.delivered == "yes", reads=("step", "delivered"))
# fmt: on

# ── Jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

LOOK_AT_OTHERS = effect("look_at_others", OthersFacts, "task_others")
OTHERS = gate("others")
DRAFT = effect("draft", AgentFacts, "agent")
COMMENT = effect("comment", AgentFacts, "agent")
QUESTIONS = gate("questions")
REVIEW_PLAN = effect("review_plan", AgentFacts, "agent")
PREPARE = effect("prepare", SetupFacts, "setup")
MEASURE = effect("measure", BaselineFacts, "baseline")
MEASURE_AGAIN = effect("measure_again", BaselineFacts, "baseline")
CODE = effect("code", AgentFacts, "agent", edits=True)
CREW = child("crew")
REVIEW_CODE = effect("review_code", AgentFacts, "agent")
RUN_SUITES = effect("run_suites", CheckFacts, "checks")
EVIDENCE = gate("evidence")
LOOK_AT_BASE = effect("look_at_base", BaseFacts, "task_base")
REWRITE = gate("rewrite")
DECIDE = gate("decide")
DELIVER = effect("deliver", DeliveryFacts, "task_deliver")
TAKE_BACK = effect("take_back", RevertFacts, "task_revert")

RECORD = effect("record", RecordFacts, "task_record")
RESTORE = effect("restore", RecordFacts, "task_restore")
ADOPT = effect("adopt", RecordFacts, "task_adopt")
NEXT = gate("next", yields=True)
DAMAGE = gate("damage")
DAMAGED_PLAN = gate("damaged_plan")
AGAIN = gate("again", yields=True)

INSPECT_PLAN = effect("inspect_plan", InspectFacts, "task_inspect")
INSPECT_PLAN_REVIEW = effect("inspect_plan_review", InspectFacts, "task_inspect")
INSPECT_CODE = effect("inspect_code", InspectFacts, "task_inspect")
INSPECT_REVIEW = effect("inspect_review", InspectFacts, "task_inspect")
INSPECT_TESTS = effect("inspect_tests", InspectFacts, "task_inspect")
INSPECT_DECISION = effect("inspect_decision", InspectFacts, "task_inspect")
INSPECT_REVERT = effect("inspect_revert", InspectFacts, "task_inspect")

SHARED = (
    do(RESTORE, work.restore, when=RESTORES),
    do(NEXT, work.ask_next, when=READY),
    do(AGAIN, work.ask_again, when=STUCK),
)


class S(State):
    planning = state(
        "The base tree is checked; then planners draft, question and settle a plan.",
        do(LOOK_AT_OTHERS, work.look_at_others, when=LOOKS_AROUND),
        do(OTHERS, work.ask_others, when=WAITS),
        do(PREPARE, work.prepare, when=PREPARES),
        do(MEASURE, work.measure, when=MEASURES),
        do(MEASURE_AGAIN, work.measure, when=MEASURES_AGAIN),
        do(DRAFT, work.draft, when=DRAFTS, version=2),
        do(COMMENT, each=work.comments, when=COMMENTS),
        do(QUESTIONS, work.ask_questions, when=ASKS),
        do(INSPECT_PLAN, work.inspect_plan, when=INSPECTS),
        do(ADOPT, work.adopt, when=ADOPTS),
        do(DAMAGED_PLAN, work.ask_damage, when=DAMAGED),
        do(RECORD, work.record_plan, when=RECORDS),
        *SHARED,
        initial=True,
    )
    plan_review = state(
        "Reviewers judge the plan.",
        do(REVIEW_PLAN, each=work.plan_reviews, when=WORKS),
        do(INSPECT_PLAN_REVIEW, work.inspect_plan_review, when=INSPECTS),
        do(DAMAGE, work.ask_damage, when=DAMAGED),
        do(RECORD, work.record_plan_review, when=RECORDS),
        *SHARED,
    )
    codegen = state(
        "The plan becomes code in a working tree of its own.",
        do(MEASURE_AGAIN, work.measure, when=MEASURES_AGAIN),
        do(CODE, work.code, when=CODES),
        do(CREW, work.crew, when=GOES_ROUND, version=2),
        do(INSPECT_CODE, work.inspect_code, when=INSPECTS),
        do(DAMAGE, work.ask_damage, when=DAMAGED),
        do(RECORD, work.record_code, when=RECORDS),
        *SHARED,
    )
    review = state(
        "Reviewers judge the change.",
        do(REVIEW_CODE, each=work.code_reviews, when=WORKS),
        do(INSPECT_REVIEW, work.inspect_review, when=INSPECTS),
        do(DAMAGE, work.ask_damage, when=DAMAGED),
        do(RECORD, work.record_review, when=RECORDS),
        *SHARED,
    )
    test = state(
        "Suites, linters and static analysis run on the recorded tree.",
        do(MEASURE_AGAIN, work.measure, when=MEASURES_AGAIN),
        do(RUN_SUITES, work.run_suites, when=RUNS, version=2),
        do(EVIDENCE, work.ask_evidence, when=EVIDENCE_ASKED),
        do(INSPECT_TESTS, work.inspect_tests, when=INSPECTS),
        do(DAMAGE, work.ask_damage, when=DAMAGED),
        do(RECORD, work.record_tests, when=RECORDS),
        *SHARED,
    )
    accept = state(
        "A person sees all of it and decides.",
        do(LOOK_AT_BASE, work.look_at_base, when=BASE_ASKED, version=2),
        do(REWRITE, work.ask_rewrite, when=REWRITTEN_ASKED),
        do(DECIDE, work.ask_decision, when=DECIDES),
        do(INSPECT_DECISION, work.inspect_decision, when=INSPECTS),
        do(DELIVER, work.deliver, when=DELIVERS),
        do(DAMAGE, work.ask_damage, when=DAMAGED),
        do(RECORD, work.record_decision, when=RECORDS),
        *SHARED,
    )
    revert = state(
        "A delivered change is taken back.",
        do(TAKE_BACK, work.take_back, when=TAKES_BACK),
        do(INSPECT_REVERT, work.inspect_revert, when=INSPECTS),
        do(DAMAGE, work.ask_damage, when=DAMAGED),
        do(RECORD, work.record_revert, when=RECORDS),
        *SHARED,
    )
    done = resting("The task has its outcome.")


PHASES = (S.planning, S.plan_review, S.codegen, S.review, S.test, S.accept, S.revert)
