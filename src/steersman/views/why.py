"""What a run waits for, and what would move it."""

from collections.abc import Callable

import msgspec

from steersman.judges.text import clip, one_line
from steersman.kernel.definition import Origin
from steersman.kernel.machine import Machine
from steersman.kernel.record import outcome
from steersman.kernel.snapshot import Item, Snapshot, fields
from steersman.kernel.step import legal
from steersman.ports.journal import Gate
from steersman.views.base_stop import PROBLEMS, base_stop_reason, base_stop_remedies
from steersman.views.gates import EVIDENCE, commands, gate_reason, question
from steersman.views.moments import span, stamp
from steersman.views.status import Check, checks, read_base_checks
from steersman.views.ways import besides, command

FOLLOWUP = "task_followup_received"
REDELIVER = "delivery_requested"
REVERT = "revert_requested"


class Reason(msgspec.Struct, frozen=True):
    """One thing a run waits for, or one thing that would move it, with the commands to type."""

    kind: str  # gate | work | timer | held | inbox | outcome | base | check | delivery | event | override | file
    what: str
    commands: tuple[str, ...] = ()
    urgent: bool = False
    details: tuple[str, ...] = ()  # lines that say more, such as what a failing check printed


def why(
    m: Machine,
    s: Snapshot,
    *,
    gates: list[Gate],
    pending: int,
    owner: str | None,
    now: int,
    me: str = "steersman",
    text: Callable[[str], str] = lambda _: "",
    cause: str = "",
    base_problem: str = "",
    title: str = "",
) -> list[Reason]:
    """Everything that can move a run, the nearest first; `text` gives the words behind a payload's name, `cause` says why
    a task cannot go on by itself, `base_problem` that this is its base tree."""
    waived = [command(word, s.run, me) for word in besides(m, s, gates) if word == "next --override"]
    reasons = [_gate(g, me, cause or gate_reason(g, text), waived) for g in gates if not g.answer]
    reasons += [_item(i, s.run, owner, now, me) for i in s.items.values() if i.kind != "gate"]
    if pending:
        told = "event is" if pending == 1 else "events are"
        reasons.append(_driven("inbox", f"{pending} {told} in its inbox", s.run, owner, me))
    reached = outcome(m, s)
    if reached:
        reasons.append(Reason("outcome", f"it has its outcome: {reached}"))
        reasons += _stopped_on_base(s, reached, title, me, text) if reached in PROBLEMS else _checks(s, text)
    elif base_problem:
        reasons += _stopped_on_base(s, base_problem, title, me, text)
    elif cause:
        reasons += _checks(s, text) or _base_checks(s, text)
    sendable = legal(m, s.state, Origin.PERSON, s.context)
    if undelivered(s):
        reasons.append(_delivery(s, me, text))
        sendable = tuple(name for name in sendable if name != REDELIVER)
    said = [typed for reason in reasons for typed in reason.commands]
    events = (_event(m, s, name, me) for name in sendable)
    return [*reasons, *(e for e in events if not any(f"{t} ".startswith(f"{e.commands[0]} ") for t in said))]


def _checks(s: Snapshot, text: Callable[[str], str]) -> list[Reason]:
    """What of the last round spoke against it, with everything that says why."""
    found = [c for c in checks(s, text) if c.reason or c.failure]
    told = (c.failure or (f"{c.name}: {c.verdict}: {clip(c.reason, 400)}",) for c in found)
    return [Reason("check", one_line(head), details=tuple(more)) for head, *more in told]


def _stopped_on_base(
    s: Snapshot, problem: str, title: str, me: str, text: Callable[[str], str]
) -> list[Reason]:
    """Why the base tree stopped the run: each failing check, and the commands that help."""
    failed = _base_checks(s, text)
    untested = any(not c.tests for c in _failed_on_base(s, text))
    remedies = base_stop_remedies(problem, s.run, s.machine, title, me, untested=untested)
    helps = [Reason("base", r.meaning, (r.command,)) for r in remedies]
    return [Reason("base", base_stop_reason(problem), urgent=True), *failed, *helps]


def _base_checks(s: Snapshot, text: Callable[[str], str]) -> list[Reason]:
    """The checks that fail on a base tree that does not count as checked."""
    return [Reason("check", c.failure[0], details=c.failure[1:]) for c in _failed_on_base(s, text)]


