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
from steersman.contracts.planning.decisions import Problem
from steersman.errors import UserError
from steersman.judges.planning.archive import archived, items_archived, unarchived
from steersman.judges.planning.items import FOLDERS, Source, items_of
from steersman.judges.planning.registry import Item, Origin, Registry
from steersman.judges.planning.soundness import identity
from steersman.judges.text import clip, printable
from steersman.ports.registry import Loaded

OVERLAY = ".steersman/registry"
MOST_FILES, MOST_BYTES = 500, 1024 * 1024  # in one folder; in all files together
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NO_LINK = "make it what it seems to be: readable, and no link"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_START = re.compile(r"[0-9a-f]{6,64}")

Read = tuple[tuple[Item, ...], tuple[Problem, ...]]


class FileRegistries:
    """Implements ports.registry.Registries."""

    def __init__(self, project: Path, state: Path) -> None:
        self._project, self._kept = project, state / "registry"
        self._known: dict[str, Registry] = {}  # what was read or kept here, by digest

    def built_in(self) -> Loaded:
        items, problems = _built_in()
        return Loaded(Registry(items), problems)

    def load(self, folder: str = "") -> Loaded:
        items, problems = _built_in()
        top, below = (folder, ()) if folder else (str(self._project), tuple(OVERLAY.split("/")))
        own, wrong = _Overlay(folder or OVERLAY).read(top, below)
        registry = Registry((*items, *own))
        return Loaded(registry, (*problems, *wrong, *identity(registry)))

    def keep(self, registry: Registry) -> str:
        place = self._kept / f"{registry.digest}.json"
        if not place.exists():
            self._kept.mkdir(parents=True, exist_ok=True, mode=0o700)
            part = self._kept / f".{registry.digest}.{os.getpid()}.part"
            part.write_bytes(archived(registry))
            os.replace(part, place)
        self._known[registry.digest] = registry
        return registry.digest

    def kept(self, start: str) -> Registry | None:
        if start in self._known:
            return self._known[start]
        found = [d for d in self.digests() if d.startswith(start)] if _START.fullmatch(start) else []
        if len(found) != 1:
            return None
        return unarchived((self._kept / f"{found[0]}.json").read_bytes(), found[0])

    def digests(self) -> tuple[str, ...]:
        with suppress(FileNotFoundError):
            names = (name.removesuffix(".json") for name in os.listdir(self._kept))
            return tuple(sorted(name for name in names if _DIGEST.fullmatch(name)))
        return ()


# importlib.resources costs more than the reading, and would import the machine with its package.
_HERE = Path(steersman.__file__).parent / "machines" / "coordinator" / "registry"
ARCHIVE = "archive.json"


@cache
def _built_in() -> Read:
    """From one generated file: reading all the YAML takes longer than planning does."""
    return items_archived((_HERE / ARCHIVE).read_bytes()), ()


def written_by_hand() -> Loaded:
    """What comes with steersman as its YAML says it: the archive is generated from this."""
    found = [
        _read(file.read_bytes(), f"built-in {folder}/{file.name}", folder, "built-in")
        for folder in FOLDERS
        for file in sorted((_HERE / folder).iterdir())
    ]
    items, problems = _joined(found)
    return Loaded(Registry(items), problems)


class _Overlay:
    """One reading of a folder of registry files; its bounds hold for all of them together."""

    def __init__(self, name: str) -> None:
        self._name, self._left = name, MOST_BYTES

    def read(self, top: str, below: tuple[str, ...]) -> Read:
        """Everything in the folder; nothing where there is none."""
        try:
            fd = _enter(top, below)
        except FileNotFoundError:
            return (), ()
        except OSError as error:
            return _wrong(self._name, f"cannot be read: {error.strerror}", _NO_LINK)
        try:
            return _joined([*self._strays(fd), *(read for f in FOLDERS for read in self._folder(fd, f))])
        finally:
            os.close(fd)

    def _strays(self, top: int) -> Iterator[Read]:
        """What stands beside the four folders would otherwise seem to hold."""
        for other in sorted(os.listdir(top)):
            where = f"{self._name}/{other}"
            if _hides(other) or (other.removeprefix(".") in FOLDERS and other not in FOLDERS):
                yield _hidden(where)
            elif other not in FOLDERS and not other.startswith("."):
                yield _wrong(where, "is not a folder of a registry", f"there are {', '.join(FOLDERS)}")

    def _folder(self, top: int, folder: str) -> Iterator[Read]:
        where = f"{self._name}/{folder}"
        try:
            fd = os.open(folder, _FOLDER, dir_fd=top)
        except FileNotFoundError:
            return
        except OSError as error:
            yield _wrong(where, f"cannot be read: {error.strerror}", _NO_LINK)
            return
        try:
            there = sorted(os.listdir(fd))
            yield from (_hidden(f"{where}/{name}") for name in there if _hides(name))
            names = [n for n in there if not n.startswith(".")]
            if len(names) > MOST_FILES:
                yield _wrong(where, f"has more than {MOST_FILES} files", "put several items into one file")
            for file in names[:MOST_FILES]:
                yield self._file(fd, file, folder)
        finally:
            os.close(fd)

    def _file(self, folder_fd: int, file: str, folder: str) -> Read:
        where = f"{self._name}/{folder}/{file}"
        if not file.endswith((".yaml", ".yml")):
            return _wrong(where, "is not a YAML file", "end its name with .yaml, or take it out")
        try:
            fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_fd)
        except OSError as error:
            return _wrong(where, f"cannot be read: {error.strerror}", _NO_LINK)
        try:
            data = _bytes(fd, self._left + 1)
        finally:
            os.close(fd)
        if data is None:
            return _wrong(where, "is not a plain file", "take it out")
        if len(data) > self._left:
            return _wrong(where, f"makes the registry longer than {MOST_BYTES} bytes", "take something out")
        self._left -= len(data)
        return _read(data, where, folder, "project")


def _enter(top: str, below: tuple[str, ...]) -> int:
    """A folder below another, by steps of which none is a link."""
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for part in below:
        try:
            inner = os.open(part, _FOLDER, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def _bytes(fd: int, most: int) -> bytes | None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return None
    with os.fdopen(fd, "rb", closefd=False) as opened:
        return opened.read(most)


def _read(data: bytes, where: str, folder: str, origin: Origin) -> Read:
    from steersman.adapters.plain_yaml import read_yaml  # a project without a registry of its own needs none

    try:
        document = read_yaml(data, where)
    except UserError as error:
        said = str(error).removeprefix(f"{where}, line ")
        line, _, what = said.partition(": ")
        return _wrong(where, what, "write plain YAML: one document, each key once", int(line))
    return items_of(document.value, document.lines, document.bare, Source(where, FOLDERS[folder], origin))


def _hides(name: str) -> bool:
    """Whether a name hides what would otherwise be content; what systems and editors leave behind is none."""
    return name.startswith(".") and name.casefold().endswith((".yaml", ".yml"))


def _hidden(where: str) -> Read:
    return _wrong(
        where, "is hidden, and what is hidden is not read", "take the dot from its name, or take it out"
    )


def _wrong(where: str, message: str, fix: str, line: int = 0) -> Read:
    told = Problem(
        field=clip(printable(where), 400), message=clip(printable(message), 1000), fix=fix, line=line
    )
    return (), (told,)


def _joined(found: list[Read]) -> Read:
    items = tuple(item for some, _ in found for item in some)
    return items, tuple(problem for _, some in found for problem in some)
