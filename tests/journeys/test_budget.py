"""A budget that is used up parks the run; a person raises it or stops."""

from typing import Any

import pytest
from tests.support.sample_project import Project, change_story, roundtable_story

pytestmark = pytest.mark.usefixtures("project_snapshots")

POOR = roundtable_story(budget={"turns": 2})


@pytest.fixture
def parked(project: Project) -> tuple[Project, str]:
    """A run whose third agent call has no turn left."""
    result = project.run(POOR)
    assert result.code == 3, result
    told: dict[str, Any] = result.json()
    assert [g["job"] for g in told["gates"]] == ["budget"]
    assert f"steersman answer {told['run']} raise --turns N" in told["next"]
    return project, told["run"]


def test_a_raise_lets_it_go_on(parked: tuple[Project, str]) -> None:
    """With a higher limit the held call is made and the run ends approved; the answer is on tape."""
    project, run = parked
    done = project.call("answer", run, "raise", "--turns", "9")
    assert done.code == 0, done
    answered = [e for e in project.entries(run) if e["kind"] == "gate_answered"]
    assert [e["data"]["limits"] for e in answered] == [{"turns": 9}]


def test_a_raise_is_upwards(parked: tuple[Project, str]) -> None:
    """A limit at or below the one there is, and a raise of nothing, are refused before anything is written."""
    project, run = parked
    before = project.entries(run)
    for words in (["--turns", "2"], [], ["--usd", "nothing"], ["--usd", "-1"]):
        assert project.call("answer", run, "raise", *words).code == 2
    assert project.entries(run) == before


def test_a_raise_of_something_without_a_limit_is_refused(parked: tuple[Project, str]) -> None:
    """Tokens have no limit here, so more of them would bind nothing; the gate stays open for turns."""
    project, run = parked
    other = project.call("answer", run, "raise", "--tokens", "1000000")
    assert other.code == 2, other
    assert "no limit on tokens" in other.err
    assert project.call("answer", run, "raise", "--turns", "9").code == 0


def test_stop_ends_it(parked: tuple[Project, str]) -> None:
    """`stop` ends the run as asked."""
    project, run = parked
    done = project.call("answer", run, "stop", "--json")
    assert (done.code, done.json()["outcome"]) == (0, "canceled")


def test_a_gate_takes_only_its_own_choices(parked: tuple[Project, str]) -> None:
    """Approval is no choice of a budget gate."""
    project, run = parked
    result = project.call("approve", run)
    assert result.code == 2
    assert "Choose one of raise, stop" in result.err


def test_spending_is_shown_with_its_limit(project: Project) -> None:
    """`show` tells what was spent, what may be, and which calls told nothing."""
    story = change_story(
        roundtable_story(budget={"tokens": 1000, "turns": 9}), "crew", "coder", 1, "tokens", to="70"
    )
    run = project.run(story).json()["run"]
    words = project.call("show", run).out
    assert "tokens: 70 of 1 000" in words
    assert "calls did not report their cost" in words
