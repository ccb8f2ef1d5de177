"""Taking a change back in real repositories, where people have reverted, renamed and rewritten beside it."""

import pytest
from tests.support.git_repository import commit_files, git

from steersman.errors import AlreadyRevertedError, ChangeConflictError, ChangeNotOnBranchError

RUN = "250101-abc123"


def save(place, text, message="x"):
    (place / "README").write_text(text)
    return commit_files(place, message)


@pytest.fixture
def change(workspace, repo):
    """A recorded change of README."""
    base = git(repo, "rev-parse", "main")
    tree = workspace.checkout(RUN, base, f"{RUN}:1:1").path
    with open(f"{tree}/README", "w") as readme:
        readme.write("new\n")
    return workspace.capture(RUN, tree, base, "work")


@pytest.fixture
def made(workspace, change):
    """The same, merged into main."""
    return workspace.deliver(RUN, change.commit, "main", "merge", "main", "new").commit


def test_a_file_rewritten_with_the_same_bytes_does_not_block(workspace, repo, change):
    """An editor that saves without a change, or a copy of the whole checkout, stops no delivery and no revert."""
    (repo / "README").unlink()
    (repo / "README").write_text("hello\n")
    made = workspace.deliver(RUN, change.commit, "main", "merge", "main", "new").commit
    (repo / "README").unlink()
    (repo / "README").write_text("new\n")
    workspace.revert(RUN, made, "main", "Undo")
    assert (repo / "README").read_text() == "hello\n"
    assert git(repo, "status", "--porcelain") == ""


def test_a_persons_own_revert_counts(workspace, repo, made):
    """Whatever it has left in the file, git's own words say which commit it undoes."""
    save(repo, "later\n")
    with pytest.raises(ChangeConflictError, match=f"git revert {made[:12]}"):
        workspace.revert(RUN, made, "main", "Undo")
    mine = save(repo, "settled\n", f'Revert "new"\n\nThis reverts commit {made}.')
    assert workspace.revert(RUN, made, "main", "Undo").commit == mine
    assert git(repo, "rev-parse", "main") == mine


def test_a_change_can_be_reverted_again_after_the_first_revert_was_reverted(workspace, repo, made):
    """A revert that was reverted counts for nothing, be it ours or a person's."""
    first = workspace.revert(RUN, made, "main", "Undo").commit
    git(repo, "revert", "--no-edit", first)
    assert (repo / "README").read_text() == "new\n"
    second = workspace.revert(RUN, made, "main", "Undo").commit
    assert ((repo / "README").read_text(), second == first) == ("hello\n", False)
    assert workspace.revert(RUN, made, "main", "Undo").commit == second


def test_who_has_undone_it_is_named(workspace, repo, made):
    """Of several later commits, the one that left its files as they are."""
    mine = save(repo, "hello\n")
    (repo / "other").write_text("other\n")
    save(repo, "hello\n")
    with pytest.raises(AlreadyRevertedError, match=f"by {mine[:12]}") as undone:
        workspace.revert(RUN, made, "main", "Undo")
    assert undone.value.commit == mine


def test_where_it_is_instead_is_named(workspace, repo, change):
    """The branches that have it, and how ours is dropped; none where all are gone."""
    kept = workspace.deliver(RUN, change.commit, "main", "branch", None, "new").commit
    with pytest.raises(
        ChangeNotOnBranchError, match=f"the branch steersman/{RUN} has it. Delete it with `git branch -D"
    ):
        workspace.revert(RUN, kept, "main", "Undo")
    git(repo, "branch", "mine", kept)
    with pytest.raises(ChangeNotOnBranchError, match=f"mine, steersman/{RUN} have it. Delete"):
        workspace.revert(RUN, kept, "main", "Undo")
    git(repo, "branch", "-D", "mine", f"steersman/{RUN}")
    with pytest.raises(ChangeNotOnBranchError, match="no branch here has it"):
        workspace.revert(RUN, kept, "main", "Undo")
