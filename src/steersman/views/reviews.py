"""Reads the reviews of a run from its tape, in its order.

**Invariant:** a review whose result came too late to count is left out.
"""

from collections.abc import Sequence

import msgspec

from steersman.kernel.tape import Entry
from steersman.views.quotation import quote_cell
from steersman.views.run_summary import PayloadReader, actor_name


class RecordedReview(msgspec.Struct, frozen=True):
    """One review that fits its contract."""

    round: int
    entry: int
    by: str
    decision: str
    summary: str


def find_recorded_reviews(entries: Sequence[Entry], text: PayloadReader) -> tuple[RecordedReview, ...]:
    """Returns every review that counted."""
    rounds = {i.id: i.input.get("round", 0) for entry in entries for i in entry.planned}
    recorded = []
    for entry in entries:
        reply = entry.data.get("reply") if isinstance(entry.data, dict) and not entry.late else None
        if isinstance(reply, dict) and "summary" in reply:
            decision_and_summary = (reply.get("decision", ""), text(reply["summary"]))
            recorded.append(
                RecordedReview(
                    rounds.get(entry.cause, 0), entry.seq, actor_name(entry.actor), *decision_and_summary
                )
            )
    return tuple(recorded)


def recorded_reviews_section(recorded: Sequence[RecordedReview]) -> list[str]:
    """Renders reviews as a section of a report."""
    if not recorded:
        return []
    rows = [
        f"| {r.round} | {r.entry} | {quote_cell(r.by)} | {quote_cell(r.decision)} | {quote_cell(r.summary)} |"
        for r in recorded
    ]
    return ["## Reviews", "", "| round | entry | who | decision | in its words |", "|---|---|---|---|---|", *rows, ""]  # fmt: skip
