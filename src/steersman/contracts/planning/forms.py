"""CoordinatorRunTape and AuditLog: two forms in which the specification wants a planner's tape rendered.

**Invariant:** views of the tape, never its source; times are here and in no frozen file.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from steersman.contracts.planning.review import FailureType, RecoverySuggestion
from steersman.contracts.planning.words import BoundedCount, StrictDocument

AuditMoment = Annotated[str, Meta(max_length=40)]
AuditWord = Annotated[str, Meta(max_length=200)]


class GuardEvaluation(StrictDocument, frozen=True, kw_only=True):
    """One guard, as it was answered."""

    guard_name: AuditWord
    passed: bool
    reason: Annotated[str, Meta(max_length=1000)]
    evidence_refs: tuple[str, ...] = ()


class ProducedOutput(StrictDocument, frozen=True, kw_only=True):
    """One document that a state has made."""

    artifact_type: AuditWord
    artifact_id: AuditWord
    checksum: AuditWord


class StateRecord(StrictDocument, frozen=True, kw_only=True):
    """One transition."""

    sequence: BoundedCount
    from_state: AuditWord  # INIT before the first
    to_state: AuditWord
    timestamp: AuditMoment
    trigger: AuditWord
    actor: AuditWord  # the person whose event it is; else steersman
    guards_evaluated: tuple[GuardEvaluation, ...]
    outputs_produced: tuple[ProducedOutput, ...]
    duration_ms: BoundedCount


class DecisionRecord(StrictDocument, frozen=True, kw_only=True):
    """One decision, what it went by, and what else was looked at."""

    decision_id: AuditWord
    decision_type: Literal[
        "rule_adjudication",
        "model_routing",
        "question_emission",
        "graph_building",
        "risk_assessment",
        "policy_check",
    ]
    inputs: tuple[str, ...]
    rationale: Annotated[str, Meta(max_length=4000)]
    outcome: AuditWord
    alternatives_considered: tuple[str, ...] = ()


class FailureInfo(StrictDocument, frozen=True, kw_only=True):
    """Why it failed."""

    failure_type: FailureType
    failure_message: Annotated[str, Meta(max_length=2000)]
    failed_at_state: AuditWord
    recovery_suggestions: tuple[RecoverySuggestion, ...]


class CoordinatorRunTape(StrictDocument, frozen=True, kw_only=True):
    """A planner's run in the specification's form."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    run_id: AuditWord
    plan_id: AuditWord
    intent_id: AuditWord
    coordinator_version: AuditWord
    started_at: AuditMoment
    completed_at: AuditMoment
    final_state: AuditWord
    states: tuple[StateRecord, ...]
    decisions: tuple[DecisionRecord, ...]
    rule_evaluations: tuple[dict[str, Any], ...]
    model_routing_decisions: tuple[dict[str, Any], ...]
    failure_info: FailureInfo | None
    metadata: dict[str, int]


class AuditRecord(StrictDocument, frozen=True, kw_only=True):
    """One line of the audit log."""

    log_id: AuditWord
    event_type: Literal[
        "run_started",
        "run_completed",
        "run_failed",
        "state_transition",
        "rule_adjudication",
        "model_selected",
        "question_emitted",
        "answer_received",
        "conflict_detected",
        "conflict_resolved",
        "red_line_check",
        "policy_enforcement",
    ]
    coordinator_run_id: AuditWord
    timestamp: AuditMoment
    operator: AuditWord
    critical: bool = False
    record: dict[str, Any]


class AuditLog(StrictDocument, frozen=True, kw_only=True):
    """All of them, in order."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    coordinator_run_id: AuditWord
    entries: tuple[AuditRecord, ...]
