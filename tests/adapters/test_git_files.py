"""Single files of a real working tree, put as a commit has them; links lead nowhere."""

import os

import pytest
from tests.support.git_repository import make_repository

from steersman.errors import WorkspaceError

RUN = "260101-abcdef"


@pytest.fixture
def repo(tmp_path):
    """A repository with an instruction file that is a link out of it, and a program."""
    place = tmp_path / "repo"
    place.mkdir()
    (tmp_path / "outside").write_text("secret\n")
    (place / "CLAUDE.md").symlink_to(tmp_path / "outside")
    (place / "run.sh").write_text("#!/bin/sh\n")
    (place / "run.sh").chmod(0o755)
    (place / "AGENTS.md").write_text("be kind\n")
    return make_repository(place, {})


def test_links_are_listed(workspace, tmp_path):
    """A commit's links are known by name and by what they lead to."""
    commit = workspace.base(None).commit
    assert workspace.links(commit) == ("CLAUDE.md",)
    assert workspace.link_targets(commit) == {"CLAUDE.md": str(tmp_path / "outside")}


def test_a_link_is_taken_away_and_put_back(workspace, tmp_path):
    """Without links the name is absent; with them the tree is again exactly the commit's."""
    base = workspace.base(None)
    tree = workspace.checkout(RUN, base.commit, f"{RUN}:1:1")
    workspace.write_files(tree.path, base.commit, ("CLAUDE.md", "run.sh"), links=False)
    assert not os.path.lexists(f"{tree.path}/CLAUDE.md")
    assert os.access(f"{tree.path}/run.sh", os.X_OK)
    workspace.write_files(tree.path, base.commit, ("CLAUDE.md",), links=True)
    assert workspace.checkout(RUN, base.commit, f"{RUN}:2:1").path == tree.path
    assert (tmp_path / "outside").read_text() == "secret\n"


def test_a_link_that_was_put_in_the_way_is_not_followed(workspace, tmp_path):
    """A name that became a link is replaced, and what it pointed to stays; a folder that became one is refused."""
    base = workspace.base(None)
    tree = workspace.checkout(RUN, base.commit, f"{RUN}:1:1")
    os.unlink(f"{tree.path}/AGENTS.md")
    os.symlink(tmp_path / "outside", f"{tree.path}/AGENTS.md")
    workspace.write_files(tree.path, base.commit, ("AGENTS.md",), links=True)
    assert (tmp_path / "outside").read_text() == "secret\n"
    assert open(f"{tree.path}/AGENTS.md").read() == "be kind\n"  # noqa: SIM115  a test
    os.symlink(tmp_path, f"{tree.path}/sub")
    with pytest.raises(WorkspaceError, match="cannot be put as it was"):
        workspace.write_files(tree.path, base.commit, ("sub/outside",), links=True)
    assert (tmp_path / "outside").exists()


@pytest.mark.parametrize("name", ["../outside", ".git/config", "a//b", "", "."])
def test_what_is_no_file_of_a_tree_is_refused(workspace, name):
    """No name leads out of the tree or into git's own files."""
    base = workspace.base(None)
    tree = workspace.checkout(RUN, base.commit, f"{RUN}:1:1")
    with pytest.raises(WorkspaceError):
        workspace.write_files(tree.path, base.commit, (name,), links=True)


def test_a_change_tells_links_from_files(workspace):
    """A link in place of a file is a change of kind."""
    base = workspace.base(None)
    tree = workspace.checkout(RUN, base.commit, f"{RUN}:1:1")
    os.unlink(f"{tree.path}/AGENTS.md")
    os.symlink("/etc/hostname", f"{tree.path}/AGENTS.md")
    (touched,) = workspace.capture(RUN, tree.path, base.commit, "work").touched
    assert (touched.path, touched.kind) == ("AGENTS.md", "link")
