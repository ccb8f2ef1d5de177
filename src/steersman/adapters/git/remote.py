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

from steersman.adapters.git.git_command import GitResult, encode_git_settings, require_program_on_path
from steersman.adapters.git.isolated_dir import locate_bare_repository, make_isolated_dir
from steersman.adapters.git.repository import GitRepository
from steersman.errors import WorkspaceError

# What ssh, a proxy and the forges' programs need to know the person by.
PERSONAL_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "SSH_AUTH_SOCK", "LANG", "TMPDIR", "http_proxy", "https_proxy",
            "HTTPS_PROXY", "NO_PROXY", "no_proxy", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "GH_TOKEN", "GITHUB_TOKEN",
            "GH_HOST", "GH_CONFIG_DIR", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITLAB_TOKEN", "GITLAB_HOST",
            "GLAB_CONFIG_DIR")  # fmt: skip
_REMOTE_HOST_PATTERN = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_REMOTE_PATH_PATTERN = r"(?:[\w.~+-]+/)+[\w.~+-]+?"
_HTTPS_REMOTE = re.compile(
    rf"https://(?:[^/@\s]+@)?(?P<host>{_REMOTE_HOST_PATTERN}(?::\d+)?)/(?P<path>{_REMOTE_PATH_PATTERN})(?:\.git)?/?"
)
_SSH_REMOTE = re.compile(
    rf"ssh://(?:[\w.-]+@)?(?P<host>{_REMOTE_HOST_PATTERN})(?::\d+)?/(?P<path>{_REMOTE_PATH_PATTERN})(?:\.git)?/?|"
    rf"(?:[\w.-]+@)?(?P<host2>{_REMOTE_HOST_PATTERN}):(?P<path2>{_REMOTE_PATH_PATTERN})(?:\.git)?/?"
)


class GitRemote(NamedTuple):
    """A place that branches are sent to."""

    name: str
    address: str  # outside text; may hold a password
    scheme: str  # https | ssh | file
    host: str
    path: str  # owner/name, as the forge knows it


def find_delivery_remote(git: GitRepository) -> GitRemote:
    """The remote of the repository: `origin`, or the only one there is."""
    remotes = git.require_repository.remotes
    name = "origin" if "origin" in remotes or len(remotes) != 1 else next(iter(remotes))
    if name not in remotes:
        reason = (
            f"none of {', '.join(sorted(remotes))} is called origin" if remotes else "the repository has none"
        )
        raise WorkspaceError(
            f"a pull request needs a remote, and {reason}; add it with `git remote add origin <address>`"
        )
    return _parse_remote_address(git, name, remotes[name])


def _parse_remote_address(git: GitRepository, name: str, address: str) -> GitRemote:
    if match := _HTTPS_REMOTE.fullmatch(address):
        return GitRemote(name, address, "https", match["host"], match["path"])
    directory = Path(address.removeprefix("file://"))
    absolute_path = directory if directory.is_absolute() else git.require_repository.top / directory
    if absolute_path.is_dir() and "::" not in address:
        git_dir = absolute_path / ".git" if (absolute_path / ".git").is_dir() else absolute_path
        return GitRemote(
            name,
            str(git_dir.resolve()),
            "file",
            "",
            "/".join(absolute_path.resolve().parts[-2:]).removesuffix(".git"),
        )
    if match := _SSH_REMOTE.fullmatch(address):
        return GitRemote(
            name, address, "ssh", match["host"] or match["host2"], match["path"] or match["path2"]
        )
    raise WorkspaceError(
        f"the remote {name} ({hide_address_password(address)}) is neither an https nor an ssh address, nor a directory: steersman sends "
        "nothing there; give it one with `git remote set-url`"
    )


def hide_address_password(address: str) -> str:
    """An address without the password it may hold."""
    return re.sub(r"//[^/@\s]+@", "//", address)


def push_run_branch(
    git: GitRepository, remote: GitRemote, branch: str, commit: str, tool: str, is_ours: Callable[[str], bool]
) -> None:
    """Makes the branch at the remote be `commit`; it may replace a commit of ours there, and nothing else."""
    ref = f"refs/heads/{branch}"
    remote_commit = _read_remote_tip(git, remote, ref, tool)
    if remote_commit == commit:
        return
    if remote_commit and not (
        git.resolve(f"{remote_commit}^{{commit}}") is not None and is_ours(remote_commit)
    ):
        raise WorkspaceError(
            f"the branch {branch} at {remote.name} has commits that are not of this run; rename it there and deliver again"
        )
    lease = f"--force-with-lease={ref}:{remote_commit}"  # without a hash: it may not exist
    flags = (
        "--porcelain",
        "--no-verify",
        "--no-signed",
        "--recurse-submodules=no",
        "--no-follow-tags",
        lease,
    )
    answer = _call_git_with_remote(
        git, remote, tool, "push", *flags, _push_address(git, remote), f"{commit}:{ref}"
    )
    if answer.code != 0:
        raise WorkspaceError(_remote_refusal_message(remote, "take the branch", answer))


def _read_remote_tip(git: GitRepository, remote: GitRemote, ref: str, tool: str) -> str:
    answer = _call_git_with_remote(git, remote, tool, "ls-remote", _push_address(git, remote), ref)
    if answer.code != 0:
        raise WorkspaceError(_remote_refusal_message(remote, "be read", answer))
    lines = [line.split("\t") for line in os.fsdecode(answer.out).splitlines()]
    return next((commit for commit, name in lines if name == ref), "")


def _push_address(git: GitRepository, remote: GitRemote) -> str:
    """Where git sends it; a directory of this machine is reached through one of ours, so that nothing of it runs."""
    if remote.scheme != "file":
        return remote.address
    isolated_dir = make_isolated_dir(locate_bare_repository(Path(remote.address)), git.folder)
    return str(isolated_dir.path)


def _call_git_with_remote(git: GitRepository, remote: GitRemote, tool: str, *args: str) -> GitResult:
    helper = f"!{shlex.quote(tool)} auth git-credential"
    settings = (("credential.helper", ""), ("credential.helper", helper)) if remote.scheme == "https" else ()
    env = {
        **{name: os.environ[name] for name in PERSONAL_VARIABLES if name in os.environ},
        **dict(encode_git_settings(settings)),
        "GIT_ALLOW_PROTOCOL": remote.scheme,
    }
    if remote.scheme == "ssh":
        env["GIT_SSH_COMMAND"] = f"{shlex.quote(require_program_on_path('ssh'))} -oBatchMode=yes"
    return git.call(*args, env=env)


def _remote_refusal_message(remote: GitRemote, action: str, answer: GitResult) -> str:
    message = hide_address_password(answer.err.strip() or os.fsdecode(answer.out).strip())[:500]
    return f"the remote {remote.name} ({hide_address_password(remote.address)}) could not {action}: {message}; put that right and deliver again"
