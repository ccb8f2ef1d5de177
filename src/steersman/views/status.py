"""One run at a glance, as plain data: for `show`, `watch`, the live view, `state.json` and programs.

**Invariant:** a function of the tape and what it names; texts come through the getter it is given.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.judges.base_checks import count_known
from steersman.judges.evidence import AS_WHOLE
from steersman.judges.text import one_line
from steersman.kernel.machine import Machine
from steersman.kernel.record import outcome, status
from steersman.kernel.snapshot import Item, Snapshot, fields
from steersman.kernel.tape import Entry
from steersman.ports.journal import BudgetRow, Gate
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.base_stop import PROBLEMS
from steersman.views.cause import cause
from steersman.views.failed_check import failed_check_lines
from steersman.views.ways import besides

Text = Callable[[str], str]  # the name of a payload -> its text
DESPITE_VERIFY = "driven_despite_verify"  # a person has a run driven that `audit verify` rejects
UNAWAITED = "begin_requested"  # the event of a person who has a task begin without those that come first


class Work(msgspec.Struct, frozen=True):
    """Something under way."""

    id: str
    job: str
    role: str
    attempt: int
    starts: int
    retry: str
    due: int | None
    held: bool


class Finding(msgspec.Struct, frozen=True):
    """What a reviewer asked for."""

    id: str
    state: str
    since: int
    text: str
    fixed: int = 0


class Check(msgspec.Struct, frozen=True):
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


class Figure(msgspec.Struct, frozen=True):
    """One figure of the budget."""

    name: str
    spent: int
    reserved: int = 0
    limit: int | None = None


class Twice(msgspec.Struct, frozen=True):
    """An effect that was begun more than once: it may have run twice."""

    id: str
    job: str
    starts: int


class Override(msgspec.Struct, frozen=True):
    """A guard that a named person waived."""

    seq: int
    person: str
    source: str
    to: str
    reason: str


class Seen(msgspec.Struct, frozen=True):
    """Results of tests that a named person has accepted for one tree, and why."""

    tree: str
    person: str
    reason: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
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
    working: tuple[Work, ...] = ()
    gates: tuple[Gate, ...] = ()
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()
    base_checks: tuple[Check, ...] = ()  # the same checks before any change
    base_problem: str = ""  # why it stopped on its base tree before any agent was called
    budget: tuple[Figure, ...] = ()
    delivered: str = ""
    url: str = ""  # of a pull request
    reverted: str = ""  # the commit that has undone it
    commit: str = ""
    tree: str = ""
    base: str = ""
    confirmed_by: str = ""
    detail: str = ""  # why it stopped, in the world's own words
    twice: tuple[Twice, ...] = ()
    overrides: tuple[Override, ...] = ()
    refused: int = 0
    not_isolated: str = ""  # why nothing kept its agents from approving; nothing where a box did
    cause: str = ""  # why a task cannot go on by itself
    evidence: Seen | None = None  # the last results that a person has accepted
    besides: tuple[str, ...] = ()  # what is legal there beside the answer to its gate
    issue: str = ""  # text that came with the task and is not the person's own


def status_of(
    m: Machine,
    s: Snapshot,
    title: str,
    entries: Iterable[Entry],
    *,
    gates: Sequence[Gate] = (),
    budget: Sequence[BudgetRow] = (),
    text: Text,
) -> Status:
    """The status of a run from its snapshot and its tape."""
    told, entries = _Told(), tuple(entries)
    for entry in entries:
        told.see(entry)
    c = fields(s.context)
    return Status(
        run=s.run,
        machine=s.machine,
        title=title,
        state=s.state,
        meaning=m.states[s.state].meaning,
        status=status(m, s),
        outcome=outcome(m, s),
        last_round_outcome=c.get("last_round_outcome") or "",
        round=c.get("round", 0),
        rounds=c.get("max_iterations"),
        entries=s.seq,
        created=told.created,
        entered=told.entered,
        at=s.at,
        working=working(s),
        gates=tuple(gates),
        findings=_findings(c, text),
        checks=checks(s, text),
        base_checks=read_base_checks(c, text),
        base_problem=base_problem(m, s, entries),
        budget=figures(s, budget),
        delivered=c.get("delivered_ref", ""),
        url=text(c.get("url_ref", "")),
        reverted=c.get("reverted_commit", ""),
        commit=c.get("delivered_commit", "") or c.get("commit", ""),
        tree=c.get("tree", ""),
        base=c.get("base_commit", ""),
        confirmed_by=c.get("confirmed_by", ""),
        detail=text(c.get("detail_ref", "")),
        twice=tuple(told.twice.values()),
        overrides=tuple(told.overrides),
        refused=s.refused,
        not_isolated=told.not_isolated,
        cause=cause(m, s, entries, text),
        besides=besides(m, s, gates),
        evidence=told.evidence,
    )


class _Told:
    """What only the tape knows."""

    def __init__(self) -> None:
        self.created = self.entered = 0
        self.not_isolated = ""
        self.twice: dict[str, Twice] = {}
        self.overrides: list[Override] = []
        self.evidence: Seen | None = None

    def see(self, e: Entry) -> None:
        self.created = self.created or e.at
        if e.to and not e.stay:
            self.entered = e.at
        for item in e.held:
            if item.starts > 1:
                self.twice[item.id] = Twice(item.id, item.job, item.starts)
        self.not_isolated = not_isolated(e) or self.not_isolated
        waived = override_of(e)
        self.overrides += [waived] if waived is not None else []
        if e.kind == "transition" and e.event == "evidence_accepted":
            self.evidence = Seen(e.data.get("digest", ""), person(e.actor), e.data.get("reason", ""))


def override_of(e: Entry) -> Override | None:
    """What a named person has waived with an entry: a guard, a failed verification, or that other tasks come first."""
    if e.kind == "override":
        return Override(e.seq, person(e.actor), e.source or "", e.to, e.why)
    if e.event == DESPITE_VERIFY and e.kind == "note":
        return Override(e.seq, person(e.actor), "verify", "driven", e.why)
    if e.event == UNAWAITED and e.kind == "transition":
        return Override(
            e.seq, person(e.actor), e.source or "", e.to, f"without the others: {e.data['reason']}"
        )
    return None


def waiver(o: Override) -> str:
    """An override in one line."""
    return one_line(f"{o.source} → {o.to} by {o.person}: {o.reason}")


def not_isolated(e: Entry) -> str:
    """Why an entry says that nothing keeps agents from approving, or nothing; once said it stays said of its run."""
    return e.why.partition(f"{NOT_ISOLATED}: ")[2] if e.kind in ("created", "claimed") else ""


def person(actor: str) -> str:
    """Who an actor is: a person's name, or an agent's role and provider."""
    return actor.partition(":")[2].rstrip("/") or actor


def working(s: Snapshot) -> tuple[Work, ...]:
    """What is planned and not over, gates left out."""
    return tuple(_work(i) for i in s.items.values() if i.kind != "gate")


def _work(i: Item) -> Work:
    return Work(i.id, i.job, i.input.get("role", ""), i.attempt, i.starts, i.retry, i.due, i.held)


def _findings(c: dict[str, Any], text: Text) -> tuple[Finding, ...]:
    return tuple(
        Finding(key, f["state"], f["since"], text(f["text"]), f.get("fixed", 0))
        for key, f in c.get("findings", {}).items()
    )


def checks(s: Snapshot, text: Text) -> tuple[Check, ...]:
    """The last results: of checks that run now, else of the last round."""
    running = [i for i in s.items.values() if i.parts]
    if running:
        done = running[-1].parts
        return tuple(_part_check(key.partition(":")[2], facts) for key, facts in done.items())
    c = fields(s.context)
    return read_checks(text(c.get("results_ref", "")), text(c.get("baseline_ref", "")), known_names(c, text))


def _part_check(name: str, facts: dict[str, Any]) -> Check:
    known = facts.get("known", 0)
    tests = facts.get("passed") if known else facts.get("tests")
    return Check(name, "known" if known else facts["verdict"], tests=tests, known=known)


def read_base_checks(c: dict[str, Any], text: Text) -> tuple[Check, ...]:
    """The results before any change."""
    results = text(c.get("baseline_ref", ""))
    return read_checks(results, results, known_names(c, text))


def read_checks(results: str, base: str = "", known: frozenset[str] = frozenset()) -> tuple[Check, ...]:
    """Recorded results, each that did not pass with everything that says why, or with how many failures are known."""
    if not results:
        return ()
    try:
        found = read_results(results)
    except msgspec.MsgspecError:  # pruned: that there were results is still known
        return (Check("results", "pruned"),)
    try:
        before = read_results(base)
    except msgspec.MsgspecError:
        before = []
    return tuple(_check(r, before, known) for r in found if r.variant != "new tests" or r.findings)


def read_results(told: str) -> list[CommandResult]:
    """Recorded results; none where nothing was recorded."""
    return msgspec.json.decode(told, type=list[CommandResult]) if told else []


def known_names(c: dict[str, Any], text: Text) -> frozenset[str]:
    """The failures that were acknowledged when the run began; none where its configuration was pruned."""
    try:
        frozen = msgspec.json.decode(text(c.get("config_ref", "")) or "{}")
        return frozenset(frozen.get("known_failures", ()))
    except msgspec.MsgspecError:
        return frozenset()


def _check(r: CommandResult, base: Sequence[CommandResult], known: frozenset[str]) -> Check:
    """One result; of a variant what it says about the change. That new tests fail on old code is what they are for."""
    count = count_known(r, base, known) if known and not r.findings else 0
    if count:
        note = next((part for part in r.reason.split("; ") if AS_WHOLE in part), "")
        return Check(r.name, "known", r.argv, r.exit_code, r.passed, note, variant=r.variant, known=count)
    verdict = "noted" if r.variant == "new tests" else r.verdict
    reason = "; ".join(f.sentence for f in r.findings) or r.reason
    failure = () if verdict in ("passed", "noted") else tuple(failed_check_lines(r))
    return Check(r.name, verdict, r.argv, r.exit_code, r.tests, reason, failure, r.variant)


def verdict_words(verdict: str, known: int) -> str:
    """A verdict, or that a check fails only where a person has acknowledged it."""
    return f"passed but for {known_failures_words(known)}" if known else verdict


def known_failures_words(known: int) -> str:
    """How many failures are known."""
    return "1 known failure" if known == 1 else f"{known} known failures"


def base_problem(m: Machine, s: Snapshot, entries: Sequence[Entry]) -> str:
    """Why a run stopped on its base tree; nothing where it did not."""
    reached = outcome(m, s)
    if reached in PROBLEMS:
        return reached
    if reached or fields(s.context).get("step") != "broken":
        return ""
    last = next((e.event for e in reversed(entries) if e.kind == "transition" and not e.stay), "")
    return last if last in PROBLEMS else ""


def figures(s: Snapshot, budget: Sequence[BudgetRow]) -> tuple[Figure, ...]:
    """The budget as the store keeps it; where it keeps none, what the tape says was spent."""
    known = {row.name: Figure(row.name, row.spent, row.reserved, row.limit) for row in budget}
    for name, spent in s.budget.items():
        known.setdefault(name, Figure(name, spent))
    return tuple(known[name] for name in sorted(known))
