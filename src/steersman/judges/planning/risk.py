"""Assesses the risk of a plan: every factor with its evidence. The gravest factor is the risk of the plan.

**Invariant:** no factor lowers the risk that the author states, and no factor cites the intent itself.
"""

from collections.abc import Iterator
from typing import cast

from steersman.contracts.planning.content import CommandSpec, Workflow
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import RiskAssessment, RiskFactor, RuleDecision
from steersman.contracts.planning.intent import ExecutionIntent, PlannedCommand
from steersman.contracts.planning.words import (
    RISK_LEVELS,
    ReviewCategory,
    RiskLevel,
    RuleSeverity,
    gravest_risk,
)
from steersman.judges.planning.environment import build_command_target, list_selected_phases
from steersman.judges.planning.evidence import CitableEvidence
from steersman.judges.planning.registry import Registry, format_pin
from steersman.judges.planning.rule_evidence import MAX_CITED_REFS, RuleEvidence
from steersman.judges.text import clip_text

_INTENT_SCHEME = "intent://"  # an intent is no evidence for what it says
# What a command is worth that a rule wants looked at, by the rule's severity.
_RISK_BY_SEVERITY: dict[RuleSeverity, RiskLevel] = {
    "info": "low",
    "warn": "medium",
    "error": "high",
    "block": "critical",
}


def assess_plan_risk(
    intent: ExecutionIntent, registry: Registry, decisions: tuple[RuleDecision, ...], bundle: ContextBundle
) -> RiskAssessment:
    """The danger of everything that is not left out."""
    planned = [
        (command, decision)
        for command, decision in zip(intent.planned_commands, decisions, strict=True)
        if decision.decision != "deny"
    ]
    citable = CitableEvidence(intent, registry, bundle)
    rule_evidence = RuleEvidence(intent, bundle, citable)
    factors = (
        *_stated_risk_factors(intent, citable),
        *(
            factor
            for command, _ in planned
            for factor in _command_risk_factors(intent, registry, citable, command)
        ),
        *(factor for _, decision in planned for factor in _rule_risk_factors(decision)),
        *_dangling_ref_factors(intent, citable, rule_evidence),
        *_project_risk_factors(registry, rule_evidence, bundle, [c for c, _ in planned]),
    )
    return RiskAssessment(
        overall_risk=gravest_risk(*(factor.risk for factor in factors)),
        stated_risk=intent.risk.overall,
        factors=tuple(sorted(factors, key=lambda f: (-RISK_LEVELS.index(f.risk), f.what))),
        requires_review=_collect_plan_reviews(intent, registry, [decision for _, decision in planned]),
    )


def _stated_risk_factors(intent: ExecutionIntent, citable: CitableEvidence) -> Iterator[RiskFactor]:
    """What the author says, with what the intent cites about the project; more than low without it is unjustified."""
    cited_refs = (*intent.evidence_refs, *(ref for c in intent.planned_commands for ref in c.evidence_refs))
    project_refs = [
        ref for ref in dict.fromkeys(cited_refs) if citable.speaks(ref) and not ref.startswith(_INTENT_SCHEME)
    ]
    for driver in intent.risk.drivers if project_refs or intent.risk.overall != "low" else ():
        yield _build_risk_factor(
            intent.risk.overall, f"the intent says: {driver}", *project_refs[:MAX_CITED_REFS]
        )


def _command_risk_factors(
    intent: ExecutionIntent, registry: Registry, citable: CitableEvidence, planned: PlannedCommand
) -> Iterator[RiskFactor]:
    spec = cast("CommandSpec | None", registry.usable("command", planned.command_id))
    if spec is None:
        return
    target = build_command_target(planned, spec, list_selected_phases(intent))
    entry = format_pin(registry.entries["command", spec.id])
    refs = (entry, *citable.leading(planned.evidence_refs))
    if target.risk != "low":
        yield _build_risk_factor(target.risk, f"{spec.id} is {target.risk}: {spec.title}", *refs)
    if spec.destructive:
        yield _build_risk_factor(
            gravest_risk("high", target.risk),
            f"{spec.id} destroys; {spec.rollback or 'no way back is known'}",
            entry,
        )
    if target.understated:
        registry_claim = f"{', '.join(target.effects)} at {target.risk}"
        intent_claim = f"{', '.join(planned.effects)} at {planned.risk_level}"
        yield _build_risk_factor(
            target.risk,
            f"{spec.id} is stated as {intent_claim}; the registry makes it {registry_claim}",
            *refs,
        )


def _rule_risk_factors(decision: RuleDecision) -> Iterator[RiskFactor]:
    if decision.decision == "require_review":
        yield _build_risk_factor(
            _RISK_BY_SEVERITY[decision.severity],
            f"{decision.command_id}: {decision.reason}",
            *decision.evidence_used,
        )


def _dangling_ref_factors(
    intent: ExecutionIntent, citable: CitableEvidence, rule_evidence: RuleEvidence
) -> Iterator[RiskFactor]:
    """References of the whole intent that lead nowhere: less evidence is more risk."""
    if missing := citable.missing(intent.evidence_refs):
        message = f"the intent cites what cannot be found: {', '.join(missing)}"
        yield _build_risk_factor("medium", message, rule_evidence.scan)


def _project_risk_factors(
    registry: Registry, rule_evidence: RuleEvidence, bundle: ContextBundle, planned: list[PlannedCommand]
) -> Iterator[RiskFactor]:
    """What the project itself brings; on its own never more than medium."""
    specs = (cast("CommandSpec | None", registry.usable("command", c.command_id)) for c in planned)
    writes = any(
        "write" in {*c.effects, *(s.effects if s else ())} for c, s in zip(planned, specs, strict=True)
    )
    bounds = bundle.facts.bounds
    if not bounds.complete:
        why = "; ".join((bounds.stopped_by or "it was stopped", *bounds.unread))
        yield _build_risk_factor("medium", f"the scan is not complete: {why}", rule_evidence.scan)
    secret_refs = rule_evidence.cited("secret_file")
    if secret_refs is not None:
        yield _build_risk_factor("medium", "files that usually hold secrets are in the tree", *secret_refs)
    untested = rule_evidence.cited("known:test_command")
    if writes and untested and rule_evidence.cited("test_command") is None:
        yield _build_risk_factor(
            "medium", "something is written, and the project has no test command", *untested
        )
    unbuilt = rule_evidence.cited("known:ci")
    if writes and unbuilt and rule_evidence.cited("ci") is None:
        yield _build_risk_factor(
            "low", "something is written, and nothing builds the project on its own", *unbuilt
        )


def _collect_plan_reviews(
    intent: ExecutionIntent, registry: Registry, decisions: list[RuleDecision]
) -> tuple[ReviewCategory, ...]:
    """Who has to look: as the intent, the rules and the selected phases say."""
    reviews = {*intent.risk.requires_review, *(review for d in decisions for review in d.review)}
    for selected in intent.selected_workflows:
        workflow = cast("Workflow | None", registry.usable("workflow", selected.workflow_id))
        phases = workflow.phases if workflow else ()
        reviews |= {review for p in phases if p.phase in selected.phases for review in p.review}
    return tuple(sorted(reviews))


def _build_risk_factor(risk: RiskLevel, description: str, *refs: str) -> RiskFactor:
    kept_refs = {ref for ref in refs if not ref.startswith(_INTENT_SCHEME)}
    return RiskFactor(risk=risk, what=clip_text(description, 1000), evidence_refs=tuple(sorted(kept_refs)))
