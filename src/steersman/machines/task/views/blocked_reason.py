"""Why a task cannot go on by itself, in one line: evidence in question, a failed agent, a child run, a failed guard.

**Invariant:** the line begins with words of ours and then quotes text from outside.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from steersman.contracts.commands import CommandResult, full_output
from steersman.judges.text import clip_text, printable_line
from steersman.kernel.tape import Entry
from steersman.machines.task.context import TaskContext
from steersman.views.run_summary import PayloadReader, RunFacts

WAITING_STEP = "waiting"  # for tasks that come first
# The steps on which a task waits because it cannot go on.
BLOCKED_STEPS = ("stuck", "broken", "unwritten", WAITING_STEP)
_MAX_REASON_LENGTH = 400
_SHORT_EVENT_MEANINGS = {
    "agent_failed": "An agent broke down",
    "crew_failed": "The crew ended without approval",
    "test_failures": "The tests did not pass",
    "check_cannot_start": "A check cannot start on the base tree",
    "base_not_green": "Checks fail on the base tree",
}


def find_blocked_cause(facts: RunFacts) -> str:
    """The line; nothing where the task does not stand still."""
    snapshot, entries, text = facts.snapshot, facts.entries, facts.text
    context: TaskContext = snapshot.context
    if snapshot.ended or context.step not in BLOCKED_STEPS:
        return ""
    if context.step == WAITING_STEP:
        return clip_text(printable_line(_join_text_lines(text(context.detail_ref))), _MAX_REASON_LENGTH)
    moves = [n for n, e in enumerate(entries) if e.kind == "transition" and not e.stay]
    if not moves:
        return ""
    last = entries[moves[-1]]
    since = entries[moves[-2] + 1 if len(moves) > 1 else 0 : moves[-1] + 1]
    often = " (too often to go back by itself)" if last.guards.get("room:regressions") is False else ""
    what = _SHORT_EVENT_MEANINGS.get(last.event) or facts.machine.events[last.event].meaning.rstrip(".")
    roles = {item.id: item.input.get("role", "") for e in entries for item in e.planned}
    reason = f"{what}{often}: {_last_event_reason(last, since, roles, context, text)}".rstrip(": ")
    return clip_text(printable_line(reason), _MAX_REASON_LENGTH)


def _last_event_reason(
    last: Entry, since: Sequence[Entry], roles: dict[str, str], context: TaskContext, text: PayloadReader
) -> str:
    data = last.data if isinstance(last.data, dict) else {}
    match last.event:
        case "agent_failed":
            entries = ((roles[e.cause], e) for e in since if e.kind == "transition" and roles.get(e.cause))
            return "; ".join(filter(None, (_agent_failure_reason(role, e.data, text) for role, e in entries)))
        case "crew_failed":
            return f"run {data.get('run', '')} ended: {data.get('outcome', '') or 'without an outcome'}"
        case "test_failures":
            return _failed_checks_reason(text(context.results_ref), text(context.told_ref))
        case "check_cannot_start" | "base_not_green":
            return _failed_checks_reason(text(context.baseline_ref), text(context.detail_ref))
        case _:
            return _join_text_lines(text(context.detail_ref) or text(context.told_ref))


def _agent_failure_reason(role: str, facts: Any, text: PayloadReader) -> str:
    """The agent that failed, its class of error and its own words; nothing where none failed."""
    data = facts if isinstance(facts, dict) else {}
    if not data.get("error") and data.get("reply") is not None:
        return ""
    words = _join_text_lines(text(data.get("detail_ref", "")) or text(data.get("problems_ref", "")))
    by = f" ({data['provider']})" if data.get("provider") else ""
    failure = f"{role}{by}: {data.get('error') or 'no reply that fits its contract'}"
    return f"{failure}: {words}" if words else failure


def _failed_checks_reason(results: str, fallback_text: str) -> str:
    try:
        command_results = msgspec.json.decode(results or "[]", type=list[CommandResult])
    except msgspec.MsgspecError:  # pruned
        return _join_text_lines(fallback_text)
    wrong = [_failed_check_summary(r) for r in command_results if r.verdict != "passed" and not r.variant]
    wrong += [f"{r.name}: {f.sentence}" for r in command_results for f in r.findings if f.weight == "failure"]
    return "; ".join(wrong) or _join_text_lines(fallback_text)


def _failed_check_summary(result: CommandResult) -> str:
    code = f" (exit {result.exit_code})" if result.exit_code is not None else ""
    lines = full_output(result).splitlines()
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    more = result.reason or last
    return f"{result.name}: {result.verdict}{code}" + (f": {clip_text(more, 160)}" if more else "")


def _join_text_lines(words: str) -> str:
    return "; ".join(line.strip().removeprefix("- ") for line in words.splitlines() if line.strip())
