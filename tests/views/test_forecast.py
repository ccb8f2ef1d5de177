"""What a run could come to, read from the table before it begins."""

import pytest

from steersman.machines.roundtable import MACHINE
from steersman.views.forecast import forecast_run


@pytest.mark.parametrize("rounds", [1, 4, 50])
def test_an_implementation_calls_each_role_once_a_round(rounds):
    """The most agent calls are coder, reviewer and tester in every round, however many rounds there are."""
    forecast = forecast_run(
        MACHINE, {"mode": "implementation", "deliver": "branch", "max_iterations": rounds}
    )
    assert forecast.calls == 3 * rounds
    assert forecast.gates == ("evidence",)


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_change_that_is_checked_again_before_it_is_merged_has_no_further_rounds(rounds):
    """A branch that moved after the approval leads back to `test`; rounds that were used up stay used up."""
    forecast = forecast_run(MACHINE, {"mode": "implementation", "deliver": "merge", "max_iterations": rounds})
    assert forecast.calls == 3 * rounds
    assert [s.after for s in forecast.stretches] == ["start"]


def test_a_proposal_adds_its_discussion():
    """Three calls to the gate, three a round after approval, three more for each rework."""
    forecast = forecast_run(MACHINE, {"mode": "proposal", "deliver": "branch", "max_iterations": 4})
    assert {s.calls for s in forecast.stretches} == {3, 12}
    assert (forecast.calls, forecast.gates) == (15, ("confirm", "evidence"))


@pytest.mark.parametrize("deliver", ["branch", "draft-pr", "none"])
def test_a_branch_of_its_own_cannot_be_overtaken(deliver):
    """Gates about a branch that has moved are out of sight unless the change is merged."""
    assert forecast_run(MACHINE, {"mode": "proposal", "deliver": deliver, "max_iterations": 1}).gates == (
        "confirm",
        "evidence",
    )


def test_a_merge_has_gates_of_its_own():
    """Only with deliver = merge do the merge gate and the gates about a branch that has moved come into sight."""
    assert forecast_run(MACHINE, {"mode": "proposal", "deliver": "merge", "max_iterations": 1}).gates == (
        "confirm", "evidence", "merge", "moving", "recheck", "rewrite",
    )  # fmt: skip
