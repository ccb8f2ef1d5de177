"""A planner's tape in the specification's form, CoordinatorRunTape (001 §Audit Requirements).

**Invariant:** a function of the entries and of the documents they name; nothing is worked out again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from steersman.contracts.planning.decisions import PrecheckReport, RiskAssessment, RoutingAdvice, RuleDecision
from steersman.contracts.planning.forms import (
    CoordinatorRunTape,
    DecisionRecord,
    FailureInfo,
    ProducedOutput,
    StateRecord,
)
from steersman.contracts.planning.questions import QuestionPack
from steersman.contracts.planning.review import FailurePack
from steersman.kernel.machine import Machine
from steersman.kernel.tape import Entry
from steersman.machines.coordinator.views.guards import FAILED_PLAN_STATES, describe_guard_evaluation
from steersman.machines.coordinator.views.outcome import decode_plan_document

TapePayloadReader = Callable[[str], str]
PRECHECK_PASSED = "validation_passed"
STEP_ENTRY_KINDS = ("created", "transition", "override")


class PlanRunDocuments(msgspec.Struct, frozen=True):
    """The documents of a run that its tape names; what a run has not come to, or what was pruned, is not there."""

    report: PrecheckReport | None
    decisions: tuple[RuleDecision, ...]
    routing: tuple[RoutingAdvice, ...]
    risk: RiskAssessment | None
    packs: tuple[QuestionPack, ...]
    failure: FailurePack | None


def read_run_documents(context: dict[str, Any], text: TapePayloadReader) -> PlanRunDocuments:
    """Reads what a run's context names."""

    def read_document(name: str, shape: Any) -> Any:
        return decode_plan_document(text(context.get(name, "")), shape)

    packs = (decode_plan_document(text(ref), QuestionPack) for ref in context.get("packs", ()))
    return PlanRunDocuments(
        report=read_document("report_ref", PrecheckReport),
        decisions=read_document("decisions_ref", tuple[RuleDecision, ...]) or (),
        routing=read_document("routing_ref", tuple[RoutingAdvice, ...]) or (),
        risk=read_document("risk_ref", RiskAssessment),
        packs=tuple(p for p in packs if p is not None),
        failure=read_document("failure_ref", FailurePack),
    )


def collect_entry_changes(entry: Entry) -> dict[str, Any]:
    """What one entry has put into the context."""
    changes = {op[1]: op[2] for op in entry.ops if op[0] == "set"}
    packs = changes.get("packs", ())
    return (
        {**changes, "packs": packs[-1:] if changes.get("pack_ref") else ()} if "packs" in changes else changes
    )


def build_run_tape(
    machine: Machine, entries: Sequence[Entry], context: dict[str, Any], text: TapePayloadReader
) -> CoordinatorRunTape:
    """The run as the specification's tape."""
    run_documents = read_run_documents(context, text)
    steps = [e for e in entries if e.kind in STEP_ENTRY_KINDS]
    end = _find_end_entry(machine, entries)
    decisions = tuple(_build_decision_records(run_documents, steps))
    return CoordinatorRunTape(
        run_id=steps[0].run,
        plan_id=context.get("plan_id", ""),
        intent_id=context.get("intent_id", ""),
        coordinator_version=f"{steps[0].machine} {steps[0].definition}",  # as it was when the run began
        started_at=format_tape_moment(steps[0].at),
        completed_at=format_tape_moment(end.at) if end is not None else "",
        final_state=(end.ended or end.to) if end is not None else "",
        states=tuple(_build_state_records(machine, steps)),
        decisions=decisions,
        rule_evaluations=tuple(_build_rule_evaluations(run_documents)),
        model_routing_decisions=tuple(msgspec.to_builtins(a) for a in run_documents.routing),
        failure_info=_build_failure_info(run_documents.failure) if _is_failed_by_guard(end) else None,
        metadata={
            "states": len(steps),
            "guards": sum(len(e.guards) for e in steps),
            "decisions": len(decisions),
            "questions": sum(len(p.questions) for p in run_documents.packs),
        },
    )


def _find_end_entry(machine: Machine, entries: Sequence[Entry]) -> Entry | None:
    """What has ended the run: its last step, or a person who has canceled it where it was."""
    return next(
        (e for e in reversed(entries) if e.ended or (e.kind in STEP_ENTRY_KINDS and e.to in machine.settled)),
        None,
    )


