"""Drafts an intent from a goal, the facts of the project and the registry. The draft is whole and cautious; a person reads it.

**Invariant:** nothing is invented. Every command cites facts that the scan found, and dangerous commands are left out and
listed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from steersman.contracts.planning.content import AgentProfile, CommandSpec, Workflow, WorkflowPhase
from steersman.contracts.planning.context import FactPack, ProjectFact
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import POLICY_PRESETS
from steersman.contracts.planning.words import (
    RISK_LEVELS,
    ExecutionMode,
    ProjectArea,
    QuestionPolicy,
    ReviewCategory,
    gravest_risk,
)
from steersman.contracts.replies import PlannerReply
from steersman.judges.planning import goals
from steersman.judges.planning.evidence import format_fact_ref
from steersman.judges.planning.intent import NO_CHECKSUM
from steersman.judges.planning.precheck import seal_intent
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.routing import advise_models
from steersman.judges.planning.schema_errors import convert_valid_document
from steersman.judges.text import clip_text
from steersman.kernel.canonical import digest_of

ASKING_BY_MODE: dict[ExecutionMode, tuple[int, QuestionPolicy]] = {
    "interactive": (10, "conceptual_only"),
    "semi_auto": (3, "blockers_only"),
    "full_auto": (0, "never"),
}
_HIGHEST_RISK_BY_MODE: dict[ExecutionMode, str] = {
    "interactive": "high",
    "semi_auto": "high",
    "full_auto": "medium",
}
_REVIEW_KIND_BY_EFFECT: dict[str, ReviewCategory] = {
    "security": "security",
    "data": "data",
    "deploy": "release",
    "write": "architecture",
}
_MAX_COMMAND_REFS, _MAX_CITED_REFS = 5, 80  # of one command; of the whole, which leaves room for the pins


class IntentRequest(NamedTuple):
    """What a person says; everything else is worked out."""

    goal: str
    project_id: str
    created_by: str
    created_at: str
    mode: ExecutionMode = "interactive"
    files: tuple[str, ...] = ()
    areas: tuple[ProjectArea, ...] = ()


class UnplannedCommand(NamedTuple):
    """A command of the workflow that the draft does not plan, and why."""

    command_id: str
    why: str


class IntentDraft(NamedTuple):
    """An intent as a plain document, sealed, and what a person should look at."""

    value: dict[str, Any]
    why: str  # this workflow
    left_out: tuple[UnplannedCommand, ...]


def draft_intent(
    wish: IntentRequest, choice: goals.WorkflowChoice, facts: FactPack, registry: Registry
) -> IntentDraft:
    """A whole intent for a goal."""
    workflow = choice.workflow
    planned, unplanned = _select_intent_commands(workflow, facts, registry, wish.mode)
    budget, asking = ASKING_BY_MODE[wish.mode]
    value = {
        "id": _intent_id_from_goal(wish.goal),
        "type": "execution_intent",
        "title": _intent_title(wish.goal),
        "description": "",
        "version": "1.0.0",
        "created_at": wish.created_at,
        "status": "draft",
        "lineage": {"introduced_in": "intent new"},
        "scope": _intent_scope(wish),
        "objective": {
            "goal": clip_text(wish.goal, 2000),
            "success_criteria": [clip_text(f"{p.phase}: {p.purpose}", 400) for p in workflow.phases],
        },
        "selected_workflows": [
            {
                "workflow_id": workflow.id,
                "phases": list(dict.fromkeys(p.phase for p in workflow.phases)),
                "reason": clip_text(choice.why, 400),
            }
        ],
        "selected_agents": _select_intent_agents(workflow.phases, registry),
        "planned_commands": planned,
        "interaction": {"mode": wish.mode, "question_budget": budget, "question_policy": asking},
        "risk": _intent_risk(planned, workflow),
        "budgets": {"max_files": 1, "max_commits": 1, "max_tokens": 0, "max_cost_usd": 0},
        "evidence_refs": sorted({ref for command in planned for ref in command["evidence_refs"]})[
            :_MAX_CITED_REFS
        ],
        "constraints": {
            "execution": "forbidden",
            "no_fabrication": True,
            "registry_only": True,
            "lock_scope": {"mode": "none"},
        },
        "audit": {"created_by": clip_text(wish.created_by, 120), "source": "human"},
    }
    complete_value = {**value, "budgets": _intent_budgets(seal_intent(value, registry), registry, wish)}
    return IntentDraft(seal_intent(complete_value, registry), choice.why, unplanned)


def _intent_id_from_goal(goal: str) -> str:
    words = "_".join(re.findall(r"[a-z0-9]+", goal.casefold()))[:40].strip("_")
    return f"intent_{words}" if len(words) >= 6 else f"intent_{digest_of(goal)[:12]}"


def _intent_title(goal: str) -> str:
    line = " ".join(goal.split())
    return clip_text(line if len(line) >= 5 else f"Goal: {line}", 160)


def _intent_scope(wish: IntentRequest) -> dict[str, Any]:
    targets = {"files": list(wish.files), "areas": list(wish.areas or goals.find_goal_areas(wish.goal))}
    return {"project_id": wish.project_id, "repo_root": ".", "targets": targets}


# ── who ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _select_intent_agents(phases: Sequence[WorkflowPhase], registry: Registry) -> list[dict[str, Any]]:
    """For each role of the workflow the first agent that has it, with what its phases are for."""
    agents_by_id: dict[str, dict[str, Any]] = {}
    for phase in phases:
        agent = _find_phase_agent(phase, registry)
        if agent is not None:
            selected = agents_by_id.setdefault(
                agent.id, {"agent_id": agent.id, "role": agent.role, "responsibilities": []}
            )
            selected["responsibilities"].append(clip_text(f"{phase.phase}: {phase.purpose}", 400))
    return [{**s, "responsibilities": s["responsibilities"][:12]} for s in agents_by_id.values()][:13]


def _find_phase_agent(phase: WorkflowPhase, registry: Registry) -> AgentProfile | None:
    usable = cast("tuple[AgentProfile, ...]", registry.all_usable("agent"))
    by_role = [agent for agent in usable if agent.role == phase.role]
    return next(iter((*by_role, *(agent for agent in usable if phase.phase in agent.phases))), None)


# ── what ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _select_intent_commands(
    workflow: Workflow, facts: FactPack, registry: Registry, mode: ExecutionMode
) -> tuple[list[dict[str, Any]], tuple[UnplannedCommand, ...]]:
    """The commands of the workflow's phases that the facts support, each with its evidence; the others with a reason."""
    planned, unplanned = [], []
    for phase, id_ in _offered_workflow_commands(workflow):
        spec = cast("CommandSpec | None", registry.usable("command", id_))
        if spec is None:
            continue
        refs = _evidence_for_command(spec, facts)
        why = _why_not_planned(spec, refs, facts, mode)
        if why:
            unplanned.append(UnplannedCommand(id_, why))
        else:
            planned.append(
                {
                    "command_id": id_,
                    "intent": clip_text(f"{phase.phase}: {spec.title}", 400),
                    "effects": list(spec.effects),
                    "risk_level": spec.risk_level,
                    "evidence_refs": refs,
                }
            )
    return planned[:80], tuple(unplanned)


