"""A planner's tape in the specification's two forms: CoordinatorRunTape and AuditLog (001 §Audit Requirements).

**Invariant:** a function of the entries and of the documents they name; nothing is worked out again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec

from steersman.contracts.planning.decisions import PrecheckReport, RiskAssessment, RoutingAdvice, RuleDecision
from steersman.contracts.planning.forms import (
    AuditLog,
    AuditRecord,
    CoordinatorRunTape,
    DecisionRecord,
    FailureInfo,
    GuardEvaluated,
    OutputProduced,
    StateRecord,
)
from steersman.contracts.planning.questions import QuestionPack
from steersman.contracts.planning.review import FailurePack
from steersman.kernel.definition import Guard, StateDef, otherwise
from steersman.kernel.machine import Machine
from steersman.kernel.machine import guards as all_guards
from steersman.kernel.tape import Entry

Text = Callable[[str], str]
FAILED = ("BLOCKED", "ABORTED")
STEPS = ("created", "transition", "override")


class Documents(msgspec.Struct, frozen=True):
    """The documents of a run that its tape names; what a run has not come to, or what was pruned, is not there."""

    report: PrecheckReport | None
    decisions: tuple[RuleDecision, ...]
    routing: tuple[RoutingAdvice, ...]
    risk: RiskAssessment | None
    packs: tuple[QuestionPack, ...]
    failure: FailurePack | None


def documents(context: dict[str, Any], text: Text) -> Documents:
    """Reads what a run's context names."""

    def one(name: str, shape: Any) -> Any:
        return _document(text(context.get(name, "")), shape)

    packs = (_document(text(ref), QuestionPack) for ref in context.get("packs", ()))
    return Documents(
        report=one("report_ref", PrecheckReport),
        decisions=one("decisions_ref", tuple[RuleDecision, ...]) or (),
        routing=one("routing_ref", tuple[RoutingAdvice, ...]) or (),
        risk=one("risk_ref", RiskAssessment),
        packs=tuple(p for p in packs if p is not None),
        failure=one("failure_ref", FailurePack),
    )


def _document(text: str, shape: Any) -> Any:
    """A document, or None where its text is gone."""
    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.MsgspecError:
        return None


def run_tape(m: Machine, entries: Sequence[Entry], context: dict[str, Any], text: Text) -> CoordinatorRunTape:
    """The run as the specification's tape."""
    found = documents(context, text)
    steps = [e for e in entries if e.kind in STEPS]
    over = steps[-1].to in m.settled
    return CoordinatorRunTape(
        run_id=steps[0].run,
        plan_id=context.get("plan_id", ""),
        intent_id=context.get("intent_id", ""),
        coordinator_version=f"{steps[0].machine} {steps[0].definition}",  # as it was when the run began
        started_at=moment(steps[0].at),
        completed_at=moment(steps[-1].at) if over else "",
        final_state=steps[-1].to if over else "",
        states=tuple(_states(m, steps)),
        decisions=tuple(_decisions(found)),
        rule_evaluations=tuple(_evaluations(found)),
        model_routing_decisions=tuple(msgspec.to_builtins(a) for a in found.routing),
        failure_info=_failure(found.failure),
        metadata={
            "states": len(steps),
            "guards": sum(len(e.guards) for e in steps),
            "decisions": len(found.decisions),
            "questions": sum(len(p.questions) for p in found.packs),
        },
    )


def _states(m: Machine, steps: Iterable[Entry]) -> Iterator[StateRecord]:
    before = None
    for n, e in enumerate(steps, 1):
        yield StateRecord(
            sequence=n,
            from_state=e.source or "INIT",
            to_state=e.to,
            timestamp=moment(e.at),
            trigger=e.event,
            guards_evaluated=tuple(_guard(m, name, held=held) for name, held in e.guards.items()),
            outputs_produced=tuple(_outputs(e)),
            duration_ms=max(0, e.at - (before if before is not None else e.at)),
        )
        before = e.at


def _guard(m: Machine, name: str, *, held: bool) -> GuardEvaluated:
    """A guard that stops has passed when what it speaks of is not so."""
    said = _sentences(m).get(name, name)
    passed = held != (name in _stopping(m))
    return GuardEvaluated(guard_name=name, passed=passed, reason=said if held else f"not so: {said}")


@cache
def _sentences(m: Machine) -> dict[str, str]:
    return {g.name: g.sentence for g in all_guards(m)}


@cache
def _stopping(m: Machine) -> frozenset[str]:
    """The guards that lead only to where a plan ends or waits on."""
    return frozenset(g.name for n in m.namings.values() for g, e in n.pairs if _ends(m, g, e.name))


def _ends(m: Machine, guard: Guard, event: str) -> bool:
    if guard is otherwise:
        return False
    targets = {r.to.name for r in m.rows if r.on.name == event and isinstance(r.to, StateDef)}
    return bool(targets & {*FAILED}) or event == "answers_refused"


def _outputs(e: Entry) -> Iterator[OutputProduced]:
    for op in e.ops:
        if tuple(op[:2]) == ("put", "outputs"):
            yield OutputProduced(artifact_type=op[2], artifact_id=f"{e.run}/{op[2]}", checksum=op[3])


