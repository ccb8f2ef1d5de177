"""Files that keep secrets, by their names alone.

**Invariant:** such a file is never opened: neither its text nor a digest of its content is anywhere in a pack, for a
digest lets everybody try out what a short secret could be.
"""

import re

from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, folder_of
from steersman.judges.secret_names import keeps_secrets

_PATTERN = later(r"(?:^|[._-])(?:example|sample|template|tmpl|dist|defaults?)(?:[._-]|$)", re.IGNORECASE)
# Settings of package managers, which are secret only where somebody has put a token into them.
_SETTINGS = frozenset({".npmrc", ".yarnrc", ".yarnrc.yml", ".condarc", "pip.conf"})


def is_secret(path: str) -> bool:
    """Is this a file that keeps secrets, and no pattern for one?"""
    name = path.rpartition("/")[2]
    return name.casefold() not in _SETTINGS and not _PATTERN.search(name) and keeps_secrets(path)


def secret_file(path: str) -> Finding:
    """It is there, where it should not be."""
    return Finding("secret_file", path, root=folder_of(path))
