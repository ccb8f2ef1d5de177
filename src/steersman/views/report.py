"""A run as a Markdown report: what was asked, decided, changed and proven, and by whom.

Texts from outside are quoted, never interpreted (`quotation.py`): they cannot add a heading or a table row of their own.
"""

from collections.abc import Sequence

from steersman.judges.text import clip
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot, fields
from steersman.kernel.tape import Entry
from steersman.views import proof
from steersman.views.approvals import DeliveredTree, delivered_tree
from steersman.views.base_stop import base_stop_reason
from steersman.views.moments import LABELS, amount, span, stamp
from steersman.views.planning.outcome import outcome_lines
from steersman.views.quotation import block, cell, inline
from steersman.views.reviews import reviews, section
from steersman.views.status import Check, Status, Text, person, verdict_words


def report(m: Machine, s: Snapshot, shown: Status, entries: Sequence[Entry], text: Text) -> str:
    """The whole report; ends with a newline."""
    c, handed = fields(s.context), delivered_tree(entries)
    parts = [
        *_head(m, shown),
        *_quoted("Task", text(c.get("task_ref", ""))),
        *_quoted("Issue text (not the person's words)", shown.issue),
        *_decisions(entries, text),
        *_discussion(c, text),
        *_rounds(entries),
        *section(reviews(entries, text)),
        *_findings(shown),
        *proof.escalation(c, text),
        *(_evidence(shown, handed) if m.tree else _plan(s, text)),
        *proof.questions(c, text),
        *proof.base_tree(c, text),
        *_delivery(shown, handed),
        *_doubts(shown),
        *_refused(entries, text),
        *_budget(shown),
        *_tape(entries, s),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _head(m: Machine, s: Status) -> list[str]:
    rows = [
        ("outcome", s.outcome or "none yet"),
        ("status", s.status),
        ("state", f"{s.state}: {s.meaning}"),
        ("rounds", f"{s.round} of {s.rounds}" if s.rounds else str(s.round)),
        ("machine", f"{s.machine} ({m.digest})"),
        *((("approval", f"not isolated: {s.not_isolated}"),) if s.not_isolated else ()),
        ("begun", f"{stamp(s.created)} UTC"),
        ("last step", f"{stamp(s.at)} UTC, {span(s.at - s.created)} later"),
    ]
    table = [f"| {name} | {cell(value)} |" for name, value in rows]
    why = (
        base_stop_reason(s.base_problem) if s.base_problem else s.detail
    )  # the base tree has its own section
    detail = _quoted("Why it stopped", why) if why else []
    return [f"# Run {s.run}: {inline(s.title)}", "", "| | |", "|---|---|", *table, "", *detail]


def _quoted(title: str, words: str) -> list[str]:
    return [f"## {title}", "", *block(words), ""] if words.strip() else []


def _decisions(entries: Sequence[Entry], text: Text) -> list[str]:
    told = [e for e in entries if e.actor.startswith("person:") and e.kind != "created"]
    if not told:
        return []
    rows = [
        f"| {e.seq} | {stamp(e.at)} | {cell(person(e.actor))} | {_decided(e)} | {cell(_words(e, text))} |"
        for e in told
    ]
    return [
        "## What people decided",
        "",
        "| entry | UTC | who | what | why |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]


def _decided(e: Entry) -> str:
    choice = e.data.get("choice", "") if isinstance(e.data, dict) else ""
    what = e.event or e.kind
    if e.kind == "refused":
        return f"{cell(what)} (refused)"
    return f"{cell(what)}: {cell(choice)}" if choice else cell(what)


def _words(e: Entry, text: Text) -> str:
    said = text(e.data.get("text", "")) if isinstance(e.data, dict) else ""
    return clip(" ".join((e.why or said).split()), 300)


def _discussion(c: dict[str, object], text: Text) -> list[str]:
    pieces = (
        ("The proposal", "proposal_ref"),
        ("The reviewer on it", "reviewer_notes_ref"),
        ("The tester on it", "tester_notes_ref"),
    )
    told = [line for title, ref in pieces for line in _quoted(title, text(str(c.get(ref, ""))))]
    digest = c.get("contract_digest", "")
    return [*told, f"The discussion is bound as contract `{digest}`.", ""] if told and digest else told


def _rounds(entries: Sequence[Entry]) -> list[str]:
    rows = [
        f"| {op[2]['round']} | {op[2].get('outcome', op[2]['kind'])} | `{str(op[2].get('tree', '') or op[2].get('contract', ''))[:12] or '–'}` | {e.seq} |"
        for e in entries
        for op in e.ops
        if op[0] == "append" and op[1] == "rounds"
    ]
    if not rows:
        return []
    return ["## Rounds", "", "| round | outcome | tree or contract | entry |", "|---|---|---|---|", *rows, ""]


def _findings(s: Status) -> list[str]:
    if not s.findings:
        return []
    rows = [
        f"| {f.id} | {f.state} | {f.since} | {f.fixed or '–'} | {cell(clip(f.text, 500))} |"
        for f in s.findings
    ]
    return [
        "## Findings",
        "",
        "| id | state | since round | fixed in | what |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]


def _plan(s: Snapshot, text: Text) -> list[str]:
    """What a planning run has brought: nothing of it was executed, so that there is nothing to prove."""
    return _quoted("Plan", "\n".join(outcome_lines(s, text)))


def _evidence(s: Status, handed: DeliveredTree | None) -> list[str]:
    """The checks of the tree itself; what ran on variants of it is no evidence for it and stands apart."""
    if not s.checks:
        return ["## Evidence", "", "No check has been run: nothing here is proven.", ""]
    own = [c for c in s.checks if not c.variant]
    rows = [
        f"| {cell(c.name)} | {verdict_words(c.verdict, c.known)} | {_figure(c.exit_code)} | {_figure(c.tests)} | {cell(' '.join(c.argv))} |"
        for c in own
    ]
    about = f"Run by steersman itself on tree `{s.tree}`" if s.tree else "Run by steersman itself"
    if handed is not None and handed.tree:
        same = handed.tree == s.tree
        about += ", which was delivered" if same else f"; what was delivered is tree `{handed.tree}`"
    return [
        "## Evidence",
        "",
        f"{about}.",
        "",
        "| check | verdict | exit | tests | argv |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *_said_against(own),
        *_variants([c for c in s.checks if c.variant]),
    ]


def _variants(checks: list[Check]) -> list[str]:
    if not checks:
        return []
    rows = [
        f"| {cell(c.name)} | {verdict_words(c.verdict, c.known)} | {_figure(c.exit_code)} | {_figure(c.tests)} |"
        for c in checks
    ]
    return [
        "### Variants of the tree",
        "",
        "The same checks with the base's tests, or on the base's code: they judge the change, and are no evidence for the tree.",
        "",
        "| check | verdict | exit | tests |",
        "|---|---|---|---|",
        *rows,
        "",
        *_said_against(checks),
    ]


def _said_against(checks: list[Check]) -> list[str]:
    reasons = [f"- {cell(c.name)}: {cell(clip(c.reason, 500))}" for c in checks if c.reason and not c.failure]
    failures = [line for c in checks if c.failure for line in (*block("\n".join(c.failure)), "")]
    return [*([*reasons, ""] if reasons else []), *failures]


def _figure(number: int | None) -> str:
    return "–" if number is None else str(number)


def _delivery(s: Status, handed: DeliveredTree | None) -> list[str]:
    if not s.delivered:
        return []
    tree = handed.tree if handed is not None and handed.tree else s.tree
    return [
        "## Delivered",
        "",
        f"{inline(s.delivered)} at commit `{s.commit}`, tree `{tree}`, from base `{s.base}`.",
        "",
        *_approvals(handed),
        *([f"Draft pull request: {inline(s.url)}", ""] if s.url else []),
        *([f"Taken back by commit `{s.reverted}`.", ""] if s.reverted else []),
    ]


def _approvals(handed: DeliveredTree | None) -> list[str]:
    if handed is None:
        return []
    if not handed.approvals:
        return ["Nobody was asked: the checks passed, and no gate was open.", ""]
    rows = [f"| {cell(a.person)} | {a.what} | `{a.digest}` | {a.seq} |" for a in handed.approvals]
    return ["| who | what | tree or contract | entry |", "|---|---|---|---|", *rows, ""]


def _doubts(s: Status) -> list[str]:
    told = [f"- `{t.id}` ({t.job}) was begun {t.starts} times: it may have run twice." for t in s.twice]
    told += [
        f"- Entry {o.seq}: {cell(o.person)} waived {inline(o.source)} → {inline(o.to)}: {inline(o.reason)}"
        for o in s.overrides
    ]
    return ["## Doubts and overrides", "", *told, ""] if told else []


def _refused(entries: Sequence[Entry], text: Text) -> list[str]:
    """The places that agents asked their box for and did not get."""
    told = [
        f"- Entry {e.seq}, {cell(person(e.actor))}: {inline(place)}"
        for e in entries
        if isinstance(e.data, dict) and e.data.get("refused_ref")
        for place in text(e.data["refused_ref"]).splitlines()
    ]
    return ["## Places that were refused", "", *told, ""] if told else []


def _budget(s: Status) -> list[str]:
    rows = [
        f"| {LABELS.get(f.name, f.name)} | {amount(f.name, f.spent)} | {amount(f.name, f.limit) if f.limit is not None else '–'} |"
        for f in s.budget
        if f.name != "unknown"
    ]
    if not rows:
        return []
    silent = next((f.spent for f in s.budget if f.name == "unknown"), 0)
    note = (
        [f"{silent} calls did not tell what they cost: the figures are a lower bound.", ""] if silent else []
    )
    return ["## Budget", "", "| | spent | limit |", "|---|---|---|", *rows, "", *note]


def _tape(entries: Sequence[Entry], s: Snapshot) -> list[str]:
    refused = sum(1 for e in entries if e.kind == "refused")
    told = f"{s.seq} entries, the last with hash `{s.hash}`; {refused} events were refused."
    return ["## Tape", "", told, "", f"Verify it with `steersman audit verify {s.run}`."]