def _failed_on_base(s: Snapshot, text: Callable[[str], str]) -> list[Check]:
    c = fields(s.context)
    if "measured" in (c.get("baseline"), c.get("workspace")):
        return []
    found = read_base_checks(c, text)
    return [check for check in found if check.failure and check.verdict != "no_tests"]


def undelivered(s: Snapshot) -> bool:
    """Whether a run has its approval, but could not hand its change over."""
    c = fields(s.context)
    return c.get("outcome") == "approved" and c.get("handover") == "failed"


def unreverted(s: Snapshot) -> bool:
    """Whether a person asked for a delivered change to be taken back, and it could not be."""
    c = fields(s.context)
    return c.get("handover") == "done" and bool(c.get("reverted_by") and c.get("detail_ref"))


def redelivery(run: str, me: str) -> str:
    """What to type for a failed delivery to be tried again."""
    return f"{me} send {run} {REDELIVER}"


def _delivery(s: Snapshot, me: str, text: Callable[[str], str]) -> Reason:
    detail = " ".join(text(fields(s.context).get("detail_ref", "")).split())
    told = f"the delivery failed: {detail}" if detail else "the delivery failed"
    return Reason("delivery", told, (redelivery(s.run, me),), urgent=True)


def _gate(g: Gate, me: str, cause: str, waived: list[str]) -> Reason:
    asked = f"it waits for an answer: {question(g)} (gate {g.id})"
    if g.job not in ("again", "others", EVIDENCE):
        return Reason("gate", asked, tuple(commands(g, me)))
    return Reason("gate", f"{asked} {cause}".rstrip(), (*commands(g, me), *waived))


def _item(i: Item, run: str, owner: str | None, now: int, me: str) -> Reason:
    who = f"{i.input['role']} · {i.job}" if i.input.get("role") else i.job
    if i.held:
        return Reason("held", f"{who} is held until the budget is raised")
    if i.due is not None:
        return _timer(i, who, run, owner, now, me)
    again = f", attempt {i.attempt} ({i.retry})" if i.retry else ""
    twice = f", begun {i.starts} times: it may have run twice" if i.starts > 1 else ""
    return _driven("work", f"{who} is under way{again}{twice}", run, owner, me)


def _timer(i: Item, who: str, run: str, owner: str | None, now: int, me: str) -> Reason:
    assert i.due is not None  # noqa: S101  the caller has looked
    if i.due > now:
        return Reason("timer", f"{who} waits until {stamp(i.due)} UTC, {span(i.due - now)} from now")
    late = f"{who} was due {span(now - i.due)} ago"
    if owner is not None:
        return Reason("timer", f"{late}; {owner} drives the run")
    return Reason("timer", f"{late} and nobody drives the run", (f"{me} resume {run}",), urgent=True)


def _driven(kind: str, what: str, run: str, owner: str | None, me: str) -> Reason:
    if owner is not None:
        return Reason(kind, f"{what}; {owner} drives it", (f"{me} watch {run}",))
    return Reason(kind, f"{what}, but nobody drives the run", (f"{me} resume {run}",), urgent=True)


def _event(m: Machine, s: Snapshot, name: str, me: str) -> Reason:
    meaning = m.events[name].meaning
    if m.abort is not None and name == m.abort.name:
        return Reason("event", f"{name}: {meaning}", (f"{me} abort {s.run}",))
    if name == FOLLOWUP:
        return Reason("event", f"{name}: {meaning}", (f'{me} followup {s.run} "…"',))
    if name == "words_given":
        return Reason("event", f"{name}: {meaning}", (f'{me} tasks say {s.run} "…"',))
    if name.startswith("redo_"):
        return Reason("event", f"{name}: {meaning}", (f"{me} tasks redo {s.run} {name[5:]}",))
    if name == REVERT:
        return Reason("event", f"{name}: {meaning}", (f"{me} revert {s.run}",))
    return Reason("event", f"{name}: {meaning}", (f"{me} send {s.run} {name}",))


def lines(reasons: list[Reason]) -> list[tuple[str, bool]]:
    """As lines, each with whether it is urgent."""
    told: list[tuple[str, bool]] = []
    for r in reasons:
        told.append((one_line(f"• {r.what}"), r.urgent))
        told += [(f"  {line}", False) for line in r.details]
        told += [(f"    {command}", False) for command in r.commands]
    return told
