"""Claims and the evidence they name: linked one by one, never counted.

What an agent writes about a command proves nothing; what this run has recorded itself does. A claim holds when each
piece of evidence that it names is there, is of this run, and was recorded by steersman.
**Invariant:** absence of evidence is failure: no claim, an unknown reference or an unknown kind is a problem.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steersman.judges.text import clip, printable

Plain = Mapping[str, Any]


def claim_problems(
    claims: Sequence[Any], evidence: Sequence[Any], recorded: Mapping[int, str], artifacts: Mapping[str, str]
) -> tuple[str, ...]:
    """Everything that keeps these claims from holding; none where all hold.

    `recorded` are the run's own entries that may prove something, by number, with their hash; `artifacts` its own files
    by name, with the digest steersman has recorded.
    """
    if not claims:
        return ("claims: there are none, and nothing is proven by nothing",)
    known, broken = _known(evidence, recorded, artifacts)
    return (*broken, *_twice("claims", claims), *(p for c in claims for p in _claim(c, known)))


def _known(
    evidence: Sequence[Any], recorded: Mapping[int, str], artifacts: Mapping[str, str]
) -> tuple[set[str], tuple[str, ...]]:
    """The ids of evidence that counts, and what is wrong with the rest."""
    found: set[str] = set()
    problems: list[str] = [*_twice("evidence", evidence)]
    for piece in evidence:
        why = _unproven(piece, recorded, artifacts)
        if why:
            problems.append(f"evidence {_id(piece)}: {why}")
        else:
            found.add(piece["id"])
    return found, tuple(problems)


def _unproven(piece: Any, recorded: Mapping[int, str], artifacts: Mapping[str, str]) -> str:
    """Why a piece of evidence does not count; nothing where it does."""
    if not isinstance(piece, Mapping) or not _named(piece):
        return "it has no id"
    match piece.get("type"):
        case "journal" | "command":
            return _entry(piece, recorded)
        case "file":
            return _file(piece, artifacts)
        case "url":
            return "a page elsewhere cannot be verified"
        case kind:
            return f"its type {_shown(kind)} is none that steersman records"


def _entry(piece: Plain, recorded: Mapping[int, str]) -> str:
    seq, digest = piece.get("seq"), piece.get("hash")
    if isinstance(seq, bool) or not isinstance(seq, int):
        return "it names no entry of this run: what an agent says about a command is no result of it"
    if seq not in recorded:
        return f"entry {seq} is none of this run that proves something"
    return "" if digest == recorded[seq] else f"entry {seq} of this run has another hash"


def _file(piece: Plain, artifacts: Mapping[str, str]) -> str:
    path, digest = piece.get("path"), piece.get("digest")
    if not isinstance(path, str) or path not in artifacts:
        return f"{_shown(path)} is no file that this run has recorded"
    return "" if digest == artifacts[path] else f"{_shown(path)} is not as this run has recorded it"


def _claim(claim: Any, known: set[str]) -> Iterator[str]:
    if not isinstance(claim, Mapping) or not _named(claim):
        yield "claims: one has no id"
        return
    refs = claim.get("evidence_refs")
    if not isinstance(refs, Sequence) or isinstance(refs, str) or not refs:
        yield f"claim {_id(claim)}: it names no evidence"
        return
    for ref in refs:
        if not isinstance(ref, str) or ref not in known:
            yield f"claim {_id(claim)}: its evidence {_shown(ref)} does not count"


def _twice(what: str, given: Sequence[Any]) -> Iterator[str]:
    ids = Counter(g["id"] for g in given if isinstance(g, Mapping) and _named(g))
    for name, count in ids.items():
        if count > 1:
            yield f"{what}: {_shown(name)} is there {count} times"


def _named(value: Plain) -> bool:
    return isinstance(value.get("id"), str) and bool(value["id"])


def _id(value: Any) -> str:
    return _shown(value.get("id") if isinstance(value, Mapping) else value)


def _shown(value: object) -> str:
    return printable(clip(repr(value), 80))
