"""What comes in from outside a drive: people's events, gate answers, aborts, overrides, ended children.

Each is taken exactly once: its verdict is written in the commit that records it.
"""

from typing import Any

import msgspec
from msgspec import structs
from msgspec.structs import replace

from steersman.errors import OverBudget, StoreBroken
from steersman.judges.text import clip, printable, visible
from steersman.kernel.definition import ChildEnded, GateAnswer, Origin
from steersman.kernel.record import Meta, overridden
from steersman.kernel.snapshot import Item
from steersman.kernel.step import Happened, Refused, legal, override
from steersman.ports.journal import UNFINISHED, Posted, Spend
from steersman.runtime.budget import ceilings
from steersman.runtime.gate_rows import answer_problem
from steersman.runtime.live import released
from steersman.runtime.moves import Moves, untapeable

PRUNED = "the texts of this run were pruned, nobody can go on with it: start a new run instead"


async def take(moves: Moves) -> None:
    """Takes what waits for this run, in order."""
    while pending := moves.world.journal.pending(moves.live.run):
        for posted in pending:
            if not await take_one(moves, posted):
                break  # it took another one before itself: look again


def unfit(posted: Posted) -> str:
    """What an item lacks to be one of its kind, or nothing: only a hand in the store leaves it out."""
    words = {"person", "reason", *WORDS.get(posted.kind, ())}
    wrong = sorted(w for w in words & posted.body.keys() if not isinstance(posted.body[w], str))
    missing = sorted(set(NEEDED.get(posted.kind, ())) - posted.body.keys())
    told = [*(f"{w} is no text" for w in wrong), *(f"{w} is missing" for w in missing)]
    return f"item {posted.id} of its inbox cannot be read: {', '.join(told)}" if told else ""


async def take_one(moves: Moves, posted: Posted) -> bool:
    """Takes one; False when an answer that came after it had to be taken first."""
    why = unfit(posted)
    if why:
        raise StoreBroken(
            f"run {posted.run}: {why}; the other runs go on: see `steersman audit verify {posted.run}`"
        )
    if moves.live.payloads.gone:
        await _refuse(moves, posted, _meta(moves, posted), posted.body.get("event", posted.kind), PRUNED)
    elif posted.body.get("inside"):
        why = f"it came from inside the run, from effect {posted.body['inside']}: an agent never speaks for a person"
        await _refuse(moves, posted, _meta(moves, posted), posted.body["event"], why)
    else:
        before = moves.preferred
        await KINDS.get(posted.kind, _unknown)(moves, posted)
        return before == moves.preferred
    return True


async def _event(moves: Moves, posted: Posted) -> None:
    m, body = moves.live.machine, posted.body
    meta = _meta(moves, posted)
    event = m.events.get(body["event"])
    if event is None:
        await _refuse(moves, posted, meta, body["event"], f"{m.name} has no event {body['event']!r}")
        return
    if event.origin is not Origin.PERSON:
        await _refuse(
            moves,
            posted,
            meta,
            event.name,
            f"{event.name} comes from {event.origin.value}, never from a person",
        )
        return
    try:
        data = msgspec.convert(body.get("data", {}), event.carries)
    except msgspec.ValidationError as error:
        await _refuse(moves, posted, meta, event.name, f"what {event.name} carries does not fit: {error}")
        return
    problem = untapeable(data)
    if problem is not None:
        await _refuse(
            moves, posted, meta, event.name, f"what {event.name} carries may not go on tape: {problem}"
        )
        return
    await moves.step(Happened(event, data, Origin.PERSON), meta, taken=posted)


async def _answer(moves: Moves, posted: Posted) -> None:
    body = posted.body
    item = moves.live.snapshot.items.get(body["gate"])
    meta = replace(_meta(moves, posted), cause=body["gate"], closes=(body["gate"],))
    why = answer_problem(posted, item, moves.world.journal.gate(body["gate"]))
    if why or item is None:
        await _refuse(moves, posted, replace(meta, closes=()), "answer", why)
        return
    if item.job == "budget":
        await _budget(moves, posted, item, meta)
        return
    answer = GateAnswer(
        choice=body["choice"],
        person=body.get("person", ""),
        digest=body["digest"],
        reason=body.get("reason", ""),
        text=body.get("text", ""),
        timed_out=body.get("timed_out", False),
    )
    await moves.event(item, answer, meta, taken=posted)


