"""Hands an approved tree over, and takes it back.

**Invariant:** what is handed over is the recorded tree, with trailers that say which run, on whose word.
"""

import asyncio
import contextlib

from steersman.contracts.facts import DeliveryFacts
from steersman.contracts.workspace import Delivery
from steersman.engine.effect_call import EffectCall
from steersman.engine.effects.plan_bounds import files_outside_bounds, find_plan_bounds
from steersman.engine.projections import read_run_view, render_view_report
from steersman.errors import BranchMovedError, SteersmanError, WorkspaceError
from steersman.judges.text import printable_text
from steersman.kernel.tape import read_entry
from steersman.ports.anchors import Anchor
from steersman.ports.workspace import Workspace
from steersman.views.pull_request import pull_request_body

DRAFT_PR_FORM = "draft-pr"


async def deliver_change(call: EffectCall) -> DeliveryFacts:
    """The approved tree, as a branch, a merge or a draft pull request; exactly what was checked, or nothing."""
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
    """When this effect was put on tape: the time that its commit carries, however often it is tried."""
    seq = int(call.effect.split(":")[1])
    _, entry, _ = next(iter(call.world.journal.rows(call.run, seq - 1)))
    return read_entry(entry).at


def _earlier_delivery_facts(call: EffectCall) -> DeliveryFacts:
    """A change that was handed over stays where it is, as long as it is there."""
    lost_reason = find_lost_delivery(call)
    if lost_reason:
        return DeliveryFacts(detail_ref=call.payloads.add_text(lost_reason))
    delivery_fields = {"form": call.given("form"), "ref": call.given("ref"), "url_ref": call.given("url")}
    return DeliveryFacts(
        done=True, commit=call.given("delivered"), tree=call.given("tree"), **delivery_fields
    )


def find_lost_delivery(call: EffectCall) -> str:
    """Why a change that was handed over is not there any more; nothing where a branch still has it."""
    workspace, deliveries = call.world.workspace(call.config), call.given("deliveries")
    for branch in filter(None, (call.given("target"), f"steersman/{call.run}")):
        with contextlib.suppress(SteersmanError):  # a branch that is gone has nothing
            if workspace.contains_deliveries(workspace.base(f"refs/heads/{branch}").commit, deliveries):
                return ""
    target_name = call.given("target") or "no branch"
    return f"what run {call.run} handed over as {deliveries[0][:12]} is neither in {target_name} nor in steersman/{call.run} any more"


def _files_outside_delivery_bounds(call: EffectCall, workspace: Workspace) -> list[str]:
    """What a frozen plan does not cover is never handed over, whatever led here."""
    bounds = find_plan_bounds(call)
    if bounds is None:
        return []
    change = workspace.change(call.given("commit"), call.given("base"))
    return [*dict.fromkeys(files_outside_bounds(bounds, [t.path for t in change.touched]).values())]


async def revert_delivery(call: EffectCall) -> DeliveryFacts:
    """What was delivered, undone on a branch by a commit of its own; what is in the way is told."""
    commit, target = call.given("commit"), call.given("target")
    if not target:
        problem = f"run {call.run} began on no branch: say where its change is, `steersman revert {call.run} --on BRANCH`"
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
    """The commit message: the task's first line, then trailers."""
    trailers = [*_origin_trailers(call), f"Steersman-Tree: {call.given('tree')}"]
    if call.given("contract"):
        trailers.append(f"Steersman-Contract: {call.given('contract')}")
    if call.given("confirmed_by"):
        trailers.append(f"Approved-by: {call.given('confirmed_by')}")
    if call.given("accepted_by"):
        trailers.append(f"Evidence-accepted-by: {call.given('accepted_by')}")
    return f"{_task_title_line(call)}\n\n" + "\n".join(trailers) + "\n"


def revert_message(call: EffectCall) -> str:
    """The message of the commit that takes a change back."""
    person = " ".join(printable_text(call.given("person") or "somebody").split())
    delivered_commits = " and ".join((call.given("commit"), *call.given("also", ())))
    explanation = f"This takes back what run {call.run} delivered as {delivered_commits}."
    trailers = "\n".join((*_origin_trailers(call), f"Reverted-by: {person}"))
    return f'Revert "{_task_title_line(call)}"\n\n{explanation}\n\n{trailers}\n'


def _origin_trailers(call: EffectCall) -> tuple[str, str]:
    """The run, and the entry of its tape that asked for this commit: `audit verify` holds it against the tape."""
    return f"Steersman-Run: {call.run}", f"Steersman-Entry: {call.effect.split(':')[1]}"


def _task_title_line(call: EffectCall) -> str:
    lines = call.payloads.get(call.given("task")).strip().splitlines() or ["change"]
    return printable_text(lines[0])[:72]


def _pull_request_text(call: EffectCall) -> str:
    """What a pull request says: the run's report with its evidence, and the newest anchor of its tape."""
    run_view = read_run_view(call.world, call.run)
    return pull_request_body(
        run_view.status, render_view_report(call.world, run_view), _newest_file_anchor(call)
    )


def _newest_file_anchor(call: EffectCall) -> Anchor | None:
    places = call.world.anchors.get("file")
    if places is None:
        return None
    try:
        return max(places.list_anchors(call.run).genuine, key=lambda a: a.seq, default=None)
    except SteersmanError:
        return None
