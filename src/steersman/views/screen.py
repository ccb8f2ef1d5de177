"""A run's status as lines of text: what `show` prints and what the live view draws from.

**Invariant:** plain words; colours, cursors and clocks are the face's.
"""

from typing import Any

import msgspec

from steersman.judges.text import clip, count_of, one_line
from steersman.kernel.tape import Entry
from steersman.ports.journal import Gate
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.base_stop import Remedy, base_stop_reason, base_stop_remedies, remedy_lines
from steersman.views.gates import EVIDENCE, commands, question
from steersman.views.moments import LABELS, amount, span, stamp
from steersman.views.status import (
    Check,
    Figure,
    Finding,
    Status,
    Work,
    known_failures_words,
    not_isolated,
    person,
    verdict_words,
)
from steersman.views.ways import command

WIDTH = 200
NO_TESTS = "no test was counted before any change: the change has to bring the first ones"


def screen(s: Status, now: int, me: str = "steersman") -> list[str]:
    """Everything `show` says; where nobody types commands, without those."""
    return [
        *_top(s, now),
        *_section("issue text (not the person's words)", _first_lines(s.issue)),
        *_section("working", [work(w, now) for w in s.working]),
        *_section("waits for you", [line for g in s.gates if not g.answer for line in _asked(s, g, me)]),
        *_section("findings", [finding(f) for f in s.findings]),
        *_section("checks on the base tree", [] if s.checks else base_lines(s)),
        *_section("last checks", [line for c in s.checks for line in (c.failure or [check(c)])]),
        *_section("budget", [figure(f) for f in s.budget]),
        *_section("delivered", [one_line(f"{s.delivered}  {s.commit[:12]}  {s.url}".rstrip())] if s.delivered else []),
        *_section("taken back", [f"by commit {s.reverted[:12]}"] if s.reverted else []),
        *_section("may have run twice", [f"{t.job} ({t.id}), begun {t.starts} times" for t in s.twice]),
        *_section("overrides", [one_line(f"{o.source} → {o.to} by {o.person}: {o.reason} (entry {o.seq})") for o in s.overrides]),
        *_section("in full" if s.cause else "why it stopped", stop_lines(s, me)),
    ]  # fmt: skip


def base_lines(s: Status) -> list[str]:
    """The checks before any change; those that stopped the run are shown with the reason why it stopped."""
    told = [check(c) for c in s.base_checks]
    untested = all(c.verdict in ("passed", "no_tests") and not c.tests for c in s.base_checks)
    return [*told, NO_TESTS] if told and untested else told


def stop_lines(s: Status, me: str) -> list[str]:
    """Why a run stopped; on its base tree with the failing checks and the commands that help."""
    if not s.base_problem:
        return clip(s.detail, 4_000).splitlines()
    failed = _failed_on_base(s)
    shown = [line for c in failed[:1] for line in c.failure] + [c.failure[0] for c in failed[1:]]
    told = [base_stop_reason(s.base_problem), *(shown or s.detail.splitlines())]
    return [*told, *(remedy_lines(stop_remedies(s, me)) if me else [])]


def stop_remedies(s: Status, me: str) -> list[Remedy]:
    """What helps a run that stopped on its base tree."""
    untested = any(not c.tests for c in _failed_on_base(s))
    return base_stop_remedies(s.base_problem, s.run, s.machine, s.title, me, untested=untested)


def _failed_on_base(s: Status) -> list[Check]:
    return [c for c in s.base_checks if c.failure and c.verdict != "no_tests"]


def _asked(s: Status, g: Gate, me: str) -> list[str]:
    """What a gate asks, why where the run cannot go on, and what can be typed."""
    why = [s.cause] if s.cause and g.job in ("again", "others", EVIDENCE) else []
    typed = [*commands(g, me), *(command(word, s.run, me) for word in s.besides if g.job == "again")]
    return [question(g), *why, *(f"  {c}" for c in typed if me)]


def _top(s: Status, now: int) -> list[str]:
    told = [
        one_line(f"run {s.run} · {s.machine} · {s.title}"),
        f"{s.status} · {s.state} since {span(now - s.entered)}" + (f" · {s.outcome}" if s.outcome else ""),
        s.meaning,
        f"{rounds(s)} · {s.entries} entries · begun {stamp(s.created)} UTC",
    ]
    if s.confirmed_by:
        told.append(one_line(f"proposal confirmed by {s.confirmed_by}"))
    if s.refused:
        told.append(f"{s.refused} events were refused: see the tape")
    if s.not_isolated:
        told.append(f"{NOT_ISOLATED}: {s.not_isolated}")
    return told


def _first_lines(text: str) -> list[str]:
    """The first lines of a text of others, and how many more there are."""
    lines = [clip(one_line(line), 76) for line in text.splitlines() if line.strip()]
    more = [f"… and {len(lines) - 5} more lines: see the report"] if len(lines) > 5 else []
    return [*lines[:5], *more]


def _section(name: str, lines: list[str]) -> list[str]:
    return ["", f"{name}:", *(f"  {line}" for line in lines)] if lines else []


