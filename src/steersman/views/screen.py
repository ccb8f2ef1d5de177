"""Renders a run's status as lines of text, for `show` and the live view.

**Invariant:** plain text; faces add colours and clocks.
"""

import re
from typing import Any

import msgspec

from steersman.judges.text import clip_text, count_with_noun, printable_line, printable_text
from steersman.kernel.tape import Entry
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.base_stop import Remedy, base_stop_reason, base_stop_remedies, remedy_lines
from steersman.views.gates import GateView, gate_commands, gate_question
from steersman.views.run_summary import (
    BudgetFigure,
    CheckStatus,
    ReviewFinding,
    RunningWork,
    RunSummary,
    actor_name,
    find_isolation_warning,
    known_failures_words,
    verdict_words,
)
from steersman.views.time_format import FIGURE_LABELS, format_duration, format_figure, format_timestamp

MAX_SCREEN_TEXT = 200
NO_BASE_TESTS = "no test ran on the base tree, so the change has to add the first ones"


def status_screen_lines(details: RunSummary, now: int, command_prefix: str = "steersman") -> list[str]:
    """Renders everything that `show` prints; an empty `command_prefix` leaves the commands out."""
    return [
        *_status_head_lines(details, now),
        *_screen_section("issue text (not the person's words)", _first_issue_lines(details.issue)),
        *_screen_section("working", [running_work_line(w, now) for w in details.working]),
        *_screen_section("waits for you", [line for g in details.gates if not g.answer for line in _open_gate_lines(details, g, command_prefix)]),
        *_screen_section("findings", [review_finding_line(f) for f in details.findings]),
        *_screen_section("checks on the base tree", [] if details.checks else base_check_lines(details)),
        *_screen_section("last checks", [line for c in details.checks for line in (c.failure or [check_status_line(c)])]),
        *_screen_section("budget", [budget_figure_line(f) for f in details.budget]),
        *_screen_section("delivered", [printable_line(f"{details.delivered}  {details.commit[:12]}  {details.url}".rstrip())] if details.delivered else []),
        *_screen_section("reverted", [f"by commit {details.reverted[:12]}"] if details.reverted else []),
        *_screen_section("may have run twice", [f"{t.job} ({t.id}), begun {t.starts} times" for t in details.twice]),
        *_screen_section("overrides", [printable_line(f"{o.source} → {o.to} by {o.person}: {o.reason} (entry {o.seq})") for o in details.overrides]),
        *_screen_section("in full" if details.cause else "why it stopped", stop_reason_lines(details, command_prefix)),
    ]  # fmt: skip


def base_check_lines(details: RunSummary) -> list[str]:
    """Renders the checks on the base tree; `stop_reason_lines` shows those that stopped the run."""
    check_lines = [check_status_line(c) for c in details.base_checks]
    untested = all(c.verdict in ("passed", "no_tests") and not c.tests for c in details.base_checks)
    return [*check_lines, NO_BASE_TESTS] if check_lines and untested else check_lines


def stop_reason_lines(details: RunSummary, command_prefix: str) -> list[str]:
    """Renders why a run stopped; on its base tree with the failing checks and the commands that help."""
    if not details.base_problem:
        return clip_text(details.detail, 4_000).splitlines()
    failed = failed_base_checks(details)
    failure_lines = [line for c in failed[:1] for line in c.failure] + [c.failure[0] for c in failed[1:]]
    reason_lines = [base_stop_reason(details.base_problem), *(failure_lines or details.detail.splitlines())]
    return [
        *reason_lines,
        *(remedy_lines(base_remedies_for_run(details, command_prefix)) if command_prefix else []),
    ]


def base_remedies_for_run(details: RunSummary, command_prefix: str) -> list[Remedy]:
    """Returns the commands that help a run that stopped on its base tree."""
    untested = any(not c.tests for c in failed_base_checks(details))
    return base_stop_remedies(
        details.base_problem, details.run, details.machine, details.title, command_prefix, untested=untested
    )


def failed_base_checks(details: RunSummary) -> list[CheckStatus]:
    """Returns the checks that fail on the base tree; a base without tests is no failure."""
    return [c for c in details.base_checks if c.failure and c.verdict != "no_tests"]


def _open_gate_lines(details: RunSummary, gate: GateView, command_prefix: str) -> list[str]:
    """Renders an open gate: its question, why the run cannot go on, and what to type."""
    why = [details.cause] if details.cause else []
    typed = [*gate_commands(gate, command_prefix), *side_commands(details, gate, command_prefix)]
    return [gate_question(gate), *why, *(f"  {c}" for c in typed if command_prefix)]


def side_commands(details: RunSummary, gate: GateView, command_prefix: str) -> list[str]:
    """Returns the commands beside the answers to a gate."""
    return [f"{command_prefix} {command}" for command in details.side_commands if not gate.answer]


