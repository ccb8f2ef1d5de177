"""Exactly what a person accepts: the change, who judged it and how, what was run, what was waived, every digest."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from steersman.contracts.task.documents import CodeReview, Copies, Plan, PlanFiles, PlanReview, TestReport
from steersman.contracts.task.words import CODE_REVIEW, COPIES_LIST, FILES, PATCH, PLAN, PLAN_REVIEW, TESTS
from steersman.judges.secret_keys import MARKER
from steersman.judges.task.scope import untouched
from steersman.judges.text import count_of, one_line, printable
from steersman.kernel.snapshot import Snapshot, fields
from steersman.ports.journal import Gate
from steersman.views.gates import GUTTER
from steersman.views.phase import blocking, code_verdict, plan_verdict, unanswered
from steersman.views.status import Status, Text, waiver


def acceptance(s: Snapshot, shown: Status, gate: Gate, text: Text, *, most: int | None = None) -> list[str]:
    """The lines, from the recorded documents; with `most`, so many of the change."""
    c = fields(s.context)
    change = printable(_of(c, PATCH, text)).splitlines()
    rest = len(change) - (most or len(change))
    return [
        f"run {s.run} · {shown.title}",
        f"  tree {c['tree']} on base {c['base_commit'][:12]}, delivered as {c['deliver']} to {c['target'] or 'a branch'}",
        *_followed(c),
        *_held(c, text),
        "",
        "the change:",
        *(f"{GUTTER}{line}".rstrip() for line in change[:most]),
        *([f"  … and {rest} more lines"] if rest > 0 else []),
        *_hidden(change),
        *_left_out(c, text),
        *_left_open(c, text),
        "verdicts:",
        *(f"  {one_line(line)}" for line in _verdicts(c, text)),
        "evidence:",
        *(f"  {one_line(line)}" for line in _evidence(c, shown, text)),
        "overrides:",
        *(f"  {waiver(o)}" for o in shown.overrides),
        *([] if shown.overrides else ["  none"]),
        "documents:",
        *(f"  {digest[:16]}  {name}" for name, digest in sorted(c["artifacts"].items())),
        f"all of it: {gate.digest}",
    ]


def _followed(c: dict[str, Any]) -> list[str]:
    """That what was first judged stood on another commit."""
    times = c["followed"]
    again = f"{times} times" if times > 1 else "once"
    told = (
        f"  {c['target']} has moved {again} since: the change was put on top of it, reviewed and tested again"
    )
    return [told] if times else []


def _held(c: dict[str, object], text: Text) -> Iterator[str]:
    """The frozen plan that none of it leaves."""
    found = _of(c, COPIES_LIST, text)
    plan = msgspec.json.decode(found, type=Copies).held_to if found else ""
    if plan:
        yield f"  held to {plan}"


def _hidden(change: list[str]) -> list[str]:
    """That what is shown and what is delivered differ: nobody accepts a secret without knowing that there is one."""
    places = sum(len(re.findall(MARKER, line)) for line in change if not line.startswith("-"))
    if not places:
        return []
    told = "1 place is" if places == 1 else f"{places} places are"
    return [
        f"  {told} hidden here because of what looks like a secret; the change that is delivered HOLDS it in plain text"
    ]


def _left_out(c: dict[str, Any], text: Text) -> Iterator[str]:
    """What the plan has and the change has not: a file that git ignores is in none."""
    planned, made = _of(c, FILES, text), _of(c, COPIES_LIST, text)
    if not planned or not made:
        return
    there = [one.path for one in msgspec.json.decode(made, type=Copies).files]
    for path in untouched(msgspec.json.decode(planned, type=PlanFiles), there):
        yield f"  planned, and not in the change (nothing was done there, or git ignores it): {one_line(path)}"


def _left_open(c: dict[str, Any], text: Text) -> Iterator[str]:
    """What the planners wanted to know and nobody had to answer."""
    found = _of(c, PLAN, text)
    asked = unanswered(msgspec.json.decode(found, type=Plan)) if found else []
    if asked:
        yield "questions that the plan left open:"
    yield from (f"  {one_line(line)}" for line in asked)


def _of(c: dict[str, object], name: str, text: Text) -> str:
    documents = c["documents"]
    return text(documents.get(name, "")) if isinstance(documents, dict) else ""


def _verdicts(c: dict[str, object], text: Text) -> Iterator[str]:
    kinds: tuple[tuple[str, Any, Any], ...] = (
        (PLAN_REVIEW, plan_verdict, PlanReview),
        (CODE_REVIEW, code_verdict, CodeReview),
    )
    for name, told, kind in kinds:
        found = _of(c, name, text)
        if not found:
            yield f"{name}: there is none"
            continue
        yield from told(found)
        yield from blocking(msgspec.json.decode(found, type=kind))


def _evidence(c: dict[str, object], shown: Status, text: Text) -> Iterator[str]:
    told = _of(c, TESTS, text)
    if not told:
        yield "there is none"
        return
    report = msgspec.json.decode(told, type=TestReport)
    yield f"{'passed' if report.overall_pass else 'NOT passed'} on tree {report.tree}"
    for s in report.suites:
        tests = f", {count_of(s.tests, 'test')}" if s.tests is not None else ""
        only = f", {s.reason}" if s.verdict == "passed" and s.reason else ""
        yield f"  {s.name}: {s.verdict}{tests}{only}: {' '.join(s.argv)}"
    if c["accepted_by"]:
        why = f": {shown.evidence.reason}" if shown.evidence is not None and shown.evidence.reason else ""
        yield f"  what it does to the tests was accepted by {c['accepted_by']}{why}"
