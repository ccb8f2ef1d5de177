"""What is shown of a run whose texts are gone."""

import pytest

from steersman.kernel.snapshot import Snapshot
from steersman.machines.roundtable.context import RoundtableContext
from steersman.machines.shared.tree_summary import latest_checks


@pytest.mark.parametrize(
    ("text", "shown"),
    [("(this text was pruned)", [("results", "pruned")]), ("", [])],
    ids=["pruned", "never checked"],
)
def test_results_that_were_pruned_are_said_to_be(text, shown):
    """A pruned run still says that there were results, a run without any says nothing; neither breaks."""
    context = RoundtableContext(mode="proposal", task_ref="p-0", results_ref="p-1")
    run = Snapshot(run="r", machine="m", definition="d", state="s", context=context)
    results = latest_checks(run, context, lambda ref: text if ref == "p-1" else "")
    assert [(c.name, c.verdict) for c in results] == shown
