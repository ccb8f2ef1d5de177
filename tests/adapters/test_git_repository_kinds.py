"""Every kind of repository: each works, or says what is in the way and what to do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.git_repository import git, make_repository

from steersman.adapters.git import branch_move
from steersman.adapters.git.workspace import GitWorkspace
from steersman.errors import WorkspaceError
from steersman.testing.conformance_workspace import WORKSPACE_RUN


def made(place, *flags):
    """A repository with one commit on main."""
    return make_repository(place, {"README": "hello\n"}, *flags)


def has_reftable(folder):
    done = subprocess.run(
        ["git", "init", "-q", "--ref-format=reftable", str(folder)], capture_output=True, check=False
    )
    return done.returncode == 0


# -- kinds that keep every promise of the port -------------------------------------------------------------------------


def a_reftable(repo, tmp_path):
    """References in a table, where git has them."""
    if not has_reftable(tmp_path / "probe"):
        pytest.skip("NOT SHOWN: this git has no reftables")
    return made(tmp_path / "tables", "--ref-format=reftable")


def a_linked_reftable(repo, tmp_path):
    """A linked working tree of a repository with reftables."""
    git(a_reftable(repo, tmp_path), "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    return tmp_path / "linked"


def a_tree_of_a_tree(repo, tmp_path):
    """A linked working tree, made from within another one."""
    git(repo, "worktree", "add", "-q", "-b", "one", str(tmp_path / "one"))
    git(tmp_path / "one", "worktree", "add", "-q", "-b", "two", str(tmp_path / "one" / "two"))
    return tmp_path / "one" / "two"


def a_separate_directory(repo, tmp_path):
    """A checkout whose .git is a file that points elsewhere."""
    return made(tmp_path / "apart", f"--separate-git-dir={tmp_path / 'git'}")


def a_borrower(repo, tmp_path):
    """A clone that borrows its objects from another."""
    git(tmp_path, "clone", "-q", "--shared", str(repo), "borrower")
    return tmp_path / "borrower"


def a_submodule(repo, tmp_path):
    """The checkout of a submodule, whose git directory is its parent's."""
    parent = made(tmp_path / "parent")
    git(parent, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo), "sub")
    return parent / "sub"


KINDS = [a_reftable, a_linked_reftable, a_tree_of_a_tree, a_separate_directory, a_borrower, a_submodule]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kind_of_repository_carries_a_change_there_and_back(repo, tmp_path, kind):
    """Base, change, branch, merge, a second change on the moved branch and the way back (test_git.py has every promise)."""
    workspace = GitWorkspace(kind(repo, tmp_path), tmp_path / "state")
    assert workspace.find_start_problem() is None
    base = workspace.base(None)
    tree = Path(workspace.checkout("260101-second", base.commit, "260101-second:1:1").path)
    (tree / "other").write_text("other\n")
    second = workspace.capture("260101-second", str(tree), base.commit, "work")
    tree = Path(workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1").path)
    (tree / "README").write_text("new\n")
    recorded = workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work")
    assert recorded.files == ("README",)
    assert (
        workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "branch", None, "m").tree
        == recorded.tree
    )
    merged = workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "merge", base.branch, "m")
    assert workspace.base(None).commit == merged.commit
    rebased = workspace.rebase_change("260101-second", second.commit, base.commit, base.branch, "moved")
    assert (rebased.moved, rebased.conflicts, rebased.change.files) == (True, (), ("other",))
    assert workspace.revert(WORKSPACE_RUN, merged.commit, base.branch, "Undo").tree == base.tree
    workspace.remove(WORKSPACE_RUN)
    assert workspace.base(None).tree == base.tree
    assert not workspace.base(None).dirty


# -- checkouts that look different -------------------------------------------------------------------------------------


def change(workspace, text="new\n"):
    base = workspace.base("main")
    tree = workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1")
    Path(tree.path, "README").write_text(text)
    return workspace.capture(WORKSPACE_RUN, tree.path, base.commit, "work"), base


def merge(workspace, text="new\n"):
    recorded, base = change(workspace, text)
    return workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "merge", "main", "m")


def test_a_packed_repository_behind_a_link(repo, tmp_path):
    """Objects and references packed, reached through a symbolic link."""
    git(repo, "gc", "-q")
    git(repo, "pack-refs", "--all")
    (tmp_path / "link").symlink_to(repo)
    workspace = GitWorkspace(tmp_path / "link", tmp_path / "state")
    done = merge(workspace)
    assert (git(repo, "rev-parse", "main"), (repo / "README").read_text()) == (done.commit, "new\n")
    assert workspace.revert(WORKSPACE_RUN, done.commit, "main", "Undo").tree != done.tree


