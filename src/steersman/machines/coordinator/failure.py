"""Why there is no plan, as a FailurePack: one function for each state that can fail.

What aborts is told before what blocks, in the order in which the table asks. **Invariant:** every pack names a field or
a thing to change, and how; a red line is never called retriable.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from steersman.contracts.planning.content import RegistryRule
from steersman.contracts.planning.decisions import (
    DocumentProblem,
    PrecheckReport,
    RoutingAdvice,
    RuleDecision,
)
from steersman.contracts.planning.questions import AnswerConflict, AskedQuestion, QuestionAnswer
from steersman.contracts.planning.review import BudgetEstimate, FailurePack, RecoverySuggestion
from steersman.contracts.planning.words import AssessedRisk
from steersman.judges.planning.precheck import describe_checksum_problem, find_unusable_references
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.rule_evidence import is_fact_evidence
from steersman.judges.text import clip_text
from steersman.machines.coordinator.faults import GraphFaults
from steersman.machines.coordinator.reasons import FAILURE_CAUSES
from steersman.machines.coordinator.remaining import NO_OBJECTIONS, RemainingObjections
from steersman.machines.coordinator.review import ReviewFaults
from steersman.machines.coordinator.uncertainties import ChosenQuestions

EMPTY_REGISTRY = Registry(())
MAX_FAILURE_PROBLEMS = 100  # problems, and ways to mend them, that a pack lists

ProblemsByCause = dict[str, Iterable[DocumentProblem]]  # by cause, in the order in which the table asks


class FailureSubject(NamedTuple):
    """The run a failure is about; a plan has no name before its inputs are known."""

    intent_id: str
    plan_id: str = ""
    risk: AssessedRisk = "unknown"  # what was never assessed is never called low


def precheck_failure(
    about: FailureSubject,
    report: PrecheckReport | None,
    *,
    mode_changed: str = "",
    registry: Iterable[DocumentProblem] = (),
) -> FailurePack:
    """An intent that may not be planned as it is; `mode_changed` says how its mode is not the run's."""
    if report is None:
        return _build_failure_pack(about, "PRECHECKED", {}, "intent_unreadable")
    problems_by_cause: ProblemsByCause = {
        "execution_payload": _execution_payload_problems(report),
        "registry_broken": registry,
        "schema_invalid": report.schema_problems,
        "checksum_mismatch": () if report.checksum_matches else (_checksum_mismatch_problem(report),),
        "asks_in_full_auto": _red_line_problems(report, "I2"),
        "risk_in_full_auto": _red_line_problems(report, "I3"),
        "unevidenced_command": _red_line_problems(report, "I4"),
        "not_registered": (*_red_line_problems(report, "I5"), *find_unusable_references(report, "missing")),
        "inactive_content": find_unusable_references(report, "inactive"),
        "version_drift": find_unusable_references(report, "drifted", "unpinned"),
        "policy_invalid": [
            replace(p, field=clip_text(f"policy.{p.field}", 400)) for p in report.policy_problems
        ],
        "mode_changed": _message_problems("interaction.mode", mode_changed),
    }
    return _build_failure_pack(about, "PRECHECKED", problems_by_cause, "intent_unreadable")


