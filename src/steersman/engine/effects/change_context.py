"""Reads what a change is judged by, within bounds: the base tree, the files of its checks, and its texts.

**Invariant:** everything comes from recorded commits; the judges decide what it means.
"""

from collections.abc import Mapping, Sequence

from steersman.contracts.commands import Argv, CommandResult
from steersman.contracts.workspace import Change
from steersman.judges.changes.manifests import find_dependency_paths_outside
from steersman.judges.changes.review_reasons import ChangeContext
from steersman.judges.evidence.check_files import (
    find_check_files,
    find_check_manifests,
    list_used_check_words,
)
from steersman.judges.evidence.variants import find_files_with_tests
from steersman.ports.workspace import Workspace

MAX_TEXT_BYTES = 256 << 10  # bytes of one changed file that are read
MAX_ALL_TEXTS_BYTES = 8 << 20


def read_change_context(
    workspace: Workspace,
    base: str,
    change: Change,
    checks: Sequence[Argv],
    base_results: Sequence[CommandResult] = (),
    programs: Mapping[str, str] | None = None,
) -> ChangeContext:
    """Reads the context of a change; `base_results` are the checks' results on the base tree."""
    base_files = frozenset(workspace.paths(base))
    files = [t.path for t in change.touched if t.kind == "file"]
    old_texts, new_texts = (
        {t.path: t for t in workspace.read_texts(commit, files, MAX_TEXT_BYTES, MAX_ALL_TEXTS_BYTES)}
        for commit in (base, change.commit)
    )
    texts = {
        t.path: t
        for t in workspace.read_texts(
            base, find_check_manifests(checks, base_files), MAX_TEXT_BYTES, MAX_ALL_TEXTS_BYTES
        )
    }
    check_files = find_check_files(checks, base_files.union(change.files), texts)
    examples = frozenset(file for r in base_results if r.report is not None for file in r.report.examples)
    links = workspace.link_targets(change.commit)
    base_links = workspace.link_targets(base) if links else {}
    test_files, words = find_files_with_tests(base_results), list_used_check_words(checks, texts)
    return ChangeContext(
        base_files,
        check_files,
        words,
        old_texts,
        new_texts,
        test_files,
        examples,
        links,
        base_links,
        programs or {},
    )


def find_code_outside_tree(workspace: Workspace, commit: str) -> str:
    """Returns the first path outside the tree from which a manifest of go or cargo takes code, or nothing."""
    manifests = [
        p for p in workspace.paths(commit) if p.rpartition("/")[2] in ("go.mod", "go.work", "Cargo.toml")
    ]
    texts = workspace.read_texts(commit, manifests, MAX_TEXT_BYTES, MAX_ALL_TEXTS_BYTES)
    return next((place for t in texts for place in find_dependency_paths_outside(t.path, t.content)), "")
