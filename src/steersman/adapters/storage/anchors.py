"""Where anchors are kept: what a run's tape was at a moment, signed, outside the store.

A bare hash chain does not notice a cut tail; an anchor does. A file of the project's own takes one with every seal; a
git ref travels with the repository; a command gives it to a third party.
"""

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from steersman.adapters.git.git_command import require_ref_part
from steersman.adapters.git.repository import GitRepository
from steersman.adapters.storage.anchor_key import AnchorKey, parse_anchor_line
from steersman.errors import UserError, WorkspaceError
from steersman.kernel.canonical import canonical_bytes
from steersman.ports.anchors import Anchor, RunAnchors

ANCHOR_COMMAND_SECONDS = 60
ANCHOR_REFS = "refs/steersman/anchors/"
AnchorLine = tuple[int, bytes, Anchor]  # number, as it is in the file, as it is read


class FileAnchors:
    """Appends to one file of the project's own, a line each."""

    def __init__(self, state: Path, path: Path | None = None) -> None:
        self.key = AnchorKey(state)
        self.path = path or state / "anchors.jsonl"
        self._read: tuple[bytes, dict[str, list[AnchorLine]], int] = (b"", {}, 0)

    def store_anchor(self, run: str, seq: int, hash_: str, at: int) -> Anchor:
        """Appends a signed statement, durable when this returns."""
        anchor = self.key.sign(run, seq, hash_, at)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            separator = b"" if _ends_with_newline(fd) else b"\n"
            os.write(fd, separator + canonical_bytes(anchor) + b"\n")
            os.fsync(fd)
        finally:
            os.close(fd)
        return anchor

    def anchor(self, run: str, seq: int, hash_: str, at: int) -> None:
        """The same without a result."""
        self.store_anchor(run, seq, hash_, at)

    def list_anchors(self, run: str) -> RunAnchors:
        lines, unreadable = self._read_lines()
        return _check_anchor_lines(self.key, lines.get(run, ()), unreadable, str(self.path))

    def runs(self) -> Iterable[str]:
        return tuple(self._read_lines()[0])

    def _read_lines(self) -> tuple[dict[str, list[AnchorLine]], int]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}, 0
        if data != self._read[0]:  # verifying every run reads the same file as often
            self._read = (data, *_group_anchors_by_run(data))
        return self._read[1:]


class GitAnchors:
    """One blob a run under refs/steersman/anchors/, the newest; it travels with `git push` when asked to."""

    def __init__(self, state: Path, repository: Path) -> None:
        self.key = AnchorKey(state)
        self._git = GitRepository(repository, state / "hulls")

    def store_anchor(self, run: str, seq: int, hash_: str, at: int) -> Anchor:
        anchor = self.key.sign(run, seq, hash_, at)
        blob = self._git.line("hash-object", "-w", "--stdin", feed=canonical_bytes(anchor) + b"\n")
        self._git.read("update-ref", _anchor_ref(run), blob)
        return anchor

    def list_anchors(self, run: str) -> RunAnchors:
        try:
            answer = self._git.call("cat-file", "blob", _anchor_ref(run))
        except WorkspaceError:  # without git nothing is kept there
            return RunAnchors()
        lines, unreadable = _group_anchors_by_run(answer.out) if answer.code == 0 else ({}, 0)
        return _check_anchor_lines(self.key, lines.get(run, ()), unreadable, _anchor_ref(run))

    def runs(self) -> Iterable[str]:
        try:
            answer = self._git.call("for-each-ref", "--format=%(refname)", ANCHOR_REFS)
        except WorkspaceError:
            return ()
        return tuple(line.removeprefix(ANCHOR_REFS) for line in answer.out.decode().splitlines())


class CommandAnchors:
    """Gives each anchor to a command of the project, as one line of JSON on its standard input."""

    def __init__(self, state: Path, argv: Callable[[], Sequence[str] | None], directory: Path) -> None:
        """`argv` is asked for when an anchor is made: a broken configuration stops nothing else."""
        self.key = AnchorKey(state)
        self._argv, self._folder = argv, directory

    def store_anchor(self, run: str, seq: int, hash_: str, at: int) -> Anchor:
        argv = self._argv()
        if not argv:
            raise UserError(
                'no command takes anchors here: add [audit] with anchor = ["program", …] to steersman.toml'
            )
        anchor = self.key.sign(run, seq, hash_, at)
        problem = self._run_anchor_command(argv, canonical_bytes(anchor) + b"\n")
        if problem:
            raise UserError(f"[audit] anchor: {argv[0]} did not take the anchor: {problem}")
        return anchor

    def _run_anchor_command(self, argv: Sequence[str], line: bytes) -> str:
        try:
            process = subprocess.run(
                argv,
                input=line,
                cwd=self._folder,
                capture_output=True,
                timeout=ANCHOR_COMMAND_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        error_output = process.stderr.decode("utf-8", "backslashreplace").strip()[:500]
        return "" if process.returncode == 0 else f"exit code {process.returncode}: {error_output}"

    def list_anchors(self, run: str) -> RunAnchors:  # noqa: ARG002  what was handed over is elsewhere
        return RunAnchors()

    def runs(self) -> Iterable[str]:
        return ()


def _group_anchors_by_run(data: bytes) -> tuple[dict[str, list[AnchorLine]], int]:
    anchors_by_run: dict[str, list[AnchorLine]] = {}
    unreadable = 0
    for number, line in enumerate(data.splitlines(), 1):
        anchor = parse_anchor_line(line)
        if anchor is None:
            unreadable += 1
        else:
            anchors_by_run.setdefault(anchor.run, []).append((number, line, anchor))
    return anchors_by_run, unreadable


def _check_anchor_lines(
    key: AnchorKey, lines: Iterable[AnchorLine], unreadable: int, location: str
) -> RunAnchors:
    genuine, doubts = [], []
    for number, line, anchor in lines:
        if key.is_genuine(anchor) and canonical_bytes(anchor) == line:
            genuine.append(anchor)
        else:
            doubts.append(
                f"line {number} of {location} is an anchor of this run that the project's key has not signed"
            )
    return RunAnchors(tuple(genuine), tuple(doubts), unreadable)


def _anchor_ref(run: str) -> str:
    return f"{ANCHOR_REFS}{require_ref_part('run', run)}"


def _ends_with_newline(fd: int) -> bool:
    size = os.fstat(fd).st_size
    return size == 0 or os.pread(fd, 1, size - 1) == b"\n"
