"""What a project's own files say about setting it up and checking it, one module for each ecosystem.

**Invariant:** pure: paths and texts of a commit in, proposals out. Whether a proposal works is proven by running it.
"""

from collections.abc import Iterable, Iterator

from steersman.judges.ecosystems.ecosystem import Ecosystem
from steersman.judges.ecosystems.generic import GENERIC
from steersman.judges.ecosystems.go import GO
from steersman.judges.ecosystems.javascript import JAVASCRIPT, find_left_out_packages
from steersman.judges.ecosystems.jvm import JVM
from steersman.judges.ecosystems.project import ProjectFiles, SetupPlan, SetupProposal
from steersman.judges.ecosystems.python import PYTHON
from steersman.judges.ecosystems.rust import RUST

__all__ = [
    "ECOSYSTEMS", "Ecosystem", "ProjectFiles", "SetupPlan", "SetupProposal", "list_files_to_read", "propose_project_checks",
]  # fmt: skip

ECOSYSTEMS = (PYTHON, JAVASCRIPT, GO, RUST, JVM, GENERIC)
MAX_PROPOSED_DIRECTORIES = 8  # folders below the top that get proposals of their own
MAX_READ_TEST_FILES = 40  # test files of an ecosystem that are looked into
MAX_READ_PROJECT_FILES = 400


def list_files_to_read(paths: Iterable[str]) -> list[str]:
    """The files whose texts proposals depend on: a few tests to tell their form, and manifests."""
    sorted_paths = sorted(paths, key=lambda path: (path.count("/"), path))
    chosen = [*_list_tests_to_read(sorted_paths), *filter(_is_proposal_input, sorted_paths)]
    return list(dict.fromkeys(chosen))[:MAX_READ_PROJECT_FILES]


def _list_tests_to_read(sorted_paths: list[str]) -> Iterator[str]:
    for ecosystem in ECOSYSTEMS:
        if ecosystem.is_test is not None:
            yield from [path for path in sorted_paths if ecosystem.is_test(path)][:MAX_READ_TEST_FILES]


def _is_proposal_input(path: str) -> bool:
    name = path.rpartition("/")[2]
    return any(
        name in ecosystem.proposal_inputs
        or (ecosystem.is_further_input is not None and ecosystem.is_further_input(path))
        for ecosystem in ECOSYSTEMS
    )


def propose_project_checks(files: ProjectFiles) -> tuple[list[SetupProposal], list[str]]:
    """The proposals for a project, and in words what was left out."""
    proposals: list[SetupProposal] = []
    notes: list[str] = []
    for ecosystem in ECOSYSTEMS:
        propose, manifests, covers = ecosystem.propose, ecosystem.manifests, ecosystem.covers_below
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
            notes.append(f"{ecosystem.name}: no check is proposed for {', '.join(left_out)}")
    if left_out := find_left_out_packages(files):
        notes.append(f"javascript: no check of its own is proposed for {', '.join(left_out)}")
    return proposals, notes


def _find_outermost_directories(directories: list[str], *, nested: bool) -> list[str]:
    """The folders without those inside another one, unless each stands for itself."""
    return [
        directory
        for directory in directories
        if nested or not any(directory.startswith(f"{other}/") for other in directories)
    ]
