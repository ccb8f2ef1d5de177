"""Why a run stands still, in one line: why its evidence is in question, who broke down and how, which child run ended how, what speaks against going on.

**Invariant:** read from the tape and its texts; a line of ours begins it, whatever others have written.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from steersman.contracts.commands import CommandResult, full_output
from steersman.judges.text import clip, one_line
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot, fields
from steersman.kernel.tape import Entry
from steersman.views.gates import EVIDENCE, evidence_reason

Text = Callable[[str], str]
WAITING = "waiting"  # for tasks that come first
STILL = ("stuck", "broken", "unwritten", WAITING)  # the steps on which a task waits because it cannot go on
_LONGEST = 400
_SHORT = {
    "agent_failed": "An agent broke down",
    "crew_failed": "The crew ended without approval",
    "test_failures": "The tests did not pass",
    "check_cannot_start": "A check cannot start on the base tree",
    "base_not_green": "Checks fail on the base tree",
}


def cause(m: Machine, s: Snapshot, entries: Sequence[Entry], text: Text) -> str:
    """The line; nothing where the run does not stand still."""
    c = fields(s.context)
    asked = next((i for i in s.items.values() if i.kind == "gate" and i.job == EVIDENCE), None)
    if asked is not None and not s.ended:
        return evidence_reason(asked.input.get("shown", {}), text)
    if s.ended or c.get("step") not in STILL:
        return ""
    if c["step"] == WAITING:
        return clip(one_line(_lines(text(c["detail_ref"]))), _LONGEST)
    moves = [n for n, e in enumerate(entries) if e.kind == "transition" and not e.stay]
    if not moves:
        return ""
    last = entries[moves[-1]]
    since = entries[moves[-2] + 1 if len(moves) > 1 else 0 : moves[-1] + 1]
    often = " (too often to go back by itself)" if last.guards.get("room:regressions") is False else ""
    what = _SHORT.get(last.event) or m.events[last.event].meaning.rstrip(".")
    roles = {item.id: item.input.get("role", "") for e in entries for item in e.planned}
    told = f"{what}{often}: {_why(last, since, roles, s, text)}".rstrip(": ")
    return clip(one_line(told), _LONGEST)


def _why(last: Entry, since: Sequence[Entry], roles: dict[str, str], s: Snapshot, text: Text) -> str:
    c, data = fields(s.context), last.data if isinstance(last.data, dict) else {}
    match last.event:
        case "agent_failed":
            asked = ((roles[e.cause], e) for e in since if e.kind == "transition" and roles.get(e.cause))
            return "; ".join(filter(None, (_agent(role, e.data, text) for role, e in asked)))
        case "crew_failed":
            return f"run {data.get('run', '')} ended: {data.get('outcome', '') or 'without an outcome'}"
        case "test_failures":
            return _checks(text(c.get("results_ref", "")), text(c.get("told_ref", "")))
        case "check_cannot_start" | "base_not_green":
            return _checks(text(c.get("baseline_ref", "")), text(c.get("detail_ref", "")))
        case _:
            return _lines(text(c.get("detail_ref", "")) or text(c.get("told_ref", "")))


def _agent(role: str, said: Any, text: Text) -> str:
    """Who gave nothing that can be kept, by which class of error, and its own words; nothing of whoever did."""
    data = said if isinstance(said, dict) else {}
    if not data.get("error") and data.get("reply") is not None:
        return ""
    words = _lines(text(data.get("detail_ref", "")) or text(data.get("problems_ref", "")))
    by = f" ({data['provider']})" if data.get("provider") else ""
    named = f"{role}{by}: {data.get('error') or 'no reply that fits its contract'}"
    return f"{named}: {words}" if words else named


def _checks(results: str, told: str) -> str:
    try:
        found = msgspec.json.decode(results or "[]", type=list[CommandResult])
    except msgspec.MsgspecError:  # pruned
        return _lines(told)
    wrong = [_check(r) for r in found if r.verdict != "passed" and not r.variant]
    wrong += [f"{r.name}: {f.sentence}" for r in found for f in r.findings if f.weight == "failure"]
    return "; ".join(wrong) or _lines(told)


def _check(r: CommandResult) -> str:
    code = f" (exit {r.exit_code})" if r.exit_code is not None else ""
    lines = full_output(r).splitlines()
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    more = r.reason or last
    return f"{r.name}: {r.verdict}{code}" + (f": {clip(more, 160)}" if more else "")


def _lines(words: str) -> str:
    return "; ".join(line.strip().removeprefix("- ") for line in words.splitlines() if line.strip())
