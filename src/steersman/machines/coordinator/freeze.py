"""The files of a frozen plan: which there are, their exact bytes, a manifest over them, and the check of it all.

**Invariant:** no clock, path or score is in any of them; the same inputs and answers give the same bytes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from steersman.contracts.planning.content import Snapshot
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import (
    PrecheckReport,
    Problem,
    RiskAssessment,
    RoutingAdvice,
    RuleDecision,
)
from steersman.contracts.planning.graph import ExecutionGraph, GraphLineage
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.questions import QuestionPack, Settled
from steersman.contracts.planning.review import Frozen, Manifest, ReviewPack
from steersman.contracts.planning.words import Kind
from steersman.judges.text import clip
from steersman.kernel.canonical import canonical, digest
from steersman.machines.coordinator.inputs import Inputs

MANIFEST = "manifest.json"
# Each document by its file; a tuple is a list of documents.
SHAPES: dict[str, Any] = {
    "intent.json": ExecutionIntent,
    "policy.json": ExecutionPolicy,
    "registry_snapshot.json": Snapshot,
    "context_bundle.json": ContextBundle,
    "precheck_report.json": PrecheckReport,
    "rule_decisions.json": tuple[RuleDecision, ...],
    "risk_assessment.json": RiskAssessment,
    "routing_advice.json": tuple[RoutingAdvice, ...],
    "execution_graph.json": ExecutionGraph,
    "question_pack.json": tuple[QuestionPack, ...],
    "settled_questions.json": Settled,
    "review_pack.json": ReviewPack,
}
# For people, drawn from the documents by views.
DRAWN = ("execution_graph.mmd", "execution_graph.svg", "plan.md", "review_pack.md")
NAMES = tuple(sorted((*SHAPES, *DRAWN)))


class Outputs(NamedTuple):
    """Everything that a plan consists of when it is done."""

    inputs: Inputs
    intent: Mapping[str, Any]  # as it stands in its file: the checksum is over these words
    report: PrecheckReport
    routing: tuple[RoutingAdvice, ...]
    graph: ExecutionGraph
    packs: tuple[QuestionPack, ...]
    settled: Settled
    review: ReviewPack


def documents(outputs: Outputs) -> dict[str, bytes]:
    """The canonical bytes of every document, by file name."""
    inputs = outputs.inputs
    values: dict[str, Any] = {
        "intent.json": outputs.intent,
        "policy.json": inputs.bundle.policy,
        "registry_snapshot.json": inputs.registry.snapshot(),
        "context_bundle.json": inputs.bundle,
        "precheck_report.json": outputs.report,
        "rule_decisions.json": inputs.decisions,
        "risk_assessment.json": outputs.review.risk_assessment,
        "routing_advice.json": outputs.routing,
        "execution_graph.json": outputs.graph,
        "question_pack.json": outputs.packs,
        "settled_questions.json": outputs.settled,
        "review_pack.json": outputs.review,
    }
    return {name: canonical(values[name]) for name in SHAPES}


def frozen(outputs: Outputs, drawn: Mapping[str, str]) -> dict[str, bytes]:
    """Every file of the plan, the manifest last; `drawn` are the texts for people, by file name."""
    files = {**documents(outputs), **{name: drawn[name].encode() for name in DRAWN}}
    listed = manifest(outputs.inputs.plan_id, outputs.inputs.intent.id, files, outputs.graph.lineage)
    return {**{name: files[name] for name in NAMES}, MANIFEST: canonical(listed)}


def manifest(plan_id: str, intent_id: str, files: Mapping[str, bytes], lineage: GraphLineage) -> Manifest:
    """Every file with its digest, by name, and where it all comes from."""
    listed = tuple(
        Frozen(name=name, sha256=digest(data), bytes=len(data)) for name, data in sorted(files.items())
    )
    return Manifest(plan_id=plan_id, intent_id=intent_id, files=listed, lineage=lineage)


def malformed(files: Mapping[str, bytes]) -> tuple[Problem, ...]:
    """Documents that are not what their schema says, byte for byte."""
    shapes = {**SHAPES, MANIFEST: Manifest}
    return tuple(
        problem for name in shapes if name in files for problem in _broken(name, files[name], shapes[name])
    )


def unmatched(listed: Manifest, files: Mapping[str, bytes]) -> tuple[Problem, ...]:
    """Files that are missing, too many, or not the bytes that the manifest has."""
    return tuple(_unmatched(listed, files))


def lineage_gaps(graph: ExecutionGraph, snapshot: Snapshot) -> tuple[Problem, ...]:
    """What a graph uses and its lineage does not lead to: content without a version, or of another than the registry's."""
    return tuple(_gaps(graph, snapshot))


def _broken(name: str, data: bytes, shape: Any) -> Iterator[Problem]:
    try:
        msgspec.json.decode(data, type=shape, strict=True)
        plain = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        yield _of(name, f"It breaks its schema: {clip(str(error), 600)}")
        return
    if canonical(plain) != data:
        yield _of(name, "Its bytes are not the canonical ones.")


def _unmatched(listed: Manifest, files: Mapping[str, bytes]) -> Iterator[Problem]:
    there = {file.name: file for file in listed.files}
    for name in NAMES:
        if name not in there:
            yield _of(name, "The manifest does not list it.")
    if list(there) != sorted(there) or len(there) != len(listed.files):
        yield _of(MANIFEST, "Its files are not listed once each, by name.")
    for name in sorted(files.keys() - there.keys() - {MANIFEST}):
        yield Problem(field=clip(name, 200), message="It does not belong to the plan.", fix="Remove it.")
    for name, file in there.items():
        if name not in files:
            yield _of(name, "It is missing.")
        elif digest(files[name]) != file.sha256:
            yield _of(name, f"It was changed: its SHA-256 is {digest(files[name])}, not {file.sha256}.")
        elif len(files[name]) != file.bytes:
            yield _of(MANIFEST, f"It gives {name} {file.bytes} bytes; there are {len(files[name])}.")


def _gaps(graph: ExecutionGraph, snapshot: Snapshot) -> Iterator[Problem]:
    versions = graph.lineage.registry_versions
    known = {(entry.kind, entry.id): entry.version for entry in snapshot.entries}
    kinds: dict[Kind, tuple[dict[str, str], set[str]]] = {
        "workflow": (versions.workflows, {node.workflow_ref for node in graph.nodes}),
        "agent": (versions.agents, {lane.agent_id for lane in graph.swimlanes}),
        "command": (versions.commands, {node.command_ref for node in graph.nodes}),
        "rule": (versions.rules, {ref.partition("@")[0] for node in graph.nodes for ref in node.rule_refs}),
    }
    for kind, (traced, used) in kinds.items():
        for id_ in sorted(used - {""} - traced.keys()):
            yield _lost(kind, id_, "the graph uses it, and the lineage has no version of it")
        for id_, version in sorted(traced.items()):
            if known.get((kind, id_)) != version:
                yield _lost(kind, id_, f"the lineage has version {version}, the registry another or none")


def _lost(kind: str, id_: str, why: str) -> Problem:
    return Problem(
        field=f"lineage.registry_versions.{kind}s.{id_}",
        message=f"The {kind} {id_} cannot be traced: {why}.",
        fix="Plan again with the registry as it is now.",
    )


def _of(name: str, message: str) -> Problem:
    return Problem(
        field=name,
        message=message,
        fix="Restore the file, or plan again: `steersman plan` gives the same bytes.",
    )
