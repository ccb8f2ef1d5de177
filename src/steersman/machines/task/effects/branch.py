"""Looks at the branch that a task's change goes to, moves the change onto it, and reverts a delivered one.

**Invariant:** looking at a branch leaves it as it is.
"""

from typing import Literal

from steersman.contracts.facts import BaseFacts
from steersman.contracts.workspace import RunBase
from steersman.engine.effects import EffectCall, perform_beside_loop
from steersman.engine.effects.branch import rebase_on_target
from steersman.engine.effects.change_context import find_plan_bounds
from steersman.engine.effects.delivery import effect_planned_at, find_lost_delivery, revert_message
from steersman.errors import AlreadyRevertedError, ChangeConflictError, ChangeNotOnBranchError, WorkspaceError
from steersman.judges.text import printable_line
from steersman.machines.task.effects.document_writer import (
    DocumentWriter,
    find_files_outside_scope,
    write_change_documents,
)
from steersman.machines.task.facts import RevertFacts
from steersman.ports.workspace import Workspace


@perform_beside_loop
def check_base(call: EffectCall) -> BaseFacts:
    """Whether the branch has moved, and the change on top of where it is now."""
    if call.given("delivered"):
        lost_reason = find_lost_delivery(call)
        return _lost_delivery_facts(call, lost_reason) if lost_reason else BaseFacts()
    if call.given("form") != "merge" and not call.given("follows"):
        return BaseFacts()
    rebased = rebase_on_target(call, lambda workspace: _change_base_commit(call, workspace))
    if isinstance(rebased, BaseFacts):
        return rebased
    if rebased.change is None:
        message = "\n".join(printable_line(name) for name in rebased.conflicts)
        return BaseFacts(
            moved=True,
            conflicts=len(rebased.conflicts),
            base=rebased.base,
            base_tree=rebased.base_tree,
            told_ref=call.payloads.add_text(message),
        )
    if not rebased.change.files:
        message = f"{call.given('target')} has every change of this task already: nothing is left to hand over. Have it changed further, or end it with `steersman abort {call.run}`"
        return BaseFacts(moved=True, absorbed=True, told_ref=call.payloads.add_text(message))
    writer = DocumentWriter(call)
    outside_scope, bounds = find_files_outside_scope(writer, rebased.change, find_plan_bounds(call))
    if outside_scope:  # a file that others have moved is changed where it is now
        message = "\n".join(
            printable_line(bounds.get(path) or f"outside the plan: {path}") for path in sorted(outside_scope)
        )
        return BaseFacts(
            moved=True,
            conflicts=len(outside_scope),
            base=rebased.base,
            base_tree=rebased.base_tree,
            told_ref=call.payloads.add_text(message),
        )
    write_change_documents(writer, rebased.change, rebased.base_tree)
    return BaseFacts(
        moved=True,
        base=rebased.base,
        base_tree=rebased.base_tree,
        commit=rebased.change.commit,
        tree=rebased.change.tree,
        patch_ref=call.payloads.add_text(rebased.change.patch),
        written=writer.written,
        refs=writer.refs,
        told_ref=call.payloads.add_text("\n".join(writer.told)),
    )


def _change_base_commit(call: EffectCall, workspace: Workspace) -> str:
    """The commit that the change is based on: the last delivery, if the branch has it, else the commit that the task began on."""
    deliveries = call.given("deliveries")
    tip = workspace.base(f"refs/heads/{call.given('target')}").commit
    base_commit: str = (
        deliveries[0] if deliveries and workspace.contains_deliveries(tip, deliveries) else call.given("base")
    )
    return base_commit


def _lost_delivery_facts(call: EffectCall, reason: str) -> BaseFacts:
    """What was delivered is gone: the whole change is to be delivered again, not what the last delivery brought."""
    original_base = _base_of_deliveries(call, call.given("deliveries"))
    return BaseFacts(
        lost=True,
        base=original_base.commit,
        base_tree=original_base.tree,
        told_ref=call.payloads.add_text(reason),
    )


def _base_of_deliveries(call: EffectCall, deliveries: list[str]) -> RunBase:
    label = f"whole-{call.effect.split(':')[1]}"
    try:
        return call.world.workspace(call.config).compose_delivery_base(call.run, deliveries, label)
    except WorkspaceError:  # then what it stands on stays what it was
        return RunBase("", "")


@perform_beside_loop
def take_change_back(call: EffectCall) -> RevertFacts:
    """What was delivered, undone on the branch it went to; or what is in the way, and of which kind."""
    if not call.given("target"):
        return _refused_revert_facts(
            call, "blocked", f"run {call.run} began on no branch: take its change back by hand"
        )
    arguments = (call.run, call.given("commit"), call.given("target"), revert_message(call))
    workspace, earlier_deliveries = call.world.workspace(call.config), call.given("also")
    original_base = _base_of_deliveries(call, [call.given("commit"), *earlier_deliveries])
    base_fields = {"base": original_base.commit, "base_tree": original_base.tree}
    try:
        return RevertFacts(
            status="reverted",
            commit=workspace.revert(*arguments, also=earlier_deliveries, at=effect_planned_at(call)).commit,
            **base_fields,
        )
    except AlreadyRevertedError as error:
        detail_ref = call.payloads.add_text(str(error))
        return RevertFacts(status="reverted", commit=error.commit, detail_ref=detail_ref, **base_fields)
    except ChangeConflictError as error:
        return _refused_revert_facts(call, "conflicted", str(error))
    except ChangeNotOnBranchError as error:
        return _refused_revert_facts(call, "not_merged", str(error))
    except WorkspaceError as error:
        return _refused_revert_facts(call, "blocked", str(error))


def _refused_revert_facts(
    call: EffectCall, status: Literal["conflicted", "not_merged", "blocked"], reason: str
) -> RevertFacts:
    return RevertFacts(status=status, detail_ref=call.payloads.add_text(reason))
