"""Finds what in a change decides about tests or agents.

**Invariant:** every such file is reported; the project's rules alone decide whether the change needs a person.
"""

import json
from typing import Any

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.contracts.workspace import Change
from steersman.engine.effect_call import EffectCall
from steersman.engine.effects.change_context import read_change_context
from steersman.engine.project_files import program_roles
from steersman.judges.changes.review_reasons import (
    SuspiciousFile,
    find_agent_instructions,
    find_gating_files,
    find_suspicious_files,
    render_suspicious_files,
)
from steersman.ports.workspace import Workspace


def find_change_suspects(
    call: EffectCall, workspace: Workspace, change: Change
) -> tuple[SuspiciousFile, ...]:
    """Returns the files of a change that could weaken checks or instruct agents."""
    checks = tuple(check.run for check in call.config.checks.values())
    commands = (*checks, *(step.run for step in call.config.worktree.setup))
    change_context = read_change_context(
        workspace,
        call.given("base"),
        change,
        commands,
        _decode_base_results(call),
        program_roles(call.config),
    )
    return find_suspicious_files(change.touched, commands, change_context)


def _decode_base_results(call: EffectCall) -> list[CommandResult]:
    """Returns the results of the checks on the base tree."""
    ref = call.given("baseline")
    return msgspec.json.decode(call.payloads.get(ref), type=list[CommandResult]) if ref else []


def count_suspects(
    call: EffectCall, change: Change, suspects_found: tuple[SuspiciousFile, ...]
) -> dict[str, Any]:
    """Returns how many of them need a person, and all of them as text."""
    put, instruction_files = call.payloads.add_text, find_agent_instructions(change.touched)
    return {
        "infrastructure": len(find_gating_files(suspects_found, call.config.rules.changed_tests)),
        "infrastructure_ref": put(render_suspicious_files(suspects_found)),
        "instructions_ref": put(json.dumps(instruction_files)) if instruction_files else "",
    }
