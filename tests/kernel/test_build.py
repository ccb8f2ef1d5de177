"""A machine complains when it is built, about everything that contradicts itself, and its digest covers what decides."""

import msgspec
import pytest
from msgspec.structs import force_setattr, replace
from tests.support.cases import for_each_case
from tests.support.ferry_machine import (
    ASK,
    DRY,
    FERRY,
    FERRY_COMPUTES,
    FERRY_FOLDS,
    FERRY_NAMINGS,
    FERRY_TABLE,
    LEAKS,
    ROW,
    YES,
    E,
    S,
    WaterFacts,
    ferry,
    fold_water,
)  # fmt: skip

from steersman.errors import DefinitionError
from steersman.kernel.definition import (
    STAY,
    Cap,
    Events,
    Guard,
    Origin,
    State,
    computed,
    do,
    effect,
    event,
    fold,
    naming,
    otherwise,
    resting,
    room,
    row,
    state,
)
from steersman.kernel.machine import definition_data, machine_guards, row_source_states


class Elsewhere(Events):
    boarded = event("Of another machine.", Origin.PERSON)


class Beyond(State):
    dock = state("Of another machine.", initial=True)


class Sparse(msgspec.Struct, omit_defaults=True):
    """A context that leaves out defaults."""

    boat: str = "skiff"
    outcome: str | None = None


class Wrong(msgspec.Struct):
    """A context that begins somewhere else."""

    boat: str = "skiff"
    outcome: str | None = "lost"


TWIN = Guard("dry", "another of the same name", lambda *_: True)
OTHER_CAP = Cap("leaks", 5)
NAMELESS = effect("row", WaterFacts, "sails")


class Twins(State):
    dock = state("Two jobs of one name.", do(ROW), do(NAMELESS), initial=True)


class Untracked(State):
    dock = state("Work that depends on facts.", do(ROW, when=DRY), initial=True)


class Nowhere(State):
    dock = state("No state is initial.")


class Two(State):
    dock = state("Two are initial.", initial=True)
    pier = resting("Two are initial.", initial=True)


def r(**changes):
    """The ferry's rows with one more."""
    made = {
        "source": S.dock, "on": E.cast_off, "when": otherwise, "to": S.sail, "cap": None, "label": "x",
        "origin": "§",
    }  # fmt: skip
    return (*FERRY_TABLE, row(**{**made, **changes}))


# fmt: off
WRONG = [
    ({"rows": r(on=Elsewhere.boarded)},                                     "row 'x' is on an event of another machine"),
    ({"rows": r(to=Beyond.dock)},                                           "row 'x' leads to a state of another machine"),
    ({"rows": r(source=None, on=E.boarded, to=STAY)},                       "row 'x' creates a run and stays nowhere"),
    ({"rows": r(sets={"outcome": "stolen"})},                               "sets outcome to 'stolen', which is not declared in memory"),
    ({"rows": r(sets={"litres": 1})},                                       "sets litres to 1, which is not declared in memory"),
    ({"rows": r(source=S.moor, on=E.turned, waivable=otherwise)},                "may be waived, but turned is the answer to a gate"),
    ({"namings": FERRY_NAMINGS[:1]},                                                "job ask has no naming"),
    ({"namings": (*FERRY_NAMINGS[:1], naming(ASK, (YES, E.landed)))},               "naming of ask does not end with otherwise"),
    ({"namings": (*FERRY_NAMINGS[:1], naming(ASK))},                                "naming of ask does not end with otherwise"),
    ({"namings": (*FERRY_NAMINGS[:1], naming(ASK, (otherwise, E.landed)))},         "naming of ask names landed otherwise, which is a success"),
    ({"successes": ("sunk",), "namings": (*FERRY_NAMINGS[:1], naming(ASK, (otherwise, E.left)))}, "names left otherwise, which is a success"),
    ({"namings": (naming(ROW, (otherwise, E.bailed)), FERRY_NAMINGS[1])},           "naming of row names bailed, whose origin is machine"),
    ({"namings": (*FERRY_NAMINGS, FERRY_NAMINGS[0])},                                       "there are 2 times a naming of row"),
    ({"computes": (*FERRY_COMPUTES, FERRY_COMPUTES[0])},                                "there are 2 times a computed bail"),
    ({"computes": (computed(S.bail, (otherwise, E.cast_off)),)},            "computed bail names cast_off, whose origin is person"),
    ({"folds": (*FERRY_FOLDS, fold(E.leaked, fold_water))},                              "there are 2 times a fold of leaked"),
    ({"rows": r(when=TWIN)},                                                "there are 2 times a guard dry"),
    ({"rows": r(cap=OTHER_CAP)},                                            "there are 2 times a cap leaks"),
    ({"rows": r(cap=Cap("far", "miles"))},                                  "cap far takes its limit from miles, which the context does not have"),
    ({"rows": r(when=room("far", "far", Cap("far", 1)))},                   "a guard asks about cap far, which no row counts"),
    ({"rows": r(when=Guard("big", "big", lambda c, _: c.litres > 9, reads=("litres",)))}, "guard 'big' reads litres, which is neither constant nor memory"),
    ({"constants": {"boat": ("skiff",), "sails": (1,)}},                    "sails is declared but the context has no such field"),
    ({"memory": {"outcome": ("landed", None, "lost")}},                     "memory outcome begins with 'landed' here and with None in the context"),
    ({"context": Sparse},                                                   "the context leaves out defaults"),
    ({"context": Wrong},                                                    "memory outcome begins with None here and with 'lost' in the context"),
    ({"states": Twins},                                                     "there are 2 times a job row"),
    ({"states": Untracked},                                                 "work row of dock depends on 'dry', which is not tracked"),
    ({"states": Nowhere},                                                   "exactly one state must be initial, found 0"),
    ({"states": Two},                                                       "exactly one state must be initial, found 2"),
]
# fmt: on


