"""Checks whether the branch that a task would begin on has the change of every task that comes first.

**Invariant:** only tapes and commits are read, and nothing of another run is written. A change that cannot be read counts as
missing.
"""

from steersman.contracts.workspace import RunBase
from steersman.engine.active_run import read_snapshot
from steersman.engine.effects import EffectCall, perform_beside_loop
from steersman.errors import SteersmanError
from steersman.judges.text import printable_line
from steersman.kernel.replay import BadEntry
from steersman.kernel.snapshot import context_fields
from steersman.machines.task.facts import PrerequisiteFacts
from steersman.ports.workspace import Workspace


@perform_beside_loop
def check_prerequisites(call: EffectCall) -> PrerequisiteFacts:
    """Where each of them is, and the commit that this one would begin on."""
    workspace = call.world.workspace(call.config)
    try:
        base = workspace.base(call.given("target") or call.given("base"))
        missing_lines = [
            printable_line(line)
            for run in call.given("after")
            if (line := _missing_prerequisite(call, workspace, run, base))
        ]
    except SteersmanError as error:
        return PrerequisiteFacts(error="workspace", told_ref=call.payloads.add_text(str(error)))
    return PrerequisiteFacts(
        missing=len(missing_lines),
        base=base.commit,
        base_tree=base.tree,
        told_ref=call.payloads.add_text("\n".join(missing_lines)) if missing_lines else "",
    )


def _missing_prerequisite(call: EffectCall, workspace: Workspace, run: str, base: RunBase) -> str:
    """What is missing of one of them, and what to do; nothing where all of it is there."""
    snapshot = read_snapshot(call.world.journal, run)
    if isinstance(snapshot, BadEntry):
        return f"{run} cannot be read ({snapshot.why}): see `steersman audit verify {run}`"
    context = context_fields(snapshot.context)
    if context["outcome"] != "accepted":
        next_step = "it has ended for good" if snapshot.ended else f"see `steersman tasks show {run}`"
        return f"{run} is not accepted but in {snapshot.state}, {context['outcome'] or snapshot.ended or 'under way'}: {next_step}"
    if not workspace.contains_deliveries(base.commit, [*reversed(context["deliveries"])]):
        branch_name = base.branch or base.commit[:12]
        ref = context["delivered_ref"].removeprefix("refs/heads/")
        return f"{run} is accepted and delivered as {ref}, but {branch_name} does not have its change: merge it there"
    return ""
