"""The git workspace in real repositories."""

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from tests.support.git_repository import commit_files, git

from steersman import wiring
from steersman.adapters.git.workspace import GitWorkspace
from steersman.contracts.config import Config
from steersman.errors import UserError, WorkspaceError
from steersman.testing.conformance_workspace import WORKSPACE_RUN, WorkspaceConformance


def checkout(workspace, commit=None, effect="1:1", run=WORKSPACE_RUN):
    return Path(workspace.checkout(run, commit or workspace.base(None).commit, f"{run}:{effect}").path)


def capture(workspace, tree, label="work"):
    return workspace.capture(WORKSPACE_RUN, str(tree), workspace.base(None).commit, label)


class TestConformance(WorkspaceConformance):
    """The git adapter passes the suite of its port."""

    @pytest.fixture
    def workspace(self, workspace):
        """The adapter over a real repository."""
        return workspace


class TestConformanceInALinkedTree(WorkspaceConformance):
    """So it does in a linked working tree of a bare SHA-256 repository, below a path of spaces, quotes and other scripts."""

    @pytest.fixture
    def workspace(self, tmp_path):
        """The common layout with a bare clone and one working tree per branch."""
        place = tmp_path / 'it\'s a "größe" $(x) ;#'
        repo = place / "repo"
        git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", str(repo))
        (repo / "README").write_text("hello\n")
        commit_files(repo)
        git(place, "clone", "-q", "--bare", str(repo), "bare")
        git(place / "bare", "worktree", "add", "-q", str(place / "linked"), "main")
        return GitWorkspace(place / "linked", place / "state")


# -- problem and base ------------------------------------------------------------------------------------------------


def test_without_git_the_problem_says_so(workspace, monkeypatch, tmp_path):
    """With no git on PATH the problem names what to install, and a call says the same."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git was not found on PATH; install git" in workspace.find_start_problem()
    with pytest.raises(WorkspaceError, match="install git"):
        workspace.base(None)


def test_an_old_git_is_a_problem(workspace, monkeypatch, tmp_path):
    """A git that cannot merge without a checkout is refused by its version."""
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\necho git version 2.30.2\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git version 2.30.2 is too old; install" in workspace.find_start_problem()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _: None, "not inside a git repository; run `git init`"),
        (lambda place: place.rmdir(), "not a directory; go to"),
        (lambda place: git(place, "init", "-q", "--bare"), "bare repository, without files to work on; clone it"),
        (lambda place: git(place, "init", "-q"), "no commit yet; run `git add"),
    ],
    ids=["empty", "missing", "bare", "unborn"],
)  # fmt: skip
def test_a_place_without_commits_is_a_problem_with_a_next_step(tmp_path, make, words):
    """No repository, a bare one and an unborn one are told apart, by `problem` and by `base`."""
    place = tmp_path / "place"
    place.mkdir()
    make(place)
    workspace = GitWorkspace(place, tmp_path / "state")
    assert words in workspace.find_start_problem()
    with pytest.raises(WorkspaceError) as caught:
        workspace.base(None)
    assert words in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_repository_of_somebody_else_needs_the_persons_word(workspace, repo, tmp_path, monkeypatch):
    """git's guard against foreign repositories holds until the person's own configuration trusts the place."""
    os.chown(repo, 65534, 65534)
    os.chown(repo / ".git", 65534, 65534)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (
        "belongs to another user; run `git config --global --add safe.directory"
        in workspace.find_start_problem()
    )
    (tmp_path / ".gitconfig").write_text(f"[safe]\n\tdirectory = {repo}\n")
    assert GitWorkspace(repo, tmp_path / "state").find_start_problem() is None


def test_inside_the_git_directory_is_a_problem(repo, tmp_path):
    """A .git directory has no files to work on."""
    assert "inside a .git directory" in GitWorkspace(repo / ".git", tmp_path / "state").find_start_problem()


@pytest.mark.parametrize("name", ["README", "untracked"])
def test_a_dirty_checkout_is_seen_and_left_alone(workspace, repo, name):
    """Uncommitted work of the person is flagged and is not part of the run."""
    (repo / name).write_text("mine\n")
    base = workspace.base(None)
    assert base.dirty
    assert (checkout(workspace) / "README").read_text() == "hello\n"
    assert (repo / name).read_text() == "mine\n"


def test_a_detached_head_has_no_branch(workspace, repo):
    """A detached head is a base like any other, without a branch; so are a tag, a hash and an expression."""
    git(repo, "tag", "-a", "v1", "-m", "v1")
    git(repo, "checkout", "-q", "--detach")
    base = workspace.base(None)
    assert base.branch is None
    assert base == workspace.base("v1") == workspace.base(base.commit) == workspace.base("HEAD^{}")
    assert workspace.base("main").branch == "main"


def test_a_refreshed_workspace_sees_the_branch_that_is_checked_out_now(workspace, repo):
    """One workspace serves a whole command: after `refresh` it reads HEAD again."""
    first = workspace.base(None).branch
    git(repo, "switch", "-qc", "other")
    workspace.refresh()
    assert (first, workspace.base(None).branch) == ("main", "other")


def test_a_command_builds_one_workspace(repo, tmp_path, monkeypatch):
    """Everything in one process that asks for the project's workspace gets the same object."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    ports = wiring.open_ports(repo, journal=None)
    assert ports.workspace(Config()) is ports.workspace(Config())


