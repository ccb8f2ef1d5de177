"""The files people read beside a run: projections of its tape, written again whenever a drive ends.

**Invariant:** never the source of anything; a file that cannot be written is a warning, never a failure of the run.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.contracts.task.words import STATE, TRANSCRIPT
from steersman.errors import SteersmanError
from steersman.judges.task.found import Found
from steersman.judges.text import printable_json
from steersman.kernel.definition import Origin
from steersman.kernel.snapshot import Snapshot, fields
from steersman.kernel.tape import Entry, read
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.runtime.live import Live, load
from steersman.runtime.world import World
from steersman.views.report import report
from steersman.views.status import (
    DESPITE_VERIFY,
    UNAWAITED,
    Override,
    Status,
    Text,
    base_problem,
    override_of,
    status_of,
)
from steersman.views.status import not_isolated as said

if TYPE_CHECKING:
    from steersman.contracts.task.documents import TaskState

TIMELINE = "timeline.json"  # comes after those that are looked at: where it is, they were
LONGEST = 16 * 1024 * 1024  # bytes of one that is looked at, unless it has to be longer
CONTRACT_TEXTS = ("task", "followup", "core_plan", "reviewer_notes", "tester_notes")


class Picture(msgspec.Struct, frozen=True):
    """A run read whole: what every view of it is made from."""

    live: Any
    entries: tuple[Entry, ...]
    status: Status
    text: Any

    @property
    def snapshot(self) -> Snapshot:
        found: Snapshot = self.live.snapshot
        return found


def picture(world: World, run: str) -> Picture:
    """Reads a run as its tape says, for showing."""
    live = load(world, run, migrating=True)
    entries = tuple(read(body) for _, body, _ in world.journal.rows(run))
    text = reading(live)
    shown = status_of(
        live.machine,
        live.snapshot,
        live.title,
        entries,
        gates=world.journal.gates(run),
        budget=world.journal.budget(run),
        text=text,
    )
    return Picture(live, entries, msgspec.structs.replace(shown, issue=issue_text(live)), text)


def issue_text(live: Live) -> str:
    """The text that came with the task and is not the person's own; nothing where it was pruned."""
    return "" if live.payloads.gone else live.payloads.get(live.config.issue_ref)


def not_isolated(world: World, run: str) -> str:
    """Why nothing kept the agents of a run from approving, or nothing; only the entries that say so are read."""
    told = NOT_ISOLATED.encode()
    found = [said(read(body)) for _, body, _ in world.journal.rows(run) if told in body]
    return next(filter(None, reversed(found)), "")


def overrides(world: World, run: str) -> list[Override]:
    """What people have waived, as the tape has it; only the entries that may say so are read."""
    signs = (b'"override"', UNAWAITED.encode(), DESPITE_VERIFY.encode())
    rows = (body for _, body, _ in world.journal.rows(run) if any(sign in body for sign in signs))
    found: list[Override | None] = []
    for body in rows:
        with suppress(msgspec.MsgspecError):  # that an entry cannot be read is told where its run is
            found.append(override_of(read(body)))
    return [one for one in found if one is not None]


def stands_still(world: World, live: Live) -> str:
    """Why a task cannot go on by itself, in one line; nothing where it can, and then the tape is not read."""
    from steersman.views.cause import STILL, cause

    if fields(live.snapshot.context).get("step") not in STILL:
        return ""
    entries = [read(body) for _, body, _ in world.journal.rows(live.run)]
    return cause(live.machine, live.snapshot, entries, reading(live))


def stopped_on_base(world: World, live: Live) -> str:
    """Which problem of its base tree keeps a task from going on; nothing where another one does, or none."""
    from steersman.views.cause import STILL

    if fields(live.snapshot.context).get("step") not in STILL:
        return ""
    entries = [read(body) for _, body, _ in world.journal.rows(live.run)]
    return base_problem(live.machine, live.snapshot, entries)


def reading(live: Live) -> Text:
    """A getter for texts that says so where one was pruned."""

    def text(ref: str) -> str:
        if not ref:
            return ""
        try:
            return live.payloads.get(ref)
        except SteersmanError:
            return "(this text was pruned)"

    return text


def write(world: World, run: str, *, older: bool = False) -> list[str]:
    """Writes every projection of a run; returns what could not be written, and what hands had done to it, in words; and
    which was `older`, for who asks: one that was killed while it wrote leaves such a state too."""
    seen, troubles = picture(world, run), []
    hands = by_hand(world, seen.live, older=older)
    for name, make in _files(seen):
        try:
            world.artifacts.write(run, name, make())
            told = f"{name} {hands[name]}: it was made again from the tape" if name in hands else ""
        except (SteersmanError, OSError, msgspec.MsgspecError) as error:
            told = f"{name} was not written: {error}"
        troubles += [told] if told else []
    return troubles


def _files(p: Picture) -> Iterator[tuple[str, Callable[[], bytes]]]:
    c = fields(p.snapshot.context)
    yield TRANSCRIPT, lambda: transcript(p.entries)
    # After it: a state that was made from so many entries says that the transcript has as many lines.
    yield STATE, lambda: state(p)
    yield "report.md", lambda: markdown(p).encode()
    yield TIMELINE, lambda: _timeline(p)
    if c.get("contract"):
        yield "discussion_contract.json", lambda: _contract(c, p.text)
    if c.get("patch_ref") and not _has_documents(p.snapshot):
        yield "code/diff.patch", lambda: p.text(c["patch_ref"]).encode()
    if c.get("results_ref"):
        yield "test-results.json", lambda: _json(p.text(c["results_ref"]).encode())
    if not p.live.machine.tree:
        yield from _plan_files(p)


