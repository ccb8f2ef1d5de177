"""Projects for journeys: made once, copied for each story."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoints import Checkpoints
from voyage import TESTS, WRONG, Project


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit: a wrong function and the test that says so."""
    repo = tmp_path_factory.mktemp("template") / "repo"
    repo.mkdir()
    (repo / "calc.py").write_text(WRONG)
    (repo / "test_calc.py").write_text(TESTS)
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-qm", "base"]):
        subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True)
    return repo


@pytest.fixture(scope="session")
def kept_states(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    """The place where stories begin alike, and its states."""
    return Checkpoints(tmp_path_factory.mktemp("kept"), Project.launcher)


@pytest.fixture
def checkpoints(kept_states: Checkpoints) -> Checkpoints:
    """For modules whose stories leave nothing running: what they have in common is run once."""
    return kept_states


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, template: Path) -> Project:
    """A project of this test's own."""
    if "checkpoints" in request.fixturenames:
        return request.getfixturevalue("checkpoints").begin(template)
    return Project(tmp_path, template)


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Callable[[], Project]:
    """Any number of projects for a module."""
    return lambda: Project(tmp_path_factory.mktemp("project"), template)
