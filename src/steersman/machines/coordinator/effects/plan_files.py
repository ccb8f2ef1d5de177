"""The files of a frozen plan that are for people: drawn from its documents, so that the same plan has the same ones."""

from steersman.judges.planning.freeze import PlanOutputs
from steersman.machines.coordinator.graph import questions_for_inputs
from steersman.views.planning.markdown import render_plan_markdown, render_review_markdown
from steersman.views.planning.mermaid import render_graph_mermaid


def render_plan_files(outputs: PlanOutputs) -> dict[str, str]:
    """The diagram and both texts, by file name."""
    questions = questions_for_inputs(outputs.inputs)
    return {
        "execution_graph.mmd": render_graph_mermaid(outputs.graph),
        "plan.md": render_plan_markdown(outputs.graph, outputs.review, questions, outputs.settled),
        "review_pack.md": render_review_markdown(outputs.review),
    }
