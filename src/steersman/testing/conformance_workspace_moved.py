"""What every adapter of the `Workspace` port does when a branch has moved since a run began.

    class TestMine(MovedBaseConformance):
        @pytest.fixture
        def workspace(self, tmp_path): ...   # over a repository with `README` = "hello\\n" committed on a branch

**Invariant:** speaks to the adapter through the port alone; the working trees are ordinary directories.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from steersman.contracts.workspace import Base, Change, Rebased
from steersman.errors import BranchMovedError, WorkspaceError
from steersman.ports.workspace import Workspace

RUN = "260101-abcdef"
OTHER = "260101-others"
Edits = Mapping[str, str | None]  # None: the file is deleted


class Begun(NamedTuple):
    """Where a run began."""

    workspace: Workspace
    base: Base
    branch: str

    def change(self, edits: Edits, run: str = RUN, base: Base | None = None) -> Change:
        """A recorded change, of the commit that the run began on or of another."""
        start = (base or self.base).commit
        tree = Path(self.workspace.checkout(run, start, f"{run}:1:1").path)
        for name, text in edits.items():
            if text is None:
                (tree / name).unlink()
            else:
                (tree / name).write_text(text)
        change = self.workspace.capture(run, str(tree), start, "work")
        self.workspace.remove(run)
        return change

    def moved(self, edits: Edits) -> Base:
        """The branch with somebody else's change on it."""
        now = self.now()
        theirs = self.change(edits, OTHER, now)
        self.workspace.deliver(OTHER, theirs.commit, now.commit, "merge", self.branch, "Theirs")
        return self.now()

    def now(self) -> Base:
        """What the branch is now."""
        return self.workspace.base(self.branch)

    def rebased(self, change: Change, run: str = RUN) -> Rebased:
        """The change on what the branch is now."""
        return self.workspace.rebased(run, change.commit, self.base.commit, self.branch, "moved")

    def files(self, commit: str) -> dict[str, bytes]:
        """Everything in a commit."""
        return self.workspace.contents(commit, self.workspace.paths(commit))


