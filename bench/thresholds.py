"""What is asked of steersman, in one table. A benchmark informs: a miss is printed and fails nothing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Threshold:
    """A figure of the project's own, against a peer's (a factor it must be better by) or a bound."""

    section: str
    metric: str
    limit: float
    peer: str | None = None
    peer_metric: str | None = None
    note: str = ""


# fmt: off
THRESHOLDS = (
    # section             metric          limit  peer
    Threshold("memory",     "us",              40, "langgraph"),
    Threshold("memory",     "us",              10, "burr"),
    Threshold("memory",     "us",               2, "transitions"),
    Threshold("durable",    "syncs",         1.02, note="one per step; the WAL's own checkpoints add a few per thousand"),
    Threshold("durable",    "us",             0.9, "handwritten"),
    Threshold("durable",    "us",               5, "langgraph"),
    Threshold("durable",    "us",             1.6, "burr"),
    Threshold("durable",    "us",               6, "dbos"),
    Threshold("concurrent", "us",              25, "langgraph"),
    Threshold("concurrent", "us",               6, "burr"),
    Threshold("concurrent", "syncs",         0.05),
    Threshold("growth",     "ratio",          1.2, note="time at the end ÷ at 100"),
    Threshold("growth",     "warm_ratio",     1.2, note="÷ at a tenth of the way: stricter, a young store is slow"),
    Threshold("growth",     "bytes",         1536, note="per step, with its effects"),
    Threshold("growing",    "ratio",          1.2, note="time at the end ÷ at 100"),
    Threshold("growing",    "warm_ratio",     1.2, note="÷ at a tenth of the way: stricter, a young store is slow"),
    Threshold("growing",    "bytes",         1536, note="per step, with its effects"),
    Threshold("many",       "list_ms",          6, "dbos"),
    Threshold("many",       "list_ms",        300, "langgraph", "listing_ms", "its own listing call"),
    Threshold("many",       "list_ms",        300, "langgraph", note="the fastest way found around its listing call"),
    Threshold("many",       "load_ms",          2),
    Threshold("start",      "ratio",          1.5, note="CPU of the command ÷ of its three imports, both over an empty start"),
    Threshold("parked",     "more_threads",     0, note="than with no run parked"),
    Threshold("parked",     "mb_ratio",      1.05, note="memory ÷ with no run parked"),
    Threshold("parked",     "more_idle_ms",     1, note="CPU per idle second, over that with no run parked"),
)
# fmt: on
