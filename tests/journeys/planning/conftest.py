"""A small real repository to plan for, copied for each story."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.sample_project import Project

HERE = Path(__file__).parent / "repository"
collect_ignore = ["repository"]  # its tests are its own


@pytest.fixture(scope="session")
def chandler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with one commit, always the same one."""
    repo = tmp_path_factory.mktemp("chandler") / "repo"
    shutil.copytree(HERE, repo, ignore=shutil.ignore_patterns("__pycache__"))
    when = {"GIT_AUTHOR_DATE": "2026-01-25T09:30:00Z", "GIT_COMMITTER_DATE": "2026-01-25T09:30:00Z"}
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-qm", "base"]):
        subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True, env={"PATH": "/usr/bin:/bin", "HOME": str(repo.parent), **when})  # fmt: skip
    return repo


@pytest.fixture
def shop_project(tmp_path: Path, chandler: Path) -> Project:
    """A project of this test's own, with that repository."""
    return Project(tmp_path, chandler)
