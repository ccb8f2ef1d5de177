"""An isolated git directory over a repository: its objects and references, and none of its settings.

git cannot ignore a repository's own configuration, and any list of the settings that run a program has
a gap. So git gets another directory: with a configuration that we wrote, no hooks, and links to the
objects, references and logs of the real one. A setting that a later git may run is not there either.
**Invariant:** only `look` opens the real one, with commands that read where things are, and never an object.
"""

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from steersman.adapters.config import state_paths
from steersman.adapters.git.git_command import (
    ISOLATED_GIT_SETTINGS,
    GitResult,
    GitSetting,
    encode_git_settings,
    run_git,
    start_git,
)
from steersman.adapters.storage.durable_files import read_plain_file
from steersman.errors import WorkspaceError

_MAX_SMALL_FILE_BYTES = 1 << 20  # bytes of HEAD, of the excluded names
_BOOLEAN_PATTERN = r"(?i:true|yes|on|1|false|no|off|0|)"
# What is taken over of a repository's configuration: how it is stored, and how its checkout is to be read. Values that
# do not fit are passed over, and so is every other name.
_STORAGE_SETTING_PATTERNS = {"core.repositoryformatversion": "[01]", "extensions.objectformat": "sha1|sha256",
         "extensions.refstorage": "files|reftable", "core.sharedrepository": f"{_BOOLEAN_PATTERN}|umask|group|all|world|everybody|0?[0-7]{{3}}"}  # fmt: skip
_CHECKOUT_SETTING_PATTERNS = {"core.filemode": _BOOLEAN_PATTERN, "core.symlinks": _BOOLEAN_PATTERN, "core.ignorecase": _BOOLEAN_PATTERN,
             "core.precomposeunicode": _BOOLEAN_PATTERN, "core.autocrlf": f"{_BOOLEAN_PATTERN}|input", "core.eol": "lf|crlf|native"}  # fmt: skip


class RepositoryLocation(NamedTuple):
    """Where a repository is, and what is taken over of its settings."""

    top: Path  # its files
    gitdir: Path  # git's own directory for them
    common: Path  # objects and branches, shared by all its checkouts
    form: dict[str, str]
    checkout: tuple[GitSetting, ...]  # how the person's own checkout is to be read
    drivers: tuple[str, ...]  # names of merge drivers: what only a program can merge is left to a person
    remotes: dict[str, str]  # name -> where it is pushed to; outside text
    partial: bool  # objects may be missing that a remote has


class IsolatedGitDir(NamedTuple):
    """An isolated git directory, and what it stands for."""

    path: Path
    found: RepositoryLocation


_LocationFingerprint = tuple[tuple[int, int, int, int], ...]
_SETTLED_SECONDS = 1.0  # seconds; a younger file may change again without showing it
# By place: looked up again when one of these files has changed.
_location_cache: dict[Path, tuple[_LocationFingerprint, RepositoryLocation]] = {}


def locate_repository(start: Path) -> RepositoryLocation:
    """The repository around `place`; WorkspaceError says what is missing and what to do."""
    fingerprint, location = _location_cache.get(start, (None, None))
    if location is not None and fingerprint == _fingerprint_location(start, location):
        return location
    now = time.time_ns()
    location = _locate_repository_uncached(start)
    fingerprint = _fingerprint_location(start, location)
    if fingerprint and all(changed < now - _SETTLED_SECONDS * 1e9 for *_, changed in fingerprint):
        _location_cache[start] = fingerprint, location
    return location


def _fingerprint_location(start: Path, location: RepositoryLocation) -> _LocationFingerprint | None:
    """What the files look like that say where a repository is and how it is stored; None if it is another one now."""
    if Path(state_paths.find_repository_top(start)) != location.top:
        return None
    files = (
        location.top,
        location.top / ".git",
        location.gitdir,
        location.gitdir / "commondir",
        location.common / "config",
    )
    file_states = []
    for path in files:
        try:
            file_stat = os.lstat(path)
        except OSError:
            continue
        # What a directory holds changes with the work; which one it is and whose does not.
        content_state = (0, 0) if path.is_dir() else (file_stat.st_size, file_stat.st_ctime_ns)
        file_states.append((file_stat.st_ino, file_stat.st_uid, *content_state))
    return tuple(file_states)


