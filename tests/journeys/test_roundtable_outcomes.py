"""Every outcome that the specification of the roundtable names in its sections 3 and 4, reached through the command line.

`proposal_changes_requested` is not among them: it is an outcome of old tasks of another program, and no run here has it.
"""

from typing import Any, NamedTuple

import pytest
from tests.support.sample_project import (
    APPROVAL,
    CHANGE_REQUEST,
    RIGHT_CODE,
    WRONG_CODE,
    Project,
    change_story,
    roundtable_crew,
    roundtable_story,
)

from steersman.contracts.agent import PROVIDER_CLASSES

pytestmark = pytest.mark.usefixtures("project_snapshots")


class Reached(NamedTuple):
    """A story and where it ends: the outcome, what the last round came to, and what the command says to a script."""

    outcome: str
    told: dict[str, Any]
    last_round: str = ""
    code: int = 1


def edits(*texts: str) -> list[dict[str, Any]]:
    """A coder that writes another file content in each round."""
    return [
        {
            "mode": "implementation",
            "round": str(n),
            "say": "done",
            "edit": [{"write": "calc.py", "text": text}],
        }
        for n, text in enumerate(texts, 1)
    ]


def failing(role: str, error: str, **more: Any) -> dict[str, Any]:
    """A crew in which one role's provider fails in the implementation."""
    return roundtable_story(
        crew=roundtable_crew(**{role: [{"mode": "implementation", "error": error, **more}]})
    )


def unrecordable(rounds: int) -> list[dict[str, Any]]:
    """A coder that leaves a file beside its change which git never keeps, for so many rounds."""
    told = edits(*[RIGHT_CODE] * (rounds + 1))
    for step in told[:rounds]:
        step["edit"].append({"write": "docs/git~1", "text": "x"})
    return told


WORSE = WRONG_CODE + "# once more\n"
PROPOSAL = roundtable_story(mode="proposal")
BLOCKED = change_story(
    roundtable_story(), "crew", "tester", 1, "reply", "commands", to=[["curl", "http://example.test"]]
)
NOTHING = change_story(roundtable_story(), "crew", "tester", 1, "reply", "commands", to=[])
OTHER_FAILURE = roundtable_story(
    max_iterations=2,
    rules={"repeated_failure": "same_failure"},
    crew=roundtable_crew(coder=edits(WORSE, WRONG_CODE.replace("-", "*"))),
)

SECTION_3 = (
    Reached("await_operator_confirm", PROPOSAL, code=3),
    Reached("approved", roundtable_story(), code=0),
    Reached("review_schema_invalid", roundtable_story(crew=roundtable_crew(reviewer=[{"mode": "implementation", "raw": "I approve."}]))),
    Reached("max_iterations_reached", {**NOTHING, "max_iterations": 1}, last_round="tester_schema_invalid"),
    Reached("max_iterations_reached", OTHER_FAILURE, last_round="test_failed"),
    Reached("tester_command_blocked", BLOCKED),
    Reached(
        "repeated_test_failure",
        roundtable_story(
            rules={"repeated_failure": "same_command"},
            crew=roundtable_crew(coder=edits(WORSE, WRONG_CODE + "# again\n")),
        ),
        last_round="test_failed",
    ),
    Reached(
        "max_iterations_reached",
        roundtable_story(
            max_iterations=1,
            crew=roundtable_crew(reviewer=[{"mode": "implementation", "reply": CHANGE_REQUEST}]),
        ),
        last_round="review_changes_requested",
    ),
)  # fmt: skip
SECTION_4 = (
    *(Reached(name, failing("coder", name)) for name in PROVIDER_CLASSES),
    *(Reached("provider_timeout", failing(role, "provider_timeout")) for role in ("reviewer", "tester")),
)


def ending(project: Project, run: str) -> tuple[str, str]:
    """The outcome of a run and of its last round, as `show` tells them."""
    shown = project.call("show", run, "--json").json()
    return shown["outcome"], shown["last_round_outcome"]


def named(reached: Reached) -> str:
    return f"{reached.outcome} {reached.last_round}".strip()


@pytest.mark.parametrize("reached", [*SECTION_3, *SECTION_4], ids=named)
def test_reached(project: Project, reached: Reached) -> None:
    """Each outcome is where its story ends; the command's exit code tells a script which kind it is."""
    result = project.run(reached.told)
    run = result.json()["run"]
    assert ending(project, run) == (reached.outcome, reached.last_round)
    assert result.code == reached.code
    _, event, to = project.rows(run)[-1]
    assert to == "finalize"
    assert not reached.outcome.startswith("provider_") or event == reached.outcome


