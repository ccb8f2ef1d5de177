"""Where things are on this machine, as plain strings: nothing slow is imported, for every command starts here.

Store, keys, sockets and working trees are in `$XDG_STATE_HOME/steersman/<project>/`, outside every worktree: they
survive `git clean` and are out of reach of agents.
"""

import os
from collections.abc import Mapping

try:  # hashlib loads OpenSSL, which takes longer than listing the runs
    from _sha256 import sha256  # type: ignore[import-not-found]  # a part of CPython that typeshed leaves out
except ImportError:
    try:
        from _sha2 import sha256  # type: ignore[import-not-found]  # its name since Python 3.12
    except ImportError:
        from hashlib import sha256


STORE_FILE_NAME = "store.db"


def find_repository_top(start: str | os.PathLike[str]) -> str:
    """The top of the repository around `start`, or `start` itself where there is none."""
    start_directory = directory = os.path.realpath(start)
    while not os.path.exists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return start_directory
        directory = parent
    return directory


def state_root_directory(environ: Mapping[str, str] = os.environ) -> str:
    """The directory of all projects' states: no sandbox shows it."""
    configured = environ.get("XDG_STATE_HOME", "")
    home = (
        configured if os.path.isabs(configured) else os.path.join(os.path.expanduser("~"), ".local", "state")
    )
    return os.path.join(home, "steersman")


def user_settings_path() -> str:
    """The person's own settings, which hold for every repository."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    home = configured if os.path.isabs(configured) else os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "steersman", "config.toml")


def state_directory_path(project: str | os.PathLike[str], environ: Mapping[str, str] = os.environ) -> str:
    """The project's own directory for what it must not lose."""
    path_digest = sha256(os.fsencode(project)).hexdigest()[:10]
    name = os.path.basename(os.fspath(project))[:40] or "root"  # with the mark it has to fit a file name
    return os.path.join(state_root_directory(environ), f"{name}-{path_digest}")


def project_store_path(project: str | os.PathLike[str]) -> str:
    """The project's store."""
    return os.path.join(state_directory_path(project), STORE_FILE_NAME)
