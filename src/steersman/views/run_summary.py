"""Summarizes one run as plain data, for `show`, `watch`, the live view, the report, `state.json` and programs.

**Invariant:** a function of the tape and the payloads that it names.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.judges.evidence.baseline import count_known_failures
from steersman.judges.evidence.check_results import ACKNOWLEDGED_AS_WHOLE
from steersman.judges.text import printable_line
from steersman.kernel.machine import Machine
from steersman.kernel.record import run_outcome, run_status_word
from steersman.kernel.snapshot import JobItem, Snapshot
from steersman.kernel.tape import Entry
from steersman.ports.journal import BudgetRow
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.failed_check import failed_check_lines
from steersman.views.gates import EVIDENCE_GATE, GateView, evidence_reason

PayloadReader = Callable[[str], str]  # the name of a payload -> its text
DRIVEN_DESPITE_VERIFY = "driven_despite_verify"  # a person has accepted findings of `audit verify`


class RunningWork(msgspec.Struct, frozen=True):
    """An effect, timer or child that is planned and not over."""

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
    failure: tuple[str, ...] = ()  # of one that did not pass: why, as lines
    variant: str = ""  # it ran on a variant of the tree, and is no evidence for the tree itself
    known: int = 0  # failures, all of them acknowledged: the verdict is "known", and `tests` passed


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


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The status of one run: the one source of every display."""

    run: str
    machine: str
    title: str
    state: str
    meaning: str
    status: str
    outcome: str
    last_round_outcome: str
    round: int
    rounds: int | None  # the most that there may be
    entries: int
    created: int
    entered: int  # when the state was entered
    at: int
    working: tuple[RunningWork, ...] = ()
    gates: tuple[GateView, ...] = ()
    findings: tuple[ReviewFinding, ...] = ()
    checks: tuple[CheckStatus, ...] = ()
    base_checks: tuple[CheckStatus, ...] = ()  # the same checks before any change
    base_measured: bool = False  # the checks ran on the base tree
    base_problem: str = ""  # why it stopped on its base tree, before any agent call
    budget: tuple[BudgetFigure, ...] = ()
    delivered: str = ""
    url: str = ""  # of a pull request
    reverted: str = ""  # the commit that reverts it
    commit: str = ""
    tree: str = ""
    base: str = ""
    confirmed_by: str = ""
    detail: str = ""  # why it stopped, as the effect reported it
    twice: tuple[RepeatedEffect, ...] = ()
    overrides: tuple[GuardOverride, ...] = ()
    refused: int = 0
    not_isolated: str = ""  # why agents could approve themselves; empty where a sandbox isolates them
    cause: str = ""  # why the run cannot go on by itself
    evidence: AcceptedEvidence | None = None  # the last results that a person has accepted
    besides: tuple[str, ...] = ()  # legal beside the answer to its gate
    issue: str = ""  # text that came with the task, written by others
    side_commands: tuple[str, ...] = ()  # the commands for `besides`, without the program's name
    delivery_failed: bool = False  # it is approved, but the delivery failed
    revert_failed: bool = False  # a person asked for a revert, and it failed


