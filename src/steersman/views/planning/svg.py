"""An execution graph as SVG: bands for lanes, boxes for nodes, lines for edges.

**Invariant:** text is escaped, and there is no script, link, style sheet or reference to anything outside.
"""

from steersman.contracts.planning.graph import Edge, ExecutionGraph, Node
from steersman.judges.text import clip, one_line
from steersman.views.planning.layout import HEAD, HEIGHT, MARGIN, WIDTH, Band, Layout, Spot, layout

LONGEST = 34  # characters that fit into a box
_FILLS = {
    "phase": "#dbeafe",
    "action_proposal": "#ffffff",
    "decision_point": "#fef3c7",
    "question": "#fde2e2",
    "review_gate": "#dcfce7",
}
_DASHES = {"sequential": "", "parallel": "", "conditional": "6 4", "fallback": "2 4"}
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_BESIDE = 2  # the stroke of what goes on side by side


def svg(graph: ExecutionGraph) -> str:
    """The drawing, ending in a newline."""
    where = layout(graph)
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{where.width}" height="{where.height}" '
            f'viewBox="0 0 {where.width} {where.height}" font-family="sans-serif" font-size="12" role="img">'
        ),
        f"<title>{_text(f'{graph.plan_id}: {graph.stage} graph of {graph.intent_id}', 200)}</title>",
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#475569"/></marker></defs>'
        ),
        *(_band(band, where) for band in where.bands),
        *(_line(edge, where.spots) for edge in graph.edges),
        *(_box(node, where.spots[node.node_id]) for node in graph.nodes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _band(band: Band, where: Layout) -> str:
    return (
        f'<g><rect x="{band.x}" y="{MARGIN}" width="{band.width}" height="{where.height - 2 * MARGIN}" '
        f'fill="#f8fafc" stroke="#cbd5e1"/><text x="{band.x + 12}" y="{MARGIN + HEAD - 14}" font-weight="bold">'
        f"{_text(band.name, 60)}</text></g>"
    )


def _line(edge: Edge, spots: dict[str, Spot]) -> str:
    start, end = spots[edge.from_node], spots[edge.to_node]
    dashes = f' stroke-dasharray="{_DASHES[edge.edge_type]}"' if _DASHES[edge.edge_type] else ""
    width = _BESIDE if edge.edge_type == "parallel" else 1
    told = f"<title>{_text(edge.condition, 400)}</title>" if edge.condition else ""
    return (
        f'<path d="M{start.x + WIDTH // 2} {start.y + HEIGHT}L{end.x + WIDTH // 2} {end.y}" fill="none" '
        f'stroke="#475569" stroke-width="{width}"{dashes} marker-end="url(#tip)">{told}</path>'
    )


def _box(node: Node, spot: Spot) -> str:
    faint = ' opacity="0.5"' if node.status == "excluded" else ""
    under = " · ".join(filter(None, (node.node_type.replace("_", " "), node.risk_level, _state(node))))
    return (
        f"<g{faint}><title>{_text(f'{node.label}: {node.description}', 400)}</title>\n"
        f'<rect x="{spot.x}" y="{spot.y}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
        f'fill="{_FILLS[node.node_type]}" stroke="#475569"/>\n'
        f'<text x="{spot.x + 8}" y="{spot.y + 20}">{_text(node.label, LONGEST)}</text>\n'
        f'<text x="{spot.x + 8}" y="{spot.y + 38}" fill="#64748b">{_text(under, LONGEST)}</text></g>'
    )


def _state(node: Node) -> str:
    return {"excluded": "left out", "placeholder": "open"}.get(node.status, "")


def _text(words: str, most: int) -> str:
    return one_line(clip(" ".join(words.split()), most)).translate(_ESCAPED)