@pytest.mark.parametrize("index", [(), ("--sparse-index",)])
def test_a_sparse_checkout_stays_sparse(workspace, repo, index):
    """A run sees the whole commit; what is merged into a sparse checkout leaves it so."""
    for name in ("a", "b"):
        (repo / name).mkdir()
        (repo / name / "f").write_text("f\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "two")
    git(repo, "sparse-checkout", "set", "--cone", *index, "a")
    assert not (repo / "b").exists()
    assert not workspace.base(None).dirty
    tree = workspace.checkout(WORKSPACE_RUN, workspace.base(None).commit, f"{WORKSPACE_RUN}:0:1")
    assert Path(tree.path, "b", "f").exists()
    merge(workspace)
    assert (repo / "README").read_text() == "new\n"
    assert not (repo / "b").exists()
    assert git(repo, "status", "--porcelain") == ""


def test_files_marked_as_unchanged_stay_the_persons(workspace, repo):
    """What a person hides from git with assume-unchanged or skip-worktree is not written over."""
    (repo / "local").write_text("1\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "local")
    git(repo, "update-index", "--skip-worktree", "local")
    (repo / "local").write_text("mine\n")
    merge(workspace)
    assert (repo / "local").read_text() == "mine\n"
    git(repo, "update-index", "--assume-unchanged", "README")
    (repo / "README").write_text("hidden\n")
    recorded, base = change(workspace, "third\n")
    with pytest.raises(WorkspaceError, match="uncommitted changes"):
        workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "merge", "main", "m3")
    assert (repo / "README").read_text() == "hidden\n"


def test_a_split_index_is_read(workspace, repo):
    """Half of the index in another file changes nothing."""
    git(repo, "config", "core.splitIndex", "true")
    git(repo, "update-index", "--split-index")
    (repo / "new").write_text("n\n")
    git(repo, "add", "new")
    git(repo, "commit", "-qm", "new")
    assert not workspace.base(None).dirty
    merge(workspace)
    assert git(repo, "status", "--porcelain") == ""
    assert (repo / "README").read_text() == "new\n"


def test_a_lock_that_was_left_behind_is_named(workspace, repo, monkeypatch):
    """A branch is delivered all the same; a merge into the checkout says which file is in the way."""
    monkeypatch.setattr(branch_move, "GIT_LOCK_SECONDS", 0.2)
    (repo / ".git" / "index.lock").touch()
    recorded, base = change(workspace)
    assert (
        workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "branch", None, "m").form == "branch"
    )
    with pytest.raises(WorkspaceError, match=r"if no git is at work there, remove .*index\.lock"):
        workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "merge", "main", "m")
    (repo / ".git" / "index.lock").unlink()
    assert (repo / "README").read_text() == "hello\n"
    assert git(repo, "status", "--porcelain") == ""
    assert merge(workspace).tree == recorded.tree


def test_a_merge_that_was_cut_short_is_finished(workspace, repo):
    """Files already moved, branch not yet: the same delivery again finishes it."""
    recorded, base = change(workspace)
    done = workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "merge", "main", "m")
    git(repo, "update-ref", "refs/heads/main", base.commit)
    assert git(repo, "status", "--porcelain") == "M  README"
    assert workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "merge", "main", "m") == done
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "reflog", "-1", "--format=%gs", "HEAD") == "steersman: deliver"


def test_uncommitted_work_survives_everything(workspace, repo):
    """Edited, staged, untracked, ignored and stashed work is byte for byte what it was, whatever a run does."""
    (repo / ".gitignore").write_text("*.log\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "ignore")
    (repo / "README").write_text("stashed\n")
    git(repo, "stash", "-q")
    (repo / "README").write_text("edited\n")
    (repo / "staged").write_text("staged\n")
    git(repo, "add", "staged")
    (repo / "loose").write_text("loose\n")
    (repo / "x.log").write_text("log\n")

    def everything():
        files = {p: p.read_bytes() for p in repo.rglob("*") if p.is_file() and ".git/" not in str(p)}
        return (
            files,
            git(repo, "status", "--porcelain", "--ignored"),
            git(repo, "stash", "list"),
            git(repo, "rev-parse", "main"),
        )

    before = everything()
    assert workspace.base(None).dirty
    recorded, base = change(workspace)
    workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "branch", None, "m")
    with pytest.raises(WorkspaceError, match="uncommitted changes"):
        workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "merge", "main", "m")
    with pytest.raises(WorkspaceError, match="is not in main"):
        workspace.revert(WORKSPACE_RUN, recorded.commit, "main", "m")
    workspace.remove(WORKSPACE_RUN)
    assert everything() == before


def test_an_untracked_file_in_the_way_is_not_overwritten(workspace, repo, tmp_path):
    """A merge that would write over a person's file, ignored or not, is refused."""
    base = workspace.base("main")
    tree = workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1")
    Path(tree.path, "new").write_text("theirs\n")
    recorded, state = workspace.capture(WORKSPACE_RUN, tree.path, base.commit, "work"), tmp_path / "state"
    (repo / "new").write_text("mine\n")
    for ignored in ("", "new\n"):
        (repo / ".git" / "info" / "exclude").write_text(ignored)
        with pytest.raises(WorkspaceError, match=r"new of .* would be overwritten; move it away"):
            GitWorkspace(repo, state).deliver(
                WORKSPACE_RUN, recorded.commit, base.commit, "merge", "main", "m"
            )
    assert (repo / "new").read_text() == "mine\n"


