"""A machine in two versions, for runs that were begun under the first and wake up under the second.

A letter is written when somebody agrees, weighed, and kept until somebody fetches it. The second version weighs with
another guard, folds another figure, knows the postage (a context field, with an upcaster), and can be put off (a row).
"""

from typing import Any

import msgspec

from steersman.kernel.build import machine
from steersman.kernel.definition import (
    STAY,
    Events,
    GateAnswer,
    Guard,
    Origin,
    State,
    do,
    effect,
    event,
    fold,
    gate,
    naming,
    otherwise,
    resting,
    row,
    state,
    table,
)


class LetterRequest(msgspec.Struct, frozen=True):
    """What a letter is about."""

    task_ref: str = ""


class WeighFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the scales say."""

    grams: int = 0
    error: str = ""


class PlaceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Where the letter shall go, in its second form."""

    place: str
    by: str = ""


class FirstContext(msgspec.Struct, kw_only=True):
    """What the first version knows."""

    task_ref: str = ""
    config_ref: str = ""
    grams: int = 0
    place: str = ""


class SecondContext(msgspec.Struct, kw_only=True):
    """What the second one knows."""

    task_ref: str = ""
    config_ref: str = ""
    grams: int = 0
    place: str = ""
    postage: int


WRITE, WEIGH, FETCH = gate("write"), effect("weigh", WeighFacts, "scales"), gate("fetch")
YES = Guard("yes", "somebody agrees", lambda _, e: e.choice == "approve")


class S(State):
    desk = state(
        "May it be written?",
        do(WRITE, lambda _: {"digest": "desk", "choices": ["approve", "reject"]}),
        initial=True,
    )
    scales = state("It is weighed.", do(WEIGH, lambda c: {"grams": c.grams}))
    shelf = state(
        "It waits to be fetched.",
        do(FETCH, lambda c: {"digest": f"{c.grams} g", "choices": ["approve", "reject"]}),
    )
    sent = resting("It is on its way.")
    torn = resting("It is torn up.")


def build_letters(version: int) -> Any:
    """The machine in this version."""
    later = version == 2

    class E(Events):
        begun = event("A letter is begun.", Origin.PERSON, LetterRequest)
        agreed = event("Write it.", Origin.GATE, GateAnswer)
        declined = event("Tear it up.", Origin.GATE, GateAnswer)
        light = event("It weighs little.", Origin.EFFECT, WeighFacts)
        heavy = event("It weighs much.", Origin.EFFECT, WeighFacts)
        fetched = event("Somebody has it.", Origin.GATE, GateAnswer)
        put_off = event("Not now.", Origin.PERSON)
        noted = event(
            "Somebody says where it shall go.", Origin.PERSON, PlaceFacts if later else msgspec.defstruct("Place", [("at", str)], frozen=True),
            version=version, upcasts={1: lambda d: {"place": d["at"], "by": "unknown"}},
        )  # fmt: skip

    weighs = Guard(
        "little", "it weighs little", lambda _, e: 0 < e.grams < (50 if later else 20), version=version
    )

    def weighed(_c: Any, e: WeighFacts) -> Any:
        return (
            (("set", "grams", e.grams), ("add", "postage", 1 + e.grams // 20))
            if later
            else (("set", "grams", e.grams),)
        )

    rows = (
        row(None, E.begun, otherwise, S.desk, None, "begin", "toy"),
        row(S.desk, E.agreed, otherwise, S.scales, None, "write", "toy"),
        row(S.scales, E.light, otherwise, S.shelf, None, "put on the shelf", "toy"),
        row(S.scales, E.heavy, otherwise, S.torn, None, "too heavy", "toy"),
        row(S.shelf, E.fetched, otherwise, S.sent, None, "hand over", "toy"),
        row((S.desk, S.shelf), E.declined, otherwise, S.torn, None, "tear up", "toy"),
        row(S.desk, E.noted, otherwise, STAY, None, "note", "toy"),
        row(S.sent, E.put_off, otherwise, STAY, None, "too late", "toy"),
        *([row(S.desk, E.put_off, otherwise, STAY, None, "leave it", "toy")] if later else []),
    )
    return machine(
        "letters", "Letters, written and fetched.", states=S, events=E, rows=table(*rows), context=SecondContext if later else FirstContext,
        context_version=version, upcasts={1: lambda c: {**c, "postage": c["grams"] // 20}} if later else None,
        namings=(
            naming(WRITE, (YES, E.agreed), (otherwise, E.declined)),
            naming(WEIGH, (weighs, E.light), (otherwise, E.heavy)),
            naming(FETCH, (YES, E.fetched), (otherwise, E.declined)),
        ),
        folds=(
            fold(E.light, weighed, version=version),
            fold(E.noted, lambda _, e: (("set", "place", getattr(e, "place", getattr(e, "at", ""))),), version=1),
        ),
        successes=("sent",),
        begin=lambda request: (E.begun, LetterRequest(request["task_ref"]), FirstContext(task_ref=request["task_ref"]) if not later else SecondContext(task_ref=request["task_ref"], postage=0)),
    )  # fmt: skip


OLD_LETTERS, NEW_LETTERS = build_letters(1), build_letters(2)
