"""Reads who the person is for git: the name and address that their own commits carry.

**Invariant:** only `user.name` and `user.email` are read, by `git config`, which runs nothing and here traces nothing.
"""

import os
import subprocess
from pathlib import Path

from steersman.adapters.git_cli import EMAIL, NAME, started

_SECONDS = 60
# Settings of the person or the system (`trace2.eventTarget` and others) can have git write to files and sockets.
_UNTRACED = dict.fromkeys(("GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE2_PERF"), "0")


def read_identity(place: Path) -> tuple[str, str]:
    """Name and address of the person in the repository around `place`; ours where they have set none."""
    name, email = (_read_setting(place, key) for key in ("user.name", "user.email"))
    return (name, email) if name and email else (NAME, EMAIL)


def _read_setting(place: Path, key: str) -> str:
    home = {n: os.environ[n] for n in ("HOME", "XDG_CONFIG_HOME") if n in os.environ}
    args = ("config", "--get", key)
    with started(
        args, place, {"LC_ALL": "C", **_UNTRACED, **home}, subprocess.DEVNULL, subprocess.DEVNULL
    ) as process:
        out, _ = process.communicate(timeout=_SECONDS)
    # git refuses a commit with these characters in it, and so would we.
    return "".join(char for char in out.decode("utf-8", "replace").strip() if char not in "<>\n\0")
