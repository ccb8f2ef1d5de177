"""Rebases a change when its target branch has moved, for a run without documents.

**Invariant:** the target branch itself does not change.
"""

from collections.abc import Callable

from steersman.contracts.facts import BaseFacts
from steersman.contracts.workspace import RebasedChange
from steersman.engine.effects import EffectCall, perform_beside_loop
from steersman.errors import SteersmanError
from steersman.judges.text import printable_line
from steersman.ports.workspace import Workspace


@perform_beside_loop
def follow_base(call: EffectCall) -> BaseFacts:
    """Reports whether the target branch has moved, with the change rebased on it."""
    target, rebased = call.given("target"), rebase_on_target(call, lambda _: str(call.given("base")))
    if isinstance(rebased, BaseFacts):
        return rebased
    if rebased.change is None:
        message = f"{target} has moved to {rebased.base[:12]}, and the change conflicts with it in {', '.join(map(printable_line, rebased.conflicts))}: it cannot be merged there as it is"
        return BaseFacts(
            moved=True, conflicts=len(rebased.conflicts), told_ref=call.payloads.add_text(message)
        )
    if not rebased.change.files:
        message = f"{target} has every change of this run already: nothing is left to merge"
        return BaseFacts(moved=True, absorbed=True, told_ref=call.payloads.add_text(message))
    message = f"{target} has moved to {rebased.base[:12]}: the change was put on top of it, is another tree now, and is checked again. Whatever was approved before is void."
    return BaseFacts(
        moved=True,
        base=rebased.base,
        base_tree=rebased.base_tree,
        commit=rebased.change.commit,
        tree=rebased.change.tree,
        patch_ref=call.payloads.add_text(rebased.change.patch),
        told_ref=call.payloads.add_text(message),
    )


def rebase_on_target(call: EffectCall, find_base: Callable[[Workspace], str]) -> RebasedChange | BaseFacts:
    """Returns the change on top of its target branch, or facts where that stayed, was rewritten or cannot be read."""
    workspace, label = call.world.workspace(call.config), f"rebased-{call.effect.split(':')[1]}"
    try:
        base, target = find_base(workspace), call.given("target")
        rebased = workspace.rebase_change(call.run, call.given("commit"), base, target, label)
    except SteersmanError as error:
        return BaseFacts(error="workspace", told_ref=call.payloads.add_text(str(error)))
    if not rebased.moved:
        return BaseFacts()
    return _rewritten_branch_facts(call, rebased) or rebased


def _rewritten_branch_facts(call: EffectCall, rebased: RebasedChange) -> BaseFacts | None:
    """Returns facts where the branch lost commits that the change was made on, unless a person has seen this tip."""
    if not rebased.dropped or call.given("seen_tip") == rebased.base:
        return None
    explanation = (
        f"{call.given('target')} was rewritten: it no longer has the commits below.",
        "This change was made on them; the run's own branch would bring them back.",
        "The change alone can be put on the branch as it is now.",
    )
    message = "\n".join((*explanation, *map(printable_line, rebased.dropped)))
    return BaseFacts(
        moved=True,
        rewritten=len(rebased.dropped),
        base=rebased.base,
        told_ref=call.payloads.add_text(message),
    )
