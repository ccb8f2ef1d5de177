"""Whose lane a node is in: the agent that a phase's role asks for, else one that covers the phase.

**Invariant:** a node is in at most one lane; an agent for whom there is nothing here has none.
"""

from typing import NamedTuple

from steersman.contracts.planning.content import AgentProfile
from steersman.contracts.planning.graph import GraphEdge, GraphNode, Swimlane
from steersman.contracts.planning.words import PlanPhase
from steersman.judges.planning.plan_inputs import PlanInputs


class _LaneAgent(NamedTuple):
    """A selected agent with both names of its role."""

    profile: AgentProfile
    role: str
    roles: frozenset[str]


def build_swimlanes(
    inputs: PlanInputs, nodes: tuple[GraphNode, ...], edges: tuple[GraphEdge, ...]
) -> tuple[Swimlane, ...]:
    """One lane for each selected agent that a phase here asks for or that covers one, by agent id."""
    agents, roles = _lane_agents(inputs), _roles_by_phase(inputs)
    needed = tuple(agent for agent in agents if _is_agent_needed(agent, nodes, roles))
    inside: dict[str, list[str]] = {agent.profile.id: [] for agent in needed}
    for node, owner in _node_owners(inputs, needed, roles, nodes, edges).items():
        inside[owner].append(node)
    return tuple(
        Swimlane(
            swimlane_id=f"lane_{agent.profile.id}",
            agent_id=agent.profile.id,
            role=agent.role,
            node_refs=tuple(inside[agent.profile.id]),
        )
        for agent in agents
        if agent.profile.id in inside
    )


def _lane_agents(inputs: PlanInputs) -> tuple[_LaneAgent, ...]:
    agents_by_id: dict[str, _LaneAgent] = {}
    for selected in sorted(inputs.intent.selected_agents, key=lambda a: (a.agent_id, a.role)):
        profile = inputs.agent(selected.agent_id)
        if profile is not None:
            before = agents_by_id[profile.id].roles if profile.id in agents_by_id else frozenset()
            both = before | {_normalize_role(selected.role), _normalize_role(profile.role)}
            agents_by_id[profile.id] = _LaneAgent(
                profile, agents_by_id[profile.id].role if before else selected.role, both
            )
    return tuple(agents_by_id.values())


def _roles_by_phase(inputs: PlanInputs) -> dict[tuple[str, str], str]:
    """By workflow and phase: the role that is asked for."""
    roles: dict[tuple[str, str], str] = {}
    for chosen in inputs.intent.selected_workflows:
        workflow = inputs.workflow(chosen.workflow_id)
        for phase in workflow.phases if workflow else ():
            roles.setdefault((chosen.workflow_id, phase.phase), _normalize_role(phase.role))
    return roles


def _is_agent_needed(
    agent: _LaneAgent, nodes: tuple[GraphNode, ...], roles: dict[tuple[str, str], str]
) -> bool:
    """Whether a phase asks for the agent or is covered by it, or there is something to review and it reviews."""
    for node in nodes:
        covered = node.phase_ref in agent.profile.phases
        match node.node_type:
            case "phase" if covered or roles[node.workflow_ref, node.phase_ref] in agent.roles:
                return True
            case "review_gate" if "review" in agent.profile.phases:
                return True
    return False


def _node_owners(
    inputs: PlanInputs,
    agents: tuple[_LaneAgent, ...],
    roles: dict[tuple[str, str], str],
    nodes: tuple[GraphNode, ...],
    edges: tuple[GraphEdge, ...],
) -> dict[str, str]:
    at = {key: _phase_owner(agents, role, key[1]) for key, role in roles.items()}
    first = agents[0].profile.id if agents else ""
    owners: dict[str, str] = {}
    for node in nodes:
        match node.node_type:
            case "question":
                continue
            case "review_gate":
                owner = _gate_owner(agents, node.review_criteria[0]) or at[node.workflow_ref, node.phase_ref]
            case _ if node.workflow_ref:
                owner = at[node.workflow_ref, node.phase_ref]
            case _:
                owner = _command_owner(inputs, agents, node.command_ref) or first
        owners[node.node_id] = owner
    target = {edge.from_node: edge.to_node for edge in reversed(edges)}
    for node in nodes:
        if node.node_type == "question":
            owners[node.node_id] = owners.get(target.get(node.node_id, ""), first)
    return {name: owner for name, owner in owners.items() if owner}


def _phase_owner(agents: tuple[_LaneAgent, ...], role: str, phase: str) -> str:
    ranked = [((role not in a.roles, phase not in a.profile.phases), a.profile.id) for a in agents]
    rank, owner = min(ranked, default=((True, True), ""))
    return "" if rank == (True, True) else owner


def _gate_owner(agents: tuple[_LaneAgent, ...], review: str) -> str:
    """A reviewer: best one whose area it is."""
    fit = [a for a in agents if "review" in a.profile.phases]
    return min(((review not in a.profile.areas, a.profile.id) for a in fit), default=(False, ""))[1]


def _command_owner(inputs: PlanInputs, agents: tuple[_LaneAgent, ...], command: str) -> str:
    spec = inputs.command(command)
    phases: tuple[PlanPhase, ...] = spec.phases if spec else ()
    return next((a.profile.id for a in agents if set(phases) & set(a.profile.phases)), "")


def _normalize_role(role: str) -> str:
    return " ".join(role.casefold().split())
