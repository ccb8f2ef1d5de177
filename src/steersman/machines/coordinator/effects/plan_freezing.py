"""The last effect of the planner: the plan as files, written whole, read back and signed.

**Invariant:** nothing is written that is malformed or cannot be traced to what it was made of.
"""

from hashlib import sha256

import msgspec

from steersman.contracts.planning import facts
from steersman.contracts.planning.decisions import DocumentProblem, PrecheckReport
from steersman.contracts.planning.questions import QuestionPack
from steersman.contracts.planning.review import ReviewPack
from steersman.errors import WorkspaceError
from steersman.judges.planning import attest
from steersman.judges.planning import freeze as freezing
from steersman.judges.planning.freeze import PlanOutputs
from steersman.judges.planning.verify import verify_frozen_plan
from steersman.judges.text import clip_text, printable_text
from steersman.machines.coordinator import failure
from steersman.machines.coordinator.effects.plan_documents import (
    PlanningDocuments,
    planning_performer,
    require_settled_answers,
)
from steersman.machines.coordinator.graph import questions_for_inputs
from steersman.views.planning.markdown import render_plan_markdown, render_review_markdown
from steersman.views.planning.mermaid import render_graph_mermaid


@planning_performer("FROZEN_OUTPUTS")
def freeze_plan(documents: PlanningDocuments) -> facts.FreezeFacts:
    """Every output as bytes, written, read back and held against the manifest; the signed statement lies beside them."""
    outputs = _collect_plan_outputs(documents)
    files = freezing.freeze_plan_files(outputs, render_plan_files(outputs))
    malformed = freezing.find_malformed_files(files)
    lineage_gaps = freezing.find_lineage_gaps(outputs.graph, outputs.inputs.registry.snapshot())
    unmatched_files: tuple[DocumentProblem, ...] = ()
    write_error = ""
    if not malformed and not lineage_gaps:
        try:
            unmatched_files = _write_frozen_plan(documents, files)
        except WorkspaceError as error:
            write_error = clip_text(printable_text(str(error)), 1000)
    manifest = files[freezing.MANIFEST_FILE]
    return facts.FreezeFacts(
        files=len(files),
        unmatched=len(unmatched_files) + bool(write_error),
        untraced=len(lineage_gaps),
        malformed=len(malformed),
        manifest_ref=documents.call.payloads.add_text(manifest.decode()),
        manifest_digest=sha256(manifest).hexdigest(),
        signed=not write_error and not malformed and not lineage_gaps,
        failure_ref=documents.why(
            malformed or lineage_gaps or unmatched_files or write_error,
            lambda: failure.freeze_failure(
                documents.about,
                malformed=malformed,
                unmatched=unmatched_files,
                untraced=lineage_gaps,
                unwritten=write_error,
            ),
        ),
    )


def _collect_plan_outputs(documents: PlanningDocuments) -> freezing.PlanOutputs:
    return freezing.PlanOutputs(
        inputs=documents.inputs,
        intent=documents.raw,
        report=documents.read("report", PrecheckReport),
        routing=documents.routing,
        graph=documents.graph,
        packs=tuple(
            msgspec.json.decode(documents.call.payloads.get(ref), type=QuestionPack)
            for ref in documents.call.given("packs", ())
        ),
        settled=require_settled_answers(documents),
        review=documents.read("review", ReviewPack),
    )


def _write_frozen_plan(documents: PlanningDocuments, files: dict[str, bytes]) -> tuple[DocumentProblem, ...]:
    """Writes the plan with its envelope, reads it back, and says what is not as it should be."""
    directory = documents.call.payloads.get(
        documents.call.given("out", "")
    ) or documents.world.plans.default_directory(documents.call.run)
    statement = attest.plan_statement(files)
    keyid, signature = documents.world.sign(
        attest.pre_authentication_encoding(attest.PAYLOAD_TYPE, statement)
    )
    envelope = attest.signed_envelope(statement, keyid, signature)
    documents.world.plans.write(directory, {**files, attest.ENVELOPE_FILE: envelope})
    files_on_disk = documents.world.plans.read(directory)
    envelope_problems = (
        ()
        if files_on_disk.pop(attest.ENVELOPE_FILE, None) == envelope
        else (attest.missing_envelope_problem(),)
    )
    return (*envelope_problems, *verify_frozen_plan(files_on_disk))


def render_plan_files(outputs: PlanOutputs) -> dict[str, str]:
    """The files of a plan that are for people: the diagram and both texts, by name."""
    questions = questions_for_inputs(outputs.inputs)
    return {
        "execution_graph.mmd": render_graph_mermaid(outputs.graph),
        "plan.md": render_plan_markdown(outputs.graph, outputs.review, questions, outputs.settled),
        "review_pack.md": render_review_markdown(outputs.review),
    }
