"""The planner's one vocabulary: every document uses these words and no other.

Where the systems behind the specification have two words for a thing, one was chosen; `FORMER` maps the others, and the
page on the planner's words says why.
**Invariant:** a word means the same in an intent, a rule, a graph and an answer.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Effect = Literal["read", "write", "network", "deploy", "security", "data"]
Risk = Literal["low", "medium", "high", "critical"]
Assessed = Literal[
    "low", "medium", "high", "critical", "unknown"
]  # of a run that may have ended before it was
Mode = Literal["interactive", "semi_auto", "full_auto"]
Asking = Literal["conceptual_only", "blockers_only", "never"]
Phase = Literal[
    "setup", "analysis", "design", "implementation", "validation", "review", "release", "operations", "postmortem",
]  # fmt: skip
Area = Literal["frontend", "backend", "infra", "docs", "tests", "ops", "security", "data"]
Review = Literal["security", "data", "release", "architecture", "cost", "compliance"]
Kind = Literal["workflow", "agent", "command", "rule"]
Status = Literal["draft", "active", "deprecated", "frozen"]
Severity = Literal["info", "warn", "error", "block"]
Decision = Literal["allow", "warn", "require_review", "deny"]
Question = Literal["blocker", "clarification", "optimization", "risk_mitigation"]
Profile = Literal["safe", "aggressive_safe", "aggressive"]
Placement = Literal["local", "cloud"]
Scope = Literal["project", "repo", "task", "agent"]

# From harmless to grave; a later word is the stricter one.
RISKS: tuple[Risk, ...] = ("low", "medium", "high", "critical")
SEVERITIES: tuple[Severity, ...] = ("info", "warn", "error", "block")
DECISIONS: tuple[Decision, ...] = ("allow", "warn", "require_review", "deny")
# From many questions to none.
MODES: tuple[Mode, ...] = ("interactive", "semi_auto", "full_auto")
ASKINGS: tuple[Asking, ...] = ("conceptual_only", "blockers_only", "never")

FORMER = {
    "delete": "write",  # an effect of graphs; a command says `destructive` beside it
    "configure": "write",  # the same
    "decision_needed": "clarification",  # a kind of question in policies
    "all": "conceptual_only",  # a question policy in question packs
}

Id = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{2,79}$")]
Version = Annotated[str, Meta(pattern=r"^(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})$")]
Moment = Annotated[
    str,
    Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$", max_length=20),
]  # fmt: skip
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
MaybeId = Annotated[str, Meta(pattern=r"^([a-z][a-z0-9_]{2,79})?$")]
MaybeVersion = Annotated[str, Meta(pattern=r"^(\d{1,6}\.\d{1,6}\.\d{1,6})?$")]
MaybeDigest = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")]
# Where something can be looked up, by the first part of a reference such as fact://language/python.
SCHEMES = ("scan", "fact", "doc", "memory", "registry", "rule", "intent", "answer")
Ref = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9+.-]{1,20}://[^\s\x00-\x1f\x7f]{1,480}$", max_length=512)]
Refs = Annotated[tuple[Ref, ...], Meta(max_length=200)]
Line = Annotated[str, Meta(min_length=1, max_length=400, pattern=r"\S")]
Text = Annotated[str, Meta(min_length=1, max_length=4000, pattern=r"\S")]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A closed value: what is not declared is refused."""


def graver(*risks: Risk) -> Risk:
    """The gravest of some risks; low where there is none."""
    return max(risks, key=RISKS.index, default="low")
