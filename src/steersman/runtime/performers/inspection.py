"""Looks at a task's files: every document that was ever laid down, as it is on disk, and what those of a phase say.

**Invariant:** nothing is written, no link is followed, and a document that is not what was recorded says nothing.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from steersman.contracts.task.documents import DOCUMENTS, Copies
from steersman.contracts.task.facts import InspectFacts
from steersman.contracts.task.words import (
    CODE_REVIEW,
    COPIES,
    COPIES_LIST,
    DECISION,
    FILES,
    PATCH,
    PLAN,
    PLAN_REVIEW,
    REVERT,
    TESTS,
)
from steersman.judges.task import inspection
from steersman.judges.task.found import Found
from steersman.judges.task.inspection import Damage, damage, folder_digest, no_folder, stranger
from steersman.judges.task.plan import flaws, open_questions
from steersman.runtime.call import Call
from steersman.runtime.looking import copies, digest_of, look, strangers


async def inspect(call: Call) -> InspectFacts:
    """Every document that was ever laid down, as it is on disk, and what those of the phase say."""
    return await asyncio.to_thread(_inspected, call)


class Looked(NamedTuple):
    """The files of a task as they are on disk."""

    found: dict[str, Found]  # every document
    seen: dict[str, str]  # its digest, and that of the folder of copies
    damages: list[Damage]  # what is not as it was recorded, and what nobody has laid down


def looked(call: Call) -> Looked:
    """Every document that was ever laid down, every copy, and what lies among them."""
    recorded: dict[str, str] = call.given("artifacts")
    found = look(call.world.artifacts, call.run, (n for n in recorded if n != COPIES))
    seen = {name: digest_of(one) for name, one in found.items()}
    mine = call.given("phase") == "planning"
    damages = [
        wrong
        for name, one in found.items()
        if (wrong := damage(name, one, recorded[name], mine=mine, task_id=call.run)) is not None
    ]
    if COPIES in recorded:
        below = copies(call.world.artifacts, call.run)
        seen[COPIES] = folder_digest({name: digest_of(one) for name, one in below.items()})
        damages += _damaged_copies(call, below)
    damages += [stranger(name) for name in strangers(call.world.artifacts, call.run, recorded)]
    return Looked(found, seen, damages)


def _inspected(call: Call) -> InspectFacts:
    found, seen, damages = looked(call)
    says = {} if damages else _says(call.given("phase"), {n: one.data for n, one in found.items()})
    told = inspection.told(damages) if damages else call.payloads.get(call.given("told", ""))
    return InspectFacts(
        seen=seen,
        damaged=len(damages),
        adoptable=sum(d.adoptable for d in damages),
        told_ref=call.payloads.put(told),
        **says,
    )


def _damaged_copies(call: Call, below: Mapping[str, Any]) -> list[Damage]:
    """Copies that are not what they were, and files that nobody laid down."""
    if "" in below:
        return [no_folder(COPIES, below[""])]
    wanted, found = _listed(call), []
    for path, digest in wanted.items():
        one = below.get(path) or call.world.artifacts.read(call.run, f"{COPIES}/{path}")
        found.append(damage(f"{COPIES}/{path}", one, digest, mine=False))
    return [
        *filter(None, found),
        *(stranger(f"{COPIES}/{name}") for name in sorted(below.keys() - wanted.keys())),
    ]


def _listed(call: Call) -> dict[str, str]:
    """The copies there should be, with their digests."""
    ref = call.given("documents").get(COPIES_LIST, "")
    listed = msgspec.json.decode(call.payloads.get(ref), type=Copies).files if ref else ()
    return {c.path: c.digest for c in listed if c.digest}


def unrecorded(call: Call) -> list[str]:
    """Everything among the documents and the copies that nobody has laid down."""
    recorded, artifacts = call.given("artifacts"), call.world.artifacts
    copied = artifacts.names(call.run, COPIES) if COPIES in recorded else ()
    below = sorted({name for name in copied if name} - _listed(call).keys())
    return [*(f"{COPIES}/{name}" for name in below), *strangers(artifacts, call.run, recorded)]


def _says(phase: str, data: Mapping[str, bytes]) -> dict[str, Any]:
    """What the documents of a phase say, read from the disk; a missing one says nothing."""
    reader = _READERS[phase]
    return reader(data)


def _read(data: Mapping[str, bytes], name: str) -> Any:
    return msgspec.json.decode(data[name], type=DOCUMENTS[name]) if name in data else None


def _planning_says(data: Mapping[str, bytes]) -> dict[str, Any]:
    plan, files = _read(data, PLAN), _read(data, FILES)
    return {
        "blocking": len(open_questions(plan)) if plan is not None else 1,
        "files": len(files.files) if files is not None else 0,
        "flaws": sum(f.severity == "error" for f in flaws(plan, files)) if plan is not None else 1,
    }


def _plan_review_says(data: Mapping[str, bytes]) -> dict[str, Any]:
    review = _read(data, PLAN_REVIEW)
    if review is None:
        return {}
    return {"ok": review.ok, "blocked": review.blocked, "decision": review.decision}


def _codegen_says(data: Mapping[str, bytes]) -> dict[str, Any]:
    listed = _read(data, COPIES_LIST)
    if listed is None:
        return {}
    told = {"copies": len(listed.files), "outside": len(listed.outside), "tree": listed.tree}
    return {**told, "patch": len(data.get(PATCH, b""))}


def _review_says(data: Mapping[str, bytes]) -> dict[str, Any]:
    review = _read(data, CODE_REVIEW)
    return {} if review is None else {"ok": review.ok, "decision": review.decision, "tree": review.tree}


def _test_says(data: Mapping[str, bytes]) -> dict[str, Any]:
    report = _read(data, TESTS)
    return {} if report is None else {"overall_pass": report.overall_pass, "tree": report.tree}


def _accept_says(data: Mapping[str, bytes]) -> dict[str, Any]:
    decision = _read(data, DECISION)
    return {} if decision is None else {"decision": decision.decision, "tree": decision.tree}


def _revert_says(data: Mapping[str, bytes]) -> dict[str, Any]:
    made = _read(data, REVERT)
    return {} if made is None else {"status": made.status}


_READERS: dict[str, Callable[[Mapping[str, bytes]], dict[str, Any]]] = {
    "planning": _planning_says,
    "plan_review": _plan_review_says,
    "codegen": _codegen_says,
    "review": _review_says,
    "test": _test_says,
    "accept": _accept_says,
    "revert": _revert_says,
}
