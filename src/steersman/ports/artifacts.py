"""The port to a run's own files: those that people read, and those of a task, which are looked at before they count."""

from typing import Protocol

from steersman.contracts.artifacts import ArtifactOnDisk


class Artifacts(Protocol):
    """The files below a run's own directory; no link is ever followed, at no place of a name.

    What is written has a name that fits `judges.artifact_names.find_file_name_problem`. Read and removed can be
    whatever `names` tells. A name that could lead elsewhere (`..`, `/x`, a NUL) is a WorkspaceError for every method.
    """

    def write(self, run: str, name: str, data: bytes, *, durable: bool = False) -> None:
        """The file holds the old bytes or these, never half of them; a link or pipe in its place is replaced.

        What is `durable` survives a loss of power once this has returned. WorkspaceError, and nothing changed, where
        a folder is in its place, or something else in the place of a folder on the way.
        """
        ...

    def read(self, run: str, name: str, most: int = 16 * 1024 * 1024) -> ArtifactOnDisk:
        """What is in the place of a file now, with its bytes if there are no more than `most`; nothing is waited for."""
        ...

    def names(self, run: str, folder: str, most: int = 20_000) -> tuple[str, ...]:
        """Everything below a folder ("" is the run's own) that is no folder, by its name from there, sorted.

        Outside text: links, pipes and devices are among them, and names that no artifact can have; bytes that are no
        text are written out. A folder that cannot be looked into has a slash at its end; "" alone says that `folder`
        itself is none or cannot be looked into. One name more than `most` says that there are more still.
        """
        ...

    def remove(self, run: str, name: str) -> None:
        """Takes away a file that is no longer needed, or the link in its place, and the folders it leaves empty.

        One that is not there is well. WorkspaceError, and nothing removed, where a folder is in its place or a link
        on the way.
        """
        ...

    def folder(self, run: str) -> str:
        """Where a run's artifacts are."""
        ...
