"""Files beside a run that works on a tree."""

from collections.abc import Iterator

from steersman.engine.machine_package import Artifact
from steersman.engine.projections import format_json_file
from steersman.engine.run_view import RunView
from steersman.machines.shared.tree_summary import TreeContext


def check_result_files(run_view: RunView) -> Iterator[Artifact]:
    """The recorded results of the last checks."""
    context: TreeContext = run_view.snapshot.context
    if context.results_ref:
        yield "test-results.json", lambda: format_json_file(run_view.text(context.results_ref).encode())
