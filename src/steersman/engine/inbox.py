"""Takes inbox items: people's events, gate answers, aborts, overrides, ends of children.

A run takes each item exactly once: the commit that records the item also writes its verdict.
"""

import re
from typing import Any

import msgspec
from msgspec import structs
from msgspec.structs import replace

from steersman.engine.active_run import release_held_item
from steersman.engine.ports import Ports
from steersman.engine.run_writer import RunWriter, budget_reservations, find_tape_problem
from steersman.errors import OverBudget, StoreBroken
from steersman.judges.redaction.redact import redact_text
from steersman.judges.text import (
    clip_text,
    escape_surrogates,
    has_visible_text,
    printable_line,
    printable_text,
)
from steersman.kernel.definition import ChildEnded, EventDef, GateAnswer, Origin
from steersman.kernel.machine import Machine
from steersman.kernel.record import StepMeta, record_override
from steersman.kernel.snapshot import JobItem
from steersman.kernel.step import EventOccurrence, StepRefused, legal_events, override_guard
from steersman.ports.journal import UNFINISHED_STATUSES, Gate, InboxItem, Spend

# ── gate rows ───────────────────────────────────────────────────────────────────────────────────────────────────────────

# Compares gate rows and inbox answers with the tape; `audit verify` and the driver use the same rule.
#
# **Invariant:** an answer counts only where its gate is open on tape, the gate's row equals the tape, and row and inbox
# hold the same answer of the same person.


VOID_GATE = "the gate is void: what it asked about has changed"


def gate_row_problem(item: JobItem, row: Gate | None, run: str, opened_at: int | None = None) -> str:
    """Returns how the row of an open gate differs from the tape, or nothing; `opened_at` is its time on tape, if known."""
    if row is None:
        return f"gate {item.id} is open on tape, but its row is missing"
    differing_fields = _differing_gate_fields(row, item, run, opened_at)
    if differing_fields:
        return f"the row of gate {item.id} does not say what the tape gives: {', '.join(differing_fields)}"
    return ""


def answer_problem(inbox_item: InboxItem, item: JobItem | None, row: Gate | None) -> str:
    """Returns why the run may not take an answer from the inbox, or nothing."""
    body = inbox_item.body
    if item is None:
        return VOID_GATE
    problem = gate_row_problem(item, row, inbox_item.run)
    if problem or row is None:
        return problem
    if (row.answer, row.person) != (body.get("choice"), body.get("person", "")):
        row_answer = f"{row.answer} by {row.person}" if row.answer else "none"
        return f"an answer to gate {item.id} is waiting in the inbox, but its row has {row_answer}"
    return "" if row.digest == body.get("digest") else VOID_GATE


def _differing_gate_fields(gate: Gate, item: JobItem, run: str, opened_at: int | None) -> list[str]:
    gate_input = item.input
    expected_fields = {
        "id": item.id,
        "run": run,
        "job": item.job,
        "digest": gate_input.get("digest"),
        "choices": tuple(gate_input.get("choices", ())),
        "shown": gate_input.get("shown", {}),
        "default": gate_input.get("default", ""),
        "opened": gate.opened if opened_at is None else opened_at,
        "due": item.due if item.due is not None else gate.due,  # a timer that has fired is no longer on tape
    }
    return [name for name, expected in expected_fields.items() if getattr(gate, name) != expected]


# ── inbox ────────────────────────────────────────────────────────────────────────────────


_ORIGIN_WORDS = {
    Origin.GATE: "an answer to a gate",
    Origin.EFFECT: "an effect",
    Origin.TIMER: "a timer",
    Origin.CHILD: "a child run",
    Origin.MACHINE: "the machine",
}

PRUNED_REFUSAL = "the texts of this run were pruned, so it cannot continue. Start a new run instead"


async def take_inbox(writer: RunWriter) -> None:
    """Takes every waiting item of this run, in order."""
    while pending := writer.world.journal.pending(writer.live.run):
        for inbox_item in pending:
            if not await take_inbox_item(writer, inbox_item):
                break  # it took another item first: read the inbox again


