"""Who speaks at the command line. **Invariant:** a name, never a right: what it may do is decided elsewhere."""

import os
import subprocess
from pathlib import Path

from steersman.judges.text import clip_text, has_visible_text, printable_text

MAX_PERSON_LENGTH = 80


def find_person_name(project: Path) -> str:
    """$STEERSMAN_PERSON, else git's user.name, else the login name."""
    env_name = os.environ.get("STEERSMAN_PERSON", "")
    name = env_name if has_visible_text(env_name) else _read_git_user_name(project) or _read_login_name()
    return clip_text(printable_text(" ".join(name.split())), MAX_PERSON_LENGTH)


def _read_git_user_name(project: Path) -> str:
    argv = ["git", "config", "--get", "user.name"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        completed = subprocess.run(argv, cwd=project, env=env, capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    name = completed.stdout.decode("utf-8", "replace")
    return name if has_visible_text(name) else ""


def _read_login_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
