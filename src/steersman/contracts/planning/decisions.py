"""PrecheckReport, RuleDecision, RiskAssessment and RoutingAdvice: what the planner has found, with its reasons."""

from typing import Annotated, Literal

from msgspec import Meta

from steersman.contracts.planning.words import (
    BoundedCount,
    ContentId,
    ContentKind,
    ContentVersion,
    DecisionKind,
    EvidenceRef,
    HexDigest,
    ModelPlacement,
    OptionalDigest,
    OptionalVersion,
    ReviewCategory,
    RiskLevel,
    RuleSeverity,
    ShortText,
    StrictDocument,
)

RedLine = Literal["I1", "I2", "I3", "I4", "I5"]


class DocumentProblem(StrictDocument, frozen=True, kw_only=True):
    """One problem: what is wrong, where, and how to fix it."""

    field: Annotated[str, Meta(max_length=400)]  # a path such as planned_commands[2].evidence_refs
    message: Annotated[str, Meta(min_length=1, max_length=1000)]
    fix: Annotated[str, Meta(max_length=1000)] = ""
    line: Annotated[int, Meta(ge=0)] = 0  # of the file it was read from; 0: not known


class RedLineCheck(StrictDocument, frozen=True, kw_only=True):
    """One red line looked at."""

    red_line: RedLine
    passed: bool
    details: tuple[DocumentProblem, ...] = ()


class RegistryReference(StrictDocument, frozen=True, kw_only=True):
    """One id that an intent names, and what the registry has for it."""

    kind: ContentKind
    id: ContentId
    found: Literal["usable", "missing", "inactive", "drifted", "unpinned"]
    version: OptionalVersion = ""
    pinned: Annotated[str, Meta(max_length=120)] = ""
    digest: OptionalDigest = ""
    # Of the intent: where it is named first, else where it is pinned.
    field: Annotated[str, Meta(max_length=400)] = ""
    line: Annotated[int, Meta(ge=0)] = 0


class PrecheckReport(StrictDocument, frozen=True, kw_only=True):
    """Everything that is looked at before anything is planned; each is looked at, whatever the others say."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    intent_id: Annotated[str, Meta(max_length=80)]
    schema_valid: bool
    schema_problems: tuple[DocumentProblem, ...]
    checksum_matches: bool
    checksum_expected: HexDigest
    red_lines: tuple[RedLineCheck, ...]
    execution_payload: tuple[DocumentProblem, ...]  # forbidden key names, at any depth
    references: tuple[RegistryReference, ...]
    registry_digest: HexDigest
    policy_problems: tuple[DocumentProblem, ...]


class RuleOutcome(StrictDocument, frozen=True, kw_only=True):
    """One rule on one command: whether it holds, or why that cannot be decided."""

    rule_id: ContentId
    rule_version: ContentVersion
    severity: RuleSeverity
    decision: DecisionKind
    outcome: Literal["fired", "silent", "undecidable"]
    evidence_used: tuple[EvidenceRef, ...]
    reason: Annotated[str, Meta(max_length=1000)]


class RuleDecision(StrictDocument, frozen=True, kw_only=True):
    """What all rules together say about one planned command."""

    decision_id: Annotated[str, Meta(max_length=120)]
    command_id: ContentId
    decision: DecisionKind
    severity: RuleSeverity
    hard: bool  # a deny that ends the run
    undecidable: bool
    conflict: Annotated[str, Meta(max_length=1000)] = ""  # why no order resolves it
    evidence_used: tuple[EvidenceRef, ...]
    reason: Annotated[str, Meta(min_length=1, max_length=2000)]
    required_changes: tuple[ShortText, ...] = ()
    review: tuple[ReviewCategory, ...] = ()
    rules: tuple[RuleOutcome, ...]


class RiskFactor(StrictDocument, frozen=True, kw_only=True):
    """Something that makes it dangerous, and how we know."""

    risk: RiskLevel
    what: Annotated[str, Meta(min_length=1, max_length=1000)]
    evidence_refs: tuple[EvidenceRef, ...]


class RiskAssessment(StrictDocument, frozen=True, kw_only=True):
    """The danger of the whole plan: the gravest of its factors."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    overall_risk: RiskLevel
    stated_risk: RiskLevel  # by the intent
    factors: tuple[RiskFactor, ...]
    requires_review: tuple[ReviewCategory, ...]


class RoutingAdvice(StrictDocument, frozen=True, kw_only=True):
    """Which model would suit an agent: advice, never a decision."""

    agent_id: ContentId
    task_type: Annotated[str, Meta(max_length=80)]
    model: Annotated[str, Meta(max_length=400)]  # empty: the policy leaves none
    placement: ModelPlacement | Literal[""]
    sensitive: bool
    tokens: BoundedCount
    micro_usd: BoundedCount
    reason: Annotated[str, Meta(min_length=1, max_length=1000)]
    fallback: Annotated[str, Meta(max_length=400)] = ""
    violation: bool = False