def find_inbox_problem(item: InboxItem) -> str:
    """Returns which fields of an item are missing or wrong, or nothing; steersman itself never posts such an item."""
    text_fields = {"person", "reason", *TEXT_FIELDS_BY_KIND.get(item.kind, ())}
    non_text_fields = sorted(w for w in text_fields & item.body.keys() if not isinstance(item.body[w], str))
    missing_fields = sorted(set(REQUIRED_FIELDS_BY_KIND.get(item.kind, ())) - item.body.keys())
    problems = [*(f"{w} is no text" for w in non_text_fields), *(f"{w} is missing" for w in missing_fields)]
    return f"item {item.id} of its inbox cannot be read: {', '.join(problems)}" if problems else ""


async def take_inbox_item(writer: RunWriter, inbox_item: InboxItem) -> bool:
    """Takes one item; returns False when a later answer had to be taken first."""
    problem = find_inbox_problem(inbox_item)
    if problem:
        raise StoreBroken(
            f"run {inbox_item.run}: {problem}. Other runs go on. Run `steersman audit verify {inbox_item.run}`"
        )
    if writer.live.payloads.is_pruned:
        await _refuse_inbox_item(
            writer, inbox_item, inbox_item.body.get("event", inbox_item.kind), PRUNED_REFUSAL
        )
    elif inbox_item.body.get("inside"):
        problem = f"effect {inbox_item.body['inside']} sent it from inside the run, and an agent never speaks for a person"
        await _refuse_inbox_item(writer, inbox_item, inbox_item.body["event"], problem)
    else:
        answers_before = writer.preferred
        await INBOX_HANDLERS.get(inbox_item.kind, _refuse_unknown_kind)(writer, inbox_item)
        return answers_before == writer.preferred
    return True


async def _take_event(writer: RunWriter, inbox_item: InboxItem) -> None:
    event, data, problem = _read_person_event(writer.live.machine, inbox_item.body)
    if problem or event is None:
        await _refuse_inbox_item(writer, inbox_item, inbox_item.body["event"], problem)
        return
    occurrence = EventOccurrence(event, data, Origin.PERSON)
    await writer.step(occurrence, _inbox_meta(writer, inbox_item), taken=inbox_item)


def _read_person_event(machine: Machine, body: dict[str, Any]) -> tuple[EventDef | None, Any, str]:
    """Returns the event of an inbox item and its data, or why the run refuses it."""
    name = body["event"]
    event = machine.events.get(name)
    if event is None:
        return None, None, f"{machine.name} has no event {name!r}"
    if event.origin is not Origin.PERSON:
        return event, None, f"{name} comes from {_ORIGIN_WORDS[event.origin]}, never from a person"
    try:
        data = msgspec.convert(body.get("data", {}), event.carries)
    except msgspec.ValidationError as error:
        return event, None, f"the data of {name} does not fit: {error}"
    problem = find_tape_problem(data)
    return event, data, f"the data of {name} may not go on tape: {problem}" if problem is not None else ""


async def _take_answer(writer: RunWriter, inbox_item: InboxItem) -> None:
    body = inbox_item.body
    item = writer.live.snapshot.items.get(body["gate"])
    meta = replace(_inbox_meta(writer, inbox_item), cause=body["gate"], closes=(body["gate"],))
    problem = answer_problem(inbox_item, item, writer.world.journal.gate(body["gate"]))
    if problem or item is None:
        await _refuse_inbox_item(writer, inbox_item, "answer", problem, replace(meta, closes=()))
        return
    if item.job == "budget":
        await _take_budget_answer(writer, inbox_item, item, meta)
        return
    answer = GateAnswer(
        choice=body["choice"],
        person=body.get("person", ""),
        digest=body["digest"],
        reason=body.get("reason", ""),
        text=body.get("text", ""),
        timed_out=body.get("timed_out", False),
    )
    await writer.event(item, answer, meta, taken=inbox_item)


