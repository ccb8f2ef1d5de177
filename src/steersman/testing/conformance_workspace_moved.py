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

from steersman.contracts.workspace import Change, RebasedChange, RunBase
from steersman.errors import BranchMovedError, WorkspaceError
from steersman.ports.workspace import Workspace

MOVED_BASE_RUN = "260101-abcdef"
OTHER_PERSON_RUN = "260101-others"
FileEdits = Mapping[str, str | None]  # None: the file is deleted


class BegunRun(NamedTuple):
    """Where a run began."""

    workspace: Workspace
    base: RunBase
    branch: str

    def change(self, edits: FileEdits, run: str = MOVED_BASE_RUN, base: RunBase | None = None) -> Change:
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

    def moved(self, edits: FileEdits) -> RunBase:
        """The branch with another person's change on it."""
        now = self.now()
        theirs = self.change(edits, OTHER_PERSON_RUN, now)
        self.workspace.deliver(OTHER_PERSON_RUN, theirs.commit, now.commit, "merge", self.branch, "Theirs")
        return self.now()

    def now(self) -> RunBase:
        """What the branch is now."""
        return self.workspace.base(self.branch)

    def rebased(self, change: Change, run: str = MOVED_BASE_RUN) -> RebasedChange:
        """The change on what the branch is now."""
        return self.workspace.rebase_change(run, change.commit, self.base.commit, self.branch, "moved")

    def files(self, commit: str) -> dict[str, bytes]:
        """Everything in a commit."""
        return self.workspace.read_contents(commit, self.workspace.paths(commit))


