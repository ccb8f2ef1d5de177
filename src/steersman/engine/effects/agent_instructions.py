"""Gives agents the repository's instruction files from the base commit, so that a change cannot instruct its reviewer.

Links are removed for the time of the call, because their targets are in no commit.
**Invariant:** after the call the tree is as before, or the next checkout makes it again.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from steersman.contracts.workspace import Checkout
from steersman.engine.effect_call import EffectCall
from steersman.judges.changes.infrastructure import find_agent_instruction_reason
from steersman.ports.workspace import Workspace

INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
MAX_INSTRUCTION_BYTES = 32 * 1024  # of one file


@asynccontextmanager
async def use_base_instructions(
    call: EffectCall, workspace: Workspace, tree: Checkout
) -> AsyncIterator[None]:
    """Puts the base commit's instruction files into a tree for a reader; a writer keeps its own files without links."""
    names = await asyncio.to_thread(_instruction_names, call, workspace, tree)
    if not names:
        yield
        return
    source = tree.commit if call.given("writes") else call.given("base")
    await asyncio.to_thread(workspace.write_files, tree.path, source, names, links=False)
    try:
        yield
    finally:
        await asyncio.to_thread(_restore_instructions, call, workspace, tree, names)


def read_conventions(call: EffectCall, workspace: Workspace) -> dict[str, str]:
    """Reads the instruction files at the top of the base commit, by name; equal texts only once."""
    texts_by_file: dict[str, str] = {}
    for name, content in workspace.read_contents(call.given("base"), INSTRUCTION_FILES).items():
        text = content[:MAX_INSTRUCTION_BYTES].decode("utf-8", "replace").strip()
        if text and text not in texts_by_file.values():
            texts_by_file[name] = text
    return texts_by_file


def _restore_instructions(
    call: EffectCall, workspace: Workspace, tree: Checkout, names: tuple[str, ...]
) -> None:
    """Restores the tree; a file that a writer put in the place of a link stays, as part of its change."""
    written_by_agent = [
        n for n in names if call.given("writes") and os.path.lexists(os.path.join(tree.path, n))
    ]
    workspace.write_files(tree.path, tree.commit, [n for n in names if n not in written_by_agent], links=True)


def _instruction_names(call: EffectCall, workspace: Workspace, tree: Checkout) -> tuple[str, ...]:
    """Returns the instruction files that were changed, for a reader, and those that are links."""
    ref = "" if call.given("writes") else call.given("instructions")
    changed_names: list[str] = json.loads(call.payloads.get(ref)) if ref else []
    linked_names = [name for name in workspace.links(tree.commit) if find_agent_instruction_reason(name)]
    return tuple(dict.fromkeys((*changed_names, *linked_names)))
