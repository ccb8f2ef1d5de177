"""Specification 001 transcribed as data: the diagram, the guard table, the loop and the red lines.

**Invariant:** nothing here is imported from steersman.
"""

from typing import NamedTuple

STATES = (
    "RECEIVED", "PRECHECKED", "CONTEXT_BUILT", "RULES_EVALUATED", "GRAPH_DRAFTED", "QUESTIONS_EMITTED", "AWAITING_ANSWERS",
    "GRAPH_FINALIZED", "REVIEW_PACK_BUILT", "FROZEN_OUTPUTS", "DONE", "BLOCKED", "ABORTED",
)  # fmt: skip
FINAL = ("DONE", "BLOCKED", "ABORTED")

# fmt: off
DIAGRAM = (  # source, label, target, as drawn
    (None,                "",                              "RECEIVED"),
    ("RECEIVED",          "Intent accepted",               "PRECHECKED"),
    ("PRECHECKED",        "Validation passed",             "CONTEXT_BUILT"),
    ("PRECHECKED",        "Validation failed",             "BLOCKED"),
    ("CONTEXT_BUILT",     "Context ready",                 "RULES_EVALUATED"),
    ("CONTEXT_BUILT",     "MemoryPack unavailable",        "BLOCKED"),
    ("RULES_EVALUATED",   "Rules adjudicated",             "GRAPH_DRAFTED"),
    ("RULES_EVALUATED",   "Hard rule deny",                "ABORTED"),
    ("GRAPH_DRAFTED",     "Uncertainties & policy allows", "QUESTIONS_EMITTED"),
    ("GRAPH_DRAFTED",     "No questions needed",           "GRAPH_FINALIZED"),
    ("GRAPH_DRAFTED",     "Graph invalid",                 "BLOCKED"),
    ("QUESTIONS_EMITTED", "Questions emitted",             "AWAITING_ANSWERS"),
    ("QUESTIONS_EMITTED", "Budget exceeded",               "BLOCKED"),
    ("AWAITING_ANSWERS",  "Answers received",              "GRAPH_FINALIZED"),
    ("AWAITING_ANSWERS",  "Answer conflicts",              "RULES_EVALUATED"),
    ("AWAITING_ANSWERS",  "Timeout / no fallback",         "BLOCKED"),
    ("GRAPH_FINALIZED",   "Graph complete",                "REVIEW_PACK_BUILT"),
    ("GRAPH_FINALIZED",   "Graph incomplete",              "BLOCKED"),
    ("REVIEW_PACK_BUILT", "Review pack ready",             "FROZEN_OUTPUTS"),
    ("REVIEW_PACK_BUILT", "Budget violated",               "BLOCKED"),
    ("FROZEN_OUTPUTS",    "All outputs frozen",            "DONE"),
    ("FROZEN_OUTPUTS",    "Checksum/lineage failed",       "BLOCKED"),
)
# fmt: on


class Line(NamedTuple):
    """One line of the guard table: the guard that lets it pass, and those that send it elsewhere, by our names."""

    source: str
    to: str
    conditions: str  # the specification's words
    passes: str  # the guard of ours that says them
    stops: tuple[tuple[str, str], ...]  # (guard, target) for each way to fail


# fmt: off
GUARDS = (
    Line("RECEIVED", "PRECHECKED", "Always passes", "otherwise", ()),
    Line("PRECHECKED", "CONTEXT_BUILT", "Schema valid, checksum match, registry refs exist, red lines pass", "valid", (
        ("payload", "ABORTED"), ("schema_broken", "BLOCKED"), ("checksum_wrong", "BLOCKED"), ("asks_alone", "BLOCKED"),
        ("risks_alone", "BLOCKED"), ("unevidenced_command", "BLOCKED"), ("not_registered", "BLOCKED"), ("inactive", "BLOCKED"),
        ("drifted", "BLOCKED"), ("policy_broken", "BLOCKED"), ("registry_broken", "BLOCKED"), ("other_mode", "BLOCKED"))),
    Line("CONTEXT_BUILT", "RULES_EVALUATED", "MemoryPack available, FactPack available", "ready", (
        ("no_memory", "BLOCKED"), ("no_facts", "BLOCKED"), ("no_policy", "BLOCKED"))),
    Line("RULES_EVALUATED", "GRAPH_DRAFTED", "All rules decidable, no hard denies", "decided", (
        ("routed_away", "ABORTED"), ("conflicting", "ABORTED"), ("denied", "ABORTED"), ("undecidable", "BLOCKED"),
        ("unexplained", "BLOCKED"), ("forbidden", "BLOCKED"))),
    Line("GRAPH_DRAFTED", "QUESTIONS_EMITTED", "Policy allows questions, uncertainties exist", "uncertain", (
        ("cyclic", "BLOCKED"), ("unmapped", "BLOCKED"), ("unassigned", "BLOCKED"), ("unsupported", "BLOCKED"))),
    Line("GRAPH_DRAFTED", "GRAPH_FINALIZED", "No uncertainties OR full_auto mode", "clear", ()),
    Line("QUESTIONS_EMITTED", "AWAITING_ANSWERS", "Budget not exceeded, all questions have evidence", "out", (
        ("over_budget", "BLOCKED"), ("unevidenced", "BLOCKED"), ("undefaulted", "BLOCKED"), ("unfit", "BLOCKED"))),
    Line("AWAITING_ANSWERS", "GRAPH_FINALIZED", "Answers valid, no rule conflicts", "answered", (
        ("malformed", "AWAITING_ANSWERS"), ("partial", "AWAITING_ANSWERS"), ("contradicts", "RULES_EVALUATED"), ("blocks", "BLOCKED"))),
    Line("GRAPH_FINALIZED", "REVIEW_PACK_BUILT", "Graph complete, no placeholders", "whole", (
        ("stopped", "BLOCKED"), ("overruled", "BLOCKED"), ("emptied", "BLOCKED"), ("risky", "BLOCKED"), ("holes", "BLOCKED"))),
    Line("REVIEW_PACK_BUILT", "FROZEN_OUTPUTS", "Budgets satisfied, review requirements met", "reviewable", (
        ("overspent", "BLOCKED"), ("unreviewed", "BLOCKED"), ("unjustified", "BLOCKED"))),
    Line("FROZEN_OUTPUTS", "DONE", "Checksums valid, lineage complete", "frozen", (
        ("ill_formed", "ABORTED"), ("unmatched", "BLOCKED"), ("untraced", "BLOCKED"))),
)
# fmt: on
LOOP = ("AWAITING_ANSWERS", "RULES_EVALUATED", 3)  # §Loop Detection: the only way back, and how often
ORDER = {name: n for n, name in enumerate(STATES)}
