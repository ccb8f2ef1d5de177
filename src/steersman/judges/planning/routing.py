"""Which model would suit each selected agent: advice in the order of the registry, within what the policy leaves.

**Invariant:** advice only. No rule, risk or graph depends on it; where nothing is left, it says so.
"""

from typing import cast

from steersman.contracts.planning.content import AgentProfile, CommandSpec, ModelChoice
from steersman.contracts.planning.decisions import RoutingAdvice
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy, ModelRules
from steersman.judges.planning.environment import Target, selected_phases, target_of
from steersman.judges.planning.registry import Registry

_MOST = 1_000_000_000  # that a document counts to
_SENSITIVE = {"data", "security"}


def advise(intent: ExecutionIntent, registry: Registry, policy: ExecutionPolicy) -> tuple[RoutingAdvice, ...]:
    """One piece of advice for each selected agent that the registry has, in the intent's order."""
    phases, targets = selected_phases(intent), []
    for planned in intent.planned_commands:
        spec = cast("CommandSpec | None", registry.usable("command", planned.command_id))
        targets.append(target_of(planned, spec, phases))
    ids = dict.fromkeys(selected.agent_id for selected in intent.selected_agents)
    agents = (cast("AgentProfile | None", registry.usable("agent", id_)) for id_ in ids)
    return tuple(_advice(agent, targets, policy.models) for agent in agents if agent is not None)


def _advice(agent: AgentProfile, targets: list[Target], rules: ModelRules) -> RoutingAdvice:
    own = [t for t in targets if not set(t.phases).isdisjoint(agent.phases)]
    sensitive = any(not _SENSITIVE.isdisjoint(target.effects) for target in own)
    left = [model for model in agent.models if _may(model, rules, sensitive=sensitive)]
    tokens = min(agent.tokens_per_action * max(1, len(own)), _MOST)
    chosen = left[0] if left else None
    return RoutingAdvice(
        agent_id=agent.id,
        task_type=agent.role,
        model=chosen.model if chosen else "",
        placement=chosen.placement if chosen else "",
        sensitive=sensitive,
        tokens=tokens,
        micro_usd=_cost(chosen, tokens),
        reason=_reason(agent, left, len(own), sensitive=sensitive),
        fallback=left[1].model if len(left) > 1 else "",
        violation=bool(agent.models) and not left,
    )


def _may(model: ModelChoice, rules: ModelRules, *, sensitive: bool) -> bool:
    placed = model.placement in rules.placements and (not sensitive or model.placement in rules.sensitive)
    return placed and (not rules.allowed or model.model in rules.allowed)


def _cost(chosen: ModelChoice | None, tokens: int) -> int:
    if chosen is None:
        return 0
    return min(-(-tokens * chosen.micro_usd_per_million_tokens // 1_000_000), _MOST)


def _reason(agent: AgentProfile, left: list[ModelChoice], actions: int, *, sensitive: bool) -> str:
    if not agent.models:
        return f"the registry names no model for {agent.id}: any that its operator has will do"
    work = f"{actions} planned action{'' if actions == 1 else 's'}{', some with data or security effects' if sensitive else ''}"
    if not left:
        return f"the policy leaves none of the {len(agent.models)} models of {agent.id} for {work}"
    which = "the first choice" if left[0] == agent.models[0] else "the first that the policy leaves"
    return f"{which} of {agent.id} for {work}"
