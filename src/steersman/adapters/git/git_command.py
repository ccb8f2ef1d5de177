"""Starts git so that nothing runs but git.

Every call gets an environment that steersman makes and an isolated git directory (`isolated_dir`). What a repository, the
person's home or the system say about hooks, filters, drivers, monitors, helpers, pagers and programs is not read at all.
**Invariant:** argv only; git is found at absolute places of PATH; none of the caller's GIT_* variables is passed on.
"""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from steersman.errors import WorkspaceError

COMMITTER_NAME = "steersman"
COMMITTER_EMAIL = "steersman@localhost"
GIT_TIMEOUT_SECONDS = 600
GitSetting = tuple[str, str]
# Files that every git we start keeps open. A lock on one of them lasts until the last git that was started under it ends,
# even when we are killed.
inherited_git_fds: ContextVar[tuple[int, ...]] = ContextVar("kept_open", default=())

# git reads only the isolated directory's configuration; these are in each, beside the form of the repository.
ISOLATED_GIT_SETTINGS: tuple[GitSetting, ...] = (
    *(("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false"), ("core.pager", "cat")),
    *(("core.editor", "false"), ("core.attributesFile", "/dev/null"), ("core.excludesFile", "/dev/null")),
    *(("core.sparseCheckout", "false"), ("core.splitIndex", "false"), ("core.untrackedCache", "false")),
    # An edit cannot hide behind a restored date.
    *(("core.trustctime", "true"), ("core.checkStat", "default"), ("core.ignoreStat", "false")),
    *(("core.safecrlf", "false"), ("core.quotePath", "false"), ("core.logAllRefUpdates", "true")),
    *(("core.commitGraph", "false"), ("core.protectNTFS", "true"), ("core.protectHFS", "true")),
    ("core.bigFileThreshold", "4m"),  # larger ones are streamed, and shown in no patch
    *(("core.filesRefLockTimeout", "5000"), ("core.packedRefsTimeout", "5000")),
    *(("gc.auto", "0"), ("maintenance.auto", "false"), ("receive.autogc", "false")),
    *(("submodule.recurse", "false"), ("diff.ignoreSubmodules", "all")),
    *(("commit.gpgSign", "false"), ("tag.gpgSign", "false"), ("push.gpgSign", "false")),
    *(("log.showSignature", "false"), ("i18n.commitEncoding", "utf-8"), ("credential.helper", "")),
)
GIT_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_ALLOW_PROTOCOL": "none",  # nothing is fetched behind our back, not even what a partial clone lacks
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",  # looking at the person's checkout writes nothing there
    "GIT_NO_REPLACE_OBJECTS": "1",  # a hash means its content
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_AUTHOR_NAME": COMMITTER_NAME,
    "GIT_AUTHOR_EMAIL": COMMITTER_EMAIL,
    "GIT_COMMITTER_NAME": COMMITTER_NAME,
    "GIT_COMMITTER_EMAIL": COMMITTER_EMAIL,
}


class GitResult(NamedTuple):
    """What git said."""

    code: int
    out: bytes
    err: str


def run_git(
    args: tuple[str, ...],
    cwd: Path,
    env: Mapping[str, str],
    feed: bytes = b"",
    seconds: float = GIT_TIMEOUT_SECONDS,
) -> GitResult:
    """Runs one git command to its end; one that says no is an answer, a git that cannot run is an error."""
    with start_git(args, cwd, {**GIT_ENVIRONMENT, **env}, subprocess.PIPE, subprocess.PIPE) as process:
        try:
            out, err = process.communicate(feed, timeout=seconds)
        except subprocess.TimeoutExpired:
            kill_git_process(process)
            raise WorkspaceError(
                f"git {args[0]} did not end within {seconds} s; try it by hand in {cwd}"
            ) from None
        except BaseException:
            kill_git_process(process)
            raise
    return GitResult(process.returncode, out, err.decode("utf-8", "backslashreplace"))


def start_git(
    args: tuple[str, ...], cwd: Path, env: Mapping[str, str], stdin: int, stderr: int
) -> "subprocess.Popen[bytes]":
    """A git command under way, in a process group of its own, with its output in a pipe."""
    try:
        return subprocess.Popen(
            [require_program_on_path("git"), "--no-pager", *args],
            cwd=cwd,
            env={"PATH": safe_search_path(), **env},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            pass_fds=inherited_git_fds.get(),
            process_group=0,  # a Ctrl-C at the terminal is ours to take: git ends what it has begun
        )
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise WorkspaceError(_git_start_failure_message(cwd, error)) from error


def kill_git_process(process: "subprocess.Popen[bytes]") -> int:
    """Ends a git command with everything it has started; what it was killed with is no failure of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return 0


def safe_search_path() -> str:
    """PATH without its relative places: a repository must not be able to stand in for a program."""
    return os.pathsep.join(
        d for d in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(d)
    )


def find_program_on_path(name: str) -> str | None:
    """Where a program is on that PATH, or None."""
    for directory in safe_search_path().split(os.pathsep):
        path = os.path.join(directory, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def require_program_on_path(name: str) -> str:
    """The same for a program that has to be there."""
    path = find_program_on_path(name)
    if path is None:
        missing_item = "git 2.38 or newer" if name == "git" else "it"
        raise WorkspaceError(f"{name} was not found on PATH; install {missing_item} and try again")
    return path


def quiet_git_environment() -> dict[str, str]:
    """The variables that keep a git started by another program from running anything that variables can switch off."""
    return {**GIT_ENVIRONMENT, **dict(encode_git_settings(ISOLATED_GIT_SETTINGS))}


def encode_git_settings(settings: tuple[GitSetting, ...]) -> Iterator[GitSetting]:
    """The same as `-c name=value` for each, but a name may hold any character."""
    yield "GIT_CONFIG_COUNT", str(len(settings))
    for number, (name, value) in enumerate(settings):
        yield f"GIT_CONFIG_KEY_{number}", name
        yield f"GIT_CONFIG_VALUE_{number}", value


def _git_start_failure_message(cwd: Path, error: Exception) -> str:
    if not cwd.is_dir():
        return f"{cwd} is not a directory; go to your repository and try again"
    return f"git could not be started in {cwd}: {error}; put that right and try again"


def require_ref_part(kind: str, name: str) -> str:
    """A run or label that is safe as a part of a path and of a reference."""
    is_wellformed = re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name) and ".." not in name
    if not is_wellformed or name.endswith((".", ".lock")):
        raise WorkspaceError(f"{name!r} cannot be a {kind}: use letters, digits, '_', '-' and single dots")
    return name


def decode_git_path(name: bytes) -> str:
    """A path as text: bytes that are no text stay readable and distinct."""
    return name.decode("utf-8", "backslashreplace")
