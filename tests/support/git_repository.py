"""git as a person uses it, and a person's repository."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

PERSON = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_{key}": "ann@example.org" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")},
}  # fmt: skip


def git(place: Path | str, *args: str, feed: str = "") -> str:
    """What one command of git prints; it has to succeed."""
    env = {"PATH": os.environ["PATH"], **PERSON}
    done = subprocess.run(
        ["git", *args], cwd=place, env=env, input=feed, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit_files(place: Path, message: str = "x") -> str:
    """Commits everything in the checkout, without hooks; the new commit."""
    git(place, "add", "-A")
    git(place, "commit", "-q", "--no-verify", "-m", message)
    return git(place, "rev-parse", "HEAD")


def make_repository(place: Path, files: Mapping[str, str], *flags: str) -> Path:
    """A repository with one commit on main that holds these files."""
    git(place.parent, "init", "-q", "-b", "main", *flags, str(place))
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    commit_files(place)
    return place
