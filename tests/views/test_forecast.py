"""What a run could come to, read from the table before it begins."""

import pytest

from steersman.machines.roundtable import MACHINE
from steersman.views.forecast import forecast


@pytest.mark.parametrize("rounds", [1, 2, 3, 12, 13, 50])
def test_an_implementation_calls_each_role_once_a_round(rounds):
    """The most agent calls are coder, reviewer and tester in every round, however many rounds there are."""
    seen = forecast(MACHINE, {"mode": "implementation", "deliver": "branch", "max_iterations": rounds})
    assert seen.calls == 3 * rounds
    assert seen.gates == ("evidence",)


def test_a_proposal_adds_its_discussion():
    """Three calls to the gate, three a round after approval, three more for each rework."""
    seen = forecast(MACHINE, {"mode": "proposal", "deliver": "branch", "max_iterations": 4})
    assert {s.calls for s in seen.stretches} == {3, 12}
    assert (seen.calls, seen.gates) == (15, ("confirm", "evidence"))


def test_a_merge_has_a_gate_of_its_own():
    """Only with deliver = merge does the merge gate come into sight."""
    assert forecast(MACHINE, {"mode": "proposal", "deliver": "merge", "max_iterations": 1}).gates == (
        "confirm",
        "evidence",
        "merge",
    )
