"""The planner's effects: documents in, documents out, and what was counted on the way.

What a plan is worked out from and how is in `judges.planning` and the coordinator's own files; here documents are
fetched, handed on and kept. **Invariant:** nothing is started, and nothing but a frozen plan is written.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from steersman.contracts.planning import facts
from steersman.contracts.planning.content import RegistryRule
from steersman.contracts.planning.decisions import RuleDecision
from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.questions import AnswerPack, QuestionAnswer, QuestionPack, SettledQuestions
from steersman.errors import SteersmanError
from steersman.judges.planning import answers as replies
from steersman.judges.planning.choices import intent_as_rules_see_it
from steersman.judges.planning.evidence import build_context_bundle
from steersman.judges.planning.plan_inputs import build_plan_lineage, derive_plan_id
from steersman.judges.planning.policy import find_forbidden_commands
from steersman.judges.planning.precheck import count_precheck_facts as counted
from steersman.judges.planning.precheck import has_passed_precheck
from steersman.judges.planning.precheck import precheck_intent as looked_at
from steersman.judges.planning.risk import assess_plan_risk
from steersman.judges.planning.routing import advise_models
from steersman.judges.planning.rule_evidence import compile_rules
from steersman.judges.planning.rules import decide_planned_commands
from steersman.judges.text import clip_text, printable_text
from steersman.machines.coordinator import failure, graph, review, uncertainties
from steersman.machines.coordinator.effects.plan_documents import (
    COORDINATOR_NAME,
    PlanningDocuments,
    planning_performer,
    require_settled_answers,
)
from steersman.machines.coordinator.faults import GraphFaults, find_graph_faults
from steersman.machines.coordinator.graph import choices_from_settled
from steersman.machines.coordinator.remaining import find_answer_objections, find_remaining_objections


@planning_performer("PRECHECKED")
def precheck_plan(documents: PlanningDocuments) -> facts.PrecheckFacts:
    """The intent held against schema, registry and red lines: all of it, whatever a part of it says."""
    loaded = documents.world.registries.load()
    report = looked_at(
        documents.raw, documents.policy_raw, loaded.registry, project=documents.call.config.project or ""
    )
    precheck_facts = counted(report, documents.raw, documents.policy_raw)
    begun_mode = documents.call.given("mode", "")
    change = (
        f"it was begun as {begun_mode}, intent and policy ask for {precheck_facts.mode}"
        if precheck_facts.mode != begun_mode
        else ""
    )
    subject = documents.stated(report.intent_id, loaded.registry)
    ref, digest = documents.keep(report)
    return msgspec.structs.replace(
        precheck_facts,
        registry=documents.world.registries.store_registry(loaded.registry),
        registry_problems=len(loaded.problems),
        report_ref=ref,
        report_digest=digest,
        failure_ref=documents.why(
            change or loaded.problems or not has_passed_precheck(report),
            lambda: failure.precheck_failure(subject, report, mode_changed=change, registry=loaded.problems),
        ),
    )


@planning_performer("CONTEXT_BUILT")
def build_plan_context(documents: PlanningDocuments) -> facts.ContextFacts:
    """Reads memory, facts and policy. What cannot be read is reported, never invented."""
    project_id = documents.intent.scope.project_id
    policy, no_policy, _ = fetch_with_retry(lambda: documents.policy)
    retries = policy.max_retries if policy is not None else 0
    memory, no_memory, memory_fix = fetch_with_retry(
        lambda: documents.world.memories.pack(documents.intent.objective.goal, project_id), retries
    )
    fact_pack, no_facts, _ = fetch_with_retry(
        lambda: documents.world.scanner.scan(project_id, documents.intent.scope.repo_root), retries
    )
    context_facts = facts.ContextFacts(
        memory=memory is not None,
        memories=len(memory.memories) if memory is not None else 0,
        threshold=memory.threshold if memory is not None else 1,
        facts=len(fact_pack.facts) if fact_pack is not None else 0,
        policy=policy is not None,
    )
    if fact_pack is not None and not fact_pack.facts:
        no_facts = "; ".join(
            ("the scan has found nothing it knows: see `steersman facts`", *fact_pack.bounds.unread)
        )
    if (
        memory is None
        or fact_pack is None
        or policy is None
        or no_facts
        or context_facts.memories < context_facts.threshold
    ):
        failure_pack = failure.context_failure(
            documents.stated(documents.intent.id, documents.registry),
            memory=no_memory,
            damaged=memory_fix,
            memories=context_facts.memories,
            threshold=context_facts.threshold,
            facts=no_facts,
            policy=no_policy,
        )
        return msgspec.structs.replace(context_facts, failure_ref=documents.keep(failure_pack)[0])
    bundle = build_context_bundle(memory, fact_pack, policy)
    ref, digest = documents.keep(bundle)
    name = derive_plan_id(build_plan_lineage(documents.intent, documents.registry, bundle, COORDINATOR_NAME))
    return msgspec.structs.replace(context_facts, plan_id=name, bundle_ref=ref, bundle_digest=digest)


@planning_performer("RULES_EVALUATED")
def decide_commands_by_rules(documents: PlanningDocuments) -> facts.RulesFacts:
    """Every rule on every planned command, with the scope that was answered; the plan's risk, and advice on models."""
    decisions = _decide_commands(documents)
    risk = assess_plan_risk(documents.intent, documents.registry, decisions, documents.bundle)
    routing = advise_models(documents.intent, documents.registry, documents.policy)
    forbidden_commands = find_forbidden_commands(documents.intent, documents.registry, documents.policy)
    commands = [c.command_id for c in documents.intent.planned_commands]
    ref, digest = documents.keep(decisions)
    rules_facts = facts.RulesFacts(
        commands=len(commands),
        decided=len(decisions),
        undecidable=sum(d.undecidable for d in decisions),
        conflicts=sum(bool(d.conflict) for d in decisions),
        hard_denies=sum(d.hard for d in decisions),
        soft_denies=sum(d.decision == "deny" and not d.hard for d in decisions),
        unexplained=sum(d.decision == "deny" and not d.reason.strip() for d in decisions),
        violations=sum(a.violation for a in routing),
        forbidden=len(forbidden_commands),
        overall_risk=risk.overall_risk,
        decisions_ref=ref,
        decisions_digest=digest,
        risk_ref=documents.keep(risk)[0],
        routing_ref=documents.keep(routing)[0],
    )
    failures = (
        rules_facts.undecidable,
        rules_facts.conflicts,
        rules_facts.hard_denies,
        rules_facts.unexplained,
        rules_facts.violations,
        forbidden_commands,
    )
    subject = documents.about._replace(risk=risk.overall_risk)
    return msgspec.structs.replace(
        rules_facts,
        failure_ref=documents.why(
            any(failures) or rules_facts.decided != rules_facts.commands,
            lambda: failure.rules_failure(
                subject,
                decisions,
                routing,
                forbidden_commands,
                commands,
                documents.registry,
                documents.bundle.facts.bounds.unread,
            ),
        ),
    )


