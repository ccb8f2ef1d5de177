"""Working trees that strangers have worked in: whatever they leave, it is recorded exactly, left out or refused."""

import os
import socket
import stat
from pathlib import Path

import pytest
from tests.support.git_repository import git, make_repository

from steersman.adapters.git import tree_hash
from steersman.adapters.git.tree_hash import survey_working_tree
from steersman.adapters.storage.durable_files import delete_path
from steersman.errors import UnrecordableTreeError, WorkspaceError

RUN = "260101-abcdef"


@pytest.fixture
def repo(tmp_path):
    """A person's repository that ignores a folder."""
    return make_repository(tmp_path / "repo", {"README": "hello\n", ".gitignore": "ignored/\n"})


@pytest.fixture
def tree(workspace):
    """A tree of the run at its base."""
    return checkout(workspace)


def checkout(workspace, effect="1:1"):
    return Path(workspace.checkout(RUN, workspace.base(None).commit, f"{RUN}:{effect}").path)


def capture(workspace, tree):
    return workspace.capture(RUN, str(tree), workspace.base(None).commit, "work")


# -- links -----------------------------------------------------------------------------------------------------------


def test_links_are_recorded_as_links_wherever_they_lead(workspace, tree, tmp_path):
    """Out of the tree, in circles, into git's own files, to nothing: each is its target's name and nothing more."""
    (tmp_path / "secret").write_text("s3cret")
    goals = {
        "out": "../../../../../../../../etc/passwd", "far": str(tmp_path / "secret"), "loop": "loop",
        "one": "two", "two": "one", "config": ".git/config", "gitdir": ".git", "nothing": "no/such/place",
        "up": "..",
    }  # fmt: skip
    for name, goal in goals.items():
        (tree / name).symlink_to(goal)
    change = capture(workspace, tree)
    assert change.files == tuple(sorted(goals))
    assert "s3cret" not in change.patch
    assert {t.kind for t in change.touched} == {"link"}
    workspace.remove(RUN)
    again = Path(workspace.checkout(RUN, change.commit, f"{RUN}:2:1").path)
    assert {name: os.readlink(again / name) for name in goals} == goals


def test_nothing_behind_a_directory_that_became_a_link_is_read(workspace, repo, tmp_path):
    """A tracked directory replaced by a link out of the tree is recorded as a link, its files as gone."""
    (repo / "conf").mkdir()
    (repo / "conf" / "app.ini").write_text("a\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "conf")
    tree = checkout(workspace)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "app.ini").write_text("s3cret\n")
    (tree / "conf" / "app.ini").unlink()
    (tree / "conf").rmdir()
    (tree / "conf").symlink_to(tmp_path / "outside")
    change = capture(workspace, tree)
    assert change.files == ("conf", "conf/app.ini")
    assert "s3cret" not in change.patch


# -- what is no file -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", "sub/.gitignore", "ignored/.gitattributes"])
def test_a_pipe_that_git_would_wait_for_is_refused_at_once(workspace, tree, name):
    """git never gets to open it."""
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).unlink(missing_ok=True)
    os.mkfifo(tree / name)
    with pytest.raises(
        WorkspaceError, match=rf"{name} is no file: git would wait for it for ever; remove it"
    ):
        capture(workspace, tree)
    assert checkout(workspace, "2:1") != tree


def test_pipes_and_sockets_are_left_out(workspace, tree):
    """They are no part of a change, and a tree that has one is not handed on; in ignored places nobody minds."""
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(tree)  # a socket's path is short
        server.bind("socket")
        os.chdir(here)
    (tree / "new").write_text("n\n")
    assert capture(workspace, tree).files == ("new",)
    for name in ("pipe", "socket", "new"):
        (tree / name).unlink()
    (tree / "ignored").mkdir()
    os.mkfifo(tree / "ignored" / "pipe")
    assert checkout(workspace, "2:1") == tree
    os.mkfifo(tree / "pipe")
    assert checkout(workspace, "3:1") != tree


