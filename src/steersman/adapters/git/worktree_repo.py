"""The private git repository of a working tree: an agent may do in it what it likes.

It borrows the objects of the real one and has a copy of its tags. Commits, branches, settings and hooks
made inside stay inside: neither the person's git nor ours ever reads them, and nothing is left of them when the tree
is handed to the next.
**Invariant:** it knows no remote, no branch, no hook and no setting of the person's repository.
"""

import shutil
from pathlib import Path

from steersman.adapters.git.git_command import COMMITTER_EMAIL, COMMITTER_NAME, GitSetting
from steersman.adapters.git.isolated_dir import read_small_file, render_isolated_config
from steersman.adapters.git.repository import GitRepository
from steersman.adapters.storage.remove_directory import delete_path

MAX_COPIED_TAGS = 1_000
_WORKTREE_REPO_DIRECTORIES = ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info")
_WORKTREE_REPO_SETTINGS: tuple[GitSetting, ...] = (
    ("user.name", COMMITTER_NAME),
    ("user.email", COMMITTER_EMAIL),
    ("advice.detachedHead", "false"),
)


def worktree_repo_path(tree: Path) -> Path:
    """Where the repository of a tree is: beside it, so that its files are the tree's alone."""
    return tree.with_name(f"{tree.name}.git")


def make_worktree_repo(git: GitRepository, tree: Path, commit: str, index: Path) -> None:
    """Gives a tree a new repository: at `commit`, with nothing staged."""
    repo_dir, common = worktree_repo_path(tree), git.require_repository.common
    remove_worktree_repo(tree)
    for name in _WORKTREE_REPO_DIRECTORIES:
        (repo_dir / name).mkdir(parents=True)
    (repo_dir / "objects" / "info" / "alternates").write_bytes(bytes(common / "objects") + b"\n")
    (repo_dir / "packed-refs").write_bytes(_render_packed_tags(git))
    (repo_dir / "info" / "exclude").write_bytes(read_small_file(common / "info" / "exclude"))
    if shallow := read_small_file(common / "shallow"):
        (repo_dir / "shallow").write_bytes(shallow)
    (repo_dir / "config").write_bytes(
        render_isolated_config(git.require_repository, more=_WORKTREE_REPO_SETTINGS)
    )
    shutil.copy2(index, repo_dir / "index")
    (repo_dir / "HEAD").write_text(f"{commit}\n")
    (tree / ".git").write_text(f"gitdir: {repo_dir}\n")


def remove_worktree_repo(tree: Path) -> None:
    """Removes it, whatever has become of it."""
    delete_path(tree / ".git")
    delete_path(worktree_repo_path(tree))


def _render_packed_tags(git: GitRepository) -> bytes:
    """The tags as they are now: many projects read their version from them."""
    loose = git.require_repository.common / "refs" / "tags"
    packed = git.require_repository.common / "packed-refs"
    if loose.is_dir() and not any(loose.iterdir()) and not packed.exists():
        return b""  # git would be asked seven times in a short run
    format_flag = "--format=%(objectname) %(refname)"
    limit_flags = ("--sort=-creatordate", f"--count={MAX_COPIED_TAGS}")
    lines = sorted(
        git.read("for-each-ref", *limit_flags, format_flag, "refs/tags").splitlines(),
        key=lambda line: line.partition(b" ")[2],
    )
    return b"# pack-refs with: sorted \n" + b"".join(line + b"\n" for line in lines)
