"""A change on a branch that has moved since, in real repositories."""

import os
import shutil
import threading
from pathlib import Path

import pytest
from tests.support.git_repository import commit_files, git, make_repository

from steersman.adapters.git.workspace import GitWorkspace
from steersman.errors import WorkspaceError
from steersman.testing.conformance_workspace_moved import MOVED_BASE_RUN, MovedBaseConformance

LINES = "".join(f"{n}\n" for n in range(20))


def save(place, files, message="x"):
    """A commit of the person's; None deletes."""
    for name, text in files.items():
        if text is None:
            (place / name).unlink()
        else:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return commit_files(place, message)


@pytest.fixture
def repo(tmp_path):
    """A person's repository with one commit on main, and a file of twenty lines."""
    return make_repository(tmp_path / "repo", {"README": "hello\n", "lines": LINES})


class TestGit(MovedBaseConformance):
    """The git adapter follows a branch that moves."""

    @pytest.fixture
    def workspace(self, tmp_path):
        return GitWorkspace(make_repository(tmp_path / "repo", {"README": "hello\n"}), tmp_path / "state")


def change(workspace, files, run=MOVED_BASE_RUN):
    """A recorded change of what main is now; None deletes, a Path is a link."""
    base = workspace.base("main").commit
    tree = Path(workspace.checkout(run, base, f"{run}:1:1").path)
    for name, text in files.items():
        (tree / name).unlink(missing_ok=True)
        if isinstance(text, Path):
            (tree / name).symlink_to(text)
        elif text is not None:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return base, workspace.capture(run, str(tree), base, "work")


def both(workspace, repo, mine, theirs):
    """The run's change, then the person's on main, then the first on top of the second."""
    base, recorded = change(workspace, mine)
    save(repo, theirs)
    return workspace.rebase_change(MOVED_BASE_RUN, recorded.commit, base, "main", "moved")


def shown(repo, rebased, name):
    return git(repo, "show", f"{rebased.change.commit}:{name}")


def test_other_lines_of_the_same_file_are_merged(workspace, repo):
    """Both hunks are in the file, and the change is the run's alone."""
    rebased = both(
        workspace, repo, {"lines": LINES.replace("2\n3", "2\nmine\n3")}, {"lines": "theirs\n" + LINES}
    )
    text = shown(repo, rebased, "lines").split("\n")
    assert (text[0], "mine" in text) == ("theirs", True)
    assert (rebased.change.files, rebased.change.added, rebased.change.removed) == (("lines",), 1, 0)
    assert git(repo, "rev-parse", f"{rebased.change.commit}^") == git(repo, "rev-parse", "main")
    assert git(repo, "rev-parse", f"refs/steersman/{MOVED_BASE_RUN}/moved") == rebased.change.commit


def test_the_same_line_is_a_conflict_and_nothing_is_pinned(workspace, repo):
    """The file is named; no reference, branch or file of the person is new."""
    base, recorded = change(workspace, {"lines": LINES.replace("7", "mine"), "new": "x"})
    save(repo, {"lines": LINES.replace("7", "theirs")})
    before = git(repo, "for-each-ref")
    rebased = workspace.rebase_change(MOVED_BASE_RUN, recorded.commit, base, "main", "moved")
    assert (rebased.moved, rebased.change, rebased.conflicts) == (True, None, ("lines",))
    assert git(repo, "for-each-ref") == before
    assert git(repo, "status", "--porcelain") == ""


def test_conflicts_in_every_form_are_named(workspace, repo):
    """Added on both sides, a folder against a file, a link against a file, a name that is no text."""
    odd = os.fsdecode(b"od\xff")
    rebased = both(
        workspace, repo, {"both": "mine\n", "sub": "a file\n", "README": Path("lines"), odd: "mine\n"},
        {"both": "theirs\n", "sub/x": "in a folder\n", "README": "theirs\n", odd: "theirs\n"},
    )  # fmt: skip
    assert rebased.change is None
    assert {"both", "od\\xff"} <= set(rebased.conflicts)
    assert any(name.startswith("sub") for name in rebased.conflicts)
    assert any(name.startswith("README") for name in rebased.conflicts)
    assert list(rebased.conflicts) == sorted(rebased.conflicts)
    assert "".join(rebased.conflicts).encode()


