"""What a project's own files say about setting it up and checking it, one module for each ecosystem.

**Invariant:** pure: paths and texts of a commit in, proposals out. Whether a proposal works is proven by running it.
"""

from collections.abc import Callable, Iterable

from steersman.judges.ecosystems import go, javascript, jvm, python, rust
from steersman.judges.ecosystems.project import Plan, ProjectFiles, Proposal

__all__ = ["Plan", "ProjectFiles", "Proposal", "files_to_read", "propose_all"]

MOST_FOLDERS = 8  # folders below the top that get proposals of their own
MOST_TESTS = 40  # test files that are looked into
MOST_READ = 400
_READ = frozenset((*go.READ, *javascript.READ, *jvm.READ, *python.READ, *rust.READ))

# Each ecosystem with its manifests, and whether what it proposes at the top covers the folders below.
_ECOSYSTEMS: tuple[tuple[Callable[[ProjectFiles], Proposal | None], tuple[str, ...], bool], ...] = (
    (python.propose_python, python.MANIFESTS, True),
    (javascript.propose_javascript, javascript.MANIFESTS, True),
    (go.propose_go, go.MANIFESTS, False),
    (rust.propose_rust, rust.MANIFESTS, True),
    (jvm.propose_jvm, jvm.MANIFESTS, True),
)


def files_to_read(paths: Iterable[str]) -> list[str]:
    """The files whose texts proposals depend on: manifests, and a few tests to tell their form."""
    there = sorted(paths, key=lambda p: (p.count("/"), p))
    manifests = [p for p in there if p.rpartition("/")[2] in _READ or python.is_requirement_file(p)]
    tests = [p for p in there if python.is_python_test(p)][:MOST_TESTS]
    tests += [p for p in there if javascript.is_javascript_test(p)][:MOST_TESTS]
    return list(dict.fromkeys((*tests, *manifests)))[:MOST_READ]


def propose_all(files: ProjectFiles) -> tuple[list[Proposal], list[str]]:
    """The proposals for a project, and in words what was left out."""
    proposals: list[Proposal] = []
    notes: list[str] = []
    for propose, manifests, covers in _ECOSYSTEMS:
        below = [folder for folder in files.folders_with(*manifests) if folder.count("/") < 4]
        at_top = any(name in files.paths for name in manifests) or not below
        top = propose(files) if at_top else None
        if top is not None:
            proposals.append(top)
        if top is not None and covers:
            continue
        found = [p for folder in _outermost(below, nested=not covers) if (p := propose(files.below(folder)))]
        proposals += found[:MOST_FOLDERS]
        if left := [p.folder for p in found[MOST_FOLDERS:]]:
            notes.append(f"{found[0].ecosystem}: no check is proposed for {', '.join(left)}")
    if left := javascript.left_out_packages(files):
        notes.append(f"javascript: no check of its own is proposed for {', '.join(left)}")
    return proposals, notes


def _outermost(folders: list[str], *, nested: bool) -> list[str]:
    """The folders without those inside another one, unless each stands for itself."""
    return [f for f in folders if nested or not any(f.startswith(f"{other}/") for other in folders)]
