"""What is shown of a run whose texts are gone."""

import pytest

from steersman.kernel.snapshot import Snapshot
from steersman.views.run_summary import latest_checks


@pytest.mark.parametrize(
    ("text", "shown"),
    [("(this text was pruned)", [("results", "pruned")]), ("", [])],
    ids=["pruned", "never checked"],
)
def test_results_that_were_pruned_are_said_to_be(text, shown):
    """A pruned run still says that there were results, a run without any says nothing; neither breaks."""
    run = Snapshot(run="r", machine="m", definition="d", state="s", context={"results_ref": "p-1"})
    assert [(c.name, c.verdict) for c in latest_checks(run, lambda _ref: text)] == shown
