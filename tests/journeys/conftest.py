"""Projects for journeys: made once, copied for each story."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.project_snapshots import ProjectSnapshots
from tests.support.sample_project import UNIT_TESTS, WRONG_CODE, Project


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit: a wrong function and the test that says so."""
    repo = tmp_path_factory.mktemp("template") / "repo"
    repo.mkdir()
    (repo / "calc.py").write_text(WRONG_CODE)
    (repo / "test_calc.py").write_text(UNIT_TESTS)
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-qm", "base"]):
        subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True)
    return repo


@pytest.fixture(scope="session")
def saved_states(tmp_path_factory: pytest.TempPathFactory) -> ProjectSnapshots:
    """The place where stories begin alike, and its states."""
    return ProjectSnapshots(tmp_path_factory.mktemp("kept"), Project.launcher)


@pytest.fixture
def project_snapshots(saved_states: ProjectSnapshots) -> ProjectSnapshots:
    """For modules whose stories leave nothing running: what they have in common is run once."""
    return saved_states


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, template: Path) -> Project:
    """A project of this test's own."""
    if "project_snapshots" in request.fixturenames:
        return request.getfixturevalue("project_snapshots").begin(template)
    return Project(tmp_path, template)


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Callable[[], Project]:
    """Any number of projects for a module."""
    return lambda: Project(tmp_path_factory.mktemp("project"), template)
