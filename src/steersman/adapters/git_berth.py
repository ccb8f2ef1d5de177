"""The repository of its own that a working tree stands in: whoever works inside may do with it what they like.

It borrows the objects of the real one and has a copy of its tags. Commits, branches, settings and hooks
made inside stay inside: neither the person's git nor ours ever reads them, and nothing is left of them when the tree
is handed to the next.
**Invariant:** it knows no remote, no branch, no hook and no setting of the person's repository.
"""

import shutil
from pathlib import Path

from steersman.adapters.git_cli import EMAIL, NAME, Setting
from steersman.adapters.git_hull import config, plain
from steersman.adapters.git_repository import Git
from steersman.adapters.removal import delete

MOST_TAGS = 1_000
_FOLDERS = ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info")
_OWN: tuple[Setting, ...] = (("user.name", NAME), ("user.email", EMAIL), ("advice.detachedHead", "false"))


def berth_of(tree: Path) -> Path:
    """Where the repository of a tree is: beside it, so that its files are the tree's alone."""
    return tree.with_name(f"{tree.name}.git")


def make_berth(git: Git, tree: Path, commit: str, index: Path) -> None:
    """Gives a tree its repository, made anew: at `commit`, with nothing staged."""
    place, common = berth_of(tree), git.found.common
    remove_berth(tree)
    for name in _FOLDERS:
        (place / name).mkdir(parents=True)
    (place / "objects" / "info" / "alternates").write_bytes(bytes(common / "objects") + b"\n")
    (place / "packed-refs").write_bytes(_tags(git))
    (place / "info" / "exclude").write_bytes(plain(common / "info" / "exclude"))
    if shallow := plain(common / "shallow"):
        (place / "shallow").write_bytes(shallow)
    (place / "config").write_bytes(config(git.found, more=_OWN))
    shutil.copy2(index, place / "index")
    (place / "HEAD").write_text(f"{commit}\n")
    (tree / ".git").write_text(f"gitdir: {place}\n")


def remove_berth(tree: Path) -> None:
    """Removes it, whatever has become of it."""
    delete(tree / ".git")
    delete(berth_of(tree))


def _tags(git: Git) -> bytes:
    """The tags as they are now: many projects read their version from them."""
    loose, packed = git.found.common / "refs" / "tags", git.found.common / "packed-refs"
    if loose.is_dir() and not any(loose.iterdir()) and not packed.exists():
        return b""  # git would be asked seven times in a short run
    form = "--format=%(objectname) %(refname)"
    newest = ("--sort=-creatordate", f"--count={MOST_TAGS}")
    lines = sorted(
        git.read("for-each-ref", *newest, form, "refs/tags").splitlines(),
        key=lambda line: line.partition(b" ")[2],
    )
    return b"# pack-refs with: sorted \n" + b"".join(line + b"\n" for line in lines)
