"""Brings what a change is judged by: the base tree, the files that its checks lead to, and its texts, within bounds.

**Invariant:** everything is read from recorded commits; nothing here says what it means.
"""

from collections.abc import Sequence

from steersman.contracts.commands import Argv, CommandResult
from steersman.contracts.workspace import Change, Text
from steersman.judges import trails
from steersman.judges.changes import Scene
from steersman.judges.manifests import outside_paths
from steersman.judges.variants import files_with_tests
from steersman.ports.workspace import Workspace

EACH = 256 << 10  # bytes of one changed file that are read
TOTAL = 8 << 20


def scene_of(
    workspace: Workspace,
    base: str,
    change: Change,
    checks: Sequence[Argv],
    before: Sequence[CommandResult] = (),
) -> Scene:
    """What `suspects` has to know of a change beside its names; `before` are the checks' results on the base."""
    there = frozenset(workspace.paths(base))
    files = [t.path for t in change.touched if t.kind == "file"]
    old, new = (
        {t.path: t for t in workspace.texts(commit, files, EACH, TOTAL)} for commit in (base, change.commit)
    )
    trail = _trail(workspace, base, trails.Tree(there.union(change.files)), checks)
    examples = frozenset(file for r in before if r.report is not None for file in r.report.examples)
    return Scene(there, trail, old, new, files_with_tests(before), examples)


def code_outside(workspace: Workspace, commit: str) -> str:
    """The first place outside the tree that a manifest of go or cargo takes code from; nothing where none does."""
    named = [
        p for p in workspace.paths(commit) if p.rpartition("/")[2] in ("go.mod", "go.work", "Cargo.toml")
    ]
    texts = workspace.texts(commit, named, EACH, TOTAL)
    return next((place for t in texts for place in outside_paths(t.path, t.content)), "")


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
