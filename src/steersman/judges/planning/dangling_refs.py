"""Finds references of an intent that lead nowhere: by field and line for `intent check`, by command for a refused plan.

**Invariant:** reports exactly the references that planning would not find. The precheck reports what the registry lacks.
"""

from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.words import EvidenceRef
from steersman.judges.planning.evidence import CitableEvidence
from steersman.judges.planning.places import NO_FIELD_LINES, FieldLines, FieldPath, document_problem

PROJECT_CHANGED_FIX = (
    "the project has changed since: draft the intent again, or cite what exists now and seal it again"
)
_DANGLING_REF_FIX = "cite something that exists: `steersman facts` and `steersman memory list` show it"
_REGISTRY_SCHEMES = ("registry://", "rule://")


class DanglingRefs(NamedTuple):
    """What leads nowhere: cited for commands, and only for the intent as a whole."""

    of_commands: tuple[DocumentProblem, ...]
    of_whole: tuple[DocumentProblem, ...]


def find_dangling_refs(
    intent: ExecutionIntent, citable: CitableEvidence, lines: FieldLines = NO_FIELD_LINES
) -> DanglingRefs:
    """Every reference that leads nowhere, and every command for which nothing speaks that does lead."""
    of_commands: list[DocumentProblem] = []
    for n, command in enumerate(intent.planned_commands):
        path: FieldPath = ("planned_commands", n, "evidence_refs")
        dangling = tuple(_find_lost_refs(command.evidence_refs, citable, path, lines))
        is_unjustified = not dangling and not any(map(citable.speaks, command.evidence_refs))
        of_commands += (
            (_unjustified_command_problem(command.command_id, path, lines),) if is_unjustified else dangling
        )
    cited = {ref for command in intent.planned_commands for ref in command.evidence_refs}
    return DanglingRefs(
        tuple(of_commands),
        tuple(_find_lost_refs(intent.evidence_refs, citable, ("evidence_refs",), lines, cited)),
    )


def find_ungrounded_commands(
    intent: ExecutionIntent, citable: CitableEvidence, left_out: Iterable[str]
) -> tuple[DocumentProblem, ...]:
    """The commands among those left out for which something is cited that leads nowhere, each with all of it."""
    left_out_ids = set(left_out)
    return tuple(
        document_problem(
            ("planned_commands", n, "evidence_refs"),
            f"{command.command_id} is left out: {', '.join(missing_refs)} cannot be found",
            f"{advise_dangling_refs(*missing_refs)} (`steersman intent check FILE` lists them)",
        )
        for n, command in enumerate(intent.planned_commands)
        if command.command_id in left_out_ids and (missing_refs := citable.missing(command.evidence_refs))
    )


def advise_dangling_refs(*refs: EvidenceRef) -> str:
    """What to do about references that lead nowhere: what a scan once found was there."""
    has_scan_ref = any(ref.startswith(("scan://", "fact://")) for ref in refs)
    return PROJECT_CHANGED_FIX if has_scan_ref else _DANGLING_REF_FIX


def _find_lost_refs(
    refs: Iterable[EvidenceRef],
    citable: CitableEvidence,
    path: FieldPath,
    lines: FieldLines,
    reported: Container[EvidenceRef] = (),
) -> Iterator[DocumentProblem]:
    for n, ref in enumerate(refs):
        if not citable.leads(ref) and not ref.startswith(_REGISTRY_SCHEMES) and ref not in reported:
            yield document_problem((*path, n), f"{ref} leads nowhere", advise_dangling_refs(ref), lines)


def _unjustified_command_problem(command: str, path: FieldPath, lines: FieldLines) -> DocumentProblem:
    message = f"these references say what {command} is, and none says why it is right here"
    return document_problem(path, message, "cite a fact, a memory, a document or the objective", lines)
