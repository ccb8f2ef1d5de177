"""The port for sandboxes: what a program may write, read and reach, and nothing else.

**Invariant:** a sandbox only removes access. What is not named here is not there for the program.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

NOT_ISOLATED = "approval not isolated"  # the words for it, on tape and on every screen


class BindMount(msgspec.Struct, frozen=True):
    """A file or directory that a program finds at another path."""

    source: str
    shown_at: str
    writable: bool = False


class SandboxPolicy(msgspec.Struct, frozen=True):
    """What one program may do. Paths are absolute and, but for `binds`, keep their place inside."""

    writes: tuple[str, ...] = ()  # bound read-write: the worktree, the call's own home
    reads: tuple[str, ...] = ()  # bound read-only although they lie under something hidden
    network: tuple[str, ...] | None = ()  # () none; ("host:port", ...) only these; None the host's network
    binds: tuple[BindMount, ...] = ()  # the working tree at its fixed path, and what is mounted over it
    tree: str = ""  # the working tree outside: the first of `binds` shows it


class SandboxDescriptors(msgspec.Struct, frozen=True):
    """Options for two descriptors: on one the sandbox reports its first process, at the other it waits until it may begin."""

    tells: str
    waits: str


class WrittenSpace(Protocol):
    """What a program may write, and what it has written."""

    def find_excess(self, pid: int = 0) -> str:
        """Why the program has to end, or nothing; `pid` is the first process of the sandbox, where it is known."""
        ...

    def delete_written(self, keep: Collection[str] = ()) -> None:
        """Deletes the files it has written, but for those in `keep`."""
        ...


class SandboxLaunch(msgspec.Struct, frozen=True):
    """What to start instead; `refused` fills while the program runs with the places it was not let through to."""

    argv: tuple[str, ...]
    env: dict[str, str]
    refused: list[str]
    doors: SandboxDescriptors | None = None  # of a sandbox that no process leaves and that ends with us
    space: WrittenSpace | None = None  # how much it may write


class Sandbox(Protocol):
    """Runs programs in sandboxes, or reports that it cannot."""

    isolated: bool
    why: str  # why not, where it does not; words of steersman, for they go on tape
    fix: str  # and what to do about it

    def wrap(
        self, argv: Sequence[str], policy: SandboxPolicy, env: Mapping[str, str], cwd: str
    ) -> AbstractAsyncContextManager[SandboxLaunch]:
        """What to start so that `argv` runs in the sandbox; it has to be started and to end within the context.

        `env` is all the program gets, beside what the sandbox needs itself (TMPDIR, the proxy of a narrow network).
        """
        ...