@for_each_case(("changes", "words"), WRONG)
def test_a_contradiction_is_told_when_the_machine_is_built(changes, words):
    """A bad table never runs: it is refused with a sentence that says which line is wrong."""
    with pytest.raises(DefinitionError, match="ferry: ") as told:
        ferry(**changes)
    assert words in str(told.value)


def test_a_field_without_a_default_begins_as_it_is_given():
    """Memory whose field has no default is checked when a run begins, not when the machine is built."""
    asked = msgspec.defstruct("Asked", [("outcome", str | None), ("boat", str, "skiff"), ("planks", int, 2)])
    assert ferry(context=asked).context is asked


def test_sources_are_named():
    """A row starts from nowhere, a state, several states, or every state that works."""
    states = tuple(FERRY.states.values())
    anywhere, creation = FERRY_TABLE[-1], FERRY_TABLE[0]
    assert row_source_states(creation, states) == (None,)
    assert row_source_states(FERRY_TABLE[1], states) == ("dock",)
    assert row_source_states(replace(creation, source=(S.dock, S.sunk)), states) == ("dock", "sunk")
    assert row_source_states(anywhere, states) == ("dock", "sail", "bail", "moor")


def test_every_guard_is_listed_once():
    """Guards of rows, namings, computations and work, each once, in the order of the file."""
    assert [g.name for g in machine_guards(FERRY)] == ["otherwise", "dry", "yes", "room"]


def _bumped_event():
    E.rowed.version += 1
    try:
        return ferry().digest
    finally:
        E.rowed.version -= 1


def _yielding():
    force_setattr(ASK, "yields", True)
    try:
        return ferry().digest
    finally:
        force_setattr(ASK, "yields", False)


def _changed(which, **changes):
    return ferry(rows=tuple(replace(t, **changes) if t.label == which else t for t in FERRY_TABLE)).digest


# fmt: off
DECIDES = {
    "a row's target":       lambda: _changed("turn", to=S.dock),
    "a row's guard":        lambda: _changed("turn", when=DRY),
    "a guard's version":    lambda: ferry(namings=(naming(ROW, (replace(DRY, version=2), E.rowed), (otherwise, E.leaked)), FERRY_NAMINGS[1])).digest,
    "a naming's version":   lambda: ferry(namings=(replace(FERRY_NAMINGS[0], version=2), FERRY_NAMINGS[1])).digest,
    "a fold's version":     lambda: ferry(folds=(fold(E.leaked, fold_water, version=2), FERRY_FOLDS[1])).digest,
    "a fold more":          lambda: ferry(folds=FERRY_FOLDS[:1]).digest,
    "a computed version":   lambda: ferry(computes=(replace(FERRY_COMPUTES[0], version=2),)).digest,
    "a cap's limit":        lambda: ferry(rows=tuple(replace(t, cap=replace(LEAKS, limit=3)) if t.cap else t for t in FERRY_TABLE), computes=(computed(S.bail, (otherwise, E.given_up)),)).digest,
    "what a row sets":      lambda: _changed("turn", sets={"outcome": None}),
    "a row more":           lambda: ferry(rows=r(on=E.called)).digest,
    "the context version":  lambda: ferry(context_version=2).digest,
    "an event's version":   _bumped_event,
    "that a gate yields":   _yielding,
    "the abort":            lambda: ferry(abort=E.called).digest,
    "the successes":        lambda: ferry(successes=("lost",)).digest,
    "waivable":             lambda: _changed("leave", waivable=otherwise),
}
# fmt: on


@for_each_case("what", DECIDES)
def test_the_digest_covers_what_decides(what):
    """Whatever decides is in the digest: a run made under another definition is noticed."""
    assert DECIDES[what]() != FERRY.digest


def test_the_digest_does_not_cover_words():
    """Labels, sections and meanings may be mended without a new definition."""
    assert _changed("turn", label="turn round", origin="§9") == FERRY.digest
    assert ferry().digest == FERRY.digest


def test_the_definition_is_plain_data():
    """What is stored with a run reads back as it was."""
    told = definition_data(FERRY)
    assert msgspec.json.decode(msgspec.json.encode(told)) == told
    assert told["creation"]["rows"][0]["to"] == "dock"


def test_a_state_may_be_resting_and_initial():
    """A machine may begin at rest."""
    assert Two.pier.flags == {"resting", "initial"}


def test_a_machine_is_told_by_its_name_and_digest():
    """Wherever one is shown among other values it is one short line."""
    assert repr(FERRY) == f"<Machine ferry {FERRY.digest}>"
