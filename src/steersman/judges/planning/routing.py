"""Advises a model for each selected agent, in the order of the registry and within the policy.

**Invariant:** advice only. No rule, risk or graph depends on it. The advice says so where the policy allows no model.
"""

from typing import cast

from steersman.contracts.planning.content import AgentProfile, CommandSpec, ModelChoice
from steersman.contracts.planning.decisions import RoutingAdvice
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy, ModelRules
from steersman.judges.planning.environment import CommandTarget, build_command_target, list_selected_phases
from steersman.judges.planning.registry import Registry

_MAX_DOCUMENT_COUNT = 1_000_000_000  # that a document counts to
_SENSITIVE_EFFECTS = {"data", "security"}


def advise_models(
    intent: ExecutionIntent, registry: Registry, policy: ExecutionPolicy
) -> tuple[RoutingAdvice, ...]:
    """One piece of advice for each selected agent that the registry has, in the intent's order."""
    phases, targets = list_selected_phases(intent), []
    for planned in intent.planned_commands:
        spec = cast("CommandSpec | None", registry.usable("command", planned.command_id))
        targets.append(build_command_target(planned, spec, phases))
    ids = dict.fromkeys(selected.agent_id for selected in intent.selected_agents)
    agents = (cast("AgentProfile | None", registry.usable("agent", id_)) for id_ in ids)
    return tuple(_advise_agent_model(agent, targets, policy.models) for agent in agents if agent is not None)


def _advise_agent_model(
    agent: AgentProfile, targets: list[CommandTarget], rules: ModelRules
) -> RoutingAdvice:
    own_targets = [t for t in targets if not set(t.phases).isdisjoint(agent.phases)]
    sensitive = any(not _SENSITIVE_EFFECTS.isdisjoint(target.effects) for target in own_targets)
    allowed_models = [model for model in agent.models if _allows_model(model, rules, sensitive=sensitive)]
    tokens = min(agent.tokens_per_action * max(1, len(own_targets)), _MAX_DOCUMENT_COUNT)
    chosen = allowed_models[0] if allowed_models else None
    return RoutingAdvice(
        agent_id=agent.id,
        task_type=agent.role,
        model=chosen.model if chosen else "",
        placement=chosen.placement if chosen else "",
        sensitive=sensitive,
        tokens=tokens,
        micro_usd=_estimate_model_cost(chosen, tokens),
        reason=_explain_model_choice(agent, allowed_models, len(own_targets), sensitive=sensitive),
        fallback=allowed_models[1].model if len(allowed_models) > 1 else "",
        violation=bool(agent.models) and not allowed_models,
    )


def _allows_model(model: ModelChoice, rules: ModelRules, *, sensitive: bool) -> bool:
    is_placed = model.placement in rules.placements and (not sensitive or model.placement in rules.sensitive)
    return is_placed and (not rules.allowed or model.model in rules.allowed)


def _estimate_model_cost(chosen: ModelChoice | None, tokens: int) -> int:
    if chosen is None:
        return 0
    return min(-(-tokens * chosen.micro_usd_per_million_tokens // 1_000_000), _MAX_DOCUMENT_COUNT)


def _explain_model_choice(
    agent: AgentProfile, models: list[ModelChoice], actions: int, *, sensitive: bool
) -> str:
    if not agent.models:
        return f"the registry names no model for {agent.id}: any that its operator has will do"
    work = f"{actions} planned action{'' if actions == 1 else 's'}{', some with data or security effects' if sensitive else ''}"
    if not models:
        return f"the policy leaves none of the {len(agent.models)} models of {agent.id} for {work}"
    choice = "the first choice" if models[0] == agent.models[0] else "the first that the policy leaves"
    return f"{choice} of {agent.id} for {work}"
