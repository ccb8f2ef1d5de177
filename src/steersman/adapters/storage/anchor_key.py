"""Signs anchors of tapes and frozen plans with the project's own Ed25519 key, which is created on first use.

**Invariant:** the private key never leaves its file, and checking a signature never creates a key.
"""

import base64
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from steersman.adapters.storage.durable_files import create_file
from steersman.errors import UserError
from steersman.kernel.canonical import canonical_bytes
from steersman.ports.anchors import Anchor

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
