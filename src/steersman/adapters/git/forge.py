"""Opens a draft pull request through the forge's own program: `gh` for GitHub, `glab` for GitLab.

Both are used for one thing, to speak to the forge's interface in the person's name. They are started outside every
repository, so that the git they may call finds none.
**Invariant:** a draft: a person at the forge merges it.
"""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from steersman.adapters.git.deliver_tree import BranchDeliverer
from steersman.adapters.git.git_command import (
    GIT_ENVIRONMENT,
    GitResult,
    encode_git_settings,
    find_program_on_path,
    kill_git_process,
    require_program_on_path,
    safe_search_path,
)
from steersman.adapters.git.isolated_dir import locate_bare_repository, make_isolated_dir
from steersman.adapters.git.repository import GitRepository
from steersman.contracts.workspace import Delivery
from steersman.errors import WorkspaceError

# ── remote ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Sends one branch to a remote of the repository.
#
# Of the repository's settings only the address is used, and only one that names a place: no helper, no program, no
# rewriting. Who sends is asked of ssh, or of the forge's own program.
# **Invariant:** nothing but the run's own branch is sent, and over a branch of others never.


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
    """Makes the branch at the remote be `commit`; it may replace an earlier commit of the run there, and nothing else."""
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
    """Where git sends it; a directory of this machine is reached through an isolated git directory, so that nothing of it runs."""
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


# ── forge ────────────────────────────────────────────────────────────────────────────────


FORGE_TIMEOUT_SECONDS = 120
MAX_PULL_REQUEST_BODY = 60_000  # characters; GitHub takes 65,536
MAX_PULL_REQUEST_TITLE = 200


class ForgeClient:
    """Delivers pull requests for one repository."""

    def __init__(self, git: GitRepository, deliverer: BranchDeliverer) -> None:
        self._git = git
        self._deliverer = deliverer

    def draft(self, run: str, delivery: Delivery, target: str, message: str, body: str) -> Delivery:
        """The run's branch, sent, with a draft pull request into `target`; what fails leaves the branch."""
        branch = f"steersman/{run}"
        try:
            remote, tool = self.reach()
            push_run_branch(
                self._git,
                remote,
                branch,
                delivery.commit,
                tool,
                lambda remote_commit: self._deliverer.is_ours(run, remote_commit),
            )
            url = _open_draft(tool, remote, branch, target, *_request_words(message, body))
        except WorkspaceError as error:
            raise WorkspaceError(f"{error}. The change is on the branch {branch}") from error
        return msgspec.structs.replace(delivery, form="draft-pr", url=url)

    def reach(self) -> tuple[GitRemote, str]:
        """The remote and the program of its forge, looked up and not called; WorkspaceError where one is missing."""
        remote = find_delivery_remote(self._git)
        if remote.scheme == "ssh":
            require_program_on_path("ssh")
        return remote, _find_forge_program(remote)


def _find_forge_program(remote: GitRemote) -> str:
    """The program for a forge: by its host where that tells, else the one that is there."""
    program_names: tuple[str, ...] = ("glab", "gh") if "gitlab" in remote.host else ("gh", "glab")
    if remote.host == "github.com":
        program_names = ("gh",)
    for name in program_names:
        if (path := find_program_on_path(name)) is not None:
            return path
    login = f"{program_names[0]} auth login"
    raise WorkspaceError(
        f"a draft pull request needs {' or '.join(program_names)} on PATH, and it is not there; install it and "
        f"run `{login}`"
    )


def _request_words(message: str, body: str) -> tuple[str, str]:
    """Title and text of a pull request, within what a forge takes."""
    lines = message.strip().splitlines() or ["change"]
    if len(body) > MAX_PULL_REQUEST_BODY:
        body = f"{body[:MAX_PULL_REQUEST_BODY]}\n\n(cut: too long for a forge)\n"
    return lines[0][:MAX_PULL_REQUEST_TITLE], body


