"""What a run waits for, and what would move it."""

from collections.abc import Callable

import msgspec

from steersman.judges.text import clip_text, printable_line
from steersman.kernel.definition import Origin
from steersman.kernel.machine import Machine
from steersman.kernel.record import run_outcome
from steersman.kernel.snapshot import JobItem, Snapshot, context_fields
from steersman.kernel.step import legal_events
from steersman.ports.journal import Gate
from steersman.views.base_stop import BASE_PROBLEMS, base_stop_reason, base_stop_remedies
from steersman.views.gates import EVIDENCE_GATE, gate_commands, gate_question, gate_reason
from steersman.views.legal_actions import action_command, find_side_actions
from steersman.views.run_summary import CheckStatus, latest_checks, read_base_checks
from steersman.views.time_format import format_duration, format_timestamp

FOLLOWUP_EVENT = "task_followup_received"
REDELIVERY_EVENT = "delivery_requested"
REVERT_EVENT = "revert_requested"


class WaitReason(msgspec.Struct, frozen=True):
    """One thing a run waits for, or one thing that would move it, with the commands to type."""

    kind: str  # gate | work | timer | held | inbox | outcome | base | check | delivery | event | override | file
    what: str
    commands: tuple[str, ...] = ()
    urgent: bool = False
    details: tuple[str, ...] = ()  # lines that say more, such as what a failing check printed


def find_wait_reasons(
    machine: Machine,
    snapshot: Snapshot,
    *,
    gates: list[Gate],
    pending: int,
    owner: str | None,
    now: int,
    command_prefix: str = "steersman",
    text: Callable[[str], str] = lambda _: "",
    cause: str = "",
    base_problem: str = "",
    title: str = "",
) -> list[WaitReason]:
    """Everything that can move a run, the nearest first; `text` gives the words behind a payload's name, `cause` says why
    a task cannot go on by itself, `base_problem` that this is its base tree."""
    waived = [
        action_command(word, snapshot.run, command_prefix)
        for word in find_side_actions(machine, snapshot, gates)
        if word == "next --override"
    ]
    reasons = [
        _open_gate_reason(g, command_prefix, cause or gate_reason(g, text), waived)
        for g in gates
        if not g.answer
    ]
    reasons += [
        _running_item_reason(i, snapshot.run, owner, now, command_prefix)
        for i in snapshot.items.values()
        if i.kind != "gate"
    ]
    if pending:
        events_are = "event is" if pending == 1 else "events are"
        reasons.append(
            _driver_reason(
                "inbox", f"{pending} {events_are} in its inbox", snapshot.run, owner, command_prefix
            )
        )
    reached = run_outcome(machine, snapshot)
    if reached:
        reasons.append(WaitReason("outcome", f"it has its outcome: {reached}"))
        reasons += (
            _base_stop_wait_reasons(snapshot, reached, title, command_prefix, text)
            if reached in BASE_PROBLEMS
            else _failed_check_reasons(snapshot, text)
        )
    elif base_problem:
        reasons += _base_stop_wait_reasons(snapshot, base_problem, title, command_prefix, text)
    elif cause:
        reasons += _failed_check_reasons(snapshot, text) or _base_check_reasons(snapshot, text)
    sendable = legal_events(machine, snapshot.state, Origin.PERSON, snapshot.context)
    if has_failed_delivery(snapshot):
        reasons.append(_failed_delivery_reason(snapshot, command_prefix, text))
        sendable = tuple(name for name in sendable if name != REDELIVERY_EVENT)
    typed_commands = [typed for reason in reasons for typed in reason.commands]
    events = (_legal_event_reason(machine, snapshot, name, command_prefix) for name in sendable)
    return [
        *reasons,
        *(e for e in events if not any(f"{t} ".startswith(f"{e.commands[0]} ") for t in typed_commands)),
    ]


def _failed_check_reasons(snapshot: Snapshot, text: Callable[[str], str]) -> list[WaitReason]:
    """What of the last round spoke against it, with everything that says why."""
    failing = [c for c in latest_checks(snapshot, text) if c.reason or c.failure]
    failure_texts = (c.failure or (f"{c.name}: {c.verdict}: {clip_text(c.reason, 400)}",) for c in failing)
    return [WaitReason("check", printable_line(head), details=tuple(more)) for head, *more in failure_texts]


def _base_stop_wait_reasons(
    snapshot: Snapshot, problem: str, title: str, command_prefix: str, text: Callable[[str], str]
) -> list[WaitReason]:
    """Why the base tree stopped the run: each failing check, and the commands that help."""
    failed = _base_check_reasons(snapshot, text)
    untested = any(not c.tests for c in _unchecked_base_failures(snapshot, text))
    remedies = base_stop_remedies(
        problem, snapshot.run, snapshot.machine, title, command_prefix, untested=untested
    )
    helps = [WaitReason("base", r.meaning, (r.command,)) for r in remedies]
    return [WaitReason("base", base_stop_reason(problem), urgent=True), *failed, *helps]


def _base_check_reasons(snapshot: Snapshot, text: Callable[[str], str]) -> list[WaitReason]:
    """The checks that fail on a base tree that does not count as checked."""
    return [
        WaitReason("check", c.failure[0], details=c.failure[1:])
        for c in _unchecked_base_failures(snapshot, text)
    ]


