"""What several suites of adapters need."""

import pytest
from tests.support.git_repository import make_repository

from steersman.adapters.git.workspace import GitWorkspace
from steersman.adapters.sandbox.bubblewrap import probe_sandbox


@pytest.fixture
def repo(tmp_path):
    """A person's repository with one commit on main."""
    return make_repository(tmp_path / "repo", {"README": "hello\n"})


@pytest.fixture
def workspace(repo, tmp_path):
    """The adapter over that repository."""
    return GitWorkspace(repo, tmp_path / "state")


@pytest.fixture
def sandbox():
    """The sandbox of this machine; without one there is nothing to prove here, and the reason is shown."""
    found = probe_sandbox("auto")
    if not found.isolated:
        pytest.skip(f"NOT SHOWN, no sandbox on this machine: {found.why}")
    return found
