"""Coordinator: an intent becomes a frozen plan that is not executed, or a reason why there is none.

Each state has one piece of work, and its facts are named: what stops the run is asked first, ABORTED before BLOCKED,
and only what is left and whole goes on. Nothing here executes anything: scanning, remembering and writing are effects
of the runtime, and no document of a plan holds anything that could be run.

The only way back is AWAITING_ANSWERS → RULES_EVALUATED, three times: an answer that contradicts a rule. In full_auto no
question is ever asked; what would have been asked takes its default, which is on tape, or stops the run.
"""

from steersman.contracts.planning.facts import (
    AnswerFacts,
    ContextFacts,
    FreezeFacts,
    GraphFacts,
    PrecheckFacts,
    QuestionFacts,
    ReviewFacts,
    RulesFacts,
)
from steersman.kernel.build import machine
from steersman.kernel.definition import (
    STAY,
    Cap,
    Choice,
    Events,
    GateAnswer,
    Guard,
    Origin,
    State,
    computed,
    do,
    effect,
    event,
    final,
    fold,
    gate,
    naming,
    otherwise,
    row,
    state,
    table,
)
from steersman.kernel.laws import Before, Law, Never, Only, Possible
from steersman.machines.coordinator import context as ctx
from steersman.machines.coordinator import work

# ── Guards that the work of states depends on ───────────────────────────────────────────────────────────────────────

# fmt: off
FULL_AUTO = Guard("full_auto", "full_auto mode", lambda c, _: c.mode == "full_auto", reads=("mode",))
ALONE = Guard("alone", "a person may be asked", lambda c, _: c.mode != "full_auto", reads=("mode",))
UNANSWERED = Guard("unanswered", "no person has answered yet", lambda c, _: c.answers == "none", reads=("answers",))
GIVEN = Guard("given", "a person has answered", lambda c, _: c.answers == "given", reads=("answers",))
# fmt: on

# ── Jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PRECHECK = effect("precheck", PrecheckFacts, "precheck")
BUILD_CONTEXT = effect("build_context", ContextFacts, "plan_context")
ADJUDICATE = effect("adjudicate", RulesFacts, "adjudicate")
DRAFT = effect("draft", GraphFacts, "draft_graph")
EMIT = effect("emit", QuestionFacts, "emit_questions")
ASK = gate(
    "answers",
    asks="The plan is not sure of everything. What shall hold?",
    choices={"answer": Choice("answer", "answer what the plan asks", "plan answer {run}")},
)
WEIGH = effect("weigh", AnswerFacts, "weigh_answers")
FINALIZE = effect("finalize", GraphFacts, "finalize_graph")
PACK = effect("pack", ReviewFacts, "review_pack")
FREEZE = effect("freeze", FreezeFacts, "freeze")


class S(State):
    RECEIVED = state("An intent is here.", initial=True)
    PRECHECKED = state(
        "The intent is held against schema, registry and red lines.", do(PRECHECK, work.precheck_input)
    )
    CONTEXT_BUILT = state(
        "Memory, facts and policy are put together.", do(BUILD_CONTEXT, work.plan_context_input)
    )
    RULES_EVALUATED = state(
        "Every planned command gets its verdicts.", do(ADJUDICATE, work.adjudication_input, version=3)
    )
    GRAPH_DRAFTED = state("Phases, commands and decisions become a graph.", do(DRAFT, work.graph_draft_input))
    QUESTIONS_EMITTED = state(
        "What is not known becomes questions.", do(EMIT, work.question_emission_input, version=2)
    )
    AWAITING_ANSWERS = state(
        "Paused until answers arrive or time runs out.",
        do(ASK, work.answers_gate_input, when=UNANSWERED, version=2),
        do(WEIGH, work.answer_weighing_input, when=GIVEN, version=3),
    )
    GRAPH_FINALIZED = state(
        "Answers and defaults are worked into the graph.", do(FINALIZE, work.final_graph_input)
    )
    REVIEW_PACK_BUILT = state(
        "Impact, budgets and reviews are put together.", do(PACK, work.review_pack_input)
    )
    FROZEN_OUTPUTS = state(
        "Every output is written, read back and held against its digest.", do(FREEZE, work.plan_freeze_input)
    )
    DONE = final("The plan is frozen; nothing of it was executed.")
    BLOCKED = final("A constraint said no; the intent can be fixed and resubmitted.")
    ABORTED = final("A red line was crossed; a person has to look.")


