"""Why there is no plan, as a FailurePack: one function for each state that can fail.

What aborts is told before what blocks, in the order in which the table asks. **Invariant:** every pack names a field or
a thing to change, and how; a red line is never called retriable.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from steersman.contracts.planning.content import Rule
from steersman.contracts.planning.decisions import PrecheckReport, Problem, RoutingAdvice, RuleDecision
from steersman.contracts.planning.questions import Answer, AskedQuestion, Conflict
from steersman.contracts.planning.review import Budget, FailurePack, Recovery
from steersman.contracts.planning.words import Assessed
from steersman.judges.planning.basis import speaks_of_facts
from steersman.judges.planning.precheck import unfit, unsealed
from steersman.judges.planning.registry import Registry
from steersman.judges.text import clip
from steersman.machines.coordinator.faults import Faults
from steersman.machines.coordinator.reasons import CAUSES
from steersman.machines.coordinator.remaining import NOTHING, Remaining
from steersman.machines.coordinator.review import ReviewFaults
from steersman.machines.coordinator.uncertainties import Chosen

NOTHING_KNOWN = Registry(())
MOST = 100  # problems, and ways to mend them, that a pack lists

Found = dict[str, Iterable[Problem]]  # by cause, in the order in which the table asks


class About(NamedTuple):
    """The run a failure is about; a plan has no name before its inputs are known."""

    intent_id: str
    plan_id: str = ""
    risk: Assessed = "unknown"  # what was never assessed is never called low


def precheck_failure(
    about: About, report: PrecheckReport | None, *, mode_changed: str = "", registry: Iterable[Problem] = ()
) -> FailurePack:
    """An intent that may not be planned as it is; `mode_changed` says how its mode is not the run's."""
    if report is None:
        return _pack(about, "PRECHECKED", {}, "intent_unreadable")
    found: Found = {
        "execution_payload": _executing(report),
        "registry_broken": registry,
        "schema_invalid": report.schema_problems,
        "checksum_mismatch": () if report.checksum_matches else (_checksum(report),),
        "asks_in_full_auto": _crossed(report, "I2"),
        "risk_in_full_auto": _crossed(report, "I3"),
        "unevidenced_command": _crossed(report, "I4"),
        "not_registered": (*_crossed(report, "I5"), *unfit(report, "missing")),
        "inactive_content": unfit(report, "inactive"),
        "version_drift": unfit(report, "drifted", "unpinned"),
        "policy_invalid": [replace(p, field=clip(f"policy.{p.field}", 400)) for p in report.policy_problems],
        "mode_changed": _said("interaction.mode", mode_changed),
    }
    return _pack(about, "PRECHECKED", found, "intent_unreadable")


def context_failure(
    about: About,
    *,
    memory: str = "",
    damaged: str = "",
    memories: int = 0,
    threshold: int = 1,
    facts: str = "",
    policy: str = "",
) -> FailurePack:
    """Nothing to go by; `memory`, `facts` and `policy` say what is wrong with each, `damaged` how a file is mended."""
    few = f"There are {memories} memories; {threshold} are needed." if memories < threshold else ""
    found: Found = {
        "memory_damaged": (Problem(field="memory", message=memory, fix=damaged),) if damaged else (),
        "memory_unavailable": () if damaged else _said("memory", memory or few),
        "facts_unavailable": _said("facts", facts),
        "policy_unavailable": _said("policy", policy),
    }
    return _pack(about, "CONTEXT_BUILT", found, "context_missing")


def rules_failure(
    about: About,
    decisions: Iterable[RuleDecision],
    routing: Iterable[RoutingAdvice] = (),
    forbidden: Iterable[Problem] = (),
    commands: Iterable[str] = (),
    registry: Registry = NOTHING_KNOWN,
    unread: Iterable[str] = (),
) -> FailurePack:
    """Rules or the policy say no, or cannot say; `commands` are all that should have a decision, `registry` has the rules,
    `unread` are the manifests that the scan could not read."""
    told = tuple(decisions)
    undecided = sorted(set(commands) - {d.command_id for d in told})
    found: Found = {
        "routing_violation": [
            Problem(field=f"selected_agents.{a.agent_id}", message=a.reason) for a in routing if a.violation
        ],
        "rule_conflict": [_ruled(d, d.conflict) for d in told if d.conflict],
        "rule_denied": [_ruled(d, d.reason) for d in told if d.hard],
        "manifest_unread": map(_unread, unread) if _by_facts(told, registry) else (),
        "rule_undecidable": [p for d in told if d.undecidable for p in _undecided(d, registry)],
        "deny_unexplained": [
            _ruled(d, "it is denied without a reason")
            for d in told
            if d.decision == "deny" and not d.reason.strip()
        ],
        "operation_forbidden": forbidden,
        "command_undecided": [
            Problem(field=f"planned_commands.{id_}", message=f"{id_} has no verdict.") for id_ in undecided
        ],
    }
    shown = {ref for d in told if d.hard or d.conflict or d.undecidable for ref in d.evidence_used}
    return _pack(about, "RULES_EVALUATED", found, "rules_unasked", shown)


