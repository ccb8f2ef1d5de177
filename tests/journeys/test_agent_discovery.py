"""Who is there to be asked: `init` finds the agents of this machine, `doctor` and `run` say what stands in their way."""

from pathlib import Path

import pytest
from tests.support.sample_project import Project


def put(folder: Path, *names: str) -> str:
    """Programs of these names in a folder of PATH."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.parametrize(
    ("there", "coder", "reviewer"),
    [
        (("claude", "codex"), "claude", "codex"),
        (("codex",), "codex", "codex"),
        (("claude",), "claude", "claude"),
    ],
)
def test_init_names_the_agents_that_are_installed(
    project: Project, there: tuple[str, ...], coder: str, reviewer: str
) -> None:
    """One that is there plays every role; of two, another one reviews and tests than writes."""
    result = project.call("init", "--yes", PATH=put(project.place / "clis", *there))
    assert result.code == 0, result
    written = (project.repo / "steersman.toml").read_text()
    assert f'[roles.coder]\nagent = "{coder}"' in written
    assert f'[roles.reviewer]\nagent = "{reviewer}"' in written
    assert f'[roles.tester]\nagent = "{reviewer}"' in written


def test_without_an_agent_init_says_what_to_do(project: Project) -> None:
    """Nobody is made up: without a CLI there is no role, and the next step is told."""
    result = project.call("init", "--yes", PATH="/usr/bin:/bin")
    assert result.code == 0, result
    assert "\n[roles." not in (project.repo / "steersman.toml").read_text()
    assert "no agent was found: install one, or name an agent under [roles.…] in steersman.toml" in result.out


def test_what_stands_in_the_way_is_told_before_it_starts(project: Project) -> None:
    """doctor names the role, what is missing and what to do: the program first, then the login."""
    path = put(project.place / "clis", "claude")
    assert project.call("init", "--yes", PATH=path).code == 0
    missing = project.call("doctor", PATH="/usr/bin:/bin")
    assert missing.code == 1
    assert "[roles.coder] claude was not found: install it" in missing.out
    without = project.call("doctor", PATH=path, HOME=str(project.place), ANTHROPIC_API_KEY="")
    assert without.code == 1
    assert "[roles.coder] claude is not logged in" in without.out
    ready = project.call("doctor", PATH=path, HOME=str(project.place), ANTHROPIC_API_KEY="given")
    assert "[roles.coder]" not in ready.out


def test_a_field_that_the_agent_does_not_know_is_refused_by_name(project: Project) -> None:
    """A role's table is judged before a run begins: the field, the role, and what is known instead."""
    (project.repo / "steersman.toml").write_text(
        'version = 1\n[roles.coder]\nagent = "claude"\ncolour = "red"\n'
    )
    result = project.call("run", "x")
    assert result.code != 0
    assert "[roles.coder]" in result.err
    assert "colour" in result.err
