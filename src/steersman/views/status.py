"""One run at a glance, as plain data: for `show`, `watch`, the live view, `state.json` and programs.

**Invariant:** a function of the tape and what it names; texts come through the getter it is given.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.judges.evidence.base_checks import count_known_failures
from steersman.judges.evidence.check_results import ACKNOWLEDGED_AS_WHOLE
from steersman.judges.text import printable_line
from steersman.kernel.machine import Machine
from steersman.kernel.record import run_outcome, run_status_word
from steersman.kernel.snapshot import JobItem, Snapshot, context_fields
from steersman.kernel.tape import Entry
from steersman.ports.journal import BudgetRow, Gate
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.base_stop import BASE_PROBLEMS
from steersman.views.blocked_reason import blocked_reason
from steersman.views.failed_check import failed_check_lines
from steersman.views.legal_actions import find_side_actions

PayloadReader = Callable[[str], str]  # the name of a payload -> its text
DRIVEN_DESPITE_VERIFY = "driven_despite_verify"  # a person has a run driven that `audit verify` rejects
BEGIN_REQUESTED = (
    "begin_requested"  # the event of a person who has a task begin without those that come first
)


class RunningWork(msgspec.Struct, frozen=True):
    """Something under way."""

    id: str
    job: str
    role: str
    attempt: int
    starts: int
    retry: str
    due: int | None
    held: bool


class ReviewFinding(msgspec.Struct, frozen=True):
    """What a reviewer asked for."""

    id: str
    state: str
    since: int
    text: str
    fixed: int = 0


class CheckStatus(msgspec.Struct, frozen=True):
    """One command that steersman ran itself."""

    name: str
    verdict: str
    argv: tuple[str, ...] = ()
    exit_code: int | None = None
    tests: int | None = None
    reason: str = ""
    failure: tuple[str, ...] = ()  # of one that did not pass: everything that says why, as lines
    variant: str = ""  # it ran on a variant of the tree, and is no evidence for the tree itself
    known: int = (
        0  # failures that a person has acknowledged, and no other: its verdict is "known", `tests` passed
    )


class BudgetFigure(msgspec.Struct, frozen=True):
    """One figure of the budget."""

    name: str
    spent: int
    reserved: int = 0
    limit: int | None = None


class RepeatedEffect(msgspec.Struct, frozen=True):
    """An effect that was begun more than once: it may have run twice."""

    id: str
    job: str
    starts: int


class GuardOverride(msgspec.Struct, frozen=True):
    """A guard that a named person waived."""

    seq: int
    person: str
    source: str
    to: str
    reason: str


class AcceptedEvidence(msgspec.Struct, frozen=True):
    """Results of tests that a named person has accepted for one tree, and why."""

    tree: str
    person: str
    reason: str


class RunDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a person asks first."""

    run: str
    machine: str
    title: str
    state: str
    meaning: str
    status: str
    outcome: str
    last_round_outcome: str
    round: int
    rounds: int | None  # how many there may be
    entries: int
    created: int
    entered: int  # when the state was entered
    at: int
    working: tuple[RunningWork, ...] = ()
    gates: tuple[Gate, ...] = ()
    findings: tuple[ReviewFinding, ...] = ()
    checks: tuple[CheckStatus, ...] = ()
    base_checks: tuple[CheckStatus, ...] = ()  # the same checks before any change
    base_problem: str = ""  # why it stopped on its base tree before any agent was called
    budget: tuple[BudgetFigure, ...] = ()
    delivered: str = ""
    url: str = ""  # of a pull request
    reverted: str = ""  # the commit that has undone it
    commit: str = ""
    tree: str = ""
    base: str = ""
    confirmed_by: str = ""
    detail: str = ""  # why it stopped, in the world's own words
    twice: tuple[RepeatedEffect, ...] = ()
    overrides: tuple[GuardOverride, ...] = ()
    refused: int = 0
    not_isolated: str = ""  # why nothing kept its agents from approving; nothing where a box did
    cause: str = ""  # why a task cannot go on by itself
    evidence: AcceptedEvidence | None = None  # the last results that a person has accepted
    besides: tuple[str, ...] = ()  # what is legal there beside the answer to its gate
    issue: str = ""  # text that came with the task and is not the person's own


