"""Where the documents lie, and how a wording of theirs becomes an identifier of ours."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "spec"


class Document(NamedTuple):
    """One document: the name of its file and the SHA-256 of the text that was transcribed."""

    file: str
    digest: str

    @property
    def path(self) -> Path:
        return FOLDER / self.file


def fingerprint_wording(words: str) -> str:
    """What is kept of a wording: enough to recognise it, nothing to read."""
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def name_wording(words: str, wordings: Mapping[str, str]) -> str:
    """The identifier that stands for a wording; a wording without one never equals an identifier."""
    wanted = fingerprint_wording(words)
    known = [name for name, fingerprint in wordings.items() if fingerprint == wanted]
    return known[0] if known else f"not transcribed: {words}"
