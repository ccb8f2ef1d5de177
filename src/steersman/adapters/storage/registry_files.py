"""Registries as files: YAML that comes with steersman, YAML of the project, and kept ones in the state directory.

The project's files are hostile until proven otherwise: no link is followed, size and number are bounded, and YAML is
plain (no anchors, tags, duplicate keys, second documents).
**Invariant:** what cannot be read whole is told with file and line, never skipped in silence.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import steersman
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.errors import UserError
from steersman.judges.planning.archive import (
    decode_registry_archive,
    encode_registry_archive,
    restore_archived_registry,
)
from steersman.judges.planning.items import KIND_DIRECTORIES, ContentSource, parse_registry_items
from steersman.judges.planning.registry import ContentOrigin, Registry, RegistryItem
from steersman.judges.planning.validate import find_identity_problems
from steersman.judges.text import clip_text, printable_text
from steersman.ports.registry import LoadedRegistry

REGISTRY_OVERLAY = ".steersman/registry"
MAX_REGISTRY_FILES, MAX_REGISTRY_BYTES = 500, 1024 * 1024  # in one folder; in all files together
_OPEN_REGISTRY_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_LINK_ADVICE = "make it what it seems to be: readable, and no link"
_REGISTRY_DIGEST = re.compile(r"[0-9a-f]{64}")
_DIGEST_PREFIX = re.compile(r"[0-9a-f]{6,64}")

RegistryReading = tuple[tuple[RegistryItem, ...], tuple[DocumentProblem, ...]]


class FileRegistries:
    """Implements ports.registry.Registries."""

    def __init__(self, project: Path, state: Path) -> None:
        self._project, self._kept = project, state / "registry"
        self._known: dict[str, Registry] = {}  # what was read or kept here, by digest

    def built_in(self) -> LoadedRegistry:
        items, problems = _load_built_in()
        return LoadedRegistry(Registry(items), problems)

    def load(self, folder: str = "") -> LoadedRegistry:
        items, problems = _load_built_in()
        top, below = (folder, ()) if folder else (str(self._project), tuple(REGISTRY_OVERLAY.split("/")))
        own_items, own_problems = _RegistryOverlay(folder or REGISTRY_OVERLAY).read(top, below)
        registry = Registry((*items, *own_items))
        return LoadedRegistry(registry, (*problems, *own_problems, *find_identity_problems(registry)))

    def store_registry(self, registry: Registry) -> str:
        path = self._kept / f"{registry.digest}.json"
        if not path.exists():
            self._kept.mkdir(parents=True, exist_ok=True, mode=0o700)
            part = self._kept / f".{registry.digest}.{os.getpid()}.part"
            part.write_bytes(encode_registry_archive(registry))
            os.replace(part, path)
        self._known[registry.digest] = registry
        return registry.digest

    def find_stored_registry(self, start: str) -> Registry | None:
        if start in self._known:
            return self._known[start]
        matches = (
            [digest for digest in self.digests() if digest.startswith(start)]
            if _DIGEST_PREFIX.fullmatch(start)
            else []
        )
        if len(matches) != 1:
            return None
        return restore_archived_registry((self._kept / f"{matches[0]}.json").read_bytes(), matches[0])

    def digests(self) -> tuple[str, ...]:
        with suppress(FileNotFoundError):
            names = (name.removesuffix(".json") for name in os.listdir(self._kept))
            return tuple(sorted(name for name in names if _REGISTRY_DIGEST.fullmatch(name)))
        return ()


# importlib.resources costs more than the reading, and would import the machine with its package.
_BUILT_IN_DIRECTORY = Path(steersman.__file__).parent / "machines" / "coordinator" / "registry"
ARCHIVE_FILE_NAME = "archive.json"


@cache
def _load_built_in() -> RegistryReading:
    """From one generated file: reading all the YAML takes longer than planning does."""
    return decode_registry_archive((_BUILT_IN_DIRECTORY / ARCHIVE_FILE_NAME).read_bytes()), ()


def load_built_in_yaml() -> LoadedRegistry:
    """What comes with steersman as its YAML says it: the archive is generated from this."""
    readings = [
        _parse_registry_file(file.read_bytes(), f"built-in {directory}/{file.name}", directory, "built-in")
        for directory in KIND_DIRECTORIES
        for file in sorted((_BUILT_IN_DIRECTORY / directory).iterdir())
    ]
    items, problems = _join_readings(readings)
    return LoadedRegistry(Registry(items), problems)


class _RegistryOverlay:
    """One reading of a folder of registry files; its bounds hold for all of them together."""

    def __init__(self, name: str) -> None:
        self._name, self._left = name, MAX_REGISTRY_BYTES

    def read(self, top: str, below: tuple[str, ...]) -> RegistryReading:
        """Everything in the folder; nothing where there is none."""
        try:
            fd = _open_directory_below(top, below)
        except FileNotFoundError:
            return (), ()
        except OSError as error:
            return _registry_problem(self._name, f"cannot be read: {error.strerror}", _LINK_ADVICE)
        try:
            return _join_readings(
                [
                    *self._find_stray_files(fd),
                    *(
                        reading
                        for directory in KIND_DIRECTORIES
                        for reading in self._read_directory(fd, directory)
                    ),
                ]
            )
        finally:
            os.close(fd)

    def _find_stray_files(self, top: int) -> Iterator[RegistryReading]:
        """What stands beside the four folders would otherwise seem to hold."""
        for name in sorted(os.listdir(top)):
            where = f"{self._name}/{name}"
            if name not in KIND_DIRECTORIES and not name.startswith("."):
                yield _registry_problem(
                    where, "is not a folder of a registry", f"there are {', '.join(KIND_DIRECTORIES)}"
                )

    def _read_directory(self, top: int, directory: str) -> Iterator[RegistryReading]:
        where = f"{self._name}/{directory}"
        try:
            fd = os.open(directory, _OPEN_REGISTRY_DIRECTORY, dir_fd=top)
        except FileNotFoundError:
            return
        except OSError as error:
            yield _registry_problem(where, f"cannot be read: {error.strerror}", _LINK_ADVICE)
            return
        try:
            names = sorted(entry for entry in os.listdir(fd) if not entry.startswith("."))
            if len(names) > MAX_REGISTRY_FILES:
                yield _registry_problem(
                    where, f"has more than {MAX_REGISTRY_FILES} files", "put several items into one file"
                )
            for file in names[:MAX_REGISTRY_FILES]:
                yield self._read_file(fd, file, directory)
        finally:
            os.close(fd)

    def _read_file(self, folder_fd: int, file: str, directory: str) -> RegistryReading:
        where = f"{self._name}/{directory}/{file}"
        if not file.endswith((".yaml", ".yml")):
            return _registry_problem(where, "is not a YAML file", "end its name with .yaml, or take it out")
        try:
            fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_fd)
        except OSError as error:
            return _registry_problem(where, f"cannot be read: {error.strerror}", _LINK_ADVICE)
        try:
            data = _read_registry_bytes(fd, self._left + 1)
        finally:
            os.close(fd)
        if data is None:
            return _registry_problem(where, "is not a plain file", "take it out")
        if len(data) > self._left:
            return _registry_problem(
                where, f"makes the registry longer than {MAX_REGISTRY_BYTES} bytes", "take something out"
            )
        self._left -= len(data)
        return _parse_registry_file(data, where, directory, "project")


def _open_directory_below(top: str, below: tuple[str, ...]) -> int:
    """A folder below another, by steps of which none is a link."""
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for part in below:
        try:
            inner = os.open(part, _OPEN_REGISTRY_DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def _read_registry_bytes(fd: int, limit: int) -> bytes | None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return None
    with os.fdopen(fd, "rb", closefd=False) as file:
        return file.read(limit)


def _parse_registry_file(data: bytes, where: str, directory: str, origin: ContentOrigin) -> RegistryReading:
    from steersman.adapters.config.plain_yaml import read_plain_yaml

    try:
        document = read_plain_yaml(data, where)
    except UserError as error:
        message = str(error).removeprefix(f"{where}, line ")
        line, _, what = message.partition(": ")
        return _registry_problem(where, what, "write plain YAML: one document, each key once", int(line))
    return parse_registry_items(
        document.value,
        document.lines,
        document.bare,
        ContentSource(where, KIND_DIRECTORIES[directory], origin),
    )


def _registry_problem(where: str, message: str, fix: str, line: int = 0) -> RegistryReading:
    problem = DocumentProblem(
        field=clip_text(printable_text(where), 400),
        message=clip_text(printable_text(message), 1000),
        fix=fix,
        line=line,
    )
    return (), (problem,)


def _join_readings(readings: list[RegistryReading]) -> RegistryReading:
    items = tuple(item for part, _ in readings for item in part)
    return items, tuple(problem for _, part in readings for problem in part)