def test_an_ignored_file_in_the_place_of_a_directory_is_kept(workspace, repo):
    """So is one that stands where a new directory belongs."""
    base = workspace.base("main")
    tree = workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1")
    Path(tree.path, "data").mkdir()
    Path(tree.path, "data", "new").write_text("theirs\n")
    recorded = workspace.capture(WORKSPACE_RUN, tree.path, base.commit, "work")
    (repo / ".git" / "info" / "exclude").write_text("data\n")
    (repo / "data").write_text("mine\n")
    with pytest.raises(WorkspaceError, match=r"data of .* would be overwritten"):
        workspace.deliver(WORKSPACE_RUN, recorded.commit, base.commit, "merge", "main", "m")
    assert (repo / "data").read_text() == "mine\n"
    assert git(repo, "status", "--porcelain") == ""


# -- kinds that are refused, or work in part -----------------------------------------------------------------------------


def test_a_partial_clone_works_with_what_it_has(repo, tmp_path):
    """Nothing is fetched behind the person's back; what is missing is told with the way to get it."""
    (repo / "README").write_text("second\n")
    git(repo, "commit", "-qam", "second")
    git(repo, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{repo}", "partial")
    partial, mark = tmp_path / "partial", tmp_path / "mark"
    git(partial, "config", "remote.origin.uploadpack", f"touch '{mark}'; git-upload-pack")
    workspace = GitWorkspace(partial, tmp_path / "state")
    assert merge(workspace).form == "merge"
    with pytest.raises(WorkspaceError, match=r"this is a partial clone.*git fetch --refetch --no-filter"):
        workspace.checkout(WORKSPACE_RUN, workspace.base("HEAD~2").commit, f"{WORKSPACE_RUN}:2:1")
    assert not mark.exists()


def test_files_that_are_kept_elsewhere_are_refused(workspace, repo, tmp_path):
    """A setting that leads git to another directory is neither read from nor written to."""
    git(repo, "config", "core.worktree", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    assert "core.worktree" in workspace.find_start_problem()
    assert "run it in a plain clone" in workspace.find_start_problem()
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("[core\n", "cannot use the repository|cannot be read"),
        ("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tnoSuchThing = true\n", "nosuchthing"),
        ("[core]\n\trepositoryformatversion = 99\n", "99"),
        ("[core]\n\tbare = touch mark\n", "bad boolean"),
    ],
)
def test_a_configuration_that_git_cannot_use_is_told(workspace, repo, broken, words):
    """In git's own words, with what to do."""
    (repo / ".git" / "config").write_text(broken)
    said = workspace.find_start_problem()
    assert any(word in said.lower() for word in words.lower().split("|")), said
    assert "correct" in said


def test_a_head_that_is_none_is_told(workspace, repo):
    """Neither a branch nor a commit."""
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/no such\n")
    assert workspace.find_start_problem() is not None
    with pytest.raises(WorkspaceError):
        workspace.base(None)


def test_replaced_objects_and_grafts_change_nothing(workspace, repo):
    """A hash means its content, whatever a repository says beside it."""
    base = workspace.base(None)
    (repo / "README").write_text("other\n")
    other = git(repo, "hash-object", "-w", "README")
    (repo / "README").write_text("hello\n")
    git(repo, "replace", git(repo, "rev-parse", "HEAD:README"), other)
    (repo / ".git" / "info" / "grafts").write_text(f"{base.commit}\n")
    tree = workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1")
    assert Path(tree.path, "README").read_text() == "hello\n"
    assert tree.tree == base.tree


def test_the_persons_own_tidying_takes_nothing_away(workspace, repo):
    """A commit that only a run holds survives while it is worked on, and so does what it stands on."""
    git(repo, "checkout", "-q", "-b", "gone")
    (repo / "README").write_text("gone\n")
    git(repo, "commit", "-qam", "gone")
    base = workspace.base(None)
    tree = workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:1:1")
    git(repo, "checkout", "-q", "main")
    git(repo, "branch", "-D", "gone")
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    assert git(tree.path, "log", "-1", "--format=%s") == "gone"
    assert workspace.capture(WORKSPACE_RUN, tree.path, base.commit, "work").files == ()


def test_state_that_moved_is_made_again(repo, tmp_path):
    """A repository that was moved together with its links is found where it is now."""
    workspace = GitWorkspace(repo, tmp_path / "state")
    workspace.base(None)
    shutil.move(repo, tmp_path / "moved")
    assert GitWorkspace(tmp_path / "moved", tmp_path / "state").base(None).branch == "main"
