"""The files of a frozen plan that are for people: drawn from its documents, so that the same plan has the same ones."""

from steersman.machines.coordinator.freeze import Outputs
from steersman.machines.coordinator.graph import asked_of
from steersman.views.planning.markdown import plan_markdown, review_markdown
from steersman.views.planning.mermaid import mermaid
from steersman.views.planning.svg import svg


def drawn(outputs: Outputs) -> dict[str, str]:
    """Diagram, drawing and both texts, by file name."""
    questions = asked_of(outputs.inputs)
    return {
        "execution_graph.mmd": mermaid(outputs.graph),
        "execution_graph.svg": svg(outputs.graph),
        "plan.md": plan_markdown(outputs.graph, outputs.review, questions, outputs.settled),
        "review_pack.md": review_markdown(outputs.review),
    }
