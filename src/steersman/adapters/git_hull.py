"""A git directory of ours over somebody's repository: its objects and references, and none of its settings.

git cannot be told to ignore a repository's own configuration, and whoever lists the settings that run a program has
forgotten one. So git is given another directory: with a configuration that we wrote, no hooks, and links to the
objects, references and logs of the real one. What a later git may run from a setting, it does not find.
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

from steersman.adapters import places
from steersman.adapters.git_cli import SETTINGS, Answer, Setting, as_environment, run, started
from steersman.errors import WorkspaceError

_LONGEST = 1 << 20  # bytes of HEAD, of the excluded names
_FLAG = r"(?i:true|yes|on|1|false|no|off|0|)"
# What is taken over of a repository's configuration: how it is stored, and how its checkout is to be read. Values that
# do not fit are passed over, and so is every other name.
_FORM = {"core.repositoryformatversion": "[01]", "extensions.objectformat": "sha1|sha256",
         "extensions.refstorage": "files|reftable", "core.sharedrepository": f"{_FLAG}|umask|group|all|world|everybody|0?[0-7]{{3}}"}  # fmt: skip
_CHECKOUT = {"core.filemode": _FLAG, "core.symlinks": _FLAG, "core.ignorecase": _FLAG,
             "core.precomposeunicode": _FLAG, "core.autocrlf": f"{_FLAG}|input", "core.eol": "lf|crlf|native"}  # fmt: skip


class Found(NamedTuple):
    """Where a repository is, and what is taken over of its settings."""

    top: Path  # its files
    gitdir: Path  # git's own directory for them
    common: Path  # objects and branches, shared by all its checkouts
    form: dict[str, str]
    checkout: tuple[Setting, ...]  # how the person's own checkout is to be read
    drivers: tuple[str, ...]  # names of merge drivers: what only a program can merge is left to a person
    remotes: dict[str, str]  # name -> where it is pushed to; outside text
    partial: bool  # objects may be missing that a remote has


class Hull(NamedTuple):
    """A git directory of ours, and what it stands for."""

    path: Path
    found: Found


_State = tuple[tuple[int, int, int, int], ...]
_SETTLED = 1.0  # seconds; a younger file may change again without showing it
_seen: dict[
    Path, tuple[_State, Found]
] = {}  # by place: asked anew when one of the files that said so has changed


def located(place: Path) -> Found:
    """The repository around `place`; WorkspaceError says what is missing and what to do."""
    state, found = _seen.get(place, (None, None))
    if found is not None and state == _state(place, found):
        return found
    now = time.time_ns()
    found = _located(place)
    state = _state(place, found)
    if state and all(changed < now - _SETTLED * 1e9 for *_, changed in state):
        _seen[place] = state, found
    return found


def _state(place: Path, found: Found) -> _State | None:
    """What the files look like that say where a repository is and how it is stored; None if it is another one now."""
    if Path(places.top_of(place)) != found.top:
        return None
    files = (found.top, found.top / ".git", found.gitdir, found.gitdir / "commondir", found.common / "config")
    told = []
    for path in files:
        try:
            at = os.lstat(path)
        except OSError:
            continue
        # What a directory holds changes with the work; which one it is and whose does not.
        inside = (0, 0) if path.is_dir() else (at.st_size, at.st_ctime_ns)
        told.append((at.st_ino, at.st_uid, *inside))
    return tuple(told)


def _located(place: Path) -> Found:
    asked = ("--is-bare-repository", "--is-inside-work-tree", "--path-format=absolute", "--git-dir")
    answer = look(place, "rev-parse", *asked, "--git-common-dir", "--show-toplevel")
    told = os.fsdecode(answer.out).split("\n")[:-1]
    if len(told) < 2:
        raise WorkspaceError(_no_repository(place, answer.err))
    if told[1] != "true" and not _led_elsewhere(place, told):
        what = "a bare repository" if told[0] == "true" else "inside a .git directory"
        raise WorkspaceError(
            f"{place} is {what}, without files to work on; clone it and run steersman in the clone"
        )
    beside = Path(places.top_of(place))
    if told[1] != "true" or (len(told) == 5 and Path(told[4]).resolve() != beside):
        raise WorkspaceError(
            f"core.worktree in {told[3]}/config says that the files of {beside} are elsewhere; "
            "steersman works on files beside their .git only: run it in a plain clone"
        )
    if answer.code != 0 or len(told) != 5:  # a path may hold a line break
        raise WorkspaceError(
            f"git cannot say in five lines where {place} is kept: {answer.err.strip()[:500]}; "
            "move the repository to a path without line breaks"
        )
    gitdir, common, top = map(Path, told[2:])
    return _read(top, gitdir, common)


def _led_elsewhere(place: Path, told: list[str]) -> bool:
    """Neither bare nor within git's own directory, and yet not where its files are said to be."""
    return (
        told[0] != "true" and len(told) >= 4 and not place.resolve().is_relative_to(Path(told[2]).resolve())
    )