def _is_failed_by_guard(end: Entry | None) -> bool:
    """Whether a guard ended the run: what would be told of silence is kept while questions wait, and is no fact yet."""
    return end is not None and not end.ended and end.kind == "transition" and end.to in FAILED_PLAN_STATES


def _build_state_records(machine: Machine, steps: Iterable[Entry]) -> Iterator[StateRecord]:
    previous_at = None
    for n, entry in enumerate(steps, 1):
        yield StateRecord(
            sequence=n,
            from_state=entry.source or "INIT",
            to_state=entry.to,
            timestamp=format_tape_moment(entry.at),
            trigger=entry.event,
            actor=entry.actor,
            guards_evaluated=tuple(
                describe_guard_evaluation(machine, name, is_true=is_true)
                for name, is_true in entry.guards.items()
            ),
            outputs_produced=tuple(_build_output_records(entry)),
            duration_ms=max(0, entry.at - (previous_at if previous_at is not None else entry.at)),
        )
        previous_at = entry.at


def _build_output_records(entry: Entry) -> Iterator[ProducedOutput]:
    for op in entry.ops:
        if tuple(op[:2]) == ("put", "outputs"):
            yield ProducedOutput(artifact_type=op[2], artifact_id=f"{entry.run}/{op[2]}", checksum=op[3])


def _build_decision_records(
    run_documents: PlanRunDocuments, steps: Iterable[Entry]
) -> Iterator[DecisionRecord]:
    if run_documents.report is not None:
        why, outcome = _precheck_outcome(run_documents, steps)
        yield _build_decision_record(
            "policy_check",
            run_documents.report.intent_id,
            _format_report_refs(run_documents.report),
            why,
            outcome,
        )
    for decision in run_documents.decisions:
        others = tuple(f"{r.rule_id}: {r.decision}" for r in decision.rules if r.outcome == "fired")
        yield _build_decision_record(
            "rule_adjudication",
            decision.decision_id,
            decision.evidence_used,
            decision.reason,
            decision.decision,
            others,
        )
    if run_documents.risk is not None:
        refs = tuple(sorted({ref for f in run_documents.risk.factors for ref in f.evidence_refs}))
        why = "; ".join(f.what for f in run_documents.risk.factors)
        yield _build_decision_record("risk_assessment", "risk", refs, why, run_documents.risk.overall_risk)
    for advice in run_documents.routing:
        yield _build_decision_record(
            "model_routing",
            advice.agent_id,
            (),
            advice.reason,
            advice.model or "none",
            tuple(filter(None, (advice.fallback,))),
        )
    for pack in run_documents.packs:
        for question in pack.questions:
            yield _build_decision_record(
                "question_emission",
                question.question_id,
                question.evidence_refs,
                question.context,
                question.type,
            )


def _build_decision_record(
    kind: Any, id_: str, inputs: Iterable[str], why: str, outcome: str, others: tuple[str, ...] = ()
) -> DecisionRecord:
    return DecisionRecord(
        decision_id=id_,
        decision_type=kind,
        inputs=tuple(inputs),
        rationale=why[:4000],
        outcome=outcome,
        alternatives_considered=others,
    )


def _format_report_refs(report: PrecheckReport) -> tuple[str, ...]:
    return tuple(f"registry://{r.kind}/{r.id}" for r in report.references)


def _precheck_outcome(documents: PlanRunDocuments, steps: Iterable[Entry]) -> tuple[str, str]:
    """Why and how PRECHECKED was left, by the step that left it: a report alone does not know the registry's problems."""
    if any(e.source == "PRECHECKED" and e.event == PRECHECK_PASSED for e in steps):
        return "precheck: every guard is satisfied", "passed"
    message = documents.failure.message if documents.failure is not None else "a guard is not satisfied"
    return f"precheck: {message}", "failed"


def _build_rule_evaluations(run_documents: PlanRunDocuments) -> Iterator[dict[str, Any]]:
    for decision in run_documents.decisions:
        for outcome in decision.rules:
            yield {"target": decision.command_id, **msgspec.to_builtins(outcome)}


def _build_failure_info(pack: FailurePack | None) -> FailureInfo | None:
    if pack is None:
        return None
    return FailureInfo(
        failure_type=pack.failure_type,
        failure_message=pack.message,
        failed_at_state=pack.failed_at_state,
        recovery_suggestions=pack.recovery_suggestions,
    )


def format_tape_moment(ms: int) -> str:
    """A moment of the tape, to the millisecond, in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
