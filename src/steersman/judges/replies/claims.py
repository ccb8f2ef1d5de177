"""Claims and the evidence they name: linked one by one, never counted.

What an agent writes about a command proves nothing; what this run has recorded itself does. A claim holds when each
piece of evidence that it names is there, is of this run, and was recorded by steersman.
**Invariant:** absence of evidence is failure: no claim, an unknown reference or an unknown kind is a problem.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steersman.judges.text import clip_text, printable_text

ClaimMapping = Mapping[str, Any]


def find_claim_problems(
    claims: Sequence[Any], evidence: Sequence[Any], recorded: Mapping[int, str], artifacts: Mapping[str, str]
) -> tuple[str, ...]:
    """Everything that keeps these claims from holding; none where all hold.

    `recorded` are the run's own entries that may prove something, by number, with their hash; `artifacts` its own files
    by name, with the digest steersman has recorded.
    """
    if not claims:
        return ("claims: there are none, and nothing is proven by nothing",)
    known, evidence_problems = _sort_evidence(evidence, recorded, artifacts)
    return (
        *evidence_problems,
        *_find_repeated_ids("claims", claims),
        *(problem for claim in claims for problem in _find_single_claim_problems(claim, known)),
    )


def _sort_evidence(
    evidence: Sequence[Any], recorded: Mapping[int, str], artifacts: Mapping[str, str]
) -> tuple[set[str], tuple[str, ...]]:
    """The ids of evidence that counts, and what is wrong with the rest."""
    known_ids: set[str] = set()
    problems: list[str] = [*_find_repeated_ids("evidence", evidence)]
    for piece in evidence:
        problem = _find_evidence_problem(piece, recorded, artifacts)
        if problem:
            problems.append(f"evidence {_render_claim_id(piece)}: {problem}")
        else:
            known_ids.add(piece["id"])
    return known_ids, tuple(problems)


def _find_evidence_problem(piece: Any, recorded: Mapping[int, str], artifacts: Mapping[str, str]) -> str:
    """Why a piece of evidence does not count; nothing where it does."""
    if not isinstance(piece, Mapping) or not _has_claim_id(piece):
        return "it has no id"
    match piece.get("type"):
        case "journal" | "command":
            return _find_entry_evidence_problem(piece, recorded)
        case "file":
            return _find_file_evidence_problem(piece, artifacts)
        case "url":
            return "a page elsewhere cannot be verified"
        case kind:
            return f"its type {_quote_claim_value(kind)} is none that steersman records"


def _find_entry_evidence_problem(piece: ClaimMapping, recorded: Mapping[int, str]) -> str:
    seq, digest = piece.get("seq"), piece.get("hash")
    if isinstance(seq, bool) or not isinstance(seq, int):
        return "it names no entry of this run: what an agent says about a command is no result of it"
    if seq not in recorded:
        return f"entry {seq} is none of this run that proves something"
    return "" if digest == recorded[seq] else f"entry {seq} of this run has another hash"


def _find_file_evidence_problem(piece: ClaimMapping, artifacts: Mapping[str, str]) -> str:
    path, digest = piece.get("path"), piece.get("digest")
    if not isinstance(path, str) or path not in artifacts:
        return f"{_quote_claim_value(path)} is no file that this run has recorded"
    return (
        "" if digest == artifacts[path] else f"{_quote_claim_value(path)} is not as this run has recorded it"
    )


def _find_single_claim_problems(claim: Any, known: set[str]) -> Iterator[str]:
    if not isinstance(claim, Mapping) or not _has_claim_id(claim):
        yield "claims: one has no id"
        return
    refs = claim.get("evidence_refs")
    if not isinstance(refs, Sequence) or isinstance(refs, str) or not refs:
        yield f"claim {_render_claim_id(claim)}: it names no evidence"
        return
    for ref in refs:
        if not isinstance(ref, str) or ref not in known:
            yield f"claim {_render_claim_id(claim)}: its evidence {_quote_claim_value(ref)} does not count"


def _find_repeated_ids(what: str, items: Sequence[Any]) -> Iterator[str]:
    ids = Counter(item["id"] for item in items if isinstance(item, Mapping) and _has_claim_id(item))
    for name, count in ids.items():
        if count > 1:
            yield f"{what}: {_quote_claim_value(name)} is there {count} times"


def _has_claim_id(value: ClaimMapping) -> bool:
    return isinstance(value.get("id"), str) and bool(value["id"])


def _render_claim_id(value: Any) -> str:
    return _quote_claim_value(value.get("id") if isinstance(value, Mapping) else value)


def _quote_claim_value(value: object) -> str:
    return printable_text(clip_text(repr(value), 80))