class MovedBaseConformance:
    """One claim of the port per method; `workspace` comes from the inheriting class."""

    @pytest.fixture
    def begun(self, workspace: Workspace) -> Begun:
        """A run on the branch that the repository is on."""
        base = workspace.base(None)
        assert base.branch is not None
        return Begun(workspace, base, base.branch)

    def test_a_branch_that_stayed_needs_nothing(self, begun: Begun) -> None:
        """Where nothing moved the answer is the base, and no change."""
        change = begun.change({"README": "mine\n"})
        assert begun.rebased(change) == Rebased(False, begun.base.commit, begun.base.tree)

    def test_a_change_is_brought_onto_what_others_did(self, begun: Begun) -> None:
        """What they changed is there, what the run changed is the change; the branch is only looked at."""
        change = begun.change({"README": "mine\n", "new": "1\n2\n"})
        tip = begun.moved({"other": "theirs\n"})
        rebased = begun.rebased(change)
        assert (rebased.moved, rebased.base, rebased.base_tree) == (True, tip.commit, tip.tree)
        assert rebased.conflicts == ()
        assert rebased.change is not None
        found = rebased.change
        assert (found.files, found.added, found.removed) == (("README", "new"), 3, 1)
        assert "+mine\n" in found.patch
        assert "theirs" not in found.patch
        assert begun.files(found.commit) == {"README": b"mine\n", "new": b"1\n2\n", "other": b"theirs\n"}
        assert begun.now() == tip

    def test_it_is_what_recording_the_same_files_there_gives(self, begun: Begun) -> None:
        """A change that was brought over and one that was made there are the same commit, path by path."""
        change = begun.change({"README": "mine\n"})
        tip = begun.moved({"other": "theirs\n"})
        assert begun.rebased(change).change == begun.change({"README": "mine\n"}, base=tip)

    def test_asking_again_gives_the_same(self, begun: Begun) -> None:
        """The same commit, for another run too; and it can be worked on when every tree is gone."""
        change = begun.change({"README": "mine\n"})
        begun.moved({"other": "theirs\n"})
        first = begun.rebased(change)
        assert begun.rebased(change) == begun.rebased(change, "another-run") == first
        assert first.change is not None
        tree = begun.workspace.checkout(RUN, first.change.commit, f"{RUN}:2:1")
        assert (tree.tree, Path(tree.path, "README").read_text()) == (first.change.tree, "mine\n")

    def test_a_branch_that_moves_on_is_followed(self, begun: Begun) -> None:
        """From where the run began, or from the change that was brought over before: the files are the same."""
        change = begun.change({"README": "mine\n"})
        begun.moved({"other": "one\n"})
        first = begun.rebased(change)
        tip = begun.moved({"other": "two\n", "more": "x\n"})
        assert first.change is not None
        again = begun.workspace.rebased(RUN, first.change.commit, first.base, begun.branch, "again")
        assert again == begun.rebased(change)
        assert (again.base, begun.files(again.change.commit if again.change else "")) == (
            tip.commit,
            {"README": b"mine\n", "other": b"two\n", "more": b"x\n"},
        )

    def test_commits_that_the_branch_no_longer_has_are_told(self, begun: Begun) -> None:
        """The newest first, each with its subject; the change alone is brought over, and they do not come with it."""
        first = begun.change({"one": "theirs\n"}, OTHER)
        done = begun.workspace.deliver(OTHER, first.commit, begun.base.commit, "branch", None, "First\n\nWhy")
        second = begun.change({"two": "theirs\n"}, OTHER, Base(done.commit, done.tree))
        done = begun.workspace.deliver(OTHER, second.commit, done.commit, "branch", None, "Second")
        base = Base(done.commit, done.tree)
        change = begun.change({"README": "mine\n"}, base=base)
        found = begun.workspace.rebased(RUN, change.commit, base.commit, begun.branch, "moved")
        assert (found.moved, found.base, found.conflicts) == (True, begun.base.commit, ())
        names, subjects = zip(*(line.split(" ", 1) for line in found.dropped), strict=True)
        assert subjects == ("Second", "First")
        assert base.commit.startswith(names[0])
        assert found.change is not None
        assert begun.files(found.change.commit) == {**begun.files(begun.base.commit), "README": b"mine\n"}
        tip = begun.moved({"other": "theirs\n"})
        again = begun.workspace.rebased(RUN, found.change.commit, found.base, begun.branch, "again")
        assert (again.base, again.dropped) == (tip.commit, ())

    def test_a_branch_that_only_moved_on_has_lost_nothing(self, begun: Begun) -> None:
        """Also where the change stands on a recorded tree, which no branch has."""
        change = begun.change({"README": "mine\n"})
        begun.moved({"other": "theirs\n"})
        further = begun.change({"more": "mine\n"}, base=Base(change.commit, change.tree))
        assert begun.rebased(change).dropped == ()
        found = begun.workspace.rebased(RUN, further.commit, change.commit, begun.branch, "further")
        assert (found.moved, found.dropped) == (True, ())

    def test_a_conflict_is_told_by_file(self, begun: Begun) -> None:
        """Where both changed the same lines the file is named, and there is no change."""
        change = begun.change({"README": "mine\n", "fine": "mine\n"})
        tip = begun.moved({"README": "theirs\n"})
        assert begun.rebased(change) == Rebased(True, tip.commit, tip.tree, None, ("README",))

    @pytest.mark.parametrize(
        ("mine", "theirs"), [(None, "theirs\n"), ("mine\n", None)], ids=["mine", "theirs"]
    )
    def test_a_file_that_one_deleted_and_the_other_changed(
        self, begun: Begun, mine: str | None, theirs: str | None
    ) -> None:
        """That is a conflict, whoever deleted it."""
        change = begun.change({"README": mine})
        begun.moved({"README": theirs})
        assert begun.rebased(change).conflicts == ("README",)

    def test_what_the_run_deleted_stays_deleted(self, begun: Begun) -> None:
        """A file that only the run deleted is a deletion there; one that only they deleted does not come back."""
        now = begun.moved({"gone": "x\n"})
        later = begun._replace(base=now)
        change = later.change({"README": None})
        later.moved({"gone": None, "other": "theirs\n"})
        rebased = later.rebased(change)
        assert rebased.change is not None
        (touched,) = rebased.change.touched
        assert (touched.path, touched.new, bool(touched.old)) == ("README", "", True)
        assert later.files(rebased.change.commit) == {"other": b"theirs\n"}

    def test_what_the_branch_has_already_is_no_change(self, begun: Begun) -> None:
        """The same change by somebody else, or this one delivered, leaves nothing to be changed."""
        change = begun.change({"README": "same\n"})
        tip = begun.moved({"README": "same\n"})
        rebased = begun.rebased(change)
        assert rebased.change is not None
        assert (rebased.moved, rebased.change.files, rebased.change.tree) == (True, (), tip.tree)

    def test_what_is_not_there_is_refused(self, begun: Begun) -> None:
        """A branch that is gone, commits that nobody has, names that lead elsewhere."""
        change = begun.change({"README": "mine\n"})
        begun.moved({"other": "theirs\n"})
        for branch in ("gone", "a..b", "-x", ""):
            with pytest.raises(WorkspaceError, match=r"there is no branch .*; create it or name another"):
                begun.workspace.rebased(RUN, change.commit, begun.base.commit, branch, "moved")
        nobodys = "0" * len(change.commit)
        for commit, base in ((nobodys, begun.base.commit), (change.commit, nobodys)):
            with pytest.raises(WorkspaceError, match=r"the commit .* is not "):
                begun.workspace.rebased(RUN, commit, base, begun.branch, "moved")
        for run, label, kind in (("../x", "moved", "run"), (RUN, "a/../b", "label")):
            with pytest.raises(WorkspaceError, match=f"cannot be a {kind}"):
                begun.workspace.rebased(run, change.commit, begun.base.commit, begun.branch, label)

    def test_a_merge_is_what_was_verified(self, begun: Begun) -> None:
        """A branch that is at the base goes to exactly the recorded tree; once more, also later, changes nothing."""
        change = begun.change({"README": "mine\n"})
        args = (RUN, change.commit, begun.base.commit, "merge", begun.branch, "Mine")
        first = begun.workspace.deliver(*args)
        assert (first.tree, begun.now().commit) == (change.tree, first.commit)
        assert begun.workspace.deliver(*args) == first
        tip = begun.moved({"other": "theirs\n"})
        assert begun.workspace.deliver(*args) == first
        assert begun.now() == tip

    def test_a_merge_never_mixes(self, begun: Begun) -> None:
        """A branch that has moved is left alone, and the refusal says from where to where; on the new base it goes."""
        change = begun.change({"README": "mine\n"})
        tip = begun.moved({"other": "theirs\n"})
        with pytest.raises(BranchMovedError, match=f"has moved from {begun.base.commit} to {tip.commit}"):
            begun.workspace.deliver(RUN, change.commit, begun.base.commit, "merge", begun.branch, "Mine")
        assert begun.now() == tip
        rebased = begun.rebased(change)
        assert rebased.change is not None
        done = begun.workspace.deliver(
            RUN, rebased.change.commit, rebased.base, "merge", begun.branch, "Mine"
        )
        assert (done.tree, begun.now().commit) == (rebased.change.tree, done.commit)

    def test_a_branch_of_its_own_is_exact_anyway(self, begun: Begun) -> None:
        """It holds the recorded tree, wherever others have gone."""
        change = begun.change({"README": "mine\n"})
        begun.moved({"other": "theirs\n"})
        args = (RUN, change.commit, begun.base.commit, "branch", None, "Mine")
        assert begun.workspace.deliver(*args).tree == change.tree

    def test_a_branch_has_a_change_when_its_commit_is_in_it(self, begun: Begun) -> None:
        """From the delivery on, whatever comes after it; taken back, or undone by hand, it is not there any more."""
        change = begun.change({"README": "mine\n"})
        held = begun.workspace.holds
        assert not held(begun.base.commit, [change.commit])
        args = (RUN, change.commit, begun.base.commit, "merge", begun.branch, "Mine")
        made = [begun.workspace.deliver(*args).commit]
        assert held(begun.now().commit, made)
        tip = begun.moved({"README": "mine, and theirs\n"})
        assert held(tip.commit, made)
        assert not held(begun.moved({"README": "hello\n"}).commit, made)
        assert held(begun.moved({"README": "mine\n"}).commit, made)
        begun.workspace.revert(RUN, made[0], begun.branch, "Not mine\n\n")
        assert not held(begun.now().commit, made)
        assert held(begun.moved({"README": "mine\n", "other": "x\n"}).commit, made)  # put back by hand
        assert not held(
            begun.moved({"README": "theirs alone\n"}).commit, made
        )  # nobody knows: a revert came after it
        assert held(tip.commit, made)

    def test_a_branch_has_a_change_that_came_in_other_commits(self, begun: Begun) -> None:
        """Squashed or typed again: all of it has to be there, and nothing in its place."""
        change = begun.change({"README": "mine\n", "new": "1\n"})
        for edits, there in (({"README": "mine\n"}, False), ({"new": "2\n"}, False), ({"new": "1\n"}, True)):
            tip = begun.moved(edits)
            assert begun.workspace.holds(tip.commit, [change.commit]) is there
        with pytest.raises(WorkspaceError, match=r"the commit .* is not "):
            begun.workspace.holds(tip.commit, ["0" * len(tip.commit)])

    def test_what_deliveries_were_made_on_can_be_told(self, begun: Begun) -> None:
        """The newest without any of them, what others did in between is in it; where both changed the same it cannot be."""
        workspace, branch = begun.workspace, begun.branch
        first = begun.change({"README": "mine\n"})
        one = workspace.deliver(RUN, first.commit, begun.base.commit, "merge", branch, "Mine").commit
        between = begun.moved({"other": "theirs\n"})
        second = begun.change({"README": "mine, again\n"}, base=between)
        two = workspace.deliver(RUN, second.commit, between.commit, "merge", branch, "Mine").commit
        found = workspace.whole(RUN, [two, one], "whole")
        assert begun.files(found.commit) == {"README": b"hello\n", "other": b"theirs\n"}
        assert workspace.whole(RUN, [two, one], "whole") == found
        assert workspace.holds(begun.now().commit, [two, one])
        meddled = begun.moved({"README": "mine, again, and theirs\n"})
        third = begun.change({"README": "mine at last\n"}, base=meddled)
        three = workspace.deliver(RUN, third.commit, meddled.commit, "merge", branch, "Mine").commit
        with pytest.raises(WorkspaceError, match="cannot be told from what others did in between"):
            workspace.whole(RUN, [three, two, one], "whole")
        assert workspace.holds(begun.now().commit, [three, two, one])

    def test_what_was_delivered_twice_is_taken_back_at_once(self, begun: Begun) -> None:
        """Both deliveries of a run by one commit, what others did in between stays; one that the branch never had is passed over."""
        workspace, branch = begun.workspace, begun.branch
        first = begun.change({"README": "mine\n"})
        one = workspace.deliver(RUN, first.commit, begun.base.commit, "merge", branch, "Mine").commit
        between = begun.moved({"other": "theirs\n"})
        second = begun.change({"README": "mine, again\n", "new": "1\n"}, base=between)
        two = workspace.deliver(RUN, second.commit, between.commit, "merge", branch, "Mine").commit
        never = begun.change({"never": "merged\n"}).commit
        done = workspace.revert(RUN, never, branch, "Undo\n\n", also=(two, one))
        assert begun.files(done.commit) == {"README": b"hello\n", "other": b"theirs\n"}
        assert workspace.base(branch).commit == done.commit
        assert workspace.revert(RUN, two, branch, "Undo\n\n", also=(one,)) == done
        assert not workspace.holds(done.commit, [one])