def _locate_repository_uncached(start: Path) -> RepositoryLocation:
    flags = ("--is-bare-repository", "--is-inside-work-tree", "--path-format=absolute", "--git-dir")
    answer = query_real_repository(start, "rev-parse", *flags, "--git-common-dir", "--show-toplevel")
    lines = os.fsdecode(answer.out).split("\n")[:-1]
    if len(lines) < 2:
        raise WorkspaceError(_no_repository_message(start, answer.err))
    if lines[1] != "true" and not _is_work_tree_elsewhere(start, lines):
        kind = "a bare repository" if lines[0] == "true" else "inside a .git directory"
        raise WorkspaceError(
            f"{start} is {kind}, without files to work on; clone it and run steersman in the clone"
        )
    expected_top = Path(state_paths.find_repository_top(start))
    if lines[1] != "true" or (len(lines) == 5 and Path(lines[4]).resolve() != expected_top):
        raise WorkspaceError(
            f"core.worktree in {lines[3]}/config says that the files of {expected_top} are elsewhere; "
            "steersman works on files beside their .git only: run it in a plain clone"
        )
    if answer.code != 0 or len(lines) != 5:  # a path may hold a line break
        raise WorkspaceError(
            f"git cannot say in five lines where {start} is kept: {answer.err.strip()[:500]}; "
            "move the repository to a path without line breaks"
        )
    gitdir, common, top = map(Path, lines[2:])
    return _read_repository_location(top, gitdir, common)


def _is_work_tree_elsewhere(start: Path, lines: list[str]) -> bool:
    """Neither bare nor within git's own directory, and yet not where its files should be."""
    return (
        lines[0] != "true"
        and len(lines) >= 4
        and not start.resolve().is_relative_to(Path(lines[2]).resolve())
    )


def locate_bare_repository(common: Path) -> RepositoryLocation:
    """A repository that is given by its git directory, such as a remote on this machine."""
    return _read_repository_location(common, common, common)


def query_real_repository(start: Path, *args: str) -> GitResult:
    """Asks the real repository where something is; everything that could run is switched off all the same."""
    answer = run_git(args, start, dict(encode_git_settings(ISOLATED_GIT_SETTINGS)), seconds=60)
    if answer.code == 0 or "dubious ownership" not in answer.err:
        return answer
    return run_git(
        args,
        start,
        dict(encode_git_settings((*ISOLATED_GIT_SETTINGS, *_read_trusted_directories()))),
        seconds=60,
    )


def make_isolated_dir(location: RepositoryLocation, root: Path) -> IsolatedGitDir:
    """The directory for what was found, made or made current; any number of processes may do so at once.

    As with git's own, the directory of a linked checkout has its HEAD, and names a shared one that has the rest.
    """
    path, common, gitdir = _isolated_dir_path(root, location.gitdir), location.common, location.gitdir
    (path / "logs").mkdir(parents=True, exist_ok=True)
    links = {"logs/HEAD": gitdir / "logs" / "HEAD", "reftable": gitdir / "reftable"}
    links |= {shared.name: shared for shared in gitdir.glob("sharedindex.*")}
    if gitdir == common:
        links |= {name: common / name for name in ("objects", "refs", "packed-refs", "shallow", "logs/refs")}
        (path / "info").mkdir(exist_ok=True)
        for name in ("exclude", "attributes"):  # patterns and words: what they may name is not defined here
            _write_if_changed(path / "info" / name, read_small_file(common / "info" / name))
        _write_if_changed(
            path / "config", render_isolated_config(location, logs=(common / "logs" / "refs").is_dir())
        )
    else:
        shared_dir = make_isolated_dir(location._replace(gitdir=common), root)
        _write_if_changed(path / "commondir", bytes(shared_dir.path) + b"\n")
    for name, target in links.items():
        # A file that is not there yet may come; a directory that is not there would be made here.
        _update_symlink(
            path / name, target if target.exists() or name in {"packed-refs", "shallow"} else None
        )
    _write_if_changed(path / "HEAD", _read_real_head(gitdir))
    return IsolatedGitDir(path, location)


def _isolated_dir_path(root: Path, gitdir: Path) -> Path:
    return root / sha256(os.fsencode(gitdir)).hexdigest()[:16]


def render_isolated_config(
    location: RepositoryLocation, *, logs: bool = True, more: Iterable[GitSetting] = ()
) -> bytes:
    """The whole configuration of an isolated git directory."""
    settings = [*ISOLATED_GIT_SETTINGS, ("core.bare", "false"), *location.form.items(), *more]
    if os.uname().sysname == "Darwin":
        settings += [("core.ignorecase", "true"), ("core.precomposeunicode", "true")]
    if not logs:
        settings.append(("core.logAllRefUpdates", "false"))
    settings += [(f'merge "{name}".driver', "false") for name in location.drivers]
    lines = [f"[{name.rpartition('.')[0]}]\n\t{name.rpartition('.')[2]} = {v}\n" for name, v in settings]
    return "".join(lines).encode()