def rounds(s: Status) -> str:
    """Where the rounds stand."""
    told = f"round {s.round}" + (f" of {s.rounds}" if s.rounds else "")
    return f"{told} · last round: {s.last_round_outcome}" if s.last_round_outcome else told


def work(w: Work, now: int) -> str:
    """One thing that is under way."""
    who = f"{w.role} · {w.job}" if w.role else w.job
    attempt = f" · attempt {w.attempt} ({w.retry})" if w.retry else ""
    twice = f" · begun {w.starts} times" if w.starts > 1 else ""
    held = " · held until the budget is raised" if w.held else ""
    due = f" · in {span(w.due - now)}" if w.due is not None and w.due > now else ""
    return f"{who}{attempt}{twice}{due}{held}"


def finding(f: Finding) -> str:
    """One finding in one line."""
    where = f"open since round {f.since}" if f.state == "open" else f"fixed in round {f.fixed}"
    return one_line(f"[{f.id}] {where}: {clip(' '.join(f.text.split()), WIDTH)}")


def check(c: Check) -> str:
    """One check in one line."""
    argv = f" · {clip(' '.join(c.argv), WIDTH)}" if c.argv else ""
    reason = f" · {clip(c.reason, WIDTH)}" if c.reason else ""
    if c.known:
        passed = f" · {c.tests} passed" if c.tests else ""
        return one_line(f"{c.name}: {verdict_words(c.verdict, c.known)}{passed}{argv}{reason}")
    tests = f" · {count_of(c.tests, 'test')}" if c.tests is not None else ""
    code = f" · exit {c.exit_code}" if c.exit_code else ""
    return one_line(f"{c.name}: {c.verdict}{tests}{code}{argv}{reason}")


def figure(f: Figure) -> str:
    """One figure of the budget."""
    if f.name == "unknown":
        return f"{f.spent} calls did not tell what they cost"
    limit = f" of {amount(f.name, f.limit)}" if f.limit is not None else ""
    reserved = f" (+ {amount(f.name, f.reserved)} reserved)" if f.reserved else ""
    return f"{LABELS.get(f.name, f.name)}: {amount(f.name, f.spent)}{limit}{reserved}"


def step(e: Entry) -> str | None:
    """An entry in one line for who watches without a terminal; None for what only the tape needs to know."""
    told = _step(e)
    return one_line(told) if told is not None else None


def _checked(e: Entry, part: dict[str, Any]) -> str | None:
    """A check that is over: one that passed and counted no test is not what a test report calls passed."""
    verdict = part.get("verdict", "")
    if part.get("variant") == "new tests":
        return f"new tests on the base's code: {'they pass there too' if verdict == 'passed' else 'not all pass, as it should be'}"
    counted = ", no tests counted" if verdict == "passed" and not part.get("tests") else ""
    if known := part.get("known"):
        counted = f" · {part['passed']} passed" if part.get("passed") else ""
        verdict = verdict_words("known", known)
    name = next((key.partition(":")[2] for item in e.held for key in reversed(item.parts)), "")
    where = " on the base tree" if any(item.job.startswith("measure") for item in e.held) else ""
    return f"{f'check {name}'.rstrip()}{where}{_of_variant(part)}: {verdict}{counted}" if verdict else None


def _measured(told: Any) -> str:
    """What the base tree is like, behind the event that says it was checked."""
    data = msgspec.to_builtins(told)
    tests = count_of(data["tests"], "test") if data.get("tests") else NO_TESTS
    known = f", {known_failures_words(data['known'])}" if data.get("known") else ""
    stale = f"; {data['stale']} names in known_failures did not fail" if data.get("stale") else ""
    return f": {tests}{known}{stale}"


def _of_variant(part: dict[str, Any]) -> str:
    return " with the base's tests" if part.get("variant") else ""


def _step(e: Entry) -> str | None:
    match e.kind:
        case "created" | "transition" | "override":
            way = f"{e.source or '·'} → {e.to}" if not e.stay and e.source != e.to else e.to
            by = f" · {person(e.actor)}" if e.actor != "steersman" else ""
            open_ = f" · {NOT_ISOLATED}: {not_isolated(e)}" if not_isolated(e) else ""
            more = _measured(e.data) if e.event == "baseline_recorded" else ""
            return f"{way}  {e.event}{more}{by}{open_}"
        case "claimed" if not_isolated(e):
            return f"{NOT_ISOLATED}: {not_isolated(e)}"
        case "part_finished":
            return _checked(e, e.data) if isinstance(e.data, dict) else None
        case "effect_started" if e.retry is not None and e.retry.retry_reason == "interrupted":
            jobs = ", ".join(i.job for i in e.held)
            return f"{jobs} was interrupted and is begun again (start {e.retry.retry_count + 1}): it may have run twice"
        case "effect_started" | "timer_set" if e.retry is not None:
            return f"again: {e.retry.retry_reason} (attempt {e.retry.retry_count + 1})"
        case "refused":
            return f"refused: {e.event}: {e.why}"
        case "gate_answered":
            return f"answered by {person(e.actor)}"
        case "effect_finished" | "child_ended" if e.late:
            return f"late, not taken in: {e.cause}"
        case _:
            return None
