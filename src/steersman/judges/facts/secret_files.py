"""Files that keep secrets, by their names alone.

**Invariant:** such a file is never opened: neither its text nor a digest of its content is anywhere in a pack, for a
digest lets everybody try out what a short secret could be.
"""

import re

from steersman.judges.facts.finding import FactFinding, parent_directory
from steersman.judges.patterns import lazy_pattern
from steersman.judges.redaction.secret_names import is_secret_file_name

_TEMPLATE_NAME = lazy_pattern(
    r"(?:^|[._-])(?:example|sample|template|tmpl|dist|defaults?)(?:[._-]|$)", re.IGNORECASE
)
# Settings of package managers, which are secret only where somebody has put a token into them.
_PACKAGE_MANAGER_SETTINGS = frozenset({".npmrc", ".yarnrc", ".yarnrc.yml", ".condarc", "pip.conf"})


def is_secret_file(path: str) -> bool:
    """Is this a file that keeps secrets, and no pattern for one?"""
    name = path.rpartition("/")[2]
    return (
        name.casefold() not in _PACKAGE_MANAGER_SETTINGS
        and not _TEMPLATE_NAME.search(name)
        and is_secret_file_name(path)
    )


def secret_file_finding(path: str) -> FactFinding:
    """It is there, where it should not be."""
    return FactFinding("secret_file", path, root=parent_directory(path))
