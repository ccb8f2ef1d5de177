"""Delivers an approved tree, and reverts a delivery.

**Invariant:** a delivery is exactly the recorded tree; its trailers name the run and who approved it.
"""

import asyncio
import contextlib

from steersman.contracts.facts import DeliveryFacts
from steersman.contracts.workspace import Delivery
from steersman.engine.effects import EffectCall
from steersman.engine.effects.change_context import files_outside_bounds, find_plan_bounds
from steersman.engine.projections import read_run_view, render_view_report
from steersman.errors import BranchMovedError, SteersmanError, WorkspaceError
from steersman.judges.text import printable_text
from steersman.kernel.tape import read_entry
from steersman.ports.anchors import Anchor
from steersman.ports.workspace import Workspace
from steersman.views.pull_request import pull_request_body

DRAFT_PR_FORM = "draft-pr"


async def deliver_change(call: EffectCall) -> DeliveryFacts:
    """Delivers the approved tree as a branch, a merge or a draft pull request."""
    commit, base, form = call.given("commit"), call.given("base"), call.given("form")
    if call.given("delivered"):
        return await asyncio.to_thread(_earlier_delivery_facts, call)
    try:
        pull_request_text = _pull_request_text(call) if form == DRAFT_PR_FORM else ""
        target = call.given("target") or None
        workspace = call.world.workspace(call.config)
        outside_reasons = await asyncio.to_thread(_files_outside_delivery_bounds, call, workspace)
        if outside_reasons:
            return DeliveryFacts(detail_ref=call.payloads.add_text("\n".join(outside_reasons)))
        delivery = await asyncio.to_thread(
            workspace.deliver,
            call.run,
            commit,
            base,
            form,
            target,
            delivery_message(call),
            pull_request_text,
            at=effect_planned_at(call),
        )
    except WorkspaceError as error:
        branch_moved = isinstance(error, BranchMovedError)
        return DeliveryFacts(moved=branch_moved, detail_ref=call.payloads.add_text(str(error)))
    return _build_delivery_facts(call, delivery)


def effect_planned_at(call: EffectCall) -> int:
    """Returns when this effect was planned; its commit has this time in every attempt."""
    seq = int(call.effect.split(":")[1])
    _, entry, _ = next(iter(call.world.journal.rows(call.run, seq - 1)))
    return read_entry(entry).at


def _earlier_delivery_facts(call: EffectCall) -> DeliveryFacts:
    """Returns the facts of an earlier delivery that a branch still has."""
    lost_reason = find_lost_delivery(call)
    if lost_reason:
        return DeliveryFacts(detail_ref=call.payloads.add_text(lost_reason))
    fields = {"form": call.given("form"), "ref": call.given("ref"), "url_ref": call.given("url")}
    return DeliveryFacts(done=True, commit=call.given("delivered"), tree=call.given("tree"), **fields)


def find_lost_delivery(call: EffectCall) -> str:
    """Returns why a delivered change is on no branch any more; nothing where a branch still has it."""
    workspace, deliveries = call.world.workspace(call.config), call.given("deliveries")
    for branch in filter(None, (call.given("target"), f"steersman/{call.run}")):
        with contextlib.suppress(SteersmanError):  # the branch does not exist
            if workspace.contains_deliveries(workspace.base(f"refs/heads/{branch}").commit, deliveries):
                return ""
    target_name = call.given("target") or "no branch"
    return f"the delivery {deliveries[0][:12]} of run {call.run} is no longer in {target_name} or steersman/{call.run}"


def _files_outside_delivery_bounds(call: EffectCall, workspace: Workspace) -> list[str]:
    """Returns why files of the change may not be delivered: a frozen plan does not cover them."""
    bounds = find_plan_bounds(call)
    if bounds is None:
        return []
    change = workspace.change(call.given("commit"), call.given("base"))
    return [*dict.fromkeys(files_outside_bounds(bounds, [t.path for t in change.touched]).values())]


async def revert_delivery(call: EffectCall) -> DeliveryFacts:
    """Reverts a delivery on its branch with a commit of its own; the facts say why where that is impossible."""
    commit, target = call.given("commit"), call.given("target")
    if not target:
        problem = f"run {call.run} began on no branch. Name the branch that has its change: `steersman revert {call.run} --on BRANCH`"
        return DeliveryFacts(detail_ref=call.payloads.add_text(problem))
    try:
        workspace = call.world.workspace(call.config)
        delivery = await asyncio.to_thread(
            workspace.revert, call.run, commit, target, revert_message(call), at=effect_planned_at(call)
        )
    except WorkspaceError as error:
        return DeliveryFacts(detail_ref=call.payloads.add_text(str(error)))
    return _build_delivery_facts(call, delivery)


def _build_delivery_facts(call: EffectCall, delivery: Delivery) -> DeliveryFacts:
    return DeliveryFacts(
        done=True,
        form=delivery.form,
        ref=delivery.ref,
        commit=delivery.commit,
        tree=delivery.tree,
        url_ref=call.payloads.add_text(delivery.url),
    )


def delivery_message(call: EffectCall) -> str:
    """Returns the commit message: the task's first line, then trailers."""
    trailers = [*_origin_trailers(call), f"Steersman-Tree: {call.given('tree')}"]
    if call.given("contract"):
        trailers.append(f"Steersman-Contract: {call.given('contract')}")
    if call.given("confirmed_by"):
        trailers.append(f"Approved-by: {call.given('confirmed_by')}")
    if call.given("accepted_by"):
        trailers.append(f"Evidence-accepted-by: {call.given('accepted_by')}")
    return f"{_task_title_line(call)}\n\n" + "\n".join(trailers) + "\n"


def revert_message(call: EffectCall) -> str:
    """Returns the message of the commit that reverts a delivery."""
    person = " ".join(printable_text(call.given("person") or "a person").split())
    delivered_commits = " and ".join((call.given("commit"), *call.given("also", ())))
    explanation = f"This reverts what run {call.run} delivered as {delivered_commits}."
    trailers = "\n".join((*_origin_trailers(call), f"Reverted-by: {person}"))
    return f'Revert "{_task_title_line(call)}"\n\n{explanation}\n\n{trailers}\n'


def _origin_trailers(call: EffectCall) -> tuple[str, str]:
    """Returns the trailers that name the run and the entry that asked for this commit; `audit verify` compares them."""
    return f"Steersman-Run: {call.run}", f"Steersman-Entry: {call.effect.split(':')[1]}"


def _task_title_line(call: EffectCall) -> str:
    lines = call.payloads.get(call.given("task")).strip().splitlines() or ["change"]
    return printable_text(lines[0])[:72]


def _pull_request_text(call: EffectCall) -> str:
    """Returns the text of a pull request: the run's report and the newest anchor of its tape."""
    view = read_run_view(call.world, call.run)
    return pull_request_body(view.status, render_view_report(call.world, view), _newest_file_anchor(call))


def _newest_file_anchor(call: EffectCall) -> Anchor | None:
    places = call.world.anchors.get("file")
    if places is None:
        return None
    try:
        return max(places.list_anchors(call.run).genuine, key=lambda a: a.seq, default=None)
    except SteersmanError:
        return None