def graph_failure(about: About, faults: Faults) -> FailurePack:
    """What was drafted is no plan."""
    return _pack(about, "GRAPH_DRAFTED", _faulty(faults), "no_graph")


def question_failure(about: About, chosen: Chosen) -> FailurePack:
    """More has to be asked than may be, or a question may not go out."""
    found: Found = {
        "question_budget_exceeded": map(_question, chosen.over),
        "question_unevidenced": map(_question, chosen.unevidenced),
        "question_undefaulted": map(_question, chosen.undefaulted),
        "question_unfit": map(_question, chosen.unfit),
    }
    return _pack(about, "QUESTIONS_EMITTED", found, "nothing_to_ask")


def answer_failure(
    about: About,
    *,
    conflicts: Iterable[Conflict] = (),
    blocked: Iterable[Answer] = (),
    questions: Iterable[AskedQuestion] = (),
) -> FailurePack:
    """Answers that contradict rules once too often, or that stop the run; nobody answering at all."""
    against, stopped, asked = tuple(conflicts), tuple(blocked), tuple(questions)
    found: Found = {
        "answers_conflict": map(_conflicting, against),
        "answer_blocks": _stopping(stopped, asked),
        "answers_stopped": () if against or stopped else map(_question, asked),
    }
    return _pack(about, "AWAITING_ANSWERS", found, "answers_stopped")


def finalize_failure(
    about: About,
    faults: Faults,
    blocked: Iterable[Answer] = (),
    questions: Iterable[AskedQuestion] = (),
    rest: Remaining = NOTHING,
) -> FailurePack:
    """A graph that cannot be completed, a default that stops the run, or something against what is left."""
    found: Found = {
        "default_blocks": _stopping(blocked, questions),
        "evidence_unfound": rest.groundless if rest.ruled_out or rest.emptied else (),
        "rest_denied": rest.ruled_out,
        "phase_emptied": rest.emptied,
        "rest_risky": rest.alone,
        **_faulty(faults),
    }
    return _pack(about, "GRAPH_FINALIZED", found, "no_graph")


def review_failure(about: About, faults: ReviewFaults) -> FailurePack:
    """A plan that needs more than it may, or that cannot be reviewed."""
    found: Found = {
        "budget_exceeded": map(_over, faults.over),
        "review_uncovered": faults.uncovered,
        "risk_unjustified": faults.unjustified,
    }
    return _pack(about, "REVIEW_PACK_BUILT", found, "review_missing")


def freeze_failure(
    about: About,
    *,
    malformed: Iterable[Problem] = (),
    unmatched: Iterable[Problem] = (),
    untraced: Iterable[Problem] = (),
    unwritten: str = "",
) -> FailurePack:
    """Outputs that are not what they should be, or not where they should be."""
    found: Found = {
        "not_written": _said("--out", unwritten),
        "output_malformed": malformed,
        "checksum_failed": unmatched,
        "lineage_incomplete": untraced,
    }
    return _pack(about, "FROZEN_OUTPUTS", found, "not_written")


def broken(about: About, state: str, why: str) -> FailurePack:
    """Something that a state needs broke before it could look at anything."""
    return _pack(about, state, {"broken": _said("surroundings", why)}, "broken")


def _pack(
    about: About, state: str, found: Found, otherwise: str, evidence: Iterable[str] = ()
) -> FailurePack:
    """The first cause with a problem names the failure; the problems of all of them are in it, and ways to mend them."""
    told = {cause: listed for cause, problems in found.items() if (listed := tuple(problems))}
    rows = [CAUSES[cause] for cause in told] or [CAUSES[otherwise]]
    problems = tuple(dict.fromkeys(problem for listed in told.values() for problem in listed))
    first = _fixes(next(iter(told.values()), ()))  # what named the failure is mended first
    general = [Recovery(change=row.change, how=row.how) for row in rows]
    mends = (general[0], *first, *general[1:], *_fixes(problems))
    return FailurePack(
        plan_id=about.plan_id,
        intent_id=about.intent_id,
        failure_type=rows[0].type,
        cause=next(iter(told), otherwise),
        failed_at_state=state,
        message=clip("; ".join(row.message for row in rows) + ".", 2000),
        problems=problems[:MOST],
        evidence_refs=tuple(sorted(evidence))[:MOST],
        recovery_suggestions=tuple(dict.fromkeys(mends))[:MOST],
        retriable=rows[0].type != "red_line_violation",
        risk=about.risk,
    )