P, G, X, M = Origin.PERSON, Origin.GATE, Origin.EFFECT, Origin.MACHINE


class E(Events):
    intent_received = event("A person gives an intent.", P, ctx.IntentReceived)
    intent_accepted = event("The intent has a run.", M)
    validation_passed = event("The intent may be planned.", X, PrecheckFacts)
    validation_failed = event("The intent may not be planned as it is.", X, PrecheckFacts)
    red_line_crossed = event("The intent carries an execution payload.", X, PrecheckFacts)
    context_ready = event("Memory, facts and policy are there.", X, ContextFacts)
    memory_unavailable = event("There is no memory to go by.", X, ContextFacts)
    context_incomplete = event("Facts or policy are missing.", X, ContextFacts)
    rules_adjudicated = event("Every planned command has its verdicts.", X, RulesFacts)
    hard_rule_deny = event("A rule forbids what cannot be left out.", X, RulesFacts)
    rules_conflict = event("Two rules contradict each other and no order says which holds.", X, RulesFacts)
    routing_violated = event("The policy leaves no model for an agent.", X, RulesFacts)
    rules_undecidable = event("A rule cannot be decided by a machine.", X, RulesFacts)
    operation_forbidden = event("The policy forbids a planned command.", X, RulesFacts)
    uncertainties_found = event("There is something to ask.", X, GraphFacts)
    no_questions_needed = event("There is nothing to ask.", X, GraphFacts)
    graph_invalid = event("What was drafted is no plan.", X, GraphFacts)
    questions_emitted = event("The questions are out.", X, QuestionFacts)
    budget_exceeded = event("More has to be asked than may be.", X, QuestionFacts)
    questions_unfit = event("A question lacks evidence or a default, or may not be asked.", X, QuestionFacts)
    answers_given = event("A person has answered, or time has run out and defaults hold.", G, GateAnswer)
    answers_stopped = event("The run stops rather than take defaults.", G, GateAnswer)
    answers_received = event("Every question has something that holds.", X, AnswerFacts)
    answers_refused = event("The answers cannot be taken as they are.", X, AnswerFacts)
    answers_conflict = event("An answer contradicts a rule.", X, AnswerFacts)
    answers_block = event("An answer or a default stops the run.", X, AnswerFacts)
    graph_completed = event("The graph has no placeholders left.", X, GraphFacts)
    graph_incomplete = event("The graph cannot be completed.", X, GraphFacts)
    review_pack_ready = event("A reviewer has everything.", X, ReviewFacts)
    budget_violated = event("The plan needs more than the intent allows.", X, ReviewFacts)
    review_unmet = event("A review or a risk is not accounted for.", X, ReviewFacts)
    outputs_frozen = event("Every output is where it should be, with its digest.", X, FreezeFacts)
    freezing_failed = event("A digest or a part of the lineage is wrong.", X, FreezeFacts)
    output_malformed = event("A generated document breaks its schema.", X, FreezeFacts)


