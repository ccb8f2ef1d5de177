"""Where anchors are kept: what a run's tape was at a moment, signed, outside the store.

A bare hash chain does not notice a cut tail; an anchor does. A file of the project's own takes one with every seal; a
git ref travels with the repository; a command hands it to whoever should hold it.
"""

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from steersman.adapters.anchor_key import AnchorKey, read_anchor
from steersman.adapters.git_cli import checked_name
from steersman.adapters.git_repository import Git
from steersman.errors import UserError, WorkspaceError
from steersman.kernel.canonical import canonical
from steersman.ports.anchors import Anchor, Kept

SECONDS = 60
REFS = "refs/steersman/anchors/"
Line = tuple[int, bytes, Anchor]  # number, as it is in the file, as it is read


class FileAnchors:
    """Appends to one file of the project's own, a line each."""

    def __init__(self, state: Path, path: Path | None = None) -> None:
        self.key = AnchorKey(state)
        self.path = path or state / "anchors.jsonl"
        self._read: tuple[bytes, dict[str, list[Line]], int] = (b"", {}, 0)

    def keep(self, run: str, seq: int, hash_: str, at: int) -> Anchor:
        """Appends a signed statement, durable when this returns."""
        anchor = self.key.sign(run, seq, hash_, at)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            torn = b"" if _ends_well(fd) else b"\n"
            os.write(fd, torn + canonical(anchor) + b"\n")
            os.fsync(fd)
        finally:
            os.close(fd)
        return anchor

    def anchor(self, run: str, seq: int, hash_: str, at: int) -> None:
        """The same, for whoever needs no answer."""
        self.keep(run, seq, hash_, at)

    def kept(self, run: str) -> Kept:
        lines, blanks = self._lines()
        return _judged(self.key, lines.get(run, ()), blanks, str(self.path))

    def runs(self) -> Iterable[str]:
        return tuple(self._lines()[0])

    def _lines(self) -> tuple[dict[str, list[Line]], int]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}, 0
        if data != self._read[0]:  # whoever verifies every run reads the same file as often
            self._read = (data, *_by_run(data))
        return self._read[1:]

    def newest(self, run: str) -> Anchor | None:
        """The anchor of a run that says most."""
        return max(self.kept(run).genuine, key=lambda a: a.seq, default=None)


class GitAnchors:
    """One blob a run under refs/steersman/anchors/, the newest; it travels with `git push` when asked to."""

    def __init__(self, state: Path, repository: Path) -> None:
        self.key = AnchorKey(state)
        self._git = Git(repository, state / "hulls")

    def keep(self, run: str, seq: int, hash_: str, at: int) -> Anchor:
        anchor = self.key.sign(run, seq, hash_, at)
        blob = self._git.line("hash-object", "-w", "--stdin", feed=canonical(anchor) + b"\n")
        self._git.read("update-ref", _ref(run), blob)
        return anchor

    def kept(self, run: str) -> Kept:
        try:
            answer = self._git.call("cat-file", "blob", _ref(run))
        except WorkspaceError:  # without git nothing is kept there
            return Kept()
        lines, blanks = _by_run(answer.out) if answer.code == 0 else ({}, 0)
        return _judged(self.key, lines.get(run, ()), blanks, _ref(run))

    def runs(self) -> Iterable[str]:
        try:
            answer = self._git.call("for-each-ref", "--format=%(refname)", REFS)
        except WorkspaceError:
            return ()
        return tuple(line.removeprefix(REFS) for line in answer.out.decode().splitlines())


class CommandAnchors:
    """Hands each anchor to a command of the project's, as one line of JSON on its standard input."""

    def __init__(self, state: Path, argv: Callable[[], Sequence[str] | None], folder: Path) -> None:
        """`argv` is asked for when an anchor is made: a broken configuration is nobody else's trouble."""
        self.key = AnchorKey(state)
        self._argv, self._folder = argv, folder

    def keep(self, run: str, seq: int, hash_: str, at: int) -> Anchor:
        argv = self._argv()
        if not argv:
            raise UserError(
                'no command takes anchors here: add [audit] with anchor = ["program", …] to steersman.toml'
            )
        anchor = self.key.sign(run, seq, hash_, at)
        problem = self._hand(argv, canonical(anchor) + b"\n")
        if problem:
            raise UserError(f"[audit] anchor: {argv[0]} did not take the anchor: {problem}")
        return anchor

    def _hand(self, argv: Sequence[str], line: bytes) -> str:
        try:
            done = subprocess.run(
                argv, input=line, cwd=self._folder, capture_output=True, timeout=SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        said = done.stderr.decode("utf-8", "backslashreplace").strip()[:500]
        return "" if done.returncode == 0 else f"exit code {done.returncode}: {said}"

    def kept(self, run: str) -> Kept:  # noqa: ARG002  what was handed over is elsewhere
        return Kept()

    def runs(self) -> Iterable[str]:
        return ()


def _by_run(data: bytes) -> tuple[dict[str, list[Line]], int]:
    found: dict[str, list[Line]] = {}
    blanks = 0
    for n, line in enumerate(data.splitlines(), 1):
        anchor = read_anchor(line)
        if anchor is None:
            blanks += 1
        else:
            found.setdefault(anchor.run, []).append((n, line, anchor))
    return found, blanks


def _judged(key: AnchorKey, lines: Iterable[Line], blanks: int, where: str) -> Kept:
    genuine, doubts = [], []
    for n, line, anchor in lines:
        if key.genuine(anchor) and canonical(anchor) == line:
            genuine.append(anchor)
        else:
            doubts.append(
                f"line {n} of {where} is an anchor of this run that the project's key has not signed"
            )
    return Kept(tuple(genuine), tuple(doubts), blanks)


def _ref(run: str) -> str:
    return f"{REFS}{checked_name('run', run)}"


def _ends_well(fd: int) -> bool:
    size = os.fstat(fd).st_size
    return size == 0 or os.pread(fd, 1, size - 1) == b"\n"
