"""Brings what a change is judged by: the base tree, the files that its checks lead to, and its texts, within bounds.

**Invariant:** everything is read from recorded commits; nothing here says what it means.
"""

from collections.abc import Sequence

import msgspec

from steersman.contracts.commands import Argv, CommandResult
from steersman.contracts.workspace import Change, Text
from steersman.judges import inside, meddling, suites, trails
from steersman.judges.changes import Scene
from steersman.judges.infrastructure import changes_test_infrastructure, is_test_file
from steersman.ports.workspace import Workspace

_MANIFESTS = ("package.json", "pyproject.toml", "setup.cfg", "Cargo.toml")


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
    programs = [path for path in files if meddling.readable(path)]
    beside = meddling.beside(programs, there.union(change.files))
    old, new = (
        _texts(workspace, commit, paths, meddling.EACH, meddling.TOTAL)
        for commit, paths in ((base, programs), (change.commit, [*programs, *beside]))
    )
    prose = [path for path in files if path.casefold().endswith(inside.PROSE)]
    for commit, texts in ((base, old), (change.commit, new)):
        texts |= {
            p: t for p, t in _texts(workspace, commit, prose, suites.EACH, suites.TESTS).items() if t.whole
        }
    trail = _trail(workspace, base, trails.Tree(there.union(change.files)), checks)
    scene = Scene(there, trail, old, new, suites.ran_in(before, there))
    return _with_uses(workspace, base, scene, [t.path for t in change.touched if t.old])


def _texts(workspace: Workspace, commit: str, paths: Sequence[str], each: int, total: int) -> dict[str, Text]:
    return {t.path: t for t in workspace.texts(commit, paths, each, total)}


def _with_uses(workspace: Workspace, base: str, scene: Scene, changed: Sequence[str]) -> Scene:
    """With who uses the changed files on the base: tests alone, or the product too."""
    tests = {p for p in scene.base if meddling.readable(p) and (p in scene.ran or is_test_file(p))}
    doubtful = [p for p in changed if p not in scene.ran and p not in scene.trail.named]
    read = (
        _texts(workspace, base, suites.nearest(tests, changed), suites.EACH, suites.TESTS) if changed else {}
    )
    used = suites.uses(read, doubtful)
    named = [p for p in doubtful if is_test_file(p)]
    others = (
        filter(_is_of_the_product, scene.base - tests - scene.trail.named.keys()) if used or named else ()
    )
    rest = _texts(workspace, base, suites.nearest(others, changed), suites.EACH, suites.OTHERS)
    elsewhere = suites.uses(rest, {*used, *named}, folders=True)
    return msgspec.structs.replace(
        scene,
        tests_use=suites.belonging(used, elsewhere, scene.old, scene.base),
        product=frozenset(named).intersection(elsewhere),
        trail=msgspec.structs.replace(
            scene.trail, examples=scene.trail.examples or any("doctest" in t.content for t in read.values())
        ),
    )


def _is_of_the_product(path: str) -> bool:
    if path.rpartition("/")[2] in _MANIFESTS:
        return True
    return meddling.readable(path) and not changes_test_infrastructure(path)


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
