"""Why there is no plan, as a FailurePack: one function for each state that can fail.

What aborts comes before what blocks, in the order in which the table asks. **Invariant:** every pack names a field or
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
from steersman.contracts.planning.review import BudgetEstimate, FailurePack, FailureType, RecoverySuggestion
from steersman.contracts.planning.words import AssessedRisk
from steersman.judges.planning.precheck import describe_checksum_problem, find_unusable_references
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.rule_evidence import is_fact_evidence
from steersman.judges.text import clip_text
from steersman.machines.coordinator.faults import GraphFaults
from steersman.machines.coordinator.remaining import NO_OBJECTIONS, RemainingObjections
from steersman.machines.coordinator.review import ReviewFaults
from steersman.machines.coordinator.uncertainties import ChosenQuestions

# ── reasons ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Every way in which planning can fail, as a table: its type, its message, what to change and how.
#
# **Invariant:** the page of failures is this table; no failure has a cause that is not here.


class FailureCause(NamedTuple):
    """One row: the type of the failure, the sentence, the field or thing to change, and how."""

    type: FailureType
    message: str
    change: str
    how: str


_RED_LINE: FailureType = "red_line_violation"
_CONSTRAINT: FailureType = "constraint_violation"
_MISSING_REGISTRY: FailureType = "missing_registry"
_POLICY_VIOLATION: FailureType = "policy_violation"

# fmt: off
FAILURE_CAUSES: dict[str, FailureCause] = {
    # PRECHECKED
    "execution_payload":   FailureCause(_RED_LINE,    "The intent carries something that could be executed", "intent", "Take the named keys out; a plan only describes."),
    "schema_invalid":      FailureCause(_CONSTRAINT,  "The intent breaks its schema", "intent", "Correct every field that `steersman intent check FILE` lists."),
    "checksum_mismatch":   FailureCause(_CONSTRAINT,  "The checksum is not that of the intent", "audit.checksum", "Read what has changed and seal it again: `steersman intent seal FILE`."),
    "asks_in_full_auto":   FailureCause(_POLICY_VIOLATION, "full_auto does not ask", "interaction.question_budget", "Set question_budget to 0 and question_policy to never, or choose another mode."),
    "risk_in_full_auto":   FailureCause(_POLICY_VIOLATION, "A high or critical risk is not planned in full_auto", "interaction.mode", "Choose semi_auto or interactive."),
    "unevidenced_command": FailureCause(_CONSTRAINT,  "A planned command has no evidence", "planned_commands", "Cite what speaks for it in evidence_refs."),
    "not_registered":      FailureCause(_MISSING_REGISTRY,   "Something is not in the registry", "selected_workflows, selected_agents, planned_commands, evidence_refs", "Use ids that `steersman registry list` shows, or add the content to .steersman/registry."),
    "inactive_content":    FailureCause(_MISSING_REGISTRY,   "Content of the registry is neither active nor frozen", "registry", "Use another id, or set its status to active."),
    "version_drift":       FailureCause(_MISSING_REGISTRY,   "The registry is not the one that the intent was sealed with", "evidence_refs", "Run `steersman intent seal FILE` again after reading `steersman registry diff`."),
    "policy_invalid":      FailureCause(_POLICY_VIOLATION, "The policy cannot be used", "policy", "Correct the named fields of the policy."),
    "mode_changed":        FailureCause(_POLICY_VIOLATION, "The run was begun in another mode than intent and policy ask for", "interaction.mode", "Start `steersman plan` again."),
    "registry_broken":     FailureCause(_MISSING_REGISTRY,   "The registry cannot be used", ".steersman/registry", "Correct every problem that `steersman registry check` lists."),
    "intent_unreadable":   FailureCause(_CONSTRAINT,  "The intent could not be looked at", "intent", "Look at the file: `steersman intent check FILE`."),
    # CONTEXT_BUILT
    "memory_unavailable":  FailureCause(_CONSTRAINT,  "There is no memory to go by", "memory", "Add what is known: `steersman memory add TEXT`."),
    "memory_damaged":      FailureCause(_CONSTRAINT,  "The memories cannot be used", "memory", "Restore the named file from a backup, or move it aside; `steersman doctor` has the command. Then `steersman memory add TEXT`."),
    "facts_unavailable":   FailureCause(_CONSTRAINT,  "There are no facts about the project", "scope.repo_root", "Plan inside the project; `steersman facts` shows what is found."),
    "policy_unavailable":  FailureCause(_POLICY_VIOLATION, "The policy's constraints are not loaded", "policy", "Name a policy file or a preset with --policy."),
    "context_missing":     FailureCause(_CONSTRAINT,  "The context could not be put together", "memory", "Look at `steersman memory list` and `steersman facts`."),
    # RULES_EVALUATED
    "routing_violation":   FailureCause(_RED_LINE,    "The policy leaves no model for an agent", "policy.models", "Allow a model or a placement that the agent has, or select another agent."),
    "rule_conflict":       FailureCause(_RED_LINE,    "Two rules contradict each other and no order says which holds", "registry", "Correct one of the rules."),
    "rule_denied":         FailureCause(_RED_LINE,    "A rule forbids a planned command", "planned_commands", "Take the command out, or meet what the rule asks for; a person has to look first."),
    "manifest_unread":     FailureCause(_CONSTRAINT,  "A manifest cannot be read, so that what it would tell is unknown", "facts", "Correct the file that is named; where manifests of its kind are not read, name the checks of the project in steersman.toml. Then plan again; `steersman facts` shows what is read."),
    "rule_undecidable":    FailureCause(_CONSTRAINT,  "A rule cannot be decided", "rule.when", "Correct the condition of the rule that is named, or provide what it has to know."),
    "deny_unexplained":    FailureCause(_CONSTRAINT,  "A rule denies without a reason", "registry", "Write then.reason of the rule."),
    "operation_forbidden": FailureCause(_POLICY_VIOLATION, "The policy forbids a planned command", "planned_commands", "Take it out, or change policy.constraints."),
    "command_undecided":   FailureCause(_CONSTRAINT,  "A planned command has no verdict", "planned_commands", "Run `steersman registry check`, then plan again."),
    "rules_unasked":       FailureCause(_CONSTRAINT,  "The rules could not be asked", "registry", "Run `steersman registry check`."),
    # GRAPH_DRAFTED and GRAPH_FINALIZED
    "cyclic_graph":        FailureCause(_CONSTRAINT,  "The order of the phases is a circle", "selected_workflows", "Correct `after` in the workflow that is named, or select fewer of its phases."),
    "phase_unmapped":      FailureCause(_CONSTRAINT,  "A selected phase is nowhere in the graph", "selected_workflows", "Select phases that the workflow has."),
    "lane_missing":        FailureCause(_CONSTRAINT,  "An agent or a node has no lane", "selected_agents", "Select agents that cover the selected phases."),
    "evidence_missing":    FailureCause(_CONSTRAINT,  "A proposal has no evidence", "planned_commands", "Cite what speaks for it in evidence_refs."),
    "node_incomplete":     FailureCause(_CONSTRAINT,  "A node lacks what it cannot be without", "registry", "Run `steersman registry check`."),
    "placeholder_left":    FailureCause(_CONSTRAINT,  "A question is still open", "interaction", "Answer it, or settle it in the intent."),
    "default_blocks":      FailureCause(_CONSTRAINT,  "A question has no answer, and its default is to stop", "interaction.mode", "Plan in interactive mode and answer, or change what the question is about."),
    "no_graph":            FailureCause(_CONSTRAINT,  "There is no graph", "selected_workflows", "Select a workflow and its phases."),
    # QUESTIONS_EMITTED
    "question_budget_exceeded": FailureCause(_POLICY_VIOLATION, "More has to be asked than the budget allows", "interaction.question_budget", "Raise question_budget of intent and policy, or settle what is asked in the intent."),
    "question_unevidenced":     FailureCause(_CONSTRAINT,  "A question lacks the evidence that the policy asks for", "policy.question_rules.min_evidence_count", "Cite more evidence in the intent, or ask for less in the policy."),
    "question_undefaulted":     FailureCause(_CONSTRAINT,  "A question has no default that may hold", "intent", "Settle in the intent what the question is about."),
    "question_unfit":           FailureCause(_POLICY_VIOLATION, "A question may not be asked under this policy", "policy.question_rules.allowed_types", "Allow its type, or choose another mode."),
    "nothing_to_ask":           FailureCause(_CONSTRAINT,  "There was nothing to ask", "interaction", "Plan again."),
    # AWAITING_ANSWERS
    "answers_conflict":    FailureCause("rule_denied", "Answers contradict rules, more often than may be", "planned_commands", "Take the command out of the intent, or change the rule: an answer does not outweigh it."),
    "answer_blocks":       FailureCause(_CONSTRAINT,  "An answer or a default stops the run", "intent", "Settle in the intent what the question is about."),
    "answers_stopped":     FailureCause(_CONSTRAINT,  "The run was stopped while its questions were open", "policy.auto_fallback", "Plan again and answer, settle the questions in the intent, or set auto_fallback to true."),
    # REVIEW_PACK_BUILT
    "budget_exceeded":     FailureCause(_CONSTRAINT,  "The plan needs more than its budgets allow", "budgets", "Raise the named budget, or plan less."),
    "review_uncovered":    FailureCause(_CONSTRAINT,  "A review is asked for that the plan has no gate for", "risk.requires_review", "Select a phase in which it can take place."),
    "risk_unjustified":    FailureCause(_CONSTRAINT,  "A risk is stated that nothing shows", "risk.drivers", "Cite what shows it."),
    "review_missing":      FailureCause(_CONSTRAINT,  "The review pack could not be built", "intent", "Plan again."),
    # FROZEN_OUTPUTS
    "output_malformed":    FailureCause(_RED_LINE,    "A document of the plan breaks its schema", "registry", "Look at the named document: content that no schema foresees may be behind it."),
    "checksum_failed":     FailureCause(_CONSTRAINT,  "What was written is not what was worked out", "--out", "Write to another directory; look at the disk."),
    "lineage_incomplete":  FailureCause(_CONSTRAINT,  "The plan cannot be traced back to its inputs", "registry", "Plan again with the registry as it is now."),
    "not_written":         FailureCause(_CONSTRAINT,  "The plan could not be written", "--out", "Give a directory that can be written."),
    # GRAPH_FINALIZED, beside those of a graph
    "rest_denied":         FailureCause("rule_denied", "A rule speaks against what is left of the plan", "planned_commands", "Keep in the plan what the rule asks for, or plan without the named command."),
    "phase_emptied":       FailureCause(_CONSTRAINT,  "A phase that has to show something has nothing left", "planned_commands", "Plan a command for it that evidence speaks for, or do not select the phase."),
    "rest_risky":          FailureCause(_POLICY_VIOLATION, "A high or critical risk is not planned in full_auto", "interaction.mode", "Choose semi_auto or interactive."),
    "evidence_unfound":    FailureCause(_CONSTRAINT,  "Commands are left out because what is cited for them cannot be found", "planned_commands", "Look at what `steersman intent check FILE` lists, and draft the intent again or cite what is there now."),
    # anywhere
    "broken":              FailureCause(_CONSTRAINT,  "It could not be worked out", "surroundings", "Correct what is named, and plan again; `steersman doctor` looks at the rest."),
}
# fmt: on


# ── failure ────────────────────────────────────────────────────────────────────────────────


EMPTY_REGISTRY = Registry(())
MAX_FAILURE_PROBLEMS = 100  # problems, and ways to correct them, that a pack lists

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
    """Nothing to go by; `memory`, `facts` and `policy` say what is wrong with each, `damaged` how to repair a file."""
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
    """Answers that contradict rules once too often, or that stop the run; no answer at all."""
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
    """The first cause with a problem names the failure; the problems of all of them are in it, and ways to correct them."""
    listed_by_cause = {cause: listed for cause, p in problems_by_cause.items() if (listed := tuple(p))}
    rows = [FAILURE_CAUSES[cause] for cause in listed_by_cause] or [FAILURE_CAUSES[otherwise]]
    problems = tuple(dict.fromkeys(problem for listed in listed_by_cause.values() for problem in listed))
    # What named the failure has to be corrected first.
    first = _problem_recoveries(next(iter(listed_by_cause.values()), ()))
    general = [RecoverySuggestion(change=row.change, how=row.how) for row in rows]
    suggestions = (general[0], *first, *general[1:], *_problem_recoveries(problems))
    return FailurePack(
        plan_id=about.plan_id,
        intent_id=about.intent_id,
        failure_type=rows[0].type,
        cause=next(iter(listed_by_cause), otherwise),
        failed_at_state=state,
        message=clip_text("; ".join(row.message for row in rows) + ".", 2000),
        problems=problems[:MAX_FAILURE_PROBLEMS],
        evidence_refs=tuple(sorted(evidence))[:MAX_FAILURE_PROBLEMS],
        recovery_suggestions=tuple(dict.fromkeys(suggestions))[:MAX_FAILURE_PROBLEMS],
        retriable=rows[0].type != "red_line_violation",
        risk=about.risk,
    )


def _problem_recoveries(problems: Iterable[DocumentProblem]) -> Iterator[RecoverySuggestion]:
    return (RecoverySuggestion(change=p.field or "intent", how=p.fix) for p in problems if p.fix)


def _execution_payload_problems(report: PrecheckReport) -> Iterator[DocumentProblem]:
    """What could be executed, or what the intent allows to be; where the intent says nothing, the schema asks for it."""
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
                f"Correct `when` of {undecidable_rule.rule_id}, or provide what it has to know about {decision.command_id}.",
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
        fix=f"Correct {clip_text(place or 'it', 400)}: {why}.",
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
