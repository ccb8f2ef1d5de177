"""What a person has trusted of a repository's settings."""

import msgspec


class TrustedSettings(msgspec.Struct, frozen=True):
    """The lines of one settings file that need trust, as they were when a person read them."""

    lines: tuple[tuple[str, str], ...]
    person: str
    at: int  # milliseconds since 1970