def build_run_details(
    machine: Machine,
    snapshot: Snapshot,
    title: str,
    entries: Iterable[Entry],
    *,
    gates: Sequence[Gate] = (),
    budget: Sequence[BudgetRow] = (),
    text: PayloadReader,
) -> RunDetails:
    """The status of a run from its snapshot and its tape."""
    tape_details, entries = _TapeDetails(), tuple(entries)
    for entry in entries:
        tape_details.note_entry(entry)
    context = context_fields(snapshot.context)
    return RunDetails(
        run=snapshot.run,
        machine=snapshot.machine,
        title=title,
        state=snapshot.state,
        meaning=machine.states[snapshot.state].meaning,
        status=run_status_word(machine, snapshot),
        outcome=run_outcome(machine, snapshot),
        last_round_outcome=context.get("last_round_outcome") or "",
        round=context.get("round", 0),
        rounds=context.get("max_iterations"),
        entries=snapshot.seq,
        created=tape_details.created,
        entered=tape_details.entered,
        at=snapshot.at,
        working=running_work(snapshot),
        gates=tuple(gates),
        findings=_findings_from_context(context, text),
        checks=latest_checks(snapshot, text),
        base_checks=read_base_checks(context, text),
        base_problem=find_base_problem(machine, snapshot, entries),
        budget=budget_figures(snapshot, budget),
        delivered=context.get("delivered_ref", ""),
        url=text(context.get("url_ref", "")),
        reverted=context.get("reverted_commit", ""),
        commit=context.get("delivered_commit", "") or context.get("commit", ""),
        tree=context.get("tree", ""),
        base=context.get("base_commit", ""),
        confirmed_by=context.get("confirmed_by", ""),
        detail=text(context.get("detail_ref", "")),
        twice=tuple(tape_details.twice.values()),
        overrides=tuple(tape_details.overrides),
        refused=snapshot.refused,
        not_isolated=tape_details.not_isolated,
        cause=blocked_reason(machine, snapshot, entries, text),
        besides=find_side_actions(machine, snapshot, gates),
        evidence=tape_details.evidence,
    )


class _TapeDetails:
    """What only the tape knows."""

    def __init__(self) -> None:
        self.created = self.entered = 0
        self.not_isolated = ""
        self.twice: dict[str, RepeatedEffect] = {}
        self.overrides: list[GuardOverride] = []
        self.evidence: AcceptedEvidence | None = None

    def note_entry(self, entry: Entry) -> None:
        self.created = self.created or entry.at
        if entry.to and not entry.stay:
            self.entered = entry.at
        for item in entry.held:
            if item.starts > 1:
                self.twice[item.id] = RepeatedEffect(item.id, item.job, item.starts)
        self.not_isolated = find_isolation_warning(entry) or self.not_isolated
        waived = find_override(entry)
        self.overrides += [waived] if waived is not None else []
        if entry.kind == "transition" and entry.event == "evidence_accepted":
            self.evidence = AcceptedEvidence(
                entry.data.get("digest", ""), actor_name(entry.actor), entry.data.get("reason", "")
            )


def find_override(entry: Entry) -> GuardOverride | None:
    """What a named person has waived with an entry: a guard, a failed verification, or that other tasks come first."""
    if entry.kind == "override":
        return GuardOverride(entry.seq, actor_name(entry.actor), entry.source or "", entry.to, entry.why)
    if entry.event == DRIVEN_DESPITE_VERIFY and entry.kind == "note":
        return GuardOverride(entry.seq, actor_name(entry.actor), "verify", "driven", entry.why)
    if entry.event == BEGIN_REQUESTED and entry.kind == "transition":
        return GuardOverride(
            entry.seq,
            actor_name(entry.actor),
            entry.source or "",
            entry.to,
            f"without the others: {entry.data['reason']}",
        )
    return None


def override_line(override: GuardOverride) -> str:
    """An override in one line."""
    return printable_line(f"{override.source} → {override.to} by {override.person}: {override.reason}")


def find_isolation_warning(entry: Entry) -> str:
    """Why an entry says that nothing keeps agents from approving, or nothing; once said it stays said of its run."""
    return entry.why.partition(f"{NOT_ISOLATED}: ")[2] if entry.kind in ("created", "claimed") else ""


def actor_name(actor: str) -> str:
    """Who an actor is: a person's name, or an agent's role and provider."""
    return actor.partition(":")[2].rstrip("/") or actor


def running_work(snapshot: Snapshot) -> tuple[RunningWork, ...]:
    """What is planned and not over, gates left out."""
    return tuple(_work_from_item(i) for i in snapshot.items.values() if i.kind != "gate")


def _work_from_item(item: JobItem) -> RunningWork:
    return RunningWork(
        item.id,
        item.job,
        item.input.get("role", ""),
        item.attempt,
        item.starts,
        item.retry,
        item.due,
        item.held,
    )


def _findings_from_context(context: dict[str, Any], text: PayloadReader) -> tuple[ReviewFinding, ...]:
    return tuple(
        ReviewFinding(key, f["state"], f["since"], text(f["text"]), f.get("fixed", 0))
        for key, f in context.get("findings", {}).items()
    )


