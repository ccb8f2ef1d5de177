"""How long a plan would take and how much there is to it, each with what it was worked out from.

**Invariant:** whole numbers only, from the registry's own figures; the time that people need is never guessed.
"""

from steersman.contracts.planning.graph import Edge, Estimate, Node
from steersman.contracts.planning.words import Risk, graver
from steersman.judges.planning.ways import Ways
from steersman.judges.text import clip
from steersman.machines.coordinator.inputs import Inputs

RISK_POINTS: dict[Risk, int] = {"low": 0, "medium": 5, "high": 15, "critical": 30}
# kind of node: points each, and the most that the kind can add
KIND_POINTS: dict[str, tuple[int, int]] = {
    "phase": (1, 10),
    "action_proposal": (2, 30),
    "decision_point": (3, 15),
    "review_gate": (3, 15),
}


def duration(inputs: Inputs, nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> Estimate:
    """The minutes of the longest chain of commands."""
    weight = {node.node_id: _minutes(inputs, node) for node in nodes}
    total, chain = longest(weight, edges)
    by_id = {node.node_id: node for node in nodes}
    told = [f"{by_id[name].command_ref} {weight[name]}" for name in chain if weight[name]]
    path = clip(" → ".join(told), 300) or "no command takes time"
    return Estimate(
        value=total,
        unit="minutes",
        basis=(f"the longest chain of commands, minutes each: {path}", "what people need is not in it"),
    )


def complexity(inputs: Inputs, nodes: tuple[Node, ...]) -> Estimate:
    """Points from 0 to 100: how many of each kind, and the gravest risk that is left."""
    kept = [node for node in nodes if node.status == "proposed"]
    parts = {kind: sum(node.node_type == kind for node in kept) for kind in KIND_POINTS}
    points = {kind: min(n * KIND_POINTS[kind][0], KIND_POINTS[kind][1]) for kind, n in parts.items()}
    risk = graver(inputs.intent.risk.overall, *(node.risk_level for node in kept if node.risk_level))
    told = (
        f"{kind}: {n} × {KIND_POINTS[kind][0]}, at most {KIND_POINTS[kind][1]}" for kind, n in parts.items()
    )
    value = sum(points.values()) + RISK_POINTS[risk]
    return Estimate(value=value, unit="points", basis=(*told, f"risk: {risk}, {RISK_POINTS[risk]}"))


def longest(weight: dict[str, int], edges: tuple[Edge, ...]) -> tuple[int, tuple[str, ...]]:
    """The heaviest chain and its nodes; what lies on a circle or behind one is not reached. Linear."""
    names, own = tuple(weight), tuple(weight.values())
    ways, best, came = Ways(names, edges), list(own), [-1] * len(own)
    end, total = -1, 0
    for node in ways.in_order():
        if best[node] > total:
            end, total = node, best[node]
        for following in ways.after(node):
            if best[node] + own[following] > best[following]:
                best[following], came[following] = best[node] + own[following], node
    return total, tuple(names[node] for node in _back(came, end))


def _back(came: list[int], end: int) -> list[int]:
    chain: list[int] = []
    while end >= 0:
        chain.append(end)
        end = came[end]
    return chain[::-1]


def _minutes(inputs: Inputs, node: Node) -> int:
    if node.node_type != "action_proposal" or node.status != "proposed":
        return 0
    spec = inputs.command(node.command_ref)
    return spec.minutes if spec else 0
