"""The planner's one vocabulary: every document uses these words and no other.

Where the systems behind the specification have two words for a thing, one was chosen; `FORMER` maps the others, and the
page on the planner's words says why.
**Invariant:** a word means the same in an intent, a rule, a graph and an answer.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

CommandEffect = Literal["read", "write", "network", "deploy", "security", "data"]
RiskLevel = Literal["low", "medium", "high", "critical"]
# Of a run that may have ended before it was.
AssessedRisk = Literal["low", "medium", "high", "critical", "unknown"]
ExecutionMode = Literal["interactive", "semi_auto", "full_auto"]
QuestionPolicy = Literal["conceptual_only", "blockers_only", "never"]
PlanPhase = Literal[
    "setup", "analysis", "design", "implementation", "validation", "review", "release", "operations", "postmortem",
]  # fmt: skip
ProjectArea = Literal["frontend", "backend", "infra", "docs", "tests", "ops", "security", "data"]
ReviewCategory = Literal["security", "data", "release", "architecture", "cost", "compliance"]
ContentKind = Literal["workflow", "agent", "command", "rule"]
ContentStatus = Literal["draft", "active", "deprecated", "frozen"]
RuleSeverity = Literal["info", "warn", "error", "block"]
DecisionKind = Literal["allow", "warn", "require_review", "deny"]
QuestionKind = Literal["blocker", "clarification", "optimization", "risk_mitigation"]
RiskProfile = Literal["safe", "aggressive_safe", "aggressive"]
ModelPlacement = Literal["local", "cloud"]
MemoryScope = Literal["project", "repo", "task", "agent"]

# From harmless to grave; a later word is the stricter one.
RISK_LEVELS: tuple[RiskLevel, ...] = ("low", "medium", "high", "critical")
RULE_SEVERITIES: tuple[RuleSeverity, ...] = ("info", "warn", "error", "block")
DECISION_KINDS: tuple[DecisionKind, ...] = ("allow", "warn", "require_review", "deny")
# From many questions to none.
EXECUTION_MODES: tuple[ExecutionMode, ...] = ("interactive", "semi_auto", "full_auto")
QUESTION_POLICIES: tuple[QuestionPolicy, ...] = ("conceptual_only", "blockers_only", "never")

FORMER_WORDS = {
    "delete": "write",  # an effect of graphs; a command says `destructive` beside it
    "configure": "write",  # the same
    "decision_needed": "clarification",  # a kind of question in policies
    "all": "conceptual_only",  # a question policy in question packs
}

ContentId = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{2,79}$")]
ContentVersion = Annotated[str, Meta(pattern=r"^(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})$")]
UtcMoment = Annotated[
    str,
    Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$", max_length=20),
]  # fmt: skip
HexDigest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
OptionalContentId = Annotated[str, Meta(pattern=r"^([a-z][a-z0-9_]{2,79})?$")]
OptionalVersion = Annotated[str, Meta(pattern=r"^(\d{1,6}\.\d{1,6}\.\d{1,6})?$")]
OptionalDigest = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")]
# Where something can be looked up, by the first part of a reference such as fact://language/python.
EVIDENCE_SCHEMES = ("scan", "fact", "doc", "memory", "registry", "rule", "intent", "answer")
EvidenceRef = Annotated[
    str, Meta(pattern=r"^[a-z][a-z0-9+.-]{1,20}://[^\s\x00-\x1f\x7f]{1,480}$", max_length=512)
]
ShortText = Annotated[str, Meta(min_length=1, max_length=400, pattern=r"\S")]
LongText = Annotated[str, Meta(min_length=1, max_length=4000, pattern=r"\S")]
BoundedCount = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class StrictDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A closed value: what is not declared is refused."""


def gravest_risk(*risks: RiskLevel) -> RiskLevel:
    """The gravest of some risks; low where there is none."""
    return max(risks, key=RISK_LEVELS.index, default="low")
