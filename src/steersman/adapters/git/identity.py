"""Reads who the person is for git: the name and address that their own commits carry.

**Invariant:** only `user.name` and `user.email` are read, by `git config`, which runs nothing and here traces nothing.
"""

import os
import subprocess
from pathlib import Path

from steersman.adapters.git.git_command import COMMITTER_EMAIL, COMMITTER_NAME, start_git

_IDENTITY_SECONDS = 60
# Settings of the person or the system (`trace2.eventTarget` and others) can have git write to files and sockets.
_UNTRACED_ENVIRONMENT = dict.fromkeys(("GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE2_PERF"), "0")


def read_git_identity(directory: Path) -> tuple[str, str]:
    """Name and address of the person in the repository around `place`; ours where they have set none."""
    name, email = (_read_user_setting(directory, key) for key in ("user.name", "user.email"))
    return (name, email) if name and email else (COMMITTER_NAME, COMMITTER_EMAIL)


def _read_user_setting(directory: Path, key: str) -> str:
    home = {n: os.environ[n] for n in ("HOME", "XDG_CONFIG_HOME") if n in os.environ}
    args = ("config", "--get", key)
    with start_git(
        args,
        directory,
        {"LC_ALL": "C", **_UNTRACED_ENVIRONMENT, **home},
        subprocess.DEVNULL,
        subprocess.DEVNULL,
    ) as process:
        out, _ = process.communicate(timeout=_IDENTITY_SECONDS)
    # git refuses a commit with these characters in it, and so would we.
    return "".join(char for char in out.decode("utf-8", "replace").strip() if char not in "<>\n\0")
