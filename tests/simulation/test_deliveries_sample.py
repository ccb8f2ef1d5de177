"""Deliveries beside a person who works, and kills, for a few trials; the proof takes hundreds."""

import deliveries
from interrupted_run import proof_folder


def test_deliveries_beside_a_person():
    """HEAD, index and files agree, no commit of the person has our files, every delivered tree was tested."""
    with proof_folder("deliveries") as folder:
        told = deliveries.trials(folder, range(1, 2))
    assert told["faults"] == []
    assert told["delivered"] > 0


def test_driver_and_git_are_killed_together():
    """What was cut short is finished or undone by whoever comes next."""
    with proof_folder("kills") as folder:
        told = deliveries.kills(folder, 3, 40)
    assert told["faults"] == []
