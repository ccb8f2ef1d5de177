"""What every adapter of the `Workspace` port has to do; a test module inherits the suite and supplies two fixtures.

    class TestMine(WorkspaceConformance):
        @pytest.fixture
        def workspace(self, tmp_path): ...   # over a repository with `README` = "hello\\n" committed on a branch

**Invariant:** speaks to the adapter through the port alone; the working trees are ordinary directories.
"""

import os
from pathlib import Path

import pytest

from steersman.contracts.workspace import Change, Checkout, RunBase
from steersman.errors import AlreadyRevertedError, ChangeConflictError, ChangeNotOnBranchError, WorkspaceError
from steersman.ports.workspace import Workspace

WORKSPACE_RUN = "260101-abcdef"


class WorkspaceConformance:
    """One claim of the port per method; `workspace` comes from the inheriting class."""

    @pytest.fixture
    def base(self, workspace: Workspace) -> RunBase:
        """The commit that a run starts from."""
        return workspace.base(None)

    def start(
        self, workspace: Workspace, base: RunBase, run: str = WORKSPACE_RUN, effect: str = "1:1"
    ) -> Path:
        """A tree of the run at its base."""
        return Path(workspace.checkout(run, base.commit, f"{run}:{effect}").path)

    def edit(self, workspace: Workspace, base: RunBase, text: str, run: str = WORKSPACE_RUN) -> Change:
        """A recorded change of README."""
        tree = self.start(workspace, base, run)
        (tree / "README").write_text(text)
        return workspace.capture(run, str(tree), base.commit, "work")

    def test_a_good_repository_has_no_problem(self, workspace: Workspace) -> None:
        """Nothing stands in the way of a run."""
        assert workspace.find_start_problem() is None

    def test_reading_the_base_changes_nothing(self, workspace: Workspace) -> None:
        """The base is a clean commit on a branch, read the same way twice, by branch name too."""
        base = workspace.base(None)
        assert base.branch is not None
        assert not base.dirty
        assert workspace.base(None) == workspace.base(base.branch) == base
        assert workspace.base_commit(None) == workspace.base_commit(base.branch) == base.commit

    def test_a_missing_base_is_an_error(self, workspace: Workspace) -> None:
        """A name that means no commit is refused with the next step."""
        for ref in ("no-such-branch", "-x", "--help", "a b", "HEAD^9"):
            with pytest.raises(WorkspaceError, match="there is no commit called"):
                workspace.base(ref)

    def test_a_checkout_holds_the_commit(self, workspace: Workspace, base: RunBase) -> None:
        """A new tree has the files of the commit and says that it is fresh."""
        checkout = workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1")
        assert checkout == Checkout(checkout.path, base.commit, base.tree, fresh=True)
        assert Path(checkout.path, "README").read_text() == "hello\n"

    def test_a_repeated_checkout_is_the_same(self, workspace: Workspace, base: RunBase) -> None:
        """The same request gives the same answer and makes nothing new."""
        first = workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1")
        assert workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1") == first

    def test_an_untouched_tree_serves_the_next_effect(self, workspace: Workspace, base: RunBase) -> None:
        """A later effect gets the kept tree, already set up."""
        first = workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1")
        second = workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:2:1")
        assert (second.path, second.fresh) == (first.path, False)

    @pytest.mark.parametrize("name", ["README", "untracked"])
    def test_a_half_edited_tree_is_never_reused(self, workspace: Workspace, base: RunBase, name: str) -> None:
        """After an attempt that edited, added or removed something the next one gets another tree."""
        first = self.start(workspace, base)
        (first / name).write_text("half")
        second = workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1")
        assert (second.path != str(first), second.fresh) == (True, True)
        assert not first.exists()
        assert sorted(os.listdir(second.path)) == [".git", "README"]

    def test_an_untouched_tree_is_made_for_one_effect(self, workspace: Workspace, base: RunBase) -> None:
        """No effect gets one that another has had, nor one of these for anything else; edited, it is replaced."""

        def untouched(effect: str) -> Checkout:
            return workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:{effect}", untouched=True)

        work = self.start(workspace, base)
        first = untouched("2:1")
        assert (first.fresh, first.path != str(work)) == (True, True)
        assert untouched("2:1") == first
        Path(first.path, "left").write_text("x")
        second = untouched("2:1")
        third = untouched("3:1")
        assert len({first.path, second.path, third.path}) == 3
        assert (second.fresh, third.fresh) == (True, True)
        assert self.start(workspace, base, effect="4:1") == work
        assert [Path(c.path).exists() for c in (first, second, third)] == [False, False, True]

    def test_effects_planned_together_never_share_a_tree(self, workspace: Workspace, base: RunBase) -> None:
        """Two effects of one step get a tree each, and the second does not remove the first one's."""
        first, second = self.start(workspace, base, effect="1:1"), self.start(workspace, base, effect="1:2")
        (first / "README").write_text("one")
        third = self.start(workspace, base, effect="1:3")
        assert len({first, second, third}) == 3
        assert (first / "README").read_text() == "one"

    def test_runs_never_share_a_tree(self, workspace: Workspace, base: RunBase) -> None:
        """Each run has trees of its own."""
        assert self.start(workspace, base, "run-a") != self.start(workspace, base, "run-b")

    def test_a_capture_records_everything_that_changed(self, workspace: Workspace, base: RunBase) -> None:
        """Edited, new and deleted files are in the change, with their lines counted."""
        tree = self.start(workspace, base)
        (tree / "README").unlink()
        (tree / "new").write_text("1\n2\n")
        change = workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work")
        assert (change.files, change.added, change.removed) == (("README", "new"), 2, 1)
        assert "+1\n+2\n" in change.patch
        assert change.tree != base.tree

    def test_a_capture_knows_each_file_by_its_digests(self, workspace: Workspace, base: RunBase) -> None:
        """What was there before, what is there now, what is gone and what was emptied, path by path."""
        tree = self.start(workspace, base)
        (tree / "README").write_text("")
        (tree / "new").write_text("1\n")
        emptied, added = workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work").touched
        assert (emptied.path, emptied.empty, added.path, added.empty) == ("README", True, "new", False)
        assert emptied.old
        assert emptied.new
        assert (added.old, bool(added.new)) == ("", True)
        (tree / "README").unlink()
        deleted, _ = workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work").touched
        assert (deleted.old, deleted.new, deleted.empty) == (emptied.old, "", False)

    def test_texts_of_a_commit_are_read_within_bounds(self, workspace: Workspace, base: RunBase) -> None:
        """Every plain file is listed, also one with an odd name; what is too long comes without its content."""
        tree = self.start(workspace, base)
        (tree / "long").write_text("x" * 100)
        (tree / "odd\nname ☃").write_text("☃")
        (tree / "sub").mkdir()
        (tree / "sub" / "empty").write_text("")
        (tree / "twin").write_text("x" * 100)
        commit = workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work").commit
        paths = workspace.paths(commit)
        assert paths == ("README", "long", "odd\nname ☃", "sub/empty", "twin")
        assert workspace.paths(base.commit) == ("README",)

        def read(each: int, total: int) -> dict[str, tuple[str, bool]]:
            commit_texts = workspace.read_texts(commit, (*paths, "nowhere"), each, total)
            return {t.path: (t.content, t.whole) for t in commit_texts}

        assert read(50, 1000) == {
            "README": ("hello\n", True),
            "long": ("", False),
            "odd\nname ☃": ("☃", True),
            "sub/empty": ("", True),
            "twin": ("", False),
        }
        assert read(100, 1000)["long"] == ("x" * 100, True)
        assert read(100, 8)["odd\nname ☃"] == ("", False)
        assert workspace.read_texts(commit, (), 100, 100) == ()

    def test_files_are_put_as_a_commit_has_them(self, workspace: Workspace, base: RunBase) -> None:
        """Edited, deleted and new names become what the commit has, and putting them back leaves no trace."""
        tree = self.start(workspace, base)
        (tree / "README").write_text("changed")
        (tree / "more").mkdir()
        (tree / "more" / "new").write_text("x")
        change = workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work")
        names = ("README", "more/new", "nowhere/at/all")
        workspace.write_files(str(tree), base.commit, names, links=True)
        assert (tree / "README").read_text() == "hello\n"
        assert not (tree / "more" / "new").exists()
        workspace.write_files(str(tree), change.commit, names, links=True)
        assert (tree / "more" / "new").read_text() == "x"
        assert workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work") == change
        assert workspace.links(change.commit) == ()
        assert workspace.link_targets(change.commit) == {}
        assert workspace.read_contents(base.commit, names) == {"README": b"hello\n"}
        assert workspace.read_contents(change.commit, names) == {"README": b"changed", "more/new": b"x"}

    def test_programs_of_a_commit_are_kept_by_their_content(
        self, workspace: Workspace, base: RunBase
    ) -> None:
        """A word means a path below the top or none; the same content has one copy, and what is not there has none."""
        words = ("./README", "a/../README", "../README", ".")
        assert [workspace.project_path(word) for word in words] == ["README", "README", "", ""]
        program = workspace.keep_program(base.commit, "README", alone=False)
        assert program == workspace.keep_program(base.commit, "README", alone=True)
        assert (bool(program), workspace.keep_program(base.commit, "nothing", alone=False)) == (True, "")
        assert (workspace.checked_out("README"), workspace.checked_out("nothing")) == (b"hello\n", None)

    def test_a_tree_is_composed_of_two_commits(self, workspace: Workspace, base: RunBase) -> None:
        """Named paths come from the other commit, absent ones are removed, the rest stays; nothing else changes."""
        tree = self.start(workspace, base)
        (tree / "README").write_text("changed")
        (tree / "sub").mkdir()
        (tree / "sub" / "new").write_text("x")
        (tree / "kept").write_text("y")
        change = workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work")
        paths = ("README", "sub/new", "nowhere")
        composed = workspace.compose(WORKSPACE_RUN, change.commit, base.commit, paths, "old-tests")
        assert workspace.read_contents(composed.commit, change.files) == {"README": b"hello\n", "kept": b"y"}
        assert workspace.compose(WORKSPACE_RUN, change.commit, base.commit, paths, "old-tests") == composed
        assert workspace.change(composed.commit, base.commit).files == ("kept",)
        back = workspace.compose(WORKSPACE_RUN, base.commit, change.commit, ("sub/new",), "new-tests")
        assert workspace.read_contents(back.commit, ("README", *change.files)) == {
            "README": b"hello\n",
            "sub/new": b"x",
        }
        assert workspace.compose(WORKSPACE_RUN, base.commit, change.commit, (), "none").tree == base.tree
        with pytest.raises(WorkspaceError):
            workspace.compose(WORKSPACE_RUN, base.commit, "0" * 40, (), "none")

    def test_a_file_in_place_of_a_folder_is_composed(self, workspace: Workspace, base: RunBase) -> None:
        """A path that is a folder in one commit and a file in the other is taken as a whole."""
        tree = self.start(workspace, base)
        (tree / "README").unlink()
        (tree / "README").mkdir()
        (tree / "README" / "inner").write_text("x")
        change = workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work")
        assert (
            workspace.compose(WORKSPACE_RUN, change.commit, base.commit, change.files, "old").tree
            == base.tree
        )
        assert (
            workspace.compose(WORKSPACE_RUN, base.commit, change.commit, change.files, "new").tree
            == change.tree
        )

    def test_the_same_tree_gives_the_same_commit(self, workspace: Workspace, base: RunBase) -> None:
        """Recording is a function of content and parent: twice, in another run, under another label."""
        first = self.edit(workspace, base, "new\n")
        assert self.edit(workspace, base, "new\n") == first
        assert self.edit(workspace, base, "new\n", "other-run") == first

    def test_a_capture_without_changes_is_empty(self, workspace: Workspace, base: RunBase) -> None:
        """An untouched tree is recorded as the tree of its base, with no files and no patch."""
        change = workspace.capture(WORKSPACE_RUN, str(self.start(workspace, base)), base.commit, "work")
        assert (change.tree, change.files, change.patch) == (base.tree, (), "")

    def test_what_a_commit_changes_is_told_again(self, workspace: Workspace, base: RunBase) -> None:
        """As when it was recorded, however often; the other way round it is undone; of itself it changes nothing."""
        change = self.edit(workspace, base, "new\n")
        workspace.remove(WORKSPACE_RUN)
        for _ in range(2):
            assert workspace.change(change.commit, base.commit) == change
        back = workspace.change(base.commit, change.commit)
        assert (back.commit, back.tree, back.files) == (base.commit, base.tree, ("README",))
        assert ("-new\n" in back.patch, "+hello\n" in back.patch) == (True, True)
        same = workspace.change(change.commit, change.commit)
        assert (same.tree, same.files, same.patch, same.touched) == (change.tree, (), "", ())
        assert workspace.base(None) == base

    def test_what_an_unknown_commit_changes_is_refused(self, workspace: Workspace, base: RunBase) -> None:
        """Neither side may be unknown, nor a word that git would obey."""
        for unknown in ("0" * len(base.commit), "no-such-commit", "--help", ""):
            for commit, other in ((unknown, base.commit), (base.commit, unknown)):
                with pytest.raises(WorkspaceError):
                    workspace.change(commit, other)

    def test_a_recorded_change_can_be_checked_out(self, workspace: Workspace, base: RunBase) -> None:
        """What was captured comes back exactly, in the tree it was made in or, when that is gone, in a new one."""
        change = self.edit(workspace, base, "new\n")
        checkout = workspace.checkout(WORKSPACE_RUN, change.commit, f"{WORKSPACE_RUN}:2:1")
        assert (checkout.fresh, checkout.tree) == (False, change.tree)
        workspace.remove(WORKSPACE_RUN)
        again = workspace.checkout(WORKSPACE_RUN, change.commit, f"{WORKSPACE_RUN}:2:1")
        assert Path(again.path, "README").read_text() == "new\n"

    def test_a_path_that_is_not_ours_is_not_recorded(
        self, workspace: Workspace, base: RunBase, tmp_path: Path
    ) -> None:
        """Only a tree of the run can be captured."""
        other = self.start(workspace, base, "other-run")
        for path in (tmp_path, other, other / "sub"):
            with pytest.raises(WorkspaceError, match="not a working tree of run"):
                workspace.capture(WORKSPACE_RUN, str(path), base.commit, "work")

    def test_odd_names_are_refused(self, workspace: Workspace, base: RunBase) -> None:
        """A run or label that could lead out of its place is refused."""
        tree = self.start(workspace, base)
        for name in ("", ".", "..", "a/b", "-x", "a..b", "a.lock", "ü", "a b", "a\n"):
            with pytest.raises(WorkspaceError, match="cannot be a run"):
                workspace.checkout(name, base.commit, "e:1:1")
            with pytest.raises(WorkspaceError, match="cannot be a run"):
                workspace.remove(name)
            with pytest.raises(WorkspaceError, match="cannot be a label"):
                workspace.capture(WORKSPACE_RUN, str(tree), base.commit, name)

    def test_a_branch_is_delivered_once(self, workspace: Workspace, base: RunBase) -> None:
        """Delivering twice gives the same branch at the same commit; the tree is the recorded one."""
        change = self.edit(workspace, base, "new\n")
        args = (WORKSPACE_RUN, change.commit, base.commit, "branch", None, "Say new\n\nRun: 1\n")
        first = workspace.deliver(*args)
        assert (first.form, first.tree) == ("branch", change.tree)
        assert workspace.deliver(*args) == first
        assert workspace.base(first.ref).commit == first.commit

    def test_a_later_change_moves_the_branch(self, workspace: Workspace, base: RunBase) -> None:
        """A run that delivers again moves its own branch, which is one of its refs."""
        for entry, text in enumerate(("one\n", "two\n"), 8):
            change = self.edit(workspace, base, text)
            message = f"{text}\nSteersman-Run: {WORKSPACE_RUN}\nSteersman-Entry: {entry}\n"
            delivery = workspace.deliver(WORKSPACE_RUN, change.commit, base.commit, "branch", None, message)
            assert workspace.base(delivery.ref).tree == change.tree
            ref = workspace.recorded_refs(WORKSPACE_RUN)[f"refs/heads/steersman/{WORKSPACE_RUN}"]
            assert (ref.commit, ref.tree, ref.entry) == (delivery.commit, delivery.tree, entry)
        assert workspace.recorded_refs("another") == {}

    def test_a_merge_moves_its_target_once(self, workspace: Workspace, base: RunBase) -> None:
        """An unmoved target is moved forward; doing it again changes nothing."""
        change = self.edit(workspace, base, "new\n")
        args = (WORKSPACE_RUN, change.commit, base.commit, "merge", base.branch, "Say new")
        first = workspace.deliver(*args)
        assert workspace.deliver(*args) == first
        assert workspace.base(None) == RunBase(first.commit, change.tree, base.branch)

    def test_a_delivery_carries_its_time(self, workspace: Workspace, base: RunBase) -> None:
        """The same second gives the same commit, another one another, always with the recorded tree."""
        change = self.edit(workspace, base, "new\n")
        args = (WORKSPACE_RUN, change.commit, base.commit, "branch", None, "Say new")
        first = workspace.deliver(*args, at=1_700_000_000_000)
        assert [workspace.deliver(*args, at=1_700_000_000_000 + ms) for ms in (0, 999)] == [first, first]
        later = workspace.deliver(*args, at=1_700_000_060_000)
        assert (later.commit == first.commit, later.tree) == (False, first.tree)

    def test_nothing_is_left_of_a_delivery_that_ended(self, workspace: Workspace, base: RunBase) -> None:
        """No delivery is cut short, and there is nothing to settle, before and after one that is refused."""
        change = self.edit(workspace, base, "new\n")
        assert (workspace.list_interrupted_runs(), workspace.settle_interrupted_deliveries()) == ((), ())
        with pytest.raises(WorkspaceError):
            workspace.deliver(WORKSPACE_RUN, change.commit, base.commit, "merge", "no-such-branch", "Say new")
        workspace.deliver(WORKSPACE_RUN, change.commit, base.commit, "merge", base.branch, "Say new")
        assert (workspace.list_interrupted_runs(), workspace.settle_interrupted_deliveries()) == ((), ())

    def test_a_delivery_that_cannot_be_is_refused(self, workspace: Workspace, base: RunBase) -> None:
        """A wrong form or target is refused with the next step."""
        change = self.edit(workspace, base, "new\n")
        for form, target, words in (
            ("merge", None, "needs a branch"),
            ("draft-pr", None, "needs a branch"),
            ("merge", "no-such-branch", "no branch"),
            ("merge", "a..b", "no branch"),
            ("carrier-pigeon", None, "no form of delivery"),
        ):
            with pytest.raises(WorkspaceError, match=words):
                workspace.deliver(WORKSPACE_RUN, change.commit, base.commit, form, target, "Say new")

    def test_what_cannot_be_delivered_is_known_before_a_run(
        self, workspace: Workspace, base: RunBase
    ) -> None:
        """A branch can always be made; what goes into a branch needs one."""
        assert workspace.find_delivery_problem("branch", None) is None
        assert workspace.find_delivery_problem("merge", base.branch) is None
        for form in ("merge", "draft-pr"):
            assert "needs a branch to go into; start the run on one" in (
                workspace.find_delivery_problem(form, None) or ""
            )

    def merged(self, workspace: Workspace, base: RunBase, text: str, run: str = WORKSPACE_RUN) -> str:
        """The commit of a change of README that was merged."""
        change = self.edit(workspace, base, text, run)
        return workspace.deliver(run, change.commit, base.commit, "merge", base.branch, text).commit

    def test_a_change_is_taken_back_once(self, workspace: Workspace, base: RunBase) -> None:
        """The branch has the files of before, by a commit more; asking again changes nothing."""
        commit = self.merged(workspace, base, "new\n")
        assert base.branch is not None
        first = workspace.revert(WORKSPACE_RUN, commit, base.branch, "Undo\n\nSteersman-Run: 1\n")
        assert (first.form, first.tree, first.commit == commit) == ("revert", base.tree, False)
        assert workspace.revert(WORKSPACE_RUN, commit, base.branch, "Undo\n\nSteersman-Run: 1\n") == first
        assert workspace.base(None).commit == first.commit

    def test_a_change_is_taken_back_after_later_ones(self, workspace: Workspace, base: RunBase) -> None:
        """What others have done since is kept."""
        merged_commit = self.merged(workspace, base, "new\n")
        now = workspace.base(None)
        tree = self.start(workspace, now, "other-run")
        (tree / "other").write_text("other\n")
        theirs = workspace.capture("other-run", str(tree), now.commit, "work")
        workspace.deliver("other-run", theirs.commit, now.commit, "merge", base.branch, "Other")
        assert base.branch is not None
        workspace.revert(WORKSPACE_RUN, merged_commit, base.branch, "Undo")
        end = workspace.checkout(WORKSPACE_RUN, workspace.base(None).commit, f"{WORKSPACE_RUN}:9:1")
        assert Path(end.path, "README").read_text() == "hello\n"
        assert Path(end.path, "other").read_text() == "other\n"

    def test_a_change_that_others_built_upon_stays(self, workspace: Workspace, base: RunBase) -> None:
        """Where later commits changed the same lines the files are named and nothing moves."""
        merged_commit = self.merged(workspace, base, "new\n")
        self.merged(workspace, workspace.base(None), "newer\n", "other-run")
        before = workspace.base(None)
        assert base.branch is not None
        with pytest.raises(
            ChangeConflictError, match=r"changed the same lines of README; nothing was changed"
        ):
            workspace.revert(WORKSPACE_RUN, merged_commit, base.branch, "Undo")
        assert workspace.base(None) == before

    def test_a_change_that_is_not_there_cannot_be_taken_back(
        self, workspace: Workspace, base: RunBase
    ) -> None:
        """Neither one that was never merged, nor one that was undone by hand, nor from a branch that is not there."""
        change = self.edit(workspace, base, "new\n")
        delivery = workspace.deliver(WORKSPACE_RUN, change.commit, base.commit, "branch", None, "new")
        assert base.branch is not None
        with pytest.raises(ChangeNotOnBranchError, match=f"is not in {base.branch}"):
            workspace.revert(WORKSPACE_RUN, delivery.commit, base.branch, "Undo")
        merged_commit = self.merged(workspace, base, "new\n")
        theirs = self.merged(workspace, workspace.base(None), "hello\n", "other-run")
        with pytest.raises(AlreadyRevertedError, match=r"is undone in .* already") as undone:
            workspace.revert(WORKSPACE_RUN, merged_commit, base.branch, "Undo")
        assert undone.value.commit == theirs
        with pytest.raises(WorkspaceError, match="no branch"):
            workspace.revert(WORKSPACE_RUN, merged_commit, "no-such-branch", "Undo")

    def test_removing_keeps_what_is_recorded(self, workspace: Workspace, base: RunBase) -> None:
        """Trees go, repeatedly without complaint; recorded commits stay; other runs keep their trees."""
        change, other = self.edit(workspace, base, "new\n"), self.start(workspace, base, "other-run")
        workspace.remove(WORKSPACE_RUN)
        workspace.remove(WORKSPACE_RUN)
        workspace.remove("never-existed")
        assert other.is_dir()
        assert workspace.base(change.commit).tree == change.tree