def read_small_file(path: Path) -> bytes:
    """What a small, ordinary file holds; nothing for anything else."""
    return read_plain_file(path, _MAX_SMALL_FILE_BYTES, follow=True) or b""


def _read_repository_location(top: Path, gitdir: Path, common: Path) -> RepositoryLocation:
    # With --file nothing is included from elsewhere; from / no repository is found.
    answer = run_git(("config", "--file", str(common / "config"), "-z", "--list"), Path("/"), {}, seconds=60)
    if answer.code != 0:
        raise WorkspaceError(
            f"{common / 'config'} cannot be read: {answer.err.strip()[:500]}; correct it first"
        )
    entries = [os.fsdecode(entry).partition("\n") for entry in answer.out.split(b"\0")[:-1]]
    pairs = [(name, value) for name, _, value in entries]
    checkout_settings = tuple(_filter_allowed_settings(pairs, _CHECKOUT_SETTING_PATTERNS).items())
    drivers = [match[1] for name, _ in pairs if (match := re.fullmatch(r"merge\.([\w.-]+)\.driver", name))]
    is_partial_clone = any(
        re.fullmatch(r"extensions\.partialclone|remote\..+\.promisor", name, re.DOTALL) for name, _ in pairs
    )
    return RepositoryLocation(
        top,
        gitdir,
        common,
        _filter_allowed_settings(pairs, _STORAGE_SETTING_PATTERNS),
        checkout_settings,
        tuple(drivers),
        _parse_remote_urls(pairs),
        is_partial_clone,
    )


def _filter_allowed_settings(pairs: Iterable[GitSetting], patterns: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in pairs if name in patterns and re.fullmatch(patterns[name], value)}


def _parse_remote_urls(pairs: Iterable[GitSetting]) -> dict[str, str]:
    urls: dict[str, str] = {}
    for name, value in pairs:
        match = re.fullmatch(r"remote\.(.+)\.(url|pushurl)", name, re.DOTALL)
        if match and (match[2] == "pushurl" or match[1] not in urls):
            urls[match[1]] = value
    return urls


def _read_real_head(gitdir: Path) -> bytes:
    """HEAD as it is, if it is one."""
    head = gitdir / "HEAD"
    content = (
        b"ref: " + os.fsencode(os.readlink(head))
        if head.is_symlink()
        else read_small_file(head).rstrip(b"\n")
    )
    if not re.fullmatch(rb"ref: refs/[^\0\n]+|[0-9a-f]{40}|[0-9a-f]{64}", content):
        raise WorkspaceError(f"{head} names neither a branch nor a commit; switch to a branch and try again")
    return content + b"\n"


def _read_trusted_directories() -> tuple[GitSetting, ...]:
    """The directories that the person's own git settings trust: nothing else is read of these settings."""
    home = {n: os.environ[n] for n in ("HOME", "XDG_CONFIG_HOME") if n in os.environ}
    args = ("config", "-z", "--get-all", "safe.directory")
    with start_git(
        args, Path("/"), {"LC_ALL": "C", **home}, subprocess.DEVNULL, subprocess.DEVNULL
    ) as process:
        out, _ = process.communicate(timeout=60)
    return tuple(("safe.directory", os.fsdecode(name)) for name in out.split(b"\0")[:-1])


def _update_symlink(path: Path, target: Path | None) -> None:
    if target is None:
        if path.is_symlink():  # asked first: on a read-only disk even a missing one cannot be removed
            path.unlink(missing_ok=True)
    elif not path.is_symlink() or os.readlink(path) != str(target):
        temporary = _temporary_sibling(path)
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        temporary.replace(path)


def _write_if_changed(path: Path, content: bytes) -> None:
    if path.is_file() and path.read_bytes() == content:
        return
    temporary = _temporary_sibling(path)
    temporary.write_bytes(content)
    temporary.replace(path)


def _temporary_sibling(path: Path) -> Path:
    """A name beside it that no other process or thread uses now."""
    return path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")


def _no_repository_message(start: Path, git_error: str) -> str:
    if "dubious ownership" in git_error:
        return f"{start} belongs to another user; run `git config --global --add safe.directory {start}` if you trust it"
    if (start / ".git").exists() and "not a git repository" in git_error:
        return f"{start / '.git'} is there, but it is no whole repository: look at its HEAD, refs and objects, restore it from a backup or clone it again"
    if "not a git repository" not in git_error:
        return f"git cannot use the repository in {start}: {git_error.strip()[:500]}; correct that first"
    return (
        f"{start} is not inside a git repository; run `git init` there and commit, or go to your repository"
    )
