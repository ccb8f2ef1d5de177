"""Draft pull requests: sent to a bare repository of this machine, opened through programs that stand for gh and glab."""

import os
import re
import shutil

import pytest
from tests.support.fake_forge import FakeForge
from tests.support.git_repository import git, make_repository

from steersman.adapters.git.workspace import GitWorkspace
from steersman.errors import WorkspaceError

RUN = "260101-abcdef"
BRANCH = f"steersman/{RUN}"


@pytest.fixture
def remote(tmp_path):
    """A bare repository whose hooks leave a mark."""
    place = tmp_path / "ann" / "calc.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(place))
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        hook = place / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/mark'\n")
        hook.chmod(0o755)
    git(place, "config", "core.alternateRefsCommand", f"touch '{tmp_path}/mark' #")
    return place


@pytest.fixture
def repo(tmp_path, remote):
    """A person's repository with that remote."""
    place = make_repository(tmp_path / "repo", {"README": "hello\n"})
    git(place, "remote", "add", "origin", str(remote))
    return place


@pytest.fixture
def forge(tmp_path, monkeypatch):
    """gh and ssh on PATH."""
    fake = FakeForge(tmp_path / "forge", "gh", "ssh")
    monkeypatch.setenv("PATH", f"{fake.bin}{os.pathsep}{os.environ['PATH']}")
    return fake


def change(workspace, text="new\n"):
    base = workspace.base("main")
    tree = workspace.checkout(RUN, base.commit, f"{RUN}:1:1")
    with open(f"{tree.path}/README", "w") as file:
        file.write(text)
    return workspace.capture(RUN, tree.path, base.commit, "work"), base


def deliver(workspace, text="new\n", body="the report"):
    recorded, base = change(workspace, text)
    return workspace.deliver(
        RUN, recorded.commit, base.commit, "draft-pr", "main", "Say new\n\nRun: 1\n", body
    )


def test_a_draft_is_opened_with_its_words(workspace, forge, remote):
    """The run's branch is at the remote, and a draft with title and body asks for it."""
    done = deliver(workspace)
    assert (done.form, done.url) == ("draft-pr", "https://forge.invalid/ann/calc/pull/1")
    assert git(remote, "rev-parse", BRANCH) == done.commit
    (pull,) = forge.pulls
    assert (pull["title"], pull["body"], pull["draft"]) == ("Say new", "the report", True)
    assert (pull["base"], pull["head"]["ref"]) == ("main", BRANCH)


def test_nothing_but_the_branch_is_sent(workspace, forge, remote, repo):
    """No other branch, no tag, none of our references."""
    git(repo, "tag", "v1")
    git(repo, "branch", "secret")
    git(repo, "config", "push.followTags", "true")
    git(repo, "config", "remote.origin.mirror", "true")
    deliver(workspace)
    assert git(remote, "for-each-ref", "--format=%(refname)") == f"refs/heads/{BRANCH}"


def test_delivering_again_changes_nothing(workspace, forge, remote):
    """Asked twice there is one pull request, and the same answer."""
    assert deliver(workspace) == deliver(workspace)
    assert len(forge.pulls) == 1


def test_a_later_delivery_moves_branch_and_words(workspace, forge, remote):
    """After a follow-up the branch at the remote is the new commit, and the open draft says so."""
    deliver(workspace)
    again = deliver(workspace, "newer\n", "another report")
    assert git(remote, "rev-parse", BRANCH) == again.commit
    (pull,) = forge.pulls
    assert pull["body"] == "another report"


def test_a_branch_of_others_is_not_replaced(workspace, forge, remote, repo):
    """Somebody's commit on the branch at the remote stays; the change is on the local branch."""
    git(repo, "commit", "-q", "--allow-empty", "-m", "theirs")
    git(repo, "push", "-q", str(remote), f"HEAD:refs/heads/{BRANCH}")
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    theirs = git(remote, "rev-parse", BRANCH)
    with pytest.raises(WorkspaceError, match=rf"not of this run.*The change is on the branch {BRANCH}"):
        deliver(workspace)
    assert git(remote, "rev-parse", BRANCH) == theirs
    assert git(repo, "show", f"{BRANCH}:README") == "new"


def test_nothing_of_a_remote_on_this_machine_runs(workspace, forge, remote, tmp_path):
    """Its hooks and settings leave no mark; they are alive."""
    deliver(workspace)
    assert not (tmp_path / "mark").exists()
    git(remote, "update-ref", "refs/heads/x", BRANCH)
    assert (tmp_path / "mark").exists()


def test_a_remote_behind_ssh(workspace, forge, remote, repo):
    """ssh is asked to run git there, and nothing asks for a password."""
    git(repo, "remote", "set-url", "origin", f"ssh://git@forge.example{remote}")
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        (remote / "hooks" / name).unlink()  # they run over there, where they belong
    git(remote, "config", "--unset", "core.alternateRefsCommand")
    done = deliver(workspace)
    assert git(remote, "rev-parse", BRANCH) == done.commit
    called = [call["argv"] for call in forge.calls if call["program"] == "ssh"]
    assert called
    assert all("-oBatchMode=yes" in argv for argv in called)


