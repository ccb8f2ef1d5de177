"""The page about the environment names every variable that the code passes on, and no other."""

import re
from pathlib import Path

from steersman.adapters.checks.tree_commands import (
    COMMAND_CERTIFICATE_VARIABLES,
    COMMAND_VARIABLES,
    SETUP_NETWORK_VARIABLES,
    TOOLCHAIN_VARIABLES,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "environment.md"


def test_the_page_lists_what_is_passed_on():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| setup")]
    named = set(re.findall(r"`([A-Za-z_]+)`", " ".join(rows)))
    passed_on = {
        *COMMAND_VARIABLES, *COMMAND_CERTIFICATE_VARIABLES, *TOOLCHAIN_VARIABLES, *SETUP_NETWORK_VARIABLES,
    }  # fmt: skip
    assert named == {name for name in passed_on if not (name.islower() and name.endswith("_proxy"))}
