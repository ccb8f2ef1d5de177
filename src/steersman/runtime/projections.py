"""The files people read beside a run: projections of its tape, written again whenever a drive ends.

**Invariant:** never the source of anything; a file that cannot be written is a warning, never a failure of the run.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.contracts.task.words import STATE, TRANSCRIPT
from steersman.errors import SteersmanError
from steersman.judges.text import printable_json
from steersman.kernel.definition import Origin
from steersman.kernel.snapshot import Snapshot, fields
from steersman.kernel.tape import Entry, read
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.runtime.live import Live, load
from steersman.runtime.world import World
from steersman.views.report import report
from steersman.views.status import Status, Text, status_of
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
    return Picture(live, entries, shown, text)


def not_isolated(world: World, run: str) -> str:
    """Why nothing kept the agents of a run from approving, or nothing; only the entries that say so are read."""
    told = NOT_ISOLATED.encode()
    found = [said(read(body)) for _, body, _ in world.journal.rows(run) if told in body]
    return next(filter(None, reversed(found)), "")


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


def write(world: World, run: str) -> list[str]:
    """Writes every projection of a run; returns what could not be written, in words."""
    seen, troubles = picture(world, run), []
    for name, make in _files(seen):
        try:
            data = make()
            told = _hand_in(world, seen, name, data)
            world.artifacts.write(run, name, data)
        except (SteersmanError, OSError, msgspec.MsgspecError) as error:
            told = f"{name} was not written: {error}"
        troubles += [told] if told else []
    return troubles


def _files(p: Picture) -> Iterator[tuple[str, Callable[[], bytes]]]:
    c = fields(p.snapshot.context)
    yield STATE, lambda: _json(msgspec.json.encode(_state(p)))
    yield "report.md", lambda: markdown(p).encode()
    yield TRANSCRIPT, lambda: b"".join(_escaped(msgspec.json.encode(e)) + b"\n" for e in p.entries)
    yield TIMELINE, lambda: _timeline(p)
    if c.get("contract"):
        yield "discussion_contract.json", lambda: _contract(c, p.text)
    if c.get("patch_ref") and not _has_documents(p):
        yield "code/diff.patch", lambda: p.text(c["patch_ref"]).encode()
    if c.get("results_ref"):
        yield "test-results.json", lambda: _json(p.text(c["results_ref"]).encode())
    if not p.live.machine.tree:
        yield from _plan_files(p)


def _has_documents(p: Picture) -> bool:
    """Whether the run lays its documents down itself, and looks at them before they count."""
    return "artifacts" in fields(p.snapshot.context)


def _state(p: Picture) -> msgspec.Struct:
    return _task(p) if _has_documents(p) else p.status


def _task(p: Picture) -> "TaskState":
    from steersman.kernel.step import legal
    from steersman.views.task import task_state

    m, s = p.live.machine, p.snapshot
    asked = [f"{g.job}: {' | '.join(g.choices)}" for g in p.status.gates if not g.answer]
    return task_state(s, p.status, (*asked, *legal(m, s.state, Origin.PERSON, s.context)))


def _hand_in(world: World, p: Picture, name: str, data: bytes) -> str:
    """What is said about a file that is not as steersman left it; nothing about one that is only older."""
    if name not in (STATE, TRANSCRIPT) or not _has_documents(p):
        return ""
    from steersman.judges.task.inspection import no_file
    from steersman.views.task import changed_by_hand, rewritten

    found = world.artifacts.read(p.snapshot.run, name, max(LONGEST, len(data)))
    if found.kind == "file":
        return changed_by_hand(found.data, _task(p)) if name == STATE else rewritten(found.data, data)
    if found.kind == "missing" and world.artifacts.read(p.snapshot.run, TIMELINE).kind == "missing":
        return ""
    return f"{name} {no_file(found)}: it was made again from the tape"


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
