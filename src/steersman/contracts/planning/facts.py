"""What the planner's effects bring back: numbers, words of the vocabulary, and names of payloads.

**Invariant:** no field says whether a run may go on; that is in the machine's namings.
"""

import msgspec

from steersman.contracts.planning.words import RiskLevel


class PrecheckFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Everything that was looked at before anything is planned, counted."""

    looked: bool = False  # false: the intent could not even be read
    schema_problems: int = 0
    checksum_matches: bool = False
    payload: int = 0  # forbidden key names
    broken: tuple[str, ...] = ()  # red lines I2 to I5
    missing: int = 0
    inactive: int = 0
    drifted: int = 0  # or not pinned
    policy_problems: int = 0
    registry_problems: int = 0  # of the registry itself
    mode: str = ""  # the stricter of intent and policy
    intent_id: str = ""
    registry: str = ""  # the digest of the registry that holds for the whole run
    report_ref: str = ""
    report_digest: str = ""
    failure_ref: str = ""
    detail_ref: str = ""  # what broke, where something did


class ContextFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Memory, facts and policy, as far as they could be had."""

    memory: bool = False  # could be asked
    memories: int = 0
    threshold: int = 1
    facts: int = 0
    policy: bool = False
    plan_id: str = ""
    bundle_ref: str = ""
    bundle_digest: str = ""
    failure_ref: str = ""
    detail_ref: str = ""  # what broke, where something did


class RulesFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What all rules say about all planned commands, counted."""

    commands: int = 0
    decided: int = 0  # commands with a decision
    undecidable: int = 0
    conflicts: int = 0
    hard_denies: int = 0
    soft_denies: int = 0
    unexplained: int = 0  # denies without a reason
    violations: int = 0  # advice for which the policy leaves no model
    forbidden: int = 0  # commands that the policy forbids
    overall_risk: RiskLevel = "low"
    decisions_ref: str = ""
    decisions_digest: str = ""
    risk_ref: str = ""
    routing_ref: str = ""
    failure_ref: str = ""
    detail_ref: str = ""  # what broke, where something did


class GraphFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A graph, counted: what is wrong with it, and what is not known yet."""

    nodes: int = 0
    cycles: int = 0
    unmapped: int = 0  # phases without a node
    unassigned: int = 0  # agents without a lane, nodes without one
    unsupported: int = 0  # actions without evidence
    incomplete: int = 0  # nodes that lack a field
    placeholders: int = 0
    uncertainties: int = 0
    askable: int = 0  # of them, that policy lets us ask
    blocked: int = 0  # that stop the run when their default holds
    ruled_out: int = 0  # commands that rules speak against now that the rest is settled
    emptied: int = 0  # phases that have to show something and have nothing left
    alone: int = 0  # a risk that full_auto does not take
    decisions_ref: str = ""  # what the rules say now that the rest is settled
    decisions_digest: str = ""
    overall_risk: RiskLevel = "low"  # of what is left
    risk_ref: str = ""
    graph_ref: str = ""
    graph_digest: str = ""
    uncertainties_ref: str = ""
    settled_ref: str = ""
    failure_ref: str = ""
    detail_ref: str = ""  # what broke, where something did


class QuestionFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The questions of one round, counted."""

    asked: int = 0
    unevidenced: int = 0
    undefaulted: int = 0  # without a default, or a critical one whose default approves
    unfit: int = 0  # of a kind or level that the policy does not allow
    over: int = 0  # blockers that the budget does not cover
    consumed: int = 0  # of the budget, over all rounds
    pack_ref: str = ""
    pack_digest: str = ""
    failure_ref: str = ""
    detail_ref: str = ""  # what broke, where something did


class AnswerFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Answers held against questions and rules, counted."""

    problems: int = 0  # of form
    unanswered: int = 0  # questions that have to be answered
    weighed: int = 0  # questions for which something holds now
    conflicts: int = 0
    blocked: int = 0  # answers or defaults that stop the run
    left_ms: int = 0  # of the time for answers, where they are refused
    settled_ref: str = ""
    problems_ref: str = ""
    conflicts_ref: str = ""
    failure_ref: str = ""
    detail_ref: str = ""  # what broke, where something did


class ReviewFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A review pack, counted."""

    uncovered: int = 0  # reviews that are asked for and have no gate
    over: tuple[str, ...] = ()  # budgets that do not suffice
    unjustified: int = 0  # risks without evidence
    pack_ref: str = ""
    pack_digest: str = ""
    failure_ref: str = ""
    detail_ref: str = ""  # what broke, where something did


class FreezeFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Outputs written and read back, or why not."""

    files: int = 0
    unmatched: int = 0  # whose digest is not the one that was worked out
    untraced: int = 0  # parts of the lineage that are missing
    malformed: int = 0  # generated documents that break their schema
    manifest_ref: str = ""
    manifest_digest: str = ""
    signed: bool = False
    failure_ref: str = ""
    detail_ref: str = ""  # what broke, where something did
