"""The files of a frozen plan: their names, their exact bytes, the manifest over them, and the check of all of it.

**Invariant:** no file holds a time, a path of this machine or a score. The same inputs and answers give the same bytes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from steersman.contracts.planning.content import RegistrySnapshot
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import (
    DocumentProblem,
    PrecheckReport,
    RiskAssessment,
    RoutingAdvice,
    RuleDecision,
)
from steersman.contracts.planning.graph import ExecutionGraph, GraphLineage
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.questions import QuestionPack, SettledQuestions
from steersman.contracts.planning.review import FrozenFile, PlanManifest, ReviewPack
from steersman.contracts.planning.words import ContentKind
from steersman.judges.planning.plan_inputs import PlanInputs
from steersman.judges.text import clip_text
from steersman.kernel.canonical import canonical_bytes, sha256_hex

MANIFEST_FILE = "manifest.json"
# Each document by its file; a tuple is a list of documents.
FROZEN_DOCUMENT_TYPES: dict[str, Any] = {
    "intent.json": ExecutionIntent,
    "policy.json": ExecutionPolicy,
    "registry_snapshot.json": RegistrySnapshot,
    "context_bundle.json": ContextBundle,
    "precheck_report.json": PrecheckReport,
    "rule_decisions.json": tuple[RuleDecision, ...],
    "risk_assessment.json": RiskAssessment,
    "routing_advice.json": tuple[RoutingAdvice, ...],
    "execution_graph.json": ExecutionGraph,
    "question_pack.json": tuple[QuestionPack, ...],
    "settled_questions.json": SettledQuestions,
    "review_pack.json": ReviewPack,
}
# For people, drawn from the documents by views.
RENDERED_PLAN_FILES = ("execution_graph.mmd", "plan.md", "review_pack.md")
FROZEN_FILE_NAMES = tuple(sorted((*FROZEN_DOCUMENT_TYPES, *RENDERED_PLAN_FILES)))


class PlanOutputs(NamedTuple):
    """Everything that a plan consists of when it is done."""

    inputs: PlanInputs
    intent: Mapping[str, Any]  # as it stands in its file: the checksum is over these words
    report: PrecheckReport
    routing: tuple[RoutingAdvice, ...]
    graph: ExecutionGraph
    packs: tuple[QuestionPack, ...]
    settled: SettledQuestions
    review: ReviewPack


def encode_plan_documents(outputs: PlanOutputs) -> dict[str, bytes]:
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
    return {name: canonical_bytes(values[name]) for name in FROZEN_DOCUMENT_TYPES}


def freeze_plan_files(outputs: PlanOutputs, drawn: Mapping[str, str]) -> dict[str, bytes]:
    """Every file of the plan, the manifest last; `drawn` are the texts for people, by file name."""
    files = {**encode_plan_documents(outputs), **{name: drawn[name].encode() for name in RENDERED_PLAN_FILES}}
    listed = build_plan_manifest(
        outputs.inputs.plan_id, outputs.inputs.intent.id, files, outputs.graph.lineage
    )
    return {**{name: files[name] for name in FROZEN_FILE_NAMES}, MANIFEST_FILE: canonical_bytes(listed)}


def build_plan_manifest(
    plan_id: str, intent_id: str, files: Mapping[str, bytes], lineage: GraphLineage
) -> PlanManifest:
    """Every file with its digest, by name, and where it all comes from."""
    listed = tuple(
        FrozenFile(name=name, sha256=sha256_hex(data), bytes=len(data))
        for name, data in sorted(files.items())
    )
    return PlanManifest(plan_id=plan_id, intent_id=intent_id, files=listed, lineage=lineage)


def find_malformed_files(files: Mapping[str, bytes]) -> tuple[DocumentProblem, ...]:
    """Documents that are not what their schema says, byte for byte."""
    shapes = {**FROZEN_DOCUMENT_TYPES, MANIFEST_FILE: PlanManifest}
    return tuple(
        problem
        for name in shapes
        if name in files
        for problem in _find_schema_breaks(name, files[name], shapes[name])
    )


def find_unmatched_files(listed: PlanManifest, files: Mapping[str, bytes]) -> tuple[DocumentProblem, ...]:
    """Files that are missing, too many, or not the bytes that the manifest has."""
    return tuple(_find_manifest_mismatches(listed, files))


def find_lineage_gaps(graph: ExecutionGraph, snapshot: RegistrySnapshot) -> tuple[DocumentProblem, ...]:
    """What a graph uses and its lineage does not lead to: content without a version, or of another than the registry's."""
    return tuple(_find_untraced_content(graph, snapshot))


