"""A small machine as source text: edited, executed and fingerprinted, as a machine is between two releases."""

import sys
from types import ModuleType

TABLE_SOURCE = '''
from typing import Any
import msgspec
from steersman.kernel.build import machine
from steersman.kernel.definition import (
    Cap, Events, Guard, Origin, State, computed, do, effect, event, fold, naming, otherwise, resting, row, state, table, timer,
)
from toy import wind
from toy.wind import STRONG

class Gust(msgspec.Struct, frozen=True):
    """What the wind does."""
    knots: int = 0
    where: str = ""

class Context(msgspec.Struct, kw_only=True):
    knots: int = 0
    seen: list[str] = []

FLY = effect("fly", Gust, "string")
WATCH = effect("watch", Gust, "eyes")
BELL = timer("bell")

def storms(c, e):
    """Whether it is too much."""
    return wind.too_strong(e.knots)

class S(State):
    up = state("The kite flies.", do(FLY, lambda c: {"knots": c.knots}), do(WATCH, each=lambda c: [(w, {}) for w in c.seen]), do(BELL), initial=True)
    away = state("It flies again.", do(FLY, lambda c: {"again": c.knots}), do(BELL))
    down = resting("It lies in the grass.")

class E(Events):
    launched = event("Up it goes.", Origin.PERSON, Gust, version=2, upcasts={1: lambda d: {"knots": d["speed"]}})
    blew = event("A gust.", Origin.EFFECT, Gust)
    tore = event("The string tears.", Origin.EFFECT, Gust)
    rang = event("Tea.", Origin.TIMER)

STORM = Guard("storm", "it storms", storms)
STEADY = Guard("steady", "it is steady", lambda _, e: e.knots < STRONG)
GUSTS = Cap("gusts", 3, per=lambda _, e: e.where)

def _at(name):
    return Guard(name, f"it blows at {name}", lambda _, e: e.where == name)

TABLE = table(
    row(None, E.launched, otherwise, S.up, None, "launch", "1"),
    row(S.up, E.blew, otherwise, S.away, GUSTS, "blow", "1"),
    row(S.up, E.blew, otherwise, S.down, None, "too often", "1"),
    row(S.away, E.blew, otherwise, S.down, None, "blow", "1"),
    row((S.up, S.away), E.tore, otherwise, S.down, None, "tear", "1"),
    row((S.up, S.away), E.rang, otherwise, S.down, None, "tea", "1"),
)
MACHINE = machine(
    "kite", "A kite.", states=S, events=E, rows=TABLE, context=Context, context_version=2,
    upcasts={1: lambda c: {**c, "seen": []}},
    namings=(
        naming(FLY, (STORM, E.tore), (STEADY, E.blew), (_at("sea"), E.blew), (otherwise, E.tore)),
        naming(WATCH, (otherwise, E.blew)),
        naming(BELL, (otherwise, E.rang)),
    ),
    folds=(fold(E.blew, lambda c, e: (("set", "knots", wind.rounded(e.knots)),)),),
    begin=lambda request: (E.launched, Gust(request["knots"]), Context()),
)
'''

WIND_SOURCE = """
STRONG = 30
STEP = 5

def too_strong(knots): return knots > STRONG
def rounded(knots): return knots // STEP * STEP
"""

MACHINE_SOURCES = {"toy": "", "toy.wind": WIND_SOURCE, "toy.table": TABLE_SOURCE}


def edit_sources(**edits):
    """The texts with some lines changed: `table=[(old, new), …]`."""
    texts = dict(MACHINE_SOURCES)
    for name, pairs in edits.items():
        for old, new in pairs:
            assert texts[f"toy.{name}"].count(old) == 1, old
            texts[f"toy.{name}"] = texts[f"toy.{name}"].replace(old, new)
    return texts


def load_machine(texts):
    """The machine that these texts make, imported as if they were files."""
    before = {name: sys.modules.get(name) for name in texts}
    try:
        for name, text in texts.items():
            module = sys.modules[name] = ModuleType(name)
            module.__path__ = []
            parent, _, own = name.rpartition(".")
            exec(compile(text, f"<{name}>", "exec"), module.__dict__)  # noqa: S102  a text of this test
            if parent:
                setattr(sys.modules[parent], own, module)
        return sys.modules["toy.table"].MACHINE
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