def bare(common: Path) -> Found:
    """A repository that is given by its git directory, such as a remote on this machine."""
    return _read(common, common, common)


def look(place: Path, *args: str) -> Answer:
    """Asks the real repository where something is; everything that could run is switched off all the same."""
    answer = run(args, place, dict(as_environment(SETTINGS)), seconds=60)
    if answer.code == 0 or "dubious ownership" not in answer.err:
        return answer
    return run(args, place, dict(as_environment((*SETTINGS, *_trusted()))), seconds=60)


def hull(found: Found, folder: Path) -> Hull:
    """The directory for what was found, made or made current; any number of processes may do so at once.

    As with git's own, the directory of a linked checkout has its HEAD, and names a shared one that has the rest.
    """
    path, common, gitdir = _place(folder, found.gitdir), found.common, found.gitdir
    (path / "logs").mkdir(parents=True, exist_ok=True)
    links = {"logs/HEAD": gitdir / "logs" / "HEAD", "reftable": gitdir / "reftable"}
    links |= {shared.name: shared for shared in gitdir.glob("sharedindex.*")}
    if gitdir == common:
        links |= {name: common / name for name in ("objects", "refs", "packed-refs", "shallow", "logs/refs")}
        (path / "info").mkdir(exist_ok=True)
        for name in ("exclude", "attributes"):  # patterns and words: what they may name is not defined here
            _write(path / "info" / name, plain(common / "info" / name))
        _write(path / "config", config(found, logs=(common / "logs" / "refs").is_dir()))
    else:
        shared_one = hull(found._replace(gitdir=common), folder)
        _write(path / "commondir", bytes(shared_one.path) + b"\n")
    for name, goal in links.items():
        # A file that is not there yet may come; a directory that is not there would be made here.
        _link(path / name, goal if goal.exists() or name in {"packed-refs", "shallow"} else None)
    _write(path / "HEAD", _head(gitdir))
    return Hull(path, found)


def _place(folder: Path, gitdir: Path) -> Path:
    return folder / sha256(os.fsencode(gitdir)).hexdigest()[:16]


def config(found: Found, *, logs: bool = True, more: Iterable[Setting] = ()) -> bytes:
    """The whole configuration of a git directory of ours."""
    own = [*SETTINGS, ("core.bare", "false"), *found.form.items(), *more]
    if os.uname().sysname == "Darwin":
        own += [("core.ignorecase", "true"), ("core.precomposeunicode", "true")]
    if not logs:
        own.append(("core.logAllRefUpdates", "false"))
    own += [(f'merge "{name}".driver', "false") for name in found.drivers]
    lines = [f"[{name.rpartition('.')[0]}]\n\t{name.rpartition('.')[2]} = {value}\n" for name, value in own]
    return "".join(lines).encode()


