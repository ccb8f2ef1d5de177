"""The registries of a project: what is built in with what the project adds, and those that plans were made with."""

from typing import Protocol

import msgspec

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.judges.planning.registry import Registry


class LoadedRegistry(msgspec.Struct, frozen=True):
    """A registry as far as it could be read; with a problem nothing may be planned."""

    registry: Registry
    problems: tuple[DocumentProblem, ...]


class Registries(Protocol):
    """Where registries are read and kept."""

    def built_in(self) -> LoadedRegistry:
        """What comes with steersman."""
        ...

    def load(self, folder: str = "") -> LoadedRegistry:
        """What is built in, with what the project's folder (or another) adds and replaces."""
        ...

    def store_registry(self, registry: Registry) -> str:
        """Keeps a registry under its digest, which it returns."""
        ...

    def find_stored_registry(self, start: str) -> Registry | None:
        """The registry whose digest begins so; None where none or several do."""
        ...

    def digests(self) -> tuple[str, ...]:
        """The digests of all that are kept, sorted."""
        ...