def latest_checks(snapshot: Snapshot, text: PayloadReader) -> tuple[CheckStatus, ...]:
    """The last results: of checks that run now, else of the last round."""
    running = [i for i in snapshot.items.values() if i.parts]
    if running:
        finished_parts = running[-1].parts
        return tuple(_check_from_part(key.partition(":")[2], facts) for key, facts in finished_parts.items())
    context = context_fields(snapshot.context)
    return read_checks(
        text(context.get("results_ref", "")),
        text(context.get("baseline_ref", "")),
        known_failure_names(context, text),
    )


def _check_from_part(name: str, facts: dict[str, Any]) -> CheckStatus:
    known = facts.get("known", 0)
    tests = facts.get("passed") if known else facts.get("tests")
    return CheckStatus(name, "known" if known else facts["verdict"], tests=tests, known=known)


def read_base_checks(context: dict[str, Any], text: PayloadReader) -> tuple[CheckStatus, ...]:
    """The results before any change."""
    results = text(context.get("baseline_ref", ""))
    return read_checks(results, results, known_failure_names(context, text))


def read_checks(results: str, base: str = "", known: frozenset[str] = frozenset()) -> tuple[CheckStatus, ...]:
    """Recorded results, each that did not pass with everything that says why, or with how many failures are known."""
    if not results:
        return ()
    try:
        command_results = decode_command_results(results)
    except msgspec.MsgspecError:  # pruned: that there were results is still known
        return (CheckStatus("results", "pruned"),)
    try:
        before = decode_command_results(base)
    except msgspec.MsgspecError:
        before = []
    return tuple(
        _check_from_result(r, before, known)
        for r in command_results
        if r.variant != "new tests" or r.findings
    )


def decode_command_results(results_json: str) -> list[CommandResult]:
    """Recorded results; none where nothing was recorded."""
    return msgspec.json.decode(results_json, type=list[CommandResult]) if results_json else []


def known_failure_names(context: dict[str, Any], text: PayloadReader) -> frozenset[str]:
    """The failures that were acknowledged when the run began; none where its configuration was pruned."""
    try:
        frozen = msgspec.json.decode(text(context.get("config_ref", "")) or "{}")
        return frozenset(frozen.get("known_failures", ()))
    except msgspec.MsgspecError:
        return frozenset()


def _check_from_result(
    result: CommandResult, base: Sequence[CommandResult], known: frozenset[str]
) -> CheckStatus:
    """One result; of a variant what it says about the change. That new tests fail on old code is what they are for."""
    count = count_known_failures(result, base, known) if known and not result.findings else 0
    if count:
        note = next((part for part in result.reason.split("; ") if ACKNOWLEDGED_AS_WHOLE in part), "")
        return CheckStatus(
            result.name,
            "known",
            result.argv,
            result.exit_code,
            result.passed,
            note,
            variant=result.variant,
            known=count,
        )
    verdict = "noted" if result.variant == "new tests" else result.verdict
    reason = "; ".join(f.sentence for f in result.findings) or result.reason
    failure = () if verdict in ("passed", "noted") else tuple(failed_check_lines(result))
    return CheckStatus(
        result.name, verdict, result.argv, result.exit_code, result.tests, reason, failure, result.variant
    )


def verdict_words(verdict: str, known: int) -> str:
    """A verdict, or that a check fails only where a person has acknowledged it."""
    return f"passed but for {known_failures_words(known)}" if known else verdict


def known_failures_words(known: int) -> str:
    """How many failures are known."""
    return "1 known failure" if known == 1 else f"{known} known failures"


def find_base_problem(machine: Machine, snapshot: Snapshot, entries: Sequence[Entry]) -> str:
    """Why a run stopped on its base tree; nothing where it did not."""
    reached = run_outcome(machine, snapshot)
    if reached in BASE_PROBLEMS:
        return reached
    if reached or context_fields(snapshot.context).get("step") != "broken":
        return ""
    last = next((e.event for e in reversed(entries) if e.kind == "transition" and not e.stay), "")
    return last if last in BASE_PROBLEMS else ""


def budget_figures(snapshot: Snapshot, budget: Sequence[BudgetRow]) -> tuple[BudgetFigure, ...]:
    """The budget as the store keeps it; where it keeps none, what the tape says was spent."""
    known = {row.name: BudgetFigure(row.name, row.spent, row.reserved, row.limit) for row in budget}
    for name, spent in snapshot.budget.items():
        known.setdefault(name, BudgetFigure(name, spent))
    return tuple(known[name] for name in sorted(known))
