"""Names in an intent that lead through links of the repository: what a plan names is not what would be changed."""

import os
from typing import TYPE_CHECKING, Any

from steersman.faces.deck import Deck

if TYPE_CHECKING:
    from steersman.contracts.planning.decisions import Problem
    from steersman.judges.planning.places import Lines


def linked(deck: Deck, value: Any, lines: "Lines | None" = None) -> "list[Problem]":
    """Remarks on files in scope that are links, or that lie behind one."""
    from steersman.judges.planning.paths import plain, why_outside
    from steersman.judges.planning.places import NO_LINES, problem
    from steersman.judges.planning.raw import texts

    found = []
    for path, name in texts(value, "scope", "targets", "files"):
        link = "" if why_outside(name) else _link(str(deck.top), plain(name))
        if link:
            told = f"{name} leads through {link}, which is a link: no scan follows it, and what is changed may lie elsewhere"
            found.append(problem(path, told, "name the files themselves", lines or NO_LINES))
    return found


def _link(top: str, name: str) -> str:
    """The first part of a name that is a link; empty where none is."""
    here = ""
    for part in name.split("/"):
        here = f"{here}/{part}" if here else part
        if os.path.islink(os.path.join(top, here)):
            return here
    return ""