def test_canceled(project: Project) -> None:
    """An operator's abort is an outcome of its own, also while a proposal waits."""
    run = project.run(PROPOSAL).json()["run"]
    assert project.call("abort", run).code == 0
    assert ending(project, run) == ("canceled", "")


def test_the_discussion_is_complete_before_the_operator_is_asked(project: Project) -> None:
    """§4.1: an event of its own, in the same state, before the outcome."""
    run = project.run(PROPOSAL).json()["run"]
    assert project.rows(run)[-2:] == [
        ("test", "discussion_complete", "test"),
        ("test", "await_operator_confirm", "finalize"),
    ]


def test_retries_are_on_the_events(project: Project) -> None:
    """§4.3: how often and why an effect was tried again stands in the tape, and the run goes on."""
    first, second = (
        {"mode": "implementation", "attempt": "1", "error": "provider_timeout", "detail": "too slow"},
        {"mode": "implementation", "reply": APPROVAL},
    )
    story = roundtable_story(retries=1, crew=roundtable_crew(reviewer=[first, second]))
    run = project.run(story).json()["run"]
    assert ending(project, run) == ("approved", "")
    retries = [e["retry"] for e in project.entries(run) if e.get("retry")]
    assert {(r["retry_count"], r["retry_reason"]) for r in retries} == {(1, "provider_timeout")}


def test_a_program_that_is_not_there(project: Project) -> None:
    """§4.4: an agent whose program is missing ends the run as provider_not_found, and names the program."""
    project.prepare(roundtable_story())
    config = project.repo / "steersman.toml"
    text = config.read_text().replace('agent = "scripted"\nscript = "../crew.yaml"', 'agent = "command"\ncommand = ["no-such-program", "{prompt_file}"]', 1)  # fmt: skip
    config.write_text(text)
    project.git("commit", "-qam", "another coder")
    result = project.call("run", "Fix add", "--mode", "implementation", "--json")
    run = result.json()["run"]
    assert ending(project, run) == ("provider_not_found", "")
    assert "no-such-program" in project.call("report", run).out


def test_whoever_may_not_write_and_does(project: Project) -> None:
    """§4.5: a reviewer that edits is refused, and that is its outcome."""
    edit = [{"write": "calc.py", "text": RIGHT_CODE}]
    story = roundtable_story(
        crew=roundtable_crew(reviewer=[{"mode": "implementation", "reply": APPROVAL, "edit": edit}])
    )
    run = project.run(story).json()["run"]
    assert ending(project, run) == ("provider_permission_denied", "")


def test_an_agent_that_takes_too_long(project: Project) -> None:
    """§4.2: the clock of a role ends its call."""
    story = roundtable_story(
        crew=roundtable_crew(coder=[{"mode": "implementation", "say": "late", "sleep": "30"}])
    )
    project.prepare(story)
    config = project.repo / "steersman.toml"
    config.write_text(config.read_text().replace("[roles.coder]\n", "[roles.coder]\nseconds = 1\n"))
    project.git("commit", "-qam", "a short clock")
    run = project.call("run", "Fix add", "--mode", "implementation", "--json").json()["run"]
    assert ending(project, run) == ("provider_timeout", "")


def test_a_tree_that_cannot_be_recorded_is_the_coders_to_mend(project: Project) -> None:
    """The round fails and nothing else: the next one is told the file and the fix, and its tree is approved."""
    done = project.run(roundtable_story(crew=roundtable_crew(coder=unrecordable(1))))
    run = done.json()["run"]
    assert (done.code, done.json()["outcome"]) == (0, "approved")
    assert ("build", "coder_changed_nothing", "iterate") in project.rows(run)
    assert "| 1 | not_recorded |" in project.call("report", run).out
    assert "why it stopped" not in project.call("show", run).out
    assert "docs" not in project.git("ls-tree", "--name-only", f"steersman/{run}")
    (second,) = [
        i
        for e in project.entries(run)
        for i in e.get("planned", ())
        if i["input"].get("round") == 2 and i["job"] == "implement"
    ]
    assert [i["id"] for i in second["input"]["must_fix"]] == ["not-recorded"]
    assert project.call("audit", "verify", run).code == 0


def test_a_tree_that_is_never_recorded_is_said_to_be(project: Project) -> None:
    """Without a round left the run has its own outcome, and show and report name the file and the fix."""
    done = project.run(roundtable_story(max_iterations=1, crew=roundtable_crew(coder=unrecordable(1))))
    assert (done.code, done.json()["outcome"]) == (1, "max_iterations_reached")
    fix = "git does not record docs/git~1; rename or remove what has such a name"
    run = done.json()["run"]
    assert fix in project.call("show", run).out
    assert fix in project.call("report", run).out
