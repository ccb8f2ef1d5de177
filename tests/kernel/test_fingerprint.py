"""Fingerprints: every part that decides has a version and a hash, and the hash notices what the version forgot."""

import pytest
from tests.support.cases import for_each_case
from tests.support.machine_sources import MACHINE_SOURCES, edit_sources, load_machine

from steersman.errors import DefinitionError
from steersman.kernel.fingerprint import machine_fingerprint
from steersman.kernel.machine import KERNEL_VERSION, machine_guards
from steersman.machines.roundtable import MACHINE

KITE = load_machine(MACHINE_SOURCES)
PARTS = machine_fingerprint(KITE, MACHINE_SOURCES)["parts"]


def changed(texts, m=None):
    """The parts whose hash or fields differ from the kite's, and those whose version does."""
    now = machine_fingerprint(m or load_machine(texts), texts)["parts"]
    assert now.keys() == PARTS.keys()
    other = {k for k in now if {**now[k], "version": 0} != {**PARTS[k], "version": 0}}
    return sorted(other), sorted(k for k in now if now[k]["version"] != PARTS[k]["version"])


# fmt: off
EDITS = {
    "a guard that is a lambda":    ({"table": [("e.knots < STRONG)", "e.knots <= STRONG)")]},                    ["guard steady"]),
    "a guard that is a function":  ({"table": [("return wind.too_strong(e.knots)", "return wind.too_strong(c.knots)")]}, ["guard storm"]),
    "a guard that a function makes": ({"table": [("e.where == name", "name in e.where")]},                       ["guard sea"]),
    "a fold":                      ({"table": [('"set", "knots", wind', '"add", "knots", wind')]},               ["fold blew"]),
    "a reached constant":          ({"wind": [("STRONG = 30", "STRONG = 31")]},                                  ["guard steady", "guard storm"]),
    "a reached function":          ({"wind": [("knots > STRONG", "knots >= STRONG")]},                           ["guard storm"]),
    "a constant behind it":        ({"wind": [("STEP = 5", "STEP = 6")]},                                        ["fold blew"]),
    "a job's input":               ({"table": [('{"knots": c.knots}', '{"knots": c.knots + 1}')]},               ["work away/fly", "work up/fly"]),
    "a job's keys":                ({"table": [("(w, {}) for", "(w[0], {}) for")]},                              ["work up/watch"]),
    "a job's performer":           ({"table": [('Gust, "eyes"', 'Gust, "ears"')]},                               ["job watch"]),
    "a cap's key":                 ({"table": [("per=lambda _, e: e.where", "per=lambda _, e: e.where[:1]")]},   ["cap gusts"]),
    "a cap's limit":               ({"table": [('Cap("gusts", 3', 'Cap("gusts", 4')]},                           ["cap gusts"]),
    "a naming":                    ({"table": [("(STORM, E.tore), (STEADY, E.blew)", "(STEADY, E.blew), (STORM, E.tore)")]}, ["naming fly"]),
    "what an event carries":       ({"table": [("knots: int = 0\n    where", "knots: float = 0\n    where")]},    ["begin", "event blew", "event launched", "event tore"]),
    "an event's upcaster":         ({"table": [('d["speed"]}', 'd["speed"] * 2}')]},                             ["begin", "event launched"]),
    "a context field":             ({"table": [("    seen: list[str] = []", "    seen: list[str] = []\n    more: int = 0")]}, ["begin", "context"]),
    "a context's default":         ({"table": [("kw_only=True):\n    knots: int = 0", "kw_only=True):\n    knots: int = 1")]}, ["begin", "context"]),
    "a context's upcaster":        ({"table": [('{**c, "seen": []}', '{**c, "seen": ["x"]}')]},                  ["context"]),
    "how a run begins":            ({"table": [('Gust(request["knots"])', 'Gust(request["knots"] + 1)')]},       ["begin"]),
}
# fmt: on


@for_each_case("what", EDITS)
def test_an_edit_is_seen_where_it_decides(what):
    """An edit changes the hash of every part that it can decide about, and no version by itself."""
    edit, parts = EDITS[what]
    assert changed(edit_sources(**edit)) == (parts, [])


@for_each_case("what", EDITS)
def test_the_texts_alone_are_enough(what):
    """Functions are found in the texts by their names and their calls, also when the machine was made from others."""
    edit, parts = EDITS[what]
    by_text = [p for p in parts if p.split()[0] in ("guard", "fold", "work", "begin") or "upcaster" in what]
    found, _ = changed(edit_sources(**edit), KITE)
    assert [p for p in found if p in by_text] == by_text


