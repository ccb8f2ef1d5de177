"""Hands an approved tree over, and takes it back.

**Invariant:** what is handed over is the recorded tree, with trailers that say which run, on whose word.
"""

import asyncio
import contextlib

from steersman.contracts.facts import DeliveryFacts
from steersman.contracts.workspace import Delivery
from steersman.errors import BranchMovedError, SteersmanError, WorkspaceError
from steersman.judges.text import printable
from steersman.kernel.tape import read
from steersman.ports.anchors import Anchor
from steersman.ports.workspace import Workspace
from steersman.runtime.call import Call
from steersman.runtime.performers.bounds import bounds_of, files_beyond
from steersman.runtime.projections import markdown, picture
from steersman.views.pull_request import body

DRAFT = "draft-pr"


async def deliver(call: Call) -> DeliveryFacts:
    """The approved tree, as a branch, a merge or a draft pull request; exactly what was checked, or nothing."""
    given = [call.given(name) for name in ("commit", "base", "form")]
    if call.given("delivered"):
        return await asyncio.to_thread(_handed_before, call)
    try:
        words = _letter(call) if call.given("form") == DRAFT else ""
        target = call.given("target") or None
        workspace = call.world.workspace(call.config)
        left = await asyncio.to_thread(_left, call, workspace)
        if left:
            return DeliveryFacts(detail_ref=call.payloads.put("\n".join(left)))
        done = await asyncio.to_thread(
            workspace.deliver, call.run, *given, target, message(call), words, at=planned_at(call)
        )
    except WorkspaceError as error:
        moved = isinstance(error, BranchMovedError)
        return DeliveryFacts(moved=moved, detail_ref=call.payloads.put(str(error)))
    return _facts(call, done)


def planned_at(call: Call) -> int:
    """When this effect was put on tape: the time that its commit carries, however often it is tried."""
    seq = int(call.effect.split(":")[1])
    _, entry, _ = next(iter(call.world.journal.rows(call.run, seq - 1)))
    return read(entry).at


def _handed_before(call: Call) -> DeliveryFacts:
    """A change that was handed over stays where it is, as long as it is there."""
    lost = missing(call)
    if lost:
        return DeliveryFacts(detail_ref=call.payloads.put(lost))
    named = {"form": call.given("form"), "ref": call.given("ref"), "url_ref": call.given("url")}
    return DeliveryFacts(done=True, commit=call.given("delivered"), tree=call.given("tree"), **named)


def missing(call: Call) -> str:
    """Why a change that was handed over is not there any more; nothing where a branch still has it."""
    workspace, made = call.world.workspace(call.config), call.given("deliveries")
    for branch in filter(None, (call.given("target"), f"steersman/{call.run}")):
        with contextlib.suppress(SteersmanError):  # a branch that is gone has nothing
            if workspace.holds(workspace.base(f"refs/heads/{branch}").commit, made):
                return ""
    where = call.given("target") or "no branch"
    return f"what run {call.run} handed over as {made[0][:12]} is neither in {where} nor in steersman/{call.run} any more"


def _left(call: Call, workspace: Workspace) -> list[str]:
    """What a frozen plan does not cover is never handed over, whatever led here."""
    of = bounds_of(call)
    if of is None:
        return []
    change = workspace.change(call.given("commit"), call.given("base"))
    return [*dict.fromkeys(files_beyond(of, [t.path for t in change.touched]).values())]


async def revert(call: Call) -> DeliveryFacts:
    """What was delivered, undone on a branch by a commit of its own; what is in the way is told."""
    commit, target = call.given("commit"), call.given("target")
    if not target:
        said = f"run {call.run} began on no branch: say where its change is, `steersman revert {call.run} --on BRANCH`"
        return DeliveryFacts(detail_ref=call.payloads.put(said))
    try:
        workspace = call.world.workspace(call.config)
        done = await asyncio.to_thread(
            workspace.revert, call.run, commit, target, undoing(call), at=planned_at(call)
        )
    except WorkspaceError as error:
        return DeliveryFacts(detail_ref=call.payloads.put(str(error)))
    return _facts(call, done)


def _facts(call: Call, done: Delivery) -> DeliveryFacts:
    return DeliveryFacts(
        done=True,
        form=done.form,
        ref=done.ref,
        commit=done.commit,
        tree=done.tree,
        url_ref=call.payloads.put(done.url),
    )


def message(call: Call) -> str:
    """The commit message: the task's first line, then trailers."""
    trailers = [*_origin(call), f"Steersman-Tree: {call.given('tree')}"]
    if call.given("contract"):
        trailers.append(f"Steersman-Contract: {call.given('contract')}")
    if call.given("confirmed_by"):
        trailers.append(f"Approved-by: {call.given('confirmed_by')}")
    if call.given("accepted_by"):
        trailers.append(f"Evidence-accepted-by: {call.given('accepted_by')}")
    return f"{_title(call)}\n\n" + "\n".join(trailers) + "\n"


def undoing(call: Call) -> str:
    """The message of the commit that takes a change back."""
    who = " ".join(printable(call.given("person") or "somebody").split())
    made = " and ".join((call.given("commit"), *call.given("also", ())))
    said = f"This takes back what run {call.run} delivered as {made}."
    trailers = "\n".join((*_origin(call), f"Reverted-by: {who}"))
    return f'Revert "{_title(call)}"\n\n{said}\n\n{trailers}\n'


def _origin(call: Call) -> tuple[str, str]:
    """The run, and the entry of its tape that asked for this commit: `audit verify` holds it against the tape."""
    return f"Steersman-Run: {call.run}", f"Steersman-Entry: {call.effect.split(':')[1]}"


def _title(call: Call) -> str:
    lines = call.payloads.get(call.given("task")).strip().splitlines() or ["change"]
    return printable(lines[0])[:72]


def _letter(call: Call) -> str:
    """What a pull request says: the run's report with its evidence, and the newest anchor of its tape."""
    seen = picture(call.world, call.run)
    return body(seen.status, markdown(seen), _anchor(call))


def _anchor(call: Call) -> Anchor | None:
    places = call.world.anchors.get("file")
    if places is None:
        return None
    try:
        return max(places.kept(call.run).genuine, key=lambda a: a.seq, default=None)
    except SteersmanError:
        return None
