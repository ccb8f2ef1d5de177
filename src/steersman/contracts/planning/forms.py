"""CoordinatorRunTape and AuditLog: two forms in which the specification wants a planner's tape rendered.

**Invariant:** views of the tape, never its source; times are here and in no frozen file.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from steersman.contracts.planning.review import FailureType, Recovery
from steersman.contracts.planning.words import Count, Document

Moment = Annotated[str, Meta(max_length=40)]
Word = Annotated[str, Meta(max_length=200)]


class GuardEvaluated(Document, frozen=True, kw_only=True):
    """One guard, as it was answered."""

    guard_name: Word
    passed: bool
    reason: Annotated[str, Meta(max_length=1000)]
    evidence_refs: tuple[str, ...] = ()


class OutputProduced(Document, frozen=True, kw_only=True):
    """One document that a state has made."""

    artifact_type: Word
    artifact_id: Word
    checksum: Word


class StateRecord(Document, frozen=True, kw_only=True):
    """One transition."""

    sequence: Count
    from_state: Word  # INIT before the first
    to_state: Word
    timestamp: Moment
    trigger: Word
    actor: Word  # the person whose event it is; else steersman
    guards_evaluated: tuple[GuardEvaluated, ...]
    outputs_produced: tuple[OutputProduced, ...]
    duration_ms: Count


class DecisionRecord(Document, frozen=True, kw_only=True):
    """One decision, what it went by, and what else was looked at."""

    decision_id: Word
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
    outcome: Word
    alternatives_considered: tuple[str, ...] = ()


class FailureInfo(Document, frozen=True, kw_only=True):
    """Why it failed."""

    failure_type: FailureType
    failure_message: Annotated[str, Meta(max_length=2000)]
    failed_at_state: Word
    recovery_suggestions: tuple[Recovery, ...]


class CoordinatorRunTape(Document, frozen=True, kw_only=True):
    """A planner's run in the specification's form."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    run_id: Word
    plan_id: Word
    intent_id: Word
    coordinator_version: Word
    started_at: Moment
    completed_at: Moment
    final_state: Word
    states: tuple[StateRecord, ...]
    decisions: tuple[DecisionRecord, ...]
    rule_evaluations: tuple[dict[str, Any], ...]
    model_routing_decisions: tuple[dict[str, Any], ...]
    failure_info: FailureInfo | None
    metadata: dict[str, int]


class AuditRecord(Document, frozen=True, kw_only=True):
    """One line of the audit log."""

    log_id: Word
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
    coordinator_run_id: Word
    timestamp: Moment
    operator: Word
    critical: bool = False
    record: dict[str, Any]


class AuditLog(Document, frozen=True, kw_only=True):
    """All of them, in order."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    coordinator_run_id: Word
    entries: tuple[AuditRecord, ...]