def test_a_file_that_became_a_pipe_is_gone(workspace, tree):
    """What cannot be recorded is not there."""
    (tree / "README").unlink()
    os.mkfifo(tree / "README")
    change = capture(workspace, tree)
    assert (change.files, change.removed) == (("README",), 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_is_left_out(workspace, tree):
    """A device node is not opened and not recorded."""
    os.mknod(tree / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    assert capture(workspace, tree).files == ()


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [".GIT/hooks/x", ".Git", "git~1", ".git.", ".git ", ".g\u200cit/config", "sub/.GiT/x"]
)
def test_a_name_that_stands_for_git_itself_is_refused(workspace, tree, name):
    """git passes such files over without a word; here they are named."""
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text("x")
    with pytest.raises(UnrecordableTreeError, match=r"git does not record .*; rename or remove"):
        capture(workspace, tree)
    assert checkout(workspace, "2:1") != tree


def test_names_that_differ_only_in_case_stay_apart(workspace, tree):
    """Where the disk tells them apart, so does the record."""
    (tree / "readme").write_text("small\n")
    assert capture(workspace, tree).files == ("readme",)


def test_trailing_dots_and_spaces_are_names(workspace, tree):
    """They are kept as they are."""
    names = ["dot.", "space ", " space", "...", "con", "a:b"]
    for name in names:
        (tree / name).write_text("x\n")
    assert capture(workspace, tree).files == tuple(sorted(names))


# -- repositories inside ---------------------------------------------------------------------------------------------


def test_a_git_directory_that_is_none_is_refused(workspace, tree):
    """git would pass over it, and what lies in it with it."""
    (tree / "sub" / ".git").mkdir(parents=True)
    (tree / "sub" / ".git" / "conftest.py").write_text("x")
    with pytest.raises(
        UnrecordableTreeError, match=r"a repository inside the tree cannot be recorded: sub; remove its \.git"
    ):
        capture(workspace, tree)


def test_a_repository_in_an_ignored_place_is_nobodys_business(workspace, tree):
    """Package managers put such things there."""
    (tree / "ignored").mkdir()
    git(tree / "ignored", "init", "-q", "package")
    assert capture(workspace, tree).files == ()


def test_a_bare_repository_inside_is_files(workspace, tree, tmp_path):
    """A buried bare repository is recorded like anything else and obeyed by nobody."""
    git(tree, "init", "-q", "--bare", "sub")
    git(tree / "sub", "config", "core.fsmonitor", f"touch '{tmp_path}/mark'")
    assert "sub/config" in capture(workspace, tree).files
    assert not (tmp_path / "mark").exists()


def test_a_submodule_that_was_filled_runs_nothing(workspace, repo, tmp_path):
    """What a stranger puts where a submodule belongs is neither run nor recorded."""
    git(tmp_path, "clone", "-q", str(repo), "module")
    git(
        repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "module"), "module"
    )
    git(repo, "commit", "-qm", "module")
    tree, mark = checkout(workspace), tmp_path / "mark"
    git(tree, "init", "-q", "module")
    (tree / "module" / ".gitattributes").write_text("* filter=evil\n")
    (tree / "module" / "f").write_text("f\n")
    git(tree / "module", "add", "-A")
    git(tree / "module", "commit", "-qm", "x")
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "diff.external"):
        git(tree / "module", "config", key, f"touch '{mark}'")
    (tree / "module" / "f").write_text("changed\n")
    (tree / "README").write_text("new\n")
    assert capture(workspace, tree).files == ("README",)
    assert not mark.exists()


# -- sizes -----------------------------------------------------------------------------------------------------------


def test_too_many_new_files_are_refused_quickly(workspace, tree, monkeypatch):
    """So is a tree that is too large to be gone through; some are named."""
    monkeypatch.setattr(tree_hash, "MAX_CHANGED_FILES", 20)
    for number in range(30):
        (tree / f"f{number:02}").write_text("x")
    with pytest.raises(UnrecordableTreeError, match=r"30 files are new or changed.*such as f00.*and 25 more"):
        capture(workspace, tree)
    monkeypatch.setattr(tree_hash, "MAX_TREE_ENTRIES", 10)
    with pytest.raises(UnrecordableTreeError, match="more than 10 entries"):
        capture(workspace, tree)


def test_a_file_that_is_too_large_is_refused_by_name(workspace, tree):
    """One that only claims to be large costs nothing, and is refused all the same."""
    with (tree / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UnrecordableTreeError, match=r"weigh 1,099,511,627,776 bytes.*such as large"):
        capture(workspace, tree)


