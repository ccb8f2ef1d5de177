"""Specification 001: the states, diagram, guards, loop, red lines and demands of coordinator."""

from typing import NamedTuple

from tests.specifications.documents import Document

DOCUMENT = Document(
    "001_ff48b3661345d819.txt", "4aa1c2ccb02d4e655c3c11f63d75dbc6227281bb38865f57f6abc1849c202c59"
)
STATES = (
    "RECEIVED", "PRECHECKED", "CONTEXT_BUILT", "RULES_EVALUATED", "GRAPH_DRAFTED", "QUESTIONS_EMITTED", "AWAITING_ANSWERS",
    "GRAPH_FINALIZED", "REVIEW_PACK_BUILT", "FROZEN_OUTPUTS", "DONE", "BLOCKED", "ABORTED",
)  # fmt: skip
SECTIONS = tuple(enumerate(STATES, start=1))  # §1 to §13
FINAL = ("DONE", "BLOCKED", "ABORTED")
CONDITIONAL = ("QUESTIONS_EMITTED", "AWAITING_ANSWERS")
FAILURES = ("BLOCKED", "ABORTED")

# fmt: off
DIAGRAM = (  # source, label, target, as drawn
    (None,                "",                         "RECEIVED"),
    ("RECEIVED",          "intent_accepted",          "PRECHECKED"),
    ("PRECHECKED",        "validation_passed",        "CONTEXT_BUILT"),
    ("PRECHECKED",        "validation_failed",        "BLOCKED"),
    ("CONTEXT_BUILT",     "context_ready",            "RULES_EVALUATED"),
    ("CONTEXT_BUILT",     "memory_missing",           "BLOCKED"),
    ("RULES_EVALUATED",   "rules_decided",            "GRAPH_DRAFTED"),
    ("RULES_EVALUATED",   "hard_deny",                "ABORTED"),
    ("GRAPH_DRAFTED",     "uncertain_and_may_ask",    "QUESTIONS_EMITTED"),
    ("GRAPH_DRAFTED",     "nothing_to_ask",           "GRAPH_FINALIZED"),
    ("GRAPH_DRAFTED",     "graph_broken",             "BLOCKED"),
    ("QUESTIONS_EMITTED", "questions_out",            "AWAITING_ANSWERS"),
    ("QUESTIONS_EMITTED", "over_question_budget",     "BLOCKED"),
    ("AWAITING_ANSWERS",  "answers_in",               "GRAPH_FINALIZED"),
    ("AWAITING_ANSWERS",  "answers_conflict",         "RULES_EVALUATED"),
    ("AWAITING_ANSWERS",  "time_out_without_default", "BLOCKED"),
    ("GRAPH_FINALIZED",   "graph_whole",              "REVIEW_PACK_BUILT"),
    ("GRAPH_FINALIZED",   "graph_in_part",            "BLOCKED"),
    ("REVIEW_PACK_BUILT", "review_pack_made",         "FROZEN_OUTPUTS"),
    ("REVIEW_PACK_BUILT", "over_budget",              "BLOCKED"),
    ("FROZEN_OUTPUTS",    "outputs_frozen",           "DONE"),
    ("FROZEN_OUTPUTS",    "freezing_failed",          "BLOCKED"),
)
# fmt: on


class Requirement(NamedTuple):
    """One line of the guard table: what a transition needs, all or any of it, and what it says of a failure."""

    source: str
    to: str
    joined: str
    conditions: tuple[str, ...]
    failure: tuple[str, ...]