def _status_head_lines(details: RunSummary, now: int) -> list[str]:
    head_lines = [
        printable_line(f"run {details.run} · {details.machine} · {details.title}"),
        f"{details.status} · {details.state} since {format_duration(now - details.entered)}"
        + (f" · {details.outcome}" if details.outcome else ""),
        details.meaning,
        f"{round_progress_words(details)} · {details.entries} entries · begun {format_timestamp(details.created)} UTC",
    ]
    if details.confirmed_by:
        head_lines.append(printable_line(f"proposal confirmed by {details.confirmed_by}"))
    if details.refused:
        head_lines.append(f"{count_with_noun(details.refused, 'event')} refused (see the tape)")
    if details.not_isolated:
        head_lines.append(f"{NOT_ISOLATED}: {details.not_isolated}")
    return head_lines


def _first_issue_lines(text: str) -> list[str]:
    """Renders the first lines of an issue text, and how many more there are."""
    lines = [clip_text(printable_line(line), 76) for line in text.splitlines() if line.strip()]
    more = [f"… and {len(lines) - 5} more lines in the report"] if len(lines) > 5 else []
    return [*lines[:5], *more]


def _screen_section(name: str, lines: list[str]) -> list[str]:
    return ["", f"{name}:", *(f"  {line}" for line in lines)] if lines else []


def round_progress_words(details: RunSummary) -> str:
    """Renders the round and the outcome of the last one."""
    text = f"round {details.round}" + (f" of {details.rounds}" if details.rounds else "")
    return f"{text} · last round: {details.last_round_outcome}" if details.last_round_outcome else text


def running_work_name(work: RunningWork) -> str:
    """Renders who does what: the role, if any, and the job."""
    return f"{work.role} · {work.job}" if work.role else work.job


def running_work_line(work: RunningWork, now: int) -> str:
    """Renders one piece of running work."""
    attempt = f" · attempt {work.attempt} ({work.retry})" if work.retry else ""
    twice = f" · begun {work.starts} times" if work.starts > 1 else ""
    held_text = " · held until the budget is raised" if work.held else ""
    due = f" · in {format_duration(work.due - now)}" if work.due is not None and work.due > now else ""
    return f"{running_work_name(work)}{attempt}{twice}{due}{held_text}"


def review_finding_line(finding: ReviewFinding) -> str:
    """Renders one finding in one line."""
    where = (
        f"open since round {finding.since}" if finding.state == "open" else f"fixed in round {finding.fixed}"
    )
    return printable_line(
        f"[{finding.id}] {where}: {clip_text(' '.join(finding.text.split()), MAX_SCREEN_TEXT)}"
    )


def check_status_line(check: CheckStatus) -> str:
    """Renders one check in one line."""
    argv = f" · {clip_text(' '.join(check.argv), MAX_SCREEN_TEXT)}" if check.argv else ""
    reason = f" · {clip_text(check.reason, MAX_SCREEN_TEXT)}" if check.reason else ""
    if check.known:
        passed = f" · {check.tests} passed" if check.tests else ""
        return printable_line(
            f"{check.name}: {verdict_words(check.verdict, check.known)}{passed}{argv}{reason}"
        )
    tests = f" · {count_with_noun(check.tests, 'test')}" if check.tests is not None else ""
    code = f" · exit {check.exit_code}" if check.exit_code else ""
    return printable_line(f"{check.name}: {check.verdict}{tests}{code}{argv}{reason}")


def budget_figure_line(figure: BudgetFigure) -> str:
    """Renders one figure of the budget."""
    if figure.name == "unknown":
        return f"{figure.spent} calls did not report their cost"
    limit = f" of {format_figure(figure.name, figure.limit)}" if figure.limit is not None else ""
    reserved = f" (+ {format_figure(figure.name, figure.reserved)} reserved)" if figure.reserved else ""
    return f"{FIGURE_LABELS.get(figure.name, figure.name)}: {format_figure(figure.name, figure.spent)}{limit}{reserved}"


def entry_line(entry: Entry) -> str | None:
    """Renders an entry in one line for `watch`; None for entries that only the tape needs."""
    entry_text = _entry_words(entry)
    return printable_line(entry_text) if entry_text is not None else None


def _finished_check_line(entry: Entry, part: dict[str, Any]) -> str | None:
    """Renders a finished check; one that passed without a counted test says so."""
    verdict = part.get("verdict", "")
    if part.get("variant") == "new tests":
        return f"new tests on the base's code: {'they pass there too' if verdict == 'passed' else 'not all pass, as it should be'}"
    counted = ", no tests counted" if verdict == "passed" and not part.get("tests") else ""
    if known := part.get("known"):
        counted = f" · {part['passed']} passed" if part.get("passed") else ""
        verdict = verdict_words("known", known)
    name = next((key.partition(":")[2] for item in entry.held for key in reversed(item.parts)), "")
    where = " on the base tree" if any(item.job.startswith("measure") for item in entry.held) else ""
    return f"{f'check {name}'.rstrip()}{where}{_variant_words(part)}: {verdict}{counted}" if verdict else None


