"""How long a plan would take and how much there is to it, each with what it was worked out from.

**Invariant:** whole numbers only, from the registry's own figures; the time that people need is never guessed.
"""

from steersman.contracts.planning.graph import GraphEdge, GraphNode, PlanEstimate
from steersman.contracts.planning.words import RiskLevel, gravest_risk
from steersman.judges.planning.adjacency import GraphAdjacency
from steersman.judges.planning.plan_inputs import PlanInputs
from steersman.judges.text import clip_text

RISK_POINTS: dict[RiskLevel, int] = {"low": 0, "medium": 5, "high": 15, "critical": 30}
# kind of node: points each, and the most that the kind can add
NODE_KIND_POINTS: dict[str, tuple[int, int]] = {
    "phase": (1, 10),
    "action_proposal": (2, 30),
    "decision_point": (3, 15),
    "review_gate": (3, 15),
}


def estimate_duration(
    inputs: PlanInputs, nodes: tuple[GraphNode, ...], edges: tuple[GraphEdge, ...]
) -> PlanEstimate:
    """The minutes of the longest chain of commands."""
    weight = {node.node_id: _node_command_minutes(inputs, node) for node in nodes}
    total, chain = find_heaviest_chain(weight, edges)
    by_id = {node.node_id: node for node in nodes}
    steps = [f"{by_id[name].command_ref} {weight[name]}" for name in chain if weight[name]]
    path = clip_text(" → ".join(steps), 300) or "no command takes time"
    return PlanEstimate(
        value=total,
        unit="minutes",
        basis=(f"the longest chain of commands, minutes each: {path}", "what people need is not in it"),
    )


def estimate_complexity(inputs: PlanInputs, nodes: tuple[GraphNode, ...]) -> PlanEstimate:
    """Points from 0 to 100: how many of each kind, and the gravest risk that is left."""
    proposed = [node for node in nodes if node.status == "proposed"]
    parts = {kind: sum(node.node_type == kind for node in proposed) for kind in NODE_KIND_POINTS}
    points = {
        kind: min(n * NODE_KIND_POINTS[kind][0], NODE_KIND_POINTS[kind][1]) for kind, n in parts.items()
    }
    risk = gravest_risk(
        inputs.intent.risk.overall, *(node.risk_level for node in proposed if node.risk_level)
    )
    lines = (
        f"{kind}: {n} × {NODE_KIND_POINTS[kind][0]}, at most {NODE_KIND_POINTS[kind][1]}"
        for kind, n in parts.items()
    )
    value = sum(points.values()) + RISK_POINTS[risk]
    return PlanEstimate(value=value, unit="points", basis=(*lines, f"risk: {risk}, {RISK_POINTS[risk]}"))


def find_heaviest_chain(weight: dict[str, int], edges: tuple[GraphEdge, ...]) -> tuple[int, tuple[str, ...]]:
    """The heaviest chain and its nodes; what lies on a circle or behind one is not reached. Linear."""
    names, own = tuple(weight), tuple(weight.values())
    ways, best, predecessors = GraphAdjacency(names, edges), list(own), [-1] * len(own)
    end, total = -1, 0
    for node in ways.in_order():
        if best[node] > total:
            end, total = node, best[node]
        for following in ways.after(node):
            if best[node] + own[following] > best[following]:
                best[following], predecessors[following] = best[node] + own[following], node
    return total, tuple(names[node] for node in _trace_chain(predecessors, end))


def _trace_chain(predecessors: list[int], end: int) -> list[int]:
    chain: list[int] = []
    while end >= 0:
        chain.append(end)
        end = predecessors[end]
    return chain[::-1]


def _node_command_minutes(inputs: PlanInputs, node: GraphNode) -> int:
    if node.node_type != "action_proposal" or node.status != "proposed":
        return 0
    spec = inputs.command(node.command_ref)
    return spec.minutes if spec else 0
