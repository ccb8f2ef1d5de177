"""Specification 004: the states, diagram, deliverables, guards and caps of orchestrator, a machine to come."""

from typing import NamedTuple

from tests.specifications.documents import Document

DOCUMENT = Document(
    "004_77877cd6a5007eee.txt", "4572ae707c630c33e44c87eedefa98303e8a5689779437a9b8571a73fc7e3e5a"
)
# fmt: off
SECTIONS = (
    (1, "goals"), (2, "diagram"), (3, "roles"), (4, "deliverables"), (5, "guards"), (6, "parts"), (7, "mocks"),
)
STATES = (  # §2, in the order drawn
    "BOOT", "IDLE_PROBE_BD", "RESUME_ASK", "RESUME_PLAN", "IDLE", "OBSERVE", "INTAKE", "ASK_SWITCH", "EPIC_SYNC",
    "PLAN_BASELINE", "PLAN_REVIEW", "RESEARCH_FANOUT", "RESEARCH_INGEST", "RESEARCH_EVAL", "WAIT_OTHERS", "DETAIL_DESIGN",
    "CODER_HANDOFF", "SCHEDULE", "QUEUE", "DISPATCH", "CODER_EXEC", "REVIEW_ACCEPT", "REPLAN_PATCH", "COMPLETE", "CANCELLED",
    "FAILED",
)
FINAL = ("COMPLETE", "CANCELLED", "FAILED")  # nothing leaves them


class Edge(NamedTuple):
    """One arrow of §2: any of its events takes it where all of its guards hold; `*` is any state."""

    source: str | None
    events: tuple[str, ...]
    guards: tuple[str, ...]
    to: str


