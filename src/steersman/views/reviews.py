"""What each review said in its own words, round by round: read from the tape, in its order.

**Invariant:** a review whose result came too late to count is none.
"""

from collections.abc import Sequence

import msgspec

from steersman.kernel.tape import Entry
from steersman.views.quotation import cell
from steersman.views.status import Text, person


class Review(msgspec.Struct, frozen=True):
    """One review that fitted its contract."""

    round: int
    entry: int
    by: str
    decision: str
    summary: str


def reviews(entries: Sequence[Entry], text: Text) -> tuple[Review, ...]:
    """Every review of a change that counted."""
    rounds = {i.id: i.input.get("round", 0) for e in entries for i in e.planned}
    found = []
    for e in entries:
        reply = e.data.get("reply") if isinstance(e.data, dict) and not e.late else None
        if isinstance(reply, dict) and "summary" in reply:
            said = (reply.get("decision", ""), text(reply["summary"]))
            found.append(Review(rounds.get(e.cause, 0), e.seq, person(e.actor), *said))
    return tuple(found)


def section(found: Sequence[Review]) -> list[str]:
    """The same as a part of a report."""
    if not found:
        return []
    rows = [
        f"| {r.round} | {r.entry} | {cell(r.by)} | {cell(r.decision)} | {cell(r.summary)} |" for r in found
    ]
    return ["## Reviews", "", "| round | entry | who | decision | in its words |", "|---|---|---|---|---|", *rows, ""]  # fmt: skip
