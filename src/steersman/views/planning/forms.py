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
    OutputProduced,
    StateRecord,
)
from steersman.contracts.planning.questions import QuestionPack
from steersman.contracts.planning.review import FailurePack
from steersman.kernel.machine import Machine
from steersman.kernel.tape import Entry
from steersman.views.planning.guards import FAILED, evaluated

Text = Callable[[str], str]
PASSED = "validation_passed"
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


def brought(e: Entry) -> dict[str, Any]:
    """What one entry has put into the context."""
    found = {op[1]: op[2] for op in e.ops if op[0] == "set"}
    packs = found.get("packs", ())
    return {**found, "packs": packs[-1:] if found.get("pack_ref") else ()} if "packs" in found else found


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
    end = _end(m, entries)
    decisions = tuple(_decisions(found, steps))
    return CoordinatorRunTape(
        run_id=steps[0].run,
        plan_id=context.get("plan_id", ""),
        intent_id=context.get("intent_id", ""),
        coordinator_version=f"{steps[0].machine} {steps[0].definition}",  # as it was when the run began
        started_at=moment(steps[0].at),
        completed_at=moment(end.at) if end is not None else "",
        final_state=(end.ended or end.to) if end is not None else "",
        states=tuple(_states(m, steps)),
        decisions=decisions,
        rule_evaluations=tuple(_evaluations(found)),
        model_routing_decisions=tuple(msgspec.to_builtins(a) for a in found.routing),
        failure_info=_failure(found.failure) if _failed(end) else None,
        metadata={
            "states": len(steps),
            "guards": sum(len(e.guards) for e in steps),
            "decisions": len(decisions),
            "questions": sum(len(p.questions) for p in found.packs),
        },
    )


def _end(m: Machine, entries: Sequence[Entry]) -> Entry | None:
    """What has ended the run: its last step, or a person who has canceled it where it was."""
    return next((e for e in reversed(entries) if e.ended or (e.kind in STEPS and e.to in m.settled)), None)


def _failed(end: Entry | None) -> bool:
    """Whether a guard ended the run: what would be told of silence is kept while questions wait, and is no fact yet."""
    return end is not None and not end.ended and end.kind == "transition" and end.to in FAILED


def _states(m: Machine, steps: Iterable[Entry]) -> Iterator[StateRecord]:
    before = None
    for n, e in enumerate(steps, 1):
        yield StateRecord(
            sequence=n,
            from_state=e.source or "INIT",
            to_state=e.to,
            timestamp=moment(e.at),
            trigger=e.event,
            actor=e.actor,
            guards_evaluated=tuple(evaluated(m, name, held=held) for name, held in e.guards.items()),
            outputs_produced=tuple(_outputs(e)),
            duration_ms=max(0, e.at - (before if before is not None else e.at)),
        )
        before = e.at


def _outputs(e: Entry) -> Iterator[OutputProduced]:
    for op in e.ops:
        if tuple(op[:2]) == ("put", "outputs"):
            yield OutputProduced(artifact_type=op[2], artifact_id=f"{e.run}/{op[2]}", checksum=op[3])


def _decisions(found: Documents, steps: Iterable[Entry]) -> Iterator[DecisionRecord]:
    if found.report is not None:
        why, outcome = _prechecked(found, steps)
        yield _record("policy_check", found.report.intent_id, _refs(found.report), why, outcome)
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


def _prechecked(found: Documents, steps: Iterable[Entry]) -> tuple[str, str]:
    """Why and how PRECHECKED was left, by the step that left it: a report alone does not know the registry's problems."""
    if any(e.source == "PRECHECKED" and e.event == PASSED for e in steps):
        return "precheck: every guard is satisfied", "passed"
    told = found.failure.message if found.failure is not None else "a guard is not satisfied"
    return f"precheck: {told}", "failed"


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


def moment(ms: int) -> str:
    """A moment of the tape, to the millisecond, in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
