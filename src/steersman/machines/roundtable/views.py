"""What a roundtable run tells of itself: its summary, its sections of a report, its change, and the files beside it."""

from collections.abc import Iterator

import msgspec

from steersman.engine.machine_package import Artifact, RunView
from steersman.engine.projections import format_json_file
from steersman.kernel.record import run_outcome
from steersman.machines.roundtable.context import RoundtableContext
from steersman.machines.shared.tree_summary import (
    base_problem_of_outcome,
    base_tree_section,
    check_result_files,
    escalation_section,
    evidence_questions_section,
    tree_summary_fields,
)
from steersman.views.report import (
    ReportFacts,
    check_evidence_section,
    findings_section,
    quoted_section,
    reviews_section,
    rounds_section,
)
from steersman.views.run_summary import RunFacts, SummaryFields, read_findings


def roundtable_summary_fields(facts: RunFacts) -> SummaryFields:
    """The fields of the run's summary that only its context tells."""
    context: RoundtableContext = facts.snapshot.context
    return SummaryFields(
        **tree_summary_fields(facts, context),
        round=context.round,
        base_measured=context.baseline == "measured",
        rounds=context.max_iterations,
        last_round_outcome=context.last_round_outcome or "",
        findings=read_findings(context.findings, facts.text),
        base_problem=base_problem_of_outcome(run_outcome(facts.machine, facts.snapshot)),
        confirmed_by=context.confirmed_by,
        delivery_failed=context.outcome == "approved" and context.handover == "failed",
        revert_failed=context.handover == "done" and bool(context.reverted_by and context.detail_ref),
    )


def roundtable_report_sections(report: ReportFacts) -> list[str]:
    """The discussion, the rounds, and what is proven of the tree."""
    context, text = report.facts.snapshot.context, report.facts.text
    return [
        *_discussion_section(context, report),
        *rounds_section(report),
        *reviews_section(report),
        *findings_section(report),
        *escalation_section(context.escalation, text),
        *check_evidence_section(report),
        *evidence_questions_section(
            context,
            text,
            asks=context.infrastructure == "changed" or context.evidence == "questioned",
            questions_ref=context.questions_ref,
        ),
        *base_tree_section(context, text),
    ]


def _discussion_section(context: RoundtableContext, report: ReportFacts) -> list[str]:
    text = report.facts.text
    pieces = (
        ("The proposal", context.proposal_ref),
        ("The reviewer on it", context.reviewer_notes_ref),
        ("The tester on it", context.tester_notes_ref),
    )
    lines = [line for title, ref in pieces for line in quoted_section(title, text(ref))]
    if not lines or not context.contract_digest:
        return lines
    return [*lines, f"The discussion is bound as contract `{context.contract_digest}`.", ""]


def read_roundtable_patch(run_view: RunView) -> str:
    """The change as text."""
    context: RoundtableContext = run_view.snapshot.context
    return run_view.text(context.patch_ref)


CONTRACT_TEXTS = ("task", "followup", "core_plan", "reviewer_notes", "tester_notes")


def list_roundtable_artifacts(run_view: RunView) -> Iterator[Artifact]:
    """The discussion's contract, the change as a patch, and the results of the checks."""
    context: RoundtableContext = run_view.snapshot.context
    if context.contract:
        yield "discussion_contract.json", lambda: _render_contract(context, run_view)
    if context.patch_ref:
        yield "code/diff.patch", lambda: run_view.text(context.patch_ref).encode()
    yield from check_result_files(run_view)


def _render_contract(context: RoundtableContext, run_view: RunView) -> bytes:
    """The contract with its digest, and the texts that its names stand for."""
    contract = context.contract
    texts = {name: run_view.text(contract[name]) for name in CONTRACT_TEXTS if contract.get(name)}
    document = {"digest": context.contract_digest, "contract": contract, "texts": texts}
    return format_json_file(msgspec.json.encode(document))
