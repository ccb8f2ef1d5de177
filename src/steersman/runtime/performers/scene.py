"""Brings what a change is judged by: the base tree, the files of its checks, and its texts, within bounds.

**Invariant:** everything is read from recorded commits; nothing here says what it means.
"""

from collections.abc import Mapping, Sequence

from steersman.contracts.commands import Argv, CommandResult
from steersman.contracts.workspace import Change
from steersman.judges.changes import Scene
from steersman.judges.check_files import find_check_files, find_manifests, used_words
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
    programs: Mapping[str, str] | None = None,
) -> Scene:
    """What `suspects` has to know of a change beside its names; `before` are the checks' results on the base."""
    there = frozenset(workspace.paths(base))
    files = [t.path for t in change.touched if t.kind == "file"]
    old, new = (
        {t.path: t for t in workspace.texts(commit, files, EACH, TOTAL)} for commit in (base, change.commit)
    )
    texts = {t.path: t for t in workspace.texts(base, find_manifests(checks, there), EACH, TOTAL)}
    own = find_check_files(checks, there.union(change.files), texts)
    examples = frozenset(file for r in before if r.report is not None for file in r.report.examples)
    links = workspace.link_targets(change.commit)
    base_links = workspace.link_targets(base) if links else {}
    ran, words = files_with_tests(before), used_words(checks, texts)
    return Scene(there, own, words, old, new, ran, examples, links, base_links, programs or {})


def code_outside(workspace: Workspace, commit: str) -> str:
    """The first place outside the tree that a manifest of go or cargo takes code from; nothing where none does."""
    named = [
        p for p in workspace.paths(commit) if p.rpartition("/")[2] in ("go.mod", "go.work", "Cargo.toml")
    ]
    texts = workspace.texts(commit, named, EACH, TOTAL)
    return next((place for t in texts for place in outside_paths(t.path, t.content)), "")