# fmt: off
GUARDS = (
    Requirement("RECEIVED",          "PRECHECKED",        "all", ("nothing_is_asked",), ()),
    Requirement("PRECHECKED",        "CONTEXT_BUILT",     "all", ("schema_fits", "checksum_fits", "references_exist", "red_lines_hold"), ("BLOCKED",)),
    Requirement("CONTEXT_BUILT",     "RULES_EVALUATED",   "all", ("memory_is_there", "facts_are_there"), ("BLOCKED",)),
    Requirement("RULES_EVALUATED",   "GRAPH_DRAFTED",     "all", ("every_rule_decides", "no_hard_deny"), ("ABORTED", "BLOCKED")),
    Requirement("GRAPH_DRAFTED",     "QUESTIONS_EMITTED", "all", ("policy_lets_ask", "something_is_uncertain"), ()),
    Requirement("GRAPH_DRAFTED",     "GRAPH_FINALIZED",   "any", ("nothing_is_uncertain", "mode_is_full_auto"), ()),
    Requirement("QUESTIONS_EMITTED", "AWAITING_ANSWERS",  "all", ("within_question_budget", "every_question_has_evidence"), ("BLOCKED",)),
    Requirement("AWAITING_ANSWERS",  "GRAPH_FINALIZED",   "all", ("answers_fit", "answers_agree_with_rules"), ("rules_again_on_conflict",)),
    Requirement("GRAPH_FINALIZED",   "REVIEW_PACK_BUILT", "all", ("graph_is_whole", "no_placeholders"), ("BLOCKED",)),
    Requirement("REVIEW_PACK_BUILT", "FROZEN_OUTPUTS",    "all", ("within_budgets", "reviews_are_covered"), ("BLOCKED",)),
    Requirement("FROZEN_OUTPUTS",    "DONE",              "all", ("checksums_fit", "lineage_is_whole"), ("BLOCKED",)),
)
STATE_GUARDS = (  # what each state's own section asks before the next transition
    ("PRECHECKED",        ("intent_fits_schema", "intent_has_its_checksum", "five_red_lines_hold", "content_is_active", "no_version_drift")),
    ("CONTEXT_BUILT",     ("memory_pack_made", "fact_pack_there", "policy_loaded")),
    ("RULES_EVALUATED",   ("verdicts_are_decidable", "conflicts_are_resolvable", "denies_have_reasons")),
    ("GRAPH_DRAFTED",     ("graph_has_no_cycle", "phases_have_nodes", "agents_have_swimlanes", "proposals_have_evidence")),
    ("QUESTIONS_EMITTED", ("question_budget_holds", "questions_have_evidence", "questions_have_defaults", "levels_fit_policy")),
    ("AWAITING_ANSWERS",  ("answers_fit_schema", "critical_ones_answered", "answers_obey_rules")),
    ("GRAPH_FINALIZED",   ("graph_without_placeholders", "nodes_have_fields", "swimlanes_cover_nodes")),
    ("REVIEW_PACK_BUILT", ("required_reviews_covered", "impact_within_budgets", "risk_has_evidence")),
    ("FROZEN_OUTPUTS",    ("outputs_have_checksums", "lineage_is_traceable", "outputs_fit_schema")),
)
BRANCHES = (  # where a state's own section sends what fails
    ("PRECHECKED",        "guards_fail",              ("BLOCKED",)),
    ("CONTEXT_BUILT",     "no_memory_pack",           ("BLOCKED",)),
    ("RULES_EVALUATED",   "critical_action_denied",   ("ABORTED",)),
    ("RULES_EVALUATED",   "rules_undecidable",        ("BLOCKED",)),
    ("GRAPH_DRAFTED",     "graph_has_cycle",          ("BLOCKED",)),
    ("QUESTIONS_EMITTED", "no_budget_for_questions",  ("BLOCKED",)),
    ("QUESTIONS_EMITTED", "questions_lack_evidence",  ("BLOCKED",)),
    ("AWAITING_ANSWERS",  "answer_against_rules",     ("RULES_EVALUATED",)),
    ("AWAITING_ANSWERS",  "time_is_up",               ()),
    ("GRAPH_FINALIZED",   "graph_still_in_part",      ("BLOCKED",)),
    ("REVIEW_PACK_BUILT", "budgets_exceeded",         ("BLOCKED",)),
    ("FROZEN_OUTPUTS",    "checksum_or_lineage_bad",  ("BLOCKED",)),
)
RED_LINES = (  # number, what it forbids, where, where it leads ("": the state is skipped)
    (1, "no_execution_payload",     "PRECHECKED",        "ABORTED"),
    (2, "full_auto_never_asks",     "QUESTIONS_EMITTED", ""),
    (3, "no_high_risk_alone",       "PRECHECKED",        "BLOCKED"),
    (4, "evidence_is_required",     "GRAPH_DRAFTED",     "BLOCKED"),
    (5, "only_from_the_registry",   "PRECHECKED",        "BLOCKED"),
)
LOOP = ("AWAITING_ANSWERS", "RULES_EVALUATED", 3)  # §Permitted Loops: the only way back, and how often
MUSTS = (  # section, demand: each line that says must, never or prohibited
    ("§Overview",             "plans_and_never_executes"),
    ("§6",                    "full_auto_never_enters"),
    ("§6",                    "full_auto_skips"),
    ("§Forbidden Loops",      "no_other_way_back"),
    ("§Red Line #4",          "proposals_need_evidence"),
    ("§Red Line #5",          "references_are_registered"),
    ("§Audit Requirements",   "transitions_are_recorded"),
    ("§Testing Requirements", "states_are_tested"),
    ("§Implementation Notes", "same_input_same_output"),
    ("§Implementation Notes", "no_side_effects"),
    ("§Implementation Notes", "decisions_are_recorded"),
    ("§Implementation Notes", "guards_are_testable"),
)
# fmt: on
ORDER = {name: n for n, name in enumerate(STATES)}