class RunFacts(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A run read whole: the input of every view."""

    machine: Machine
    snapshot: Snapshot
    title: str
    entries: tuple[Entry, ...]
    gates: tuple[GateView, ...] = ()
    budget: tuple[BudgetRow, ...] = ()
    text: PayloadReader


class SummaryFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a summary that only the run's machine knows, from its context; see `RunSummary`."""

    last_round_outcome: str = ""
    round: int = 0
    rounds: int | None = None
    findings: tuple[ReviewFinding, ...] = ()
    checks: tuple[CheckStatus, ...] = ()
    base_checks: tuple[CheckStatus, ...] = ()
    base_problem: str = ""
    base_measured: bool = False
    delivered: str = ""
    url: str = ""
    reverted: str = ""
    commit: str = ""
    tree: str = ""
    base: str = ""
    confirmed_by: str = ""
    detail: str = ""
    cause: str = ""
    besides: tuple[str, ...] = ()
    side_commands: tuple[str, ...] = ()
    delivery_failed: bool = False
    revert_failed: bool = False


def summarize_run(facts: RunFacts, fields: SummaryFields, *, issue: str = "") -> RunSummary:
    """Summarizes a run: fields of any run from its tape, and `fields` from its machine."""
    tape_details, snapshot = _TapeDetails(facts.machine), facts.snapshot
    for entry in facts.entries:
        tape_details.note_entry(entry)
    of_machine = {name: getattr(fields, name) for name in SummaryFields.__struct_fields__}
    return RunSummary(
        run=snapshot.run,
        machine=snapshot.machine,
        title=facts.title,
        state=snapshot.state,
        meaning=facts.machine.states[snapshot.state].meaning,
        status=run_status_word(facts.machine, snapshot),
        outcome=run_outcome(facts.machine, snapshot),
        entries=snapshot.seq,
        created=tape_details.created,
        entered=tape_details.entered,
        at=snapshot.at,
        working=running_work(snapshot),
        gates=facts.gates,
        budget=budget_figures(snapshot, facts.budget),
        twice=tuple(tape_details.twice.values()),
        overrides=tuple(tape_details.overrides),
        refused=snapshot.refused,
        not_isolated=tape_details.not_isolated,
        evidence=tape_details.evidence,
        issue=issue,
        **{**of_machine, "cause": fields.cause or evidence_gate_cause(facts)},
    )


def default_summary_fields(facts: RunFacts) -> SummaryFields:
    """The fields for a machine without a summary of its own: the checks that run now."""
    return SummaryFields(checks=running_checks(facts.snapshot) or ())


def evidence_gate_cause(facts: RunFacts) -> str:
    """Returns why the evidence gate is open, in one line; empty where it is not."""
    items = facts.snapshot.items.values()
    item = next((i for i in items if i.kind == "gate" and i.job == EVIDENCE_GATE), None)
    if item is None or facts.snapshot.ended:
        return ""
    return evidence_reason(item.input.get("shown", {}), facts.text)


class _TapeDetails:
    """What only the entries of a tape show."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
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
        waived = find_override(self.machine, entry)
        self.overrides += [waived] if waived is not None else []
        event = self.machine.events.get(entry.event)
        if entry.kind == "transition" and event is not None and event.accepts_evidence:
            self.evidence = AcceptedEvidence(
                entry.data.get("digest", ""), actor_name(entry.actor), entry.data.get("reason", "")
            )


def find_override(machine: Machine, entry: Entry) -> GuardOverride | None:
    """Returns what a person waived with an entry: a guard, a failed verification, or what an event of the machine waives."""
    if entry.kind == "override":
        return GuardOverride(entry.seq, actor_name(entry.actor), entry.source or "", entry.to, entry.why)
    if entry.event == DRIVEN_DESPITE_VERIFY and entry.kind == "note":
        return GuardOverride(entry.seq, actor_name(entry.actor), "verify", "driven", entry.why)
    event = machine.events.get(entry.event)
    if event is not None and event.waives and entry.kind == "transition":
        reason = f"{event.waives}: {entry.data['reason']}"
        return GuardOverride(entry.seq, actor_name(entry.actor), entry.source or "", entry.to, reason)
    return None


def override_line(override: GuardOverride) -> str:
    """Renders an override in one line."""
    return printable_line(f"{override.source} → {override.to} by {override.person}: {override.reason}")


def find_isolation_warning(entry: Entry) -> str:
    """Returns why an entry says that approval is not isolated, or nothing."""
    return entry.why.partition(f"{NOT_ISOLATED}: ")[2] if entry.kind in ("created", "claimed") else ""


def actor_name(actor: str) -> str:
    """Returns the name of an actor: a person's name, or an agent's role and provider."""
    return actor.partition(":")[2].rstrip("/") or actor


def running_work(snapshot: Snapshot) -> tuple[RunningWork, ...]:
    """Returns the work that is planned and not over, without gates."""
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


def read_findings(findings: Mapping[str, dict[str, Any]], text: PayloadReader) -> tuple[ReviewFinding, ...]:
    """Reads findings as a context keeps them, with their texts."""
    return tuple(
        ReviewFinding(key, f["state"], f["since"], text(f["text"]), f.get("fixed", 0))
        for key, f in findings.items()
    )


def running_checks(snapshot: Snapshot) -> tuple[CheckStatus, ...] | None:
    """Returns the results so far of checks that run now; None where none run."""
    running = [i for i in snapshot.items.values() if i.parts]
    if not running:
        return None
    return tuple(_check_from_part(key.partition(":")[2], facts) for key, facts in running[-1].parts.items())


def _check_from_part(name: str, facts: dict[str, Any]) -> CheckStatus:
    known = facts.get("known", 0)
    tests = facts.get("passed") if known else facts.get("tests")
    return CheckStatus(name, "known" if known else facts["verdict"], tests=tests, known=known)


def read_checks(results: str, base: str = "", known: frozenset[str] = frozenset()) -> tuple[CheckStatus, ...]:
    """Reads recorded results; one that did not pass says why, or how many of its failures are known."""
    if not results:
        return ()
    try:
        command_results = decode_command_results(results)
    except msgspec.MsgspecError:  # pruned: only the fact that there were results is left
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
    """Decodes recorded results; none where nothing was recorded."""
    return msgspec.json.decode(results_json, type=list[CommandResult]) if results_json else []


def known_failure_names(config_json: str) -> frozenset[str]:
    """Returns the failures that were acknowledged when the run began; none where its configuration was pruned."""
    try:
        frozen = msgspec.json.decode(config_json or "{}")
        return frozenset(frozen.get("known_failures", ()))
    except msgspec.MsgspecError:
        return frozenset()


def _check_from_result(
    result: CommandResult, base: Sequence[CommandResult], known: frozenset[str]
) -> CheckStatus:
    """Returns the status of one result; new tests that fail on old code are noted, because that is their purpose."""
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
    """Renders a verdict, or that every failure of a check is acknowledged."""
    return f"passed but for {known_failures_words(known)}" if known else verdict


def known_failures_words(known: int) -> str:
    """Renders the number of known failures."""
    return "1 known failure" if known == 1 else f"{known} known failures"


def budget_figures(snapshot: Snapshot, budget: Sequence[BudgetRow]) -> tuple[BudgetFigure, ...]:
    """Returns the budget figures of the store; for a figure without a row, what the tape says was spent."""
    known = {row.name: BudgetFigure(row.name, row.spent, row.reserved, row.limit) for row in budget}
    for name, spent in snapshot.budget.items():
        known.setdefault(name, BudgetFigure(name, spent))
    return tuple(known[name] for name in sorted(known))