def test_a_shallow_clone_is_enough(repo, tmp_path):
    """A clone of depth one can be worked in and merged into."""
    (repo / "README").write_text("hello\nmore\n")
    commit_files(repo)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", "shallow")
    workspace = GitWorkspace(tmp_path / "shallow", tmp_path / "state")
    base, tree = workspace.base(None), checkout(workspace)
    (tree / "README").write_text("new\n")
    change = workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work")
    assert (
        workspace.deliver(WORKSPACE_RUN, change.commit, base.commit, "merge", "main", "m").tree == change.tree
    )


def test_a_subdirectory_stands_for_its_repository(repo, tmp_path):
    """Started below the top, the whole repository is worked on."""
    (repo / "sub").mkdir()
    (repo / "sub" / "f").write_text("f\n")
    commit_files(repo)
    workspace = GitWorkspace(repo / "sub", tmp_path / "state", include=("*.local",))
    (repo / "x.local").write_text("local")
    tree = checkout(workspace)
    (tree / "README").write_text("new\n")
    assert (tree / "x.local").exists()
    assert capture(workspace, tree).files == ("README",)


def test_the_callers_git_variables_do_not_reach_git(workspace, monkeypatch, tmp_path):
    """Started from a hook, with GIT_DIR and the like set, the right repository is used all the same."""
    expected = workspace.base(None)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    assert workspace.base(None) == expected
    assert checkout(workspace).is_dir()


# -- nothing but git runs --------------------------------------------------------------------------------------------


def plant(repo, mark):
    """Every way a repository has to run a program, each leaving a mark; and a commit that uses them."""
    git(repo, "branch", "other")
    program = repo.parent / "program"
    program.write_text(f"#!/bin/sh\necho $0 $@ >> '{mark}'\ncat\n")
    program.chmod(0o755)
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-merge"):
        shutil.copy(program, repo / ".git" / "hooks" / hook)
    (repo / ".gitattributes").write_text("* diff=evil merge=evil\n*.dat filter=evil\n")
    (repo / "x.dat").write_text("x\n")
    commit_files(repo)
    for key in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.external",
        "diff.evil.command",
    ):
        git(repo, "config", key, str(program))
    for key in ("diff.evil.textconv", "merge.evil.driver", "core.pager", "core.sshCommand", "gpg.program"):
        git(repo, "config", key, str(program))
    git(repo, "config", "filter.a=b.process", str(program))
    git(repo, "config", "filter.evil.required", "true")
    git(repo, "config", "commit.gpgSign", "true")
    mark.unlink(missing_ok=True)