def context_failure(
    about: FailureSubject,
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
    problems_by_cause: ProblemsByCause = {
        "memory_damaged": (DocumentProblem(field="memory", message=memory, fix=damaged),) if damaged else (),
        "memory_unavailable": () if damaged else _message_problems("memory", memory or few),
        "facts_unavailable": _message_problems("facts", facts),
        "policy_unavailable": _message_problems("policy", policy),
    }
    return _build_failure_pack(about, "CONTEXT_BUILT", problems_by_cause, "context_missing")


def rules_failure(
    about: FailureSubject,
    decisions: Iterable[RuleDecision],
    routing: Iterable[RoutingAdvice] = (),
    forbidden: Iterable[DocumentProblem] = (),
    commands: Iterable[str] = (),
    registry: Registry = EMPTY_REGISTRY,
    unread: Iterable[str] = (),
) -> FailurePack:
    """Rules or the policy say no, or cannot say; `commands` are all that should have a decision, `registry` has the rules,
    `unread` are the manifests that the scan could not read."""
    all_decisions = tuple(decisions)
    undecided = sorted(set(commands) - {d.command_id for d in all_decisions})
    problems_by_cause: ProblemsByCause = {
        "routing_violation": [
            DocumentProblem(field=f"selected_agents.{a.agent_id}", message=a.reason)
            for a in routing
            if a.violation
        ],
        "rule_conflict": [_rule_decision_problem(d, d.conflict) for d in all_decisions if d.conflict],
        "rule_denied": [_rule_decision_problem(d, d.reason) for d in all_decisions if d.hard],
        "manifest_unread": map(_unread_manifest_problem, unread)
        if _needs_scan_facts(all_decisions, registry)
        else (),
        "rule_undecidable": [
            p for d in all_decisions if d.undecidable for p in _undecidable_rule_problems(d, registry)
        ],
        "deny_unexplained": [
            _rule_decision_problem(d, "it is denied without a reason")
            for d in all_decisions
            if d.decision == "deny" and not d.reason.strip()
        ],
        "operation_forbidden": forbidden,
        "command_undecided": [
            DocumentProblem(field=f"planned_commands.{id_}", message=f"{id_} has no verdict.")
            for id_ in undecided
        ],
    }
    refs = {ref for d in all_decisions if d.hard or d.conflict or d.undecidable for ref in d.evidence_used}
    return _build_failure_pack(about, "RULES_EVALUATED", problems_by_cause, "rules_unasked", refs)


def graph_failure(about: FailureSubject, faults: GraphFaults) -> FailurePack:
    """What was drafted is no plan."""
    return _build_failure_pack(about, "GRAPH_DRAFTED", _graph_problems_by_cause(faults), "no_graph")


def question_failure(about: FailureSubject, chosen: ChosenQuestions) -> FailurePack:
    """More has to be asked than may be, or a question may not go out."""
    problems_by_cause: ProblemsByCause = {
        "question_budget_exceeded": map(_question_problem, chosen.over),
        "question_unevidenced": map(_question_problem, chosen.unevidenced),
        "question_undefaulted": map(_question_problem, chosen.undefaulted),
        "question_unfit": map(_question_problem, chosen.unfit),
    }
    return _build_failure_pack(about, "QUESTIONS_EMITTED", problems_by_cause, "nothing_to_ask")


def answer_failure(
    about: FailureSubject,
    *,
    conflicts: Iterable[AnswerConflict] = (),
    blocked: Iterable[QuestionAnswer] = (),
    questions: Iterable[AskedQuestion] = (),
) -> FailurePack:
    """Answers that contradict rules once too often, or that stop the run; nobody answering at all."""
    against, stopped, asked_questions = tuple(conflicts), tuple(blocked), tuple(questions)
    problems_by_cause: ProblemsByCause = {
        "answers_conflict": map(_answer_conflict_problem, against),
        "answer_blocks": _stopping_answer_problems(stopped, asked_questions),
        "answers_stopped": () if against or stopped else map(_question_problem, asked_questions),
    }
    return _build_failure_pack(about, "AWAITING_ANSWERS", problems_by_cause, "answers_stopped")


def finalize_failure(
    about: FailureSubject,
    faults: GraphFaults,
    blocked: Iterable[QuestionAnswer] = (),
    questions: Iterable[AskedQuestion] = (),
    rest: RemainingObjections = NO_OBJECTIONS,
) -> FailurePack:
    """A graph that cannot be completed, a default that stops the run, or something against what is left."""
    problems_by_cause: ProblemsByCause = {
        "default_blocks": _stopping_answer_problems(blocked, questions),
        "evidence_unfound": rest.groundless if rest.ruled_out or rest.emptied else (),
        "rest_denied": rest.ruled_out,
        "phase_emptied": rest.emptied,
        "rest_risky": rest.alone,
        **_graph_problems_by_cause(faults),
    }
    return _build_failure_pack(about, "GRAPH_FINALIZED", problems_by_cause, "no_graph")


def review_failure(about: FailureSubject, faults: ReviewFaults) -> FailurePack:
    """A plan that needs more than it may, or that cannot be reviewed."""
    problems_by_cause: ProblemsByCause = {
        "budget_exceeded": map(_over_budget_problem, faults.over),
        "review_uncovered": faults.uncovered,
        "risk_unjustified": faults.unjustified,
    }
    return _build_failure_pack(about, "REVIEW_PACK_BUILT", problems_by_cause, "review_missing")


def freeze_failure(
    about: FailureSubject,
    *,
    malformed: Iterable[DocumentProblem] = (),
    unmatched: Iterable[DocumentProblem] = (),
    untraced: Iterable[DocumentProblem] = (),
    unwritten: str = "",
) -> FailurePack:
    """Outputs that are not what they should be, or not where they should be."""
    problems_by_cause: ProblemsByCause = {
        "not_written": _message_problems("--out", unwritten),
        "output_malformed": malformed,
        "checksum_failed": unmatched,
        "lineage_incomplete": untraced,
    }
    return _build_failure_pack(about, "FROZEN_OUTPUTS", problems_by_cause, "not_written")


def broken_state_failure(about: FailureSubject, state: str, why: str) -> FailurePack:
    """Something that a state needs broke before it could look at anything."""
    return _build_failure_pack(about, state, {"broken": _message_problems("surroundings", why)}, "broken")


def _build_failure_pack(
    about: FailureSubject,
    state: str,
    problems_by_cause: ProblemsByCause,
    otherwise: str,
    evidence: Iterable[str] = (),
) -> FailurePack:
    """The first cause with a problem names the failure; the problems of all of them are in it, and ways to mend them."""
    listed_by_cause = {
        cause: listed for cause, problems in problems_by_cause.items() if (listed := tuple(problems))
    }
    rows = [FAILURE_CAUSES[cause] for cause in listed_by_cause] or [FAILURE_CAUSES[otherwise]]
    problems = tuple(dict.fromkeys(problem for listed in listed_by_cause.values() for problem in listed))
    # What named the failure is mended first.
    first = _problem_recoveries(next(iter(listed_by_cause.values()), ()))
    general = [RecoverySuggestion(change=row.change, how=row.how) for row in rows]
    mends = (general[0], *first, *general[1:], *_problem_recoveries(problems))
    return FailurePack(
        plan_id=about.plan_id,
        intent_id=about.intent_id,
        failure_type=rows[0].type,
        cause=next(iter(listed_by_cause), otherwise),
        failed_at_state=state,
        message=clip_text("; ".join(row.message for row in rows) + ".", 2000),
        problems=problems[:MAX_FAILURE_PROBLEMS],
        evidence_refs=tuple(sorted(evidence))[:MAX_FAILURE_PROBLEMS],
        recovery_suggestions=tuple(dict.fromkeys(mends))[:MAX_FAILURE_PROBLEMS],
        retriable=rows[0].type != "red_line_violation",
        risk=about.risk,
    )


def _problem_recoveries(problems: Iterable[DocumentProblem]) -> Iterator[RecoverySuggestion]:
    return (RecoverySuggestion(change=p.field or "intent", how=p.fix) for p in problems if p.fix)


def _execution_payload_problems(report: PrecheckReport) -> Iterator[DocumentProblem]:
    """What could be executed, or is said to be allowed to; where nothing is said, the schema asks for it."""
    yield from report.execution_payload
    yield from (detail for check in report.red_lines if check.red_line == "I1" for detail in check.details)


def _red_line_problems(report: PrecheckReport, red_line: str) -> Iterator[DocumentProblem]:
    for check in report.red_lines:
        if check.red_line == red_line and not check.passed:
            yield from check.details or _message_problems("intent", f"Red line {red_line} is crossed.")


def _checksum_mismatch_problem(report: PrecheckReport) -> DocumentProblem:
    return DocumentProblem(field="audit.checksum", message=f"It {describe_checksum_problem(report)}.")


def _message_problems(field: str, message: str) -> tuple[DocumentProblem, ...]:
    return (DocumentProblem(field=field, message=clip_text(message, 1000)),) if message else ()


def _rule_decision_problem(decision: RuleDecision, why: str) -> DocumentProblem:
    return DocumentProblem(
        field=f"planned_commands.{decision.command_id}",
        message=clip_text(f"{decision.command_id}: {why}", 1000),
        fix=clip_text("; ".join(decision.required_changes), 1000),
    )


def _undecidable_rule_problems(decision: RuleDecision, registry: Registry) -> Iterator[DocumentProblem]:
    """Each rule that could not say, where it stands and why; a command that no rule could be asked about."""
    undecidable = [rule for rule in decision.rules if rule.outcome == "undecidable"]
    if not undecidable:
        yield _rule_decision_problem(decision, decision.reason)
    for undecidable_rule in undecidable:
        item = registry.held["rule"].get(undecidable_rule.rule_id)
        rule = item.content if item is not None else None
        when = f" Its condition: {rule.when}" if isinstance(rule, RegistryRule) else ""
        where = (item.file if item is not None else "") or f"rule {undecidable_rule.rule_id}"
        yield DocumentProblem(
            field=clip_text(f"{where}: when", 400),
            message=clip_text(
                f"{undecidable_rule.rule_id} on {decision.command_id} {undecidable_rule.reason}.{when}", 1000
            ),
            fix=clip_text(
                f"Mend `when` of {undecidable_rule.rule_id}, or provide what it has to know about {decision.command_id}.",
                1000,
            ),
            line=item.lines.get(("when",), 0) if item is not None else 0,
        )


def _needs_scan_facts(decisions: Iterable[RuleDecision], registry: Registry) -> bool:
    """Whether a rule could not say that goes by what the scan finds."""
    undecidable_ids = (r.rule_id for d in decisions for r in d.rules if r.outcome == "undecidable")
    rules = (registry.get("rule", id_) for id_ in undecidable_ids)
    return any(
        isinstance(rule, RegistryRule) and any(map(is_fact_evidence, rule.evidence_required))
        for rule in rules
    )


def _unread_manifest_problem(scan_message: str) -> DocumentProblem:
    """A manifest that cannot be read, as the scan tells it: the file, its line where that is known, and why."""
    place, _, why = scan_message.rpartition(": ")
    file, _, line = place.partition(", line ")
    return DocumentProblem(
        field=clip_text(file or "facts", 400),
        message=f"{why}; what it would tell of the project is unknown",
        fix=f"Mend {clip_text(place or 'it', 400)}: {why}.",
        line=int(line) if line.isdecimal() else 0,
    )


def _graph_problems_by_cause(faults: GraphFaults) -> ProblemsByCause:
    return {
        "cyclic_graph": faults.cycles,
        "phase_unmapped": faults.unmapped,
        "lane_missing": faults.unassigned,
        "evidence_missing": faults.unsupported,
        "node_incomplete": faults.incomplete,
        "placeholder_left": faults.placeholders,
    }


def _question_problem(question: AskedQuestion) -> DocumentProblem:
    message = f"{question.cause}: {question.question_text} ({question.question_id})"
    return DocumentProblem(field=question.about, message=clip_text(message, 1000))


def _answer_conflict_problem(conflict: AnswerConflict) -> DocumentProblem:
    return DocumentProblem(
        field=f"planned_commands.{conflict.command_id}",
        message=clip_text(f"{conflict.question_id} against {conflict.rule_id}: {conflict.reason}", 1000),
    )


def _stopping_answer_problems(
    blocked: Iterable[QuestionAnswer], questions: Iterable[AskedQuestion]
) -> Iterator[DocumentProblem]:
    questions_by_id = {question.question_id: question for question in questions}
    for answer in blocked:
        question = questions_by_id.get(answer.question_id)
        text = f"{question.cause}: {question.question_text}" if question else answer.question_id
        yield DocumentProblem(
            field=question.about if question else "interaction",
            message=clip_text(f"{text} {answer.rationale}".strip(), 1000),
            fix="Settle it in the intent, or answer it otherwise.",
        )


def _over_budget_problem(budget: BudgetEstimate) -> DocumentProblem:
    of_policy = budget.name == "max_files_per_commit"
    field = f"policy.constraints.{budget.name}" if of_policy else f"budgets.{budget.name}"
    return DocumentProblem(
        field=field,
        message=f"{budget.name} is {budget.limit}, and the plan is expected to need {budget.estimate}.",
        fix=f"Set {field} to {budget.estimate} or more, or plan less.",
    )
