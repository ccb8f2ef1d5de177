"""What of a change decides about tests or agents, found the same way whoever made it.

**Invariant:** what is found is told; whether it needs a person is said by the project's rules alone.
"""

import json
from typing import Any

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.contracts.workspace import Change
from steersman.judges.changes import Suspect, gating, instructions, suspects, told
from steersman.ports.workspace import Workspace
from steersman.runtime.call import Call
from steersman.runtime.performers.scene import scene_of
from steersman.runtime.project_files import program_roles


def suspected(call: Call, workspace: Workspace, change: Change) -> tuple[Suspect, ...]:
    """The files of a change by which checks could be made to prove less, or agents be told something else."""
    checks = tuple(check.run for check in call.config.checks.values())
    commands = (*checks, *(step.run for step in call.config.worktree.setup))
    scene = scene_of(
        workspace, call.given("base"), change, commands, _before(call), program_roles(call.config)
    )
    return suspects(change.touched, commands, scene)


def _before(call: Call) -> list[CommandResult]:
    """What the checks said on the base tree."""
    ref = call.given("baseline")
    return msgspec.json.decode(call.payloads.get(ref), type=list[CommandResult]) if ref else []


def counted(call: Call, change: Change, found: tuple[Suspect, ...]) -> dict[str, Any]:
    """How many of them need a person, and all of them in words."""
    put, names = call.payloads.put, instructions(change.touched)
    return {
        "infrastructure": len(gating(found, call.config.rules.changed_tests)),
        "infrastructure_ref": put(told(found)),
        "instructions_ref": put(json.dumps(names)) if names else "",
    }
