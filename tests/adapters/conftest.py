"""What several suites of adapters need."""

import pytest

from steersman.adapters.sandbox.bubblewrap import probe_sandbox


@pytest.fixture
def sandbox():
    """The sandbox of this machine; without one there is nothing to prove here, and the reason is told."""
    found = probe_sandbox("auto")
    if not found.isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {found.why}")
    return found
