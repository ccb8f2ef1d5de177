"""Sends one branch to a remote of the repository.

Of the repository's settings only the address is used, and only one that names a place: no helper, no program, no
rewriting. Who sends is asked of ssh, or of the forge's own program.
**Invariant:** nothing but the run's own branch is sent, and over a branch of others never.
"""

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from steersman.adapters.git_cli import Answer, as_environment, program
from steersman.adapters.git_hull import bare, hull
from steersman.adapters.git_repository import Git
from steersman.errors import WorkspaceError

# What ssh, a proxy and the forges' programs need to know the person by.
PERSONAL = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "SSH_AUTH_SOCK", "LANG", "TMPDIR", "http_proxy", "https_proxy",
            "HTTPS_PROXY", "NO_PROXY", "no_proxy", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "GH_TOKEN", "GITHUB_TOKEN",
            "GH_HOST", "GH_CONFIG_DIR", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITLAB_TOKEN", "GITLAB_HOST",
            "GLAB_CONFIG_DIR")  # fmt: skip
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_PATH = r"(?:[\w.~+-]+/)+[\w.~+-]+?"
_HTTPS = re.compile(rf"https://(?:[^/@\s]+@)?(?P<host>{_HOST}(?::\d+)?)/(?P<path>{_PATH})(?:\.git)?/?")
_SSH = re.compile(
    rf"ssh://(?:[\w.-]+@)?(?P<host>{_HOST})(?::\d+)?/(?P<path>{_PATH})(?:\.git)?/?|"
    rf"(?:[\w.-]+@)?(?P<host2>{_HOST}):(?P<path2>{_PATH})(?:\.git)?/?"
)


class Remote(NamedTuple):
    """A place that branches are sent to."""

    name: str
    address: str  # outside text; may hold a password
    scheme: str  # https | ssh | file
    host: str
    path: str  # owner/name, as the forge knows it


def remote_of(git: Git) -> Remote:
    """The remote of the repository: `origin`, or the only one there is."""
    known = git.found.remotes
    name = "origin" if "origin" in known or len(known) != 1 else next(iter(known))
    if name not in known:
        several = (
            f"none of {', '.join(sorted(known))} is called origin" if known else "the repository has none"
        )
        raise WorkspaceError(
            f"a pull request needs a remote, and {several}; add it with `git remote add origin <address>`"
        )
    return _read(git, name, known[name])


def _read(git: Git, name: str, address: str) -> Remote:
    if match := _HTTPS.fullmatch(address):
        return Remote(name, address, "https", match["host"], match["path"])
    folder = Path(address.removeprefix("file://"))
    place = folder if folder.is_absolute() else git.found.top / folder
    if place.is_dir() and "::" not in address:
        inner = place / ".git" if (place / ".git").is_dir() else place
        return Remote(
            name, str(inner.resolve()), "file", "", "/".join(place.resolve().parts[-2:]).removesuffix(".git")
        )
    if match := _SSH.fullmatch(address):
        return Remote(name, address, "ssh", match["host"] or match["host2"], match["path"] or match["path2"])
    raise WorkspaceError(
        f"the remote {name} ({shown(address)}) is neither an https nor an ssh address, nor a directory: steersman sends "
        "nothing there; give it one with `git remote set-url`"
    )


def shown(address: str) -> str:
    """An address without the password it may hold."""
    return re.sub(r"//[^/@\s]+@", "//", address)


def send(
    git: Git, remote: Remote, branch: str, commit: str, tool: str, is_ours: Callable[[str], bool]
) -> None:
    """Makes the branch at the remote be `commit`; it may replace a commit of ours there, and nothing else."""
    ref = f"refs/heads/{branch}"
    there = _there(git, remote, ref, tool)
    if there == commit:
        return
    if there and not (git.resolve(f"{there}^{{commit}}") is not None and is_ours(there)):
        raise WorkspaceError(
            f"the branch {branch} at {remote.name} has commits that are not of this run; rename it there and deliver again"
        )
    lease = f"--force-with-lease={ref}:{there}"  # without a hash: it may not exist
    flags = (
        "--porcelain",
        "--no-verify",
        "--no-signed",
        "--recurse-submodules=no",
        "--no-follow-tags",
        lease,
    )
    answer = _call(git, remote, tool, "push", *flags, _target(git, remote), f"{commit}:{ref}")
    if answer.code != 0:
        raise WorkspaceError(_refused(remote, "take the branch", answer))


def _there(git: Git, remote: Remote, ref: str, tool: str) -> str:
    answer = _call(git, remote, tool, "ls-remote", _target(git, remote), ref)
    if answer.code != 0:
        raise WorkspaceError(_refused(remote, "be read", answer))
    lines = [line.split("\t") for line in os.fsdecode(answer.out).splitlines()]
    return next((found for found, name in lines if name == ref), "")


def _target(git: Git, remote: Remote) -> str:
    """Where git sends it; a directory of this machine is reached through one of ours, so that nothing of it runs."""
    if remote.scheme != "file":
        return remote.address
    own = hull(bare(Path(remote.address)), git.folder)
    return str(own.path)


def _call(git: Git, remote: Remote, tool: str, *args: str) -> Answer:
    helper = f"!{shlex.quote(tool)} auth git-credential"
    settings = (("credential.helper", ""), ("credential.helper", helper)) if remote.scheme == "https" else ()
    env = {
        **{name: os.environ[name] for name in PERSONAL if name in os.environ},
        **dict(as_environment(settings)),
        "GIT_ALLOW_PROTOCOL": remote.scheme,
    }
    if remote.scheme == "ssh":
        env["GIT_SSH_COMMAND"] = f"{shlex.quote(program('ssh'))} -oBatchMode=yes"
    return git.call(*args, env=env)


def _refused(remote: Remote, what: str, answer: Answer) -> str:
    said = shown(answer.err.strip() or os.fsdecode(answer.out).strip())[:500]
    return f"the remote {remote.name} ({shown(remote.address)}) could not {what}: {said}; put that right and deliver again"
