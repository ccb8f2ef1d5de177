"""Anchors: what a run's tape was at a moment, signed, kept outside the store.

A bare hash chain does not notice a cut tail; an anchor does. **Invariant:** the private key never leaves its file.
"""

import base64
import json
import os
from pathlib import Path
from typing import Any

from steersman.kernel.canonical import canonical


class FileAnchors:
    """Signs with a key of the project's own and appends to one file."""

    def __init__(self, state: Path) -> None:
        self._key = state / "anchor.key"
        self._public = state / "anchor.pub"
        self.path = state / "anchors.jsonl"

    def anchor(self, run: str, seq: int, hash_: str, at: int) -> None:
        """Appends a signed statement: this run had this many entries, ending in this hash."""
        self.write(self.make(run, seq, hash_, at))

    def make(self, run: str, seq: int, hash_: str, at: int) -> dict[str, Any]:
        """The statement with its signature."""
        told = {"run": run, "seq": seq, "hash": hash_, "at": at}
        signature = base64.b64encode(self._private().sign(canonical(told))).decode()
        return {**told, "key": self.public(), "signature": signature}

    def write(self, anchor: dict[str, Any]) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, json.dumps(anchor, sort_keys=True).encode() + b"\n")
            os.fsync(fd)
        finally:
            os.close(fd)

    def newest(self, run: str, path: Path | None = None) -> dict[str, Any] | None:
        """The last genuine anchor of a run."""
        try:
            lines = (path or self.path).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return None
        found = None
        for line in lines:
            anchor = _read(line)
            if anchor is not None and anchor["run"] == run and self.genuine(anchor):
                found = anchor
        return found

    def genuine(self, anchor: dict[str, Any]) -> bool:
        """Whether this project's key has signed it."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        told = {k: anchor[k] for k in ("run", "seq", "hash", "at")}
        try:
            key = Ed25519PublicKey.from_public_bytes(base64.b64decode(self.public()))
            key.verify(base64.b64decode(anchor["signature"]), canonical(told))
        except (InvalidSignature, ValueError):
            return False
        return True

    def public(self) -> str:
        """The public key, for whoever keeps anchors elsewhere."""
        self._private()
        return self._public.read_text().strip()

    def _private(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        if not self._key.exists():
            self._key.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            made = Ed25519PrivateKey.generate()
            _write_private(self._key, made.private_bytes_raw())
            self._public.write_text(
                base64.b64encode(made.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
                + "\n"
            )
        return Ed25519PrivateKey.from_private_bytes(self._key.read_bytes())


def _write_private(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(data)


def _read(line: str) -> dict[str, Any] | None:
    try:
        anchor = json.loads(line)
    except ValueError:
        return None
    known = isinstance(anchor, dict) and {"run", "seq", "hash", "at", "signature"} <= anchor.keys()
    return anchor if known else None
