"""A forge without a network: programs called `gh`, `glab` and `ssh` to put on a PATH, and what they were told.

The programs are this very file, started with the standard library alone. `ssh` runs what it is asked to on this
machine, so that a bare repository in a folder stands for one far away.
**Invariant:** they answer what they know; an unknown call is an error, as it is at a real forge.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class FakeForge:
    """Programs in `folder`/bin over pull requests kept in `folder`."""

    def __init__(self, folder: Path, *programs: str) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir(parents=True, exist_ok=True)
        for name in programs:
            words = [sys.executable, "-P", "-I", __file__, str(folder), name]
            path = self.bin / name
            path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            path.chmod(0o755)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every call of a program: its words, where it was started, its GIT_ variables, what it was fed."""
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def pulls(self) -> list[dict[str, Any]]:
        """The pull requests there are."""
        return _load_pulls(self.folder)

    def refuse(self, words: str) -> None:
        """Lets every call of the interface fail with these words; none lets them pass again."""
        (self.folder / "refuses").write_text(words)


def _load_pulls(folder: Path) -> list[dict[str, Any]]:
    path = folder / "pulls.json"
    pulls: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return pulls


def _run_forge_program(folder: Path, name: str, argv: list[str]) -> int:
    body = sys.stdin.buffer.read().decode() if "--input" in argv or "git-credential" in argv else ""
    git = {key: value for key, value in os.environ.items() if key.startswith("GIT_")}
    note = {"program": name, "argv": argv, "cwd": os.getcwd(), "git": git, "stdin": body}
    with (folder / "calls.jsonl").open("a") as file:
        file.write(json.dumps(note) + "\n")
    match name, argv:
        case "ssh", [*_, command]:
            env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
            return subprocess.run(["/bin/sh", "-c", command], cwd="/", env=env, check=False).returncode
        case _, ["auth", "git-credential", "get"]:
            sys.stdout.write("username=ann\npassword=secret\n")
            return 0
        case _, ["auth", "git-credential", _]:
            return 0
        case _, ["api", "--method", method, path, *_]:
            return _answer_api_call(folder, name, method, path, json.loads(body) if body else {})
    sys.stderr.write(f"unknown command {' '.join(argv)}\n")
    return 1


def _answer_api_call(folder: Path, name: str, method: str, path: str, body: dict[str, Any]) -> int:
    refuses = folder / "refuses"
    if refuses.exists() and refuses.read_text():
        sys.stderr.write(refuses.read_text())
        return 1
    response = (
        _answer_github(folder, method, path, body)
        if name == "gh"
        else _answer_gitlab(folder, method, path, body)
    )
    if response is None:
        sys.stderr.write(f"HTTP 404: Not Found ({path})\n")
        return 1
    sys.stdout.write(json.dumps(response))
    return 0


def _answer_github(folder: Path, method: str, path: str, body: dict[str, Any]) -> Any:
    match = re.fullmatch(r"repos/([^/]+)/([^/]+)/pulls(?:/(\d+))?", urlsplit(path).path)
    if match is None:
        return None
    where, pulls = f"https://forge.invalid/{match[1]}/{match[2]}/pull", _load_pulls(folder)
    if method == "GET":
        (head,) = parse_qs(urlsplit(path).query)["head"]
        return [p for p in pulls if f"{match[1]}:{p['head']['ref']}" == head]
    if method == "PATCH":
        return _update_pull(folder, pulls, int(match[3]), body)
    number = len(pulls) + 1
    new = {**body, "number": number, "head": {"ref": body["head"]}, "html_url": f"{where}/{number}"}
    return _save_pulls(folder, [*pulls, new], new)


def _answer_gitlab(folder: Path, method: str, path: str, body: dict[str, Any]) -> Any:
    match = re.fullmatch(r"projects/([^/]+)/merge_requests(?:/(\d+))?", urlsplit(path).path)
    if match is None:
        return None
    where, pulls = f"https://forge.invalid/{unquote(match[1])}/-/merge_requests", _load_pulls(folder)
    if method == "GET":
        (branch,) = parse_qs(urlsplit(path).query)["source_branch"]
        return [p for p in pulls if p["source_branch"] == branch]
    if method == "PUT":
        return _update_pull(folder, pulls, int(match[2]), body)
    number = len(pulls) + 1
    new = {**body, "number": number, "iid": number, "web_url": f"{where}/{number}"}
    return _save_pulls(folder, [*pulls, new], new)


def _update_pull(folder: Path, pulls: list[dict[str, Any]], number: int, body: dict[str, Any]) -> Any:
    pull = next((p for p in pulls if p["number"] == number), None)
    if pull is None:
        return None
    pull.update(body)
    return _save_pulls(folder, pulls, pull)


def _save_pulls(folder: Path, pulls: list[dict[str, Any]], new: dict[str, Any]) -> dict[str, Any]:
    (folder / "pulls.json").write_text(json.dumps(pulls))
    return new


if __name__ == "__main__":
    sys.exit(_run_forge_program(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
