"""The committed lock: a change that nobody has put a version to is reported, and cannot be locked away."""

import json

import pytest
from tests.support.machine_sources import MACHINE_SOURCES, edit_sources, load_machine

from steersman.adapters import machine_lock
from steersman.errors import DefinitionError


@pytest.fixture
def lock(tmp_path):
    """A lock over the kite as it was."""
    path = tmp_path / "machines.lock"
    machine_lock.write_machine_lock(path, {"kite": load_machine(MACHINE_SOURCES)}, MACHINE_SOURCES)
    return path


def problems(lock, **edits):
    texts = edit_sources(**edits)
    return machine_lock.check_machine_lock(lock, {"kite": load_machine(texts)}, texts)


STEADY = '"it is steady", lambda _, e: e.knots < STRONG)'
BUMPED = '"it is steady", lambda _, e: e.knots <= STRONG, version=2)'
AGAIN = "write the lock again with `steersman machine lock`"


@pytest.mark.untraced
def test_the_committed_lock_is_current():
    """The lock in the repository says what the machines of this checkout are."""
    assert machine_lock.check_machine_lock() == []
    assert sorted(json.loads(machine_lock.LOCK_PATH.read_text())["machines"]) == sorted(
        machine_lock.load_installed_machines()
    )


def test_nothing_changed_is_no_problem(lock):
    """A lock just written has no problem, and writing it again changes no byte."""
    before = lock.read_bytes()
    assert problems(lock) == []
    machine_lock.write_machine_lock(lock, {"kite": load_machine(MACHINE_SOURCES)}, MACHINE_SOURCES)
    assert lock.read_bytes() == before


# fmt: off
UNBUMPED = {
    "a guard":              ({"table": [(STEADY, STEADY.replace("<", "<="))]},                    ["guard steady"]),
    "a fold":               ({"table": [('"set", "knots", wind', '"add", "knots", wind')]},       ["fold blew"]),
    "a reached constant":   ({"wind": [("STRONG = 30", "STRONG = 31")]},                          ["guard steady", "guard storm"]),
    "a reached function":   ({"wind": [("knots > STRONG", "knots >= STRONG")]},                   ["guard storm"]),
    "a context field":      ({"table": [("    seen: list[str] = []", "    seen: list[str] = []\n    more: int = 0")]}, ["begin", "context"]),
}
# fmt: on


@pytest.mark.parametrize("what", UNBUMPED)
def test_a_change_without_a_version_is_reported_and_not_written(lock, what):
    """An unbumped change fails the check by name, and writing the lock refuses to hide it."""
    edit, parts = UNBUMPED[what]
    told = [
        f"kite: {p} changed, but its version is still {2 if p == 'context' else 1}: raise it" for p in parts
    ]
    assert problems(lock, **edit) == told
    texts = edit_sources(**edit)
    with pytest.raises(DefinitionError, match="raise it"):
        machine_lock.write_machine_lock(lock, {"kite": load_machine(texts)}, texts)
    assert problems(lock) == []


def test_a_raised_version_is_accepted_once_it_is_written(lock):
    """With its version raised a change is locked by writing; until then the lock is behind."""
    edit = {"table": [(STEADY, BUMPED)]}
    texts = edit_sources(**edit)
    assert problems(lock, **edit)[0] == f"kite: guard steady is version 2 now, the lock has 1: {AGAIN}"
    machine_lock.write_machine_lock(lock, {"kite": load_machine(texts)}, texts)
    assert problems(lock, **edit) == []
    assert problems(lock) == ["kite: guard steady is version 1, was 2: a version never goes down"] + [
        p for p in problems(lock) if "its definition" in p
    ]


def test_a_row_needs_no_version_of_its_own(lock):
    """A changed row is another definition: the lock is behind, and writing it is all there is to do."""
    edit = {"table": [("S.away, E.blew, otherwise, S.down", "S.away, E.blew, otherwise, S.up")]}
    (told,) = problems(lock, **edit)
    assert told.startswith("kite: its definition is ")
    texts = edit_sources(**edit)
    machine_lock.write_machine_lock(lock, {"kite": load_machine(texts)}, texts)
    assert problems(lock, **edit) == []


def test_parts_that_come_and_go_are_reported(lock):
    """A part that is new or gone is named; a machine too."""
    edit = {"table": [('    begin=lambda request: (E.launched, Gust(request["knots"]), Context()),\n', "")]}
    assert f"kite: begin is gone: {AGAIN}" in problems(lock, **edit)
    texts = edit_sources(**edit)
    machine_lock.write_machine_lock(lock, {"kite": load_machine(texts)}, texts)
    assert f"kite: begin is new: {AGAIN}" in problems(lock)
    assert machine_lock.check_machine_lock(lock, {}, {}) == [
        f"kite: in the lock, but there is no such machine: {AGAIN}"
    ]
    machine_lock.write_machine_lock(lock, {}, {})
    assert problems(lock) == [f"kite: not in the lock: {AGAIN}"]


# fmt: off
CARRIED = {
    'where: str = ""\n    when: int = 0':  [],
    'where: str = ""\n    when: int':       ["event blew must carry when now"],
    'where: str = "x"':                     ["event blew carries another where"],
    'elsewhere: str = ""':                  ["event blew carries where no more"],
}
# fmt: on


@pytest.mark.parametrize("now", CARRIED)
def test_an_event_may_grow_by_a_field_with_a_default(lock, now):
    """What was recorded stays readable: a further field with a default needs no version, anything else does."""
    texts = edit_sources(table=[("class Gust(msgspec.Struct, frozen=True)", "class Gust(msgspec.Struct, frozen=True, kw_only=True)"), ('where: str = ""', now), ('Gust(request["knots"])', "Gust(knots=1)")])  # fmt: skip
    texts["toy.table"] = texts["toy.table"].replace("Gust(knots=1)", 'Gust(request["knots"])')
    told = machine_lock.check_machine_lock(lock, {"kite": load_machine(texts)}, texts)
    assert [p.removeprefix("kite: ").partition(",")[0] for p in told if "event blew" in p] == CARRIED[now]


def test_a_lock_that_is_not_there_is_said(tmp_path):
    """Without a lock there is one problem: that there is none."""
    (told,) = machine_lock.check_machine_lock(tmp_path / "machines.lock", {}, {})
    assert told.endswith("is not there: write it with `steersman machine lock`")


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"format": 9, "machines": {}}', '{"format": 1, "machines": []}']
)
def test_a_lock_that_is_none_is_said(tmp_path, content):
    """A file that is no lock is a problem of its own, and is not written over."""
    path = tmp_path / "machines.lock"
    path.write_text(content)
    (told,) = machine_lock.check_machine_lock(path, {}, {})
    assert "is no lock of this steersman" in told
    with pytest.raises(DefinitionError, match="is no lock of this steersman"):
        machine_lock.write_machine_lock(path, {}, {})
    assert path.read_text() == content


def test_another_kernel_is_reported(lock):
    """A kernel of another version is named."""
    old = json.loads(lock.read_text())
    old["machines"]["kite"]["kernel"] = 0
    lock.write_text(json.dumps(old))
    assert problems(lock) == [f"kite: its kernel is 1 now, the lock has 0: {AGAIN}"]


def test_the_rooms_that_decide_are_read():
    """Machines, judges and contracts are read, each module under its own name."""
    names = machine_lock.read_source_texts().keys()
    assert {
        "steersman.machines.roundtable",
        "steersman.judges.evidence.check_results",
        "steersman.contracts.facts",
    } <= names
    assert not [n for n in names if n.startswith("steersman.kernel")]
