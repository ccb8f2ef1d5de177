"""The files of a project: those that git knows or does not ignore, else whatever lies there.

**Invariant:** nothing is opened but directories, no link is followed, and what is listed is sorted.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from steersman.adapters.git_cli import as_environment, run
from steersman.adapters.git_repository import Git
from steersman.adapters.git_survey import shown
from steersman.errors import WorkspaceError
from steersman.judges.planning.facts.choice import LEFT_OUT, left_out

MOST_FILES = 200_000
DEEPEST = 40
LONGEST = 4_096  # characters of a path
SECONDS = 60
OURS, FROZEN = b".steersman", b"plan.dsse.json"  # our folder; a file that every frozen plan has
_LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")


class Listing(NamedTuple):
    """The project's own files by their paths, how much was left out, and why it is not all."""

    files: dict[str, bytes]  # as text, sorted; as it is called on the disk
    skipped: int
    trouble: tuple[str, ...]


def listing(project: Path, folder: Path) -> Listing:
    """Through git where the project is in a repository, `folder` taking a directory of ours; else by walking."""
    if not os.path.lexists(project / ".git"):
        return _walked(project, ())
    try:
        return _own(project, _known_to_git(project, folder))
    except WorkspaceError:
        return _walked(project, ("git could not list the files, so that ignored ones are among them",))


def _known_to_git(project: Path, folder: Path) -> list[bytes]:
    git = Git(project, folder)
    found = git.found
    places = {
        "GIT_WORK_TREE": str(found.top),
        "GIT_INDEX_FILE": str(found.gitdir / "index"),
        "GIT_DIR": str(git.hull.path),
    }
    answer = run(_LIST, project, {**dict(as_environment(found.checkout)), **places}, seconds=SECONDS)
    if answer.code != 0:
        raise WorkspaceError(
            f"git cannot list the files of {project}: {answer.err.strip()[:500]}; mend that first"
        )
    return answer.out.split(b"\0")[:-1]


def _own(project: Path, names: list[bytes]) -> Listing:
    """Of what git lists: plain files that are there and that nobody has vendored."""
    top, real = os.fsencode(project), {b"": True}
    files: dict[str, bytes] = {}
    apart: set[str] = set()
    odd, trouble = 0, set[str]()
    for name in sorted(_not_ours(set(names))):
        path = shown(name)
        if (outside := left_out(path)) is not None:
            apart.add(outside)
        elif len(path) > LONGEST or path.count("/") >= DEEPEST:
            odd, trouble = odd + 1, trouble | {f"a path deeper than {DEEPEST} folders"}
        elif len(files) >= MOST_FILES:
            trouble |= {f"more than {MOST_FILES} files"}
            break
        elif _is_plain(top, name, real):
            files[path] = name
        else:
            odd += 1
    return Listing(dict(sorted(files.items())), len(apart) + odd, tuple(sorted(trouble)))


def _not_ours(names: set[bytes]) -> set[bytes]:
    """Without what steersman itself has laid there: a plan must not change because one was made before."""
    plans = {name.rpartition(b"/")[0] + b"/" for name in names if name.endswith(b"/" + FROZEN)}
    return {n for n in names if not n.startswith(OURS + b"/") and n.rpartition(b"/")[0] + b"/" not in plans}


def _is_plain(top: bytes, name: bytes, real: dict[bytes, bool]) -> bool:
    """A file, not a link to one, and behind no folder that is a link."""
    try:
        return _is_real(top, name.rpartition(b"/")[0], real) and stat.S_ISREG(
            os.lstat(top + b"/" + name).st_mode
        )
    except OSError:
        return False


def _is_real(top: bytes, folder: bytes, real: dict[bytes, bool]) -> bool:
    if folder not in real:
        above = _is_real(top, folder.rpartition(b"/")[0], real)
        real[folder] = above and stat.S_ISDIR(os.lstat(top + b"/" + folder).st_mode)
    return real[folder]


def _walked(project: Path, told: tuple[str, ...]) -> Listing:
    """Everything below, folder by folder; links and what is no plain file are passed over."""
    top = os.fsencode(project)
    files: dict[str, bytes] = {}
    waiting, skipped, trouble = [b""], 0, set(told)
    while waiting:
        here = waiting.pop()
        entries = _entries(top + b"/" + here)
        for entry in () if here and any(e.name == FROZEN for e in entries) else entries:
            name = here + entry.name
            path = shown(name)
            if entry.is_dir(follow_symlinks=False):
                apart = entry.name == OURS or shown(entry.name).casefold() in LEFT_OUT
                if apart or path.count("/") >= DEEPEST - 1 or len(path) > LONGEST:
                    skipped += entry.name not in (b".git", OURS)
                    trouble |= set() if apart else {f"a path deeper than {DEEPEST} folders"}
                else:
                    waiting.append(name + b"/")
            elif not entry.is_file(follow_symlinks=False):
                skipped += 1
            elif len(files) >= MOST_FILES:
                return Listing(
                    dict(sorted(files.items())), skipped, (*sorted(trouble), f"more than {MOST_FILES} files")
                )
            else:
                files[path] = name
    return Listing(dict(sorted(files.items())), skipped, tuple(sorted(trouble)))


def _entries(folder: bytes) -> list["os.DirEntry[bytes]"]:
    """Sorted backwards for folders, as the last one put aside is the first one looked at."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name, reverse=True)
    except OSError:
        return []