def _decisions(found: Documents) -> Iterator[DecisionRecord]:
    if found.report is not None:
        yield _record(
            "policy_check", found.report.intent_id, _refs(found.report), "precheck", _outcome(found.report)
        )
    for d in found.decisions:
        others = tuple(f"{r.rule_id}: {r.decision}" for r in d.rules if r.outcome == "fired")
        yield _record("rule_adjudication", d.decision_id, d.evidence_used, d.reason, d.decision, others)
    if found.risk is not None:
        seen = tuple(sorted({ref for f in found.risk.factors for ref in f.evidence_refs}))
        why = "; ".join(f.what for f in found.risk.factors)
        yield _record("risk_assessment", "risk", seen, why, found.risk.overall_risk)
    for a in found.routing:
        yield _record(
            "model_routing", a.agent_id, (), a.reason, a.model or "none", tuple(filter(None, (a.fallback,)))
        )
    for pack in found.packs:
        for q in pack.questions:
            yield _record("question_emission", q.question_id, q.evidence_refs, q.context, q.type)


def _record(
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


def _refs(report: PrecheckReport) -> tuple[str, ...]:
    return tuple(f"registry://{r.kind}/{r.id}" for r in report.references)


def _outcome(report: PrecheckReport) -> str:
    return "passed" if report.schema_valid and all(c.passed for c in report.red_lines) else "failed"


def _evaluations(found: Documents) -> Iterator[dict[str, Any]]:
    for d in found.decisions:
        for r in d.rules:
            yield {"target": d.command_id, **msgspec.to_builtins(r)}


def _failure(pack: FailurePack | None) -> FailureInfo | None:
    if pack is None:
        return None
    return FailureInfo(
        failure_type=pack.failure_type,
        failure_message=pack.message,
        failed_at_state=pack.failed_at_state,
        recovery_suggestions=pack.recovery_suggestions,
    )


def audit_log(m: Machine, entries: Sequence[Entry], context: dict[str, Any], text: Text) -> AuditLog:
    """The run as the specification's audit log: every transition, and every decision of weight where it was made."""
    found = documents(context, text)
    run = entries[0].run
    records = [r for e in entries if e.kind in STEPS for r in _told(m, e, found)]
    numbered = (msgspec.structs.replace(r, log_id=f"{run}-{n:05}") for n, r in enumerate(records, 1))
    return AuditLog(coordinator_run_id=run, entries=tuple(numbered))


def _told(m: Machine, e: Entry, found: Documents) -> Iterator[AuditRecord]:
    def record(kind: Any, *, critical: bool = False, **said: Any) -> AuditRecord:
        return AuditRecord(
            log_id="",
            event_type=kind,
            coordinator_run_id=e.run,
            timestamp=moment(e.at),
            operator=e.actor,
            critical=critical,
            record=said,
        )

    if e.kind == "created":
        yield record("run_started", definition=e.definition)
    passed = {g.guard_name: g.passed for g in (_guard(m, n, held=h) for n, h in e.guards.items())}
    step: dict[str, Any] = {"from": e.source or "INIT", "to": e.to, "trigger": e.event, "guards": passed}
    yield record("state_transition", **step)
    match e.source, e.event:
        case "PRECHECKED", _ if found.report is not None:
            for check in found.report.red_lines:
                broken = [f"{p.field}: {p.message}" for p in check.details]
                action = "log" if check.passed else "abort" if check.red_line == "I1" else "block"
                yield record("red_line_check", critical=action == "abort", red_line=check.red_line, passed=check.passed,
                             violation_details=broken, enforcement_action=action)  # fmt: skip
        case "RULES_EVALUATED", _:
            for d in found.decisions:
                yield record(
                    "rule_adjudication",
                    critical=d.hard,
                    command=d.command_id,
                    decision=d.decision,
                    reason=d.reason,
                )
            for a in found.routing:
                yield record(
                    "model_selected", critical=a.violation, agent=a.agent_id, model=a.model, reason=a.reason
                )
            if e.to in FAILED:
                yield record("policy_enforcement", trigger=e.event, to=e.to)
        case "QUESTIONS_EMITTED", "questions_emitted":
            yield record("question_emitted", packs=[p.pack_id for p in found.packs])
        case "AWAITING_ANSWERS", "answers_given":
            yield record("answer_received", choice=_choice(e))
        case "AWAITING_ANSWERS", "answers_conflict":
            yield record("conflict_detected", to=e.to)
        case "AWAITING_ANSWERS", "answers_received" if len(found.packs) > 1:
            yield record("conflict_resolved", to=e.to)
    if e.to in m.settled:
        kind = "run_completed" if e.to in m.successes else "run_failed"
        why = found.failure.message if found.failure is not None else ""
        yield record(kind, critical=e.to == "ABORTED", final_state=e.to, **({"message": why} if why else {}))


def _choice(e: Entry) -> str:
    return (
        str((e.data or {}).get("choice", ""))
        if isinstance(e.data, dict)
        else str(getattr(e.data, "choice", ""))
    )


def moment(ms: int) -> str:
    """A moment of the tape, to the millisecond, in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