def _find_schema_breaks(name: str, data: bytes, shape: Any) -> Iterator[DocumentProblem]:
    try:
        msgspec.json.decode(data, type=shape, strict=True)
        plain = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        yield _frozen_file_problem(name, f"It breaks its schema: {clip_text(str(error), 600)}")
        return
    if canonical_bytes(plain) != data:
        yield _frozen_file_problem(name, "Its bytes are not the canonical ones.")


def _find_manifest_mismatches(listed: PlanManifest, files: Mapping[str, bytes]) -> Iterator[DocumentProblem]:
    there = {file.name: file for file in listed.files}
    for name in FROZEN_FILE_NAMES:
        if name not in there:
            yield _frozen_file_problem(name, "The manifest does not list it.")
    if list(there) != sorted(there) or len(there) != len(listed.files):
        yield _frozen_file_problem(MANIFEST_FILE, "Its files are not listed once each, by name.")
    for name in sorted(files.keys() - there.keys() - {MANIFEST_FILE}):
        yield DocumentProblem(
            field=clip_text(name, 200), message="It does not belong to the plan.", fix="Remove it."
        )
    for name, file in there.items():
        if name not in files:
            yield _frozen_file_problem(name, "It is missing.")
        elif sha256_hex(files[name]) != file.sha256:
            yield _frozen_file_problem(
                name, f"It was changed: its SHA-256 is {sha256_hex(files[name])}, not {file.sha256}."
            )
        elif len(files[name]) != file.bytes:
            yield _frozen_file_problem(
                MANIFEST_FILE, f"It gives {name} {file.bytes} bytes; there are {len(files[name])}."
            )


def _find_untraced_content(graph: ExecutionGraph, snapshot: RegistrySnapshot) -> Iterator[DocumentProblem]:
    versions = graph.lineage.registry_versions
    known = {(entry.kind, entry.id): entry.version for entry in snapshot.entries}
    kinds: dict[ContentKind, tuple[dict[str, str], set[str]]] = {
        "workflow": (versions.workflows, {node.workflow_ref for node in graph.nodes}),
        "agent": (versions.agents, {lane.agent_id for lane in graph.swimlanes}),
        "command": (versions.commands, {node.command_ref for node in graph.nodes}),
        "rule": (versions.rules, {ref.partition("@")[0] for node in graph.nodes for ref in node.rule_refs}),
    }
    for kind, (traced, used) in kinds.items():
        for id_ in sorted(used - {""} - traced.keys()):
            yield _untraced_content_problem(
                kind, id_, "the graph uses it, and the lineage has no version of it"
            )
        for id_, version in sorted(traced.items()):
            if known.get((kind, id_)) != version:
                yield _untraced_content_problem(
                    kind, id_, f"the lineage has version {version}, the registry another or none"
                )


def _untraced_content_problem(kind: str, id_: str, why: str) -> DocumentProblem:
    return DocumentProblem(
        field=f"lineage.registry_versions.{kind}s.{id_}",
        message=f"The {kind} {id_} cannot be traced: {why}.",
        fix="Plan again with the registry as it is now.",
    )


def _frozen_file_problem(name: str, message: str) -> DocumentProblem:
    return DocumentProblem(
        field=name,
        message=message,
        fix="Restore the file, or plan again: `steersman plan` gives the same bytes.",
    )