def _decide_commands(documents: PlanningDocuments) -> tuple[RuleDecision, ...]:
    """What holds of each command. Of an answer that contradicts a rule only what ends the run is kept: it does not hold.

    A command that was denied stays denied, whatever has been answered since."""
    if documents.settled is None:
        return _decide_intent_commands(documents, documents.intent)
    settled_ids = {answer.question_id for answer in documents.settled.answers}
    answers = replies.round_answers(documents.pack, _load_person_answers(documents), documents.policy, "")
    unsettled_answers = tuple(answer for answer in answers if answer.question_id not in settled_ids)
    tried_settlement = msgspec.structs.replace(
        documents.settled, answers=(*documents.settled.answers, *unsettled_answers)
    )
    objections_by_id = find_answer_objections(
        documents.inputs,
        tried_settlement,
        lambda remaining_intent: _decide_intent_commands(documents, remaining_intent),
    )
    ending_decisions = {
        id_: d for id_, d in objections_by_id.items() if d.hard or d.undecidable or d.conflict
    }
    denied_decisions = {d.command_id: d for d in documents.decisions if d.decision == "deny"}
    current_decisions = _decide_intent_commands(
        documents,
        intent_as_rules_see_it(documents.intent, choices_from_settled(documents.inputs, documents.settled)),
    )
    return tuple({**ending_decisions, **denied_decisions}.get(d.command_id, d) for d in current_decisions)


def _decide_intent_commands(
    documents: PlanningDocuments, intent: ExecutionIntent
) -> tuple[RuleDecision, ...]:
    """What all rules of the registry say about an intent's commands."""
    rules = tuple(r for r in documents.registry.all_usable("rule") if isinstance(r, RegistryRule))
    return decide_planned_commands(
        intent, documents.registry, documents.bundle, compile_rules(rules), documents.effective
    )