def _fixes(problems: Iterable[Problem]) -> Iterator[Recovery]:
    return (Recovery(change=p.field or "intent", how=p.fix) for p in problems if p.fix)


def _executing(report: PrecheckReport) -> Iterator[Problem]:
    """What could be executed, or is said to be allowed to; where nothing is said, the schema asks for it."""
    yield from report.execution_payload
    yield from (detail for check in report.red_lines if check.red_line == "I1" for detail in check.details)


def _crossed(report: PrecheckReport, red_line: str) -> Iterator[Problem]:
    for check in report.red_lines:
        if check.red_line == red_line and not check.passed:
            yield from check.details or _said("intent", f"Red line {red_line} is crossed.")


def _checksum(report: PrecheckReport) -> Problem:
    return Problem(field="audit.checksum", message=f"It {unsealed(report)}.")


def _said(field: str, message: str) -> tuple[Problem, ...]:
    return (Problem(field=field, message=clip(message, 1000)),) if message else ()


def _ruled(decision: RuleDecision, why: str) -> Problem:
    return Problem(
        field=f"planned_commands.{decision.command_id}",
        message=clip(f"{decision.command_id}: {why}", 1000),
        fix=clip("; ".join(decision.required_changes), 1000),
    )


def _undecided(decision: RuleDecision, registry: Registry) -> Iterator[Problem]:
    """Each rule that could not say, where it stands and why; a command that no rule could be asked about."""
    unsaid = [rule for rule in decision.rules if rule.outcome == "undecidable"]
    if not unsaid:
        yield _ruled(decision, decision.reason)
    for said in unsaid:
        item = registry.held["rule"].get(said.rule_id)
        rule = item.content if item is not None else None
        when = f" Its condition: {rule.when}" if isinstance(rule, Rule) else ""
        where = (item.file if item is not None else "") or f"rule {said.rule_id}"
        yield Problem(
            field=clip(f"{where}: when", 400),
            message=clip(f"{said.rule_id} on {decision.command_id} {said.reason}.{when}", 1000),
            fix=clip(
                f"Mend `when` of {said.rule_id}, or provide what it has to know about {decision.command_id}.",
                1000,
            ),
            line=item.lines.get(("when",), 0) if item is not None else 0,
        )


def _by_facts(decisions: Iterable[RuleDecision], registry: Registry) -> bool:
    """Whether a rule could not say that goes by what the scan finds."""
    unsaid = (r.rule_id for d in decisions for r in d.rules if r.outcome == "undecidable")
    rules = (registry.get("rule", id_) for id_ in unsaid)
    return any(isinstance(rule, Rule) and any(map(speaks_of_facts, rule.evidence_required)) for rule in rules)


def _unread(said: str) -> Problem:
    """A manifest that cannot be read, as the scan tells it: the file, its line where that is known, and why."""
    place, _, why = said.rpartition(": ")
    file, _, line = place.partition(", line ")
    return Problem(
        field=clip(file or "facts", 400),
        message=f"{why}; what it would tell of the project is unknown",
        fix=f"Mend {clip(place or 'it', 400)}: {why}.",
        line=int(line) if line.isdecimal() else 0,
    )


def _faulty(faults: Faults) -> Found:
    return {
        "cyclic_graph": faults.cycles,
        "phase_unmapped": faults.unmapped,
        "lane_missing": faults.unassigned,
        "evidence_missing": faults.unsupported,
        "node_incomplete": faults.incomplete,
        "placeholder_left": faults.placeholders,
    }


def _question(question: AskedQuestion) -> Problem:
    told = f"{question.cause}: {question.question_text} ({question.question_id})"
    return Problem(field=question.about, message=clip(told, 1000))


def _conflicting(conflict: Conflict) -> Problem:
    return Problem(
        field=f"planned_commands.{conflict.command_id}",
        message=clip(f"{conflict.question_id} against {conflict.rule_id}: {conflict.reason}", 1000),
    )


def _stopping(blocked: Iterable[Answer], questions: Iterable[AskedQuestion]) -> Iterator[Problem]:
    asked = {question.question_id: question for question in questions}
    for answer in blocked:
        question = asked.get(answer.question_id)
        text = f"{question.cause}: {question.question_text}" if question else answer.question_id
        yield Problem(
            field=question.about if question else "interaction",
            message=clip(f"{text} {answer.rationale}".strip(), 1000),
            fix="Settle it in the intent, or answer it otherwise.",
        )


def _over(budget: Budget) -> Problem:
    of_policy = budget.name == "max_files_per_commit"
    field = f"policy.constraints.{budget.name}" if of_policy else f"budgets.{budget.name}"
    return Problem(
        field=field,
        message=f"{budget.name} is {budget.limit}, and the plan is expected to need {budget.estimate}.",
        fix=f"Set {field} to {budget.estimate} or more, or plan less.",
    )
