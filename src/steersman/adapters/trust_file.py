"""Keeps which settings of a repository a person trusts, and loads the settings with the lines that need trust.

**Invariant:** no link is followed and nothing is executed; what cannot be read is not trusted.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.adapters.config import LoadedConfig, find_config, load_config
from steersman.adapters.include import LISTED, listed_patterns
from steersman.contracts.config import Config
from steersman.contracts.trust import Trusted
from steersman.errors import StoreFull, UserError, WorkspaceError
from steersman.judges.powerful_parts import DIGEST_LENGTH, list_powerful_lines
from steersman.judges.text import one_line
from steersman.ports.workspace import Workspace
from steersman.runtime.project_files import prompt_paths

FILE_NAME = "trust.json"
FOLDERS = ("machines", "registry")  # below .steersman/; each file in them is powerful
MAX_FILES = 1000


class TrustFile:
    """What is trusted in one project, by the path of each settings file in it."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE_NAME

    def read(self, name: str) -> Trusted | None:
        """What was trusted for a settings file; None where nothing was, or the record cannot be read."""
        return self._records().get(name)

    def record(self, name: str, trusted: Trusted) -> None:
        """Trusts these lines from now on, durable when this returns."""
        self._write({**self._records(), name: trusted})

    def revoke(self, name: str) -> bool:
        """Forgets what was trusted; whether anything was."""
        records = self._records()
        known = records.pop(name, None)
        if known is not None:
            self._write(records)
        return known is not None

    def _records(self) -> dict[str, Trusted]:
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Trusted])
        return {}

    def _write(self, records: dict[str, Trusted]) -> None:
        part = self._path.with_name(f".{FILE_NAME}.{os.getpid()}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(records))
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self._path)
        except OSError as error:
            raise StoreFull(f"cannot write {self._path}: {error.strerror}; make its disk writable") from None


def load_with_powerful_lines(
    start: Path, top: Path, roles: Collection[str], workspace: Callable[[Config], Workspace]
) -> LoadedConfig:
    """The settings for a directory as they are written, scripts from the top, and the lines that need trust.

    A prompt is the one of the base commit: a run uses that one, and not the checkout's.
    """
    loaded = load_config(start, roles if find_config(start) is not None else ())
    if loaded.path is not None and loaded.path.parent != top:
        loaded = loaded._replace(config=_move_scripts(loaded.config, loaded.path.parent.relative_to(top)))
    commit, prompts = _digest_prompts(workspace(loaded.config), loaded.config)
    lines = list_powerful_lines(loaded.config, digest_powerful_files(top) | prompts)
    return loaded._replace(powerful=lines, base_commit=commit)


def _digest_prompts(workspace: Workspace, config: Config) -> tuple[str, dict[str, str]]:
    """The commit that a run would begin on with its prompts; none where there is no such commit."""
    try:
        commit = workspace.base_commit(config.base or None)
        found = workspace.contents(commit, tuple(prompt_paths(config).values()))
    except WorkspaceError:
        return "", {}
    return commit, {path: _digest(data) for path, data in found.items()}


def _move_scripts(config: Config, inside: Path) -> Config:
    def moved(players: Any) -> Any:
        return {n: replace(r, script=str(inside / r.script)) if r.script else r for n, r in players.items()}

    talkers = replace(config.chat, agents=moved(config.chat.agents))
    return replace(config, roles=moved(config.roles), chat=talkers)


def digest_powerful_files(project: Path) -> dict[str, str]:
    """Each file below the powerful folders of `.steersman/` with the digest of its bytes, and what `.worktreeinclude` lists."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for path in _walk(project / ".steersman", folder):
            if len(found) == MAX_FILES:
                raise UserError(f"{project / '.steersman'} has more than {MAX_FILES} files: take some out")
            found[_name_file(path.relative_to(project))] = _describe(path)
    if patterns := listed_patterns(project):
        found[LISTED] = msgspec.json.encode(patterns).decode()
    return found


def _name_file(path: Path) -> str:
    """The name that stands for a file in its line; a UserError where it could pose as another name or line."""
    name = str(path)
    if one_line(name) != name:  # also what is not UTF-8: the name holds it as lone surrogates
        raise UserError(
            f"{one_line(name)}: a file name here has no control characters and is UTF-8: rename it"
        )
    return name


def _walk(ours: Path, folder: str) -> Iterator[Path]:
    if ours.is_symlink():  # nothing of ours lies behind a link
        return
    top = ours / folder
    if top.is_symlink():
        yield top
        return
    for place, folders, names in os.walk(top, followlinks=False):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        yield from (Path(place, name) for name in (*names, *links))


def _digest(data: bytes) -> str:
    return f"sha256 {hashlib.sha256(data).hexdigest()[:DIGEST_LENGTH]}"


def _describe(path: Path) -> str:
    try:
        if path.is_symlink():
            return f"a link to {repr(os.readlink(os.fsencode(path)))[1:]}"
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "no plain file"
            return _digest(file.read())
    except OSError as error:
        return f"cannot be read: {error.strerror}"