# ── Guards ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# fmt: off
PAYLOAD = Guard("payload", "I1: an execution payload is in the intent", lambda _, e: e.payload > 0)
REGISTRY_BROKEN = Guard("registry_broken", "the registry cannot be read, or does not fit itself", lambda _, e: e.registry_problems > 0)
SCHEMA_BROKEN = Guard("schema_broken", "the intent breaks its schema (v0.9.1)", lambda _, e: e.schema_problems > 0)
CHECKSUM_WRONG = Guard("checksum_wrong", "the checksum does not match", lambda _, e: not e.checksum_matches)
ASKS_ALONE = Guard("asks_alone", "I2: full_auto with questions", lambda _, e: "I2" in e.broken)
RISKS_ALONE = Guard("risks_alone", "I3: high or critical risk in full_auto", lambda _, e: "I3" in e.broken)
UNEVIDENCED_COMMAND = Guard("unevidenced_command", "I4: a planned command without evidence", lambda _, e: "I4" in e.broken)
NOT_REGISTERED = Guard("not_registered", "I5: something is not from the registry", lambda _, e: "I5" in e.broken or e.missing > 0)
INACTIVE = Guard("inactive", "referenced content is neither active nor frozen", lambda _, e: e.inactive > 0)
DRIFTED = Guard("drifted", "a version has drifted", lambda _, e: e.drifted > 0)
POLICY_BROKEN = Guard("policy_broken", "the policy breaks its schema", lambda _, e: e.policy_problems > 0)
OTHER_MODE = Guard("other_mode", "the run was begun in another mode than intent and policy ask for", lambda c, e: e.mode != c.mode)
VALID = Guard("valid", "schema valid, checksum match, registry refs exist, red lines pass", lambda c, e: e.looked and not (e.payload or e.schema_problems or e.broken or e.missing or e.inactive or e.drifted or e.policy_problems or e.registry_problems) and e.checksum_matches and e.mode == c.mode)

NO_MEMORY = Guard("no_memory", "MemoryPack unavailable or below its threshold", lambda _, e: not e.memory or e.memories < e.threshold)
NO_FACTS = Guard("no_facts", "FactPack unavailable", lambda _, e: e.facts == 0)
NO_POLICY = Guard("no_policy", "the policy's constraints are not loaded", lambda _, e: not e.policy)
READY = Guard("ready", "MemoryPack available, FactPack available", lambda _, e: e.memory and e.memories >= e.threshold and e.facts > 0 and e.policy and bool(e.bundle_ref))

ROUTED_AWAY = Guard("routed_away", "a model is needed that the policy forbids", lambda _, e: e.violations > 0)
CONFLICTING = Guard("conflicting", "unresolvable rule conflicts", lambda _, e: e.conflicts > 0)
DENIED = Guard("denied", "a rule denies a critical action", lambda _, e: e.hard_denies > 0)
UNDECIDABLE = Guard("undecidable", "rules are not machine-decidable", lambda _, e: e.undecidable > 0)
UNEXPLAINED = Guard("unexplained", "a deny has no documented reason", lambda _, e: e.unexplained > 0)
FORBIDDEN = Guard("forbidden", "the policy prohibits an operation", lambda _, e: e.forbidden > 0)
DECIDED = Guard("decided", "all rules decidable, no hard denies", lambda _, e: bool(e.decisions_ref) and e.decided == e.commands and not (e.violations or e.conflicts or e.hard_denies or e.undecidable or e.unexplained or e.forbidden))

CYCLIC = Guard("cyclic", "the graph contains cycles", lambda _, e: e.cycles > 0)
UNMAPPED = Guard("unmapped", "a phase is not mapped to a node", lambda _, e: e.unmapped > 0)
UNASSIGNED = Guard("unassigned", "an agent or a node has no swimlane", lambda _, e: e.unassigned > 0)
UNSUPPORTED = Guard("unsupported", "an action_proposal has no evidence_refs", lambda _, e: e.unsupported > 0)
UNCERTAIN = Guard("uncertain", "policy allows questions, uncertainties exist", lambda _, e: e.askable > 0)
CLEAR = Guard("clear", "no uncertainties that may be asked about", lambda _, e: e.nodes > 0 and bool(e.graph_ref) and e.askable == 0)

OVER_BUDGET = Guard("over_budget", "question_budget exceeded", lambda _, e: e.over > 0)
UNEVIDENCED = Guard("unevidenced", "a question has no evidence_refs", lambda _, e: e.unevidenced > 0)
UNDEFAULTED = Guard("undefaulted", "a question has no default_strategy that may hold", lambda _, e: e.undefaulted > 0)
UNFIT = Guard("unfit", "a question is not for this policy", lambda _, e: e.unfit > 0)
OUT = Guard("out", "budget not exceeded, all questions have evidence", lambda _, e: e.asked > 0 and bool(e.pack_ref) and not (e.over or e.unevidenced or e.undefaulted or e.unfit))