class MovedBaseConformance:
    """One claim of the port per method; `workspace` comes from the inheriting class."""

    @pytest.fixture
    def begun(self, workspace: Workspace) -> BegunRun:
        """A run on the branch that the repository is on."""
        base = workspace.base(None)
        assert base.branch is not None
        return BegunRun(workspace, base, base.branch)

    def test_a_branch_that_stayed_needs_nothing(self, begun: BegunRun) -> None:
        """Where nothing moved the answer is the base, and no change."""
        change = begun.change({"README": "mine\n"})
        assert begun.rebased(change) == RebasedChange(False, begun.base.commit, begun.base.tree)

    def test_a_change_is_brought_onto_what_others_did(self, begun: BegunRun) -> None:
        """What they changed is there, what the run changed is the change; the branch is only looked at."""
        change = begun.change({"README": "mine\n", "new": "1\n2\n"})
        tip = begun.moved({"other": "theirs\n"})
        rebased = begun.rebased(change)
        assert (rebased.moved, rebased.base, rebased.base_tree) == (True, tip.commit, tip.tree)
        assert rebased.conflicts == ()
        assert rebased.change is not None
        rebased_change = rebased.change
        assert (rebased_change.files, rebased_change.added, rebased_change.removed) == (
            ("README", "new"),
            3,
            1,
        )
        assert "+mine\n" in rebased_change.patch
        assert "theirs" not in rebased_change.patch
        assert begun.files(rebased_change.commit) == {
            "README": b"mine\n",
            "new": b"1\n2\n",
            "other": b"theirs\n",
        }
        assert begun.now() == tip

    def test_it_is_what_recording_the_same_files_there_gives(self, begun: BegunRun) -> None:
        """A change that was brought over and one that was made there are the same commit, path by path."""
        change = begun.change({"README": "mine\n"})
        tip = begun.moved({"other": "theirs\n"})
        assert begun.rebased(change).change == begun.change({"README": "mine\n"}, base=tip)

    def test_asking_again_gives_the_same(self, begun: BegunRun) -> None:
        """The same commit, for another run too; and it can be worked on when every tree is gone."""
        change = begun.change({"README": "mine\n"})
        begun.moved({"other": "theirs\n"})
        first = begun.rebased(change)
        assert begun.rebased(change) == begun.rebased(change, "another-run") == first
        assert first.change is not None
        tree = begun.workspace.checkout(MOVED_BASE_RUN, first.change.commit, f"{MOVED_BASE_RUN}:2:1")
        assert (tree.tree, Path(tree.path, "README").read_text()) == (first.change.tree, "mine\n")

    def test_a_branch_that_moves_on_is_followed(self, begun: BegunRun) -> None:
        """From where the run began, or from the change that was brought over before: the files are the same."""
        change = begun.change({"README": "mine\n"})
        begun.moved({"other": "one\n"})
        first = begun.rebased(change)
        tip = begun.moved({"other": "two\n", "more": "x\n"})
        assert first.change is not None
        again = begun.workspace.rebase_change(
            MOVED_BASE_RUN, first.change.commit, first.base, begun.branch, "again"
        )
        assert again == begun.rebased(change)
        assert (again.base, begun.files(again.change.commit if again.change else "")) == (
            tip.commit,
            {"README": b"mine\n", "other": b"two\n", "more": b"x\n"},
        )

    def test_commits_that_the_branch_no_longer_has_are_told(self, begun: BegunRun) -> None:
        """The newest first, each with its subject; the change alone is brought over, and they do not come with it."""
        first = begun.change({"one": "theirs\n"}, OTHER_PERSON_RUN)
        delivery = begun.workspace.deliver(
            OTHER_PERSON_RUN, first.commit, begun.base.commit, "branch", None, "First\n\nWhy"
        )
        second = begun.change({"two": "theirs\n"}, OTHER_PERSON_RUN, RunBase(delivery.commit, delivery.tree))
        delivery = begun.workspace.deliver(
            OTHER_PERSON_RUN, second.commit, delivery.commit, "branch", None, "Second"
        )
        base = RunBase(delivery.commit, delivery.tree)
        change = begun.change({"README": "mine\n"}, base=base)
        rebased = begun.workspace.rebase_change(
            MOVED_BASE_RUN, change.commit, base.commit, begun.branch, "moved"
        )
        assert (rebased.moved, rebased.base, rebased.conflicts) == (True, begun.base.commit, ())
        names, subjects = zip(*(line.split(" ", 1) for line in rebased.dropped), strict=True)
        assert subjects == ("Second", "First")
        assert base.commit.startswith(names[0])
        assert rebased.change is not None
        assert begun.files(rebased.change.commit) == {**begun.files(begun.base.commit), "README": b"mine\n"}
        tip = begun.moved({"other": "theirs\n"})
        again = begun.workspace.rebase_change(
            MOVED_BASE_RUN, rebased.change.commit, rebased.base, begun.branch, "again"
        )
        assert (again.base, again.dropped) == (tip.commit, ())

    def test_a_branch_that_only_moved_on_has_lost_nothing(self, begun: BegunRun) -> None:
        """Also where the change stands on a recorded tree, which no branch has."""
        change = begun.change({"README": "mine\n"})
        begun.moved({"other": "theirs\n"})
        further = begun.change({"more": "mine\n"}, base=RunBase(change.commit, change.tree))
        assert begun.rebased(change).dropped == ()
        rebased = begun.workspace.rebase_change(
            MOVED_BASE_RUN, further.commit, change.commit, begun.branch, "further"
        )
        assert (rebased.moved, rebased.dropped) == (True, ())

    def test_a_conflict_is_told_by_file(self, begun: BegunRun) -> None:
        """Where both changed the same lines the file is named, and there is no change."""
        change = begun.change({"README": "mine\n", "fine": "mine\n"})
        tip = begun.moved({"README": "theirs\n"})
        assert begun.rebased(change) == RebasedChange(True, tip.commit, tip.tree, None, ("README",))

    @pytest.mark.parametrize(
        ("mine", "theirs"), [(None, "theirs\n"), ("mine\n", None)], ids=["mine", "theirs"]
    )
    def test_a_file_that_one_deleted_and_the_other_changed(
        self, begun: BegunRun, mine: str | None, theirs: str | None
    ) -> None:
        """That is a conflict on either side."""
        change = begun.change({"README": mine})
        begun.moved({"README": theirs})
        assert begun.rebased(change).conflicts == ("README",)

    def test_what_the_run_deleted_stays_deleted(self, begun: BegunRun) -> None:
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

    def test_what_the_branch_has_already_is_no_change(self, begun: BegunRun) -> None:
        """The same change made elsewhere, or this one delivered, leaves nothing to change."""
        change = begun.change({"README": "same\n"})
        tip = begun.moved({"README": "same\n"})
        rebased = begun.rebased(change)
        assert rebased.change is not None
        assert (rebased.moved, rebased.change.files, rebased.change.tree) == (True, (), tip.tree)

    def test_what_is_not_there_is_refused(self, begun: BegunRun) -> None:
        """A branch that is gone, commits that are nowhere, names that lead elsewhere."""
        change = begun.change({"README": "mine\n"})
        begun.moved({"other": "theirs\n"})
        for branch in ("gone", "a..b", "-x", ""):
            with pytest.raises(WorkspaceError, match=r"there is no branch .*; create it or name another"):
                begun.workspace.rebase_change(
                    MOVED_BASE_RUN, change.commit, begun.base.commit, branch, "moved"
                )
        unknown = "0" * len(change.commit)
        for commit, base in ((unknown, begun.base.commit), (change.commit, unknown)):
            with pytest.raises(WorkspaceError, match=r"the commit .* is not "):
                begun.workspace.rebase_change(MOVED_BASE_RUN, commit, base, begun.branch, "moved")
        for run, label, kind in (("../x", "moved", "run"), (MOVED_BASE_RUN, "a/../b", "label")):
            with pytest.raises(WorkspaceError, match=f"cannot be a {kind}"):
                begun.workspace.rebase_change(run, change.commit, begun.base.commit, begun.branch, label)

    def test_a_merge_is_what_was_verified(self, begun: BegunRun) -> None:
        """A branch that is at the base goes to exactly the recorded tree; once more, also later, changes nothing."""
        change = begun.change({"README": "mine\n"})
        args = (MOVED_BASE_RUN, change.commit, begun.base.commit, "merge", begun.branch, "Mine")
        first = begun.workspace.deliver(*args)
        assert (first.tree, begun.now().commit) == (change.tree, first.commit)
        assert begun.workspace.deliver(*args) == first
        tip = begun.moved({"other": "theirs\n"})
        assert begun.workspace.deliver(*args) == first
        assert begun.now() == tip

    def test_a_merge_never_mixes(self, begun: BegunRun) -> None:
        """A branch that has moved is left alone, and the refusal says from where to where; on the new base it goes."""
        change = begun.change({"README": "mine\n"})
        tip = begun.moved({"other": "theirs\n"})
        with pytest.raises(BranchMovedError, match=f"has moved from {begun.base.commit} to {tip.commit}"):
            begun.workspace.deliver(
                MOVED_BASE_RUN, change.commit, begun.base.commit, "merge", begun.branch, "Mine"
            )
        assert begun.now() == tip
        rebased = begun.rebased(change)
        assert rebased.change is not None
        delivery = begun.workspace.deliver(
            MOVED_BASE_RUN, rebased.change.commit, rebased.base, "merge", begun.branch, "Mine"
        )
        assert (delivery.tree, begun.now().commit) == (rebased.change.tree, delivery.commit)

    def test_a_branch_of_its_own_is_exact_anyway(self, begun: BegunRun) -> None:
        """It holds the recorded tree, wherever others have gone."""
        change = begun.change({"README": "mine\n"})
        begun.moved({"other": "theirs\n"})
        args = (MOVED_BASE_RUN, change.commit, begun.base.commit, "branch", None, "Mine")
        assert begun.workspace.deliver(*args).tree == change.tree

    def test_a_branch_has_a_change_when_its_commit_is_in_it(self, begun: BegunRun) -> None:
        """From the delivery on, whatever comes after it; reverted, or undone by hand, it is not there any more."""
        change = begun.change({"README": "mine\n"})
        holds = begun.workspace.contains_deliveries
        assert not holds(begun.base.commit, [change.commit])
        args = (MOVED_BASE_RUN, change.commit, begun.base.commit, "merge", begun.branch, "Mine")
        delivered = [begun.workspace.deliver(*args).commit]
        assert holds(begun.now().commit, delivered)
        tip = begun.moved({"README": "mine, and theirs\n"})
        assert holds(tip.commit, delivered)
        assert not holds(begun.moved({"README": "hello\n"}).commit, delivered)
        assert holds(begun.moved({"README": "mine\n"}).commit, delivered)
        begun.workspace.revert(MOVED_BASE_RUN, delivered[0], begun.branch, "Not mine\n\n")
        assert not holds(begun.now().commit, delivered)
        assert holds(begun.moved({"README": "mine\n", "other": "x\n"}).commit, delivered)  # put back by hand
        assert not holds(
            begun.moved({"README": "theirs alone\n"}).commit, delivered
        )  # undecided: a revert came after it
        assert holds(tip.commit, delivered)

    def test_a_branch_has_a_change_that_came_in_other_commits(self, begun: BegunRun) -> None:
        """Squashed or typed again: all of it has to be there, and nothing in its place."""
        change = begun.change({"README": "mine\n", "new": "1\n"})
        for edits, there in (({"README": "mine\n"}, False), ({"new": "2\n"}, False), ({"new": "1\n"}, True)):
            tip = begun.moved(edits)
            assert begun.workspace.contains_deliveries(tip.commit, [change.commit]) is there
        with pytest.raises(WorkspaceError, match=r"the commit .* is not "):
            begun.workspace.contains_deliveries(tip.commit, ["0" * len(tip.commit)])

    def test_what_deliveries_were_made_on_can_be_told(self, begun: BegunRun) -> None:
        """The newest without any of them, what others did in between is in it; where both changed the same it cannot be."""
        workspace, branch = begun.workspace, begun.branch
        first = begun.change({"README": "mine\n"})
        commit = workspace.deliver(
            MOVED_BASE_RUN, first.commit, begun.base.commit, "merge", branch, "Mine"
        ).commit
        between = begun.moved({"other": "theirs\n"})
        second = begun.change({"README": "mine, again\n"}, base=between)
        second_commit = workspace.deliver(
            MOVED_BASE_RUN, second.commit, between.commit, "merge", branch, "Mine"
        ).commit
        base = workspace.compose_delivery_base(MOVED_BASE_RUN, [second_commit, commit], "whole")
        assert begun.files(base.commit) == {"README": b"hello\n", "other": b"theirs\n"}
        assert workspace.compose_delivery_base(MOVED_BASE_RUN, [second_commit, commit], "whole") == base
        assert workspace.contains_deliveries(begun.now().commit, [second_commit, commit])
        meddled = begun.moved({"README": "mine, again, and theirs\n"})
        third = begun.change({"README": "mine at last\n"}, base=meddled)
        third_commit = workspace.deliver(
            MOVED_BASE_RUN, third.commit, meddled.commit, "merge", branch, "Mine"
        ).commit
        with pytest.raises(WorkspaceError, match="cannot be separated from what others did in between"):
            workspace.compose_delivery_base(MOVED_BASE_RUN, [third_commit, second_commit, commit], "whole")
        assert workspace.contains_deliveries(begun.now().commit, [third_commit, second_commit, commit])

    def test_what_was_delivered_twice_is_taken_back_at_once(self, begun: BegunRun) -> None:
        """Both deliveries of a run by one commit, what others did in between stays; one that the branch never had is passed over."""
        workspace, branch = begun.workspace, begun.branch
        first = begun.change({"README": "mine\n"})
        commit = workspace.deliver(
            MOVED_BASE_RUN, first.commit, begun.base.commit, "merge", branch, "Mine"
        ).commit
        between = begun.moved({"other": "theirs\n"})
        second = begun.change({"README": "mine, again\n", "new": "1\n"}, base=between)
        second_commit = workspace.deliver(
            MOVED_BASE_RUN, second.commit, between.commit, "merge", branch, "Mine"
        ).commit
        never = begun.change({"never": "merged\n"}).commit
        revert = workspace.revert(MOVED_BASE_RUN, never, branch, "Undo\n\n", also=(second_commit, commit))
        assert begun.files(revert.commit) == {"README": b"hello\n", "other": b"theirs\n"}
        assert workspace.base(branch).commit == revert.commit
        assert workspace.revert(MOVED_BASE_RUN, second_commit, branch, "Undo\n\n", also=(commit,)) == revert
        assert not workspace.contains_deliveries(revert.commit, [commit])
