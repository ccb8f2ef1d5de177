"""Where anchors are kept: what a run's tape was at a moment, signed, outside the store.

A bare hash chain does not notice a cut tail; an anchor does. A file of the project's own takes one with every seal; a
git ref travels with the repository; a command gives it to a third party.
"""

import base64
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from steersman.adapters.git.git_command import require_ref_part
from steersman.adapters.git.repository import GitRepository
from steersman.adapters.storage.durable_files import create_file
from steersman.errors import UserError, WorkspaceError
from steersman.kernel.canonical import canonical_bytes
from steersman.ports.anchors import Anchor, RunAnchors

# ── anchor key ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# Signs anchors of tapes and frozen plans with the project's own Ed25519 key, which is created on first use.
#
# **Invariant:** the private key never leaves its file, and checking a signature never creates a key.


_decode_anchor = msgspec.json.Decoder(Anchor).decode


class AnchorKey:
    """Signs with the private key in `anchor.key`, and checks what it has signed."""

    def __init__(self, state: Path) -> None:
        self._private = state / "anchor.key"
        self._public = state / "anchor.pub"

    def sign(self, run: str, seq: int, hash_: str, at: int) -> Anchor:
        """The statement with its signature."""
        private = self._load_key()
        signature = private.sign(_anchor_statement(run, seq, hash_, at))
        return Anchor(run, seq, hash_, at, self.public(), base64.b64encode(signature).decode())

    def is_genuine(self, anchor: Anchor) -> bool:
        """Whether this project's key has signed it."""
        try:
            signature = base64.b64decode(anchor.signature, validate=True)
        except ValueError:
            return False
        statement = _anchor_statement(anchor.run, anchor.seq, anchor.hash, anchor.at)
        is_canonical = base64.b64encode(signature).decode() == anchor.signature
        return is_canonical and self.has_signed(statement, anchor.key, signature)

    def signature(self, data: bytes) -> tuple[str, bytes]:
        """The public key as a name, and the signature over some bytes."""
        private = self._load_key()
        return self.public(), private.sign(data)

    def has_signed(self, data: bytes, key: str, signature: bytes) -> bool:
        """Whether this project's key has signed these bytes; `key` is the claimed public key."""
        return self._public.exists() and key == self.public() and is_signature_valid(key, data, signature)

    def public(self) -> str:
        """The public key, for anchors kept elsewhere; made with the private one when there is none yet."""
        if not self._public.exists():
            self._load_key()
        return self._public.read_text(encoding="ascii", errors="replace").removesuffix("\n")

    def _load_key(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if not self._private.exists():
            self._private.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_key_file_once(self._private, Ed25519PrivateKey.generate().private_bytes_raw())
        try:
            key = Ed25519PrivateKey.from_private_bytes(self._private.read_bytes())
        except ValueError:
            raise UserError(f"{self._private} is no signing key any more: restore it from a backup") from None
        if not self._public.exists():
            _write_key_file_once(self._public, base64.b64encode(key.public_key().public_bytes_raw()) + b"\n")
        return key


def is_signature_valid(key: str, data: bytes, signature: bytes) -> bool:
    """Whether a public key has signed these bytes; what is no key has signed nothing."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True)).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def read_public_key_file(path: str) -> str:
    """The public key in a file such as another project's anchor.pub."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        with open(path, encoding="ascii") as key_file:
            key = key_file.read(1000).strip()
        Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} holds no public key ({error}): it should be one line, as in anchor.pub"
        ) from None
    return key


def parse_anchor_line(line: bytes | str) -> Anchor | None:
    """The anchor in a line, or None when it holds none."""
    try:
        return _decode_anchor(line)
    except (msgspec.MsgspecError, UnicodeError):
        return None


def _anchor_statement(run: str, seq: int, hash_: str, at: int) -> bytes:
    return canonical_bytes({"run": run, "seq": seq, "hash": hash_, "at": at})


def _write_key_file_once(path: Path, data: bytes) -> None:
    """Never over one that is there."""
    with suppress(FileExistsError):
        create_file(path, data)


# ── anchors ────────────────────────────────────────────────────────────────────────────────


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
