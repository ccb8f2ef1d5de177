"""Copies of the project's programs for roles, where no agent can write: `<state>/programs/<digest>/<path>`.

The copy comes from git's objects. Only a script that the commit does not have is read from the person's checkout.
**Invariant:** a copy is never changed, no link is followed or copied, and the same content has one copy.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from steersman.adapters.git.repository import GitRepository, TreeEntry
from steersman.adapters.git.run_trees import read_checked_out_file
from steersman.adapters.storage.durable_files import delete_path
from steersman.contracts.config import ProjectFile, Role
from steersman.errors import WorkspaceError

PROGRAMS_DIRECTORY = "programs"
MAX_PROGRAM_FILES, MAX_PROGRAM_BYTES = 2_000, 16 << 20
_PROGRAM_LINK_MODE, _PROGRAM_FILE_MODE, _PROGRAM_EXECUTABLE_MODE = "120000", "100", "100755"
_PROGRAM_COPY_PATH = re.compile(rf"(.*/{PROGRAMS_DIRECTORY}/[0-9a-f]{{64}})/(.+)")


class ProgramCopies:
    """The copies for one repository, below `folder`."""

    def __init__(self, git: GitRepository, directory: Path) -> None:
        self._git, self._folder = git, directory

    def store_copy(self, commit: str, path: str, *, alone: bool) -> str:
        """The digest of the copy; "" for a program that the commit does not have. A folder ends with a slash."""
        above = [path[: slash.start()] for slash in re.finditer("/", path)]
        entries = self._list_files(commit, (*above, path), recursive=False)
        if link := next(
            (name for name in (*above, path) if name in entries and entries[name].mode == _PROGRAM_LINK_MODE),
            "",
        ):
            raise WorkspaceError(
                f"{link} is a link in commit {commit[:12]}, and steersman follows none to a program: "
                "commit the file itself, or name it where it lies"
            )
        if path.endswith("/") or (path in entries and entries[path].mode.startswith(_PROGRAM_FILE_MODE)):
            return self._find_copy(self._read_contents(commit, path, alone=alone))
        return self._kept_from_checkout(commit, path) if alone else ""

    def _kept_from_checkout(self, commit: str, path: str) -> str:
        content = read_checked_out_file(self._git.require_repository.top, path)
        if content is None:
            raise WorkspaceError(
                f"cannot read the script {path}: it is not in commit {commit[:12]}, and your checkout has no plain "
                "file of this name (steersman follows no links); correct `script` in steersman.toml"
            )
        return self._find_copy({path: (False, content)})

    def _read_contents(self, commit: str, path: str, *, alone: bool) -> dict[str, tuple[bool, bytes]]:
        directory = path.rpartition("/")[0]
        entries = self._list_files(
            commit, (path if alone or not directory else f"{directory}/",), recursive=True
        )
        entries = {name: e for name, e in entries.items() if e.mode.startswith(_PROGRAM_FILE_MODE)}
        if (
            len(entries) > MAX_PROGRAM_FILES
            or sum(entry.size for entry in entries.values()) > MAX_PROGRAM_BYTES
        ):
            raise WorkspaceError(
                f"{path} plays a role, and {directory or 'it'} is larger than {MAX_PROGRAM_BYTES >> 20} MB or "
                f"{MAX_PROGRAM_FILES} files in commit {commit[:12]}: move the program to a smaller folder"
            )
        blobs = self._git.read_blobs(entry.object_id for entry in entries.values())
        return {name: (e.mode == _PROGRAM_EXECUTABLE_MODE, blobs[e.object_id]) for name, e in entries.items()}

    def _list_files(self, commit: str, names: Sequence[str], *, recursive: bool) -> dict[str, TreeEntry]:
        entries = self._git.list_tree(commit, names, recursive=recursive, sizes=True)
        return {os.fsdecode(entry.path): entry for entry in entries}

    def _find_copy(self, files: Mapping[str, tuple[bool, bytes]]) -> str:
        digest = hashlib.sha256()
        for name, (executable, content) in sorted(files.items()):
            line = f"{name!r} {executable} {hashlib.sha256(content).hexdigest()}\n"
            digest.update(line.encode())
        target = self._folder / digest.hexdigest()
        if not target.is_dir():
            self._write_files(files, target)
        return target.name

    def _write_files(self, files: Mapping[str, tuple[bool, bytes]], target: Path) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = Path(tempfile.mkdtemp(prefix="new-", dir=self._folder))
        try:
            for name, (executable, content) in files.items():
                file = temporary / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                file.chmod(0o555 if executable else 0o444)
            temporary.rename(target)
        except OSError:
            delete_path(temporary)
            if not target.is_dir():  # another process has made the same copy
                raise


def substitute_program_copies(role: Role, programs: Mapping[str, ProjectFile], directory: Path) -> Role:
    """A role's table whose words name our copies instead of files of the project."""

    def to_copy_path(word: Any) -> Any:
        file = programs.get(word) if isinstance(word, str) else None
        return str(directory / file.kept / file.path) if file is not None and file.kept else word

    options = {name: to_copy_path(value) for name, value in role.options.items() if name == "program"}
    command = role.options.get("command")
    if isinstance(command, list | tuple):
        options["command"] = [to_copy_path(word) for word in command]
    script = to_copy_path(role.script) if role.script else None
    return replace(role, script=script, options={**role.options, **options})


def project_program_path(path: str) -> str:
    """How the project calls the file of which this is our copy; the path itself where it is none."""
    match = _PROGRAM_COPY_PATH.fullmatch(path)
    return match[2] if match else path


def find_program_copies(words: Iterable[str]) -> tuple[str, ...]:
    """The folders of the copies that these words name."""
    matches = (_PROGRAM_COPY_PATH.fullmatch(word) for word in words)
    return tuple(dict.fromkeys(match[1] for match in matches if match))
