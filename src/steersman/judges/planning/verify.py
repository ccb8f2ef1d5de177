"""Checks that a frozen plan is unchanged: every byte, and every step from its inputs to its documents.

**Invariant:** the caller reads the files. A problem names the file and the input that differs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from steersman.contracts.planning.content import RegistrySnapshot
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.questions import SettledQuestions
from steersman.contracts.planning.review import PlanManifest, ReviewPack
from steersman.judges.planning.freeze import (
    FROZEN_DOCUMENT_TYPES,
    MANIFEST_FILE,
    find_lineage_gaps,
    find_malformed_files,
    find_unmatched_files,
)
from steersman.judges.planning.intent import compute_intent_checksum
from steersman.judges.planning.plan_inputs import derive_plan_id
from steersman.kernel.canonical import digest_of, sha256_hex


def verify_frozen_plan(files: Mapping[str, bytes]) -> tuple[DocumentProblem, ...]:
    """Everything by which some files are not one frozen plan; empty when they are."""
    if MANIFEST_FILE not in files:
        return (_plan_file_problem(MANIFEST_FILE, "It is missing, so the other files cannot be checked."),)
    broken = find_malformed_files(files)
    if any(problem.field == MANIFEST_FILE for problem in broken):
        return broken
    listed = msgspec.json.decode(files[MANIFEST_FILE], type=PlanManifest)
    wrong = (*broken, *find_unmatched_files(listed, files))
    is_complete = files.keys() >= FROZEN_DOCUMENT_TYPES.keys() and not broken
    return (*wrong, *(_find_derivation_problems(listed, files) if is_complete else ()))


def find_differing_inputs(files: Mapping[str, bytes], others: Mapping[str, bytes]) -> tuple[str, ...]:
    """By which inputs two plans differ, as their manifests' lineages tell; empty when they have the same."""
    lineage, other = (_read_manifest_lineage(each) for each in (files, others))
    return tuple(
        sorted(name for name in lineage.keys() | other.keys() if lineage.get(name) != other.get(name))
    )


def _read_manifest_lineage(files: Mapping[str, bytes]) -> dict[str, str]:
    lineage = msgspec.json.decode(files[MANIFEST_FILE], type=PlanManifest).lineage
    plain: dict[str, Any] = msgspec.to_builtins(lineage)
    versions: dict[str, dict[str, str]] = plain.pop("registry_versions")
    return {**plain, **{f"{kind}.{id_}": v for kind, ids in versions.items() for id_, v in ids.items()}}


def _find_derivation_problems(listed: PlanManifest, files: Mapping[str, bytes]) -> Iterator[DocumentProblem]:
    """Every document held against what it was made from."""
    lineage = listed.lineage
    raw = msgspec.json.decode(files["intent.json"])
    bundle = msgspec.json.decode(files["context_bundle.json"], type=ContextBundle)
    snapshot = msgspec.json.decode(files["registry_snapshot.json"], type=RegistrySnapshot)
    graph = msgspec.json.decode(files["execution_graph.json"], type=ExecutionGraph)
    settled = msgspec.json.decode(files["settled_questions.json"], type=SettledQuestions)
    pack = msgspec.json.decode(files["review_pack.json"], type=ReviewPack)
    inputs = (
        ("intent.json", "intent_checksum", compute_intent_checksum(raw), lineage.intent_checksum),
        ("intent.json", "audit.checksum", raw["audit"]["checksum"], lineage.intent_checksum),
        ("intent.json", "derived_from_intent", raw["id"], lineage.derived_from_intent),
        (MANIFEST_FILE, "intent_id", listed.intent_id, raw["id"]),
        ("policy.json", "policy_digest", sha256_hex(files["policy.json"]), lineage.policy_digest),
        ("context_bundle.json", "policy_digest", digest_of(bundle.policy), lineage.policy_digest),
        ("context_bundle.json", "facts_digest", digest_of(bundle.facts), lineage.facts_digest),
        ("context_bundle.json", "memory_digest", digest_of(bundle.memory), lineage.memory_digest),
        ("registry_snapshot.json", "registry_digest", snapshot.digest, lineage.registry_digest),
        ("registry_snapshot.json", "digest", digest_of(list(snapshot.entries)), snapshot.digest),
        ("settled_questions.json", "answers_digest", digest_of(settled.answers), lineage.answers_digest),
        ("execution_graph.json", "checksum", _graph_checksum(graph), graph.checksum),
        ("execution_graph.json", "lineage", digest_of(graph.lineage), digest_of(lineage)),
        (MANIFEST_FILE, "plan_id", derive_plan_id(lineage), listed.plan_id),
        ("execution_graph.json", "plan_id", graph.plan_id, listed.plan_id),
        ("settled_questions.json", "plan_id", settled.plan_id, listed.plan_id),
        ("review_pack.json", "plan_id", pack.plan_id, listed.plan_id),
    )  # fmt: skip
    for name, what, actual, expected in inputs:
        if actual != expected:
            yield _plan_file_problem(
                name, f"{what} does not lead to this plan: {actual} instead of {expected}."
            )
    yield from find_lineage_gaps(graph, snapshot)


def _graph_checksum(graph: ExecutionGraph) -> str:
    return digest_of({"nodes": graph.nodes, "edges": graph.edges, "swimlanes": graph.swimlanes})


def _plan_file_problem(name: str, message: str) -> DocumentProblem:
    return DocumentProblem(
        field=name, message=message, fix="Restore the file, or plan again from the same inputs."
    )