async def _take_budget_answer(writer: RunWriter, item: InboxItem, gate: JobItem, meta: StepMeta) -> None:
    """Raises the budget and starts the held agents, or stops the run; opens the gate again where the raise is too small."""
    if item.body["choice"] != "raise":
        await _take_abort(writer, item, meta)
        return
    active_run, limits = writer.live, item.body.get("limits", {})
    released_items = tuple(release_held_item(i) for i in active_run.snapshot.items.values() if i.held)
    raised_limits = tuple(Spend(active_run.ancestors[-1], name, limit=v) for name, v in limits.items())
    spends = raised_limits + tuple(
        s for i in released_items for s in budget_reservations(active_run, i, active_run.config)
    )
    try:
        await writer.note(
            meta,
            "gate_answered",
            item,
            spends,
            held=released_items,
            data={"choice": "raise", "limits": limits},
        )
    except OverBudget as error:
        reason = f"the new limit of {error.name} is still too low. Raise it further"
        reopened_gate = _reopened_budget_gate(gate, active_run.snapshot.seq + 1)
        await writer.note(
            meta,
            "gate_answered",
            item,
            raised_limits,
            planned=(reopened_gate,),
            why=reason,
            data={"choice": "raise", "limits": limits},
        )


def _reopened_budget_gate(gate: JobItem, seq: int) -> JobItem:
    run = gate.id.rsplit(":", 2)[0]
    return structs.replace(gate, id=f"{run}:{seq}:1", input={**gate.input, "digest": f"budget:{seq}"})


async def _take_abort(writer: RunWriter, inbox_item: InboxItem, meta: StepMeta | None = None) -> None:
    """Takes the machine's abort row, or cancels the run where it has none; posts an abort to every open child."""
    await writer.answers_first(writer.live.snapshot.items, inbox_item)
    machine, snapshot = writer.live.machine, writer.live.snapshot
    meta = meta or _inbox_meta(writer, inbox_item)
    children = writer.world.journal.children(snapshot.run)
    posts = tuple((c.run, "abort", inbox_item.body) for c in children if c.status in UNFINISHED_STATUSES)
    if machine.abort is not None:
        answer = GateAnswer("abort", inbox_item.body.get("person", ""), "", inbox_item.body.get("reason", ""))
        await writer.step(
            EventOccurrence(machine.abort, answer, Origin.PERSON), meta, taken=inbox_item, posts=posts
        )
        return
    if snapshot.state in machine.settled or snapshot.ended:
        await _refuse_inbox_item(
            writer, inbox_item, "abort", "the run already has its outcome", replace(meta, closes=())
        )
        return
    await writer.note(
        replace(meta, closes=tuple(snapshot.items)), "note", inbox_item, posts=posts, ended="canceled"
    )


async def _take_ended_child(writer: RunWriter, inbox_item: InboxItem) -> None:
    job = inbox_item.body["item"]
    item = writer.live.snapshot.items.get(job)
    ended = msgspec.convert(inbox_item.body["ended"], ChildEnded)
    meta = StepMeta(writer.now(), cause=job, closes=(job,))
    if item is None:
        await writer.note(replace(meta, closes=()), "child_ended", inbox_item, data=ended, late=True)
        return
    await writer.event(item, ended, meta, taken=inbox_item)


async def _take_override(writer: RunWriter, inbox_item: InboxItem, hold: str = "") -> None:
    """Waives a guard; takes a waiting answer first, and holds the next phase's agents where the budget is used up."""
    await writer.answers_first(writer.live.snapshot.items, inbox_item)
    active_run, body = writer.live, inbox_item.body
    meta = replace(_inbox_meta(writer, inbox_item), hold=hold)
    if active_run.snapshot.ended:
        problem = f"the run is over: {active_run.snapshot.ended}"
        await _refuse_inbox_item(writer, inbox_item, "override", problem)
        return
    reason = body.get("reason", "")
    override_result = override_guard(
        active_run.machine, active_run.snapshot, body["to"], reason if has_visible_text(reason) else ""
    )
    if isinstance(override_result, StepRefused):
        await writer.refused(override_result, meta, inbox_item)
        return
    advanced = record_override(active_run.machine, active_run.snapshot, override_result, meta)
    verdict = {"result": "taken", "seq": advanced.snapshot.seq, "state": advanced.snapshot.state}
    started = [i for e in advanced.entries for i in e.entry.planned if i.kind == "effect" and not i.held]
    spends = tuple(s for i in started for s in budget_reservations(active_run, i, active_run.config))
    try:
        await writer.append(advanced, spends, ((inbox_item.id, verdict),))
    except OverBudget as error:
        if hold:
            raise
        await _take_override(writer, inbox_item, error.name)


