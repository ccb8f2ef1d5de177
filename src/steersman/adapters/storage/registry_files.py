"""Registries as files: YAML that comes with steersman, YAML of the project, and kept ones in the state directory.

The project's files are hostile until proven otherwise: no link is followed, size and number are bounded, and YAML is
plain (no anchors, tags, duplicate keys, second documents).
**Invariant:** what cannot be read whole is an error with file and line, never skipped in silence.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import steersman
from steersman.adapters.storage.durable_files import replace_file
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.errors import UserError
from steersman.judges.planning.items import KIND_DIRECTORIES, ContentSource, parse_registry_items
from steersman.judges.planning.registry import (
    ContentOrigin,
    Registry,
    RegistryItem,
    decode_registry_archive,
    encode_registry_archive,
    restore_archived_registry,
)
from steersman.judges.planning.validate import find_identity_problems
from steersman.judges.text import clip_text, printable_text
from steersman.ports.registry import LoadedRegistry

REGISTRY_OVERLAY = ".steersman/registry"
MAX_REGISTRY_FILES, MAX_REGISTRY_BYTES = 500, 1024 * 1024  # in one folder; in all files together
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
        return LoadedRegistry(Registry(_load_built_in()), ())

    def load(self, folder: str = "") -> LoadedRegistry:
        top, below = (Path(folder), ()) if folder else (self._project, tuple(REGISTRY_OVERLAY.split("/")))
        own_items, own_problems = _RegistryOverlay(folder or REGISTRY_OVERLAY).read(top, below)
        registry = Registry((*_load_built_in(), *own_items))
        return LoadedRegistry(registry, (*own_problems, *find_identity_problems(registry)))

    def store_registry(self, registry: Registry) -> str:
        path = self._kept / f"{registry.digest}.json"
        if not path.exists():
            self._kept.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(path, encode_registry_archive(registry))
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
def _load_built_in() -> tuple[RegistryItem, ...]:
    """From one generated file: reading all the YAML takes longer than planning does."""
    return decode_registry_archive((_BUILT_IN_DIRECTORY / ARCHIVE_FILE_NAME).read_bytes())


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

    def read(self, top: Path, below: tuple[str, ...]) -> RegistryReading:
        """Everything in the folder; nothing where there is none."""
        try:
            for part in below:
                top = _refuse_link(top / part)
            names = sorted(os.listdir(top))
        except FileNotFoundError:
            return (), ()
        except OSError as error:
            return _registry_problem(self._name, f"cannot be read: {error.strerror}", _LINK_ADVICE)
        directories = (top / name for name in KIND_DIRECTORIES if name in names)
        return _join_readings(
            [
                *self._find_stray_files(names),
                *(reading for directory in directories for reading in self._read_directory(directory)),
            ]
        )

    def _find_stray_files(self, names: list[str]) -> Iterator[RegistryReading]:
        """What stands beside the four folders would otherwise seem to hold."""
        advice = f"there are {', '.join(KIND_DIRECTORIES)}"
        for name in names:
            if name not in KIND_DIRECTORIES and not name.startswith("."):
                yield _registry_problem(f"{self._name}/{name}", "is not a folder of a registry", advice)

    def _read_directory(self, directory: Path) -> Iterator[RegistryReading]:
        where = f"{self._name}/{directory.name}"
        try:
            names = sorted(name for name in os.listdir(_refuse_link(directory)) if not name.startswith("."))
        except OSError as error:
            yield _registry_problem(where, f"cannot be read: {error.strerror}", _LINK_ADVICE)
            return
        if len(names) > MAX_REGISTRY_FILES:
            yield _registry_problem(
                where, f"has more than {MAX_REGISTRY_FILES} files", "put several items into one file"
            )
        for name in names[:MAX_REGISTRY_FILES]:
            yield self._read_file(directory / name, f"{where}/{name}")

    def _read_file(self, path: Path, where: str) -> RegistryReading:
        if path.suffix not in (".yaml", ".yml"):
            return _registry_problem(where, "is not a YAML file", "end its name with .yaml, or take it out")
        try:
            if not _refuse_link(path).is_file():
                return _registry_problem(where, "is not a plain file", "take it out")
            with path.open("rb") as file:
                data = file.read(self._left + 1)
        except OSError as error:
            return _registry_problem(where, f"cannot be read: {error.strerror}", _LINK_ADVICE)
        if len(data) > self._left:
            return _registry_problem(
                where, f"makes the registry longer than {MAX_REGISTRY_BYTES} bytes", "take something out"
            )
        self._left -= len(data)
        return _parse_registry_file(data, where, path.parent.name, "project")


def _refuse_link(path: Path) -> Path:
    """The path itself; a link came with the repository and may lead anywhere."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return path


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
        document.unquoted_paths,
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