def test_words_do_not_count():
    """Comments, docstrings, sentences and labels may be mended freely."""
    texts = edit_sources(
        table=[
            ("Whether it is too much.", "Too much?"),
            ('"it storms"', '"there is a storm"'),
            ('"tea", "1"', '"tea time", "2"'),
        ],
        wind=[("STRONG = 30", "STRONG = 30  # knots")],
    )
    assert changed(texts) == ([], [])


def test_versions_are_the_declared_ones():
    """A version that was raised is in the fingerprint."""
    texts = edit_sources(table=[('"it storms", storms)', '"it storms", storms, version=2)')])
    assert changed(texts) == ([], ["guard storm"])


def test_every_part_of_roundtable_is_there():
    """Each guard, fold, line of work, job, naming, computation, cap and event, and context and beginning."""
    from steersman.adapters.machine_lock import read_source_texts

    entry = machine_fingerprint(MACHINE, read_source_texts())
    kinds = {
        kind: {k for k in entry["parts"] if k.startswith(f"{kind} ")}
        for kind in ("guard", "fold", "work", "naming", "computed", "cap", "event", "job")
    }
    assert kinds["guard"] == {f"guard {g.name}" for g in machine_guards(MACHINE)}
    assert kinds["fold"] == {f"fold {e}" for e in MACHINE.folds}
    assert kinds["work"] == {f"work {s.name}/{d.job.name}" for s in MACHINE.states.values() for d in s.work}
    assert kinds["naming"] == {f"naming {j}" for j in MACHINE.namings}
    assert kinds["computed"] == {f"computed {s}" for s in MACHINE.computed}
    assert kinds["cap"] == {f"cap {c}" for c in MACHINE.caps} == {"cap iterations", "cap moves"}
    assert kinds["event"] == {f"event {e}" for e in MACHINE.events}
    assert kinds["job"] == {f"job {j}" for j in MACHINE.jobs}
    assert {"context", "begin"} <= entry["parts"].keys()
    assert (entry["definition"], entry["kernel"]) == (MACHINE.digest, KERNEL_VERSION)


def test_a_function_from_elsewhere_is_known_by_name():
    """A function outside the texts, such as the kernel's own `otherwise`, is not read, only named."""
    texts = {k: v for k, v in MACHINE_SOURCES.items() if k != "toy.wind"}
    parts = machine_fingerprint(KITE, texts)["parts"]
    assert parts["guard storm"] != PARTS["guard storm"]
    assert parts["guard otherwise"] == PARTS["guard otherwise"]


def test_a_job_that_is_asked_for_twice_is_numbered():
    """Two lines of work for one job in one state are two parts."""
    texts = edit_sources(
        table=[
            (
                'state("It flies again.", do(FLY, lambda c: {"again": c.knots})',
                'state("It flies again.", do(FLY, lambda c: {"again": c.knots}), do(FLY, storms2)',
            ),
            ("class S(State)", "def storms2(c): return {}\n\nclass S(State)"),
        ]
    )
    assert {"work away/fly", "work away/fly 2"} <= machine_fingerprint(load_machine(texts), texts)[
        "parts"
    ].keys()


def test_a_machine_without_a_beginning_has_no_such_part():
    """A machine that nobody starts by hand has nothing to fingerprint there."""
    texts = edit_sources(
        table=[('    begin=lambda request: (E.launched, Gust(request["knots"]), Context()),\n', "")]
    )
    assert "begin" not in machine_fingerprint(load_machine(texts), texts)["parts"]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ([('Guard("steady", "it is steady", lambda', 'made("steady", "it is steady", lambda'), ("STORM = Guard", "made = Guard\nSTORM = Guard")], "Guard steady: its lambda is not found in toy.table: write a def"),
        ([('Guard("storm", "it storms", storms)', 'Guard("storm", "it storms", __import__("functools").partial(storms))')], "Guard storm: functools.partial.* has no source of its own: write a def"),
    ],
)  # fmt: skip
def test_a_function_that_cannot_be_found_is_said(edit, words):
    """What cannot be hashed is never skipped: it is named, with what to write instead."""
    texts = edit_sources(table=edit)
    with pytest.raises(DefinitionError, match=words):
        machine_fingerprint(load_machine(texts), texts)
