"""Documents that people write: read strictly, with the line of every field, and written whole or not at all."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

DocumentFormat = Literal["json", "yaml"]

MAX_DOCUMENT_BYTES = 1024 * 1024  # of one document


class ParsedDocument(msgspec.Struct, frozen=True):
    """A document as it stands in a file."""

    value: Any
    lines: Mapping[tuple[str | int, ...], int]  # from 1
    form: DocumentFormat
    file: str
    text: str


class DocumentFiles(Protocol):
    """Files that hold one document each."""

    def read(self, path: str, name: str) -> ParsedDocument:
        """The document in a file; `name` is that of its schema. A ContractError has all problems of its form."""
        ...

    def parse(self, data: bytes, file: str, name: str) -> ParsedDocument:
        """The same of bytes that came from elsewhere."""
        ...

    def replace_seal(self, was: ParsedDocument, value: Any, name: str) -> tuple[ParsedDocument, bool]:
        """The document with another value for its references and its checksum; whether all comments could be kept."""
        ...

    def render(self, value: Any, form: DocumentFormat) -> str:
        """A document as a new file would hold it."""
        ...

    def write(self, path: str, text: str, *, new: bool) -> None:
        """The file holds the old bytes or the new ones, never half of them; with `new` there must be none yet."""
        ...