def test_a_large_file_is_recorded_and_not_shown(workspace, tree):
    """The tree has it; the patch says that there is one."""
    (tree / "large").write_bytes(b"0123456789abcde\n" * (512 << 10))
    change = capture(workspace, tree)
    assert (change.files, change.whole) == (("large",), True)
    assert "Binary files /dev/null and b/large differ" in change.patch
    workspace.remove(RUN)
    again = workspace.checkout(RUN, change.commit, f"{RUN}:2:1")
    assert os.path.getsize(f"{again.path}/large") == 8 << 20


def test_a_long_file_does_not_hide_the_next(workspace, tree):
    """Each file's part of the patch is bounded by itself, and what is left out is said."""
    (tree / "a-long").write_text("line\n" * 200_000)
    (tree / "b-short").write_text("evil\n")
    change = capture(workspace, tree)
    assert not change.whole
    assert "more bytes of this file's patch are left out" in change.patch
    assert "+evil\n" in change.patch
    assert change.patch.startswith("# This patch is cut in 1 places. The whole: git diff ")
    assert len(change.patch) < 2 * tree_hash.MAX_FILE_PATCH_BYTES
    assert change.added == 200_001


def test_the_whole_patch_is_bounded(workspace, tree, monkeypatch):
    """Beyond its bound the patch ends and says so; every name is still in the list."""
    monkeypatch.setattr(tree_hash, "MAX_PATCH_BYTES", 2_000)
    for number in range(50):
        (tree / f"f{number:02}").write_text("line\n" * 20)
    change = capture(workspace, tree)
    assert (len(change.files), change.whole) == (50, False)
    assert change.patch.endswith("# The rest is left out: the patch is too long.\n")
    assert len(change.patch) < 4_000


def test_a_line_cannot_pretend_to_be_the_next_file(workspace, tree):
    """A long line is read in pieces; words of a header inside it begin no new file."""
    piece = tree_hash._PATCH_LINE_BYTES
    (tree / "a").write_text("x" * (piece - 1) + "diff --git a/x b/x" + "y" * 200_000)
    change = capture(workspace, tree)
    assert "more bytes of this file's patch are left out" in change.patch
    assert len(change.patch) < 2 * tree_hash.MAX_FILE_PATCH_BYTES


# -- depth and rights ------------------------------------------------------------------------------------------------


def deep(tree, levels):
    """Directories inside each other, deeper than a path can say."""
    fd = os.open(tree, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 50, dir_fd=fd)
        inner = os.open("d" * 50, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def test_a_tree_deeper_than_a_path_is_refused_and_removed(workspace, tree):
    """Nothing of ours recurses or runs out of names."""
    deep(tree, 1500)
    with pytest.raises(WorkspaceError, match="cannot be read: File name too long"):
        capture(workspace, tree)
    assert checkout(workspace, "2:1") != tree
    assert not tree.exists()


def test_removal_is_not_stopped_by_rights_or_names(tmp_path):
    """Directories without rights, names that look like our own, links and pipes; nothing outside is touched."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "f").write_text("f")
    top = tmp_path / "top"
    for name in (".0/a/b", ".1/x", "c/.0/d"):
        (top / name).mkdir(parents=True)
        (top / name / "f").write_text("f")
    (top / "link").symlink_to(tmp_path / "precious")
    os.mkfifo(top / "c" / "pipe")
    (top / "c" / ".0").chmod(0)
    (top / ".0").chmod(0o500)
    delete_path(top)
    delete_path(top)
    assert not top.exists()
    assert (tmp_path / "precious" / "f").exists()


@pytest.mark.skipif(
    os.geteuid() != 0, reason="as somebody else; whoever is not root is stopped by rights anyway"
)
def test_a_directory_without_rights_is_opened(tmp_path):
    """Its rights are no part of what is recorded; one of somebody else's is named."""
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | stat.S_IRWXG | stat.S_IXOTH)
    (tmp_path / "own" / "closed").mkdir(parents=True)
    (tmp_path / "own" / "closed" / "f").write_text("f")
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "own", 65534, 65534)
    os.chown(tmp_path / "own" / "closed", 65534, 65534)
    (tmp_path / "own" / "closed").chmod(0)
    (tmp_path / "theirs").chmod(0o700)
    os.seteuid(65534)
    try:
        assert survey_working_tree(tmp_path / "own").special == ()
        with pytest.raises(WorkspaceError, match=r"theirs/ cannot be read: .*make it readable or remove it"):
            survey_working_tree(tmp_path)
    finally:
        os.seteuid(0)