def _offered_workflow_commands(workflow: Workflow) -> Iterator[tuple[WorkflowPhase, str]]:
    """Each command once, in the first phase that can use it."""
    offered_ids: set[str] = set()
    for phase in workflow.phases:
        for id_ in phase.commands:
            if id_ not in offered_ids:
                offered_ids.add(id_)
                yield phase, id_


def _why_not_planned(spec: CommandSpec, refs: list[str], facts: FactPack, mode: ExecutionMode) -> str:
    kinds = {fact.kind for fact in facts.facts}
    lacking = [kind for kind in dict.fromkeys((spec.fact, *spec.evidence)) if kind and kind not in kinds]
    if spec.destructive:
        return "it destroys something: add it by hand if you mean it"
    if RISK_LEVELS.index(spec.risk_level) > RISK_LEVELS.index(_HIGHEST_RISK_BY_MODE[mode]):
        return f"its risk is {spec.risk_level}: add it by hand if you mean it"
    if lacking:
        return f"the project has no {', '.join(lacking)}"
    return "" if refs else "nothing that was found speaks for it"


def _evidence_for_command(spec: CommandSpec, facts: FactPack) -> list[str]:
    """The facts a command needs, and where they stand; for one that needs none, what the project is."""
    wanted = tuple(dict.fromkeys(kind for kind in (spec.fact, *spec.evidence) if kind))
    matching_facts = [fact for fact in facts.facts if fact.kind in (wanted or ("language",))]
    matching_facts = matching_facts or ([] if wanted else list(facts.facts))
    return list(dict.fromkeys(_fact_and_scan_refs(matching_facts)))[:_MAX_COMMAND_REFS]


