"""The pack for the person who reviews a plan: impact, budgets, gates, ways back, and the actions an execution has to keep to.

**Invariant:** every figure has its basis beside it, and nothing that was left out is left unsaid.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from steersman.contracts.planning.content import CommandSpec
from steersman.contracts.planning.decisions import DocumentProblem, RiskAssessment, RoutingAdvice
from steersman.contracts.planning.graph import ExecutionGraph, GraphNode, PlanEstimate
from steersman.contracts.planning.questions import SettledQuestions
from steersman.contracts.planning.review import (
    BudgetEstimate,
    ChangeImpact,
    PlannedAction,
    PlanSummary,
    ReviewGate,
    ReviewPack,
    RollbackStep,
)
from steersman.contracts.planning.words import ReviewCategory, gravest_risk
from steersman.judges.planning.choices import narrow_intent_scope
from steersman.judges.planning.paths import outside_plan_reason
from steersman.judges.planning.plan_inputs import PlanInputs, intent_boundary
from steersman.judges.text import clip_text
from steersman.machines.coordinator.graph import choices_from_settled
from steersman.machines.coordinator.nodes import GraphSources, gather_graph_sources, reviews_required_by_rules

MAX_DOCUMENT_NUMBER = 1_000_000_000  # that a document counts to
_ARGV_BLANK = re.compile(r"[A-Z][A-Z_]+")  # a word of a registry's argv that stands for another


class ReviewFaults(NamedTuple):
    """What keeps a plan from being reviewed, by kind."""

    uncovered: tuple[DocumentProblem, ...]
    over: tuple[BudgetEstimate, ...]
    unjustified: tuple[DocumentProblem, ...]


def build_review_pack(
    inputs: PlanInputs, graph: ExecutionGraph, settled: SettledQuestions, routing: tuple[RoutingAdvice, ...]
) -> ReviewPack:
    """Everything a reviewer needs about a final graph."""
    sources = gather_graph_sources(inputs, choices_from_settled(inputs, settled))
    proposed = [n for n in graph.nodes if n.node_type == "action_proposal" and n.status == "proposed"]
    risk = inputs.risk
    return ReviewPack(
        plan_id=inputs.plan_id,
        intent_id=inputs.intent.id,
        execution_mode=inputs.effective.mode,
        plan_summary=_build_plan_summary(sources, proposed, risk),
        risk_assessment=risk,
        change_impact=_build_change_impact(sources, proposed, routing),
        review_gates=tuple(
            _build_review_gate(node) for node in graph.nodes if node.node_type == "review_gate"
        ),
        rollback_guide=tuple(
            _build_rollback_step(sources.inputs.command(id_), id_) for id_ in _proposed_command_ids(proposed)
        ),
        actions=tuple(action for node in proposed for action in _planned_actions(inputs, node)),
        excluded=tuple(clip_text(f"{id_}: {reason}", 400) for id_, reason in sorted(sources.out.items())),
        estimated_duration=graph.estimated_duration,
        complexity=graph.complexity,
        generated_at=inputs.intent.created_at,
    )


def find_review_faults(inputs: PlanInputs, pack: ReviewPack, settled: SettledQuestions) -> ReviewFaults:
    """Reviews without a gate, budgets that do not suffice, risks that nothing shows."""
    sources = gather_graph_sources(inputs, choices_from_settled(inputs, settled))
    there = {gate.category for gate in pack.review_gates}
    return ReviewFaults(
        uncovered=tuple(
            _uncovered_review_problem(review)
            for review in sorted(_required_review_categories(sources) - there)
        ),
        over=tuple(budget for budget in pack.change_impact.budgets if not budget.within),
        unjustified=tuple(_find_unjustified_risks(pack.risk_assessment)),
    )


def _required_review_categories(sources: GraphSources) -> set[ReviewCategory]:
    """Every category that somebody asks for: the intent, the selected phases, the rules on what is proposed."""
    by_rules = (
        review
        for place in sources.found
        for planned in place.commands
        if planned.command_id not in sources.out
        for review in reviews_required_by_rules(sources, planned)
    )
    by_phases = (review for place in sources.found for review in place.phase.review)
    return {*sources.inputs.intent.risk.requires_review, *by_phases, *by_rules}


def _uncovered_review_problem(review: ReviewCategory) -> DocumentProblem:
    return DocumentProblem(
        field="risk.requires_review",
        message=f"A {review} review is asked for, and no gate of the plan is one.",
        fix="Select a phase in which it can take place, such as review.",
    )


def _find_unjustified_risks(risk: RiskAssessment) -> Iterator[DocumentProblem]:
    for factor in risk.factors:
        if not factor.evidence_refs:
            yield DocumentProblem(
                field="risk.drivers",
                message=f"Nothing shows this {factor.risk} risk: {clip_text(factor.what, 600)}",
                fix="Cite a fact, a memory or a document that shows it in evidence_refs; the intent itself is none.",
            )
    if risk.overall_risk != gravest_risk(*(factor.risk for factor in risk.factors)):
        yield DocumentProblem(
            field="risk.overall",
            message=f"The risk is said to be {risk.overall_risk}, and no factor is that grave.",
            fix="Name in risk.drivers what makes it so.",
        )


def _build_plan_summary(
    sources: GraphSources, proposed: list[GraphNode], risk: RiskAssessment
) -> PlanSummary:
    workflows: dict[str, list[str]] = {}
    for place in sources.found:
        workflows.setdefault(place.workflow.title, []).append(place.phase.phase)
    steps = (f"{title}: {' → '.join(phases)}" for title, phases in workflows.items())
    excluded_text = f"{len(sources.out)} left out" if sources.out else "none left out"
    return PlanSummary(
        objective=sources.inputs.intent.objective.goal,
        approach=(
            *(clip_text(step, 400) for step in steps),
            f"{len(_proposed_command_ids(proposed))} commands, {excluded_text}",
        ),
        risks=tuple(clip_text(f"{factor.risk}: {factor.what}", 1000) for factor in risk.factors),
        non_goals=sources.inputs.intent.objective.non_goals,
    )


def _build_change_impact(
    sources: GraphSources, proposed: list[GraphNode], routing: tuple[RoutingAdvice, ...]
) -> ChangeImpact:
    targets = narrow_intent_scope(sources.inputs.intent, sources.chosen).scope.targets
    within = intent_boundary(sources.inputs.intent)
    file_names = tuple(sorted({name for name in targets.files if not outside_plan_reason(name, within)}))
    files, commits = _estimate_changed_files(sources, proposed, file_names), _estimate_commits(proposed)
    return ChangeImpact(
        files=file_names,
        modules=tuple(sorted(set(targets.modules))),
        areas=tuple(sorted(set(targets.areas))),
        within=within,
        lock=sources.inputs.intent.constraints.lock_scope,
        estimated_files=files,
        estimated_commits=commits,
        budgets=tuple(_compare_plan_budgets(sources.inputs, files.value, commits.value, routing)),
    )


def _estimate_changed_files(
    sources: GraphSources, proposed: list[GraphNode], file_names: tuple[str, ...]
) -> PlanEstimate:
    each = {
        id_: spec.files
        for id_ in _proposed_command_ids(proposed)
        if (spec := sources.inputs.command(id_)) is not None
    }
    basis_text = clip_text(", ".join(f"{id_} {n}" for id_, n in each.items() if n), 300) or "none"
    writes = any("write" in node.effects for node in proposed)
    single = sum(not name.endswith(("/", "*")) for name in file_names) if writes else 0
    return PlanEstimate(
        value=max(sum(each.values()), single),
        unit="files",
        basis=(
            f"files that commands usually change, by the registry: {basis_text}",
            f"files that the scope names one by one, where something writes: {single}",
            "the greater of the two",
        ),
    )


def _estimate_commits(proposed: list[GraphNode]) -> PlanEstimate:
    phases = sorted({f"{n.workflow_ref}/{n.phase_ref}" for n in proposed if "write" in n.effects})
    basis_text = clip_text(", ".join(phases), 300) or "none"
    return PlanEstimate(
        value=len(phases),
        unit="commits",
        basis=(f"one for each phase in which something writes: {basis_text}",),
    )


def _compare_plan_budgets(
    inputs: PlanInputs, files: int, commits: int, routing: tuple[RoutingAdvice, ...]
) -> Iterator[BudgetEstimate]:
    stated, constraints = inputs.intent.budgets, inputs.bundle.policy.constraints
    tokens = min(sum(advice.tokens for advice in routing), MAX_DOCUMENT_NUMBER)
    dollars = -(-sum(advice.micro_usd for advice in routing) // 1_000_000)
    yield BudgetEstimate(
        name="max_files", limit=stated.max_files, estimate=files, within=files <= stated.max_files
    )
    yield BudgetEstimate(
        name="max_commits", limit=stated.max_commits, estimate=commits, within=commits <= stated.max_commits
    )
    yield BudgetEstimate(
        name="max_tokens", limit=stated.max_tokens, estimate=tokens, within=tokens <= stated.max_tokens
    )
    yield BudgetEstimate(
        name="max_cost_usd",
        limit=stated.max_cost_usd,
        estimate=dollars,
        within=dollars <= stated.max_cost_usd,
    )
    most, per_commit = constraints.max_files_per_commit, -(-files // max(1, commits))
    yield BudgetEstimate(
        name="max_files_per_commit",
        limit=most,
        estimate=per_commit,
        within=constraints.allow_bulk_changes or per_commit <= most,
    )


def _build_review_gate(node: GraphNode) -> ReviewGate:
    return ReviewGate(
        gate_id=node.node_id,
        category=node.review_criteria[0],
        phase=node.phase_ref,
        why=node.description,
        evidence_refs=node.evidence_refs,
    )


def _build_rollback_step(spec: CommandSpec | None, id_: str) -> RollbackStep:
    if spec is not None and spec.rollback:
        return RollbackStep(command_id=id_, how=spec.rollback)
    if spec is not None and set(spec.effects) <= {"read"}:
        return RollbackStep(command_id=id_, how="Nothing to undo: it only reads.")
    return RollbackStep(command_id=id_, how="No way back is known; look before it is carried out.")


def _planned_actions(inputs: PlanInputs, node: GraphNode) -> Iterator[PlannedAction]:
    """What may be carried out: as the project's own facts have it, else as the registry does, with its blanks."""
    spec = inputs.command(node.command_ref)
    kind, example = (spec.fact, spec.argv) if spec else ("", ())
    known = {fact.argv for fact in inputs.bundle.facts.facts if fact.kind == kind and fact.argv}
    for argv in sorted(known):
        yield PlannedAction(command_id=node.command_ref, argv=argv, phase=node.phase_ref)
    if not known:
        blanks = tuple(n for n, word in enumerate(example) if n and _ARGV_BLANK.fullmatch(word))
        yield PlannedAction(command_id=node.command_ref, argv=example, blanks=blanks, phase=node.phase_ref)


def _proposed_command_ids(proposed: list[GraphNode]) -> tuple[str, ...]:
    return tuple(sorted({node.command_ref for node in proposed}))
