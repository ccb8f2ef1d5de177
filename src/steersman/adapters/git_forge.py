"""Opens a draft pull request through the forge's own program: `gh` for GitHub, `glab` for GitLab.

Both are used for one thing, to speak to the forge's interface in the person's name. They are started outside every
repository, so that the git they may call finds none.
**Invariant:** a draft: whoever merges it is a person at the forge.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from steersman.adapters.git_cli import ENVIRONMENT, find, program, safe_path, stop
from steersman.adapters.git_delivery import Courier
from steersman.adapters.git_remote import PERSONAL, Remote, remote_of, send, shown
from steersman.adapters.git_repository import Git
from steersman.contracts.workspace import Delivery
from steersman.errors import WorkspaceError

SECONDS = 120
MOST_BODY = 60_000  # characters; GitHub takes 65,536
MOST_TITLE = 200


class Letter(NamedTuple):
    """What a pull request says."""

    title: str
    body: str


def letter(message: str, body: str) -> Letter:
    """The words of a pull request, within what a forge takes."""
    lines = message.strip().splitlines() or ["change"]
    cut = body if len(body) <= MOST_BODY else f"{body[:MOST_BODY]}\n\n(cut: too long for a forge)\n"
    return Letter(lines[0][:MOST_TITLE], cut)


class Forge:
    """Delivers pull requests for one repository."""

    def __init__(self, git: Git, courier: Courier) -> None:
        self._git = git
        self._courier = courier

    def draft(self, run: str, delivery: Delivery, target: str, letter: Letter) -> Delivery:
        """The run's branch, sent, with a draft pull request into `target`; what fails leaves the branch."""
        branch = f"steersman/{run}"
        try:
            remote, tool = self.reach()
            send(
                self._git,
                remote,
                branch,
                delivery.commit,
                tool,
                lambda there: self._courier.is_ours(run, there),
            )
            kind = _GitLab if os.path.basename(tool) == "glab" else _GitHub
            url = kind(tool, remote).opened(branch, target, letter)
        except WorkspaceError as error:
            raise WorkspaceError(f"{error}. The change is on the branch {branch}") from error
        return msgspec.structs.replace(delivery, form="draft-pr", url=url)

    def reach(self) -> tuple[Remote, str]:
        """The remote and the program of its forge, looked up and not called; WorkspaceError where one is missing."""
        remote = remote_of(self._git)
        if remote.scheme == "ssh":
            program("ssh")
        return remote, _tool(remote)


def _tool(remote: Remote) -> str:
    """The program for a forge: by its host where that tells, else the one that is there."""
    wanted = ("glab", "gh") if "gitlab" in remote.host else ("gh", "glab")
    if remote.host == "github.com":
        wanted = ("gh",)
    for name in wanted:
        if (path := find(name)) is not None:
            return path
    login = f"{wanted[0]} auth login"
    raise WorkspaceError(
        f"a draft pull request needs {' or '.join(wanted)} on PATH, and it is not there; install it and "
        f"run `{login}`"
    )


class _GitHub:
    def __init__(self, tool: str, remote: Remote) -> None:
        self._tool, self._remote = tool, remote
        owner, name = remote.path.split("/")[-2:]
        self._owner, self._pulls = owner, f"repos/{quote(owner)}/{quote(name)}/pulls"

    def opened(self, branch: str, target: str, letter: Letter) -> str:
        """The address of the pull request: a new one, or the open one with its words made current."""
        asked = urlencode({"state": "open", "head": f"{self._owner}:{branch}"})
        there = self._call("GET", f"{self._pulls}?{asked}")
        words = {"title": letter.title, "body": letter.body}
        found = (
            next((p for p in there if p["head"]["ref"] == branch), None) if isinstance(there, list) else None
        )
        if found is not None:
            return _address(self._call("PATCH", f"{self._pulls}/{int(found['number'])}", words), "html_url")
        new = {**words, "head": branch, "base": target, "draft": True}
        return _address(self._call("POST", self._pulls, new), "html_url")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return _spoken(self._tool, self._remote, method, path, body)


class _GitLab:
    def __init__(self, tool: str, remote: Remote) -> None:
        self._tool, self._remote = tool, remote
        self._requests = f"projects/{quote(remote.path, safe='')}/merge_requests"

    def opened(self, branch: str, target: str, letter: Letter) -> str:
        """The same with GitLab's words; a draft is one by its title there."""
        asked = urlencode({"state": "opened", "source_branch": branch})
        there = self._call("GET", f"{self._requests}?{asked}")
        words = {"title": f"Draft: {letter.title}", "description": letter.body}
        found = (
            next((m for m in there if m["source_branch"] == branch), None)
            if isinstance(there, list)
            else None
        )
        if found is not None:
            return _address(self._call("PUT", f"{self._requests}/{int(found['iid'])}", words), "web_url")
        new = {**words, "source_branch": branch, "target_branch": target}
        return _address(self._call("POST", self._requests, new), "web_url")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return _spoken(self._tool, self._remote, method, path, body)


def _address(answer: Any, field: str) -> str:
    """Where the pull request is; without an address there is none."""
    found = answer.get(field) if isinstance(answer, dict) else None
    if not isinstance(found, str) or not re.fullmatch(r"https?://[\x21-\x7e]{1,500}", found):
        raise WorkspaceError("the forge gave no address of a pull request; look there and deliver again")
    return found


def _spoken(tool: str, remote: Remote, method: str, path: str, body: dict[str, Any] | None) -> Any:
    """One call of the forge's interface; JSON in, JSON out."""
    name = os.path.basename(tool)
    argv = [tool, "api", "--method", method, path]
    argv += ["--hostname", remote.host.partition(":")[0]] if remote.host else []
    argv += ["--header", "Content-Type: application/json", "--input", "-"] if body is not None else []
    code, out, err = _run(argv, msgspec.json.encode(body) if body is not None else b"")
    if code != 0:
        said = shown((err or out).decode("utf-8", "backslashreplace").strip())[:500]
        raise WorkspaceError(
            f"{name} could not {method} {path.partition('?')[0]}: {said}; is it logged in? See `{name} auth status`"
        )
    try:
        return msgspec.json.decode(out)
    except msgspec.DecodeError as error:
        raise WorkspaceError(f"{name} answered in no known form: {error}; is it up to date?") from error


def _run(argv: list[str], feed: bytes) -> tuple[int, bytes, bytes]:
    personal = {name: os.environ[name] for name in PERSONAL if name in os.environ}
    quiet = {
        "GH_PROMPT_DISABLED": "1",
        "GH_NO_UPDATE_NOTIFIER": "1",
        "GLAB_CHECK_UPDATE": "false",
        "NO_COLOR": "1",
    }
    with tempfile.TemporaryDirectory(prefix="steersman-") as folder:
        outside = {"GIT_CEILING_DIRECTORIES": str(Path(folder).parent)}
        env = {**ENVIRONMENT, **personal, **quiet, **outside, "PATH": safe_path()}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(argv, cwd=folder, env=env, process_group=0, **pipes) as process:
            try:
                out, err = process.communicate(feed, timeout=SECONDS)
            except BaseException as error:
                stop(process)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise WorkspaceError(
                        f"{os.path.basename(argv[0])} did not answer within {SECONDS} s; deliver again"
                    ) from None
                raise
    return process.returncode, out, err
