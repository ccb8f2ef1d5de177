"""Specification 003: the states, diagram, triggers and gates of feature, a machine to come."""

from tests.specifications.documents import Document

DOCUMENT = Document(
    "003_3284eee77730a047.txt", "5a0a26f3867b2eb8a8c74470dff8d9030358dad837cfa4455c024474e93dbdc8"
)
# fmt: off
SECTIONS = ((1, "states"), (2, "transitions"), (3, "triggers"), (4, "persistence"))
STATES = (  # §1: state, phase
    ("IDLE",         ""),
    ("DRAFTING",     "1"),
    ("REVIEWING",    "1.5"),
    ("CONFIRMING",   "gates"),
    ("DECOMPOSING",  "2"),
    ("IMPLEMENTING", "3"),
    ("BLOCKED",      ""),
)
GATES = ("draft", "review", "manifest")  # §1: what CONFIRMING waits for
DIAGRAM = (  # §2: source, label, target, in the order drawn; a phase stands for its first state
    (None,           "",                      "IDLE"),
    ("IDLE",         "user_asks",             "DRAFTING"),
    ("DRAFTING",     "draft_done_gate_1",     "CONFIRMING"),
    ("CONFIRMING",   "user_confirms_review",  "REVIEWING"),
    ("CONFIRMING",   "user_cancels",          "IDLE"),
    ("REVIEWING",    "review_done_gate_2",    "CONFIRMING"),
    ("CONFIRMING",   "user_confirms_split",   "DECOMPOSING"),
    ("DECOMPOSING",  "manifest_done_gate_3",  "CONFIRMING"),
    ("CONFIRMING",   "user_confirms_build",   "IMPLEMENTING"),
    ("IMPLEMENTING", "build_or_tests_fail",   "BLOCKED"),
    ("BLOCKED",      "repaired_or_helped",    "IMPLEMENTING"),
    ("IMPLEMENTING", "report_delivered",      "IDLE"),
)
TRIGGERS = (  # §3: event, source, target, condition
    ("START_DRAFT",      "IDLE",         "DRAFTING",     "draft_command_or_request"),
    ("DRAFT_DONE",       "DRAFTING",     "CONFIRMING",   "draft_is_made"),
    ("START_REVIEW",     "CONFIRMING",   "REVIEWING",    "review_command_or_yes"),
    ("REVIEW_DONE",      "REVIEWING",    "CONFIRMING",   "reviews_are_summed_up"),
    ("START_DECOMPOSE",  "CONFIRMING",   "DECOMPOSING",  "decompose_command_or_yes"),
    ("MANIFEST_DONE",    "DECOMPOSING",  "CONFIRMING",   "manifest_is_made"),
    ("START_IMPLEMENT",  "CONFIRMING",   "IMPLEMENTING", "feature_flow_command_or_yes"),
    ("COMPILATION_FAIL", "IMPLEMENTING", "BLOCKED",      "build_gate_fails"),
    ("ALL_DONE",         "IMPLEMENTING", "IDLE",         "report_is_made"),
)
COMMANDS = (  # §3
    ("START_DRAFT", "/draft"), ("START_REVIEW", "/review"), ("START_DECOMPOSE", "/decompose"), ("START_IMPLEMENT", "/feature-flow"),
)
FILE = "active_context.md"  # §4
FIELDS = ("session_id", "task_status", "current_phase", "last_gate")
# fmt: on

WORDINGS = {  # the fingerprint of the wording that each identifier stands for
    "states": "26f786d4f44a",
    "transitions": "cb91ba703bd5",
    "triggers": "5cafc5af9b96",
    "persistence": "00b33e0ea0f8",
    "user_asks": "716a050f21af",
    "draft_done_gate_1": "cce927d6c05e",
    "user_confirms_review": "e040294b9654",
    "user_cancels": "d8ccc062b1d5",
    "review_done_gate_2": "9b637dfb30ad",
    "user_confirms_split": "065b43e427aa",
    "manifest_done_gate_3": "bb418bcbd498",
    "user_confirms_build": "b915f0256a22",
    "build_or_tests_fail": "dc42c77259cf",
    "repaired_or_helped": "aa74eaa1b6ac",
    "report_delivered": "0c0003b0745d",
    "draft_command_or_request": "cce4f3e58e89",
    "draft_is_made": "fbd6b295464c",
    "review_command_or_yes": "76c60759fbec",
    "reviews_are_summed_up": "05e6251409b7",
    "decompose_command_or_yes": "b820b4c5280a",
    "manifest_is_made": "420ed25ce97b",
    "feature_flow_command_or_yes": "4cf400fa6f75",
    "build_gate_fails": "32f60e5c8298",
    "report_is_made": "41e03a0a2e3e",
}
