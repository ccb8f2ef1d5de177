"""The port to what a person has trusted of a project's settings."""

from typing import Protocol

from steersman.contracts.limits import TrustedSettings


class TrustRecords(Protocol):
    """One record for each settings file of a project, by its path."""

    def read(self, name: str) -> TrustedSettings | None:
        """What was trusted for a settings file; None where nothing was, or the record cannot be read."""
        ...

    def record(self, name: str, trusted: TrustedSettings) -> None:
        """Trusts these lines from now on, durable when this returns."""
        ...

    def revoke(self, name: str) -> bool:
        """Forgets what was trusted; whether anything was."""
        ...
