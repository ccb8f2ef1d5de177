"""What differs between two commits, for people and reviewers: names, lines, and a patch of bounded size.

The tree hash is what counts; a patch is only its picture. A file's part is bounded by itself, so that a long one
cannot push another out of sight, and a note stands where something is left out.
**Invariant:** git's own diff: no external program, no text conversion, whatever attributes ask for.
"""

import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import IO

from steersman.adapters.git.git_command import GIT_ENVIRONMENT, decode_git_path, kill_git_process, start_git
from steersman.adapters.git.repository import GitRepository, TreeDifference, parse_raw_differences
from steersman.contracts.workspace import Change, TouchedPath
from steersman.errors import UnrecordableTreeError, WorkspaceError

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
    """The patch piece by piece, bounded; a piece of text is a note of ours about what was left out."""
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