@planning_performer("GRAPH_DRAFTED")
def draft_graph(documents: PlanningDocuments) -> facts.GraphFacts:
    """Returns the graph before any answer, and what is not known."""
    drafted_graph = graph.draft_plan_graph(documents.inputs)
    questions = uncertainties.find_draft_uncertainties(documents.inputs, drafted_graph)
    chosen = documents.chosen(questions)
    graph_faults = find_graph_faults(drafted_graph, documents.inputs)
    fault_list = (
        *graph_faults.cycles,
        *graph_faults.unmapped,
        *graph_faults.unassigned,
        *graph_faults.unsupported,
    )
    return msgspec.structs.replace(
        _build_graph_facts(documents, drafted_graph, graph_faults),
        uncertainties=len(questions),
        askable=(len(chosen.pack.questions) if chosen.pack else 0) + len(chosen.over),
        uncertainties_ref=documents.keep(questions)[0],
        failure_ref=documents.why(fault_list, lambda: failure.graph_failure(documents.about, graph_faults)),
    )


@planning_performer("QUESTIONS_EMITTED")
def emit_questions(documents: PlanningDocuments) -> facts.QuestionFacts:
    """Returns the questions of one round, within policy and budget, and what to report if no answer comes."""
    chosen = documents.chosen(documents.questions)
    questions = chosen.pack.questions if chosen.pack is not None else ()
    ref, digest = documents.keep(chosen.pack) if chosen.pack is not None else ("", "")
    problems = (*chosen.over, *chosen.unevidenced, *chosen.undefaulted, *chosen.unfit)
    silence_failure = failure.answer_failure(documents.about, questions=questions)
    pack = failure.question_failure(documents.about, chosen) if problems or not questions else silence_failure
    return facts.QuestionFacts(
        asked=len(questions),
        unevidenced=len(chosen.unevidenced),
        undefaulted=len(chosen.undefaulted),
        unfit=len(chosen.unfit),
        over=len(chosen.over),
        consumed=chosen.consumed,
        pack_ref=ref,
        pack_digest=digest,
        failure_ref=documents.keep(pack)[0],
    )


@planning_performer("AWAITING_ANSWERS")
def weigh_answers(documents: PlanningDocuments) -> facts.AnswerFacts:
    """Compares the answers with the questions and the rules. A question without an answer takes its default."""
    if documents.call.given("choice") == "defaults":
        return _weigh_answer_pack(documents)
    raw_pack = _raw_answer_pack(documents)
    problems = replies.find_answer_pack_problems(documents.pack, raw_pack)
    if problems:
        missing_count = _count_missing_answers(documents.pack, raw_pack)
        return facts.AnswerFacts(
            problems=len(problems) - missing_count,
            unanswered=missing_count,
            left_ms=documents.left_ms(),
            problems_ref=documents.keep(problems)[0],
        )
    return _weigh_answer_pack(documents)


def _load_person_answers(documents: PlanningDocuments) -> tuple[QuestionAnswer, ...]:
    """Returns what a person answered, all defaults if the person took them, or nothing if the time ran out."""
    if documents.call.given("choice") != "defaults":
        return documents.read_given("answers", AnswerPack).answers
    return (
        replies.default_answers(documents.pack, documents.policy)
        if documents.call.given("person", "")
        else ()
    )


def _count_missing_answers(pack: QuestionPack, raw_pack: Any) -> int:
    """How many of the problems are questions that have to be answered and are not."""
    try:
        answer_pack = msgspec.convert(raw_pack, AnswerPack)
    except msgspec.ValidationError:
        return 0
    return len(replies.unanswered_critical_questions(pack, answer_pack.answers))


def _raw_answer_pack(documents: PlanningDocuments) -> Any:
    """An answer pack as it was given; nothing that can be read is nothing that was said."""
    try:
        return msgspec.json.decode(documents.call.payloads.get(documents.call.given("answers", "")))
    except msgspec.DecodeError:
        return None


def _weigh_answer_pack(documents: PlanningDocuments) -> facts.AnswerFacts:
    def object_to(settled: SettledQuestions) -> dict[str, RuleDecision]:
        return find_answer_objections(
            documents.inputs,
            settled,
            lambda remaining_intent: _decide_intent_commands(documents, remaining_intent),
        )

    person = documents.call.given("person", "")
    weighed_answers = replies.weigh_round_answers(
        documents.pack,
        _load_person_answers(documents),
        documents.policy,
        object_to,
        person=person,
        before=documents.settled,
    )
    return facts.AnswerFacts(
        conflicts=len(weighed_answers.conflicts),
        blocked=len(weighed_answers.blocked),
        weighed=len(weighed_answers.settled.answers),
        settled_ref=documents.keep(weighed_answers.settled)[0],
        conflicts_ref=documents.keep(weighed_answers.conflicts)[0] if weighed_answers.conflicts else "",
        failure_ref=documents.why(
            weighed_answers.conflicts or weighed_answers.blocked,
            lambda: failure.answer_failure(
                documents.about,
                conflicts=weighed_answers.conflicts,
                blocked=weighed_answers.blocked,
                questions=documents.pack.questions,
            ),
        ),
    )


