"""Brings what a change is judged by: the base tree, the files that its checks lead to, and its texts, within bounds.

**Invariant:** everything is read from recorded commits; nothing here says what it means.
"""

from collections.abc import Sequence

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import Change, Text
from steersman.judges import meddling, trails
from steersman.judges.changes import Scene
from steersman.ports.workspace import Workspace


def scene_of(workspace: Workspace, base: str, change: Change, checks: Sequence[Argv]) -> Scene:
    """What `suspects` has to know of a change beside its names."""
    there = frozenset(workspace.paths(base))
    programs = [t.path for t in change.touched if t.kind == "file" and meddling.readable(t.path)]
    old, new = (
        {t.path: t for t in workspace.texts(commit, programs, meddling.EACH, meddling.TOTAL)}
        for commit in (base, change.commit)
    )
    return Scene(there, _trail(workspace, base, trails.Tree(there.union(change.files)), checks), old, new)


def _trail(workspace: Workspace, base: str, tree: trails.Tree, checks: Sequence[Argv]) -> trails.Trail:
    """Follows the checks from file to file, as long as there is something new to read."""
    texts: dict[str, Text] = {}
    left = trails.TOTAL
    found = trails.trail(checks, tree, texts)
    hop = 0
    while found.wanted:
        hop += 1
        read = {t.path: t for t in workspace.texts(base, found.wanted, trails.EACH, left)}
        left -= sum(len(t.content) for t in read.values())
        texts |= {path: read.get(path, Text(path, "")) for path in found.wanted}
        found = trails.trail(checks, tree, texts, hop)
    return found
