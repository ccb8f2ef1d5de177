"""Copies of the project's programs for roles, where no agent can write: `<state>/programs/<digest>/<path>`.

The copy comes from git's objects. Only a script that the commit does not have is read from the person's checkout.
**Invariant:** a copy is never changed, no link is followed or copied, and the same content has one copy.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from steersman.adapters.git_files import read_checked_out
from steersman.adapters.git_repository import Git
from steersman.adapters.git_texts import read_blobs
from steersman.adapters.removal import delete
from steersman.contracts.config import ProjectFile, Role
from steersman.errors import WorkspaceError

PROGRAMS = "programs"
MOST_FILES, MOST_BYTES = 2_000, 16 << 20
_LINK, _FILE, _EXECUTABLE = "120000", "100", "100755"
_COPY = re.compile(rf"(.*/{PROGRAMS}/[0-9a-f]{{64}})/(.+)")


class _Entry(NamedTuple):
    mode: str
    blob: str
    size: int


class KeptPrograms:
    """The copies for one repository, below `folder`."""

    def __init__(self, git: Git, folder: Path) -> None:
        self._git, self._folder = git, folder

    def keep(self, commit: str, path: str, *, alone: bool) -> str:
        """The digest of the copy; "" for a program that the commit does not have. A folder ends with a slash."""
        above = [path[: m.start()] for m in re.finditer("/", path)]
        there = self._listed(commit, (*above, path), recursive=False)
        if link := next((name for name in (*above, path) if name in there and there[name].mode == _LINK), ""):
            raise WorkspaceError(
                f"{link} is a link in commit {commit[:12]}, and steersman follows none to a program: "
                "commit the file itself, or name it where it lies"
            )
        if path.endswith("/") or (path in there and there[path].mode.startswith(_FILE)):
            return self._kept(self._contents(commit, path, alone=alone))
        return self._kept_from_checkout(commit, path) if alone else ""

    def _kept_from_checkout(self, commit: str, path: str) -> str:
        content = read_checked_out(self._git.found.top, path)
        if content is None:
            raise WorkspaceError(
                f"cannot read the script {path}: it is not in commit {commit[:12]}, and your checkout has no plain "
                "file of this name (steersman follows no links); correct `script` in steersman.toml"
            )
        return self._kept({path: (False, content)})

    def _contents(self, commit: str, path: str, *, alone: bool) -> dict[str, tuple[bool, bytes]]:
        folder = path.rpartition("/")[0]
        entries = self._listed(commit, (path if alone or not folder else f"{folder}/",), recursive=True)
        entries = {name: e for name, e in entries.items() if e.mode.startswith(_FILE)}
        if len(entries) > MOST_FILES or sum(e.size for e in entries.values()) > MOST_BYTES:
            raise WorkspaceError(
                f"{path} plays a role, and {folder or 'it'} is larger than {MOST_BYTES >> 20} MB or "
                f"{MOST_FILES} files in commit {commit[:12]}: move the program to a smaller folder"
            )
        blobs = read_blobs(self._git, list(dict.fromkeys(e.blob for e in entries.values())))
        return {name: (e.mode == _EXECUTABLE, blobs[e.blob]) for name, e in entries.items()}

    def _listed(self, commit: str, names: Iterable[str], *, recursive: bool) -> dict[str, _Entry]:
        words = ("ls-tree", *(("-r",) if recursive else ()), "-z", "-l", "--full-tree", commit, "--", *names)
        found = {}
        for line in self._git.read(*words).split(b"\0")[:-1]:
            told, _, name = line.partition(b"\t")
            mode, _, blob, size = told.decode().split()
            found[os.fsdecode(name)] = _Entry(mode, blob, int(size) if size.isdigit() else 0)
        return found

    def _kept(self, files: Mapping[str, tuple[bool, bytes]]) -> str:
        digest = hashlib.sha256()
        for name, (executable, content) in sorted(files.items()):
            told = f"{name!r} {executable} {hashlib.sha256(content).hexdigest()}\n"
            digest.update(told.encode())
        goal = self._folder / digest.hexdigest()
        if not goal.is_dir():
            self._write(files, goal)
        return goal.name

    def _write(self, files: Mapping[str, tuple[bool, bytes]], goal: Path) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Path(tempfile.mkdtemp(prefix="new-", dir=self._folder))
        try:
            for name, (executable, content) in files.items():
                file = made / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                file.chmod(0o555 if executable else 0o444)
            made.rename(goal)
        except OSError:
            delete(made)
            if not goal.is_dir():  # another process has made the same copy meanwhile
                raise


def start_copies(role: Role, programs: Mapping[str, ProjectFile], folder: Path) -> Role:
    """A role's table whose words name our copies instead of files of the project."""

    def placed(word: Any) -> Any:
        file = programs.get(word) if isinstance(word, str) else None
        return str(folder / file.kept / file.path) if file is not None and file.kept else word

    options = {name: placed(value) for name, value in role.options.items() if name == "program"}
    command = role.options.get("command")
    if isinstance(command, list | tuple):
        options["command"] = [placed(word) for word in command]
    script = placed(role.script) if role.script else None
    return replace(role, script=script, options={**role.options, **options})


def project_name(path: str) -> str:
    """How the project calls the file of which this is our copy; the path itself where it is none."""
    match = _COPY.fullmatch(path)
    return match[2] if match else path


def copies_in(words: Iterable[str]) -> tuple[str, ...]:
    """The folders of the copies that these words name."""
    found = (_COPY.fullmatch(word) for word in words)
    return tuple(dict.fromkeys(match[1] for match in found if match))
