"""What we answer an agent that asks whether it may: by role, by kind of tool, and by place.

**Invariant:** nothing is allowed for longer than once, nothing outside the working tree, and what is not understood is
rejected. The box is what holds; this is what is said.
"""

import os
import shlex
from collections.abc import Collection, Iterator
from typing import Any

from steersman.adapters.tree_places import shown_path
from steersman.contracts.agent import Permissions
from steersman.contracts.commands import Argv
from steersman.judges.own_shell import outside

_HARMLESS = frozenset({"read", "search", "think"})
_EDITS = frozenset({"edit", "delete", "move"})
ONCE, NEVER = "allow_once", ("reject_once", "reject_always")


def allowed(
    call: dict[str, Any],
    permissions: Permissions,
    workdir: str,
    *,
    isolated: bool,
    allows: Collection[Argv] | None = None,
) -> bool:
    """Whether a role may use this tool here; a command only where a box holds it, and it is one of those that may be run."""
    kind = call.get("kind")
    shown = shown_path(workdir, isolated=isolated)
    if not all(inside(path, workdir, shown) for path in paths(call)):
        return False
    if kind in _HARMLESS:
        return True
    if kind in _EDITS:
        # Without a place named, only a box knows where it will write.
        return permissions != "read" and (isolated or any(True for _ in paths(call)))
    held = allows is None or not outside(command(call), allows)
    return kind == "execute" and permissions == "shell" and isolated and held


def answer(options: Any, *, allow: bool) -> dict[str, Any]:
    """The option to choose; where there is none that fits, the question is left without an answer, which is a no."""
    offered = [o for o in options if isinstance(o, dict)] if isinstance(options, list) else []
    wanted = (ONCE,) if allow else NEVER
    for kind in wanted:
        for option in offered:
            if option.get("kind") == kind and isinstance(option.get("optionId"), str):
                return {"outcome": "selected", "optionId": option["optionId"]}
    return {"outcome": "cancelled"}


def paths(call: dict[str, Any]) -> Iterator[str]:
    """Every place that a tool call names."""
    for name in ("locations", "content"):
        listed = call.get(name)
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                yield entry["path"]


def inside(path: str, workdir: str, shown: str = "") -> bool:
    """Whether a place is in the tree, links followed; the agent sees the tree at `shown`."""
    if shown and (path == shown or path.startswith(f"{shown}/")):
        path = workdir + path[len(shown) :]
    try:
        real = os.path.realpath(os.path.join(workdir, path))
    except (OSError, ValueError):
        return False
    top = os.path.realpath(workdir)
    return real == top or real.startswith(top + os.sep)


def command(call: dict[str, Any]) -> str:
    """The command of a call, as far as it says one: in what it hands to its tool, else in its title."""
    given = call.get("rawInput")
    found = given.get("command") if isinstance(given, dict) else None
    if isinstance(found, list) and all(isinstance(word, str) for word in found):
        return shlex.join(found)
    return found if isinstance(found, str) else named(call).strip("`")


def named(call: dict[str, Any]) -> str:
    """The tool as a person would name it."""
    return str(call.get("title") or call.get("kind") or "a tool")
