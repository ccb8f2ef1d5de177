"""The page about the environment names every variable that the code passes on, and no other."""

import re
from pathlib import Path

from steersman.adapters.command_environment import ALWAYS, CERTIFICATES, NETWORK, TOOLCHAINS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "environment.md"


def test_the_page_lists_what_is_passed_on():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| setup")]
    named = set(re.findall(r"`([A-Za-z_]+)`", " ".join(rows)))
    passed_on = {*ALWAYS, *CERTIFICATES, *TOOLCHAINS, *NETWORK}
    assert named == {name for name in passed_on if not (name.islower() and name.endswith("_proxy"))}
