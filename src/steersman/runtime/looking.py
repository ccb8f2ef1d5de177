"""The files of a task as they are on disk now, by their digests; a folder has one digest over all that is in it.

**Invariant:** no link is followed and nothing is written; what cannot be read has no digest.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from steersman.contracts.task.documents import DOCUMENTS
from steersman.contracts.task.words import COPIES, FILES, PATCH
from steersman.judges.task.found import Found
from steersman.judges.task.inspection import folder_digest
from steersman.ports.artifacts import Artifacts

FOLDERS = tuple(sorted({name.partition("/")[0] for name in (*DOCUMENTS, PATCH) if "/" in name}))


def look(artifacts: Artifacts, run: str, names: Iterable[str]) -> dict[str, Found]:
    """What is in the place of each of these files."""
    return {name: artifacts.read(run, name) for name in names}


def copies(artifacts: Artifacts, run: str) -> dict[str, Found]:
    """Everything below the folder of copies, by its name from there; "" is what stands in the place of the folder itself."""
    names = artifacts.names(run, COPIES)
    return {name: artifacts.read(run, f"{COPIES}/{name}" if name else COPIES) for name in names}


def digest_of(found: Found) -> str:
    """The digest of a plain file's bytes; nothing where there is none."""
    return sha256(found.data).hexdigest() if found.kind == "file" else ""


def digests(artifacts: Artifacts, run: str, names: Iterable[str]) -> dict[str, str]:
    """The digest of each of these files, the folder of copies among them."""
    return {name: _digest(artifacts, run, name) for name in names}


def _digest(artifacts: Artifacts, run: str, name: str) -> str:
    if name == COPIES:
        return folder_digest({n: digest_of(found) for n, found in copies(artifacts, run).items()})
    return digest_of(artifacts.read(run, name))


def still(artifacts: Artifacts, run: str, seen: Mapping[str, str]) -> bool:
    """Whether the files are what they were when they were looked at."""
    return digests(artifacts, run, seen) == dict(seen)


def strangers(artifacts: Artifacts, run: str, recorded: Iterable[str]) -> list[str]:
    """What lies where documents of a task lie, and is none that was recorded; copies are looked at by themselves."""
    known = set(recorded)
    found = [name for folder in FOLDERS for name in _unknown(artifacts, run, folder, known)]
    if FILES not in known and artifacts.read(run, FILES).kind != "missing":
        found.append(FILES)
    return found


def _unknown(artifacts: Artifacts, run: str, folder: str, known: set[str]) -> Iterable[str]:
    names = artifacts.names(run, folder)
    if names == ("",):
        return _no_folder(artifacts.read(run, folder), folder, known)
    below = (f"{folder}/{name}" for name in names)
    return (name for name in below if not _covered(name, known))


def _no_folder(found: Found, folder: str, known: set[str]) -> Iterable[str]:
    """What stands in the place of a folder in which nothing was recorded; what stands in the way to it is told elsewhere."""
    here = found.kind == "file" or found.detail.startswith((f"{folder} ", f"{folder}:"))
    if not here or any(name.startswith(f"{folder}/") for name in known):
        return ()
    return (f"{folder}/" if found.kind == "unreadable" else folder,)


def _covered(name: str, known: set[str]) -> bool:
    """Whether it was recorded, or lies in something that stands in a recorded one's place."""
    return any(name == k or name.startswith(f"{k}/") for k in known)
