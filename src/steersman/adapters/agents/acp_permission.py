"""What we answer an agent that asks whether it may: by role, by kind of tool, and by place.

**Invariant:** nothing is allowed for longer than once, nothing outside the working tree, and what is not understood is
rejected. The sandbox enforces; this only answers.
"""

import os
import shlex
from collections.abc import Collection, Iterator
from typing import Any

from steersman.adapters.checks.setup_layers import visible_tree_path
from steersman.contracts.agent import Permissions
from steersman.contracts.commands import Argv
from steersman.judges.commands.tester_commands import find_commands_outside

_HARMLESS_TOOL_KINDS = frozenset({"read", "search", "think"})
_EDITING_TOOL_KINDS = frozenset({"edit", "delete", "move"})
ALLOW_ONCE, REJECT_KINDS = "allow_once", ("reject_once", "reject_always")


def allows_tool_call(
    call: dict[str, Any],
    permissions: Permissions,
    workdir: str,
    *,
    isolated: bool,
    allows: Collection[Argv] | None = None,
) -> bool:
    """Whether a role may use this tool here; a command only where a sandbox holds it, and it is one of those that may be run."""
    kind = call.get("kind")
    visible_tree = visible_tree_path(workdir, isolated=isolated)
    if not all(is_inside_working_tree(path, workdir, visible_tree) for path in list_call_paths(call)):
        return False
    if kind in _HARMLESS_TOOL_KINDS:
        return True
    if kind in _EDITING_TOOL_KINDS:
        # Without a place named, only a sandbox knows where it will write.
        return permissions != "read" and (isolated or any(True for _ in list_call_paths(call)))
    is_allowed_command = not find_commands_outside([read_call_command(call)], allows)
    return kind == "execute" and permissions == "shell" and isolated and is_allowed_command


def choose_permission_option(options: Any, *, allow: bool) -> dict[str, Any]:
    """The option to choose; where there is none that fits, the question is left without an answer, which is a no."""
    offered = [o for o in options if isinstance(o, dict)] if isinstance(options, list) else []
    kinds = (ALLOW_ONCE,) if allow else REJECT_KINDS
    for kind in kinds:
        for option in offered:
            if option.get("kind") == kind and isinstance(option.get("optionId"), str):
                return {"outcome": "selected", "optionId": option["optionId"]}
    return {"outcome": "cancelled"}


def list_call_paths(call: dict[str, Any]) -> Iterator[str]:
    """Every place that a tool call names."""
    for name in ("locations", "content"):
        entries = call.get(name)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                yield entry["path"]


def is_inside_working_tree(path: str, workdir: str, visible_tree: str = "") -> bool:
    """Whether a place is in the tree, links followed; the agent sees the tree at `shown`."""
    if visible_tree and (path == visible_tree or path.startswith(f"{visible_tree}/")):
        path = workdir + path[len(visible_tree) :]
    try:
        real = os.path.realpath(os.path.join(workdir, path))
    except (OSError, ValueError):
        return False
    top = os.path.realpath(workdir)
    return real == top or real.startswith(top + os.sep)


def read_call_command(call: dict[str, Any]) -> str:
    """The command of a call, as far as it says one: in its tool's input, else in its title."""
    raw_input = call.get("rawInput")
    raw_command = raw_input.get("command") if isinstance(raw_input, dict) else None
    if isinstance(raw_command, list) and all(isinstance(word, str) for word in raw_command):
        return shlex.join(raw_command)
    return raw_command if isinstance(raw_command, str) else describe_tool_call(call).strip("`")


def describe_tool_call(call: dict[str, Any]) -> str:
    """The tool as a person would name it."""
    return str(call.get("title") or call.get("kind") or "a tool")