def _fact_and_scan_refs(matching_facts: Iterable[ProjectFact]) -> Iterator[str]:
    for fact in matching_facts:
        yield format_fact_ref(fact)
        yield f"scan://{fact.evidence[0]}"


# ── how much ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _intent_risk(planned: list[dict[str, Any]], workflow: Workflow) -> dict[str, Any]:
    overall = gravest_risk(*(command["risk_level"] for command in planned))
    grave = [c for c in planned if c["risk_level"] == overall and overall != "low"]
    drivers = [
        clip_text(f"{c['command_id']} is of {overall} risk: {', '.join(c['effects'])}", 400) for c in grave
    ]
    effects = {effect for command in planned for effect in command["effects"]}
    required_reviews = {review for phase in workflow.phases for review in phase.review}
    required_reviews |= {review for effect, review in _REVIEW_KIND_BY_EFFECT.items() if effect in effects}
    return {
        "overall": overall,
        "drivers": drivers[:20] or ["nothing that is planned is of more than low risk"],
        "requires_review": sorted(required_reviews),
    }


def _intent_budgets(raw: dict[str, Any], registry: Registry, wish: IntentRequest) -> dict[str, int]:
    """Twice what the registry's own figures come to, within what a document may say."""
    intent = convert_valid_document(raw, ExecutionIntent, "execution_intent")
    # A registry without agents, a goal of invisible words: the check of the draft reports it.
    if intent is None:
        return cast("dict[str, int]", raw["budgets"])
    advice = advise_models(intent, registry, POLICY_PRESETS[wish.mode])
    specs = [registry.usable("command", c.command_id) for c in intent.planned_commands]
    files = sum(spec.files for spec in specs if isinstance(spec, CommandSpec))
    dollars = -(-sum(a.micro_usd for a in advice) // 1_000_000)
    return {
        "max_files": min(500, max(1, 2 * files, len(intent.scope.targets.files))),
        "max_commits": min(50, 2 * sum(len(w.phases) for w in intent.selected_workflows)),
        "max_tokens": min(2_000_000, 2 * sum(a.tokens for a in advice)),
        "max_cost_usd": min(10_000, 2 * dollars),
    }


# ── an agent's changes ─────────────────────────────────────────────────────────────────────────────────────────────────


def amend_intent_draft(draft: IntentDraft, reply: PlannerReply) -> IntentDraft:
    """The draft with what an agent proposes: other words and scope, more caution, fewer commands; the seal is broken."""
    value = draft.value
    kept_commands = [c for c in value["planned_commands"] if c["command_id"] not in reply.leave_out]
    unplanned = tuple(
        UnplannedCommand(c["command_id"], "the agent proposes to leave it out")
        for c in value["planned_commands"]
        if c["command_id"] in reply.leave_out
    )
    risk = value["risk"]
    now = {
        **value,
        "title": reply.title,
        "description": reply.description,
        "scope": {**value["scope"], "targets": {"files": list(reply.files), "areas": list(reply.areas)}},
        "objective": {
            **value["objective"],
            "success_criteria": list(reply.success_criteria),
            "non_goals": list(reply.non_goals),
        },
        "planned_commands": kept_commands,
        "risk": {
            **risk,
            "drivers": list(dict.fromkeys((*risk["drivers"], *reply.risk_drivers)))[:20],
            "requires_review": sorted({*risk["requires_review"], *reply.requires_review}),
        },
        "audit": {**value["audit"], "source": "agentos", "checksum": NO_CHECKSUM},
    }
    return IntentDraft(now, draft.why, (*draft.left_out, *unplanned))