def test_nothing_but_git_runs(repo, workspace, tmp_path):
    """Hooks, fsmonitor, filters, external diffs, merge drivers and signing leave no mark through any method."""
    mark = tmp_path / "mark"
    plant(repo, mark)
    base, tree = workspace.base(None), checkout(workspace)
    (tree / "README").write_text("new\n")
    (tree / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\nREADME filter=a=b\n")
    (tree / "x.dat").touch()
    change = workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work")
    assert "+new" in change.patch
    workspace.checkout(WORKSPACE_RUN, base.commit, f"{WORKSPACE_RUN}:2:1")
    workspace.deliver(WORKSPACE_RUN, change.commit, base.commit, "branch", None, "m")
    workspace.rebase_change(WORKSPACE_RUN, change.commit, base.commit, "other", "moved")
    workspace.deliver(WORKSPACE_RUN, change.commit, base.commit, "merge", "main", "m")
    workspace.remove(WORKSPACE_RUN)
    assert not mark.exists(), mark.read_text()
    git(repo, "status")
    assert mark.exists(), "what was planted is alive"


def test_a_merge_driver_is_not_run_and_counts_as_conflict(repo, workspace, tmp_path):
    """Where only a configured program could merge, the person has to."""
    mark = tmp_path / "mark"
    plant(repo, mark)
    base, tree = workspace.base(None), checkout(workspace)
    recorded = []
    for label, text in (("a", "one\nhello\n"), ("b", "hello\ntwo\n")):
        (tree / "README").write_text(text)
        recorded.append(capture(workspace, tree, label))
    workspace.deliver("run-a", recorded[0].commit, base.commit, "merge", "main", "m")
    moved = workspace.rebase_change("run-b", recorded[1].commit, base.commit, "main", "moved")
    assert moved.conflicts == ("README",)
    assert not mark.exists()


def test_a_git_directory_planted_in_the_tree_is_not_obeyed(workspace, tmp_path):
    """A worker that swaps the tree's .git for a repository of its own runs nothing, and nothing is left of it."""
    base, tree, mark = workspace.base(None), checkout(workspace), tmp_path / "mark"
    (tree / ".git").unlink()
    git(tree, "init", "-q")
    git(tree, "config", "core.fsmonitor", f"touch '{mark}'")
    git(tree, "config", "core.worktree", str(tmp_path))
    (tree / "new").write_text("n")
    assert workspace.capture(WORKSPACE_RUN, str(tree), base.commit, "work").files == ("new",)
    (tree / "new").unlink()
    assert checkout(workspace) == tree
    assert (tree / ".git").read_text() == f"gitdir: {tree}.git\n"
    assert git(tree, "config", "--get-all", "core.fsmonitor") == "false"
    assert not mark.exists()


def test_flags_in_the_trees_own_index_hide_nothing(workspace):
    """A worker that marks a file as unchanged, or stages something else, does not change what is recorded."""
    tree = checkout(workspace)
    git(tree, "update-index", "--assume-unchanged", "README")
    stat = (tree / "README").stat()
    (tree / "README").write_text("HELLO\n")
    os.utime(tree / "README", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert capture(workspace, tree).files == ("README",)


def test_a_workers_own_commit_changes_nothing(workspace, repo):
    """A worker may commit or switch branches inside; the record is the files, and the next one finds a clean head."""
    tree, base = checkout(workspace), workspace.base(None)
    (tree / "README").write_text("new\n")
    git(tree, "checkout", "-q", "-b", "mine")
    git(tree, "commit", "-qam", "mine")
    change = capture(workspace, tree)
    assert (change.files, git(repo, "rev-parse", f"{change.commit}^")) == (("README",), base.commit)
    again = checkout(workspace, change.commit, "2:1")
    assert again == tree
    assert git(tree, "status", "--porcelain", "--branch") == "## HEAD (no branch)"
    assert git(tree, "rev-parse", "HEAD") == change.commit


# -- what a capture holds --------------------------------------------------------------------------------------------

ODD = [
    "with space", "new\nline", "tab\there", "größe ✓", "-dash", "--help", 'quo"te', "back\\slash", ":(top)x",
    "*",
]  # fmt: skip


def test_odd_names_are_recorded_as_they_are(workspace):
    """A file of any name is added, counted, handed out and removed again under that name."""
    tree = checkout(workspace)
    for name in ODD:
        (tree / name).write_text("x\n")
    change = capture(workspace, tree)
    assert (change.files, change.added) == (tuple(sorted(ODD)), len(ODD))
    workspace.remove(WORKSPACE_RUN)
    again = checkout(workspace, change.commit)
    for name in ODD:
        assert (again / name).read_text() == "x\n"
        (again / name).unlink()
    assert workspace.capture(WORKSPACE_RUN, str(again), change.commit, "b").files == tuple(sorted(ODD))


def test_a_name_that_is_no_text_is_escaped(workspace):
    """Bytes that are no text stay readable and distinct in the list of files."""
    tree = checkout(workspace)
    for name in (b"caf\xe9", b"caf\xe8"):
        with open(os.path.join(os.fsencode(tree), name), "w") as file:
            file.write("x")
    assert capture(workspace, tree).files == ("caf\\xe8", "caf\\xe9")


def test_links_bits_and_binaries_are_recorded(workspace, tmp_path):
    """Links are stored as links, even those that lead out; the executable bit counts; binaries count no lines."""
    (tmp_path / "secret").write_text("secret")
    tree = checkout(workspace)
    (tree / "link").symlink_to(tmp_path / "secret")
    (tree / "README").chmod(0o755)
    (tree / "binary").write_bytes(bytes(range(256)) * 4)
    change = capture(workspace, tree)
    assert (change.files, change.added, change.removed) == (("README", "binary", "link"), 1, 0)
    assert "secret" not in change.patch.replace(str(tmp_path / "secret"), "")
    workspace.remove(WORKSPACE_RUN)
    again = checkout(workspace, change.commit)
    assert (again / "link").is_symlink()
    assert os.access(again / "README", os.X_OK)


def test_files_may_become_directories_and_back(workspace, repo):
    """Changes of kind are recorded: file to directory, directory to file, directory to link."""
    for name in ("a", "b"):
        (repo / name).mkdir()
        (repo / name / "f").write_text("f\n")
    commit_files(repo)
    tree = checkout(workspace)
    (tree / "README").unlink()
    (tree / "README").mkdir()
    (tree / "README" / "inner").write_text("i\n")
    shutil.rmtree(tree / "a")
    (tree / "a").write_text("a\n")
    shutil.rmtree(tree / "b")
    (tree / "b").symlink_to("a")
    assert capture(workspace, tree).files == ("README", "README/inner", "a", "a/f", "b", "b/f")


def test_ignored_files_are_neither_recorded_nor_in_the_way(workspace, repo):
    """What the repository ignores is not part of a tree and does not stop its reuse; tracked files always count."""
    (repo / ".gitignore").write_text("build/\ntracked.log\n")
    (repo / "tracked.log").write_text("1\n")
    git(repo, "add", "-f", "tracked.log")
    commit_files(repo)
    tree = checkout(workspace)
    (tree / "build").mkdir()
    (tree / "build" / "out").write_text("o")
    assert checkout(workspace, effect="2:1") == tree
    (tree / "tracked.log").write_text("2\n")
    assert capture(workspace, tree).files == ("tracked.log",)


def test_text_that_is_no_unicode_is_replaced_in_the_patch(workspace):
    """A patch is always text."""
    tree = checkout(workspace)
    (tree / "latin").write_bytes(b"caf\xe9\n")
    assert "+caf\ufffd\n" in capture(workspace, tree).patch


def test_line_endings_that_git_would_change_are_no_change(workspace, repo):
    """A file stored with other line endings than the attributes ask for does not look edited."""
    (repo / "dos").write_bytes(b"a\r\nb\r\n")
    commit_files(repo)
    (repo / ".gitattributes").write_text("* text\n")
    git(repo, "add", ".gitattributes")
    git(repo, "commit", "-qm", "attributes")
    tree = checkout(workspace)
    assert capture(workspace, tree).files == ()
    assert checkout(workspace, effect="2:1") == tree


@pytest.mark.parametrize("commits", [0, 1])
def test_a_repository_inside_the_tree_is_refused(workspace, commits):
    """Files that git would leave out of the record are refused with the next step, and the tree is not reused."""
    tree = checkout(workspace)
    git(tree, "init", "-q", "nested")
    (tree / "nested" / "f").write_text("f")
    if commits:
        commit_files(tree / "nested")
    with pytest.raises(WorkspaceError, match=r"nested.*remove its \.git"):
        capture(workspace, tree)
    assert checkout(workspace, effect="2:1") != tree


def test_a_repository_in_the_place_of_a_file_is_refused(workspace):
    """The same where a tracked file was."""
    tree = checkout(workspace)
    (tree / "README").unlink()
    git(tree, "init", "-q", "README")
    git(tree / "README", "commit", "-q", "--allow-empty", "-m", "x")
    with pytest.raises(WorkspaceError, match=r"README.*remove its \.git"):
        capture(workspace, tree)


def test_submodules_of_the_project_stay_as_they_are(workspace, repo, tmp_path):
    """A registered submodule that is not fetched is no change."""
    git(tmp_path, "clone", "-q", str(repo), "module")
    git(
        repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "module"), "module"
    )
    commit_files(repo)
    tree = checkout(workspace)
    (tree / "README").write_text("new\n")
    assert capture(workspace, tree).files == ("README",)


def test_what_is_recorded_survives_housekeeping(workspace, repo):
    """A pinned commit is kept by git's own clean-up, under the run's name."""
    tree = checkout(workspace)
    (tree / "README").write_text("new\n")
    change = capture(workspace, tree, "round-1")
    workspace.remove(WORKSPACE_RUN)
    git(repo, "gc", "--prune=now", "-q")
    assert git(repo, "rev-parse", f"refs/steersman/{WORKSPACE_RUN}/round-1") == change.commit


def test_recording_leaves_the_persons_checkout_alone(workspace, repo):
    """Branches, index, stash and files of the person are byte for byte what they were."""
    (repo / "staged").write_text("s")
    git(repo, "add", "staged")
    before = (
        (repo / ".git" / "index").read_bytes(),
        git(repo, "for-each-ref", "refs/heads"),
        git(repo, "status", "-s"),
    )
    tree = checkout(workspace)
    (tree / "README").write_text("new\n")
    capture(workspace, tree)
    after = (
        (repo / ".git" / "index").read_bytes(),
        git(repo, "for-each-ref", "refs/heads"),
        git(repo, "status", "-s"),
    )
    assert after == before


# -- trees -----------------------------------------------------------------------------------------------------------


def test_trees_live_outside_the_repository(workspace, tmp_path):
    """A tree is `worktrees/<run>/<n>` of the state directory."""
    assert checkout(workspace) == (tmp_path / "state" / "worktrees" / WORKSPACE_RUN / "1").resolve()


def test_a_tree_deleted_by_hand_is_made_again(workspace, repo):
    """A vanished directory costs nothing: a new tree is made and nothing of the old one is left."""
    tree = checkout(workspace)
    shutil.rmtree(tree)
    again = checkout(workspace)
    assert (again / "README").exists()
    assert sorted(p.name for p in again.parent.iterdir()) == ["2", "2.git", "2.index", "2.json"]
    shutil.rmtree(again)
    workspace.remove(WORKSPACE_RUN)
    assert not again.parent.exists()


def test_a_state_directory_deleted_by_hand_is_made_again(workspace, repo, tmp_path):
    """So does a vanished state directory."""
    checkout(workspace)
    shutil.rmtree(tmp_path / "state")
    assert (checkout(workspace) / "README").exists()


def test_a_half_made_tree_is_not_handed_out(workspace):
    """A tree whose making was cut off before it was noted is replaced."""
    tree = checkout(workspace)
    tree.with_name("1.json").unlink()
    assert checkout(workspace) != tree
    assert not tree.exists()


def test_a_lost_index_is_read_anew(workspace):
    """Without the companion index a capture still records exactly what changed."""
    tree = checkout(workspace)
    tree.with_name("1.index").unlink()
    (tree / "README").write_text("new\n")
    assert capture(workspace, tree).files == ("README",)


def test_a_vanished_tree_cannot_be_recorded(workspace):
    """Capturing what is gone is an error with the next step, not an empty change."""
    tree = checkout(workspace)
    shutil.rmtree(tree)
    with pytest.raises(WorkspaceError, match="check one out first"):
        capture(workspace, tree)


def test_a_tree_with_a_living_worker_is_left_alone(workspace):
    """While a process of another effect is alive its tree is neither handed out nor removed."""
    run = f"run-{uuid.uuid4().hex}"  # other tests have trees of RUN, and would see the worker
    tree = checkout(workspace, run=run)
    env = {**os.environ, "STEERSMAN_EFFECT": f"{run}:1:1"}
    worker = subprocess.Popen([sys.executable, "-c", "input()"], env=env, stdin=subprocess.PIPE)
    try:
        other = checkout(workspace, effect="2:1", run=run)
        assert other != tree
        assert tree.is_dir()
    finally:
        worker.communicate(b"\n")
    assert checkout(workspace, effect="3:1", run=run) in {tree, other}


def test_removing_a_run_leaves_no_trace_of_its_trees(workspace, repo, tmp_path):
    """Write-protected directories and links are no obstacle, and nothing behind a link is touched."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "f").write_text("f")
    tree = checkout(workspace)
    (tree / "link").symlink_to(tmp_path / "precious")
    (tree / "deep" / "er").mkdir(parents=True)
    (tree / "deep" / "er" / "f").write_text("f")
    (tree / "deep" / "er").chmod(0)
    (tree / "deep").chmod(0o500)
    workspace.remove(WORKSPACE_RUN)
    assert not tree.parent.exists()
    assert (tmp_path / "precious" / "f").exists()


def test_a_missing_commit_is_an_error(workspace):
    """A commit that is not in the repository cannot be checked out."""
    with pytest.raises(WorkspaceError, match="is not in"):
        workspace.checkout(WORKSPACE_RUN, "0" * 40, f"{WORKSPACE_RUN}:1:1")
    with pytest.raises(WorkspaceError, match="is not in"):
        workspace.deliver(WORKSPACE_RUN, "0" * 40, "main", "branch", None, "m")


def test_a_tree_that_cannot_be_made_leaves_nothing_behind(workspace, repo, tmp_path):
    """A damaged repository is an error in git's own words, and the half-made tree is gone."""
    blob = git(repo, "rev-parse", "HEAD:README")
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(WorkspaceError, match=r"git checkout-index refused: (?s:.*); put that right"):
        checkout(workspace)
    assert os.listdir(tmp_path / "state" / "worktrees" / WORKSPACE_RUN) == []


def test_a_name_with_a_nul_is_an_error_like_others(workspace):
    """No name makes git unstartable without a word."""
    with pytest.raises(WorkspaceError, match="could not be started"):
        workspace.base("a\0b")


# -- included files --------------------------------------------------------------------------------------------------


def test_included_files_come_along_and_stay_out_of_the_record(repo, tmp_path):
    """Files that match are copied in, are never recorded, and do not stop a tree from being reused."""
    (repo / ".env.test").write_text("KEY=1")
    (repo / "conf" / "deep").mkdir(parents=True)
    (repo / "conf" / "deep" / "local.ini").write_text("x")
    workspace = GitWorkspace(repo, tmp_path / "state", include=(".env.*", "conf", "none/*"))
    tree = checkout(workspace)
    assert (tree / ".env.test").read_text() == "KEY=1"
    assert (tree / "conf" / "deep" / "local.ini").read_text() == "x"
    assert checkout(workspace, effect="2:1") == tree
    (tree / "new").write_text("n")
    assert capture(workspace, tree).files == ("new",)


def test_an_included_file_never_replaces_a_tracked_one(repo, tmp_path):
    """What the commit holds wins over what lies in the person's checkout."""
    (repo / "README").write_text("dirty\n")
    workspace = GitWorkspace(repo, tmp_path / "state", include=("README", "**/*"))
    tree = checkout(workspace)
    assert (tree / "README").read_text() == "hello\n"
    assert sorted(os.listdir(tree)) == [".git", "README"]


def test_included_files_do_not_follow_links_out(repo, tmp_path):
    """Neither a link in the checkout nor one in the tree leads a copy in or out."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    (repo / "out").symlink_to(outside)
    commit_files(repo)
    (repo / "secret").symlink_to(outside / "secret")
    (repo / "near").symlink_to("README")
    (repo / "head").symlink_to(".git/HEAD")
    workspace = GitWorkspace(repo, tmp_path / "state", include=("secret", "near", "head", "out/*", "out"))
    tree = checkout(workspace)
    assert sorted(os.listdir(tree)) == [".git", "README", "near", "out"]
    assert (tree / "near").read_text() == "hello\n"
    (repo / "out").unlink()
    (repo / "out").mkdir()
    (repo / "out" / "new").write_text("n")
    checkout(workspace, effect="2:1")
    assert os.listdir(outside) == ["secret"]


def test_a_checkouts_own_list_is_heard(repo, workspace):
    """`.worktreeinclude` names files as well; one that leads out, or takes something out again, is refused by line."""
    (repo / ".env").write_text("KEY=1")
    (repo / "conf").mkdir()
    (repo / "conf" / "local.ini").write_text("x")
    (repo / ".worktreeinclude").write_text("# local settings\n\n/.env\nconf/\n")
    tree = checkout(workspace)
    assert (tree / ".env").read_text() == "KEY=1"
    assert (tree / "conf" / "local.ini").exists()
    assert capture(workspace, tree).files == ()
    for line in ("../secret", "!.env"):
        (repo / ".worktreeinclude").write_text(f"{line}\n")
        with pytest.raises(UserError, match=r"\.worktreeinclude: "):
            checkout(workspace, run="other")
    (repo / ".worktreeinclude").unlink()
    os.mkfifo(repo / ".worktreeinclude")
    assert checkout(workspace, run="third").is_dir()


@pytest.mark.parametrize("pattern", ["/etc/passwd", "../x", "a/../../x", ""])
def test_patterns_that_lead_out_are_refused(repo, tmp_path, pattern):
    """A pattern has to stay inside the repository."""
    with pytest.raises(UserError, match="has to be a relative path"):
        GitWorkspace(repo, tmp_path / "state", include=(pattern,))


# -- delivery --------------------------------------------------------------------------------------------------------


@pytest.fixture
def change(workspace):
    """A recorded change of README."""
    tree = checkout(workspace)
    (tree / "README").write_text("new\n")
    return capture(workspace, tree)


def deliver(workspace, change, form, target=None, base="main"):
    return workspace.deliver(WORKSPACE_RUN, change.commit, base, form, target, "Say new\n\nSteersman-Run: 1")


def test_a_branch_carries_the_message_and_one_commit(workspace, repo, change):
    """The delivered commit has the base as its parent, the message with its trailers, our name as its author and the
    person's as its committer."""
    git(repo, "config", "user.name", "Ann Ort")
    git(repo, "config", "user.email", "ann@example.org")
    delivery = deliver(workspace, change, "branch")
    assert delivery.ref == f"refs/heads/steersman/{WORKSPACE_RUN}"
    assert git(repo, "log", "-1", "--format=%P %an %cn %ce%n%B", delivery.commit).rstrip("\n") == (
        f"{git(repo, 'rev-parse', 'main')} steersman Ann Ort ann@example.org\nSay new\n\nSteersman-Run: 1"
    )
    assert (
        git(repo, "log", "-1", "--format=%(trailers:key=Steersman-Run,valueonly)", delivery.commit).strip()
        == "1"
    )
    assert git(repo, "status", "--porcelain") == ""


def test_a_person_s_commits_on_the_branch_are_kept(workspace, repo, change):
    """Delivering the same again keeps what was added on top; something else is not put over it."""
    first = deliver(workspace, change, "branch")
    git(repo, "checkout", "-q", f"steersman/{WORKSPACE_RUN}")
    git(repo, "commit", "-q", "--allow-empty", "-m", "mine")
    git(repo, "checkout", "-q", "main")
    assert deliver(workspace, change, "branch") == first
    with pytest.raises(WorkspaceError, match="not of this run; rename it"):
        workspace.deliver(WORKSPACE_RUN, change.commit, "main", "branch", None, "Another message")


def test_a_branch_that_is_checked_out_is_not_moved(workspace, repo, change):
    """The person who looks at the branch is asked to step off it first."""
    deliver(workspace, change, "branch")
    git(repo, "checkout", "-q", f"steersman/{WORKSPACE_RUN}")
    with pytest.raises(WorkspaceError, match=r"is checked out in .*; switch to another"):
        workspace.deliver(WORKSPACE_RUN, change.commit, "main", "branch", None, "Another message")


def test_a_branch_named_like_ours_is_in_the_way(workspace, repo, change):
    """A branch called `steersman` leaves no room for `steersman/<run>`, and the error says so."""
    git(repo, "branch", "steersman")
    with pytest.raises(WorkspaceError, match="could not be moved"):
        deliver(workspace, change, "branch")


def test_a_merge_updates_a_clean_checkout(workspace, repo, change):
    """The person on the target branch has the new files, and their untracked ones still."""
    (repo / "notes").write_text("mine")
    deliver(workspace, change, "merge", "main")
    assert (repo / "README").read_text() == "new\n"
    assert git(repo, "status", "--porcelain") == "?? notes"


def test_a_merge_into_a_dirty_checkout_is_refused(workspace, repo, change):
    """Uncommitted changes on the target stop a merge, with what to do, and nothing moves."""
    (repo / "README").write_text("mine\n")
    before = git(repo, "rev-parse", "main")
    with pytest.raises(WorkspaceError, match="uncommitted changes; commit or stash"):
        deliver(workspace, change, "merge", "main")
    assert (git(repo, "rev-parse", "main"), (repo / "README").read_text()) == (before, "mine\n")


def test_an_untracked_file_in_the_way_is_refused(workspace, repo):
    """A merge never overwrites a file that git does not know."""
    tree = checkout(workspace)
    (tree / "notes").write_text("theirs")
    added = capture(workspace, tree)
    (repo / "notes").write_text("mine")
    with pytest.raises(WorkspaceError, match="would be overwritten"):
        deliver(workspace, added, "merge", "main")
    assert (repo / "notes").read_text() == "mine"


def test_a_target_that_is_not_checked_out_moves_alone(workspace, repo, change):
    """A merge into another branch leaves the checkout alone, dirty or not."""
    git(repo, "branch", "release/1.0")
    (repo / "README").write_text("mine\n")
    delivery = deliver(workspace, change, "merge", "release/1.0")
    assert git(repo, "rev-parse", "release/1.0") == delivery.commit
    assert (repo / "README").read_text() == "mine\n"


def test_a_target_in_another_checkout_is_updated_there(workspace, repo, change, tmp_path):
    """A branch that is checked out in a second working tree of the person is moved with its files."""
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    deliver(workspace, change, "merge", "side")
    assert (tmp_path / "side" / "README").read_text() == "new\n"
    assert git(tmp_path / "side", "status", "--porcelain") == ""


def test_a_target_in_a_vanished_checkout_moves_alone(workspace, repo, change, tmp_path):
    """A second working tree that was deleted by hand is no obstacle."""
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    shutil.rmtree(tmp_path / "side")
    assert git(repo, "rev-parse", "side") != deliver(workspace, change, "merge", "side").commit


def test_files_that_pass_a_filter_are_not_written_unfiltered(workspace, repo):
    """A checkout whose files the person's git converts (large file storage) is not given raw ones."""
    (repo / ".gitattributes").write_text("*.bin filter=lfs\n")
    commit_files(repo)
    tree = checkout(workspace)
    (tree / "a.bin").write_text("pointer")
    change = capture(workspace, tree)
    with pytest.raises(WorkspaceError, match=r"a\.bin passes a filter"):
        deliver(workspace, change, "merge", "main")
    git(repo, "rm", "-q", ".gitattributes")
    git(repo, "commit", "-qm", "elsewhere")
    (repo / ".git" / "info" / "attributes").write_text("*.bin filter=lfs\n")
    moved = GitWorkspace(repo, workspace._trees.root.parent)
    with pytest.raises(WorkspaceError, match=r"a\.bin passes a filter"):
        deliver(moved, change, "merge", "main")
    git(repo, "checkout", "-q", "--detach")
    assert deliver(workspace, change, "merge", "main").tree == change.tree