async def _budget(moves: Moves, posted: Posted, gate: Item, meta: Meta) -> None:
    """A used-up budget is raised, or the run stopped; a raise that does not suffice asks again."""
    if posted.body["choice"] != "raise":
        await _abort(moves, posted, meta)
        return
    live, limits = moves.live, posted.body.get("limits", {})
    held = tuple(released(i) for i in live.snapshot.items.values() if i.held)
    raised = tuple(Spend(live.ancestors[-1], name, limit=value) for name, value in limits.items())
    spends = raised + tuple(s for i in held for s in ceilings(live, i, live.config))
    try:
        await moves.note(
            meta, "gate_answered", posted, spends, held=held, data={"choice": "raise", "limits": limits}
        )
    except OverBudget as error:
        why = f"that is still not enough {error.name}: raise it further"
        again = _asked_again(gate, live.snapshot.seq + 1)
        await moves.note(
            meta,
            "gate_answered",
            posted,
            raised,
            planned=(again,),
            why=why,
            data={"choice": "raise", "limits": limits},
        )


def _asked_again(gate: Item, seq: int) -> Item:
    run = gate.id.rsplit(":", 2)[0]
    return structs.replace(gate, id=f"{run}:{seq}:1", input={**gate.input, "digest": f"budget:{seq}"})


async def _abort(moves: Moves, posted: Posted, meta: Meta | None = None) -> None:
    """The machine's own abort row where it has one, else canceled in place; the children are told too."""
    await moves.answers_first(moves.live.snapshot.items, posted)
    m, s = moves.live.machine, moves.live.snapshot
    meta = meta or _meta(moves, posted)
    children = moves.world.journal.children(s.run)
    posts = tuple((c.run, "abort", posted.body) for c in children if c.status in UNFINISHED)
    if m.abort is not None:
        answer = GateAnswer("abort", posted.body.get("person", ""), "", posted.body.get("reason", ""))
        await moves.step(Happened(m.abort, answer, Origin.PERSON), meta, taken=posted, posts=posts)
        return
    if s.state in m.settled or s.ended:
        await _refuse(moves, posted, replace(meta, closes=()), "abort", "the run has its outcome already")
        return
    await moves.note(replace(meta, closes=tuple(s.items)), "note", posted, posts=posts, ended="canceled")


async def _child(moves: Moves, posted: Posted) -> None:
    job = posted.body["item"]
    item = moves.live.snapshot.items.get(job)
    ended = msgspec.convert(posted.body["ended"], ChildEnded)
    meta = Meta(moves.now(), cause=job, closes=(job,))
    if item is None:
        await moves.note(replace(meta, closes=()), "child_ended", posted, data=ended, late=True)
        return
    await moves.event(item, ended, meta, taken=posted)


async def _override(moves: Moves, posted: Posted, hold: str = "") -> None:
    """A guard waived; an answer that is there already comes first, and over budget the next phase's agents are held."""
    await moves.answers_first(moves.live.snapshot.items, posted)
    live, body = moves.live, posted.body
    meta = replace(_meta(moves, posted), hold=hold)
    if live.snapshot.ended:
        await _refuse(moves, posted, meta, "override", f"the run is over: {live.snapshot.ended}")
        return
    reason = body.get("reason", "")
    taken = override(live.machine, live.snapshot, body["to"], reason if visible(reason) else "")
    if isinstance(taken, Refused):
        await moves.refused(taken, meta, posted)
        return
    done = overridden(live.machine, live.snapshot, taken, meta)
    told = {"result": "taken", "seq": done.snapshot.seq, "state": done.snapshot.state}
    started = [i for e in done.entries for i in e.entry.planned if i.kind == "effect" and not i.held]
    spends = tuple(s for i in started for s in ceilings(live, i, live.config))
    try:
        await moves.append(done, spends, ((posted.id, told),))
    except OverBudget as error:
        if hold:
            raise
        await _override(moves, posted, error.name)


def _meta(moves: Moves, posted: Posted) -> Meta:
    body, cause = posted.body, f"inbox:{posted.id}"
    if body.get("timed_out") is True:
        return Meta(moves.now(), cause=cause, why="nobody answered in time")
    who = f"person:{body.get('person') or 'unknown'}"
    return Meta(moves.now(), who, cause, why=body.get("reason", ""))


async def _refuse(moves: Moves, posted: Posted, meta: Meta, event: str, why: str) -> None:
    live = moves.live
    await moves.refused(
        Refused(
            event, why, {}, legal(live.machine, live.snapshot.state, Origin.PERSON, live.snapshot.context)
        ),
        meta,
        posted,
    )


async def _unknown(moves: Moves, posted: Posted) -> None:
    """Of a newer steersman: refused, so that it does not stand in the way of what came after it."""
    kind = clip(printable(posted.kind), 40)
    await _refuse(moves, posted, _meta(moves, posted), kind, f"this steersman does not know {kind!r}")


WORDS = {"event": ("event",), "answer": ("gate", "digest", "choice"), "child": ("item",), "override": ("to",)}
NEEDED = {**WORDS, "child": ("item", "ended")}
KINDS: dict[str, Any] = {
    "event": _event,
    "answer": _answer,
    "abort": _abort,
    "child": _child,
    "override": _override,
}
