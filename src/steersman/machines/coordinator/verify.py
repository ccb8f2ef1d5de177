"""Whether a frozen plan is what it was: every byte, and every step from its inputs to its documents.

**Invariant:** reads bytes that somebody else has fetched; a problem names the file, and the input that differs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from steersman.contracts.planning.content import Snapshot
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.questions import Settled
from steersman.contracts.planning.review import Manifest, ReviewPack
from steersman.judges.planning.intent import checksum
from steersman.kernel.canonical import digest, digest_of
from steersman.machines.coordinator.freeze import MANIFEST, SHAPES, lineage_gaps, malformed, unmatched
from steersman.machines.coordinator.inputs import plan_id


def verify(files: Mapping[str, bytes]) -> tuple[Problem, ...]:
    """Everything by which some files are not one frozen plan; empty when they are."""
    if MANIFEST not in files:
        return (_found(MANIFEST, "It is missing: without it nothing can be held against anything."),)
    broken = malformed(files)
    if any(problem.field == MANIFEST for problem in broken):
        return broken
    listed = msgspec.json.decode(files[MANIFEST], type=Manifest)
    wrong = (*broken, *unmatched(listed, files))
    whole = files.keys() >= SHAPES.keys() and not broken
    return (*wrong, *(_derived(listed, files) if whole else ()))


def differing(files: Mapping[str, bytes], others: Mapping[str, bytes]) -> tuple[str, ...]:
    """By which inputs two plans differ, as their manifests' lineages tell; empty when they have the same."""
    one, other = (_lineage(each) for each in (files, others))
    return tuple(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))


def _lineage(files: Mapping[str, bytes]) -> dict[str, str]:
    lineage = msgspec.json.decode(files[MANIFEST], type=Manifest).lineage
    plain: dict[str, Any] = msgspec.to_builtins(lineage)
    versions: dict[str, dict[str, str]] = plain.pop("registry_versions")
    return {**plain, **{f"{kind}.{id_}": v for kind, ids in versions.items() for id_, v in ids.items()}}


def _derived(listed: Manifest, files: Mapping[str, bytes]) -> Iterator[Problem]:
    """Every document held against what it was made from."""
    lineage = listed.lineage
    raw = msgspec.json.decode(files["intent.json"])
    bundle = msgspec.json.decode(files["context_bundle.json"], type=ContextBundle)
    snapshot = msgspec.json.decode(files["registry_snapshot.json"], type=Snapshot)
    graph = msgspec.json.decode(files["execution_graph.json"], type=ExecutionGraph)
    settled = msgspec.json.decode(files["settled_questions.json"], type=Settled)
    pack = msgspec.json.decode(files["review_pack.json"], type=ReviewPack)
    inputs = (
        ("intent.json", "intent_checksum", checksum(raw), lineage.intent_checksum),
        ("intent.json", "audit.checksum", raw["audit"]["checksum"], lineage.intent_checksum),
        ("intent.json", "derived_from_intent", raw["id"], lineage.derived_from_intent),
        (MANIFEST, "intent_id", listed.intent_id, raw["id"]),
        ("policy.json", "policy_digest", digest(files["policy.json"]), lineage.policy_digest),
        ("context_bundle.json", "policy_digest", digest_of(bundle.policy), lineage.policy_digest),
        ("context_bundle.json", "facts_digest", digest_of(bundle.facts), lineage.facts_digest),
        ("context_bundle.json", "memory_digest", digest_of(bundle.memory), lineage.memory_digest),
        ("registry_snapshot.json", "registry_digest", snapshot.digest, lineage.registry_digest),
        ("registry_snapshot.json", "digest", digest_of(list(snapshot.entries)), snapshot.digest),
        (
            "settled_questions.json",
            "answers_digest",
            digest_of(settled.answers),
            lineage.answers_digest,
        ),
        ("execution_graph.json", "checksum", _checksum(graph), graph.checksum),
        ("execution_graph.json", "lineage", digest_of(graph.lineage), digest_of(lineage)),
        (MANIFEST, "plan_id", plan_id(lineage), listed.plan_id),
        ("execution_graph.json", "plan_id", graph.plan_id, listed.plan_id),
        ("settled_questions.json", "plan_id", settled.plan_id, listed.plan_id),
        ("review_pack.json", "plan_id", pack.plan_id, listed.plan_id),
    )
    for name, what, found, expected in inputs:
        if found != expected:
            yield _found(name, f"{what} does not lead to this plan: {found} instead of {expected}.")
    yield from lineage_gaps(graph, snapshot)


def _checksum(graph: ExecutionGraph) -> str:
    return digest_of({"nodes": graph.nodes, "edges": graph.edges, "swimlanes": graph.swimlanes})


def _found(name: str, message: str) -> Problem:
    return Problem(field=name, message=message, fix="Restore the file, or plan again from the same inputs.")
