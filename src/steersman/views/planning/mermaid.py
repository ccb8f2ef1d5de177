"""Renders an execution graph as a Mermaid flowchart: a lane is a subgraph, each kind of node has its shape.

**Invariant:** no text of an intent or a registry becomes a node, an edge or a directive.
"""

from collections.abc import Iterator

from steersman.contracts.planning.graph import ExecutionGraph, GraphEdge, GraphNode
from steersman.judges.text import clip_text
from steersman.views.screen import diagram_label

MAX_MERMAID_LABEL = 80  # characters of one label
_MERMAID_SHAPES = {
    "phase": ("([", "])"),
    "action_proposal": ("[", "]"),
    "decision_point": ("{", "}"),
    "question": ("{{", "}}"),
    "review_gate": ("[/", "/]"),
}
_MERMAID_ARROWS = {
    "sequential": "-->",
    "parallel": "==>",
    "conditional": "-.->",
    "fallback": "-. fallback .->",
}


def render_graph_mermaid(graph: ExecutionGraph) -> str:
    """Renders the diagram."""
    names = {node.node_id: f"n{n}" for n, node in enumerate(graph.nodes)}
    boxes = {node.node_id: _render_mermaid_node(names[node.node_id], node) for node in graph.nodes}
    lines = ["flowchart TD"]
    for n, lane in enumerate(graph.swimlanes):
        lines.append(f'    subgraph lane{n}["{_mermaid_label(f"{lane.agent_id} ({lane.role})")}"]')
        lines += [f"        {boxes.pop(ref)}" for ref in lane.node_refs if ref in boxes]
        lines.append("    end")
    lines += [f"    {box}" for box in boxes.values()]
    lines += [f"    {_render_mermaid_edge(edge, names)}" for edge in graph.edges]
    lines += _render_mermaid_styles(graph, names)
    return "\n".join(lines) + "\n"


def _render_mermaid_node(name: str, node: GraphNode) -> str:
    start, end = _MERMAID_SHAPES[node.node_type]
    return f'{name}{start}"{_mermaid_label(node.label)}"{end}'


def _render_mermaid_edge(edge: GraphEdge, names: dict[str, str]) -> str:
    condition_label = (
        f'|"{_mermaid_label(edge.condition)}"|' if edge.condition and edge.edge_type == "conditional" else ""
    )
    return f"{names[edge.from_node]} {_MERMAID_ARROWS[edge.edge_type]}{condition_label} {names[edge.to_node]}"


def _render_mermaid_styles(graph: ExecutionGraph, names: dict[str, str]) -> Iterator[str]:
    excluded_names = [names[node.node_id] for node in graph.nodes if node.status == "excluded"]
    if excluded_names:
        yield "    classDef excluded stroke-dasharray: 4 4,opacity:0.6"
        yield f"    class {','.join(excluded_names)} excluded"


def _mermaid_label(text: str) -> str:
    return diagram_label(clip_text(text, MAX_MERMAID_LABEL))