def _baseline_result_words(facts: Any) -> str:
    """Renders the result of the base tree's checks, behind their event."""
    data = msgspec.to_builtins(facts)
    tests = count_with_noun(data["tests"], "test") if data.get("tests") else NO_BASE_TESTS
    known = f", {known_failures_words(data['known'])}" if data.get("known") else ""
    stale = f"; {data['stale']} names in known_failures did not fail" if data.get("stale") else ""
    return f": {tests}{known}{stale}"


def _variant_words(part: dict[str, Any]) -> str:
    return " with the base's tests" if part.get("variant") else ""


def _entry_words(entry: Entry) -> str | None:
    match entry.kind:
        case "created" | "transition" | "override":
            path_text = (
                f"{entry.source or '·'} → {entry.to}"
                if not entry.stay and entry.source != entry.to
                else entry.to
            )
            by = f" · {actor_name(entry.actor)}" if entry.actor != "steersman" else ""
            open_ = (
                f" · {NOT_ISOLATED}: {find_isolation_warning(entry)}" if find_isolation_warning(entry) else ""
            )
            more = _baseline_result_words(entry.data) if entry.event == "baseline_recorded" else ""
            return f"{path_text}  {entry.event}{more}{by}{open_}"
        case "claimed" if find_isolation_warning(entry):
            return f"{NOT_ISOLATED}: {find_isolation_warning(entry)}"
        case "part_finished":
            return _finished_check_line(entry, entry.data) if isinstance(entry.data, dict) else None
        case "effect_started" if entry.retry is not None and entry.retry.retry_reason == "interrupted":
            jobs = ", ".join(i.job for i in entry.held)
            return f"{jobs} was interrupted and is begun again (start {entry.retry.retry_count + 1}): it may have run twice"
        case "effect_started" | "timer_set" if entry.retry is not None:
            return f"again: {entry.retry.retry_reason} (attempt {entry.retry.retry_count + 1})"
        case "refused":
            return f"refused {entry.event}: {entry.why}"
        case "gate_answered":
            return f"answered by {actor_name(entry.actor)}"
        case "effect_finished" | "child_ended" if entry.late:
            return f"late, not used: {entry.cause}"
        case _:
            return None


# ── quotation ───────────────────────────────────────────────────────────────────────────────────────────────────────────

# Quotes outside text inside our Markdown and Mermaid, so that it is never interpreted.
#
# **Invariant:** outside text adds no heading, row, link, tag, formula, state or edge.


MAX_QUOTED_LENGTH = 6_000  # characters of one text that a report shows
MAX_INLINE_LENGTH = 1_000  # of one text within a line
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}  # @: a report mentions no account
# A dot or colon is escaped only where it would make a link.
_MARKUP = re.compile(r"[\\`*_{}\[\]()#|~!$&<>@]|(?<=www)\.|:(?=//)")
_UNSAFE_LABEL_CHARS = re.compile(r"[^\w .,()/+*=|?!'’·…–≤≥→-]")
_RESERVED_NODE_NAMES = frozenset(
    ["state", "note", "end", "direction", "class", "classdef", "style", "click", "as", "default", "accdescr",
     "acctitle", "hide", "scale", "statediagram", "any_state"]
)  # fmt: skip


def quote_block(words: str) -> list[str]:
    """Quotes outside text as an indented block, which Markdown shows as it is."""
    return [
        f"    {line}" for line in printable_text(clip_text(words.strip(), MAX_QUOTED_LENGTH)).splitlines()
    ]


def quote_inline(words: str) -> str:
    """Quotes outside text within a line of steersman."""
    return _MARKUP.sub(
        lambda m: _ENTITIES.get(m[0], f"\\{m[0]}"),
        printable_line(" ".join(clip_text(words, MAX_INLINE_LENGTH).split())),
    )


def quote_cell(words: str) -> str:
    """Quotes outside text within a table cell."""
    return quote_inline(words) or "–"


def diagram_label(words: str) -> str:
    """Returns text for a diagram; characters with a meaning there are spelled out."""
    text = _UNSAFE_LABEL_CHARS.sub(lambda m: _spell_label_sign(m[0]), printable_line(" ".join(words.split())))
    return text.strip() or "(nothing)"


def _spell_label_sign(char: str) -> str:
    return {":": " ", ";": ",", "#": ""}.get(char, f"(U+{ord(char):04X})")


def diagram_node(name: str) -> str:
    """Returns a diagram node for a name: the name itself where it can be one, else its code points."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _RESERVED_NODE_NAMES:
        return name
    return "n_" + "_".join(f"{ord(char):x}" for char in clip_text(name, 100))
