"""An execution graph as a Mermaid flowchart: a lane is a subgraph, a kind of node has its shape.

**Invariant:** no text of an intent or a registry becomes a node, an edge or a directive.
"""

from collections.abc import Iterator

from steersman.contracts.planning.graph import Edge, ExecutionGraph, Node
from steersman.judges.text import clip
from steersman.views.quotation import label

LONGEST = 80  # characters of one label
_SHAPES = {
    "phase": ("([", "])"),
    "action_proposal": ("[", "]"),
    "decision_point": ("{", "}"),
    "question": ("{{", "}}"),
    "review_gate": ("[/", "/]"),
}
_ARROWS = {"sequential": "-->", "parallel": "==>", "conditional": "-.->", "fallback": "-. fallback .->"}


def mermaid(graph: ExecutionGraph) -> str:
    """The diagram's text, ending in a newline."""
    names = {node.node_id: f"n{n}" for n, node in enumerate(graph.nodes)}
    boxes = {node.node_id: _box(names[node.node_id], node) for node in graph.nodes}
    lines = ["flowchart TD"]
    for n, lane in enumerate(graph.swimlanes):
        lines.append(f'    subgraph lane{n}["{_words(f"{lane.agent_id} ({lane.role})")}"]')
        lines += [f"        {boxes.pop(ref)}" for ref in lane.node_refs if ref in boxes]
        lines.append("    end")
    lines += [f"    {box}" for box in boxes.values()]
    lines += [f"    {_arrow(edge, names)}" for edge in graph.edges]
    lines += _styles(graph, names)
    return "\n".join(lines) + "\n"


def _box(name: str, node: Node) -> str:
    start, end = _SHAPES[node.node_type]
    return f'{name}{start}"{_words(node.label)}"{end}'


def _arrow(edge: Edge, names: dict[str, str]) -> str:
    said = f'|"{_words(edge.condition)}"|' if edge.condition and edge.edge_type == "conditional" else ""
    return f"{names[edge.from_node]} {_ARROWS[edge.edge_type]}{said} {names[edge.to_node]}"


def _styles(graph: ExecutionGraph, names: dict[str, str]) -> Iterator[str]:
    out = [names[node.node_id] for node in graph.nodes if node.status == "excluded"]
    if out:
        yield "    classDef excluded stroke-dasharray: 4 4,opacity:0.6"
        yield f"    class {','.join(out)} excluded"


def _words(text: str) -> str:
    return label(clip(text, LONGEST))
