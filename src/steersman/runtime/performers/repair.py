"""Files of a task that are not what was recorded: put back, moved aside, or, for the plan, taken over.

**Invariant:** what is put back are the recorded bytes; what is taken over was read strictly and is what a person was told;
a plain file that nobody has recorded is kept, only elsewhere.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from steersman.contracts.task.documents import Plan, PlanFiles
from steersman.contracts.task.facts import RecordFacts
from steersman.contracts.task.words import COPIES, FILES, PLAN
from steersman.errors import SteersmanError
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
    moved, left = put_back(call)
    if left:
        raise ValueError("; ".join([*left, *moved]))
    before = call.payloads.get(call.given("told")).splitlines()
    told = "\n".join([*(line for line in before if not line.startswith(MOVED)), *moved])
    return RecordFacts(written=dict(recorded), refs=dict(refs), told_ref=call.payloads.put(told))


def put_back(call: Call) -> tuple[list[str], list[str]]:
    """Puts everything back that can be; what was moved aside, and what is left with why, in words."""
    strange = unrecorded(call)
    place = _free(call) if strange else ""
    left, moved = dict[str, str](), dict[str, str]()
    for name in strange:
        with _noted(left, name):
            moved[name] = _moved(call, name, place)
    for name, ref in call.given("documents").items():
        with _noted(left, name):
            call.world.artifacts.write(call.run, name, call.payloads.get(ref).encode(), durable=True)
    stay = unrecorded(call)
    if COPIES in call.given("artifacts"):
        with _noted(left, COPIES):
            change = call.world.workspace(call.config).change(call.given("commit"), call.given("base"))
            copied(call, change, stay)
    for name in stay:  # one whose name is no text
        left.setdefault(name, f"{one_line(name)} cannot be taken away: remove it by hand and try again")
    return [told for name, told in moved.items() if name not in stay], list(left.values())


@contextmanager
def _noted(left: dict[str, str], name: str) -> Iterator[None]:
    """What cannot be done for one file is noted, and keeps nothing else from being done."""
    try:
        yield
    except (SteersmanError, OSError, ValueError) as error:
        left[name] = one_line(str(error))


def _free(call: Call) -> str:
    """A folder of its own for what is moved aside this time."""
    used = {name.split("/")[0] for name in call.world.artifacts.names(call.run, ASIDE)}
    return next(f"{ASIDE}/{n}" for n in range(1, len(used) + 2) if str(n) not in used)


def _moved(call: Call, name: str, place: str) -> str:
    """Keeps what somebody has put among the documents under another name, and says so; of a link only the link goes."""
    artifacts, run, kept = call.world.artifacts, call.run, f"{place}/{name}"
    found = artifacts.read(run, name)
    if found.kind == "too_long" or (found.kind == "file" and name_problem(kept)):
        raise ValueError(f"{name} cannot be moved aside: move it away by hand and try again")
    if found.kind == "file":
        artifacts.write(run, kept, found.data, durable=True)
    artifacts.remove(run, name)
    return f"{MOVED}{one_line(name)}" + (f", now {one_line(kept)}" if found.kind == "file" else "")


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
