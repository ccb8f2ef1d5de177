"""A verdict in its plainest form, for `steersman check verdict` without a role: no nonce, no lists beside must_fix.

**Invariant:** a shape only: the rule that joins decision and must_fix is judged in `judges.reply`.
"""

from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.replies import NOT_BLANK_PATTERN, ReplyText

PLAIN_VERDICT = "verdict"
VerdictFinding = Annotated[str, Meta(min_length=1, pattern=NOT_BLANK_PATTERN)]


class PlainVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Yes or no, why, and what has to change."""

    decision: Literal["approve", "changes_requested"]
    summary: ReplyText
    must_fix: Annotated[tuple[VerdictFinding, ...], Meta(max_length=200)]


@cache
def plain_verdict_schema() -> dict[str, Any]:
    """Its JSON Schema, without references."""
    _, components = msgspec.json.schema_components((PlainVerdict,))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **components["PlainVerdict"]}
