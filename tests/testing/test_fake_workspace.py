"""The fake repository keeps the promises of its port."""

import pytest

from steersman.testing.conformance_workspace import WorkspaceConformance
from steersman.testing.conformance_workspace_moved import MovedBaseConformance
from steersman.testing.workspace import FakeWorkspace


class TestFakeWorkspace(WorkspaceConformance, MovedBaseConformance):
    """The same suite as git."""

    @pytest.fixture
    def workspace(self, tmp_path):
        return FakeWorkspace(tmp_path / "fake", {"README": "hello\n"})


def test_it_survives_its_process(tmp_path):
    """Another object over the same folder sees the same commits and trees."""
    one = FakeWorkspace(tmp_path, {"a": "1"})
    tree = one.checkout("run", one.base(None).commit, "run:1:1")
    two = FakeWorkspace(tmp_path)
    assert two.base(None) == one.base(None)
    assert two.checkout("run", one.base(None).commit, "run:1:1").path == tree.path
