"""A planner's tape as the specification's AuditLog (001 §Audit Requirements): every transition, every important decision.

**Invariant:** a line says what its own entry of the tape has brought, never what came later.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from steersman.contracts.planning.forms import AuditLog, AuditRecord
from steersman.kernel.machine import Machine
from steersman.kernel.tape import Entry
from steersman.machines.coordinator.views.forms import (
    STEP_ENTRY_KINDS,
    PlanRunDocuments,
    TapePayloadReader,
    collect_entry_changes,
    format_tape_moment,
    read_run_documents,
)
from steersman.machines.coordinator.views.guards import FAILED_PLAN_STATES, describe_guard_evaluation


def build_audit_log(machine: Machine, entries: Sequence[Entry], text: TapePayloadReader) -> AuditLog:
    """The run as an audit log; a run that a person has canceled is closed by that."""
    run = entries[0].run
    records = [r for line in _build_entry_records(machine, entries, text) for r in line]
    numbered = (msgspec.structs.replace(r, log_id=f"{run}-{n:05}") for n, r in enumerate(records, 1))
    return AuditLog(coordinator_run_id=run, entries=tuple(numbered))


def _build_entry_records(
    machine: Machine, entries: Sequence[Entry], text: TapePayloadReader
) -> Iterator[Iterator[AuditRecord]]:
    known_context: dict[str, Any] = {}  # the context after the entries so far
    has_conflict = False  # whether an answer has contradicted a rule by now
    for entry in entries:
        known_context |= collect_entry_changes(entry)
        if entry.kind in STEP_ENTRY_KINDS:
            yield _transition_records(machine, entry)
            yield _decision_audit_records(
                entry, read_run_documents(collect_entry_changes(entry), text), has_conflict=has_conflict
            )
            has_conflict |= entry.event == "answers_conflict"
            if entry.to in machine.settled:
                yield _run_end_records(machine, entry, read_run_documents(known_context, text))
        if entry.ended:
            yield iter(
                (
                    _build_audit_record(
                        entry,
                        "run_failed",
                        final_state=entry.ended,
                        message=entry.why or "stopped by a person",
                    ),
                )
            )


def _build_audit_record(entry: Entry, kind: Any, *, critical: bool = False, **details: Any) -> AuditRecord:
    return AuditRecord(
        log_id="",
        event_type=kind,
        coordinator_run_id=entry.run,
        timestamp=format_tape_moment(entry.at),
        operator=entry.actor,
        critical=critical,
        record=details,
    )


def _transition_records(machine: Machine, entry: Entry) -> Iterator[AuditRecord]:
    if entry.kind == "created":
        yield _build_audit_record(entry, "run_started", definition=entry.definition)
    guards = {
        g.guard_name: g.passed
        for g in (describe_guard_evaluation(machine, n, is_true=h) for n, h in entry.guards.items())
    }
    step: dict[str, Any] = {
        "from": entry.source or "INIT",
        "to": entry.to,
        "trigger": entry.event,
        "guards": guards,
    }
    yield _build_audit_record(entry, "state_transition", **step)


def _decision_audit_records(
    entry: Entry, documents: PlanRunDocuments, *, has_conflict: bool
) -> Iterator[AuditRecord]:
    match entry.source, entry.event:
        case "PRECHECKED", _:
            yield from _red_line_records(entry, documents)
        case "RULES_EVALUATED", _:
            yield from _rule_decision_records(entry, documents)
        case "QUESTIONS_EMITTED", "questions_emitted":
            yield _build_audit_record(entry, "question_emitted", packs=[p.pack_id for p in documents.packs])
        case "AWAITING_ANSWERS", ("answers_given" | "answers_stopped"):
            yield _build_audit_record(entry, "answer_received", **_answer_event_details(entry))
        case "AWAITING_ANSWERS", "answers_conflict":
            yield _build_audit_record(entry, "conflict_detected", to=entry.to)
        case (("AWAITING_ANSWERS" | "GRAPH_DRAFTED"), _) if has_conflict and entry.to == "GRAPH_FINALIZED":
            # By other answers, or by rules that allow it now.
            yield _build_audit_record(entry, "conflict_resolved", to=entry.to)


def _red_line_records(entry: Entry, run_documents: PlanRunDocuments) -> Iterator[AuditRecord]:
    for check in run_documents.report.red_lines if run_documents.report is not None else ():
        broken = [f"{p.field}: {p.message}" for p in check.details]
        action = "log" if check.passed else "abort" if check.red_line == "I1" else "block"
        yield _build_audit_record(entry, "red_line_check", critical=action == "abort", red_line=check.red_line, passed=check.passed,
                      violation_details=broken, enforcement_action=action)  # fmt: skip


def _rule_decision_records(entry: Entry, run_documents: PlanRunDocuments) -> Iterator[AuditRecord]:
    for decision in run_documents.decisions:
        details = {"command": decision.command_id, "decision": decision.decision, "reason": decision.reason}
        yield _build_audit_record(entry, "rule_adjudication", critical=decision.hard, **details)
    for advice in run_documents.routing:
        chosen = {"agent": advice.agent_id, "model": advice.model, "reason": advice.reason}
        yield _build_audit_record(entry, "model_selected", critical=advice.violation, **chosen)
    if entry.to in FAILED_PLAN_STATES:
        yield _build_audit_record(entry, "policy_enforcement", trigger=entry.event, to=entry.to)


def _run_end_records(machine: Machine, entry: Entry, documents: PlanRunDocuments) -> Iterator[AuditRecord]:
    kind = "run_completed" if entry.to in machine.successes else "run_failed"
    why = (
        documents.failure.message if documents.failure is not None and entry.to in FAILED_PLAN_STATES else ""
    )
    yield _build_audit_record(
        entry, kind, critical=entry.to == "ABORTED", final_state=entry.to, **({"message": why} if why else {})
    )


def _answer_event_details(entry: Entry) -> dict[str, Any]:
    """What was chosen, and who did; without a person, the time for answers was over."""
    data: dict[str, Any] = msgspec.to_builtins(entry.data)
    return {
        "choice": data["choice"],
        "person": data.get("person", ""),
        "timed_out": data.get("timed_out", False),
    }