STOPS = Guard("stops", "the run is to stop rather than take defaults", lambda _, e: e.choice == "stop")
MALFORMED = Guard("malformed", "the AnswerPack breaks its schema or is about other questions", lambda _, e: e.problems > 0)
PARTIAL = Guard("partial", "a critical question is not answered", lambda _, e: e.unanswered > 0)
CONTRADICTS = Guard("contradicts", "an answer contradicts a rule", lambda _, e: e.conflicts > 0)
BLOCKS = Guard("blocks", "an answer or a default says block", lambda _, e: e.blocked > 0)
ANSWERED = Guard("answered", "answers valid, no rule conflicts", lambda _, e: e.weighed > 0 and bool(e.settled_ref) and not (e.problems or e.unanswered or e.conflicts or e.blocked))

STOPPED = Guard("stopped", "a default stops the run", lambda _, e: e.blocked > 0)
OVERRULED = Guard("overruled", "a rule speaks against what is left of the plan", lambda _, e: e.ruled_out > 0)
EMPTIED = Guard("emptied", "a phase that has to show something has nothing left", lambda _, e: e.emptied > 0)
RISKY = Guard("risky", "I3: what is left is of high or critical risk, in full_auto", lambda _, e: e.alone > 0)
HOLES = Guard("holes", "placeholders, cycles or missing fields are left, or a node has no swimlane", lambda _, e: e.placeholders + e.incomplete + e.unassigned + e.cycles + e.unsupported > 0)
WHOLE = Guard("whole", "graph complete, no placeholders", lambda _, e: e.nodes > 0 and bool(e.graph_ref) and not (e.blocked or e.ruled_out or e.emptied or e.alone or e.placeholders or e.incomplete or e.unassigned or e.cycles or e.unsupported))

OVERSPENT = Guard("overspent", "change impact beyond the budgets", lambda _, e: bool(e.over))
UNREVIEWED = Guard("unreviewed", "a requires_review category has no review gate", lambda _, e: e.uncovered > 0)
UNJUSTIFIED = Guard("unjustified", "a risk is not justified by evidence", lambda _, e: e.unjustified > 0)
REVIEWABLE = Guard("reviewable", "budgets satisfied, review requirements met", lambda _, e: bool(e.pack_ref) and not (e.over or e.uncovered or e.unjustified))

ILL_FORMED = Guard("ill_formed", "an output breaks its schema", lambda _, e: e.malformed > 0)
UNMATCHED = Guard("unmatched", "a checksum is not that of what was written", lambda _, e: e.unmatched > 0)
UNTRACED = Guard("untraced", "the lineage is incomplete", lambda _, e: e.untraced > 0)
FROZEN = Guard("frozen", "checksums valid, lineage complete", lambda _, e: e.files > 0 and bool(e.manifest_ref) and not (e.malformed or e.unmatched or e.untraced))

ROUNDS = Cap("answers_against_rules", 3)
# fmt: on

# ── The table ───────────────────────────────────────────────────────────────────────────────────────────────────────

