"""Deliveries that are cut short at every step: killed, or met by a full disk.

A step is what Python tells an audit hook: a file is opened, linked, renamed or removed, a program is started. The
process dies, or the step fails, before it is made.
"""

import errno
import os
import sys
from pathlib import Path

import pytest
from tests.support.git_repository import git, make_repository

from steersman.adapters.git import branch_move
from steersman.adapters.git.workspace import GitWorkspace
from steersman.errors import WorkspaceError

RUN = "260101-abcdef"
STEPS = {"open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "subprocess.Popen"}
FILES = {"README": "hello\n", "gone/deep": "x\n", "turns": "file\n", "dir/inside": "d\n", "kept": "k\n"}


@pytest.fixture
def repo(tmp_path):
    return make_repository(tmp_path / "repo", FILES)


@pytest.fixture
def arguments(repo, tmp_path):
    """What `deliver` is given: files changed, added, removed, a file that becomes a directory and the other way."""
    workspace = GitWorkspace(repo, tmp_path / "state")
    base = workspace.base("main").commit
    tree = Path(workspace.checkout(RUN, base, f"{RUN}:1:1").path)
    (tree / "README").write_text("new\n")
    (tree / "gone" / "deep").unlink()
    (tree / "turns").unlink()
    (tree / "turns").mkdir()
    (tree / "turns" / "in").write_text("in\n")
    (tree / "dir" / "inside").unlink()
    (tree / "dir").rmdir()
    (tree / "dir").write_text("now a file\n")
    (tree / "link").symlink_to("README")
    change = workspace.capture(RUN, str(tree), base, "work")
    return (RUN, change.commit, base, "merge", "main", "Say new")


def consistent(repo):
    """HEAD, index and files agree, and no lock or marker is left."""
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "fsck", "--connectivity-only", "--no-dangling") == ""
    assert {p.name for p in (repo / ".git").rglob("*.lock")} <= {"steersman-delivery.lock"}
    assert not (repo / ".git" / "steersman-delivery" / "marker.json").exists()


def strike(repo, state, arguments, nth, blow, *, count=None, when=lambda: False):
    """A child process whose nth step of a delivery, or the first `when` something holds, is struck.

    Its exit code is 0 for a delivery, 1 for a refusal, 9 for a kill.
    """
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code, made = 3, 0
    try:

        def hook(event, _):
            nonlocal made
            if event in STEPS:
                made += 1
                if made == nth or when():
                    blow()

        workspace = GitWorkspace(repo, state)
        sys.addaudithook(hook)
        workspace.deliver(*arguments)
        code = 0
        if count is not None:
            count.write_text(str(made))
    except WorkspaceError:
        code = 1
    except OSError:
        code = 2  # an error that is nobody's: it should have been told as a WorkspaceError
    finally:
        os._exit(code)


def kill():
    os._exit(9)


def full():
    raise OSError(errno.ENOSPC, "No space left on device")


def steps(repo, state, arguments):
    """How many steps a whole delivery takes, once its commit is stored."""
    for _ in range(2):
        assert strike(repo, state, arguments, 0, kill, count=state.with_name("steps")) == 0
        git(repo, "reset", "-q", "--hard", arguments[2])
    return int(state.with_name("steps").read_text())


@pytest.mark.parametrize("blow", [kill, full])
def test_cut_short_at_any_step(repo, arguments, tmp_path, blow):
    """Afterwards the checkout is as before or as after, once what was left is settled; then it can be delivered.

    A sample of the steps; STEERSMAN_TEST_STEPS=1 takes every one."""
    stride = int(os.environ.get("STEERSMAN_TEST_STEPS", "14"))
    state = tmp_path / "state"
    total = steps(repo, state, arguments)
    assert total > 40
    old = git(repo, "rev-parse", "main")
    met = set()
    for nth in range(1, total + 1, stride):
        code = strike(repo, state, arguments, nth, blow)
        if (
            code == 0 and blow is kill
        ):  # one step less than when they were counted: the commit was stored before
            break
        assert code in ((9,) if blow is kill else (0, 1)), nth
        other = GitWorkspace(
            repo, tmp_path / "other-state"
        )  # whoever comes next may have another state directory
        if code == 1 and not other.list_interrupted_runs():
            assert git(repo, "status", "--porcelain") == "", nth
        other.settle_interrupted_deliveries()
        met.add(git(repo, "rev-parse", "main") == old)
        consistent(repo)
        assert other.deliver(*arguments).commit == git(repo, "rev-parse", "main")
        consistent(repo)
        git(repo, "reset", "-q", "--hard", old)
    assert met == {True, False}


def test_what_the_person_changed_since_is_kept(repo, arguments, tmp_path):
    """A file that was edited after the kill is left as it is, and named; the others are put back."""
    readme = repo / "README"
    in_place = lambda: os.path.exists(readme) and os.stat(readme).st_size == len("new\n")  # noqa: E731  opens nothing
    assert strike(repo, tmp_path / "state", arguments, 0, kill, when=in_place) == 9
    workspace = GitWorkspace(repo, tmp_path / "state")
    assert workspace.base("main").commit == arguments[2]
    assert workspace.list_interrupted_runs() == (RUN,)
    (repo / "README").write_text("mine\n")
    (told,) = workspace.settle_interrupted_deliveries()
    assert f"left as they are, because they were changed since: {repo / 'README'}" in told
    assert (repo / "README").read_text() == "mine\n"
    assert git(repo, "status", "--porcelain") == "M README"
    with pytest.raises(WorkspaceError, match="uncommitted changes"):
        workspace.deliver(*arguments)


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock"])
def test_a_lock_of_somebody_else_is_never_removed(repo, arguments, tmp_path, monkeypatch, name):
    """It is waited for, then named; nothing is left of the delivery."""
    monkeypatch.setattr(branch_move, "GIT_LOCK_SECONDS", 0.2)
    lock = repo / ".git" / name
    lock.touch()
    workspace = GitWorkspace(repo, tmp_path / "state")
    with pytest.raises(WorkspaceError, match=rf"if no git is at work there, remove .*{name}"):
        workspace.deliver(*arguments)
    assert lock.exists()
    lock.unlink()
    assert git(repo, "status", "--porcelain") == ""
    workspace.deliver(*arguments)
    consistent(repo)


def test_a_disk_without_room_is_known_before(repo, arguments, tmp_path, monkeypatch):
    """What is needed is counted first; nothing is written into the checkout."""
    monkeypatch.setattr(branch_move, "_MIN_FREE_DISK_BYTES", 1 << 60)
    with pytest.raises(WorkspaceError, match=r"has less than the [\d,]+ KB free that this needs\. Make room"):
        GitWorkspace(repo, tmp_path / "state").deliver(*arguments)
    consistent(repo)


def test_a_branch_that_is_being_rebased_is_left_alone(repo, arguments, tmp_path):
    """The end of the rebase, or its abort, would throw the delivery away."""
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    git(repo, "-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-q", "-i", "HEAD~1")
    with pytest.raises(WorkspaceError, match="main is being rebased; finish that or abort it"):
        GitWorkspace(repo, tmp_path / "state").deliver(
            *arguments[:2], git(repo, "rev-parse", "main"), *arguments[3:]
        )
