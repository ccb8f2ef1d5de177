"""Calls git so that nothing runs but git.

Hooks, fsmonitor, external diff and textconv, filters, merge drivers, pagers, prompts, signing, automatic housekeeping,
replacement objects and the system's and user's configuration are switched off for every call.
**Invariant:** argv only; no call reads the caller's GIT_* variables, and none trusts a working tree's own `.git`.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from steersman.errors import WorkspaceError

NAME = "steersman"
EMAIL = "steersman@localhost"
_SECONDS = 600
Setting = tuple[str, str]

_SETTINGS: tuple[Setting, ...] = (
    *(
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("core.pager", "cat"),
        ("core.editor", "false"),
    ),
    *(("core.attributesFile", "/dev/null"), ("core.sparseCheckout", "false"), ("core.splitIndex", "false")),
    # An edit cannot hide behind a restored date.
    *(("core.trustctime", "true"), ("core.checkStat", "default"), ("core.ignoreStat", "false")),
    *(("core.safecrlf", "false"), ("core.quotePath", "false"), ("core.untrackedCache", "false")),
    *(("gc.auto", "0"), ("maintenance.auto", "false"), ("submodule.recurse", "false")),
    *(("commit.gpgSign", "false"), ("tag.gpgSign", "false"), ("log.showSignature", "false")),
    *(("i18n.commitEncoding", "utf-8"), ("credential.helper", ""), ("protocol.ext.allow", "never")),
)
_PASSED_ON = ("PATH", "HOME", "TMPDIR", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK")
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_OPTIONAL_LOCKS": "0",  # looking at the user's checkout writes nothing there
    "GIT_NO_REPLACE_OBJECTS": "1",  # a hash means its content
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_AUTHOR_NAME": NAME,
    "GIT_AUTHOR_EMAIL": EMAIL,
    "GIT_COMMITTER_NAME": NAME,
    "GIT_COMMITTER_EMAIL": EMAIL,
}
# All others may write an index, and git compares young files through their filters when it does.
_MEETS_NO_FILES = frozenset(
    {
        "cat-file",
        "check-ref-format",
        "commit-tree",
        "config",
        "merge-base",
        "rev-list",
        "rev-parse",
        "update-ref",
        "version",
    }
)
_DRIVER = re.compile(r"(?P<driver>(?P<kind>filter|merge)\..+)\.(?:clean|smudge|process|required|driver)")


class Answer(NamedTuple):
    """What git said."""

    code: int
    out: bytes
    err: str


class Git:
    """git at one place of one repository."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def call(
        self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, feed: bytes = b""
    ) -> Answer:
        """Runs one git command; a command that says no is an answer, a git that cannot run is an error."""
        silenced = () if args[0] in _MEETS_NO_FILES else self._silenced()
        settings = dict(_as_environment((*_SETTINGS, *self._trusted, *silenced)))
        full = {**_passed_on(), **_ENVIRONMENT, **settings, **(env or {})}
        return _run(args, cwd or self.place, full, feed)

    def read(
        self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, feed: bytes = b""
    ) -> bytes:
        """What git printed; a command that says no is an error."""
        answer = self.call(*args, cwd=cwd, env=env, feed=feed)
        if answer.code != 0:
            said = answer.err.strip() or f"exit code {answer.code}"
            raise WorkspaceError(f"git {args[0]} refused: {said[:500]}; put that right and try again")
        return answer.out

    def line(self, *args: str, env: Mapping[str, str] | None = None, feed: bytes = b"") -> str:
        """The one line git printed."""
        return os.fsdecode(self.read(*args, env=env, feed=feed)).removesuffix("\n")

    @cached_property
    def common(self) -> Path:
        """The directory that holds the repository's objects and branches, whichever working tree we stand in."""
        return Path(self.line("rev-parse", "--path-format=absolute", "--git-common-dir"))

    def resolve(self, name: str) -> str | None:
        """The object a name means, or None."""
        answer = self.call("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        return answer.out.decode().strip() if answer.code == 0 else None

    def tree_of(self, commit: str) -> str:
        """The tree of a commit that has to be there."""
        tree = self.resolve(f"{commit}^{{tree}}")
        if tree is None:
            raise WorkspaceError(
                f"the commit {commit} is not in {self.place}; fetch it or start from another one"
            )
        return tree

    def contains(self, tip: str, commit: str) -> bool:
        """Is `commit` in the history of `tip`?"""
        return self.call("merge-base", "--is-ancestor", commit, tip).code == 0

    def committer(self, commit: str) -> tuple[str, str]:
        """Who committed (name and address, as stored) and when (seconds)."""
        header = self.read("cat-file", "commit", commit).partition(b"\n\n")[0]
        line = next(line for line in header.split(b"\n") if line.startswith(b"committer "))
        who, seconds, _ = line.removeprefix(b"committer ").rsplit(b" ", 2)
        return who.decode("utf-8", "replace"), seconds.decode()

    def commit(self, tree: str, parents: tuple[str, ...], message: str) -> str:
        """Stores a commit whose hash depends on nothing but these: its date is the first parent's."""
        date = f"@{self.committer(parents[0])[1]} +0000"
        links = [word for parent in parents for word in ("-p", parent)]
        text = message.rstrip("\n").encode("utf-8", "replace") + b"\n"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        return self.line("commit-tree", tree, *links, "-F", "-", env=dates, feed=text)

    @cached_property
    def _trusted(self) -> tuple[Setting, ...]:
        """The directories of others that the user told git to trust: the one thing kept of their configuration."""
        answer = _run(("config", "-z", "--get-all", "safe.directory"), Path("/"), _passed_on(), b"")
        return tuple(("safe.directory", os.fsdecode(name)) for name in answer.out.split(b"\0")[:-1])

    def _silenced(self) -> Iterator[Setting]:
        """Makes each filter of the repository's configuration do nothing and each merge driver say conflict."""
        listed = self.call("config", "-z", "--name-only", "--list").out
        for match in filter(None, map(_DRIVER.fullmatch, os.fsdecode(listed).split("\0"))):
            if match["kind"] == "merge":
                yield f"{match['driver']}.driver", "false"
            else:  # a filter that has an empty process is no filter
                yield f"{match['driver']}.process", ""
                yield f"{match['driver']}.required", "false"


def _run(args: tuple[str, ...], cwd: Path, env: Mapping[str, str], feed: bytes) -> Answer:
    argv = ["git", "--no-pager", *args]
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=env,
            input=feed,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            process_group=0,  # a Ctrl-C at the terminal is ours to take: git ends what it has begun
        )
    except subprocess.TimeoutExpired:
        raise WorkspaceError(
            f"git {args[0]} did not end within {_SECONDS} s; try it by hand in {cwd}"
        ) from None
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise WorkspaceError(_cannot_run(cwd, error)) from error
    return Answer(done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace"))


def _passed_on() -> dict[str, str]:
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


def _as_environment(settings: tuple[Setting, ...]) -> Iterator[Setting]:
    """The same as `-c name=value` for each, but a name may hold any character."""
    yield "GIT_CONFIG_COUNT", str(len(settings))
    for number, (name, value) in enumerate(settings):
        yield f"GIT_CONFIG_KEY_{number}", name
        yield f"GIT_CONFIG_VALUE_{number}", value


def _cannot_run(cwd: Path, error: Exception) -> str:
    if shutil.which("git") is None:
        return "git was not found on PATH; install git 2.38 or newer and try again"
    if not cwd.is_dir():
        return f"{cwd} is not a directory; go to your repository and try again"
    return f"git could not be started in {cwd}: {error}; put that right and try again"


def checked_name(kind: str, name: str) -> str:
    """A run or label that is safe as a part of a path and of a reference."""
    fine = re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name) and ".." not in name
    if not fine or name.endswith((".", ".lock")):
        raise WorkspaceError(f"{name!r} cannot be a {kind}: use letters, digits, '_', '-' and single dots")
    return name
