"""An intent as a whole: its checksum, and how much its plan may ask where a policy has a say too.

**Invariant:** no policy loosens an intent, and no intent a policy; the checksum is of what stands in the document,
nothing filled in and nothing left out but itself.
"""

from typing import Any, NamedTuple

from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.words import ASKINGS, MODES, Asking, Mode
from steersman.judges.planning.payload import is_fathomable
from steersman.judges.planning.raw import text
from steersman.kernel.canonical import canonical, digest, unacceptable

# The least strict way of asking that a mode still allows.
_AT_MOST: dict[Mode, Asking] = {
    "interactive": "conceptual_only",
    "semi_auto": "blockers_only",
    "full_auto": "never",
}


NO_BYTES = "0" * 64


class Effective(NamedTuple):
    """What holds for asking: the mode, which questions, and how many in all."""

    mode: Mode
    asking: Asking
    budget: int


def effective(intent: ExecutionIntent, policy: ExecutionPolicy) -> Effective:
    """The stricter of both in each respect; a plan that may never ask has no budget to ask with."""
    wanted = intent.interaction
    mode = max(wanted.mode, policy.mode, key=MODES.index)
    asking = max(wanted.question_policy, _AT_MOST[mode], key=ASKINGS.index)
    budget = min(wanted.question_budget, policy.question_budget)
    return Effective(mode, asking, 0 if asking == "never" else budget)


def sealed_bytes(raw: Any) -> bytes:
    """What the checksum covers: the RFC 8785 bytes of the document without `audit.checksum`."""
    return canonical(_without_checksum(raw))


def checksum(raw: Any) -> str:
    """The SHA-256 of those bytes; zeros for a value that has no such bytes."""
    fit = is_fathomable(raw) and unacceptable(raw) is None
    return digest(sealed_bytes(raw)) if fit else NO_BYTES


def checksum_matches(raw: Any) -> bool:
    """Whether the checksum in the document is the one of its bytes."""
    expected = checksum(raw)
    return expected != NO_BYTES and text(raw, "audit", "checksum") == expected


def _without_checksum(raw: Any) -> Any:
    audit = raw.get("audit") if isinstance(raw, dict) else None
    if not isinstance(audit, dict):
        return raw
    return {**raw, "audit": {key: value for key, value in audit.items() if key != "checksum"}}