def _inbox_meta(writer: RunWriter, inbox_item: InboxItem) -> StepMeta:
    body, cause = inbox_item.body, f"inbox:{inbox_item.id}"
    if body.get("timed_out") is True:
        return StepMeta(writer.now(), cause=cause, why="no answer came in time")
    actor = f"person:{body.get('person') or 'unknown'}"
    return StepMeta(writer.now(), actor, cause, why=body.get("reason", ""))


async def _refuse_inbox_item(
    writer: RunWriter, inbox_item: InboxItem, event: str, reason: str, meta: StepMeta | None = None
) -> None:
    machine, snapshot = writer.live.machine, writer.live.snapshot
    legal = legal_events(machine, snapshot.state, Origin.PERSON, snapshot.context)
    refusal = StepRefused(event, reason, {}, legal)
    await writer.refused(refusal, meta or _inbox_meta(writer, inbox_item), inbox_item)


async def _refuse_unknown_kind(writer: RunWriter, inbox_item: InboxItem) -> None:
    """Refuses an item of a kind that only a newer steersman knows, so that later items are not blocked."""
    kind = clip_text(printable_text(inbox_item.kind), 40)
    problem = f"this version of steersman does not know {kind!r}"
    await _refuse_inbox_item(writer, inbox_item, kind, problem)


TEXT_FIELDS_BY_KIND = {
    "event": ("event",),
    "answer": ("gate", "digest", "choice"),
    "child": ("item",),
    "override": ("to",),
}
REQUIRED_FIELDS_BY_KIND = {**TEXT_FIELDS_BY_KIND, "child": ("item", "ended")}
INBOX_HANDLERS: dict[str, Any] = {
    "event": _take_event,
    "answer": _take_answer,
    "abort": _take_abort,
    "child": _take_ended_child,
    "override": _take_override,
}


# ── person text ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# Makes people's words safe for a tape: redacted, printable, bounded.
#
# **Invariant:** every person's words in an entry have passed through this module.


MAX_REASON_CHARS = 500  # characters of a person's reason that stay in the entry
MAX_NAME_CHARS = 200
_PLAIN_AGENT_NAME = re.compile(r"[A-Za-z0-9_.:/@+ -]{0,60}")


def sanitize_reason(ports: Ports, run: str, text: str) -> str:
    """Returns a reason as an entry of this run keeps it; empty for text without a visible character."""
    if not has_visible_text(text):
        return ""
    return clip_text(_sanitize_words(ports, _redaction_key(ports, run), text).strip(), MAX_REASON_CHARS)


def sanitize_event_data(ports: Ports, run: str, value: Any) -> Any:
    """Returns the data of a person's event with every text in it made safe."""
    key = _redaction_key(ports, run)

    def walk(part: Any) -> Any:
        match part:
            case str():
                return _sanitize_words(ports, key, part)
            case dict():
                return {_sanitize_words(ports, key, str(name)): walk(item) for name, item in part.items()}
            case list() | tuple():
                return [walk(item) for item in part]
            case _:
                return part

    return walk(value)


def sanitize_agent_name(ports: Ports, text: str) -> str:
    """Returns a name that an agent gives (a model, a session) as an entry keeps it: one line, bounded, redacted."""
    if _PLAIN_AGENT_NAME.fullmatch(text):
        return text
    return clip_text(
        printable_line(escape_surrogates(redact_text(text, ports.secrets(()), ports.chance.key()))),
        MAX_NAME_CHARS,
    )


def _sanitize_words(ports: Ports, key: bytes, text: str) -> str:
    return printable_text(escape_surrogates(redact_text(text, ports.secrets(()), key)))


def _redaction_key(ports: Ports, run: str) -> bytes:
    """Returns the key of the run tree, so that markers equal those of its texts; a new key where it was pruned."""
    head = ports.journal.head(run)
    return (ports.journal.key(head.root) if head is not None else None) or ports.chance.key()
