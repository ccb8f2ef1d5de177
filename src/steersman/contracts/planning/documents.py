"""Every planning document by its file name: what has a JSON Schema, and what outputs are held against."""

from functools import cache
from typing import Any

import msgspec

from steersman.contracts.planning.content import (
    AgentProfile,
    CommandSpec,
    RegistryRule,
    RegistrySnapshot,
    Workflow,
)
from steersman.contracts.planning.context import ContextBundle, FactPack, MemoryPack
from steersman.contracts.planning.decisions import PrecheckReport, RiskAssessment, RoutingAdvice, RuleDecision
from steersman.contracts.planning.forms import AuditLog, CoordinatorRunTape
from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.questions import AnswerPack, QuestionPack, SettledQuestions
from steersman.contracts.planning.review import CoordinatorRunSummary, FailurePack, PlanManifest, ReviewPack

PLANNING_DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "execution_intent": ExecutionIntent,
    "execution_policy": ExecutionPolicy,
    "workflow": Workflow,
    "agent": AgentProfile,
    "command": CommandSpec,
    "rule": RegistryRule,
    "registry_snapshot": RegistrySnapshot,
    "memory_pack": MemoryPack,
    "fact_pack": FactPack,
    "context_bundle": ContextBundle,
    "precheck_report": PrecheckReport,
    "rule_decision": RuleDecision,
    "risk_assessment": RiskAssessment,
    "routing_advice": RoutingAdvice,
    "execution_graph": ExecutionGraph,
    "question_pack": QuestionPack,
    "answer_pack": AnswerPack,
    "settled_questions": SettledQuestions,
    "review_pack": ReviewPack,
    "failure_pack": FailurePack,
    "manifest": PlanManifest,
    "coordinator_run_tape": CoordinatorRunTape,
    "audit_log": AuditLog,
    "coordinator_run_summary": CoordinatorRunSummary,
}


@cache
def planning_document_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one document, for readers alone: every caller gets the same."""
    header = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name.replace("_", " ")}
    return {**header, **msgspec.json.schema(PLANNING_DOCUMENTS[name])}
