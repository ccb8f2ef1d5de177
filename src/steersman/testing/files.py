"""Artifacts and checks without a disk or a program.

**Invariant:** what a test did not put in does not come out: an unknown command is refused, never passed.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from steersman.contracts.artifacts import ArtifactOnDisk
from steersman.contracts.commands import Argv, Command, CommandResult
from steersman.contracts.workspace import Checkout
from steersman.errors import WorkspaceError
from steersman.judges.artifact_names import MAX_ARTIFACT_DEPTH, find_file_name_problem

ArtifactKind = Literal["file", "missing", "link", "other", "unreadable", "too_long"]
# The last is a folder that cannot be opened.
ForeignFile = Literal["link", "pipe", "folder", "unreadable", "locked"]
_DIRECTORY_KINDS = ("folder", "locked")
_FOREIGN_FILE_WORDS: dict[str, tuple[ArtifactKind, str]] = {
    "link": ("link", "is a link"),
    "pipe": ("other", "is a pipe"),
    "folder": ("other", "is a folder"),
    "file": ("other", "is a file"),
    "unreadable": ("unreadable", "cannot be read: Permission denied"),
    "locked": ("unreadable", "cannot be read: Permission denied"),
    "missing": ("missing", "is not there"),
    "too_long": ("too_long", "is too long"),
}


class MemoryArtifacts:
    """Implements ports.artifacts.Artifacts; `files` is keyed by run and name."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], bytes] = {}
        self._planted: dict[tuple[str, str], ForeignFile] = {}

    def plant(self, run: str, name: str, what: ForeignFile) -> None:
        """Puts something in the place of a file or folder; what is below it is out of reach then."""
        self._planted[run, name] = what

    def write(self, run: str, name: str, data: bytes, *, durable: bool = False) -> None:  # noqa: ARG002  nothing is lost here
        if (trouble := find_file_name_problem(name)) is not None:
            raise WorkspaceError(f"{name!r} is no artifact name: it {trouble}")
        blocked = self._blocked(run, name)
        if blocked is not None and blocked.kind != "missing":
            raise self._refused("write", run, name, blocked.detail)
        if self._is(run, name) in _DIRECTORY_KINDS:
            raise self._refused("write", run, name, f"{name} is a folder")
        self._planted.pop((run, name), None)
        self.files[run, name] = data

    def read(self, run: str, name: str, most: int = 16 * 1024 * 1024) -> ArtifactOnDisk:
        name = name.removesuffix("/")
        blocked = self._blocked(run, name)
        if blocked is not None or self._is(run, name) != "file":
            return blocked or _artifact_of_kind(name, self._is(run, name))
        data = self.files[run, name]
        return ArtifactOnDisk("file", data) if len(data) <= most else _artifact_of_kind(name, "too_long")

    def names(self, run: str, folder: str, most: int = 20_000) -> tuple[str, ...]:
        start = f"{folder.removesuffix('/')}/" if folder else ""
        blocked = self._blocked(run, f"{start}x")
        if blocked is not None:
            return () if blocked.kind == "missing" else ("",)
        below = [name for o, name in {**self.files, **self._planted} if o == run and name.startswith(start)]
        kinds = {name: self._is(run, name) for name in below if self._blocked(run, name) is None}
        listed = (
            f"{name}/" if what == "locked" else name for name, what in kinds.items() if what != "folder"
        )
        return tuple(sorted(name.removeprefix(start) for name in listed)[: most + 1])

    def remove(self, run: str, name: str) -> None:
        name = name.removesuffix("/")
        blocked = self._blocked(run, name)
        if blocked is not None and blocked.kind in {"link", "unreadable"}:
            raise self._refused("remove", run, name, blocked.detail)
        if blocked is None and self._is(run, name) in _DIRECTORY_KINDS:
            raise self._refused("remove", run, name, f"{name} is a folder")
        if blocked is None:
            self._planted.pop((run, name), None)
            self.files.pop((run, name), None)

    def folder(self, run: str) -> str:
        return f"/memory/{run}"

    def _is(self, run: str, name: str) -> str:
        """What a name stands for: something planted, or file, folder or missing."""
        if (run, name) in self._planted:
            return self._planted[run, name]
        if (run, name) in self.files:
            return "file"
        known = {**self.files, **self._planted}
        below = any(owner == run and other.startswith(f"{name}/") for owner, other in known)
        return "folder" if below else "missing"

    def _blocked(self, run: str, name: str) -> ArtifactOnDisk | None:
        """What is found in the place of the first folder on the way that is none."""
        parts = name.split("/")
        if find_file_name_problem(run) is not None or "/" in run:
            raise WorkspaceError(f"{run!r} is no run")
        if {"", ".", ".."} & set(parts) or len(parts) > MAX_ARTIFACT_DEPTH or not _is_encodable_name(name):
            raise WorkspaceError(f"{name!r} is no name of anything in a run's folder")
        for above in ("/".join(parts[:n]) for n in range(1, len(parts))):
            if (what := self._is(run, above)) != "folder":
                return _artifact_of_kind(above, what)
        return None

    def _refused(self, verb: str, run: str, name: str, why: str) -> WorkspaceError:
        return WorkspaceError(f"cannot {verb} {self.folder(run)}/{name}: {why}; put that right and try again")


def _is_encodable_name(name: str) -> bool:
    return "\0" not in name and not any("\ud800" <= char <= "\udfff" for char in name)


def _artifact_of_kind(name: str, what: str) -> ArtifactOnDisk:
    kind, words = _FOREIGN_FILE_WORDS[what]
    return ArtifactOnDisk(kind, detail=f"{name.rpartition('/')[2]} {words}")


class ScriptedCommands:
    """Implements ports.commands.Commands: `judge` looks at the working tree and says what the command gives.

    A command that is neither the project's nor in `allow` is blocked, as on a real machine.
    """

    def __init__(self, judge: Callable[[Command, str], CommandResult], allow: tuple[Argv, ...] = ()) -> None:
        self._judge, self._allow = judge, allow
        self.ran: list[tuple[str, Argv]] = []  # effect and argv, in order

    def find_command_problem(self, command: Command) -> str | None:
        if command.source == "project" or command.argv in self._allow:
            return None
        return f"{command.argv[0]} is not on the list"

    async def run(
        self,
        command: Command,
        workdir: str,
        effect: str,
        seconds: int,  # noqa: ARG002  nothing here takes time
        *,
        setup: bool = False,  # noqa: ARG002  there is no network to have
    ) -> CommandResult:
        self.ran.append((effect, command.argv))
        return self._judge(command, workdir)

    async def set_up(
        self, steps: Sequence[Command], tree: Checkout, effect: str, seconds: int
    ) -> Sequence[CommandResult]:
        results: list[CommandResult] = []
        for step in steps:
            results.append(await self.run(step, tree.path, effect, seconds, setup=True))
            if results[-1].exit_code != 0:
                break
        return results


def passing_judge(tests: int = 1) -> Callable[[Command, str], CommandResult]:
    """A judge by which every command passes with so many tests."""
    return lambda c, _: fake_command_result(c, tests=tests)


def fake_command_result(
    command: Command, exit_code: int = 0, *, tests: int = 1, output: str = "", errors: str = ""
) -> CommandResult:
    """What running a command gave."""
    return CommandResult(
        name=command.name,
        argv=command.argv,
        source=command.source,
        verdict="passed" if exit_code == 0 and tests else "no_tests" if exit_code == 0 else "failed",
        exit_code=exit_code,
        tests=tests,
        output=output,
        errors=errors,
    )