# fmt: off
TABLE = table(
    #   from                 on                     when       to                   cap     label, source
    row(None,                E.intent_received,     otherwise, S.RECEIVED,          None,   "Intent received",               "§1"),
    row(S.RECEIVED,          E.intent_accepted,     otherwise, S.PRECHECKED,        None,   "Intent accepted",               "§1"),
    row(S.PRECHECKED,        E.validation_passed,   otherwise, S.CONTEXT_BUILT,     None,   "Validation passed",             "§2"),
    row(S.PRECHECKED,        E.validation_failed,   otherwise, S.BLOCKED,           None,   "Validation failed",             "§2"),
    row(S.PRECHECKED,        E.red_line_crossed,    otherwise, S.ABORTED,           None,   "Execution payload detected",    "§Red Line #1"),
    row(S.CONTEXT_BUILT,     E.context_ready,       otherwise, S.RULES_EVALUATED,   None,   "Context ready",                 "§3"),
    row(S.CONTEXT_BUILT,     E.memory_unavailable,  otherwise, S.BLOCKED,           None,   "MemoryPack unavailable",        "§3"),
    row(S.CONTEXT_BUILT,     E.context_incomplete,  otherwise, S.BLOCKED,           None,   "FactPack or policy missing",    "§Guard Conditions"),
    row(S.RULES_EVALUATED,   E.rules_adjudicated,   otherwise, S.GRAPH_DRAFTED,     None,   "Rules adjudicated",             "§4"),
    row(S.RULES_EVALUATED,   E.hard_rule_deny,      otherwise, S.ABORTED,           None,   "Hard rule deny",                "§4"),
    row(S.RULES_EVALUATED,   E.rules_conflict,      otherwise, S.ABORTED,           None,   "Unresolvable rule conflict",    "§13"),
    row(S.RULES_EVALUATED,   E.routing_violated,    otherwise, S.ABORTED,           None,   "Model routing policy violation", "§13"),
    row(S.RULES_EVALUATED,   E.rules_undecidable,   otherwise, S.BLOCKED,           None,   "Rules not machine-decidable",   "§4"),
    row(S.RULES_EVALUATED,   E.operation_forbidden, otherwise, S.BLOCKED,           None,   "Policy prohibits operation",    "§12"),
    row(S.GRAPH_DRAFTED,     E.uncertainties_found, FULL_AUTO, S.GRAPH_FINALIZED,   None,   "full_auto: defaults hold",      "§Red Line #2"),
    row(S.GRAPH_DRAFTED,     E.uncertainties_found, otherwise, S.QUESTIONS_EMITTED, None,   "Uncertainties & policy allows", "§6"),
    row(S.GRAPH_DRAFTED,     E.no_questions_needed, otherwise, S.GRAPH_FINALIZED,   None,   "No questions needed",           "§8"),
    row(S.GRAPH_DRAFTED,     E.graph_invalid,       otherwise, S.BLOCKED,           None,   "Graph invalid",                 "§5"),
    row(S.QUESTIONS_EMITTED, E.questions_emitted,   otherwise, S.AWAITING_ANSWERS,  None,   "Questions emitted",             "§6", sets={"answers": "none"}),
    row(S.QUESTIONS_EMITTED, E.budget_exceeded,     otherwise, S.BLOCKED,           None,   "Budget exceeded",               "§6"),
    row(S.QUESTIONS_EMITTED, E.questions_unfit,     otherwise, S.BLOCKED,           None,   "Questions lack evidence",       "§6"),
    row(S.AWAITING_ANSWERS,  E.answers_given,       otherwise, STAY,                None,   "hold the answers against questions and rules", "extension: answers are weighed by an effect", sets={"answers": "given"}),
    row(S.AWAITING_ANSWERS,  E.answers_stopped,     otherwise, S.BLOCKED,           None,   "Timeout / no fallback",         "§7"),
    row(S.AWAITING_ANSWERS,  E.answers_refused,     otherwise, S.AWAITING_ANSWERS,  None,   "refused with all its problems; the questions stay open", "extension: an AnswerPack that cannot be taken ends nothing", sets={"answers": "none"}),
    row(S.AWAITING_ANSWERS,  E.answers_conflict,    otherwise, S.RULES_EVALUATED,   ROUNDS, "Answer conflicts",              "§7"),
    row(S.AWAITING_ANSWERS,  E.answers_conflict,    otherwise, S.BLOCKED,           None,   "3 iterations exceeded",         "§Loop Detection"),
    row(S.AWAITING_ANSWERS,  E.answers_block,       otherwise, S.BLOCKED,           None,   "An answer or default stops it", "§7"),
    row(S.AWAITING_ANSWERS,  E.answers_received,    otherwise, S.GRAPH_FINALIZED,   None,   "Answers received",              "§8"),
    row(S.GRAPH_FINALIZED,   E.graph_completed,     otherwise, S.REVIEW_PACK_BUILT, None,   "Graph complete",                "§9"),
    row(S.GRAPH_FINALIZED,   E.graph_incomplete,    otherwise, S.BLOCKED,           None,   "Graph incomplete",              "§8"),
    row(S.REVIEW_PACK_BUILT, E.review_pack_ready,   otherwise, S.FROZEN_OUTPUTS,    None,   "Review pack ready",             "§10"),
    row(S.REVIEW_PACK_BUILT, E.budget_violated,     otherwise, S.BLOCKED,           None,   "Budget violated",               "§9"),
    row(S.REVIEW_PACK_BUILT, E.review_unmet,        otherwise, S.BLOCKED,           None,   "Review requirements not met",   "§9"),
    row(S.FROZEN_OUTPUTS,    E.outputs_frozen,      otherwise, S.DONE,              None,   "All outputs frozen",            "§11"),
    row(S.FROZEN_OUTPUTS,    E.freezing_failed,     otherwise, S.BLOCKED,           None,   "Checksum/lineage failed",       "§10"),
    row(S.FROZEN_OUTPUTS,    E.output_malformed,    otherwise, S.ABORTED,           None,   "Schema violation in generated artifacts", "§13"),
)