@pytest.mark.parametrize("where", [".gitattributes", ".git/info/attributes"])
def test_a_union_is_merged_as_the_repository_asks(workspace, repo, where):
    """Files that are to have the lines of both sides get them, wherever that is said."""
    (repo / where).write_text("*.log merge=union\n")
    save(repo, {"a.log": "0\n"})
    rebased = both(workspace, repo, {"a.log": "0\nmine\n"}, {"a.log": "0\ntheirs\n"})
    assert sorted(shown(repo, rebased, "a.log").split("\n")) == ["0", "mine", "theirs"]


@pytest.mark.parametrize("attribute", ["binary", "-merge", "merge=ours-alone"])
def test_what_cannot_be_merged_by_lines_is_a_conflict(workspace, repo, attribute, tmp_path):
    """A binary file, one that nobody may merge, and one for a program of the person's, which is not run."""
    git(repo, "config", "merge.ours-alone.driver", f"touch {tmp_path}/ran")
    (repo / ".gitattributes").write_text(f"*.bin {attribute}\n")
    save(repo, {"a.bin": LINES, "b.bin": LINES})
    base, recorded = change(workspace, {"a.bin": "mine\n" + LINES, "b.bin": "mine\n" + LINES})
    save(repo, {"a.bin": LINES + "theirs\n"})
    rebased = workspace.rebase_change(MOVED_BASE_RUN, recorded.commit, base, "main", "moved")
    assert (rebased.change, rebased.conflicts) == (None, ("a.bin",))
    assert not (tmp_path / "ran").exists()


def test_bytes_that_are_no_text(workspace, repo):
    """A binary file that only one side changed is the change; that both changed is a conflict."""
    save(repo, {"a": b"\0\1", "b": b"\0\1"})
    rebased = both(workspace, repo, {"a": b"\0\2"}, {"b": b"\0\3"})
    assert (rebased.change.files, rebased.change.added) == (("a",), 0)
    rebased = both(workspace, repo, {"a": b"\0\4"}, {"a": b"\0\5"})
    assert rebased.conflicts == ("a",)


def test_a_file_that_they_renamed_is_followed(workspace, repo):
    """The run's lines go where the file is now: the change names that path."""
    rebased = both(
        workspace, repo, {"lines": LINES + "mine\n"}, {"lines": None, "moved/lines": "theirs\n" + LINES}
    )
    assert rebased.change.files == ("moved/lines",)
    assert shown(repo, rebased, "moved/lines").split("\n")[:2] == ["theirs", "0"]


def test_rights_and_links_are_kept(workspace, repo):
    """A file made executable and a link are part of the change."""
    base = workspace.base("main").commit
    tree = Path(workspace.checkout(MOVED_BASE_RUN, base, f"{MOVED_BASE_RUN}:1:1").path)
    (tree / "README").chmod(0o755)
    (tree / "link").symlink_to("README")
    recorded = workspace.capture(MOVED_BASE_RUN, str(tree), base, "work")
    save(repo, {"other": "theirs\n"})
    rebased = workspace.rebase_change(MOVED_BASE_RUN, recorded.commit, base, "main", "moved")
    listed = git(repo, "ls-tree", rebased.change.commit).split("\n")
    assert {line[:6] for line in listed if line.endswith(("README", "link"))} == {"100755", "120000"}
    assert [t.kind for t in rebased.change.touched] == ["file", "link"]


@pytest.mark.parametrize("way", ["amended", "back", "elsewhere"])
def test_a_branch_with_another_past_is_followed_too(workspace, repo, way):
    """Only what the run changed is brought over, not what the branch had when it began and has no longer."""
    first = git(repo, "rev-parse", "main")
    save(repo, {"secret": "oops\n"})
    base, recorded = change(workspace, {"README": "mine\n"})
    if way == "elsewhere":
        git(repo, "checkout", "-q", "--orphan", "island")
        git(repo, "branch", "-q", "-D", "main")
        git(repo, "branch", "-m", "main")
        save(repo, {"secret": None})
    else:
        git(repo, "reset", "-q", "--hard", first)
    if way == "amended":
        save(repo, {"other": "theirs\n"})
    rebased = workspace.rebase_change(MOVED_BASE_RUN, recorded.commit, base, "main", "moved")
    assert rebased.change.files == ("README",)
    assert "secret" not in git(repo, "ls-tree", "--name-only", rebased.change.commit).split("\n")
    with pytest.raises(WorkspaceError, match="has moved from"):
        workspace.deliver(MOVED_BASE_RUN, recorded.commit, base, "merge", "main", "Mine")
    done = workspace.deliver(MOVED_BASE_RUN, rebased.change.commit, rebased.base, "merge", "main", "Mine")
    assert (git(repo, "rev-parse", "main"), done.tree) == (done.commit, rebased.change.tree)