def test_gitlab_has_its_own_words(workspace, tmp_path, remote, repo, monkeypatch):
    """With a GitLab host, glab is asked, and a draft is one by its title."""
    fake = FakeForge(tmp_path / "forge", "gh", "glab", "ssh")
    monkeypatch.setenv("PATH", f"{fake.bin}{os.pathsep}{os.environ['PATH']}")
    for name in os.listdir(remote / "hooks"):
        (remote / "hooks" / name).unlink()
    git(remote, "config", "--unset", "core.alternateRefsCommand")
    git(repo, "remote", "set-url", "origin", f"ssh://git@gitlab.example{remote}")
    assert deliver(workspace) == deliver(workspace)
    (pull,) = fake.pulls
    assert (pull["title"], pull["source_branch"], pull["target_branch"]) == ("Draft: Say new", BRANCH, "main")
    assert {call["program"] for call in fake.calls} == {"glab", "ssh"}


def test_the_programs_are_started_outside_every_repository(workspace, forge, repo):
    """Whatever git they call finds no repository, and none of the person's settings."""
    deliver(workspace)
    for call in (c for c in forge.calls if c["program"] == "gh"):
        assert not call["cwd"].startswith(str(repo))
        assert call["git"]["GIT_CONFIG_GLOBAL"] == "/dev/null"
        assert "GIT_DIR" not in call["git"]


def test_without_a_program_the_branch_is_left(workspace, repo, tmp_path, monkeypatch):
    """It is said which program is missing and what to do; the change is not lost."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(
        next(p for p in ("/usr/bin/git", "/usr/local/bin/git") if os.path.exists(p))
    )
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(
        WorkspaceError, match=r"needs gh or glab on PATH.*gh auth login.*The change is on the branch"
    ):
        deliver(workspace)
    monkeypatch.undo()
    assert git(repo, "show", f"{BRANCH}:README") == "new"


def test_without_a_remote_the_branch_is_left(workspace, forge, repo):
    """It is said how to add one."""
    git(repo, "remote", "remove", "origin")
    with pytest.raises(WorkspaceError, match=r"git remote add origin.*The change is on the branch"):
        deliver(workspace)
    assert forge.calls == []


def test_what_is_missing_is_known_before_a_run(forge, repo, tmp_path, monkeypatch):
    """Remote, program and ssh are looked for; nobody is called."""

    def told():
        return GitWorkspace(repo, tmp_path / "state").find_delivery_problem("draft-pr", "main")

    assert told() is None
    git(repo, "remote", "set-url", "origin", "git@forge.example:ann/calc")
    assert told() is None
    (forge.bin / "git").symlink_to(shutil.which("git"))
    with monkeypatch.context() as bare:
        bare.setenv("PATH", str(forge.bin))
        (forge.bin / "ssh").rename(tmp_path / "ssh")
        assert "ssh was not found on PATH; install it" in told()
        (tmp_path / "ssh").rename(forge.bin / "ssh")
        (forge.bin / "gh").unlink()
        assert re.search("needs gh or glab on PATH.*gh auth login", told())
    git(repo, "remote", "remove", "origin")
    assert "git remote add origin <address>" in told()
    assert GitWorkspace(repo, tmp_path / "state").find_delivery_problem("branch", "main") is None
    assert forge.calls == []


def test_a_forge_that_refuses_is_quoted(workspace, forge, remote):
    """Not logged in, no drafts there: its own words, and how to look; delivered again when it is mended."""
    forge.refuse("HTTP 401: Bad credentials (https://ann:pass@api.forge.invalid)")
    with pytest.raises(WorkspaceError, match=r"Bad credentials.*gh auth status") as caught:
        deliver(workspace)
    assert "pass" not in str(caught.value)
    forge.refuse("")
    assert deliver(workspace).url.endswith("/1")


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch% mark", "mine::x", "ssh://-oProxyCommand=touch/x/y", "-oProxyCommand=touch:x/y",
        "https://", "http://forge.invalid/a/b", "git://forge.invalid/a/b", "/no/such/directory",
        "ssh://host/$(touch x)/y", "fd::7",
    ],
)  # fmt: skip
def test_an_address_that_is_no_place_is_refused(workspace, forge, repo, address, tmp_path):
    """A helper, a program or an option in the place of an address is neither obeyed nor contacted."""
    git(repo, "config", "remote.origin.url", address)
    with pytest.raises(WorkspaceError, match="steersman sends nothing there"):
        deliver(workspace)
    assert forge.calls == []


def test_settings_that_rewrite_addresses_are_not_read(workspace, forge, remote, repo, tmp_path):
    """Neither insteadOf nor a program for the far side is used."""
    git(repo, "config", f"url.ext::touch {tmp_path}/mark %S.insteadOf", str(remote))
    git(repo, "config", "protocol.ext.allow", "always")
    git(repo, "config", "remote.origin.receivepack", f"touch '{tmp_path}/mark'; git-receive-pack")
    git(repo, "config", "remote.origin.uploadpack", f"touch '{tmp_path}/mark'; git-upload-pack")
    done = deliver(workspace)
    assert git(remote, "rev-parse", BRANCH) == done.commit
    assert not (tmp_path / "mark").exists()


def test_a_detached_start_has_nothing_to_ask_into(workspace, forge):
    """Without a branch there is no pull request."""
    recorded, base = change(workspace)
    with pytest.raises(WorkspaceError, match="needs a branch"):
        workspace.deliver(RUN, recorded.commit, base.commit, "draft-pr", None, "m")
