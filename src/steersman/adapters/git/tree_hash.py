"""Reads what a working tree holds as a tree hash: tracked and untracked files, without ignored and included ones.

An agent may leave anything in a tree: a pipe called `.gitignore` keeps git waiting for ever, and git passes over a locked
directory, a `.git` deep inside or a device without a word. So the tree is surveyed before git sees it.
**Invariant:** the survey opens only directories and follows no link; what is in a tree is read from its files, never from what a `.git` inside claims; what cannot be
recorded exactly is refused by name, or left out as git leaves it out, and never half recorded.
"""

import hashlib
import os
import shutil
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from steersman.adapters.git.git_command import GIT_ENVIRONMENT, decode_git_path, kill_git_process, start_git
from steersman.adapters.git.repository import GitRepository, TreeDifference, parse_raw_differences
from steersman.contracts.workspace import Change, TouchedPath
from steersman.errors import UnrecordableTreeError, WorkspaceError

MAX_CHANGED_FILES = 100_000  # files that one change may add or touch
MAX_CHANGED_BYTES = 1 << 30  # and what they may weigh together
_MAX_LISTED_NAMES = 5
MAX_TREE_ENTRIES = 2_000_000
_GIT_CONTROL_FILES = frozenset({b".gitignore", b".gitattributes", b".gitmodules", b".mailmap"})


class TreeSurvey(msgspec.Struct, frozen=True):
    """What needs a second look; paths are relative to the tree, as bytes."""

    special: tuple[bytes, ...]  # pipes, sockets, devices
    repositories: tuple[bytes, ...]  # directories below the top that have a `.git`


class TreeScan(NamedTuple):
    """What a tree holds."""

    tree: str
    special: tuple[bytes, ...]  # pipes, sockets and devices that were left out