def test_a_shallow_clone_is_enough(repo, tmp_path):
    """Trees are merged: no history is asked for."""
    save(repo, {"other": "one\n"})
    git(tmp_path, "clone", "-q", "--depth=1", repo.as_uri(), "shallow")
    clone = tmp_path / "shallow"
    workspace = GitWorkspace(clone, tmp_path / "state-2")
    rebased = both(workspace, clone, {"README": "mine\n"}, {"other": "theirs\n"})
    assert rebased.change.files == ("README",)


def test_what_is_pinned_outlives_a_tidy_up(workspace, repo):
    """git throws away what nothing holds; the change on the new base stays, with its base."""
    rebased = both(workspace, repo, {"README": "mine\n"}, {"other": "theirs\n"})
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    again = GitWorkspace(repo, workspace._trees.root.parent)
    assert (
        again.checkout(MOVED_BASE_RUN, rebased.change.commit, f"{MOVED_BASE_RUN}:2:1").tree
        == rebased.change.tree
    )


def test_the_persons_checkout_is_not_looked_at(workspace, repo):
    """Uncommitted work on the branch neither hinders nor changes anything."""
    base, recorded = change(workspace, {"README": "mine\n"})
    save(repo, {"other": "theirs\n"})
    (repo / "README").write_text("half done\n")
    rebased = workspace.rebase_change(MOVED_BASE_RUN, recorded.commit, base, "main", "moved")
    assert rebased.change.files == ("README",)
    assert (repo / "README").read_text() == "half done\n"


def test_a_clone_without_its_objects_says_what_to_fetch(repo, tmp_path):
    """What a partial clone lacks is not fetched behind anybody's back; the message has the command."""
    git(repo, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", repo.as_uri(), "partial")
    clone = tmp_path / "partial"
    workspace = GitWorkspace(clone, tmp_path / "state-2")
    base, recorded = change(workspace, {"lines": LINES + "mine\n"})
    save(repo, {"lines": "theirs\n" + LINES})
    git(clone, "fetch", "-q", "origin")
    git(clone, "branch", "side", "origin/main")
    with pytest.raises(WorkspaceError, match=r"git cannot bring run .* onto side: .*; put that right"):
        workspace.rebase_change(MOVED_BASE_RUN, recorded.commit, base, "side", "moved")


def test_of_many_at_once_one_is_merged(repo, tmp_path):
    """Exact merges from the same base race for the branch: one goes in, the others are told that it has moved."""
    git(repo, "branch", "target")
    runs = [f"{MOVED_BASE_RUN}-{n}" for n in range(4)]
    first = GitWorkspace(repo, tmp_path / "state")
    base = first.base("main").commit
    commits = {run: change(first, {run: "mine\n"}, run)[1].commit for run in runs}
    won, lost, begin = [], [], threading.Barrier(len(runs))

    def deliver(run):
        workspace = GitWorkspace(repo, tmp_path / "state")
        begin.wait()
        try:
            won.append(workspace.deliver(run, commits[run], base, "merge", "target", "Mine"))
        except WorkspaceError as error:
            lost.append(str(error))

    threads = [threading.Thread(target=deliver, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (done,) = won
    assert len(lost) == len(runs) - 1
    assert all("has moved from" in why or "could not be moved" in why for why in lost), lost
    assert git(repo, "rev-list", f"{base}..target") == done.commit


def test_a_branch_that_moves_meanwhile_is_not_overwritten(workspace, repo, tmp_path, monkeypatch):
    """A person who commits between our look and our move keeps the branch; the files of a checkout are as before."""
    git(repo, "branch", "target")
    base, recorded = change(workspace, {"README": "mine\n"})
    theirs = git(repo, "commit-tree", "main^{tree}", "-p", "main", "-m", "theirs")
    real, folder = shutil.which("git"), tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(
        f"""#!/bin/sh
case "$*" in *"update-ref -m steersman: deliver"*) {real} -C {repo} update-ref refs/heads/target {theirs};; esac
exec {real} "$@"
"""
    )
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    with pytest.raises(WorkspaceError, match=r"could not be moved.*(deliver|try) again"):
        workspace.deliver(MOVED_BASE_RUN, recorded.commit, base, "merge", "target", "Mine")
    assert git(repo, "rev-parse", "target") == theirs
    assert (repo / "README").read_text() == "hello\n"
    assert git(repo, "status", "--porcelain") == ""
