"""What differs between two commits, for people and reviewers: names, lines, and a patch of bounded size.

The tree hash is what counts; a patch is only its picture. A file's part is bounded by itself, so that a long one
cannot push another out of sight, and what is left out is said where it is left out.
**Invariant:** git's own diff: no external program, no text conversion, whatever attributes ask for.
"""

import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import IO

from steersman.adapters.git_cli import ENVIRONMENT, started, stop
from steersman.adapters.git_repository import Git
from steersman.adapters.git_survey import shown
from steersman.contracts.workspace import Change, Touched
from steersman.errors import UnrecordableError, WorkspaceError

PATCH_BYTES = 1 << 20
FILE_BYTES = 64 << 10
_LINE_BYTES = 8 << 10
PATCH_SECONDS = 120
_DIFF = (
    "diff-tree",
    "-r",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--submodule=short",
)
_GITLINK = "160000"
_KINDS = {"100": "file", "120": "link"}
_EMPTY = (  # the blob without a byte, by both of git's digests
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)


def change_of(git: Git, base: str, commit: str) -> Change:
    """What `commit` changes in `base`."""
    raw = git.read(*_DIFF, "--raw", "-z", base, commit).split(b"\0")
    touched = [_touched(fields, name) for fields, name in zip(raw[::2], raw[1::2], strict=False)]
    touched.sort(key=lambda t: t.path)
    patch, whole = patch_of(git, base, commit)
    added, removed = _counts(git, base, commit)
    return Change(
        commit=commit,
        tree=git.tree_of(commit),
        files=tuple(t.path for t in touched),
        patch=patch,
        added=added,
        removed=removed,
        touched=tuple(touched),
        whole=whole,
    )


def _touched(fields: bytes, name: bytes) -> Touched:
    old_mode, new_mode, old, new, _ = fields.removeprefix(b":").decode().split(" ")
    path = shown(name)
    if new_mode == _GITLINK != old_mode:  # its files would be tested but not recorded
        raise UnrecordableError(f"a repository inside the tree cannot be recorded: {path}; remove its .git")
    mode = new_mode if new.strip("0") else old_mode
    return Touched(path, _digest(old), _digest(new), _KINDS.get(mode[:3], "other"), empty=new in _EMPTY)


def _digest(blob: str) -> str:
    return blob if blob.strip("0") else ""


def _counts(git: Git, base: str, commit: str) -> tuple[int, int]:
    """Lines added and removed; git writes a dash for binary files, which count as none."""
    records = git.read(*_DIFF, "--numstat", "-z", base, commit).split(b"\0")[:-1]
    pairs = [record.split(b"\t", 2)[:2] for record in records]
    added, removed = (sum(int(pair[side]) for pair in pairs if pair[side] != b"-") for side in (0, 1))
    return added, removed


def patch_of(git: Git, base: str, commit: str) -> tuple[str, bool]:
    """The patch as text, and whether it is all of it."""
    pieces = _pieces(git, (*_DIFF, "--patch", "--full-index", base, commit))
    left_out = sum(isinstance(piece, str) for piece in pieces)
    text = b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    if not left_out:
        return text.decode("utf-8", "replace"), True
    told = f"# This patch is cut in {left_out} places. The whole: git diff {base} {commit}\n"
    return told + text.decode("utf-8", "replace"), False


def _pieces(git: Git, args: tuple[str, ...]) -> list[bytes | str]:
    env = {**ENVIRONMENT, "GIT_DIR": str(git.hull.path)}
    with started(args, git.hull.path, env, subprocess.DEVNULL, subprocess.DEVNULL) as process:
        assert process.stdout is not None  # noqa: S101  it was asked for
        alarm = threading.Timer(PATCH_SECONDS, stop, (process,))
        alarm.start()
        ended = False
        try:
            pieces = list(_bounded(process.stdout))
            ended = not process.stdout.read(1)
        finally:
            alarm.cancel()
            code = process.wait() if ended else stop(process)
    if code == -signal.SIGKILL:  # too long for a look
        return [*pieces, "\n# The rest is left out: it took too long.\n"]
    if code:
        raise WorkspaceError(f"git diff-tree ended with {code}; look at `git diff {args[-2]} {args[-1]}`")
    return pieces


def _bounded(stream: "IO[bytes]") -> Iterator[bytes | str]:
    """The patch piece by piece, bounded; a piece of text is a note of ours about what was left out."""
    total = size = skipped = 0
    begins = True  # at the start of a line: a long one comes in pieces
    while line := stream.readline(_LINE_BYTES):
        if begins and line.startswith(b"diff --git "):  # within a file every line begins with a sign
            if skipped:
                yield _note(skipped)
            size = skipped = 0
            if total > PATCH_BYTES:
                yield "# The rest is left out: the patch is too long.\n"
                return  # whoever reads on finds more, and stops git
        begins = line.endswith(b"\n")
        size += len(line)
        if size <= FILE_BYTES:
            total += len(line)
            yield line
        else:
            skipped += len(line)
    if skipped:
        yield _note(skipped)


def _note(skipped: int) -> str:
    return f"\n# {skipped:,} more bytes of this file's patch are left out.\n"
