"""The files of a project: those that git knows or does not ignore, else whatever lies there.

**Invariant:** nothing is opened but directories, no link is followed, and what is listed is sorted.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from steersman.adapters.git.git_command import decode_git_path, encode_git_settings, run_git
from steersman.adapters.git.repository import GitRepository
from steersman.errors import WorkspaceError
from steersman.judges.facts.choice import EXCLUDED_DIRECTORIES, find_excluded_directory

MAX_LISTED_FILES = 200_000
MAX_PATH_DEPTH = 40
MAX_PATH_CHARACTERS = 4_096  # characters of a path
FILE_LISTING_SECONDS = 60
# Our folder; a file that every frozen plan has.
STEERSMAN_DIRECTORY, FROZEN_PLAN_FILE = (b".steersman", b"plan.dsse.json")
_LS_FILES_ARGS = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")


class ProjectListing(NamedTuple):
    """The project's own files by their paths, how much was left out, and why it is not all."""

    files: dict[str, bytes]  # as text, sorted; as it is called on the disk
    skipped: int
    trouble: tuple[str, ...]


def list_project_files(project: Path, isolated_root: Path) -> ProjectListing:
    """Through git where the project is in a repository, `folder` taking the isolated git directory; else by walking."""
    if not os.path.lexists(project / ".git"):
        return _walk_project_files(project, ())
    try:
        return _filter_own_files(project, _list_files_known_to_git(project, isolated_root))
    except WorkspaceError:
        return _walk_project_files(
            project, ("git could not list the files, so that ignored ones are among them",)
        )


def _list_files_known_to_git(project: Path, isolated_root: Path) -> list[bytes]:
    git = GitRepository(project, isolated_root)
    location = git.require_repository
    git_paths = {
        "GIT_WORK_TREE": str(location.top),
        "GIT_INDEX_FILE": str(location.gitdir / "index"),
        "GIT_DIR": str(git.isolated_directory.path),
    }
    answer = run_git(
        _LS_FILES_ARGS,
        project,
        {**dict(encode_git_settings(location.checkout)), **git_paths},
        seconds=FILE_LISTING_SECONDS,
    )
    if answer.code != 0:
        raise WorkspaceError(
            f"git cannot list the files of {project}: {answer.err.strip()[:500]}; correct that first"
        )
    return answer.out.split(b"\0")[:-1]


def _filter_own_files(project: Path, names: list[bytes]) -> ProjectListing:
    """Of what git lists: plain files that are there and are not vendored."""
    top, real_directories = os.fsencode(project), {b"": True}
    files: dict[str, bytes] = {}
    paths: set[str] = set()
    odd_count, problems = 0, set[str]()
    for name in sorted(_drop_steersman_files(set(names))):
        path = decode_git_path(name)
        if (outside := find_excluded_directory(path)) is not None:
            paths.add(outside)
        elif len(path) > MAX_PATH_CHARACTERS or path.count("/") >= MAX_PATH_DEPTH:
            odd_count, problems = odd_count + 1, problems | {f"a path deeper than {MAX_PATH_DEPTH} folders"}
        elif len(files) >= MAX_LISTED_FILES:
            problems |= {f"more than {MAX_LISTED_FILES} files"}
            break
        elif _is_plain_project_file(top, name, real_directories):
            files[path] = name
        else:
            odd_count += 1
    return ProjectListing(dict(sorted(files.items())), len(paths) + odd_count, tuple(sorted(problems)))


def _drop_steersman_files(names: set[bytes]) -> set[bytes]:
    """Without steersman's own files: a plan must not change because one was made before."""
    plans = {name.rpartition(b"/")[0] + b"/" for name in names if name.endswith(b"/" + FROZEN_PLAN_FILE)}
    return {
        n
        for n in names
        if not n.startswith(STEERSMAN_DIRECTORY + b"/") and n.rpartition(b"/")[0] + b"/" not in plans
    }


def _is_plain_project_file(top: bytes, name: bytes, real_directories: dict[bytes, bool]) -> bool:
    """A file, not a link to one, and behind no folder that is a link."""
    try:
        return _is_real_directory(top, name.rpartition(b"/")[0], real_directories) and stat.S_ISREG(
            os.lstat(top + b"/" + name).st_mode
        )
    except OSError:
        return False


def _is_real_directory(top: bytes, directory: bytes, directories: dict[bytes, bool]) -> bool:
    if directory not in directories:
        is_parent_real = _is_real_directory(top, directory.rpartition(b"/")[0], directories)
        directories[directory] = is_parent_real and stat.S_ISDIR(os.lstat(top + b"/" + directory).st_mode)
    return directories[directory]


def _walk_project_files(project: Path, notes: tuple[str, ...]) -> ProjectListing:
    """Everything below, folder by folder; links and what is no plain file are passed over."""
    top = os.fsencode(project)
    files: dict[str, bytes] = {}
    pending, skipped, problems = [b""], 0, set(notes)
    while pending:
        directory = pending.pop()
        entries = _list_sorted_entries(top + b"/" + directory)
        for entry in () if directory and any(e.name == FROZEN_PLAN_FILE for e in entries) else entries:
            name = directory + entry.name
            path = decode_git_path(name)
            if entry.is_dir(follow_symlinks=False):
                is_excluded = (
                    entry.name == STEERSMAN_DIRECTORY
                    or decode_git_path(entry.name).casefold() in EXCLUDED_DIRECTORIES
                )
                if is_excluded or path.count("/") >= MAX_PATH_DEPTH - 1 or len(path) > MAX_PATH_CHARACTERS:
                    skipped += entry.name not in (b".git", STEERSMAN_DIRECTORY)
                    problems |= set() if is_excluded else {f"a path deeper than {MAX_PATH_DEPTH} folders"}
                else:
                    pending.append(name + b"/")
            elif not entry.is_file(follow_symlinks=False):
                skipped += 1
            elif len(files) >= MAX_LISTED_FILES:
                return ProjectListing(
                    dict(sorted(files.items())),
                    skipped,
                    (*sorted(problems), f"more than {MAX_LISTED_FILES} files"),
                )
            else:
                files[path] = name
    return ProjectListing(dict(sorted(files.items())), skipped, tuple(sorted(problems)))


def _list_sorted_entries(directory: bytes) -> list["os.DirEntry[bytes]"]:
    """Sorted backwards for folders, as the last one put aside is the first one looked at."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=lambda entry: entry.name, reverse=True)
    except OSError:
        return []