@planning_performer("GRAPH_FINALIZED")
def finalize_graph(documents: PlanningDocuments) -> facts.GraphFacts:
    """Fills unanswered questions with defaults and returns the graph with all answers in it."""
    default_answers = replies.weigh_default_answers(
        documents.questions, documents.inputs.plan_id, documents.policy, documents.settled
    )
    final_graph = graph.finalize_plan_graph(documents.inputs, default_answers.settled)
    remaining_plan = find_remaining_objections(
        documents.inputs,
        default_answers.settled,
        lambda remaining_intent: _decide_intent_commands(documents, remaining_intent),
    )
    if remaining_plan.decisions != documents.inputs.decisions:
        documents.inputs = documents.inputs._replace(decisions=remaining_plan.decisions)
        final_graph = graph.finalize_plan_graph(documents.inputs, default_answers.settled)
    graph_faults = find_graph_faults(final_graph, documents.inputs)
    ref, digest = documents.keep(remaining_plan.decisions)
    return msgspec.structs.replace(
        _build_graph_facts(documents, final_graph, graph_faults),
        overall_risk=remaining_plan.risk.overall_risk,
        risk_ref=documents.keep(remaining_plan.risk)[0],
        blocked=len(default_answers.blocked),
        ruled_out=len(remaining_plan.ruled_out),
        emptied=len(remaining_plan.emptied),
        alone=len(remaining_plan.alone),
        decisions_ref=ref,
        decisions_digest=digest,
        settled_ref=documents.keep(default_answers.settled)[0],
        failure_ref=documents.why(
            default_answers.blocked or graph_faults.all() or remaining_plan.any(),
            lambda: failure.finalize_failure(
                documents.about, graph_faults, default_answers.blocked, documents.questions, remaining_plan
            ),
        ),
    )


def _build_graph_facts(
    documents: PlanningDocuments, built_graph: ExecutionGraph, graph_faults: GraphFaults
) -> facts.GraphFacts:
    ref, digest = documents.keep(built_graph)
    return facts.GraphFacts(
        nodes=len(built_graph.nodes),
        cycles=len(graph_faults.cycles),
        unmapped=len(graph_faults.unmapped),
        unassigned=len(graph_faults.unassigned),
        unsupported=len(graph_faults.unsupported),
        incomplete=len(graph_faults.incomplete),
        placeholders=len(graph_faults.placeholders),
        graph_ref=ref,
        graph_digest=digest,
    )


@planning_performer("REVIEW_PACK_BUILT")
def assemble_review_pack(documents: PlanningDocuments) -> facts.ReviewFacts:
    """Impact, budgets, reviews and the way back."""
    settled = require_settled_answers(documents)
    review_document = review.build_review_pack(documents.inputs, documents.graph, settled, documents.routing)
    problems = review.find_review_faults(documents.inputs, review_document, settled)
    ref, digest = documents.keep(review_document)
    return facts.ReviewFacts(
        uncovered=len(problems.uncovered),
        over=tuple(b.name for b in problems.over),
        unjustified=len(problems.unjustified),
        pack_ref=ref,
        pack_digest=digest,
        failure_ref=documents.why(any(problems), lambda: failure.review_failure(documents.about, problems)),
    )


class FetchResult(NamedTuple):
    """A value, or why there is none and how to fix that, where known."""

    what: Any
    why: str = ""
    fix: str = ""


def fetch_with_retry(fetch: Callable[[], Any], retries: int = 0) -> FetchResult:
    """Calls `fetch` until it returns, at most `retries` times more; returns its value or the last error."""
    while True:
        try:
            return FetchResult(fetch())
        except (SteersmanError, OSError, msgspec.MsgspecError) as error:
            if retries <= 0:
                texts = (str(error), getattr(error, "fix", ""))
                return FetchResult(None, *(clip_text(printable_text(text), 1000) for text in texts))
            retries -= 1
