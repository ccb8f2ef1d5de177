"""Renders a run as a Markdown report: what was asked, decided, changed and proven, and by whom.

`quotation.py` quotes outside text, so that it cannot add a heading or a table row.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from steersman.judges.text import clip_text, count_with_noun
from steersman.kernel.definition import STAY
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot, runtime_field
from steersman.kernel.tape import Entry
from steersman.views.base_stop import base_stop_reason
from steersman.views.run_summary import (
    CheckStatus,
    PayloadReader,
    RunFacts,
    RunSummary,
    actor_name,
    verdict_words,
)
from steersman.views.screen import quote_block, quote_cell, quote_inline
from steersman.views.time_format import FIGURE_LABELS, format_duration, format_figure, format_timestamp

# ── reviews ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Reads the reviews of a run from its tape, in its order.
#
# **Invariant:** a review whose result came too late to count is left out.


class RecordedReview(msgspec.Struct, frozen=True):
    """One review that fits its contract."""

    round: int
    entry: int
    by: str
    decision: str
    summary: str


def find_recorded_reviews(entries: Sequence[Entry], text: PayloadReader) -> tuple[RecordedReview, ...]:
    """Returns every review that counted."""
    rounds = {i.id: i.input.get("round", 0) for entry in entries for i in entry.planned}
    recorded = []
    for entry in entries:
        reply = entry.data.get("reply") if isinstance(entry.data, dict) and not entry.late else None
        if isinstance(reply, dict) and "summary" in reply:
            decision_and_summary = (reply.get("decision", ""), text(reply["summary"]))
            recorded.append(
                RecordedReview(
                    rounds.get(entry.cause, 0), entry.seq, actor_name(entry.actor), *decision_and_summary
                )
            )
    return tuple(recorded)


def recorded_reviews_section(recorded: Sequence[RecordedReview]) -> list[str]:
    """Renders reviews as a section of a report."""
    if not recorded:
        return []
    cells = ((r.round, r.entry, r.by, r.decision, r.summary) for r in recorded)
    rows = ([quote_cell(str(cell)) for cell in row] for row in cells)
    return ["## Reviews", "", *table_lines(("round", "entry", "who", "decision", "in its words"), rows)]


# ── report ────────────────────────────────────────────────────────────────────────────────


# The context fields that a person's answer sets, in words. An answer to the evidence or merge gate counts for one tree.
_APPROVAL_WORDS = {
    "confirmed_by": "confirmed the proposal",
    "accepted_by": "accepted the evidence at its gate",
    "merged_by": "approved the merge at its gate",
    "decided_by": "accepted the change",
}
_BOUND_TO_TREE = ("accepted_by", "merged_by")


class Approval(msgspec.Struct, frozen=True):
    """One person's approval of a delivery."""

    person: str
    what: str
    digest: str  # of the tree or the contract that the answer named
    seq: int


class DeliveredTree(msgspec.Struct, frozen=True):
    """The newest delivery of a run."""

    tree: str
    commit: str
    approvals: tuple[Approval, ...] = ()


class ReportFacts(msgspec.Struct, frozen=True, eq=False):
    """The input of a report."""

    facts: RunFacts
    summary: RunSummary

    @property
    def delivery(self) -> DeliveredTree | None:
        """The newest delivery, with the people who approved it."""
        return find_delivered_tree(self.facts.entries)


CHECK_COLUMNS = ("check", "verdict", "exit", "tests")
ReportSections = Callable[[ReportFacts], list[str]]


def render_run_report(report: ReportFacts, of_machine: ReportSections) -> str:
    """Renders the whole report; `of_machine` renders the machine's sections, between decisions and delivery."""
    machine = report.facts.machine
    summary = report.summary
    entries = report.facts.entries
    text = report.facts.text
    parts = [
        *_report_head(machine, summary),
        *quoted_section("Task", text(runtime_field(report.facts.snapshot.context, "task_ref"))),
        *quoted_section("Issue text (not the person's words)", summary.issue),
        *_decisions_section(entries, text),
        *of_machine(report),
        *_delivery_section(summary, report.delivery),
        *_doubts_section(summary),
        *_refused_places_section(entries, text),
        *_budget_section(summary),
        *_tape_section(entries, report.facts.snapshot),
    ]
    return "\n".join(parts).rstrip() + "\n"


