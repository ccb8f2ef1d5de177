"""Makes working trees ready for whoever works in them."""

import asyncio

from msgspec.structs import replace

from steersman.contracts.commands import CommandResult
from steersman.contracts.config import setup_commands
from steersman.contracts.facts import SetupFacts
from steersman.contracts.workspace import Checkout
from steersman.errors import WorkspaceError
from steersman.runtime.call import Call
from steersman.views.failed_check import TAIL, failed_check_lines

SHOWN = 40  # lines of each stream of a failing check that the next round is given


async def setup(call: Call) -> SetupFacts:
    """A working tree at the recorded commit with the project's setup commands run in it."""
    try:
        tree = await tree_at(call)
    except WorkspaceError as error:
        return SetupFacts(detail_ref=call.payloads.put(str(error)))
    steps, failed = await _set_up(call, tree)
    if failed is not None:
        return SetupFacts(steps=steps, detail_ref=call.payloads.put(failure_text(call, failed)))
    return SetupFacts(ready=True, tree=tree.tree, commit=tree.commit, steps=steps)


async def tree_at(call: Call, *, untouched: bool = False, commit: str = "") -> Checkout:
    """A working tree at the recorded commit, or at `commit`; an `untouched` one no other effect has had."""
    at = commit or call.given("commit")
    workspace, given = call.world.workspace(call.config), (call.run, at, call.effect)
    tree: Checkout = await asyncio.to_thread(workspace.checkout, *given, untouched=untouched)
    return tree


async def ready_tree(
    call: Call, ready: frozenset[str] = frozenset(), *, untouched: bool = False, commit: str = ""
) -> Checkout:
    """The same, set up: one that had to be made anew, after something edited the last one, gets its setup too.

    `ready` are the places that this very effect has set up already.
    """
    tree = await tree_at(call, untouched=untouched, commit=commit)
    if tree.fresh and tree.path not in ready:
        _, failed = await _set_up(call, tree)
        if failed is not None:
            raise WorkspaceError(f"a working tree could not be set up anew: {failure_text(call, failed)}")
    return tree


async def _set_up(call: Call, tree: Checkout) -> tuple[int, CommandResult | None]:
    """The project's setup commands, in order: how many were run, and the one that failed."""
    commands, steps = call.world.commands(call.config), setup_commands(call.config)
    results = await commands.set_up(steps, tree, call.effect, call.config.rules.check_seconds)
    failed = next((result for result in results if result.exit_code != 0), None)
    return len(results), failed


def failure_text(call: Call, r: CommandResult, tail: int = TAIL) -> str:
    """A command that failed, with the last `tail` lines of each stream; a secret is hidden before anything is cut off."""
    hide = call.payloads.hide
    shown = replace(r, output=hide(r.output), errors=hide(r.errors), reason=hide(r.reason))
    return "\n".join(failed_check_lines(shown, tail))


async def set_up_tree(call: Call, tree: Checkout) -> tuple[int, CommandResult | None]:
    """Runs the project's setup in a tree: how many steps were run, and the one that failed."""
    return await _set_up(call, tree)