def plain(path: Path) -> bytes:
    """What a small, ordinary file holds; nothing for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    with open(fd, "rb") as file:
        small = os.path.isfile(fd) and os.fstat(fd).st_size <= _LONGEST
        return file.read() if small else b""


def _read(top: Path, gitdir: Path, common: Path) -> Found:
    # With --file nothing is included from elsewhere; from / no repository is found.
    answer = run(("config", "--file", str(common / "config"), "-z", "--list"), Path("/"), {}, seconds=60)
    if answer.code != 0:
        raise WorkspaceError(f"{common / 'config'} cannot be read: {answer.err.strip()[:500]}; mend it first")
    entries = [os.fsdecode(entry).partition("\n") for entry in answer.out.split(b"\0")[:-1]]
    pairs = [(name, value) for name, _, value in entries]
    own = tuple(_allowed(pairs, _CHECKOUT).items())
    drivers = [match[1] for name, _ in pairs if (match := re.fullmatch(r"merge\.([\w.-]+)\.driver", name))]
    partial = any(
        re.fullmatch(r"extensions\.partialclone|remote\..+\.promisor", name, re.DOTALL) for name, _ in pairs
    )
    return Found(top, gitdir, common, _allowed(pairs, _FORM), own, tuple(drivers), _remotes(pairs), partial)


def _allowed(pairs: Iterable[Setting], known: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in pairs if name in known and re.fullmatch(known[name], value)}


def _remotes(pairs: Iterable[Setting]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        match = re.fullmatch(r"remote\.(.+)\.(url|pushurl)", name, re.DOTALL)
        if match and (match[2] == "pushurl" or match[1] not in found):
            found[match[1]] = value
    return found


def _head(gitdir: Path) -> bytes:
    """HEAD as it is, if it is one."""
    head = gitdir / "HEAD"
    said = b"ref: " + os.fsencode(os.readlink(head)) if head.is_symlink() else plain(head).rstrip(b"\n")
    if not re.fullmatch(rb"ref: refs/[^\0\n]+|[0-9a-f]{40}|[0-9a-f]{64}", said):
        raise WorkspaceError(f"{head} names neither a branch nor a commit; switch to a branch and try again")
    return said + b"\n"


def _trusted() -> tuple[Setting, ...]:
    """The directories of others that the person told git to trust: the one thing that is asked of their own files."""
    home = {n: os.environ[n] for n in ("HOME", "XDG_CONFIG_HOME") if n in os.environ}
    args = ("config", "-z", "--get-all", "safe.directory")
    with started(args, Path("/"), {"LC_ALL": "C", **home}, subprocess.DEVNULL, subprocess.DEVNULL) as process:
        out, _ = process.communicate(timeout=60)
    return tuple(("safe.directory", os.fsdecode(name)) for name in out.split(b"\0")[:-1])


def _link(path: Path, goal: Path | None) -> None:
    if goal is None:
        if path.is_symlink():  # asked first: on a read-only disk even a missing one cannot be removed
            path.unlink(missing_ok=True)
    elif not path.is_symlink() or os.readlink(path) != str(goal):
        young = _young(path)
        young.unlink(missing_ok=True)
        young.symlink_to(goal)
        young.replace(path)


def _write(path: Path, content: bytes) -> None:
    if path.is_file() and path.read_bytes() == content:
        return
    young = _young(path)
    young.write_bytes(content)
    young.replace(path)


def _young(path: Path) -> Path:
    """Beside it, and nobody else's at this moment."""
    return path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")


def _no_repository(place: Path, said: str) -> str:
    if "dubious ownership" in said:
        return f"{place} belongs to somebody else; run `git config --global --add safe.directory {place}` if you trust it"
    if (place / ".git").exists() and "not a git repository" in said:
        return f"{place / '.git'} is there, but it is no whole repository: look at its HEAD, refs and objects, restore it from a backup or clone it again"
    if "not a git repository" not in said:
        return f"git cannot use the repository in {place}: {said.strip()[:500]}; mend that first"
    return (
        f"{place} is not inside a git repository; run `git init` there and commit, or go to your repository"
    )
