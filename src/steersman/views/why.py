"""Explains what a run waits for, and what would move it."""

from collections.abc import Sequence

import msgspec

from steersman.judges.text import clip_text, printable_line
from steersman.kernel.definition import EventDef, Origin
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.step import legal_events
from steersman.views.base_stop import base_stop_reason
from steersman.views.gates import EVIDENCE_GATE, GateView, gate_commands, gate_question
from steersman.views.legal_actions import event_command, event_word
from steersman.views.run_summary import CheckStatus, RunningWork, RunSummary
from steersman.views.screen import base_remedies_for_run, failed_base_checks, running_work_name
from steersman.views.time_format import format_duration, format_timestamp

REDELIVERY_WORD = "deliver"


class WaitReason(msgspec.Struct, frozen=True):
    """One thing that a run waits for or that would move it, with the commands to type."""

    kind: str  # gate | work | timer | held | inbox | outcome | base | check | delivery | event | override | file
    what: str
    commands: tuple[str, ...] = ()
    urgent: bool = False
    details: tuple[str, ...] = ()  # lines that say more, such as what a failing check printed


def find_wait_reasons(
    machine: Machine,
    snapshot: Snapshot,
    summary: RunSummary,
    *,
    pending: int,
    owner: str | None,
    now: int,
    command_prefix: str = "steersman",
) -> list[WaitReason]:
    """Returns everything that can move a run, the nearest first."""
    reasons = [_open_gate_reason(g, summary, command_prefix) for g in summary.gates if not g.answer]
    reasons += [
        _running_work_reason(work, snapshot.run, owner, now, command_prefix) for work in summary.working
    ]
    if pending:
        events_are = "event is" if pending == 1 else "events are"
        reasons.append(
            _driver_reason(
                "inbox", f"{pending} {events_are} in its inbox", snapshot.run, owner, command_prefix
            )
        )
    reached = summary.outcome
    if reached:
        reasons.append(WaitReason("outcome", f"its outcome is {reached}"))
    if summary.base_problem:
        reasons += _base_stop_wait_reasons(summary, command_prefix)
    elif reached or (summary.cause and not any(g.job == EVIDENCE_GATE for g in summary.gates)):
        unmeasured = not reached and not summary.base_measured
        of_base = failed_base_checks(summary) if unmeasured else []
        reasons += _failed_check_reasons(summary.checks) or _failed_check_reasons(of_base)
    sendable = legal_events(machine, snapshot.state, Origin.PERSON, snapshot.context)
    events = [machine.events[name] for name in sendable]
    if summary.delivery_failed:
        redelivery = [e for e in events if event_word(machine, e) == REDELIVERY_WORD]
        reasons += [_failed_delivery_reason(machine, e, summary, command_prefix) for e in redelivery]
        events = [e for e in events if e not in redelivery]
    commands = [typed for reason in reasons for typed in reason.commands]
    event_reasons = (_legal_event_reason(machine, e, snapshot.run, command_prefix) for e in events)
    return [
        *reasons,
        *(e for e in event_reasons if not any(f"{t} ".startswith(f"{e.commands[0]} ") for t in commands)),
    ]


def _failed_check_reasons(checks: Sequence[CheckStatus]) -> list[WaitReason]:
    """Returns the failing checks with their output."""
    failing = [c for c in checks if c.reason or c.failure]
    failure_texts = (c.failure or (f"{c.name}: {c.verdict}: {clip_text(c.reason, 400)}",) for c in failing)
    return [WaitReason("check", printable_line(head), details=tuple(more)) for head, *more in failure_texts]


def _base_stop_wait_reasons(summary: RunSummary, command_prefix: str) -> list[WaitReason]:
    """Returns why the base tree stopped the run: each failing check, and the commands that help."""
    remedies = base_remedies_for_run(summary, command_prefix)
    helps = [WaitReason("base", r.meaning, (r.command,)) for r in remedies]
    checks = [WaitReason("check", c.failure[0], details=c.failure[1:]) for c in failed_base_checks(summary)]
    return [WaitReason("base", base_stop_reason(summary.base_problem), urgent=True), *checks, *helps]


def _failed_delivery_reason(
    machine: Machine, event: EventDef, summary: RunSummary, command_prefix: str
) -> WaitReason:
    detail = " ".join(summary.detail.split())
    sentence = f"the delivery failed: {detail}" if detail else "the delivery failed"
    command = f"{command_prefix} {event_command(machine, event, summary.run)}"
    return WaitReason("delivery", sentence, (command,), urgent=True)


def _open_gate_reason(gate: GateView, summary: RunSummary, command_prefix: str) -> WaitReason:
    question_text = f"it waits for an answer: {gate_question(gate)} (gate {gate.id})"
    return WaitReason(
        "gate",
        f"{question_text} {summary.cause}".rstrip(),
        (
            *gate_commands(gate, command_prefix),
            *(f"{command_prefix} {c}" for c in summary.side_commands if "--override" in c),
        ),
    )


def _running_work_reason(work: RunningWork, run: str, owner: str | None, now: int, prefix: str) -> WaitReason:
    name = running_work_name(work)
    if work.held:
        return WaitReason("held", f"{name} is held until the budget is raised")
    if work.due is None:
        again = f", attempt {work.attempt} ({work.retry})" if work.retry else ""
        twice = f", begun {work.starts} times: it may have run twice" if work.starts > 1 else ""
        return _driver_reason("work", f"{name} is running{again}{twice}", run, owner, prefix)
    if work.due > now:
        when = f"{format_timestamp(work.due)} UTC, {format_duration(work.due - now)} from now"
        return WaitReason("timer", f"{name} waits until {when}")
    late = f"{name} was due {format_duration(now - work.due)} ago"
    if owner is not None:
        return WaitReason("timer", f"{late}; {owner} drives the run")
    resume = f"{prefix} resume {run}"
    return WaitReason("timer", f"{late}, and no driver is running", (resume,), urgent=True)


def _driver_reason(kind: str, what: str, run: str, owner: str | None, prefix: str) -> WaitReason:
    if owner is not None:
        return WaitReason(kind, f"{what}; {owner} drives it", (f"{prefix} watch {run}",))
    return WaitReason(kind, f"{what}, but no driver is running", (f"{prefix} resume {run}",), urgent=True)


def _legal_event_reason(machine: Machine, event: EventDef, run: str, command_prefix: str) -> WaitReason:
    command = f"{command_prefix} {event_command(machine, event, run)}"
    return WaitReason("event", f"{event.name}: {event.meaning}", (command,))


def wait_reason_lines(reasons: list[WaitReason]) -> list[tuple[str, bool]]:
    """Renders reasons as lines, each with whether it is urgent."""
    reason_lines: list[tuple[str, bool]] = []
    for reason in reasons:
        reason_lines.append((printable_line(f"• {reason.what}"), reason.urgent))
        reason_lines += [(f"  {line}", False) for line in reason.details]
        reason_lines += [(f"    {command}", False) for command in reason.commands]
    return reason_lines
