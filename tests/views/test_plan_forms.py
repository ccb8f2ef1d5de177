"""The planner's tape in the specification's forms: guards under names that say what is true."""

from tests.support.cases import for_each_case

from steersman.machines.coordinator.table import MACHINE
from steersman.machines.coordinator.views.guards import (
    SATISFIED_WORDING,
    describe_guard_evaluation,
    find_stopping_guards,
)

NAMES = sorted({g.name for n in MACHINE.namings.values() for g, _ in n.pairs})


def test_every_guard_that_stops_has_words_for_what_is_so_otherwise():
    """§Audit Requirements: no guard is left to be guessed at, none is worded that the table does not have."""
    assert SATISFIED_WORDING.keys() == find_stopping_guards(MACHINE)
    assert len(set(SATISFIED_WORDING.values())) == len(SATISFIED_WORDING)


@for_each_case("held", [True, False])
@for_each_case("name", NAMES)
def test_no_guard_has_its_own_name_with_the_other_sign(name, held):
    """§Audit Requirements: under the tape's name stands the tape's answer; what stops has another name, and the
    sentence beside it is the tape's own."""
    told = describe_guard_evaluation(MACHINE, name, is_true=held)
    assert (told.guard_name == name) == (told.passed == held)
    assert told.reason.startswith("not so: ") == (not held)


def test_a_guard_of_another_version_that_is_not_known_keeps_its_sign():
    """An old tape may name a guard that the table has no more: it is told as it was answered."""
    told = describe_guard_evaluation(MACHINE, "gone", is_true=True)
    assert (told.guard_name, told.passed, told.reason) == ("gone", True, "gone")
