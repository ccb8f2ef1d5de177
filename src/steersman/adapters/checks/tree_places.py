"""Where a run's working tree is outside and inside the sandbox, and where its setup and caches are kept.

Every tree of a project is mounted at one path in the sandbox, so that what was set up once fits all of them: scripts of
a virtual environment, links of a package manager and build fingerprints hold absolute paths.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

WORKTREES_DIRECTORY, SETUPS_DIRECTORY, CACHE_DIRECTORY = "worktrees", "setups", "cache"
SANDBOX_TREE_ROOT = "/steersman"
SANDBOX_HOME = "/steersman-home"  # of every command in the sandbox


class TreePlace(NamedTuple):
    """A working tree of a run: `<state>/worktrees/<run>/<number>`."""

    path: Path
    state: Path

    @property
    def shown_at(self) -> str:
        """The path that programs in the sandbox see."""
        name = self.state.name.rpartition("-")[0] or self.state.name
        return f"{SANDBOX_TREE_ROOT}/{re.sub(r'[^A-Za-z0-9._-]', '_', name)}"

    @property
    def setup_layers_directory(self) -> Path:
        """The setup layers of the project."""
        return self.state / SETUPS_DIRECTORY

    @property
    def home(self) -> Path:
        """The home of setup steps and checks on the base: it holds the project's caches."""
        return self.state / CACHE_DIRECTORY / "home"

    def sibling_path(self, ending: str) -> Path:
        """A file or directory next to the tree, removed with it and out of reach of what works inside."""
        return self.path.with_name(f"{self.path.name}.{ending}")


def find_tree_place(workdir: str | os.PathLike[str]) -> TreePlace | None:
    """The place of a run's tree; None for any other directory."""
    path = Path(os.path.realpath(workdir))
    parts = path.parts
    if len(parts) < 5 or parts[-3] != WORKTREES_DIRECTORY or not parts[-1].isdecimal():
        return None
    return TreePlace(path, path.parents[2])


def visible_tree_path(workdir: str, *, isolated: bool) -> str:
    """Where a program finds its working directory: at the fixed path in a sandbox, else where it is."""
    place = find_tree_place(workdir) if isolated else None
    return place.shown_at if place is not None else workdir
