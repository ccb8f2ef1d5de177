"""The scanner of a tree: lists, chooses, reads within bounds, and lets the judges say what it means.

**Invariant:** files are opened one part of their path after the other without following a link; nothing is written but
an isolated git directory, and nothing is run but git.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import msgspec

from steersman.adapters.scan.listing import ProjectListing, list_project_files
from steersman.adapters.storage.durable_files import read_file_below
from steersman.contracts.planning.context import FactPack, ScanBounds
from steersman.errors import WorkspaceError
from steersman.judges.facts.choice import select_project_files
from steersman.judges.facts.finding import ProjectSource, parent_directory
from steersman.judges.facts.pack import FileFindings, build_fact_pack, examine_project_file
from steersman.judges.planning.paths import covers_path, strip_directory_mark
from steersman.judges.text import clip_text


class ScanLimits(msgspec.Struct, frozen=True):
    """How much is read."""

    each: int = 4 * 1024 * 1024  # bytes of one file
    total: int = 64 * 1024 * 1024
    files: int = 20_000


class TreeScanner:
    """Implements ports.scanner.Scanner on a directory; `folder` takes the isolated git directory."""

    def __init__(self, project: Path, isolated_root: Path, limits: ScanLimits = ScanLimits()) -> None:  # noqa: B008  a constant
        self._project, self._folder, self._limits = project, isolated_root, limits

    def scan(self, project_id: str, root: str = ".") -> FactPack:
        project_listing = list_project_files(self._project, self._folder)
        if strip_directory_mark(root) not in ("", "."):
            project_listing = project_listing._replace(
                files={p: name for p, name in project_listing.files.items() if covers_path(root, p)}
            )
            if not project_listing.files:
                raise WorkspaceError(f"the project has no file in {root}: name a folder of it, or .")
        choice = select_project_files(tuple(project_listing.files))
        reading = _BoundedReading(self._project, project_listing, self._limits)
        pages = [page for path in choice.read if (page := reading.page(path)) is not None]
        return build_fact_pack(project_id, pages, choice, reading.bounds(len(pages)))


class _BoundedReading:
    """Files read so far."""

    def __init__(self, project: Path, project_listing: ProjectListing, limits: ScanLimits) -> None:
        self._there, self._limits = project_listing, limits
        self._top = project.resolve()
        self._names = _group_names_by_directory(project_listing.files)
        self._bytes = self._files = self._passed = 0
        self._over = False

    def page(self, path: str) -> FileFindings | None:
        """What a file says; None where it cannot be read or a bound is reached."""
        if self._over or self._files >= self._limits.files:
            self._over = True
            return None
        data = read_file_below(self._top, self._there.files[path], self._limits.each)
        if data is None:
            self._passed += 1
            return None
        if self._bytes + len(data) > self._limits.total:
            self._over = True
            return None
        self._bytes, self._files = self._bytes + len(data), self._files + 1
        source = ProjectSource(path, data.decode("utf-8", "replace"), self._names[parent_directory(path)])
        return examine_project_file(source, hashlib.sha256(data).hexdigest())

    def bounds(self, read: int) -> ScanBounds:
        """How far it went."""
        reasons = [*self._there.trouble]
        if self._over:
            reasons.append(f"more than {self._limits.files} files or {self._limits.total} bytes to read")
        if self._passed:
            reasons.append(f"{self._passed} files too long or not readable")
        return ScanBounds(
            files_seen=len(self._there.files),
            files_read=read,
            bytes_read=self._bytes,
            skipped=self._there.skipped + self._passed,
            complete=not reasons,
            stopped_by=clip_text("; ".join(reasons), 200),
        )


def _group_names_by_directory(files: Mapping[str, bytes]) -> dict[str, frozenset[str]]:
    names: defaultdict[str, set[str]] = defaultdict(set)
    for path in files:
        names[parent_directory(path)].add(path.rpartition("/")[2])
    return {directory: frozenset(directory_names) for directory, directory_names in names.items()}
