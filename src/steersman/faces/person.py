"""Who speaks at the command line. **Invariant:** a name, never a right: what it may do is decided elsewhere."""

import os
import subprocess
from pathlib import Path

from steersman.judges.text import clip, printable, visible

LONGEST = 80


def who(project: Path) -> str:
    """$STEERSMAN_PERSON, else git's user.name, else the login name."""
    given = os.environ.get("STEERSMAN_PERSON", "")
    name = given if visible(given) else _git_name(project) or _login()
    return clip(printable(" ".join(name.split())), LONGEST)


def _git_name(project: Path) -> str:
    argv = ["git", "config", "--get", "user.name"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(argv, cwd=project, env=env, capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    name = done.stdout.decode("utf-8", "replace")
    return name if visible(name) else ""


def _login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
