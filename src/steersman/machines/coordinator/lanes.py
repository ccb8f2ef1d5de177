"""Whose lane a node is in: the agent that a phase's role asks for, else one that covers the phase.

**Invariant:** a node is in at most one lane; an agent for whom there is nothing here has none.
"""

from typing import NamedTuple

from steersman.contracts.planning.content import AgentProfile
from steersman.contracts.planning.graph import Edge, Node, Swimlane
from steersman.contracts.planning.words import Phase
from steersman.machines.coordinator.inputs import Inputs


class _Agent(NamedTuple):
    """A selected agent with both names of its role."""

    profile: AgentProfile
    role: str
    roles: frozenset[str]


def lanes(inputs: Inputs, nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> tuple[Swimlane, ...]:
    """One lane for each selected agent that a phase here asks for or that covers one, by agent id."""
    agents, roles = _agents(inputs), _roles(inputs)
    needed = tuple(agent for agent in agents if _needed(agent, nodes, roles))
    inside: dict[str, list[str]] = {agent.profile.id: [] for agent in needed}
    for node, owner in _owners(inputs, needed, roles, nodes, edges).items():
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


def _agents(inputs: Inputs) -> tuple[_Agent, ...]:
    found: dict[str, _Agent] = {}
    for selected in sorted(inputs.intent.selected_agents, key=lambda a: (a.agent_id, a.role)):
        profile = inputs.agent(selected.agent_id)
        if profile is not None:
            before = found[profile.id].roles if profile.id in found else frozenset()
            both = before | {_plain(selected.role), _plain(profile.role)}
            found[profile.id] = _Agent(profile, found[profile.id].role if before else selected.role, both)
    return tuple(found.values())


def _roles(inputs: Inputs) -> dict[tuple[str, str], str]:
    """By workflow and phase: the role that is asked for."""
    found: dict[tuple[str, str], str] = {}
    for chosen in inputs.intent.selected_workflows:
        workflow = inputs.workflow(chosen.workflow_id)
        for phase in workflow.phases if workflow else ():
            found.setdefault((chosen.workflow_id, phase.phase), _plain(phase.role))
    return found


def _needed(agent: _Agent, nodes: tuple[Node, ...], roles: dict[tuple[str, str], str]) -> bool:
    """Whether a phase asks for the agent or is covered by it, or there is something to review and it reviews."""
    for node in nodes:
        covered = node.phase_ref in agent.profile.phases
        match node.node_type:
            case "phase" if covered or roles[node.workflow_ref, node.phase_ref] in agent.roles:
                return True
            case "review_gate" if "review" in agent.profile.phases:
                return True
    return False


def _owners(
    inputs: Inputs,
    agents: tuple[_Agent, ...],
    roles: dict[tuple[str, str], str],
    nodes: tuple[Node, ...],
    edges: tuple[Edge, ...],
) -> dict[str, str]:
    at = {key: _of_phase(agents, role, key[1]) for key, role in roles.items()}
    first = agents[0].profile.id if agents else ""
    found: dict[str, str] = {}
    for node in nodes:
        match node.node_type:
            case "question":
                continue
            case "review_gate":
                owner = _of_gate(agents, node.review_criteria[0]) or at[node.workflow_ref, node.phase_ref]
            case _ if node.workflow_ref:
                owner = at[node.workflow_ref, node.phase_ref]
            case _:
                owner = _of_command(inputs, agents, node.command_ref) or first
        found[node.node_id] = owner
    target = {edge.from_node: edge.to_node for edge in reversed(edges)}
    for node in nodes:
        if node.node_type == "question":
            found[node.node_id] = found.get(target.get(node.node_id, ""), first)
    return {name: owner for name, owner in found.items() if owner}


def _of_phase(agents: tuple[_Agent, ...], role: str, phase: str) -> str:
    ranked = [((role not in a.roles, phase not in a.profile.phases), a.profile.id) for a in agents]
    rank, owner = min(ranked, default=((True, True), ""))
    return "" if rank == (True, True) else owner


def _of_gate(agents: tuple[_Agent, ...], review: str) -> str:
    """A reviewer: best one whose area it is."""
    fit = [a for a in agents if "review" in a.profile.phases]
    return min(((review not in a.profile.areas, a.profile.id) for a in fit), default=(False, ""))[1]


def _of_command(inputs: Inputs, agents: tuple[_Agent, ...], command: str) -> str:
    spec = inputs.command(command)
    phases: tuple[Phase, ...] = spec.phases if spec else ()
    return next((a.profile.id for a in agents if set(phases) & set(a.profile.phases)), "")


def _plain(role: str) -> str:
    return " ".join(role.casefold().split())