class WorkingTreeScanner:
    """Reads one tree into an index of its own; `index` is written, and holds stat data for the next time."""

    def __init__(self, git: GitRepository, path: Path, index: Path, included: tuple[str, ...] = ()) -> None:
        self._git, self._path, self._index = git, path, index
        self._included = {os.fsencode(name) for name in included}
        self._env = {"GIT_WORK_TREE": str(path), "GIT_INDEX_FILE": str(index)}

    def scan(self, commit: str, kept_index: Path) -> TreeScan:
        """Everything in the tree, as what became of `commit`; `known` is the index that was kept for it, if it is."""
        survey_result = survey_working_tree(self._path)
        if kept_index.exists():
            # With its date: git looks twice at files as young as their index.
            shutil.copy2(kept_index, self._index)
        else:
            self._call_git("read-tree", commit)
        self._refuse_repositories(survey_result)
        (gone, changed), others = self._list_changed(), self._list_untracked()
        if not gone and not changed and not others:
            return TreeScan(self._git.tree_of(commit), self._not_ignored(survey_result.special))
        self._check_sizes(changed + others)
        self._update_index(
            b"".join(b"0 %s\t%s\0" % (b"0" * len(commit), name) for name in gone), "--index-info"
        )
        recorded_names = changed + others
        self._update_index(
            b"".join(name + b"\0" for name in recorded_names), "--add", "--remove", "--replace", "--stdin"
        )
        self._refuse_rest()
        self._update_index(self._only_converted(commit), "--index-info")
        left_out = self._not_ignored(survey_result.special)
        return TreeScan(self._call_git("write-tree").decode().strip(), left_out)

    # -- what is there -------------------------------------------------------------------------------------------------

    def _list_changed(self) -> tuple[list[bytes], list[bytes]]:
        """Tracked files that are gone, and those that are not as they were; what a submodule holds is no part of it."""
        raw = self._call_git("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all")
        gone: list[bytes] = []
        changed: list[bytes] = []
        for entry in parse_raw_differences(raw):
            is_gone = entry.status == "D" or self._is_special(entry.path)
            (gone if is_gone else changed).append(entry.path)
        return gone, changed

    def _list_untracked(self) -> list[bytes]:
        names = self._call_git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0")[:-1]
        return [name for name in names if not self._is_included(name)]

    def _is_included(self, name: bytes) -> bool:
        """Whether it is, or lies below, something that was copied in or set up: no part of the tree."""
        while name:
            if name in self._included:
                return True
            name = name.rpartition(b"/")[0]
        return False

    def _not_ignored(self, names: tuple[bytes, ...]) -> tuple[bytes, ...]:
        if not names:
            return ()
        # This command knows no literal names; behind "./" none has a meaning of its own.
        env = {**self._env, "GIT_LITERAL_PATHSPECS": "0"}
        feed = b"".join(b"./" + name + b"\0" for name in names)
        answer = self._git.call("check-ignore", "-z", "--stdin", cwd=self._path, env=env, feed=feed)
        if answer.code not in {0, 1}:
            raise WorkspaceError(
                f"git cannot say what is ignored: {answer.err.strip()[:500]}; correct that first"
            )
        ignored = set(answer.out.split(b"\0"))
        return tuple(name for name in names if b"./" + name not in ignored)

    def _is_special(self, name: bytes) -> bool:
        try:
            mode = os.lstat(self._path_of(name)).st_mode
        except OSError:
            return False
        return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))

    # -- what cannot be recorded ---------------------------------------------------------------------------------------

    def _refuse_repositories(self, survey_result: TreeSurvey) -> None:
        """Files of a repository inside would be tested but not recorded; a submodule's never are part of the tree."""
        if not survey_result.repositories:
            return
        submodules = self._list_submodules()
        nested_repositories = tuple(
            n
            for n in survey_result.repositories
            if n not in submodules
            and not any(n.startswith(s + b"/") for s in submodules)
            and not self._is_included(n)
        )
        for name in self._not_ignored(nested_repositories):
            raise UnrecordableTreeError(
                f"a repository inside the tree cannot be recorded: {decode_git_path(name)}; remove its .git"
            )

    def _list_submodules(self) -> set[bytes]:
        entries = self._call_git("ls-files", "--stage", "-z").split(b"\0")[:-1]
        return {entry.partition(b"\t")[2] for entry in entries if entry.startswith(b"160000 ")}

    def _check_sizes(self, names: list[bytes]) -> None:
        if len(names) > MAX_CHANGED_FILES:
            raise UnrecordableTreeError(f"{len(names):,} files are new or changed, and {MAX_CHANGED_FILES:,} are the most that is "
                                 f"recorded: such as {_list_some_names(names)}; remove them or add them to .gitignore")  # fmt: skip
        sizes = {name: self._file_size(name) for name in names}
        if sum(sizes.values()) > MAX_CHANGED_BYTES:
            largest = sorted(names, key=lambda name: -sizes[name])
            raise UnrecordableTreeError(f"new and changed files weigh {sum(sizes.values()):,} bytes, and {MAX_CHANGED_BYTES:,} are the most "
                                 f"that is recorded: such as {_list_some_names(largest)}; remove them or add them to .gitignore")  # fmt: skip

    def _file_size(self, name: bytes) -> int:
        try:
            file_stat = os.lstat(self._path_of(name))
        except OSError:
            return 0
        return file_stat.st_size if stat.S_ISREG(file_stat.st_mode) else 0

    def _refuse_rest(self) -> None:
        """Whatever git has passed over without a word, such as a name that it never keeps."""
        rest = [*self._list_untracked(), *self._list_changed()[1]]
        if rest:
            raise UnrecordableTreeError(
                f"git does not record {_list_some_names(rest)}; rename or remove what has such a name"
            )

    # -- the index -----------------------------------------------------------------------------------------------------

    def _only_converted(self, commit: str) -> bytes:
        """The old entries of files that only git's own conversion of line endings made look changed."""
        raw = self._call_git("diff-index", "--cached", "--raw", "-z", "--no-renames", commit)
        return b"".join(
            f"{entry.old_mode} {entry.old_blob}\t".encode() + entry.path + b"\0"
            for entry in parse_raw_differences(raw)
            if entry.old_mode == entry.new_mode
            and entry.old_mode.startswith("100")
            and _hash_blob(self._path_of(entry.path), len(entry.old_blob)) == entry.old_blob
        )

    def _update_index(self, feed: bytes, *flags: str) -> None:
        if feed:
            self._call_git("update-index", "-z", *flags, feed=feed)

    def _call_git(self, *args: str, feed: bytes = b"") -> bytes:
        return self._git.read(*args, cwd=self._path, env=self._env, feed=feed)

    def _path_of(self, name: bytes) -> bytes:
        return os.path.join(os.fsencode(self._path), name)


