"""A planner's tape as the specification's AuditLog (001 §Audit Requirements): every transition, every decision of weight.

**Invariant:** a line says what its own entry of the tape has brought, never what came later.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from steersman.contracts.planning.forms import AuditLog, AuditRecord
from steersman.kernel.machine import Machine
from steersman.kernel.tape import Entry
from steersman.views.planning.forms import STEPS, Documents, Text, brought, documents, moment
from steersman.views.planning.guards import FAILED, evaluated


def audit_log(m: Machine, entries: Sequence[Entry], text: Text) -> AuditLog:
    """The run as an audit log; a run that a person has canceled is closed by that."""
    run = entries[0].run
    records = [r for line in _lines(m, entries, text) for r in line]
    numbered = (msgspec.structs.replace(r, log_id=f"{run}-{n:05}") for n, r in enumerate(records, 1))
    return AuditLog(coordinator_run_id=run, entries=tuple(numbered))


def _lines(m: Machine, entries: Sequence[Entry], text: Text) -> Iterator[Iterator[AuditRecord]]:
    known: dict[str, Any] = {}  # as the entries until here have it
    against = False  # whether an answer has contradicted a rule by now
    for e in entries:
        known |= brought(e)
        if e.kind in STEPS:
            yield _transition(m, e)
            yield _decided(e, documents(brought(e), text), against=against)
            against |= e.event == "answers_conflict"
            if e.to in m.settled:
                yield _over(m, e, documents(known, text))
        if e.ended:
            yield iter(
                (_record(e, "run_failed", final_state=e.ended, message=e.why or "stopped by a person"),)
            )


def _record(e: Entry, kind: Any, *, critical: bool = False, **said: Any) -> AuditRecord:
    return AuditRecord(
        log_id="",
        event_type=kind,
        coordinator_run_id=e.run,
        timestamp=moment(e.at),
        operator=e.actor,
        critical=critical,
        record=said,
    )


def _transition(m: Machine, e: Entry) -> Iterator[AuditRecord]:
    if e.kind == "created":
        yield _record(e, "run_started", definition=e.definition)
    guards = {g.guard_name: g.passed for g in (evaluated(m, n, held=h) for n, h in e.guards.items())}
    step: dict[str, Any] = {"from": e.source or "INIT", "to": e.to, "trigger": e.event, "guards": guards}
    yield _record(e, "state_transition", **step)


def _decided(e: Entry, found: Documents, *, against: bool) -> Iterator[AuditRecord]:
    match e.source, e.event:
        case "PRECHECKED", _:
            yield from _red_lines(e, found)
        case "RULES_EVALUATED", _:
            yield from _ruled(e, found)
        case "QUESTIONS_EMITTED", "questions_emitted":
            yield _record(e, "question_emitted", packs=[p.pack_id for p in found.packs])
        case "AWAITING_ANSWERS", ("answers_given" | "answers_stopped"):
            yield _record(e, "answer_received", **_answer(e))
        case "AWAITING_ANSWERS", "answers_conflict":
            yield _record(e, "conflict_detected", to=e.to)
        case (("AWAITING_ANSWERS" | "GRAPH_DRAFTED"), _) if against and e.to == "GRAPH_FINALIZED":
            yield _record(e, "conflict_resolved", to=e.to)  # by other answers, or by rules that allow it now


def _red_lines(e: Entry, found: Documents) -> Iterator[AuditRecord]:
    for check in found.report.red_lines if found.report is not None else ():
        broken = [f"{p.field}: {p.message}" for p in check.details]
        action = "log" if check.passed else "abort" if check.red_line == "I1" else "block"
        yield _record(e, "red_line_check", critical=action == "abort", red_line=check.red_line, passed=check.passed,
                      violation_details=broken, enforcement_action=action)  # fmt: skip


def _ruled(e: Entry, found: Documents) -> Iterator[AuditRecord]:
    for d in found.decisions:
        said = {"command": d.command_id, "decision": d.decision, "reason": d.reason}
        yield _record(e, "rule_adjudication", critical=d.hard, **said)
    for a in found.routing:
        chosen = {"agent": a.agent_id, "model": a.model, "reason": a.reason}
        yield _record(e, "model_selected", critical=a.violation, **chosen)
    if e.to in FAILED:
        yield _record(e, "policy_enforcement", trigger=e.event, to=e.to)


def _over(m: Machine, e: Entry, found: Documents) -> Iterator[AuditRecord]:
    kind = "run_completed" if e.to in m.successes else "run_failed"
    why = found.failure.message if found.failure is not None and e.to in FAILED else ""
    yield _record(e, kind, critical=e.to == "ABORTED", final_state=e.to, **({"message": why} if why else {}))


def _answer(e: Entry) -> dict[str, Any]:
    """What was chosen, and who did; without a person, the time for answers was over."""
    data: dict[str, Any] = msgspec.to_builtins(e.data)
    return {
        "choice": data["choice"],
        "person": data.get("person", ""),
        "timed_out": data.get("timed_out", False),
    }
