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

_CALL_HOME_PREFIX = "call-"  # what a home's name begins with: nothing else beside it is ours to remove
_CALL_HOME_LOCK_SUFFIX = ".lock"


class CallHome(NamedTuple):
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
def open_call_home(homes_dir: Path) -> Iterator[CallHome]:
    """A fresh home below `place`; those that a killed call has left there are removed first."""
    homes_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (homes_dir / _CALL_HOME_LOCK_SUFFIX).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # while one is made, no other process takes it for an abandoned one
        _remove_dead_homes(homes_dir)
        home = CallHome(Path(tempfile.mkdtemp(prefix=_CALL_HOME_PREFIX, dir=homes_dir)))
        lock = _call_home_lock(home.root).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        for directory in (home.home, home.config, home.tmp, home.start):
            directory.mkdir(mode=0o700)
        try:
            yield home
        finally:
            _remove_call_home(home.root)


def link_credential(credential: Path, home: CallHome, name: str) -> Path | None:
    """Links the user's own credential file into a configuration; None where the user has none."""
    if not credential.is_file():
        return None
    link = home.config / name
    link.symlink_to(credential)
    return credential


def _remove_dead_homes(homes_dir: Path) -> None:
    """Removes the homes whose call is dead: what held its lock is gone."""
    for home_dir in filter(Path.is_dir, homes_dir.glob(f"{_CALL_HOME_PREFIX}*")):
        with contextlib.suppress(BlockingIOError), _call_home_lock(home_dir).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_call_home(home_dir)


def _remove_call_home(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    _call_home_lock(root).unlink(missing_ok=True)


def _call_home_lock(root: Path) -> Path:
    """Beside the home, out of reach of what works in it."""
    return root.with_suffix(_CALL_HOME_LOCK_SUFFIX)


def user_home() -> Path:
    """The home of the user who runs steersman."""
    return Path(os.path.expanduser("~"))
