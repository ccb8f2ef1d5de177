"""The tasks that come before another one: whether the branch that it would begin on has the change of each.

**Invariant:** only tapes and commits are looked at; nothing of another run is written, and what cannot be seen is missing.
"""

import asyncio

from steersman.contracts.task.facts import OthersFacts
from steersman.contracts.workspace import Base
from steersman.errors import SteersmanError
from steersman.judges.text import one_line
from steersman.kernel.replay import Bad
from steersman.kernel.snapshot import fields
from steersman.ports.workspace import Workspace
from steersman.runtime.call import Call
from steersman.runtime.live import read_snapshot


async def look_at_others(call: Call) -> OthersFacts:
    """Where each of them is, and the commit that this one would begin on."""
    return await asyncio.to_thread(_looked, call)


def _looked(call: Call) -> OthersFacts:
    workspace = call.world.workspace(call.config)
    try:
        base = workspace.base(call.given("target") or call.given("base"))
        told = [one_line(line) for run in call.given("after") if (line := _lacks(call, workspace, run, base))]
    except SteersmanError as error:
        return OthersFacts(error="workspace", told_ref=call.payloads.put(str(error)))
    return OthersFacts(
        missing=len(told),
        base=base.commit,
        base_tree=base.tree,
        told_ref=call.payloads.put("\n".join(told)) if told else "",
    )


def _lacks(call: Call, workspace: Workspace, run: str, base: Base) -> str:
    """What is missing of one of them, and what to do; nothing where all of it is there."""
    found = read_snapshot(call.world.journal, run)
    if isinstance(found, Bad):
        return f"{run} cannot be read ({found.why}): see `steersman audit verify {run}`"
    c = fields(found.context)
    if c["outcome"] != "accepted":
        ended = "it has ended for good" if found.ended else f"see `steersman tasks show {run}`"
        return f"{run} is not accepted but in {found.state}, {c['outcome'] or found.ended or 'under way'}: {ended}"
    if not workspace.holds(base.commit, [*reversed(c["deliveries"])]):
        where = base.branch or base.commit[:12]
        ref = c["delivered_ref"].removeprefix("refs/heads/")
        return (
            f"{run} is accepted and delivered as {ref}, but {where} does not have its change: merge it there"
        )
    return ""