def _list_some_names(names: list[bytes]) -> str:
    text = ", ".join(decode_git_path(name) for name in names[:_MAX_LISTED_NAMES])
    return f"{text} and {len(names) - _MAX_LISTED_NAMES:,} more" if len(names) > _MAX_LISTED_NAMES else text


def _hash_blob(path: bytes, digits: int) -> str:
    """The hash of a file's own bytes, as git stores them without any conversion."""
    digest = hashlib.new("sha1" if digits == 40 else "sha256", usedforsecurity=False)
    with open(path, "rb") as file:
        digest.update(b"blob %d\0" % os.fstat(file.fileno()).st_size)
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def survey_working_tree(tree: Path) -> TreeSurvey:
    """Goes through the whole tree; UnrecordableTreeError for one that cannot be gone through."""
    top = os.fsencode(tree)
    special: list[bytes] = []
    repositories: list[bytes] = []
    pending, entry_count = [b""], 0
    while pending:
        directory = pending.pop()
        entries = _list_tree_directory(top, directory)
        entry_count += len(entries)
        if entry_count > MAX_TREE_ENTRIES:
            raise UnrecordableTreeError(
                f"the tree has more than {MAX_TREE_ENTRIES:,} entries; remove what does not belong there"
            )
        for entry in entries:
            name = directory + entry.name
            if entry.name == b".git":
                if directory:
                    repositories.append(directory.rstrip(b"/"))
            elif entry.is_dir(follow_symlinks=False):
                pending.append(name + b"/")
            elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                special.append(name)
                if entry.name in _GIT_CONTROL_FILES:
                    raise UnrecordableTreeError(
                        f"{decode_git_path(name)} is no file: git would wait for it for ever; remove it"
                    )
    return TreeSurvey(tuple(special), tuple(repositories))


def _list_tree_directory(top: bytes, directory: bytes) -> list["os.DirEntry[bytes]"]:
    path = top + b"/" + directory
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except PermissionError:
        return _unlock_and_list_directory(path, directory)
    except OSError as error:  # a path can be made longer than anyone can name
        raise UnrecordableTreeError(
            f"{decode_git_path(directory)} cannot be read: {error.strerror}; remove it"
        ) from error


def _unlock_and_list_directory(path: bytes, directory: bytes) -> list["os.DirEntry[bytes]"]:
    """A directory that its owner locked is unlocked: its rights are no part of what is recorded."""
    try:
        os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) | stat.S_IRWXU)
        with os.scandir(path) as entries:
            return list(entries)
    except OSError as error:
        raise UnrecordableTreeError(
            f"{decode_git_path(directory)} cannot be read: {error.strerror}; make it readable or remove it"
        ) from error


# ── change diff ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# What differs between two commits, for people and reviewers: names, lines, and a patch of bounded size.
#
# The tree hash is what counts; a patch is only its picture. A file's part is bounded by itself, so that a long one
# cannot push another out of sight, and a note stands where something is left out.
# **Invariant:** git's own diff: no external program, no text conversion, whatever attributes ask for.


MAX_PATCH_BYTES = 1 << 20
MAX_FILE_PATCH_BYTES = 64 << 10
_PATCH_LINE_BYTES = 8 << 10
PATCH_SECONDS = 120
_DIFF_TREE_ARGS = (
    "diff-tree",
    "-r",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--submodule=short",
)
_GITLINK_MODE = "160000"
_MODE_KINDS = {"100": "file", "120": "link"}
_EMPTY_BLOBS = (  # the blob without a byte, by both of git's digests
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)


def read_commit_change(git: GitRepository, base: str, commit: str) -> Change:
    """What `commit` changes in `base`."""
    raw = git.read(*_DIFF_TREE_ARGS, "--raw", "-z", base, commit)
    touched_paths = sorted(map(_to_touched_path, parse_raw_differences(raw)), key=lambda t: t.path)
    patch, is_complete = read_bounded_patch(git, base, commit)
    added, removed = _count_changed_lines(git, base, commit)
    return Change(
        commit=commit,
        tree=git.tree_of(commit),
        files=tuple(t.path for t in touched_paths),
        patch=patch,
        added=added,
        removed=removed,
        touched=tuple(touched_paths),
        whole=is_complete,
    )


