"""What was found where an artifact should be; apart from what is made of it, so that a port can speak of it at once."""

from typing import Literal, NamedTuple


class ArtifactOnDisk(NamedTuple):
    """What is in an artifact's place; `detail` is outside text and says more where it is no file."""

    kind: Literal["file", "missing", "link", "other", "unreadable", "too_long"]
    data: bytes = b""
    detail: str = ""
