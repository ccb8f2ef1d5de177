"""The pack for whoever reviews a plan: impact, budgets, gates, ways back, and the actions an execution has to keep to.

**Invariant:** every figure has its basis beside it, and nothing that was left out is left unsaid.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from steersman.contracts.planning.content import CommandSpec
from steersman.contracts.planning.decisions import Problem, RiskAssessment, RoutingAdvice
from steersman.contracts.planning.graph import Estimate, ExecutionGraph, Node
from steersman.contracts.planning.questions import Settled
from steersman.contracts.planning.review import (
    Budget,
    Impact,
    PlannedAction,
    PlanSummary,
    ReviewGate,
    ReviewPack,
    RollbackStep,
)
from steersman.contracts.planning.words import Review, graver
from steersman.judges.planning.paths import why_outside
from steersman.judges.text import clip
from steersman.machines.coordinator.choices import scoped
from steersman.machines.coordinator.graph import chosen_by
from steersman.machines.coordinator.inputs import Inputs, within_of
from steersman.machines.coordinator.nodes import Desk, desk, wanted_reviews

MOST = 1_000_000_000  # that a document counts to
_BLANK = re.compile(r"[A-Z][A-Z_]+")  # a word of a registry's argv that stands for another


class ReviewFaults(NamedTuple):
    """What keeps a plan from being reviewed, by kind."""

    uncovered: tuple[Problem, ...]
    over: tuple[Budget, ...]
    unjustified: tuple[Problem, ...]


def review_pack(
    inputs: Inputs, graph: ExecutionGraph, settled: Settled, routing: tuple[RoutingAdvice, ...]
) -> ReviewPack:
    """Everything a reviewer needs about a final graph."""
    d = desk(inputs, chosen_by(inputs, settled))
    proposed = [n for n in graph.nodes if n.node_type == "action_proposal" and n.status == "proposed"]
    risk = inputs.risk
    return ReviewPack(
        plan_id=inputs.plan_id,
        intent_id=inputs.intent.id,
        execution_mode=inputs.effective.mode,
        plan_summary=_summary(d, proposed, risk),
        risk_assessment=risk,
        change_impact=_impact(d, proposed, routing),
        review_gates=tuple(_gate(node) for node in graph.nodes if node.node_type == "review_gate"),
        rollback_guide=tuple(_rollback(d.inputs.command(id_), id_) for id_ in _commands(proposed)),
        actions=tuple(action for node in proposed for action in _planned(inputs, node)),
        excluded=tuple(clip(f"{id_}: {reason}", 400) for id_, reason in sorted(d.out.items())),
        estimated_duration=graph.estimated_duration,
        complexity=graph.complexity,
        generated_at=inputs.intent.created_at,
    )


def review_faults(inputs: Inputs, pack: ReviewPack, settled: Settled) -> ReviewFaults:
    """Reviews without a gate, budgets that do not suffice, risks that nothing shows."""
    d = desk(inputs, chosen_by(inputs, settled))
    there = {gate.category for gate in pack.review_gates}
    return ReviewFaults(
        uncovered=tuple(_uncovered(review) for review in sorted(_required(d) - there)),
        over=tuple(budget for budget in pack.change_impact.budgets if not budget.within),
        unjustified=tuple(_unjustified(pack.risk_assessment)),
    )


def _required(d: Desk) -> set[Review]:
    """Every category that somebody asks for: the intent, the selected phases, the rules on what is proposed."""
    by_rules = (
        review
        for place in d.found
        for planned in place.commands
        if planned.command_id not in d.out
        for review in wanted_reviews(d, planned)
    )
    by_phases = (review for place in d.found for review in place.phase.review)
    return {*d.inputs.intent.risk.requires_review, *by_phases, *by_rules}


def _uncovered(review: Review) -> Problem:
    return Problem(
        field="risk.requires_review",
        message=f"A {review} review is asked for, and no gate of the plan is one.",
        fix="Select a phase in which it can take place, such as review.",
    )


def _unjustified(risk: RiskAssessment) -> Iterator[Problem]:
    for factor in risk.factors:
        if not factor.evidence_refs:
            yield Problem(
                field="risk.drivers",
                message=f"Nothing shows this {factor.risk} risk: {clip(factor.what, 600)}",
                fix="Cite a fact, a memory or a document that shows it in evidence_refs; the intent itself is none.",
            )
    if risk.overall_risk != graver(*(factor.risk for factor in risk.factors)):
        yield Problem(
            field="risk.overall",
            message=f"The risk is said to be {risk.overall_risk}, and no factor is that grave.",
            fix="Name in risk.drivers what makes it so.",
        )


def _summary(d: Desk, proposed: list[Node], risk: RiskAssessment) -> PlanSummary:
    workflows: dict[str, list[str]] = {}
    for place in d.found:
        workflows.setdefault(place.workflow.title, []).append(place.phase.phase)
    steps = (f"{title}: {' → '.join(phases)}" for title, phases in workflows.items())
    left = f"{len(d.out)} left out" if d.out else "none left out"
    return PlanSummary(
        objective=d.inputs.intent.objective.goal,
        approach=(*(clip(step, 400) for step in steps), f"{len(_commands(proposed))} commands, {left}"),
        risks=tuple(clip(f"{factor.risk}: {factor.what}", 1000) for factor in risk.factors),
        non_goals=d.inputs.intent.objective.non_goals,
    )


def _impact(d: Desk, proposed: list[Node], routing: tuple[RoutingAdvice, ...]) -> Impact:
    targets = scoped(d.inputs.intent, d.chosen).scope.targets
    within = within_of(d.inputs.intent)
    named = tuple(sorted({name for name in targets.files if not why_outside(name, within)}))
    files, commits = _files(d, proposed, named), _commits(proposed)
    return Impact(
        files=named,
        modules=tuple(sorted(set(targets.modules))),
        areas=tuple(sorted(set(targets.areas))),
        within=within,
        lock=d.inputs.intent.constraints.lock_scope,
        estimated_files=files,
        estimated_commits=commits,
        budgets=tuple(_budgets(d.inputs, files.value, commits.value, routing)),
    )


def _files(d: Desk, proposed: list[Node], named: tuple[str, ...]) -> Estimate:
    each = {id_: spec.files for id_ in _commands(proposed) if (spec := d.inputs.command(id_)) is not None}
    told = clip(", ".join(f"{id_} {n}" for id_, n in each.items() if n), 300) or "none"
    writes = any("write" in node.effects for node in proposed)
    single = sum(not name.endswith(("/", "*")) for name in named) if writes else 0
    return Estimate(
        value=max(sum(each.values()), single),
        unit="files",
        basis=(
            f"files that commands usually change, by the registry: {told}",
            f"files that the scope names one by one, where something writes: {single}",
            "the greater of the two",
        ),
    )


def _commits(proposed: list[Node]) -> Estimate:
    phases = sorted({f"{n.workflow_ref}/{n.phase_ref}" for n in proposed if "write" in n.effects})
    told = clip(", ".join(phases), 300) or "none"
    return Estimate(
        value=len(phases), unit="commits", basis=(f"one for each phase in which something writes: {told}",)
    )


def _budgets(
    inputs: Inputs, files: int, commits: int, routing: tuple[RoutingAdvice, ...]
) -> Iterator[Budget]:
    stated, constraints = inputs.intent.budgets, inputs.bundle.policy.constraints
    tokens = min(sum(advice.tokens for advice in routing), MOST)
    dollars = -(-sum(advice.micro_usd for advice in routing) // 1_000_000)
    yield Budget(name="max_files", limit=stated.max_files, estimate=files, within=files <= stated.max_files)
    yield Budget(
        name="max_commits", limit=stated.max_commits, estimate=commits, within=commits <= stated.max_commits
    )
    yield Budget(
        name="max_tokens", limit=stated.max_tokens, estimate=tokens, within=tokens <= stated.max_tokens
    )
    yield Budget(
        name="max_cost_usd",
        limit=stated.max_cost_usd,
        estimate=dollars,
        within=dollars <= stated.max_cost_usd,
    )
    most, per_commit = constraints.max_files_per_commit, -(-files // max(1, commits))
    yield Budget(
        name="max_files_per_commit",
        limit=most,
        estimate=per_commit,
        within=constraints.allow_bulk_changes or per_commit <= most,
    )


def _gate(node: Node) -> ReviewGate:
    return ReviewGate(
        gate_id=node.node_id,
        category=node.review_criteria[0],
        phase=node.phase_ref,
        why=node.description,
        evidence_refs=node.evidence_refs,
    )


def _rollback(spec: CommandSpec | None, id_: str) -> RollbackStep:
    if spec is not None and spec.rollback:
        return RollbackStep(command_id=id_, how=spec.rollback)
    if spec is not None and set(spec.effects) <= {"read"}:
        return RollbackStep(command_id=id_, how="Nothing to undo: it only reads.")
    return RollbackStep(command_id=id_, how="No way back is known; look before it is carried out.")


def _planned(inputs: Inputs, node: Node) -> Iterator[PlannedAction]:
    """What may be carried out: as the project's own facts have it, else as the registry does, with its blanks."""
    spec = inputs.command(node.command_ref)
    kind, example = (spec.fact, spec.argv) if spec else ("", ())
    known = {fact.argv for fact in inputs.bundle.facts.facts if fact.kind == kind and fact.argv}
    for argv in sorted(known):
        yield PlannedAction(command_id=node.command_ref, argv=argv, phase=node.phase_ref)
    if not known:
        blanks = tuple(n for n, word in enumerate(example) if n and _BLANK.fullmatch(word))
        yield PlannedAction(command_id=node.command_ref, argv=example, blanks=blanks, phase=node.phase_ref)


def _commands(proposed: list[Node]) -> tuple[str, ...]:
    return tuple(sorted({node.command_ref for node in proposed}))
