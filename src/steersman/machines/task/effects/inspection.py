"""Inspects a task's files: every recorded document as it is on disk, and what the documents of a phase say.

**Invariant:** nothing is written, no link is followed, and a document that is not as recorded is not read for facts.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from steersman.contracts.artifacts import ArtifactOnDisk, DamagedFile
from steersman.engine.effects import EffectCall, perform_beside_loop
from steersman.machines.task.documents import inspection
from steersman.machines.task.documents.inspection import (
    copies_directory_damage,
    digest_directory_listing,
    find_file_damage,
    unknown_file_damage,
)
from steersman.machines.task.documents.plan import find_open_plan_questions, find_plan_flaws
from steersman.machines.task.documents.schemas import TASK_DOCUMENTS, ChangeCopies
from steersman.machines.task.documents.words import (
    CODE_REVIEW_FILE,
    COPIES_DIRECTORY,
    COPIES_LIST_FILE,
    DECISION_FILE,
    PATCH_FILE,
    PLAN_FILE,
    PLAN_REVIEW_FILE,
    REVERT_FILE,
    SCOPE_FILE,
    TEST_REPORT_FILE,
)
from steersman.machines.task.effects.document_digests import (
    artifact_digest,
    find_unrecorded_artifacts,
    read_artifact_copies,
    read_artifacts,
)
from steersman.machines.task.facts import InspectFacts


class TaskFilesOnDisk(NamedTuple):
    """The files of a task as they are on disk."""

    found: dict[str, ArtifactOnDisk]  # every document
    seen: dict[str, str]  # its digest, and that of the folder of copies
    damages: list[DamagedFile]  # files that differ from their record, and files without a record


def read_task_files(call: EffectCall) -> TaskFilesOnDisk:
    """Compares every recorded document and every copy with the disk, and finds the files among them."""
    recorded: dict[str, str] = call.given("artifacts")
    documents = read_artifacts(call.world.artifacts, call.run, (n for n in recorded if n != COPIES_DIRECTORY))
    digests = {name: artifact_digest(document) for name, document in documents.items()}
    is_plan_phase = call.given("phase") == "planning"
    damages = [
        document_damage
        for name, document in documents.items()
        if (
            document_damage := find_file_damage(
                name, document, recorded[name], may_adopt=is_plan_phase, task_id=call.run
            )
        )
        is not None
    ]
    if COPIES_DIRECTORY in recorded:
        copies_found = read_artifact_copies(call.world.artifacts, call.run)
        digests[COPIES_DIRECTORY] = digest_directory_listing(
            {name: artifact_digest(document) for name, document in copies_found.items()}
        )
        damages += _find_damaged_copies(call, copies_found)
    damages += [
        unknown_file_damage(name)
        for name in find_unrecorded_artifacts(call.world.artifacts, call.run, recorded)
    ]
    return TaskFilesOnDisk(documents, digests, damages)


@perform_beside_loop
def inspect_task_files(call: EffectCall) -> InspectFacts:
    """Returns how every recorded document compares with the disk, and what those of the phase say."""
    documents, digests, damages = read_task_files(call)
    document_facts = (
        {}
        if damages
        else _phase_document_facts(
            call.given("phase"), {n: document.data for n, document in documents.items()}
        )
    )
    summary = (
        inspection.render_damaged_files(damages) if damages else call.payloads.get(call.given("told", ""))
    )
    return InspectFacts(
        seen=digests,
        damaged=len(damages),
        adoptable=sum(d.adoptable for d in damages),
        told_ref=call.payloads.add_text(summary),
        **document_facts,
    )


def _find_damaged_copies(call: EffectCall, copies_found: Mapping[str, Any]) -> list[DamagedFile]:
    """Copies that are not as recorded, and files that were not recorded."""
    if "" in copies_found:
        return [copies_directory_damage(COPIES_DIRECTORY, copies_found[""])]
    expected_digests, damages = _listed_copy_digests(call), []
    for path, digest in expected_digests.items():
        copy_found = copies_found.get(path) or call.world.artifacts.read(
            call.run, f"{COPIES_DIRECTORY}/{path}"
        )
        damages.append(find_file_damage(f"{COPIES_DIRECTORY}/{path}", copy_found, digest, may_adopt=False))
    return [
        *filter(None, damages),
        *(
            unknown_file_damage(f"{COPIES_DIRECTORY}/{name}")
            for name in sorted(copies_found.keys() - expected_digests.keys())
        ),
    ]


def _listed_copy_digests(call: EffectCall) -> dict[str, str]:
    """The copies there should be, with their digests."""
    ref = call.given("documents").get(COPIES_LIST_FILE, "")
    listed_copies = msgspec.json.decode(call.payloads.get(ref), type=ChangeCopies).files if ref else ()
    return {c.path: c.digest for c in listed_copies if c.digest}


def find_all_unrecorded(call: EffectCall) -> list[str]:
    """Every file among the documents and the copies that was not recorded."""
    recorded, artifacts = call.given("artifacts"), call.world.artifacts
    copy_names = artifacts.names(call.run, COPIES_DIRECTORY) if COPIES_DIRECTORY in recorded else ()
    unlisted_copies = sorted({name for name in copy_names if name} - _listed_copy_digests(call).keys())
    return [
        *(f"{COPIES_DIRECTORY}/{name}" for name in unlisted_copies),
        *find_unrecorded_artifacts(artifacts, call.run, recorded),
    ]


def _phase_document_facts(phase: str, data: Mapping[str, bytes]) -> dict[str, Any]:
    """What the documents of a phase say, read from the disk; a missing one says nothing."""
    reader = _PHASE_FACT_READERS[phase]
    return reader(data)


def _decode_task_document(data: Mapping[str, bytes], name: str) -> Any:
    return msgspec.json.decode(data[name], type=TASK_DOCUMENTS[name]) if name in data else None


def _planning_facts(data: Mapping[str, bytes]) -> dict[str, Any]:
    plan, files = _decode_task_document(data, PLAN_FILE), _decode_task_document(data, SCOPE_FILE)
    return {
        "blocking": len(find_open_plan_questions(plan)) if plan is not None else 1,
        "files": len(files.files) if files is not None else 0,
        "flaws": sum(f.severity == "error" for f in find_plan_flaws(plan, files)) if plan is not None else 1,
    }


def _plan_review_facts(data: Mapping[str, bytes]) -> dict[str, Any]:
    review = _decode_task_document(data, PLAN_REVIEW_FILE)
    if review is None:
        return {}
    return {"ok": review.ok, "blocked": review.blocked, "decision": review.decision}


def _codegen_facts(data: Mapping[str, bytes]) -> dict[str, Any]:
    copies_list = _decode_task_document(data, COPIES_LIST_FILE)
    if copies_list is None:
        return {}
    counts = {"copies": len(copies_list.files), "outside": len(copies_list.outside), "tree": copies_list.tree}
    return {**counts, "patch": len(data.get(PATCH_FILE, b""))}


def _code_review_facts(data: Mapping[str, bytes]) -> dict[str, Any]:
    review = _decode_task_document(data, CODE_REVIEW_FILE)
    return {} if review is None else {"ok": review.ok, "decision": review.decision, "tree": review.tree}


def _test_report_facts(data: Mapping[str, bytes]) -> dict[str, Any]:
    report = _decode_task_document(data, TEST_REPORT_FILE)
    return {} if report is None else {"overall_pass": report.overall_pass, "tree": report.tree}


def _decision_facts(data: Mapping[str, bytes]) -> dict[str, Any]:
    decision = _decode_task_document(data, DECISION_FILE)
    return {} if decision is None else {"decision": decision.decision, "tree": decision.tree}


def _revert_record_facts(data: Mapping[str, bytes]) -> dict[str, Any]:
    revert_record = _decode_task_document(data, REVERT_FILE)
    return {} if revert_record is None else {"status": revert_record.status}


_PHASE_FACT_READERS: dict[str, Callable[[Mapping[str, bytes]], dict[str, Any]]] = {
    "planning": _planning_facts,
    "plan_review": _plan_review_facts,
    "codegen": _codegen_facts,
    "review": _code_review_facts,
    "test": _test_report_facts,
    "accept": _decision_facts,
    "revert": _revert_record_facts,
}
