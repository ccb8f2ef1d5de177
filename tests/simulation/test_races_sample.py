"""Several processes on one store, for a few rounds; the proof takes hundreds."""

import fairness
import kill
import races
from interrupted_run import proof_folder


def test_four_processes_race():
    """One owner per run, one answer per gate, the loser told, no tree driven twice."""
    with proof_folder("races") as folder:
        told = races.rounds(folder / "rounds", 8)
    assert told["faults"] == []
    assert (told["answers_won"], told["answers_lost_and_told"]) == (8, 8)


def test_a_stopped_owner_that_wakes_up():
    """It was taken over meanwhile: what it writes is refused."""
    with proof_folder("take-over") as folder:
        told = races.take_overs(folder, 2)
    assert (told["faults"], told["writes_of_the_old_owner_refused"]) == ([], 2)


def test_nobody_is_starved():
    """An occasional writer beside two saturated ones is served while they go on; the proof measures how soon."""
    with proof_folder("turns") as folder:
        told = fairness.measured(folder / "turns", (fairness.alone, fairness.together), 60)
    assert "error" not in told
    assert told["p50"] < 200


def test_the_installed_command_is_killed():
    """In the middle of an effect, with real git and agents that are processes: resumed, it ends approved, alone."""
    with proof_folder("kill") as folder:
        told = kill.drive_with_kills(folder / "project", [0.1])
    assert (told["outcome"], told["alive"], told["verified"]) == ("done: approved", [], True)
    assert (told["kills"], told["again"], told["transitions"]) == (1, 1, 18)
