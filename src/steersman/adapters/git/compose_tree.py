"""Builds a tree from two commits in a private index.

**Invariant:** only objects are written; no working tree, index or branch of the user is read or changed.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from steersman.adapters.git.repository import GitRepository
from steersman.adapters.git.worktree_survey import decode_git_path


def compose_tree(git: GitRepository, commit: str, other: str, paths: Sequence[str]) -> str:
    """Returns the tree of `commit` with these paths as they are in `other`, absent ones removed."""
    wanted_paths = frozenset(paths)
    raw = git.read("diff-tree", "-r", "--no-renames", "--raw", "-z", commit, other).split(b"\0")
    entries = []
    for fields, name in zip(raw[::2], raw[1::2], strict=False):
        if decode_git_path(name) in wanted_paths:
            _, mode, _, blob, _ = fields.split(b" ")
            entries.append(b"%s %s\t%s\0" % (mode, blob, name))
    with tempfile.TemporaryDirectory() as directory:
        env = {"GIT_INDEX_FILE": str(Path(directory, "index"))}
        git.read("read-tree", commit, env=env)
        git.read("update-index", "-z", "--index-info", env=env, feed=b"".join(entries))
        return git.line("write-tree", env=env)