WORDINGS = {  # the fingerprint of the wording that each identifier stands for
    "intent_accepted": "4c8e83556e74",
    "validation_passed": "d685622c6eaf",
    "validation_failed": "23a86f5a2dae",
    "context_ready": "31cc60e9e78a",
    "memory_missing": "d9ae45e1ed09",
    "rules_decided": "cbbd85fa3e79",
    "hard_deny": "9db6c28a6e8f",
    "uncertain_and_may_ask": "93be7ef2a4d5",
    "nothing_to_ask": "b16ab605779f",
    "graph_broken": "732626edce14",
    "questions_out": "4b99279a1139",
    "over_question_budget": "7689a34422be",
    "answers_in": "5dce087ae39a",
    "answers_conflict": "c9b27d487b97",
    "time_out_without_default": "55d582b629ad",
    "graph_whole": "aed1a27c9e47",
    "graph_in_part": "8b7df557586a",
    "review_pack_made": "d0e4279c6743",
    "over_budget": "98c882ac018e",
    "outputs_frozen": "7f9379b8f524",
    "freezing_failed": "d319ba473c21",
    "nothing_is_asked": "cbb7de45ca7a",
    "schema_fits": "341609b0929c",
    "checksum_fits": "62991f864073",
    "references_exist": "1316bddb2076",
    "red_lines_hold": "6f15b528f61f",
    "memory_is_there": "7064415ac7a7",
    "facts_are_there": "6f86acbdeb77",
    "every_rule_decides": "a782177ac044",
    "no_hard_deny": "e933ace6ea1d",
    "policy_lets_ask": "9a872ad7cc1d",
    "something_is_uncertain": "85cca1b593fb",
    "nothing_is_uncertain": "36a669046eb2",
    "mode_is_full_auto": "9e4402332136",
    "within_question_budget": "a0e91ea5ca6d",
    "every_question_has_evidence": "409c511ec4f9",
    "answers_fit": "696c51bb125f",
    "answers_agree_with_rules": "9b8013b969e6",
    "rules_again_on_conflict": "99bb5e6028df",
    "graph_is_whole": "56237aba104c",
    "no_placeholders": "aed61f03fcaa",
    "within_budgets": "35c944a7c465",
    "reviews_are_covered": "0223c2413e2b",
    "checksums_fit": "61d574239fdb",
    "lineage_is_whole": "1898dacc7968",
    "intent_fits_schema": "e8c472cd82a9",
    "intent_has_its_checksum": "0a5283e89ff6",
    "five_red_lines_hold": "472acd60a29b",
    "content_is_active": "1c0bce195fb0",
    "no_version_drift": "1da024c71869",
    "memory_pack_made": "c2fda2a051c1",
    "fact_pack_there": "fafc4cfd70bd",
    "policy_loaded": "7392959ec6b5",
    "verdicts_are_decidable": "badecad2680d",
    "conflicts_are_resolvable": "981b025da9d0",
    "denies_have_reasons": "1c1cfee218a8",
    "graph_has_no_cycle": "01b6ea6f4ad5",
    "phases_have_nodes": "1c616359aa66",
    "agents_have_swimlanes": "0903bedbb251",
    "proposals_have_evidence": "cfbc8dfcc881",
    "question_budget_holds": "f9a5227f0162",
    "questions_have_evidence": "4caf515359c4",
    "questions_have_defaults": "21a217d82b0f",
    "levels_fit_policy": "a2c5b5626a3a",
    "answers_fit_schema": "9cf483f46f22",
    "critical_ones_answered": "a43817f3b68c",
    "answers_obey_rules": "26d9966d7ab2",
    "graph_without_placeholders": "0a004f06ca15",
    "nodes_have_fields": "1c1b0720cbed",
    "swimlanes_cover_nodes": "aba6cca80515",
    "required_reviews_covered": "8ae7272836c8",
    "impact_within_budgets": "1f43ef3750b7",
    "risk_has_evidence": "5602bc3a817d",
    "outputs_have_checksums": "1a9ba1d36251",
    "lineage_is_traceable": "8bcaae0c2453",
    "outputs_fit_schema": "5657fd26fa19",
    "guards_fail": "d42a66c323e1",
    "no_memory_pack": "4d9cc05e8078",
    "critical_action_denied": "14534eacde50",
    "rules_undecidable": "32f2e1b70b65",
    "graph_has_cycle": "50de81ef4284",
    "no_budget_for_questions": "04478f409069",
    "questions_lack_evidence": "1a30348cc612",
    "answer_against_rules": "601d8e06e767",
    "time_is_up": "9c8c8716842a",
    "graph_still_in_part": "6c646a5f838f",
    "budgets_exceeded": "897d5185b036",
    "checksum_or_lineage_bad": "7357e130e688",
    "no_execution_payload": "409a824b17cd",
    "full_auto_never_asks": "fd97144cfafb",
    "no_high_risk_alone": "340c2c0d2823",
    "evidence_is_required": "84025d3bb7f4",
    "only_from_the_registry": "87b285c67238",
    "plans_and_never_executes": "c612aa46ea57",
    "full_auto_never_enters": "9b230b25c9b3",
    "full_auto_skips": "d24c02c3aba2",
    "no_other_way_back": "c6930d0de4bb",
    "proposals_need_evidence": "bf0937b1bb11",
    "references_are_registered": "fb37d4a5a2d8",
    "transitions_are_recorded": "e8d1075b9f6f",
    "states_are_tested": "fc4660e16231",
    "same_input_same_output": "ac188656c319",
    "no_side_effects": "22e350f2f7a0",
    "decisions_are_recorded": "b674f2082c83",
    "guards_are_testable": "52f99665363d",
}
