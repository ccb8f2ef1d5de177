"""What a project's own files say about setting it up and checking it, one module for each ecosystem.

**Invariant:** pure: paths and texts of a commit in, proposals out. Whether a proposal works is proven by running it.
"""

from collections.abc import Callable, Iterable

from steersman.judges.ecosystems import go, javascript, jvm, python, rust
from steersman.judges.ecosystems.project import ProjectFiles, SetupPlan, SetupProposal

__all__ = ["ProjectFiles", "SetupPlan", "SetupProposal", "list_files_to_read", "propose_project_checks"]

MAX_PROPOSED_DIRECTORIES = 8  # folders below the top that get proposals of their own
MAX_READ_TEST_FILES = 40  # test files that are looked into
MAX_READ_PROJECT_FILES = 400
_READ_FILE_NAMES = frozenset(
    (
        *go.GO_READ_FILES,
        *javascript.JAVASCRIPT_READ_FILES,
        *jvm.JVM_READ_FILES,
        *python.PYTHON_READ_FILES,
        *rust.RUST_READ_FILES,
    )
)

# Each ecosystem with its manifests, and whether what it proposes at the top covers the folders below.
_ECOSYSTEMS: tuple[tuple[Callable[[ProjectFiles], SetupProposal | None], tuple[str, ...], bool], ...] = (
    (python.propose_python, python.PYTHON_MANIFESTS, True),
    (javascript.propose_javascript, javascript.JAVASCRIPT_MANIFESTS, True),
    (go.propose_go, go.GO_MANIFESTS, False),
    (rust.propose_rust, rust.RUST_MANIFESTS, True),
    (jvm.propose_jvm, jvm.JVM_MANIFESTS, True),
)


def list_files_to_read(paths: Iterable[str]) -> list[str]:
    """The files whose texts proposals depend on: manifests, and a few tests to tell their form."""
    sorted_paths = sorted(paths, key=lambda path: (path.count("/"), path))
    manifests = [
        path
        for path in sorted_paths
        if path.rpartition("/")[2] in _READ_FILE_NAMES or python.is_requirement_file(path)
    ]
    tests = [path for path in sorted_paths if python.is_python_test(path)][:MAX_READ_TEST_FILES]
    tests += [path for path in sorted_paths if javascript.is_javascript_test(path)][:MAX_READ_TEST_FILES]
    return list(dict.fromkeys((*tests, *manifests)))[:MAX_READ_PROJECT_FILES]


def propose_project_checks(files: ProjectFiles) -> tuple[list[SetupProposal], list[str]]:
    """The proposals for a project, and in words what was left out."""
    proposals: list[SetupProposal] = []
    notes: list[str] = []
    for propose, manifests, covers in _ECOSYSTEMS:
        below = [directory for directory in files.folders_with(*manifests) if directory.count("/") < 4]
        at_top = any(name in files.paths for name in manifests) or not below
        top = propose(files) if at_top else None
        if top is not None:
            proposals.append(top)
        if top is not None and covers:
            continue
        proposals_below = [
            proposal
            for directory in _find_outermost_directories(below, nested=not covers)
            if (proposal := propose(files.below(directory)))
        ]
        proposals += proposals_below[:MAX_PROPOSED_DIRECTORIES]
        if left_out := [proposal.folder for proposal in proposals_below[MAX_PROPOSED_DIRECTORIES:]]:
            notes.append(f"{proposals_below[0].ecosystem}: no check is proposed for {', '.join(left_out)}")
    if left_out := javascript.find_left_out_packages(files):
        notes.append(f"javascript: no check of its own is proposed for {', '.join(left_out)}")
    return proposals, notes


def _find_outermost_directories(directories: list[str], *, nested: bool) -> list[str]:
    """The folders without those inside another one, unless each stands for itself."""
    return [
        directory
        for directory in directories
        if nested or not any(directory.startswith(f"{other}/") for other in directories)
    ]
