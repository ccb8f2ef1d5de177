"""Files of a task that are not what was recorded: put back, moved aside, or, for the plan, taken over.

**Invariant:** what is put back are the recorded bytes; what is taken over was read strictly and is what a person was told;
a plain file that nobody has recorded is kept, only elsewhere.
"""

import msgspec

from steersman.contracts.task.documents import Plan, PlanFiles
from steersman.contracts.task.facts import RecordFacts
from steersman.contracts.task.words import COPIES, FILES, PLAN
from steersman.judges.artifact_names import name_problem
from steersman.judges.task.inspection import damage
from steersman.judges.text import one_line
from steersman.runtime.call import Call
from steersman.runtime.looking import digest_of, look
from steersman.runtime.performers.desk import Desk, copied, off_the_loop
from steersman.runtime.performers.inspection import unrecorded
from steersman.runtime.performers.task import lay_scope

MOVED = "moved aside: "
ASIDE = "aside"  # in the run's folder: what was found among its documents, and is none


@off_the_loop
def restore(call: Call) -> RecordFacts:
    """Every recorded document with its recorded bytes; copies come from the recorded tree; what is none is moved aside."""
    recorded, refs = call.given("artifacts"), call.given("documents")
    moved = _moved(call, unrecorded(call))
    for name, ref in refs.items():
        call.world.artifacts.write(call.run, name, call.payloads.get(ref).encode(), durable=True)
    if COPIES in recorded:
        workspace = call.world.workspace(call.config)
        copied(call, workspace.change(call.given("commit"), call.given("base")))
    for name in unrecorded(call):  # one whose name is no text
        raise ValueError(f"{name} cannot be taken away: remove it by hand and try again")
    before = call.payloads.get(call.given("told")).splitlines()
    told = "\n".join([*(line for line in before if not line.startswith(MOVED)), *moved])
    return RecordFacts(written=dict(recorded), refs=dict(refs), told_ref=call.payloads.put(told))


def _moved(call: Call, names: list[str]) -> list[str]:
    """Keeps what somebody has put among the documents under another name, and says so; of a link only the link goes."""
    artifacts, run = call.world.artifacts, call.run
    used = {name.split("/")[0] for name in artifacts.names(run, ASIDE)} if names else set()
    place = next(f"{ASIDE}/{n}" for n in range(1, len(used) + 2) if str(n) not in used)
    told = []
    for name in names:
        found, kept = artifacts.read(run, name), f"{place}/{name}"
        if found.kind == "too_long" or (found.kind == "file" and name_problem(kept)):
            raise ValueError(f"{name} cannot be moved aside: move it away by hand and try again")
        if found.kind == "file":
            artifacts.write(run, kept, found.data, durable=True)
        artifacts.remove(run, name)
        told.append(
            f"moved aside: {one_line(name)}" + (f", now {one_line(kept)}" if found.kind == "file" else "")
        )
    return told


@off_the_loop
def adopt(call: Call) -> RecordFacts:
    """The plan as a person has left it on disk and was told about: read strictly, and laid down as it is read."""
    desk, recorded = Desk(call), call.given("artifacts")
    found = look(call.world.artifacts, call.run, [name for name in (PLAN, FILES) if name in recorded])
    seen = {name: digest_of(one) for name, one in found.items()}
    wrong = [damage(name, one, recorded[name], mine=True, task_id=call.run) for name, one in found.items()]
    unfit = [d for d in wrong if d is not None and not d.adoptable]
    if unfit:
        raise ValueError("; ".join(f"{d.name} {d.problem}" for d in unfit))
    if any(call.given("seen").get(name) != digest for name, digest in seen.items()):
        raise ValueError("the plan on disk was changed again since you were asked about it: look at it again")
    plan = msgspec.json.decode(found[PLAN].data, type=Plan)
    desk.lay_down(PLAN, plan)
    if seen.get(FILES) == recorded.get(FILES):
        lay_scope(desk, plan)
    else:
        files = msgspec.json.decode(found[FILES].data, type=PlanFiles)
        desk.lay_down(FILES, msgspec.structs.replace(files, inferred=False))
    return desk.facts()