def _to_touched_path(entry: TreeDifference) -> TouchedPath:
    path = decode_git_path(entry.path)
    if entry.new_mode == _GITLINK_MODE != entry.old_mode:  # its files would be tested but not recorded
        raise UnrecordableTreeError(
            f"a repository inside the tree cannot be recorded: {path}; remove its .git"
        )
    mode = entry.new_mode if entry.blob.strip("0") else entry.old_mode
    kind = _MODE_KINDS.get(mode[:3], "other")
    old, new = _blob_or_empty(entry.old_blob), _blob_or_empty(entry.blob)
    return TouchedPath(path, old, new, kind, empty=new in _EMPTY_BLOBS)


def _blob_or_empty(blob: str) -> str:
    return blob if blob.strip("0") else ""


def _count_changed_lines(git: GitRepository, base: str, commit: str) -> tuple[int, int]:
    """Lines added and removed; git writes a dash for binary files, which count as none."""
    records = git.read(*_DIFF_TREE_ARGS, "--numstat", "-z", base, commit).split(b"\0")[:-1]
    pairs = [record.split(b"\t", 2)[:2] for record in records]
    added, removed = (sum(int(pair[side]) for pair in pairs if pair[side] != b"-") for side in (0, 1))
    return added, removed


def read_bounded_patch(git: GitRepository, base: str, commit: str) -> tuple[str, bool]:
    """The patch as text, and whether it is all of it."""
    pieces = _read_patch_pieces(git, (*_DIFF_TREE_ARGS, "--patch", "--full-index", base, commit))
    omission_count = sum(isinstance(piece, str) for piece in pieces)
    text = b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    if not omission_count:
        return text.decode("utf-8", "replace"), True
    header = f"# This patch is cut in {omission_count} places. The whole: git diff {base} {commit}\n"
    return header + text.decode("utf-8", "replace"), False


def _read_patch_pieces(git: GitRepository, args: tuple[str, ...]) -> list[bytes | str]:
    env = {**GIT_ENVIRONMENT, "GIT_DIR": str(git.isolated_directory.path)}
    with start_git(args, git.isolated_directory.path, env, subprocess.DEVNULL, subprocess.DEVNULL) as process:
        assert process.stdout is not None  # noqa: S101  it was asked for
        timer = threading.Timer(PATCH_SECONDS, kill_git_process, (process,))
        timer.start()
        at_end = False
        try:
            pieces = list(_bound_patch_lines(process.stdout))
            at_end = not process.stdout.read(1)
        finally:
            timer.cancel()
            code = process.wait() if at_end else kill_git_process(process)
    if code == -signal.SIGKILL:  # too long for a look
        return [*pieces, "\n# The rest is left out: it took too long.\n"]
    if code:
        raise WorkspaceError(f"git diff-tree ended with {code}; look at `git diff {args[-2]} {args[-1]}`")
    return pieces


def _bound_patch_lines(stream: "IO[bytes]") -> Iterator[bytes | str]:
    """The patch piece by piece, bounded; a piece of type str is a note about what was left out."""
    total = size = skipped = 0
    at_line_start = True  # at the start of a line: a long one comes in pieces
    while line := stream.readline(_PATCH_LINE_BYTES):
        if at_line_start and line.startswith(b"diff --git "):  # within a file every line begins with a sign
            if skipped:
                yield _omitted_bytes_note(skipped)
            size = skipped = 0
            if total > MAX_PATCH_BYTES:
                yield "# The rest is left out: the patch is too long.\n"
                return  # the caller finds more to read, and stops git
        at_line_start = line.endswith(b"\n")
        size += len(line)
        if size <= MAX_FILE_PATCH_BYTES:
            total += len(line)
            yield line
        else:
            skipped += len(line)
    if skipped:
        yield _omitted_bytes_note(skipped)


def _omitted_bytes_note(skipped: int) -> str:
    return f"\n# {skipped:,} more bytes of this file's patch are left out.\n"
