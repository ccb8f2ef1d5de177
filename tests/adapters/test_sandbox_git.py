"""git in a box: a repository for the program, and nothing of ours it could change."""

import asyncio
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from steersman.adapters.git.workspace import GitWorkspace
from steersman.adapters.process.program_runner import run_program
from steersman.adapters.sandbox.bubblewrap import SandboxPolicy

ANN = ("-c", "user.name=ann", "-c", "user.email=ann@example.com")


def git(place, *argv):
    done = subprocess.run(["git", *argv], cwd=place, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with a secret in its configuration, and its state elsewhere."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    (repo / "a.txt").write_text("one\n")
    git(repo, "add", "-A")
    git(repo, *ANN, "commit", "-qm", "first")
    git(repo, "branch", "other")
    git(repo, "remote", "add", "origin", "https://ann:s3cret@example.com/repo.git")
    return repo


@pytest.fixture
def checkout(project, tmp_path):
    """A working tree of a run, as steersman makes it."""
    space = GitWorkspace(project, tmp_path / "state" / "steersman" / "repo-1")
    base = space.base(None)
    return space, base, space.checkout("r1", base.commit, "r1:1:1")


def sh(sandbox, script, cwd, **box):
    """What a shell in a box said, and how it ended."""

    async def go():
        env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
        given = SandboxPolicy(**(box or {"writes": (str(cwd),)}))
        async with sandbox.wrap(("sh", "-c", script), given, env, str(cwd)) as boxed:
            return await run_program(boxed.argv, str(cwd), boxed.env, 30.0, "none:0:0")

    done = asyncio.run(go())
    return done.exit_code, done.output.decode().strip()


def read_all_files(folder):
    """Every file below a folder with its bytes."""
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_a_program_in_a_box_has_a_repository(sandbox, checkout):
    """It sees the commit it stands on and its own changes, and may even commit."""
    _, base, tree = checkout
    script = (
        "git status --porcelain && git log --format=%H && echo two >> a.txt && git diff --stat | tail -1 && "
        "git add -A && git -c user.name=x -c user.email=x@x commit -qm mine && git log --oneline | wc -l"
    )
    code, said = sh(sandbox, script, tree.path)
    assert code == 0, said
    lines = [line.strip() for line in said.splitlines()]
    assert (lines[0], lines[-1]) == (base.commit, "2")
    assert "1 insertion" in lines[1]


def test_what_it_commits_reaches_nobody(sandbox, checkout, project):
    """Objects, references, hooks, configuration, index and other trees are what they were."""
    space, base, tree = checkout
    before = read_all_files(project / ".git")
    script = (
        "echo two >> a.txt; git add -A; git -c user.name=x -c user.email=x@x commit -qm mine; git branch evil; "
        "git update-ref refs/heads/main HEAD; git config core.fsmonitor 'touch /tmp/mark #'; git gc -q; "
        f"mkdir -p {project}/.git/hooks; echo 'touch /tmp/mark' > {project}/.git/hooks/post-checkout; true"
    )
    assert sh(sandbox, script, tree.path)[0] == 0
    assert read_all_files(project / ".git") == before
    change = space.capture("r1", tree.path, base.commit, "one")
    assert change.files == ("a.txt",)
    assert git(project, "log", "-1", "--format=%s", "main") == "first"


def test_nothing_of_it_is_left_whatever_was_done_to_it(sandbox, checkout, monkeypatch):
    """The copy is gone with its box, also with folders in it that nobody may enter."""
    _, _, tree = checkout
    with tempfile.TemporaryDirectory(prefix="s") as place:
        monkeypatch.setattr(tempfile, "tempdir", place)
        script = (
            "d=$(git rev-parse --git-dir); mkdir -p $d/a/b; touch $d/a/b/c; chmod 000 $d/a/b $d/a $d/objects"
        )
        assert sh(sandbox, script, tree.path)[0] == 0
        assert os.listdir(place) == []


def test_the_pointer_to_it_cannot_be_touched(sandbox, checkout):
    """`.git` of a working tree can be neither written, removed nor put elsewhere."""
    _, _, tree = checkout
    before = Path(tree.path, ".git").read_text()
    script = "echo gitdir: /x > .git; rm -f .git; mv .git old; ln -sfn /x .git; test -f .git && echo there"
    code, said = sh(sandbox, script, tree.path)
    assert (code, said.splitlines()[-1]) == (0, "there")
    assert Path(tree.path, ".git").read_text() == before
    assert sorted(os.listdir(tree.path)) == [".git", "a.txt"]


def test_a_reader_has_a_repository_too(sandbox, checkout):
    """A reviewer's git works on a tree that cannot be written."""
    _, base, tree = checkout
    code, said = sh(
        sandbox, "git log --format=%H; echo x > a.txt || git status --porcelain", tree.path,
        reads=(tree.path,),
    )  # fmt: skip
    assert code == 0
    assert said.splitlines()[0] == base.commit
    assert Path(tree.path, "a.txt").read_text() == "one\n"


def test_of_the_real_repository_only_objects_are_seen(sandbox, checkout, project):
    """Neither its configuration with its secrets nor its references nor its files are there."""
    _, _, tree = checkout
    code, said = sh(
        sandbox,
        f"git config --list; git branch -a; ls -A {project} {project}/.git; cat {project}/.git/config",
        tree.path,
    )
    assert code != 0
    assert "s3cret" not in said
    assert "other" not in said.split()
    shown = said.split(f"{project}:\n")[1].split()
    assert shown[:2] == [".git", f"{project}/.git:"]
    assert "objects" in shown
    assert not {"config", "HEAD", "hooks", "refs"} & set(shown)


def test_the_users_own_checkout_keeps_its_repository(sandbox, project):
    """Checks that are tried in the user's checkout can write files there, not its .git."""
    before = read_all_files(project / ".git")
    code, said = sh(
        sandbox, "echo two > b.txt; git rev-parse HEAD; echo x >> .git/config || echo refused", project
    )
    assert (code, said.splitlines()[-1]) == (0, "refused")
    assert read_all_files(project / ".git") == before
    assert (project / "b.txt").read_text() == "two\n"


def test_so_does_one_that_is_linked(sandbox, project, tmp_path):
    """In a worktree of the person's own git answers, and writes nothing."""
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", str(linked), "other")
    before = read_all_files(project / ".git")
    code, said = sh(
        sandbox, "git log --format=%s && git branch evil; git status --porcelain; test -f a.txt", linked
    )
    assert (code, said.splitlines()[0]) == (0, "first")
    assert read_all_files(project / ".git") == before


def test_borrowed_objects_are_no_way_to_the_store(sandbox, checkout):
    """A list of further places for objects shows nothing that no box shows."""
    _, _, tree = checkout
    berth = Path(f"{tree.path}.git")
    state = berth.parents[2]
    (state / "store.db").write_text("the store")
    with (berth / "objects" / "info" / "alternates").open("a") as file:
        file.write(f"{state}\n{state}/store.db\n")
    code, said = sh(sandbox, f"cat {state}/store.db || git log --format=%s", tree.path)
    assert (code, said.splitlines()[-1]) == (0, "first")
    assert "the store" not in said


@pytest.mark.parametrize("kind", ["sha256", "shallow", "borrowed"])
def test_other_kinds_of_repositories(sandbox, project, tmp_path, kind):
    """Long hashes, a shallow clone and one that borrows its objects: git works in each."""
    repo = tmp_path / "kind"
    if kind == "sha256":
        git(tmp_path, "init", "-q", "--object-format=sha256", "-b", "main", str(repo))
        (repo / "a.txt").write_text("one\n")
        git(repo, "add", "-A")
        git(repo, *ANN, "commit", "-qm", "first")
    elif kind == "shallow":
        git(project, *ANN, "commit", "-qm", "second", "--allow-empty")
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project}", str(repo))
    else:
        git(tmp_path, "clone", "-q", "--shared", str(project), str(repo))
    space = GitWorkspace(repo, tmp_path / "state" / "steersman" / "kind-1")
    base = space.base(None)
    tree = space.checkout("r1", base.commit, "r1:1:1")
    code, said = sh(sandbox, "git log --format=%H && git status --porcelain && git fsck", tree.path)
    assert code == 0, said
    assert said.splitlines()[0] == base.commit