def made(p: Picture, name: str) -> bytes | None:
    """A projection as the tape has it now; None where it is none of this run."""
    make = dict(_files(p)).get(name)
    return make() if make is not None else None


def transcript(entries: Iterable[Entry]) -> bytes:
    """The tape in lines."""
    return b"".join(_escaped(msgspec.json.encode(e)) + b"\n" for e in entries)


def _has_documents(s: Snapshot) -> bool:
    """Whether the run lays its documents down itself, and looks at them before they count."""
    return "artifacts" in fields(s.context)


def state(p: Picture) -> bytes:
    """`state.json`: of a task in the specification's form, of any other run its status."""
    if _has_documents(p.snapshot):
        from steersman.views.task import rendered

        return rendered(_task(p))
    return _json(msgspec.json.encode(p.status))


def _task(p: Picture) -> "TaskState":
    from steersman.kernel.step import legal
    from steersman.views.task import task_state

    m, s = p.live.machine, p.snapshot
    asked = [f"{g.job}: {' | '.join(g.choices)}" for g in p.status.gates if not g.answer]
    legal_now = (*asked, *legal(m, s.state, Origin.PERSON, s.context))
    return task_state(s, p.status, legal_now, p.live.payloads.mark)


def by_hand(world: World, live: Live, *, older: bool = True) -> dict[str, str]:
    """What hands did to the files that are made from the tape of a task, by name; of a state that is only `older` than the
    transcript beside it, that; nothing about both where they are."""
    if not _has_documents(live.snapshot):
        return {}
    from steersman.views.task import changed_by_hand, entries_of, outdated, rewritten

    run, told, least = live.run, {}, 0
    found = world.artifacts.read(run, STATE, LONGEST)  # before the transcript, which is written first
    if found.kind == "file":
        told[STATE] = changed_by_hand(found.data, lambda: _task(picture(world, run)), run, live.payloads.mark)
        least = 0 if told[STATE] else entries_of(found.data)
    else:
        told[STATE] = _absent(world, run, found)
    now = transcript(read(body) for _, body, _ in world.journal.rows(run))
    found = world.artifacts.read(run, TRANSCRIPT, max(LONGEST, len(now)))
    told[TRANSCRIPT] = (
        rewritten(found.data, now, least) if found.kind == "file" else _absent(world, run, found)
    )
    if older and least and not told[TRANSCRIPT] and world.locks.owner(run) is None:  # or somebody is at it
        told[STATE] = outdated(least, found.data)
    return {name: problem for name, problem in told.items() if problem}


def _absent(world: World, run: str, found: Found) -> str:
    """What is wrong where no file is; nothing where none was written yet."""
    from steersman.judges.task.inspection import no_file

    never = found.kind == "missing" and world.artifacts.read(run, TIMELINE).kind == "missing"
    return "" if never else no_file(found)


def _plan_files(p: Picture) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """What the specification of the planner wants to be seen of every run, also of one that has failed."""
    from steersman.views.planning.outcome import failure_of, summary_of

    yield "coordinator_run_tape.json", lambda: _json(msgspec.json.encode(form(p, "runtape")))
    yield "audit_log.json", lambda: _json(msgspec.json.encode(form(p, "auditlog")))
    failed, told = failure_of(p.snapshot, p.text), summary_of(p.snapshot, p.text, p.entries)
    if failed is not None:
        yield "failure_pack.json", lambda: _json(msgspec.json.encode(failed))
    if told is not None:
        yield "run_summary.json", lambda: _json(msgspec.json.encode(told))


def form(p: Picture, name: str) -> msgspec.Struct:
    """The tape of a planning run in one of the specification's forms."""
    from steersman.views.planning.forms import run_tape
    from steersman.views.planning.log import audit_log

    if name == "runtape":
        return run_tape(p.live.machine, p.entries, fields(p.snapshot.context), p.text)
    return audit_log(p.live.machine, p.entries, p.text)


def _json(document: bytes) -> bytes:
    return _escaped(msgspec.json.format(document))


def _escaped(document: bytes) -> bytes:
    """People look at these files with `cat`."""
    return printable_json(document.decode()).encode()


def markdown(p: Picture) -> str:
    """The report of a run."""
    return report(p.live.machine, p.snapshot, p.status, p.entries, p.text)


def _timeline(p: Picture) -> bytes:
    from steersman.views.timeline import timeline

    return _json(msgspec.json.encode(list(timeline(p.entries, p.live.machine))))


def _contract(c: dict[str, Any], text: Text) -> bytes:
    """The contract with its digest, and the texts that its names stand for."""
    bound = c["contract"]
    texts = {name: text(bound[name]) for name in CONTRACT_TEXTS if bound.get(name)}
    told = {"digest": c.get("contract_digest", ""), "contract": bound, "texts": texts}
    return _json(msgspec.json.encode(told))
