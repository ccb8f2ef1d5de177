"""Checks working trees out and runs the project's setup in them."""

import asyncio

from msgspec.structs import replace

from steersman.contracts.commands import CommandResult
from steersman.contracts.config import list_setup_commands
from steersman.contracts.facts import SetupFacts
from steersman.contracts.workspace import Checkout
from steersman.engine.effect_call import EffectCall
from steersman.errors import WorkspaceError
from steersman.views.failed_check import TAIL_LINES, failed_check_lines

SHOWN_FAILURE_LINES = 40  # of each stream of a failing check, for the next round's prompt


async def prepare_tree(call: EffectCall) -> SetupFacts:
    """Checks the recorded commit out and runs the project's setup commands in it."""
    try:
        tree = await checkout_tree(call)
    except WorkspaceError as error:
        return SetupFacts(detail_ref=call.payloads.add_text(str(error)))
    steps, result = await set_up_tree(call, tree)
    if result is not None:
        return SetupFacts(steps=steps, detail_ref=call.payloads.add_text(command_failure_text(call, result)))
    return SetupFacts(ready=True, tree=tree.tree, commit=tree.commit, steps=steps)


async def checkout_tree(call: EffectCall, *, untouched: bool = False, commit: str = "") -> Checkout:
    """Checks out the recorded commit, or `commit`; no other effect has used an `untouched` tree."""
    tree_commit = commit or call.given("commit")
    workspace, checkout_arguments = call.world.workspace(call.config), (call.run, tree_commit, call.effect)
    tree: Checkout = await asyncio.to_thread(workspace.checkout, *checkout_arguments, untouched=untouched)
    return tree


async def checkout_ready_tree(
    call: EffectCall, ready_paths: frozenset[str] = frozenset(), *, untouched: bool = False, commit: str = ""
) -> Checkout:
    """Checks a tree out and runs setup where the tree is fresh; `ready_paths` this effect has set up already."""
    tree = await checkout_tree(call, untouched=untouched, commit=commit)
    if tree.fresh and tree.path not in ready_paths:
        _, failed_result = await set_up_tree(call, tree)
        if failed_result is not None:
            raise WorkspaceError(
                f"setup failed in a fresh working tree: {command_failure_text(call, failed_result)}"
            )
    return tree


async def set_up_tree(call: EffectCall, tree: Checkout) -> tuple[int, CommandResult | None]:
    """Runs the project's setup in a tree; returns how many steps ran, and the one that failed."""
    commands, steps = call.world.commands(call.config), list_setup_commands(call.config)
    results = await commands.set_up(steps, tree, call.effect, call.config.rules.check_seconds)
    failed_result = next((result for result in results if result.exit_code != 0), None)
    return len(results), failed_result


def command_failure_text(call: EffectCall, result: CommandResult, tail: int = TAIL_LINES) -> str:
    """Renders a failed command with the last `tail` lines of each stream; redacts before it clips."""
    hide = call.payloads.hide
    redacted_result = replace(
        result, output=hide(result.output), errors=hide(result.errors), reason=hide(result.reason)
    )
    return "\n".join(failed_check_lines(redacted_result, tail))
