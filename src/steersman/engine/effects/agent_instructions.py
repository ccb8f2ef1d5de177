"""What a repository tells agents, as the base commit has it, while an agent works in a tree that says otherwise.

A reviewer reads the changed tree; the instruction files in it are those that the coder could not change. A link is
taken away: what it leads to is in no commit.
**Invariant:** after the call the tree is what it was before, or it is made anew by the next checkout.
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
MAX_INSTRUCTION_BYTES = 32 * 1024  # bytes of one file that are handed on


@asynccontextmanager
async def use_base_instructions(
    call: EffectCall, workspace: Workspace, tree: Checkout
) -> AsyncIterator[None]:
    """The instruction files of the base commit, for agents that only read; whoever writes sees its own, without links."""
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
    """What the repository tells every agent at its top, by file, from the base commit; the same words only once."""
    texts_by_file: dict[str, str] = {}
    for name, content in workspace.read_contents(call.given("base"), INSTRUCTION_FILES).items():
        text = content[:MAX_INSTRUCTION_BYTES].decode("utf-8", "replace").strip()
        if text and text not in texts_by_file.values():
            texts_by_file[name] = text
    return texts_by_file


def _restore_instructions(
    call: EffectCall, workspace: Workspace, tree: Checkout, names: tuple[str, ...]
) -> None:
    """The tree as it was; what a writer has put in the place of a link is its change."""
    written_by_agent = [
        n for n in names if call.given("writes") and os.path.lexists(os.path.join(tree.path, n))
    ]
    workspace.write_files(tree.path, tree.commit, [n for n in names if n not in written_by_agent], links=True)


def _instruction_names(call: EffectCall, workspace: Workspace, tree: Checkout) -> tuple[str, ...]:
    """Those that were changed, where the agent only reads, and those that are links."""
    ref = "" if call.given("writes") else call.given("instructions")
    changed_names: list[str] = json.loads(call.payloads.get(ref)) if ref else []
    linked_names = [name for name in workspace.links(tree.commit) if find_agent_instruction_reason(name)]
    return tuple(dict.fromkeys((*changed_names, *linked_names)))