DIAGRAM = (
    Edge(None,              (),                                       (),                         "BOOT"),
    Edge("BOOT",            ("auto",),                                (),                         "IDLE_PROBE_BD"),
    Edge("IDLE_PROBE_BD",   ("found_resumable",),                     ("!auto_resume",),          "RESUME_ASK"),
    Edge("IDLE_PROBE_BD",   ("found_resumable",),                     ("auto_resume",),           "RESUME_PLAN"),
    Edge("IDLE_PROBE_BD",   ("no_resumable",),                        (),                         "IDLE"),
    Edge("RESUME_ASK",      ("user_resume_yes",),                     (),                         "RESUME_PLAN"),
    Edge("RESUME_ASK",      ("user_resume_no",),                      (),                         "IDLE"),
    Edge("RESUME_PLAN",     ("resume_queue_loaded",),                 (),                         "OBSERVE"),
    Edge("IDLE",            ("user_input",),                          (),                         "INTAKE"),
    Edge("INTAKE",          ("conflict_with_current_epic",),          (),                         "ASK_SWITCH"),
    Edge("INTAKE",          ("confidence_lt_0_6",),                   (),                         "ASK_SWITCH"),
    Edge("INTAKE",          ("intake_ok",),                           (),                         "EPIC_SYNC"),
    Edge("ASK_SWITCH",      ("switch", "keep", "merge", "clarified"), (),                         "EPIC_SYNC"),
    Edge("EPIC_SYNC",       ("bd_upsert_done",),                      (),                         "PLAN_BASELINE"),
    Edge("PLAN_BASELINE",   ("confidence_lt_0_6",),                   (),                         "ASK_SWITCH"),
    Edge("PLAN_BASELINE",   ("need_plan_review",),                    (),                         "PLAN_REVIEW"),
    Edge("PLAN_BASELINE",   ("skip_plan_review",),                    (),                         "OBSERVE"),
    Edge("PLAN_REVIEW",     ("non_blocking_feedback",),               ("feedback_count_lt_3",),   "PLAN_REVIEW"),
    Edge("PLAN_REVIEW",     ("pass_or_feedback_limit_reached",),      (),                         "OBSERVE"),
    Edge("OBSERVE",         ("observe_target_defined",),              (),                         "RESEARCH_FANOUT"),
    Edge("RESEARCH_FANOUT", ("result_arrived",),                      (),                         "RESEARCH_INGEST"),
    Edge("RESEARCH_INGEST", ("artifacts_loaded",),                    (),                         "RESEARCH_EVAL"),
    Edge("RESEARCH_EVAL",   ("need_more_results",),                   (),                         "WAIT_OTHERS"),
    Edge("WAIT_OTHERS",     ("result_arrived",),                      (),                         "RESEARCH_INGEST"),
    Edge("RESEARCH_EVAL",   ("need_replan",),                         (),                         "PLAN_BASELINE"),
    Edge("RESEARCH_EVAL",   ("enough_info",),                         (),                         "DETAIL_DESIGN"),
    Edge("DETAIL_DESIGN",   ("design_ready",),                        (),                         "CODER_HANDOFF"),
    Edge("CODER_HANDOFF",   ("handoff_bundle_ready",),                (),                         "SCHEDULE"),
    Edge("SCHEDULE",        ("confidence_lt_0_6",),                   (),                         "ASK_SWITCH"),
    Edge("SCHEDULE",        ("resource_busy",),                       (),                         "QUEUE"),
    Edge("SCHEDULE",        ("resource_ready",),                      (),                         "DISPATCH"),
    Edge("QUEUE",           ("resource_available",),                  (),                         "DISPATCH"),
    Edge("DISPATCH",        ("dispatch_success",),                    (),                         "CODER_EXEC"),
    Edge("CODER_EXEC",      ("claims_evidence_arrived",),             (),                         "REVIEW_ACCEPT"),
    Edge("REVIEW_ACCEPT",   ("reject_or_retry",),                     (),                         "CODER_HANDOFF"),
    Edge("REVIEW_ACCEPT",   ("requirement_changed_or_blocked",),      (),                         "REPLAN_PATCH"),
    Edge("REVIEW_ACCEPT",   ("pass",),                                (),                         "COMPLETE"),
    Edge("REPLAN_PATCH",    ("patch_applied",),                       (),                         "PLAN_BASELINE"),
    Edge("*",               ("cancel",),                              (),                         "CANCELLED"),
    Edge("*",               ("fatal_error",),                         (),                         "FAILED"),
)
ROLES = ("Orchestrator", "Research Agent", "Coder/Executor", "Reviewer")  # §3
REVIEWS = ("executor review", "orchestrator review")
DELIVERABLES = (  # §4: section, from, to, what is handed over and how much it is needed
    ("4.1", "Research",     "Orchestrator", (("summary.md", "required"), ("memory.jsonl", "required"), ("analysis_meta.json", "recommended"), ("operations.jsonl", "recommended"))),
    ("4.2", "Orchestrator", "Coder",        (("master_task.json", ""), ("detail_design.md", ""), ("acceptance_criteria.json", ""), ("research_bundle[]", ""))),
    ("4.3", "Coder",        "Reviewer",     (("claims.json", ""), ("evidence.json", ""), ("changed_files.json", ""))),
    ("4.4", "Reviewer",     "Orchestrator", (("decision", ""), ("review_level", ""), ("rejected_claims[]", ""), ("residual_risks[]", ""))),
    ("4.5", "Orchestrator", "User",         ()),
)
DECISIONS = ("pass", "retry", "replan")  # §4.4
REVIEW_LEVELS = ("executor", "orchestrator")
CONFIDENCE = (("INTAKE", "PLAN_BASELINE", "SCHEDULE", "REPLAN_PATCH"), 0.6, "ASK_SWITCH")  # §5: below it, there
RESUME_ORDER = ("runnable_by_dependencies", "priority", "newest_update")  # §5
FEEDBACK_CAP = ("PLAN_REVIEW", 3)  # §5: of the same item, where it does not block
EVIDENCE = ("REVIEW_ACCEPT", "reject_or_retry")  # §5: a claim without any
# fmt: on

WORDINGS = {  # the fingerprint of the wording that each identifier stands for
    "goals": "57060c88a36b",
    "diagram": "2a550467af2f",
    "roles": "f18eb331b1d9",
    "deliverables": "5b1f74a89ed9",
    "guards": "60e8fa813e1e",
    "parts": "5304e9d8b0bc",
    "mocks": "1ddb75569794",
    "runnable_by_dependencies": "10c25ef764f6",
    "priority": "3092a5f0dba0",
    "newest_update": "4255bd825812",
}
