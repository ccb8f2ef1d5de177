"""Where the branch is that a change goes to, and how a change comes out of it again.

**Invariant:** a branch that is looked at stays as it is; a change that follows it is laid down like any other.
"""

import asyncio
from typing import Literal

from steersman.contracts.task.facts import BaseFacts, RevertFacts
from steersman.contracts.workspace import Base, Rebased
from steersman.errors import ConflictError, NotThereError, SteersmanError, UndoneError, WorkspaceError
from steersman.judges.text import one_line
from steersman.ports.workspace import Workspace
from steersman.runtime.call import Call
from steersman.runtime.performers.bounds import bounds_of
from steersman.runtime.performers.delivery import missing, planned_at, undoing
from steersman.runtime.performers.desk import Desk, lay_change, strays


async def look_at_base(call: Call) -> BaseFacts:
    """Whether the branch has moved, and the change on top of where it is now."""
    return await asyncio.to_thread(_base, call)


def _base(call: Call) -> BaseFacts:
    if call.given("delivered"):
        lost = missing(call)
        return _lost(call, lost) if lost else BaseFacts()
    if call.given("form") != "merge" and not call.given("follows"):
        return BaseFacts()
    workspace = call.world.workspace(call.config)
    label = f"rebased-{call.effect.split(':')[1]}"
    try:
        found = workspace.rebased(
            call.run, call.given("commit"), _began(call, workspace), call.given("target"), label
        )
    except SteersmanError as error:
        return BaseFacts(error="workspace", told_ref=call.payloads.put(str(error)))
    if not found.moved:
        return BaseFacts()
    if rewritten := _rewritten(call, found):
        return rewritten
    if found.change is None:
        told = "\n".join(one_line(name) for name in found.conflicts)
        return BaseFacts(
            moved=True,
            conflicts=len(found.conflicts),
            base=found.base,
            base_tree=found.base_tree,
            told_ref=call.payloads.put(told),
        )
    if not found.change.files:
        told = f"{call.given('target')} has every change of this task already: nothing is left to hand over. Have it changed further, or end it with `steersman abort {call.run}`"
        return BaseFacts(moved=True, absorbed=True, told_ref=call.payloads.put(told))
    desk = Desk(call)
    left, beyond = strays(desk, found.change, bounds_of(call))
    if left:  # a file that others have moved is changed where it is now
        told = "\n".join(one_line(beyond.get(path) or f"outside the plan: {path}") for path in sorted(left))
        return BaseFacts(
            moved=True,
            conflicts=len(left),
            base=found.base,
            base_tree=found.base_tree,
            told_ref=call.payloads.put(told),
        )
    lay_change(desk, found.change, found.base_tree)
    return BaseFacts(
        moved=True,
        base=found.base,
        base_tree=found.base_tree,
        commit=found.change.commit,
        tree=found.change.tree,
        patch_ref=call.payloads.put(found.change.patch),
        written=desk.written,
        refs=desk.refs,
        told_ref=call.payloads.put("\n".join(desk.told)),
    )


async def follow_base(call: Call) -> BaseFacts:
    """Whether the branch has moved, and the change on top of where it is now; without any document."""
    return await asyncio.to_thread(_follow, call)


def _follow(call: Call) -> BaseFacts:
    workspace, target = call.world.workspace(call.config), call.given("target")
    label = f"rebased-{call.effect.split(':')[1]}"
    try:
        found = workspace.rebased(call.run, call.given("commit"), call.given("base"), target, label)
    except SteersmanError as error:
        return BaseFacts(error="workspace", told_ref=call.payloads.put(str(error)))
    if not found.moved:
        return BaseFacts()
    if rewritten := _rewritten(call, found):
        return rewritten
    if found.change is None:
        told = f"{target} has moved to {found.base[:12]}, and the change conflicts with it in {', '.join(map(one_line, found.conflicts))}: it cannot be merged there as it is"
        return BaseFacts(moved=True, conflicts=len(found.conflicts), told_ref=call.payloads.put(told))
    if not found.change.files:
        told = f"{target} has every change of this run already: nothing is left to merge"
        return BaseFacts(moved=True, absorbed=True, told_ref=call.payloads.put(told))
    told = f"{target} has moved to {found.base[:12]}: the change was put on top of it, is another tree now, and is checked again. Whatever was approved before is void."
    return BaseFacts(
        moved=True,
        base=found.base,
        base_tree=found.base_tree,
        commit=found.change.commit,
        tree=found.change.tree,
        patch_ref=call.payloads.put(found.change.patch),
        told_ref=call.payloads.put(told),
    )


def _rewritten(call: Call, found: Rebased) -> BaseFacts | None:
    """The branch lost commits that the change was made on, and nobody has seen that about this very tip."""
    if not found.dropped or call.given("seen_tip") == found.base:
        return None
    said = (
        f"{call.given('target')} was rewritten: it no longer has the commits below.",
        "This change was made on them; the run's own branch would bring them back.",
        "The change alone can be put on the branch as it is now.",
    )
    told = "\n".join((*said, *map(one_line, found.dropped)))
    return BaseFacts(
        moved=True, rewritten=len(found.dropped), base=found.base, told_ref=call.payloads.put(told)
    )


def _began(call: Call, workspace: Workspace) -> str:
    """What the change is a change of: the last delivery, where the branch has it; else what the task began on."""
    made = call.given("deliveries")
    tip = workspace.base(f"refs/heads/{call.given('target')}").commit
    began: str = made[0] if made and workspace.holds(tip, made) else call.given("base")
    return began


def _lost(call: Call, why: str) -> BaseFacts:
    """What was handed over is gone: the whole change is to be handed over again, not what the last delivery brought."""
    whole = _whole(call, call.given("deliveries"))
    return BaseFacts(lost=True, base=whole.commit, base_tree=whole.tree, told_ref=call.payloads.put(why))


def _whole(call: Call, made: list[str]) -> Base:
    label = f"whole-{call.effect.split(':')[1]}"
    try:
        return call.world.workspace(call.config).whole(call.run, made, label)
    except WorkspaceError:  # then what it stands on stays what it was
        return Base("", "")


async def take_back(call: Call) -> RevertFacts:
    """What was delivered, undone on the branch it went to; or what is in the way, and of which kind."""
    return await asyncio.to_thread(_taken_back, call)


def _taken_back(call: Call) -> RevertFacts:
    if not call.given("target"):
        return _refused(call, "blocked", f"run {call.run} began on no branch: take its change back by hand")
    given = (call.run, call.given("commit"), call.given("target"), undoing(call))
    workspace, also = call.world.workspace(call.config), call.given("also")
    whole = _whole(call, [call.given("commit"), *also])
    stands = {"base": whole.commit, "base_tree": whole.tree}
    try:
        return RevertFacts(
            status="reverted",
            commit=workspace.revert(*given, also=also, at=planned_at(call)).commit,
            **stands,
        )
    except UndoneError as error:
        told = call.payloads.put(str(error))
        return RevertFacts(status="reverted", commit=error.commit, detail_ref=told, **stands)
    except ConflictError as error:
        return _refused(call, "conflicted", str(error))
    except NotThereError as error:
        return _refused(call, "not_merged", str(error))
    except WorkspaceError as error:
        return _refused(call, "blocked", str(error))


def _refused(call: Call, status: Literal["conflicted", "not_merged", "blocked"], why: str) -> RevertFacts:
    return RevertFacts(status=status, detail_ref=call.payloads.put(why))
