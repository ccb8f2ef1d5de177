"""A small machine to test the kernel with: a ferry that leaks, asks, arrives or sinks. Every part can be replaced."""

from typing import Any

import msgspec

from steersman.kernel.build import machine
from steersman.kernel.definition import (
    ANY,
    Cap,
    Events,
    GateAnswer,
    Guard,
    Origin,
    State,
    computed,
    do,
    effect,
    event,
    final,
    fold,
    gate,
    naming,
    otherwise,
    resting,
    room,
    row,
    state,
    table,
)
from steersman.kernel.laws import Before, Never, Only, Possible
from steersman.kernel.ops import Log
from steersman.kernel.record import StepMeta, create_run_entries
from steersman.kernel.step import EventOccurrence


class Boarded(msgspec.Struct, frozen=True):
    """Who comes on board."""

    name: str = "ann"


class WaterFacts(msgspec.Struct, frozen=True):
    """What came in, and where."""

    litres: int = 0
    plank: str = "bow"


class FerryContext(msgspec.Struct, kw_only=True):
    """What the ferry knows."""

    boat: str = "skiff"
    outcome: str | None = None
    planks: int = 2
    litres: int = 0
    places: dict[str, int] = {}
    trips: Log = Log()


ROW = effect("row", WaterFacts, "oars")
ASK = gate("ask")


def give(c: FerryContext) -> dict[str, Any]:
    return {"litres": c.litres}


def question(c: FerryContext) -> dict[str, Any]:
    return {"digest": f"trip {c.trips.count}", "choices": ["land", "turn"]}


class S(State):
    dock = state("Passengers come on board.", initial=True)
    sail = state("Somebody rows.", do(ROW, give))
    bail = state("There is water in the boat.")
    moor = state("A person decides.", do(ASK, question))
    ashore = resting("The trip is over.")
    sunk = final("The boat lies on the ground.")


class E(Events):
    boarded = event("A trip begins.", Origin.PERSON, Boarded)
    cast_off = event("The boat leaves.", Origin.PERSON)
    rowed = event("The other side is reached.", Origin.EFFECT, WaterFacts)
    leaked = event("Water came in.", Origin.EFFECT, WaterFacts)
    bailed = event("The water is out.", Origin.MACHINE)
    given_up = event("There is too much of it.", Origin.MACHINE)
    landed = event("A person goes ashore.", Origin.GATE, GateAnswer)
    turned = event("A person turns round.", Origin.GATE, GateAnswer)
    called = event("The ferry is called again.", Origin.PERSON)
    left = event("Everybody leaves the boat.", Origin.PERSON, GateAnswer)


DRY = Guard("dry", "no water came in", lambda _, e: e.litres == 0)
YES = Guard("yes", "the person wants to land", lambda _, e: e.choice == "land")
BARGE = Guard("barge", "the boat is a barge", lambda c, _: c.boat == "barge", reads=("boat",))
LANDED = Guard("landed", "the trip came to its end", lambda c, _: c.outcome == "landed", reads=("outcome",))
LEAKS = Cap("leaks", 2, resets=(E.called,))
ROOM = room("room", "one may bail once more", LEAKS)


def fold_water(c: FerryContext, e: WaterFacts):
    return (("add", "litres", e.litres), ("put", "places", e.plank, c.places.get(e.plank, 0) + e.litres))


def fold_dry(c: FerryContext, _e: WaterFacts):
    return (("append", "trips", {"litres": c.litres}), *(("drop", "places", p) for p in c.places))


# fmt: off
FERRY_TABLE = table(
    row(None,      E.boarded,  otherwise, S.dock,   None,  "come on board", "§1"),
    row(S.dock,    E.cast_off, otherwise, S.sail,   None,  "leave",         "§1"),
    row(S.sail,    E.rowed,    otherwise, S.moor,   None,  "arrive",        "§1"),
    row(S.sail,    E.leaked,   otherwise, S.bail,   None,  "leak",          "§1"),
    row(S.bail,    E.bailed,   otherwise, S.sail,   LEAKS, "bail",          "§1"),
    row(S.bail,    E.given_up, otherwise, S.sunk,   None,  "give up",       "§1", sets={"outcome": "lost"}),
    row(S.moor,    E.landed,   otherwise, S.ashore, None,  "land",          "§1", sets={"outcome": "landed"}),
    row(S.moor,    E.turned,   otherwise, S.sail,   None,  "turn",          "§1"),
    row(S.ashore,  E.called,   otherwise, S.dock,   None,  "call",          "§1", sets={"outcome": None}),
    row(ANY,       E.left,     otherwise, S.sunk,   None,  "leave it",      "§1", sets={"outcome": "lost"}),
)
# fmt: on
FERRY_NAMINGS = (
    naming(ROW, (DRY, E.rowed), (otherwise, E.leaked)),
    naming(ASK, (YES, E.landed), (otherwise, E.turned)),
)
FERRY_COMPUTES = (computed(S.bail, (ROOM, E.bailed), (otherwise, E.given_up)),)
FERRY_FOLDS = (fold(E.leaked, fold_water), fold(E.rowed, fold_dry))
FERRY_LAWS = (
    Only("outcome", "landed", by=(E.landed,)),
    Before(S.moor, then=S.ashore),
    Before(S.dock, then=S.sail),
    Never(S.ashore, when=Guard("lost", "the boat is lost", lambda c, _: c.outcome == "lost", reads=("outcome",))),
    Possible(S.ashore, when=LANDED),
)  # fmt: skip


def ferry(**changes: Any):
    """The ferry, with some of its parts replaced."""
    parts = {
        "states": S, "events": E, "rows": FERRY_TABLE, "context": FerryContext, "namings": FERRY_NAMINGS, "computes": FERRY_COMPUTES, "folds": FERRY_FOLDS,
        "laws": FERRY_LAWS, "constants": {"boat": ("skiff", "barge")}, "memory": {"outcome": (None, "landed", "lost")},
        "abort": E.left, "successes": ("landed",),
    }  # fmt: skip
    return machine("ferry", "Across and back.", **{**parts, **changes})


FERRY = ferry()
FERRY_RUN = "260101-bbbbbb"


def begin_ferry(m=FERRY, context: Any = None, event=E.boarded, data: Any = None, **meta: Any):
    """A new run of a ferry."""
    given = data if data is not None else event.carries()
    context = context if context is not None else m.context()
    return create_run_entries(
        m, FERRY_RUN, EventOccurrence(event, given, Origin.PERSON), context, StepMeta(10, **meta)
    )
