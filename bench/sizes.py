"""How much of everything: the full benchmark, and a smoke run of a minute or two."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Sizes:
    """What one repetition does; a contender may have lower limits, and the report then shows them."""

    what: str
    reps: int
    # Short measurements are repeated so many times as often: the finer they interleave, the steadier the ratios.
    rounds: int
    # Timed work goes on in batches of runs until so many seconds have passed.
    seconds: float
    batch: int
    at_once: int
    crowd: int
    # Transitions of one run.
    growth: int
    growing: int
    # Runs in a store.
    many: int
    unfinished: int
    parked: int
    idle_seconds: float


FULL = Sizes(
    what="full",
    reps=5,
    rounds=3,
    seconds=0.7,
    batch=10,
    at_once=64,
    crowd=128,
    growth=10_000,
    growing=10_000,
    many=10_000,
    unfinished=1_000,
    parked=10_000,
    idle_seconds=5.0,
)
QUICK = replace(
    FULL,
    what="quick",
    reps=1,
    rounds=1,
    seconds=0.3,
    crowd=64,
    growth=600,
    growing=600,
    many=1_000,
    unfinished=100,
    parked=100,
    idle_seconds=1.0,
)