def default_report_sections(report: ReportFacts) -> list[str]:
    """Returns the sections for a machine without any of its own: reviews, findings and checks."""
    return [*reviews_section(report), *findings_section(report), *check_evidence_section(report)]


def reviews_section(report: ReportFacts) -> list[str]:
    """Renders each review in its own words."""
    return recorded_reviews_section(find_recorded_reviews(report.facts.entries, report.facts.text))


def _report_head(machine: Machine, details: RunSummary) -> list[str]:
    rows = [
        ("outcome", details.outcome or "none yet"),
        ("status", details.status),
        ("state", f"{details.state}: {details.meaning}"),
        ("rounds", f"{details.round} of {details.rounds}" if details.rounds else str(details.round)),
        ("machine", f"{details.machine} ({machine.digest})"),
        *((("approval", f"not isolated: {details.not_isolated}"),) if details.not_isolated else ()),
        ("begun", f"{format_timestamp(details.created)} UTC"),
        (
            "last step",
            f"{format_timestamp(details.at)} UTC, {format_duration(details.at - details.created)} later",
        ),
    ]
    table = [(name, quote_cell(value)) for name, value in rows]
    # The base tree has its own section.
    why = base_stop_reason(details.base_problem) if details.base_problem else details.detail
    detail = quoted_section("Why it stopped", why) if why else []
    return [f"# Run {details.run}: {quote_inline(details.title)}", "", *table_lines(("", ""), table), *detail]


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Renders a table, with an empty line after it; the cells are quoted already."""
    head = f"| {' | '.join(columns)} |" if any(columns) else "|" + " |" * len(columns)
    return [head, "|" + "---|" * len(columns), *(f"| {' | '.join(row)} |" for row in rows), ""]


def quoted_section(title: str, words: str) -> list[str]:
    """Renders a section that quotes a text; nothing for an empty one."""
    return [f"## {title}", "", *quote_block(words), ""] if words.strip() else []


def _decisions_section(entries: Sequence[Entry], text: PayloadReader) -> list[str]:
    person_entries = [e for e in entries if e.actor.startswith("person:") and e.kind != "created"]
    if not person_entries:
        return []
    rows = [
        (
            str(e.seq),
            format_timestamp(e.at),
            quote_cell(actor_name(e.actor)),
            _decision_cell(e),
            quote_cell(_decision_words(e, text)),
        )
        for e in person_entries
    ]
    return ["## What people decided", "", *table_lines(("entry", "UTC", "who", "what", "why"), rows)]


def _decision_cell(entry: Entry) -> str:
    choice = entry.data.get("choice", "") if isinstance(entry.data, dict) else ""
    what = entry.event or entry.kind
    if entry.kind == "refused":
        return f"{quote_cell(what)} (refused)"
    return f"{quote_cell(what)}: {quote_cell(choice)}" if choice else quote_cell(what)


def _decision_words(entry: Entry, text: PayloadReader) -> str:
    answer_text = text(entry.data.get("text", "")) if isinstance(entry.data, dict) else ""
    return clip_text(" ".join((entry.why or answer_text).split()), 300)


def rounds_section(report: ReportFacts) -> list[str]:
    """Renders the rounds, each with its outcome."""
    records = [
        (e.seq, op[2])
        for e in report.facts.entries
        for op in e.ops
        if op[0] == "append" and op[1] == "rounds"
    ]
    rows = [
        (
            str(record["round"]),
            record.get("outcome", record["kind"]),
            f"`{str(record.get('tree', '') or record.get('contract', ''))[:12] or '–'}`",
            str(seq),
        )
        for seq, record in records
    ]
    columns = ("round", "outcome", "tree or contract", "entry")
    return ["## Rounds", "", *table_lines(columns, rows)] if rows else []


def findings_section(report: ReportFacts) -> list[str]:
    """Renders the findings of reviewers, each with its state."""
    rows = [
        (f.id, f.state, str(f.since), str(f.fixed or "–"), quote_cell(clip_text(f.text, 500)))
        for f in report.summary.findings
    ]
    columns = ("id", "state", "since round", "fixed in", "what")
    return ["## Findings", "", *table_lines(columns, rows)] if rows else []


def check_evidence_section(report: ReportFacts) -> list[str]:
    """Renders the checks of the tree itself, then those of its variants, which are no evidence for the tree."""
    details, delivery = report.summary, report.delivery
    if not details.checks:
        return ["## Evidence", "", "No check has run, so nothing is proven.", ""]
    own = [c for c in details.checks if not c.variant]
    rows = [(*_check_cells(c), quote_cell(" ".join(c.argv))) for c in own]
    about = f"Run by steersman itself on tree `{details.tree}`" if details.tree else "Run by steersman itself"
    if delivery is not None and delivery.tree:
        same = delivery.tree == details.tree
        about += ", which was delivered" if same else f"; what was delivered is tree `{delivery.tree}`"
    return [
        "## Evidence",
        "",
        f"{about}.",
        "",
        *table_lines((*CHECK_COLUMNS, "argv"), rows),
        *_check_objection_lines(own),
        *_variants_section([c for c in details.checks if c.variant]),
    ]


def _variants_section(checks: list[CheckStatus]) -> list[str]:
    if not checks:
        return []
    return [
        "### Variants of the tree",
        "",
        "The same checks with the base's tests, or on the base's code: they judge the change, and are no evidence for the tree.",
        "",
        *table_lines(CHECK_COLUMNS, map(_check_cells, checks)),
        *_check_objection_lines(checks),
    ]


def _check_cells(check: CheckStatus) -> tuple[str, ...]:
    figures = (_figure_cell(check.exit_code), _figure_cell(check.tests))
    return (quote_cell(check.name), verdict_words(check.verdict, check.known), *figures)


def _check_objection_lines(checks: list[CheckStatus]) -> list[str]:
    reasons = [
        f"- {quote_cell(c.name)}: {quote_cell(clip_text(c.reason, 500))}"
        for c in checks
        if c.reason and not c.failure
    ]
    failures = [line for c in checks if c.failure for line in (*quote_block("\n".join(c.failure)), "")]
    return [*([*reasons, ""] if reasons else []), *failures]


def _figure_cell(number: int | None) -> str:
    return "–" if number is None else str(number)


def _delivery_section(details: RunSummary, delivery: DeliveredTree | None) -> list[str]:
    if not details.delivered:
        return []
    tree = delivery.tree if delivery is not None and delivery.tree else details.tree
    return [
        "## Delivered",
        "",
        f"{quote_inline(details.delivered)} at commit `{details.commit}`, tree `{tree}`, from base `{details.base}`.",
        "",
        *_approvaltable_lines(delivery),
        *([f"Draft pull request: {quote_inline(details.url)}", ""] if details.url else []),
        *([f"Reverted by commit `{details.reverted}`.", ""] if details.reverted else []),
    ]


def find_delivered_tree(entries: Sequence[Entry]) -> DeliveredTree | None:
    """Returns the newest delivery with the people who approved it; None where nothing was delivered."""
    approvals: dict[str, Approval] = {}
    delivered: DeliveredTree | None = None
    for entry in entries:
        data = entry.data if isinstance(entry.data, dict) else {}
        sets = {op[1]: op[2] for op in entry.ops if op[0] == "set"}
        for field in _APPROVAL_WORDS.keys() & sets.keys():
            approvals.pop(field, None)
            if sets[field] and data.get("choice", "") == "approve":
                approvals[field] = Approval(
                    sets[field], _APPROVAL_WORDS[field], data.get("digest", ""), entry.seq
                )
        if sets.get("delivered_commit"):
            tree = data.get("tree", "")
            counts = [a for field, a in approvals.items() if field not in _BOUND_TO_TREE or a.digest == tree]
            delivered = DeliveredTree(
                tree, sets["delivered_commit"], tuple(sorted(counts, key=lambda a: a.seq))
            )
    return delivered


def _approvaltable_lines(delivery: DeliveredTree | None) -> list[str]:
    if delivery is None:
        return []
    if not delivery.approvals:
        return ["The checks passed, and no gate asked a person.", ""]
    rows = [(quote_cell(a.person), a.what, f"`{a.digest}`", str(a.seq)) for a in delivery.approvals]
    return table_lines(("who", "what", "tree or contract", "entry"), rows)


def _doubts_section(details: RunSummary) -> list[str]:
    doubt_lines = [
        f"- `{t.id}` ({t.job}) was begun {t.starts} times: it may have run twice." for t in details.twice
    ]
    doubt_lines += [
        f"- Entry {o.seq}: {quote_cell(o.person)} waived {quote_inline(o.source)} → {quote_inline(o.to)}: {quote_inline(o.reason)}"
        for o in details.overrides
    ]
    return ["## Doubts and overrides", "", *doubt_lines, ""] if doubt_lines else []


def _refused_places_section(entries: Sequence[Entry], text: PayloadReader) -> list[str]:
    """Renders the places that agents asked their sandbox for and did not get."""
    place_lines = [
        f"- Entry {e.seq}, {quote_cell(actor_name(e.actor))}: {quote_inline(place)}"
        for e in entries
        if isinstance(e.data, dict) and e.data.get("refused_ref")
        for place in text(e.data["refused_ref"]).splitlines()
    ]
    return ["## Refused places", "", *place_lines, ""] if place_lines else []


def _budget_section(details: RunSummary) -> list[str]:
    rows = [
        (
            FIGURE_LABELS.get(f.name, f.name),
            format_figure(f.name, f.spent),
            format_figure(f.name, f.limit) if f.limit is not None else "–",
        )
        for f in details.budget
        if f.name != "unknown"
    ]
    if not rows:
        return []
    silent = next((f.spent for f in details.budget if f.name == "unknown"), 0)
    note = (
        [f"{silent} calls did not report their cost, so the figures are a lower bound.", ""] if silent else []
    )
    return ["## Budget", "", *table_lines(("", "spent", "limit"), rows), *note]


def _tape_section(entries: Sequence[Entry], snapshot: Snapshot) -> list[str]:
    refused = sum(1 for e in entries if e.kind == "refused")
    sentence = f"{snapshot.seq} entries, the last with hash `{snapshot.hash}`, and {count_with_noun(refused, 'event')} refused."
    return ["## Tape", "", sentence, "", f"Verify it with `steersman audit verify {snapshot.run}`."]


# ── timeline ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Builds a run's timeline from its tape: every step with its round and duration, and the rounds.
#
# **Invariant:** a function of the entries; the machine supplies only the labels of its rows.


STEP_KINDS = ("created", "transition", "override")


class TimelineStep(msgspec.Struct, frozen=True, rename={"source": "from"}):
    """One step."""

    index: int
    seq: int
    at: int
    source: str | None
    to: str
    label: str
    event: str
    actor: str
    round: int
    duration: int  # ms since the step before
    took: int | None = None  # microseconds that the effect behind it ran, where there was one


def build_timeline(
    entries: Iterable[Entry], machine: Machine | None = None, *, round_field: str = ""
) -> Iterator[TimelineStep]:
    """Yields the steps in order; without the machine they have no labels, without its field for rounds no round."""
    round_, before, index = 0, None, 0
    for entry in entries:
        round_ = _round_after_entry(round_, entry, round_field)
        if entry.kind not in STEP_KINDS:
            continue
        index += 1
        yield TimelineStep(
            index=index,
            seq=entry.seq,
            at=entry.at,
            source=entry.source,
            to=entry.to,
            label=_taken_row_label(machine, entry),
            event=entry.event,
            actor=entry.actor,
            round=round_,
            duration=entry.at - before if before is not None else 0,
            took=entry.took,
        )
        before = entry.at


def _round_after_entry(now: int, entry: Entry, round_field: str) -> int:
    """Returns the round after an entry, as the recorded ops count it."""
    if entry.context is not None:
        now = entry.context.get(round_field, 0)
    for op in entry.ops:
        if op[1] == round_field:
            now = op[2] if op[0] == "set" else now + op[2] if op[0] == "add" else now
    return now


def _taken_row_label(machine: Machine | None, entry: Entry) -> str:
    """Returns the label of the row that was taken."""
    for row in machine.lookup.get((entry.source, entry.event), ()) if machine is not None else ():
        target = entry.source if row.to is STAY else row.to.name
        if target == entry.to and (row.to is STAY) == entry.stay:
            return row.label
    return ""