def _unchecked_base_failures(snapshot: Snapshot, text: Callable[[str], str]) -> list[CheckStatus]:
    context = context_fields(snapshot.context)
    if "measured" in (context.get("baseline"), context.get("workspace")):
        return []
    base_results = read_base_checks(context, text)
    return [check for check in base_results if check.failure and check.verdict != "no_tests"]


def has_failed_delivery(snapshot: Snapshot) -> bool:
    """Whether a run has its approval, but could not hand its change over."""
    context = context_fields(snapshot.context)
    return context.get("outcome") == "approved" and context.get("handover") == "failed"


def has_failed_revert(snapshot: Snapshot) -> bool:
    """Whether a person asked for a delivered change to be taken back, and it could not be."""
    context = context_fields(snapshot.context)
    return context.get("handover") == "done" and bool(
        context.get("reverted_by") and context.get("detail_ref")
    )


def redelivery_command(run: str, command_prefix: str) -> str:
    """What to type for a failed delivery to be tried again."""
    return f"{command_prefix} send {run} {REDELIVERY_EVENT}"


def _failed_delivery_reason(
    snapshot: Snapshot, command_prefix: str, text: Callable[[str], str]
) -> WaitReason:
    detail = " ".join(text(context_fields(snapshot.context).get("detail_ref", "")).split())
    sentence = f"the delivery failed: {detail}" if detail else "the delivery failed"
    return WaitReason("delivery", sentence, (redelivery_command(snapshot.run, command_prefix),), urgent=True)


def _open_gate_reason(gate: Gate, command_prefix: str, cause: str, waived: list[str]) -> WaitReason:
    question_text = f"it waits for an answer: {gate_question(gate)} (gate {gate.id})"
    if gate.job not in ("again", "others", EVIDENCE_GATE):
        return WaitReason("gate", question_text, tuple(gate_commands(gate, command_prefix)))
    return WaitReason(
        "gate", f"{question_text} {cause}".rstrip(), (*gate_commands(gate, command_prefix), *waived)
    )


def _running_item_reason(
    item: JobItem, run: str, owner: str | None, now: int, command_prefix: str
) -> WaitReason:
    worker = f"{item.input['role']} · {item.job}" if item.input.get("role") else item.job
    if item.held:
        return WaitReason("held", f"{worker} is held until the budget is raised")
    if item.due is not None:
        return _due_timer_reason(item, worker, run, owner, now, command_prefix)
    again = f", attempt {item.attempt} ({item.retry})" if item.retry else ""
    twice = f", begun {item.starts} times: it may have run twice" if item.starts > 1 else ""
    return _driver_reason("work", f"{worker} is under way{again}{twice}", run, owner, command_prefix)


def _due_timer_reason(
    item: JobItem, worker: str, run: str, owner: str | None, now: int, command_prefix: str
) -> WaitReason:
    assert item.due is not None  # noqa: S101  the caller has looked
    if item.due > now:
        return WaitReason(
            "timer",
            f"{worker} waits until {format_timestamp(item.due)} UTC, {format_duration(item.due - now)} from now",
        )
    late = f"{worker} was due {format_duration(now - item.due)} ago"
    if owner is not None:
        return WaitReason("timer", f"{late}; {owner} drives the run")
    return WaitReason(
        "timer", f"{late} and nobody drives the run", (f"{command_prefix} resume {run}",), urgent=True
    )


def _driver_reason(kind: str, what: str, run: str, owner: str | None, command_prefix: str) -> WaitReason:
    if owner is not None:
        return WaitReason(kind, f"{what}; {owner} drives it", (f"{command_prefix} watch {run}",))
    return WaitReason(
        kind, f"{what}, but nobody drives the run", (f"{command_prefix} resume {run}",), urgent=True
    )


def _legal_event_reason(machine: Machine, snapshot: Snapshot, name: str, command_prefix: str) -> WaitReason:
    meaning = machine.events[name].meaning
    if machine.abort is not None and name == machine.abort.name:
        return WaitReason("event", f"{name}: {meaning}", (f"{command_prefix} abort {snapshot.run}",))
    if name == FOLLOWUP_EVENT:
        return WaitReason("event", f"{name}: {meaning}", (f'{command_prefix} followup {snapshot.run} "…"',))
    if name == "words_given":
        return WaitReason("event", f"{name}: {meaning}", (f'{command_prefix} tasks say {snapshot.run} "…"',))
    if name.startswith("redo_"):
        return WaitReason(
            "event", f"{name}: {meaning}", (f"{command_prefix} tasks redo {snapshot.run} {name[5:]}",)
        )
    if name == REVERT_EVENT:
        return WaitReason("event", f"{name}: {meaning}", (f"{command_prefix} revert {snapshot.run}",))
    return WaitReason("event", f"{name}: {meaning}", (f"{command_prefix} send {snapshot.run} {name}",))


def wait_reason_lines(reasons: list[WaitReason]) -> list[tuple[str, bool]]:
    """As lines, each with whether it is urgent."""
    reason_lines: list[tuple[str, bool]] = []
    for reason in reasons:
        reason_lines.append((printable_line(f"• {reason.what}"), reason.urgent))
        reason_lines += [(f"  {line}", False) for line in reason.details]
        reason_lines += [(f"    {command}", False) for command in reason.commands]
    return reason_lines