# -- a worker's own git ----------------------------------------------------------------------------------------------


def test_what_a_worker_sets_in_its_repository_reaches_nobody(workspace, tree, repo, tmp_path):
    """Settings, hooks, branches, a rewritten history: ours runs none of it, the person's repository has none of it."""
    mark = tmp_path / "mark"
    before = {
        p: p.read_bytes() for p in (repo / ".git").rglob("*") if p.is_file() and "steersman" not in str(p)
    }
    for key in (
        "core.fsmonitor",
        "core.hooksPath",
        "filter.x.clean",
        "diff.external",
        "core.pager",
        "core.editor",
    ):
        git(tree, "config", key, f"touch '{mark}'")
    berth = Path(f"{tree}.git")
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit"):
        (berth / "hooks").mkdir(exist_ok=True)
        (berth / "hooks" / name).write_text(f"#!/bin/sh\ntouch '{mark}'\n")
        (berth / "hooks" / name).chmod(0o755)
    (tree / ".gitattributes").write_text("* filter=x\n")
    base = workspace.base(None)
    change = capture(workspace, tree)
    assert change.files == (".gitattributes",)
    for effect in ("2:1", "3:1"):
        workspace.checkout(RUN, change.commit, f"{RUN}:{effect}")
    workspace.deliver(RUN, change.commit, base.commit, "branch", None, "m")
    assert not mark.exists()
    after = {p: p.read_bytes() for p in before}
    assert after == before
    assert not (berth / "hooks").exists()
    assert "touch" not in (berth / "config").read_text()
    git(repo, "status")
    assert not mark.exists()


def test_a_worker_may_use_git_freely(workspace, tree, repo):
    """Commits, branches, stashes and merges inside work, and stay inside."""
    git(repo, "tag", "v1.2")
    tree = checkout(workspace, "2:1")
    git(tree, "checkout", "-q", "-b", "idea")
    (tree / "README").write_text("new\n")
    git(tree, "commit", "-qam", "idea")
    git(tree, "stash", "list")
    assert git(tree, "log", "--format=%s") == "idea\nx"
    assert git(tree, "describe", "--tags", "HEAD~1") == "v1.2"
    assert capture(workspace, tree).files == ("README",)
    assert "idea" not in git(repo, "branch", "-a")
    assert git(repo, "cat-file", "--batch-all-objects", "--batch-check").count("commit") == 2


def test_the_kinds_of_text_that_git_converts(workspace, repo):
    """Line endings, keywords and encodings that git converts by itself come out and go in unchanged."""
    (repo / ".gitattributes").write_text(
        "*.txt text eol=crlf\n*.id ident\n*.u16 text working-tree-encoding=UTF-16LE\n*.sub export-subst\n"
    )
    (repo / "a.txt").write_bytes(b"a\r\nb\r\n")
    (repo / "b.id").write_text("$Id$\n")
    (repo / "c.u16").write_bytes("größe\n".encode("utf-16-le"))
    (repo / "d.sub").write_text("$Format:%H$\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "kinds")
    tree = checkout(workspace)
    assert (tree / "a.txt").read_bytes() == b"a\r\nb\r\n"
    assert (tree / "c.u16").read_bytes() == "größe\n".encode("utf-16-le")
    assert capture(workspace, tree).files == ()
    (tree / "c.u16").write_bytes("neu\n".encode("utf-16-le"))
    assert capture(workspace, tree).files == ("c.u16",)


def test_an_encoding_that_cannot_be_read_is_refused(workspace, tree):
    """In git's own words, with the file's name."""
    (tree / ".gitattributes").write_text("*.bad working-tree-encoding=UTF-16\n")
    (tree / "x.bad").write_bytes(b"\xff")
    with pytest.raises(WorkspaceError, match=r"x\.bad"):
        capture(workspace, tree)
