"""Each line of specification 001's guard table beside the guards of coordinator that ask it: written down, not derived.

**Invariant:** nothing here is imported from steersman.
"""

from typing import NamedTuple


class Asked(NamedTuple):
    """The guard that lets a transition pass, and those that send it elsewhere, by our names."""

    passes: str
    stops: tuple[tuple[str, str], ...]  # (guard, target) for each way to fail


# fmt: off
COORDINATOR_GUARDS = {
    ("RECEIVED", "PRECHECKED"): Asked("otherwise", ()),
    ("PRECHECKED", "CONTEXT_BUILT"): Asked("valid", (
        ("payload", "ABORTED"), ("schema_broken", "BLOCKED"), ("checksum_wrong", "BLOCKED"), ("asks_alone", "BLOCKED"),
        ("risks_alone", "BLOCKED"), ("unevidenced_command", "BLOCKED"), ("not_registered", "BLOCKED"), ("inactive", "BLOCKED"),
        ("drifted", "BLOCKED"), ("policy_broken", "BLOCKED"), ("registry_broken", "BLOCKED"), ("other_mode", "BLOCKED"))),
    ("CONTEXT_BUILT", "RULES_EVALUATED"): Asked("ready", (
        ("no_memory", "BLOCKED"), ("no_facts", "BLOCKED"), ("no_policy", "BLOCKED"))),
    ("RULES_EVALUATED", "GRAPH_DRAFTED"): Asked("decided", (
        ("routed_away", "ABORTED"), ("conflicting", "ABORTED"), ("denied", "ABORTED"), ("undecidable", "BLOCKED"),
        ("unexplained", "BLOCKED"), ("forbidden", "BLOCKED"))),
    ("GRAPH_DRAFTED", "QUESTIONS_EMITTED"): Asked("uncertain", (
        ("cyclic", "BLOCKED"), ("unmapped", "BLOCKED"), ("unassigned", "BLOCKED"), ("unsupported", "BLOCKED"))),
    ("GRAPH_DRAFTED", "GRAPH_FINALIZED"): Asked("clear", ()),
    ("QUESTIONS_EMITTED", "AWAITING_ANSWERS"): Asked("out", (
        ("over_budget", "BLOCKED"), ("unevidenced", "BLOCKED"), ("undefaulted", "BLOCKED"), ("unfit", "BLOCKED"))),
    ("AWAITING_ANSWERS", "GRAPH_FINALIZED"): Asked("answered", (
        ("malformed", "AWAITING_ANSWERS"), ("partial", "AWAITING_ANSWERS"), ("contradicts", "RULES_EVALUATED"), ("blocks", "BLOCKED"))),
    ("GRAPH_FINALIZED", "REVIEW_PACK_BUILT"): Asked("whole", (
        ("stopped", "BLOCKED"), ("overruled", "BLOCKED"), ("emptied", "BLOCKED"), ("risky", "BLOCKED"), ("holes", "BLOCKED"))),
    ("REVIEW_PACK_BUILT", "FROZEN_OUTPUTS"): Asked("reviewable", (
        ("overspent", "BLOCKED"), ("unreviewed", "BLOCKED"), ("unjustified", "BLOCKED"))),
    ("FROZEN_OUTPUTS", "DONE"): Asked("frozen", (
        ("ill_formed", "ABORTED"), ("unmatched", "BLOCKED"), ("untraced", "BLOCKED"))),
}
# fmt: on
