"""How dangerous a plan is: everything that speaks for danger, each with what shows it; the gravest is the plan's risk.

**Invariant:** nothing makes a plan less dangerous than its author said it is, and no factor cites the intent itself.
"""

from collections.abc import Iterator
from typing import cast

from steersman.contracts.planning.content import CommandSpec, Workflow
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import RiskAssessment, RiskFactor, RuleDecision
from steersman.contracts.planning.intent import ExecutionIntent, PlannedCommand
from steersman.contracts.planning.words import RISKS, Review, Risk, Severity, graver
from steersman.judges.planning.basis import CITED, Grounds
from steersman.judges.planning.environment import selected_phases, target_of
from steersman.judges.planning.evidence import Shelf
from steersman.judges.planning.registry import Registry, pin
from steersman.judges.text import clip

_OWN = "intent://"  # an intent is no evidence for what it says
# What a command is worth that a rule wants looked at, by the rule's severity.
_WANTED: dict[Severity, Risk] = {"info": "low", "warn": "medium", "error": "high", "block": "critical"}


def assess(
    intent: ExecutionIntent, registry: Registry, decisions: tuple[RuleDecision, ...], bundle: ContextBundle
) -> RiskAssessment:
    """The danger of everything that is not left out."""
    planned = [
        (command, decision)
        for command, decision in zip(intent.planned_commands, decisions, strict=True)
        if decision.decision != "deny"
    ]
    shelf = Shelf(intent, registry, bundle)
    grounds = Grounds(intent, bundle, shelf)
    factors = (
        *_stated(intent, shelf),
        *(factor for command, _ in planned for factor in _command(intent, registry, shelf, command)),
        *(factor for _, decision in planned for factor in _ruled(decision)),
        *_groundless(intent, shelf, grounds),
        *_surroundings(registry, grounds, bundle, [c for c, _ in planned]),
    )
    return RiskAssessment(
        overall_risk=graver(*(factor.risk for factor in factors)),
        stated_risk=intent.risk.overall,
        factors=tuple(sorted(factors, key=lambda f: (-RISKS.index(f.risk), f.what))),
        requires_review=_reviews(intent, registry, [decision for _, decision in planned]),
    )


def _stated(intent: ExecutionIntent, shelf: Shelf) -> Iterator[RiskFactor]:
    """What the author says, with what the intent cites about the project; more than low without it is unjustified."""
    cited = (*intent.evidence_refs, *(ref for c in intent.planned_commands for ref in c.evidence_refs))
    shown = [ref for ref in dict.fromkeys(cited) if shelf.speaks(ref) and not ref.startswith(_OWN)]
    for driver in intent.risk.drivers if shown or intent.risk.overall != "low" else ():
        yield _factor(intent.risk.overall, f"the intent says: {driver}", *shown[:CITED])


def _command(
    intent: ExecutionIntent, registry: Registry, shelf: Shelf, planned: PlannedCommand
) -> Iterator[RiskFactor]:
    spec = cast("CommandSpec | None", registry.usable("command", planned.command_id))
    if spec is None:
        return
    target = target_of(planned, spec, selected_phases(intent))
    entry = pin(registry.entries["command", spec.id])
    shown = (entry, *shelf.leading(planned.evidence_refs))
    if target.risk != "low":
        yield _factor(target.risk, f"{spec.id} is {target.risk}: {spec.title}", *shown)
    if spec.destructive:
        yield _factor(
            graver("high", target.risk),
            f"{spec.id} destroys; {spec.rollback or 'no way back is known'}",
            entry,
        )
    if target.understated:
        more = f"{', '.join(target.effects)} at {target.risk}"
        stated = f"{', '.join(planned.effects)} at {planned.risk_level}"
        yield _factor(target.risk, f"{spec.id} is stated as {stated}; the registry makes it {more}", *shown)


def _ruled(decision: RuleDecision) -> Iterator[RiskFactor]:
    if decision.decision == "require_review":
        yield _factor(
            _WANTED[decision.severity], f"{decision.command_id}: {decision.reason}", *decision.evidence_used
        )


def _groundless(intent: ExecutionIntent, shelf: Shelf, grounds: Grounds) -> Iterator[RiskFactor]:
    """What the intent as a whole cites and nobody can find: the less is known, the more is at risk."""
    if missing := shelf.missing(intent.evidence_refs):
        told = f"the intent cites what cannot be found: {', '.join(missing)}"
        yield _factor("medium", told, grounds.scan)


def _surroundings(
    registry: Registry,
    grounds: Grounds,
    bundle: ContextBundle,
    planned: list[PlannedCommand],
) -> Iterator[RiskFactor]:
    """What the project itself brings; on its own never more than medium."""
    specs = (cast("CommandSpec | None", registry.usable("command", c.command_id)) for c in planned)
    writes = any(
        "write" in {*c.effects, *(s.effects if s else ())} for c, s in zip(planned, specs, strict=True)
    )
    bounds = bundle.facts.bounds
    if not bounds.complete:
        why = "; ".join((bounds.stopped_by or "it was stopped", *bounds.unread))
        yield _factor("medium", f"the scan is not complete: {why}", grounds.scan)
    secret = grounds.cited("secret_file")
    if secret is not None:
        yield _factor("medium", "files that usually hold secrets are in the tree", *secret)
    untested = grounds.cited("known:test_command")
    if writes and untested and grounds.cited("test_command") is None:
        yield _factor("medium", "something is written, and the project has no test command", *untested)
    unbuilt = grounds.cited("known:ci")
    if writes and unbuilt and grounds.cited("ci") is None:
        yield _factor("low", "something is written, and nothing builds the project on its own", *unbuilt)


def _reviews(
    intent: ExecutionIntent, registry: Registry, decisions: list[RuleDecision]
) -> tuple[Review, ...]:
    """Who has to look: as the intent, the rules and the selected phases say."""
    wanted = {*intent.risk.requires_review, *(review for d in decisions for review in d.review)}
    for selected in intent.selected_workflows:
        workflow = cast("Workflow | None", registry.usable("workflow", selected.workflow_id))
        phases = workflow.phases if workflow else ()
        wanted |= {review for p in phases if p.phase in selected.phases for review in p.review}
    return tuple(sorted(wanted))


def _factor(risk: Risk, what: str, *refs: str) -> RiskFactor:
    shown = {ref for ref in refs if not ref.startswith(_OWN)}
    return RiskFactor(risk=risk, what=clip(what, 1000), evidence_refs=tuple(sorted(shown)))