def _open_draft(tool: str, remote: GitRemote, branch: str, target: str, title: str, body: str) -> str:
    """The address of the pull request: a new draft, or the open one with its words made current."""
    if os.path.basename(tool) == "glab":  # there a draft is one by its title
        path = f"projects/{quote(remote.path, safe='')}/merge_requests"
        words = {"title": f"Draft: {title}", "description": body}
        new: dict[str, Any] = {"source_branch": branch, "target_branch": target}
        query, method = {"state": "opened", "source_branch": branch}, "PUT"
        number_field, address_field = "iid", "web_url"
    else:
        owner, name = remote.path.split("/")[-2:]
        path = f"repos/{quote(owner)}/{quote(name)}/pulls"
        words = {"title": title, "body": body}
        new = {"head": branch, "base": target, "draft": True}
        query, method = {"state": "open", "head": f"{owner}:{branch}"}, "PATCH"
        number_field, address_field = "number", "html_url"
    open_requests = _call_forge_api(tool, remote, "GET", f"{path}?{urlencode(query)}")
    for request in open_requests if isinstance(open_requests, list) else ():
        if branch in (request.get("source_branch"), request.get("head", {}).get("ref")):
            address = f"{path}/{int(request[number_field])}"
            return _read_request_url(_call_forge_api(tool, remote, method, address, words), address_field)
    return _read_request_url(_call_forge_api(tool, remote, "POST", path, {**words, **new}), address_field)


def _read_request_url(answer: Any, field: str) -> str:
    """Where the pull request is; without an address there is none."""
    url = answer.get(field) if isinstance(answer, dict) else None
    if not isinstance(url, str) or not re.fullmatch(r"https?://[\x21-\x7e]{1,500}", url):
        raise WorkspaceError("the forge gave no address of a pull request; look there and deliver again")
    return url


def _call_forge_api(
    tool: str, remote: GitRemote, method: str, path: str, body: dict[str, Any] | None = None
) -> Any:
    """One call of the forge's interface; JSON in, JSON out."""
    name = os.path.basename(tool)
    argv = [tool, "api", "--method", method, path]
    argv += ["--hostname", remote.host.partition(":")[0]] if remote.host else []
    argv += ["--header", "Content-Type: application/json", "--input", "-"] if body is not None else []
    code, out, err = _run_forge_cli(argv, msgspec.json.encode(body) if body is not None else b"")
    if code != 0:
        message = hide_address_password((err or out).decode("utf-8", "backslashreplace").strip())[:500]
        raise WorkspaceError(
            f"{name} could not {method} {path.partition('?')[0]}: {message}; is it logged in? See `{name} auth status`"
        )
    try:
        return msgspec.json.decode(out)
    except msgspec.DecodeError as error:
        raise WorkspaceError(f"{name} answered in no known form: {error}; is it up to date?") from error


def _run_forge_cli(argv: list[str], feed: bytes) -> tuple[int, bytes, bytes]:
    personal = {name: os.environ[name] for name in PERSONAL_VARIABLES if name in os.environ}
    quiet_variables = {
        "GH_PROMPT_DISABLED": "1",
        "GH_NO_UPDATE_NOTIFIER": "1",
        "GLAB_CHECK_UPDATE": "false",
        "NO_COLOR": "1",
    }
    with tempfile.TemporaryDirectory(prefix="steersman-") as directory:
        ceiling = {"GIT_CEILING_DIRECTORIES": str(Path(directory).parent)}
        env = {**GIT_ENVIRONMENT, **personal, **quiet_variables, **ceiling, "PATH": safe_search_path()}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            argv, cwd=directory, env=env, process_group=0, stdin=pipe, stdout=pipe, stderr=pipe
        ) as process:
            try:
                out, err = process.communicate(feed, timeout=FORGE_TIMEOUT_SECONDS)
            except BaseException as error:
                kill_git_process(process)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise WorkspaceError(
                        f"{os.path.basename(argv[0])} did not answer within {FORGE_TIMEOUT_SECONDS} s; deliver again"
                    ) from None
                raise
    return process.returncode, out, err
