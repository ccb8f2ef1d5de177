"""The checksum of an intent, and how many questions its plan may ask under a policy.

**Invariant:** no policy loosens an intent, and no intent loosens a policy. The checksum covers what stands in the document:
no default is filled in, and only the checksum itself is left out.
"""

from typing import Any, NamedTuple

from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.words import (
    EXECUTION_MODES,
    QUESTION_POLICIES,
    ExecutionMode,
    QuestionPolicy,
)
from steersman.judges.planning.payload import is_inspectable
from steersman.judges.planning.places import get_text_at
from steersman.kernel.canonical import canonical_bytes, find_unacceptable_value, sha256_hex

# The least strict way of asking that a mode still allows.
_LEAST_STRICT_ASKING: dict[ExecutionMode, QuestionPolicy] = {
    "interactive": "conceptual_only",
    "semi_auto": "blockers_only",
    "full_auto": "never",
}


NO_CHECKSUM = "0" * 64


class EffectiveAsking(NamedTuple):
    """What holds for asking: the mode, which questions, and how many in all."""

    mode: ExecutionMode
    asking: QuestionPolicy
    budget: int


def resolve_effective_asking(intent: ExecutionIntent, policy: ExecutionPolicy) -> EffectiveAsking:
    """The stricter of both in each respect; a plan that may never ask has no budget to ask with."""
    interaction = intent.interaction
    mode = max(interaction.mode, policy.mode, key=EXECUTION_MODES.index)
    asking = max(interaction.question_policy, _LEAST_STRICT_ASKING[mode], key=QUESTION_POLICIES.index)
    budget = min(interaction.question_budget, policy.question_budget)
    return EffectiveAsking(mode, asking, 0 if asking == "never" else budget)


def intent_checksum_bytes(raw: Any) -> bytes:
    """What the checksum covers: the RFC 8785 bytes of the document without `audit.checksum`."""
    return canonical_bytes(_drop_intent_checksum(raw))


def compute_intent_checksum(raw: Any) -> str:
    """The SHA-256 of those bytes; zeros for a value that has no such bytes."""
    is_encodable = is_inspectable(raw) and find_unacceptable_value(raw) is None
    return sha256_hex(intent_checksum_bytes(raw)) if is_encodable else NO_CHECKSUM


def has_matching_checksum(raw: Any) -> bool:
    """Whether the checksum in the document is the one of its bytes."""
    expected = compute_intent_checksum(raw)
    return expected != NO_CHECKSUM and get_text_at(raw, "audit", "checksum") == expected


def _drop_intent_checksum(raw: Any) -> Any:
    audit = raw.get("audit") if isinstance(raw, dict) else None
    if not isinstance(audit, dict):
        return raw
    return {**raw, "audit": {key: value for key, value in audit.items() if key != "checksum"}}
