"""Each transition of specification 002, §3, beside the event and the guards of task: written down, not derived.

**Invariant:** nothing here is imported from steersman.
"""

# fmt: off
# A transition, the event that takes it, the guards that have to say yes, and those that would not let it.
TASK_GUARDS = {
    "3.1":  ("planning",    "plan_review", "planning_succeeded", ("planned",),      ("damage_found", "questions_left", "no_scope")),
    "3.2":  ("plan_review", "codegen",     "review_ok",          ("plan_ok",),      ("damage_found", "plan_blocked")),
    "3.4":  ("codegen",     "review",      "codegen_completed",  ("built",),        ("damage_found", "says_unclear", "says_mismatch", "leaves_plan", "empty")),
    "3.6":  ("review",      "test",        "review_passes",      ("passes",),       ("damage_found", "flawed")),
    "3.8":  ("test",        "accept",      "tests_complete",     ("proven",),       ("damage_found", "unproven", "touched", "doubted")),
    "3.10": ("accept",      "done",        "accepted",           ("done_well",),    ()),
    "3.12": ("revert",      "done",        "revert_recorded",    ("revert_done",),  ("damage_found",)),
}
# §3.3, §3.5, §3.7, §3.9, §3.11, §6: what sends a task back, or out.
TASK_RETURNS = {
    "3.3 blocked":       ("plan_review", "planning",    "review_blocked"),
    "3.3 needs changes": ("plan_review", "planning",    "review_needs_changes"),
    "3.5 scope":         ("codegen",     "planning",    "scope_mismatch"),
    "3.5 parts missing": ("codegen",     "plan_review", "plan_unclear"),
    "3.7 code issues":   ("review",      "codegen",     "needs_code_changes"),
    "3.7 plan issues":   ("review",      "planning",    "plan_flawed"),
    "3.9 failures":      ("test",        "codegen",     "test_failures"),
    "3.11 requested":    ("accept",      "revert",      "revert_requested"),
}
# fmt: on