# ── Namings: how facts become events; what aborts is asked before what blocks ───────────────────────────────────────

FAILS = E.validation_failed
NAMES = (
    naming(PRECHECK, (PAYLOAD, E.red_line_crossed), (REGISTRY_BROKEN, FAILS), (SCHEMA_BROKEN, FAILS), (CHECKSUM_WRONG, FAILS), (ASKS_ALONE, FAILS), (RISKS_ALONE, FAILS), (UNEVIDENCED_COMMAND, FAILS), (NOT_REGISTERED, FAILS), (INACTIVE, FAILS), (DRIFTED, FAILS), (POLICY_BROKEN, FAILS), (OTHER_MODE, FAILS), (VALID, E.validation_passed), (otherwise, FAILS)),
    naming(BUILD_CONTEXT, (NO_MEMORY, E.memory_unavailable), (NO_FACTS, E.context_incomplete), (NO_POLICY, E.context_incomplete), (READY, E.context_ready), (otherwise, E.context_incomplete)),
    naming(ADJUDICATE, (ROUTED_AWAY, E.routing_violated), (CONFLICTING, E.rules_conflict), (DENIED, E.hard_rule_deny), (UNDECIDABLE, E.rules_undecidable), (UNEXPLAINED, E.rules_undecidable), (FORBIDDEN, E.operation_forbidden), (DECIDED, E.rules_adjudicated), (otherwise, E.rules_undecidable)),
    naming(DRAFT, (CYCLIC, E.graph_invalid), (UNMAPPED, E.graph_invalid), (UNASSIGNED, E.graph_invalid), (UNSUPPORTED, E.graph_invalid), (UNCERTAIN, E.uncertainties_found), (CLEAR, E.no_questions_needed), (otherwise, E.graph_invalid)),
    naming(EMIT, (OVER_BUDGET, E.budget_exceeded), (UNEVIDENCED, E.questions_unfit), (UNDEFAULTED, E.questions_unfit), (UNFIT, E.questions_unfit), (OUT, E.questions_emitted), (otherwise, E.questions_unfit)),
    naming(ASK, (STOPS, E.answers_stopped), (otherwise, E.answers_given)),
    naming(WEIGH, (MALFORMED, E.answers_refused), (PARTIAL, E.answers_refused), (CONTRADICTS, E.answers_conflict), (BLOCKS, E.answers_block), (ANSWERED, E.answers_received), (otherwise, E.answers_refused)),
    naming(FINALIZE, (STOPPED, E.graph_incomplete), (OVERRULED, E.graph_incomplete), (EMPTIED, E.graph_incomplete), (RISKY, E.graph_incomplete), (HOLES, E.graph_incomplete), (WHOLE, E.graph_completed), (otherwise, E.graph_incomplete)),
    naming(PACK, (OVERSPENT, E.budget_violated), (UNREVIEWED, E.review_unmet), (UNJUSTIFIED, E.review_unmet), (REVIEWABLE, E.review_pack_ready), (otherwise, E.review_unmet)),
    naming(FREEZE, (ILL_FORMED, E.output_malformed), (UNMATCHED, E.freezing_failed), (UNTRACED, E.freezing_failed), (FROZEN, E.outputs_frozen), (otherwise, E.freezing_failed)),
)
# fmt: on
COMPUTES = (computed(S.RECEIVED, (otherwise, E.intent_accepted)),)
FOLDS = (
    *(
        fold(e, ctx.fold_precheck_facts)
        for e in (E.validation_passed, E.validation_failed, E.red_line_crossed)
    ),
    *(fold(e, ctx.fold_context_facts) for e in (E.context_ready, E.memory_unavailable, E.context_incomplete)),
    *(
        fold(e, ctx.fold_rule_facts)
        for e in (
            E.rules_adjudicated,
            E.hard_rule_deny,
            E.rules_conflict,
            E.routing_violated,
            E.rules_undecidable,
            E.operation_forbidden,
        )
    ),
    *(fold(e, ctx.fold_graph_draft) for e in (E.uncertainties_found, E.no_questions_needed, E.graph_invalid)),
    *(
        fold(e, ctx.fold_question_pack, version=2)
        for e in (E.questions_emitted, E.budget_exceeded, E.questions_unfit)
    ),
    fold(E.answers_given, ctx.fold_gate_answers, version=2),
    fold(E.answers_stopped, ctx.fold_gate_answers, version=2),
    *(
        fold(e, ctx.fold_weighed_answers, version=2)
        for e in (E.answers_received, E.answers_refused, E.answers_conflict, E.answers_block)
    ),
    *(fold(e, ctx.fold_final_graph, version=2) for e in (E.graph_completed, E.graph_incomplete)),
    *(fold(e, ctx.fold_review_pack) for e in (E.review_pack_ready, E.budget_violated, E.review_unmet)),
    *(fold(e, ctx.fold_frozen_plan) for e in (E.outputs_frozen, E.freezing_failed, E.output_malformed)),
)
LAWS: tuple[Law, ...] = (
    Never(S.QUESTIONS_EMITTED, when=FULL_AUTO),
    Never(S.AWAITING_ANSWERS, when=FULL_AUTO),
    Only("answers", "given", by=(E.answers_given,)),
    *(
        Before(first, then=S.DONE)
        for first in (
            S.PRECHECKED,
            S.CONTEXT_BUILT,
            S.RULES_EVALUATED,
            S.GRAPH_DRAFTED,
            S.GRAPH_FINALIZED,
            S.REVIEW_PACK_BUILT,
            S.FROZEN_OUTPUTS,
        )
    ),
    Possible(S.DONE, when=FULL_AUTO),
    Possible(S.DONE, when=GIVEN),
    Possible(S.RULES_EVALUATED, when=GIVEN),
    Possible(S.AWAITING_ANSWERS, when=ALONE),
)

MACHINE = machine(
    "coordinator",
    "An intent becomes a frozen plan, or a reason why there is none; nothing is executed.",
    states=S,
    events=E,
    rows=TABLE,
    context=ctx.CoordinatorContext,
    context_version=3,
    upcasts={1: ctx.upcast_add_time_left, 2: ctx.upcast_add_answered_by},
    namings=NAMES,
    computes=COMPUTES,
    folds=FOLDS,
    laws=LAWS,
    constants={"mode": ("interactive", "semi_auto", "full_auto")},
    memory={"answers": ("none", "given")},
    successes=("DONE",),
    begin=lambda request: (E.intent_received, *ctx.begin_coordinator(request)),
    begin_version=3,
    tree=False,
)
