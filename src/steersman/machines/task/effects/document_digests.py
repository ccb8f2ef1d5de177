"""Digests of the files of a task as they are on disk now. A folder has one digest over everything in it.

**Invariant:** no link is followed and nothing is written. A file that cannot be read has no digest.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from steersman.contracts.artifacts import ArtifactOnDisk
from steersman.machines.task.documents.inspection import digest_directory_listing
from steersman.machines.task.documents.schemas import TASK_DOCUMENTS
from steersman.machines.task.documents.words import COPIES_DIRECTORY, PATCH_FILE, SCOPE_FILE
from steersman.ports.artifacts import Artifacts

DOCUMENT_DIRECTORIES = tuple(
    sorted({name.partition("/")[0] for name in (*TASK_DOCUMENTS, PATCH_FILE) if "/" in name})
)


def read_artifacts(artifacts: Artifacts, run: str, names: Iterable[str]) -> dict[str, ArtifactOnDisk]:
    """What is in the place of each of these files."""
    return {name: artifacts.read(run, name) for name in names}


def read_artifact_copies(artifacts: Artifacts, run: str) -> dict[str, ArtifactOnDisk]:
    """Everything below the folder of copies, by its name from there; "" is what stands in the place of the folder itself."""
    names = artifacts.names(run, COPIES_DIRECTORY)
    return {
        name: artifacts.read(run, f"{COPIES_DIRECTORY}/{name}" if name else COPIES_DIRECTORY)
        for name in names
    }


def artifact_digest(artifact: ArtifactOnDisk) -> str:
    """The digest of a plain file's bytes; nothing where there is none."""
    return sha256(artifact.data).hexdigest() if artifact.kind == "file" else ""


def artifact_digests(artifacts: Artifacts, run: str, names: Iterable[str]) -> dict[str, str]:
    """The digest of each of these files, the folder of copies among them."""
    return {name: _digest_by_name(artifacts, run, name) for name in names}


def _digest_by_name(artifacts: Artifacts, run: str, name: str) -> str:
    if name == COPIES_DIRECTORY:
        return digest_directory_listing(
            {n: artifact_digest(artifact) for n, artifact in read_artifact_copies(artifacts, run).items()}
        )
    return artifact_digest(artifacts.read(run, name))


def has_unchanged_artifacts(artifacts: Artifacts, run: str, seen_digests: Mapping[str, str]) -> bool:
    """Whether the files are what they were when they were looked at."""
    return artifact_digests(artifacts, run, seen_digests) == dict(seen_digests)


def find_unrecorded_artifacts(artifacts: Artifacts, run: str, recorded: Iterable[str]) -> list[str]:
    """Files among the documents of a task that were not recorded; copies are compared separately."""
    recorded_names = set(recorded)
    unrecorded = [
        name
        for folder in DOCUMENT_DIRECTORIES
        for name in _unrecorded_in_directory(artifacts, run, folder, recorded_names)
    ]
    if SCOPE_FILE not in recorded_names and artifacts.read(run, SCOPE_FILE).kind != "missing":
        unrecorded.append(SCOPE_FILE)
    return unrecorded


def _unrecorded_in_directory(
    artifacts: Artifacts, run: str, folder: str, recorded_names: set[str]
) -> Iterable[str]:
    names = artifacts.names(run, folder)
    if names == ("",):
        return _entry_instead_of_directory(artifacts.read(run, folder), folder, recorded_names)
    below = (f"{folder}/{name}" for name in names)
    return (name for name in below if not _is_recorded_path(name, recorded_names))


def _entry_instead_of_directory(artifact: ArtifactOnDisk, folder: str, names: set[str]) -> Iterable[str]:
    """What is in the place of a folder in which nothing was recorded."""
    is_in_place = artifact.kind == "file" or artifact.detail.startswith((f"{folder} ", f"{folder}:"))
    if not is_in_place or any(name.startswith(f"{folder}/") for name in names):
        return ()
    return (f"{folder}/" if artifact.kind == "unreadable" else folder,)


def _is_recorded_path(name: str, recorded_names: set[str]) -> bool:
    """Whether it was recorded, or lies in something that stands in a recorded one's place."""
    return any(name == k or name.startswith(f"{k}/") for k in recorded_names)
