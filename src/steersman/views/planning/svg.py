"""An execution graph as SVG: bands for lanes, boxes for nodes, lines for edges.

**Invariant:** text is escaped, and there is no script, link, style sheet or reference to anything outside.
"""

from steersman.contracts.planning.graph import ExecutionGraph, GraphEdge, GraphNode
from steersman.judges.text import clip_text, printable_line
from steersman.views.planning.layout import (
    DRAWING_MARGIN,
    LANE_HEADER_HEIGHT,
    NODE_HEIGHT,
    NODE_WIDTH,
    GraphLayout,
    LaneBand,
    NodePosition,
    layout_graph,
)

MAX_NODE_LABEL = 34  # characters that fit into a box
_NODE_FILLS = {
    "phase": "#dbeafe",
    "action_proposal": "#ffffff",
    "decision_point": "#fef3c7",
    "question": "#fde2e2",
    "review_gate": "#dcfce7",
}
_EDGE_DASHES = {"sequential": "", "parallel": "", "conditional": "6 4", "fallback": "2 4"}
_XML_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_PARALLEL_STROKE = 2  # the stroke of what goes on side by side


def render_graph_svg(graph: ExecutionGraph) -> str:
    """The drawing, ending in a newline."""
    drawing = layout_graph(graph)
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{drawing.width}" height="{drawing.height}" '
            f'viewBox="0 0 {drawing.width} {drawing.height}" font-family="sans-serif" font-size="12" role="img">'
        ),
        f"<title>{_escape_svg_text(f'{graph.plan_id}: {graph.stage} graph of {graph.intent_id}', 200)}</title>",
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#475569"/></marker></defs>'
        ),
        *(_render_lane_band(band, drawing) for band in drawing.bands),
        *(_render_svg_edge(edge, drawing.spots) for edge in graph.edges),
        *(_render_svg_node(node, drawing.spots[node.node_id]) for node in graph.nodes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _render_lane_band(band: LaneBand, drawing: GraphLayout) -> str:
    return (
        f'<g><rect x="{band.x}" y="{DRAWING_MARGIN}" width="{band.width}" height="{drawing.height - 2 * DRAWING_MARGIN}" '
        f'fill="#f8fafc" stroke="#cbd5e1"/><text x="{band.x + 12}" y="{DRAWING_MARGIN + LANE_HEADER_HEIGHT - 14}" font-weight="bold">'
        f"{_escape_svg_text(band.name, 60)}</text></g>"
    )


def _render_svg_edge(edge: GraphEdge, spots: dict[str, NodePosition]) -> str:
    start, end = spots[edge.from_node], spots[edge.to_node]
    dashes = f' stroke-dasharray="{_EDGE_DASHES[edge.edge_type]}"' if _EDGE_DASHES[edge.edge_type] else ""
    width = _PARALLEL_STROKE if edge.edge_type == "parallel" else 1
    title = f"<title>{_escape_svg_text(edge.condition, 400)}</title>" if edge.condition else ""
    return (
        f'<path d="M{start.x + NODE_WIDTH // 2} {start.y + NODE_HEIGHT}L{end.x + NODE_WIDTH // 2} {end.y}" fill="none" '
        f'stroke="#475569" stroke-width="{width}"{dashes} marker-end="url(#tip)">{title}</path>'
    )


def _render_svg_node(node: GraphNode, spot: NodePosition) -> str:
    faint = ' opacity="0.5"' if node.status == "excluded" else ""
    under = " · ".join(
        filter(None, (node.node_type.replace("_", " "), node.risk_level, _describe_node_status(node)))
    )
    return (
        f"<g{faint}><title>{_escape_svg_text(f'{node.label}: {node.description}', 400)}</title>\n"
        f'<rect x="{spot.x}" y="{spot.y}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}" rx="6" '
        f'fill="{_NODE_FILLS[node.node_type]}" stroke="#475569"/>\n'
        f'<text x="{spot.x + 8}" y="{spot.y + 20}">{_escape_svg_text(node.label, MAX_NODE_LABEL)}</text>\n'
        f'<text x="{spot.x + 8}" y="{spot.y + 38}" fill="#64748b">{_escape_svg_text(under, MAX_NODE_LABEL)}</text></g>'
    )


def _describe_node_status(node: GraphNode) -> str:
    return {"excluded": "left out", "placeholder": "open"}.get(node.status, "")


def _escape_svg_text(text: str, max_length: int) -> str:
    return printable_line(clip_text(" ".join(text.split()), max_length)).translate(_XML_ESCAPES)
