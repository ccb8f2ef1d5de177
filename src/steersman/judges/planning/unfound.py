"""What an intent cites and nobody can find: by field and line for whoever checks it, by command for whoever was refused.

**Invariant:** what planning would not find is told, and nothing else; what the registry lacks is the precheck's to tell.
"""

from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.words import Ref
from steersman.judges.planning.evidence import Shelf
from steersman.judges.planning.places import NO_LINES, Lines, Path, problem

CHANGED = "draft it anew, or cite what is there now and seal it again: the project has changed since"
_OTHERWISE = "cite what can be found; `steersman facts` and `steersman memory list` have it"
_REGISTERED = ("registry://", "rule://")


class Unfound(NamedTuple):
    """What leads nowhere: cited for commands, and only for the intent as a whole."""

    of_commands: tuple[Problem, ...]
    of_whole: tuple[Problem, ...]


def unfound(intent: ExecutionIntent, shelf: Shelf, lines: Lines = NO_LINES) -> Unfound:
    """Every reference that leads nowhere, and every command for which nothing speaks that does lead."""
    of_commands: list[Problem] = []
    for n, command in enumerate(intent.planned_commands):
        path: Path = ("planned_commands", n, "evidence_refs")
        lost = tuple(_lost(command.evidence_refs, shelf, path, lines))
        mute = not lost and not any(map(shelf.speaks, command.evidence_refs))
        of_commands += (_mute(command.command_id, path, lines),) if mute else lost
    cited = {ref for command in intent.planned_commands for ref in command.evidence_refs}
    return Unfound(
        tuple(of_commands), tuple(_lost(intent.evidence_refs, shelf, ("evidence_refs",), lines, cited))
    )


def without_ground(intent: ExecutionIntent, shelf: Shelf, left_out: Iterable[str]) -> tuple[Problem, ...]:
    """The commands among those left out for which something is cited that leads nowhere, each with all of it."""
    out = set(left_out)
    return tuple(
        problem(
            ("planned_commands", n, "evidence_refs"),
            f"{command.command_id} is left out: {', '.join(gone)} cannot be found",
            f"{fix_for(*gone)} (`steersman intent check FILE` lists them)",
        )
        for n, command in enumerate(intent.planned_commands)
        if command.command_id in out and (gone := shelf.missing(command.evidence_refs))
    )


def fix_for(*refs: Ref) -> str:
    """What to do about references that lead nowhere: what a scan once found was there."""
    scanned = any(ref.startswith(("scan://", "fact://")) for ref in refs)
    return CHANGED if scanned else _OTHERWISE


def _lost(
    refs: Iterable[Ref], shelf: Shelf, path: Path, lines: Lines, told: Container[Ref] = ()
) -> Iterator[Problem]:
    for n, ref in enumerate(refs):
        if not shelf.leads(ref) and not ref.startswith(_REGISTERED) and ref not in told:
            yield problem((*path, n), f"{ref} leads nowhere", fix_for(ref), lines)


def _mute(command: str, path: Path, lines: Lines) -> Problem:
    said = f"nothing of it says that {command} is right here, only what it is"
    return problem(path, said, "cite a fact, a memory, a document or the objective", lines)
