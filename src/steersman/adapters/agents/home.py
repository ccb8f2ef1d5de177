"""A configuration home for one call: made for it, gone after it. The login is lent to it, nothing else of the user is.

**Invariant:** a credential is never copied: it is passed on in the environment, or as a link to where the user's own
CLI keeps it, so that a token renewed during the call is renewed for the user too.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CALL = "call-"  # what a home's name begins with: nothing else beside it is ours to remove
_LOCK = ".lock"


class Home(NamedTuple):
    """Directories below one: HOME, the CLI's configuration, its temporary files, and an empty one to start in."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def config(self) -> Path:
        """Beside `tmp`, not below it: a CLI may refuse a configuration among temporary files."""
        return self.root / "config"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def start(self) -> Path:
        """Where an agent starts that only reads: nothing that others wrote is here for its program to load."""
        return self.root / "start"

    def environment(self) -> dict[str, str]:
        """What points a program here, whatever it looks at."""
        home = str(self.home)
        return {
            "HOME": home,
            "TMPDIR": str(self.tmp),
            "XDG_CONFIG_HOME": f"{home}/.config",
            "XDG_CACHE_HOME": f"{home}/.cache",
            "XDG_DATA_HOME": f"{home}/.local/share",
            "XDG_STATE_HOME": f"{home}/.local/state",
        }


@contextlib.contextmanager
def call_home(place: Path) -> Iterator[Home]:
    """A fresh home below `place`; those that a killed call has left there are removed first."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (place / _LOCK).open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)  # while one is made, nobody takes it for one that was left
        _sweep(place)
        home = Home(Path(tempfile.mkdtemp(prefix=_CALL, dir=place)))
        lock = _lock_of(home.root).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        for part in (home.home, home.config, home.tmp, home.start):
            part.mkdir(mode=0o700)
        try:
            yield home
        finally:
            _remove(home.root)


def lend(credential: Path, home: Home, name: str) -> Path | None:
    """Links the user's own credential file into a configuration; None where the user has none."""
    if not credential.is_file():
        return None
    link = home.config / name
    link.symlink_to(credential)
    return credential


def _sweep(place: Path) -> None:
    """Removes the homes whose call is dead: what held its lock is gone."""
    for left in filter(Path.is_dir, place.glob(f"{_CALL}*")):
        with contextlib.suppress(BlockingIOError), _lock_of(left).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(left)


def _remove(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    _lock_of(root).unlink(missing_ok=True)


def _lock_of(root: Path) -> Path:
    """Beside the home, out of reach of what works in it."""
    return root.with_suffix(_LOCK)


def user_home() -> Path:
    """The real home of whoever runs steersman."""
    return Path(os.path.expanduser("~"))
