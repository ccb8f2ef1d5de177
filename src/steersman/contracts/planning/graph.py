"""ExecutionGraph v0.9.2: what is proposed, in which order, by whom, and on what evidence."""

from typing import Annotated, Literal

from msgspec import Meta

from steersman.contracts.planning.words import (
    BoundedCount,
    CommandEffect,
    ContentId,
    ContentVersion,
    EvidenceRef,
    ExecutionMode,
    HexDigest,
    OptionalContentId,
    PlanPhase,
    ReviewCategory,
    RiskLevel,
    ShortText,
    StrictDocument,
    UtcMoment,
)

NodeType = Literal["phase", "action_proposal", "decision_point", "question", "review_gate"]
EdgeType = Literal["sequential", "parallel", "conditional", "fallback"]
NodeId = Annotated[str, Meta(pattern=r"^n_[a-z0-9_]{1,150}$")]
MAX_GRAPH_NODES = 20_000
CONDITION_MARKER = "\nOnly if: "  # in the description of a phase: before the condition on which it hangs


class GraphNode(StrictDocument, frozen=True, kw_only=True, gc=False):
    """One box of the graph."""

    node_id: NodeId
    node_type: NodeType
    label: Annotated[str, Meta(min_length=1, max_length=400)]
    description: Annotated[str, Meta(max_length=4000)] = ""
    phase_ref: PlanPhase | Literal[""] = ""
    workflow_ref: OptionalContentId = ""
    command_ref: OptionalContentId = ""
    effects: tuple[CommandEffect, ...] = ()
    risk_level: RiskLevel | Literal[""] = ""
    evidence_refs: tuple[EvidenceRef, ...] = ()
    rule_refs: tuple[Annotated[str, Meta(max_length=120)], ...] = ()
    question_ref: Annotated[str, Meta(max_length=120)] = ""
    review_criteria: tuple[ReviewCategory, ...] = ()
    status: Literal["proposed", "excluded", "placeholder"] = "proposed"
    reason: Annotated[str, Meta(max_length=2000)] = ""  # why it is excluded, or how an answer changed it


class GraphEdge(StrictDocument, frozen=True, kw_only=True, gc=False):
    """From one node to another."""

    edge_id: Annotated[str, Meta(pattern=r"^e_[0-9a-f]{16}$")]
    from_node: NodeId
    to_node: NodeId
    edge_type: EdgeType
    condition: Annotated[str, Meta(max_length=400)] = ""
    label: Annotated[str, Meta(max_length=200)] = ""


class Swimlane(StrictDocument, frozen=True, kw_only=True):
    """What one agent answers for."""

    swimlane_id: Annotated[str, Meta(max_length=120)]
    agent_id: ContentId
    role: Annotated[str, Meta(min_length=1, max_length=80)]
    node_refs: tuple[NodeId, ...]


class RegistryVersions(StrictDocument, frozen=True, kw_only=True):
    """Which version of each piece of content was used."""

    workflows: dict[ContentId, ContentVersion]
    agents: dict[ContentId, ContentVersion]
    commands: dict[ContentId, ContentVersion]
    rules: dict[ContentId, ContentVersion]


class GraphLineage(StrictDocument, frozen=True, kw_only=True):
    """What the graph was made from."""

    derived_from_intent: Annotated[str, Meta(max_length=80)]
    intent_checksum: HexDigest
    policy_digest: HexDigest
    facts_digest: HexDigest
    memory_digest: HexDigest
    registry_digest: HexDigest
    # Of every answer and default that holds; a draft has none.
    answers_digest: Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")] = ""
    registry_versions: RegistryVersions
    coordinator_version: Annotated[str, Meta(max_length=40)]


class PlanEstimate(StrictDocument, frozen=True, kw_only=True):
    """A number and what it was worked out from."""

    value: BoundedCount
    unit: Literal["minutes", "points", "files", "commits", "tokens", "micro_usd"]
    basis: tuple[ShortText, ...]


class ExecutionGraph(StrictDocument, frozen=True, kw_only=True):
    """The plan as a graph without cycles; `checksum` is over nodes, edges and swimlanes."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    graph_id: Annotated[str, Meta(pattern=r"^graph_[0-9a-f]{16}$")]
    plan_id: Annotated[str, Meta(pattern=r"^plan_[0-9a-f]{16}$")]
    intent_id: Annotated[str, Meta(max_length=80)]
    created_at: UtcMoment  # of the intent
    stage: Literal["draft", "final"]
    execution_policy: ExecutionMode
    nodes: Annotated[tuple[GraphNode, ...], Meta(min_length=1, max_length=MAX_GRAPH_NODES)]
    edges: tuple[GraphEdge, ...]
    swimlanes: tuple[Swimlane, ...]
    lineage: GraphLineage
    estimated_duration: PlanEstimate
    complexity: PlanEstimate  # 0–100 points
    checksum: HexDigest
