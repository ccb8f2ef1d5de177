"""Opens a draft pull request through the forge's own program: `gh` for GitHub, `glab` for GitLab.

Both are used for one thing, to speak to the forge's interface in the person's name. They are started outside every
repository, so that the git they may call finds none.
**Invariant:** a draft: a person at the forge merges it.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from steersman.adapters.git.deliver_tree import BranchDeliverer
from steersman.adapters.git.git_command import (
    GIT_ENVIRONMENT,
    find_program_on_path,
    kill_git_process,
    require_program_on_path,
    safe_search_path,
)
from steersman.adapters.git.remote import (
    PERSONAL_VARIABLES,
    GitRemote,
    find_delivery_remote,
    hide_address_password,
    push_run_branch,
)
from steersman.adapters.git.repository import GitRepository
from steersman.contracts.workspace import Delivery
from steersman.errors import WorkspaceError

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
