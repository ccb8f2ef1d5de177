"""The planner's effects: documents in, documents out, and what was counted on the way.

What a plan is worked out from and how is in `judges.planning` and the coordinator's own files; here documents are
fetched, handed on and kept. **Invariant:** nothing is started, and nothing but a frozen plan is written.
"""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, TypeVar, get_type_hints

import msgspec

from steersman.contracts.planning import facts
from steersman.contracts.planning.content import Rule
from steersman.contracts.planning.decisions import (
    PrecheckReport,
    Problem,
    RuleDecision,
)
from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.questions import Answer, AnswerPack, QuestionPack, Settled
from steersman.contracts.planning.review import ReviewPack
from steersman.errors import JournalError, UserError, WorkspaceError
from steersman.judges.planning.citations import bundled
from steersman.judges.planning.forbidden import forbidden
from steersman.judges.planning.precheck import facts as counted
from steersman.judges.planning.precheck import passes
from steersman.judges.planning.precheck import precheck as looked_at
from steersman.judges.planning.risk import assess
from steersman.judges.planning.routing import advise
from steersman.judges.planning.rulebook import compile_rules
from steersman.judges.planning.rules import adjudicate as adjudicated
from steersman.judges.text import clip, printable
from steersman.kernel.canonical import canonical
from steersman.machines.coordinator import answers as replies
from steersman.machines.coordinator import attest, failure, graph, review, uncertainties
from steersman.machines.coordinator import freeze as freezing
from steersman.machines.coordinator.choices import judged_scope
from steersman.machines.coordinator.faults import Faults, faults
from steersman.machines.coordinator.graph import chosen_by
from steersman.machines.coordinator.inputs import lineage, plan_id
from steersman.machines.coordinator.remaining import objections, remaining
from steersman.machines.coordinator.verify import verify
from steersman.runtime.call import Call
from steersman.runtime.performers.asking import had
from steersman.runtime.performers.plan_documents import COORDINATOR, Table
from steersman.views.planning.drawn import drawn

Facts = TypeVar("Facts", bound=msgspec.Struct)


def _planned(state: str) -> Callable[[Callable[[Table], Facts]], Callable[[Call], Awaitable[Facts]]]:
    """Planning computes and reads files, beside the loop; what breaks is a reason why there is no plan."""

    def decorate(work: Callable[[Table], Facts]) -> Callable[[Call], Awaitable[Facts]]:
        returns: type[Facts] = get_type_hints(work)["return"]

        def performed(call: Call) -> Facts:
            try:
                return work(Table(call))
            except JournalError:
                raise
            except Exception as error:
                why = clip(printable(f"{type(error).__name__}: {error}"), 1800)
                about = failure.About(call.given("intent_id", ""), call.given("plan", ""))
                pack = canonical(failure.broken(about, state, why)).decode()
                told = {"detail_ref": call.payloads.put(why), "failure_ref": call.payloads.put(pack)}
                return returns(**told)

        async def perform(call: Call) -> Facts:
            return await asyncio.to_thread(performed, call)

        return perform

    return decorate


@_planned("PRECHECKED")
def precheck(t: Table) -> facts.PrecheckFacts:
    """The intent held against schema, registry and red lines: all of it, whatever a part of it says."""
    loaded = t.world.registries.load()
    report = looked_at(t.raw, t.policy_raw, loaded.registry, project=t.call.config.project or "")
    found = counted(report, t.raw, t.policy_raw)
    begun = t.call.given("mode", "")
    other = f"it was begun as {begun}, intent and policy ask for {found.mode}" if found.mode != begun else ""
    about = t.stated(report.intent_id, loaded.registry)
    ref, digest = t.keep(report)
    return msgspec.structs.replace(
        found,
        registry=t.world.registries.keep(loaded.registry),
        registry_problems=len(loaded.problems),
        report_ref=ref,
        report_digest=digest,
        failure_ref=t.why(
            other or loaded.problems or not passes(report),
            lambda: failure.precheck_failure(about, report, mode_changed=other, registry=loaded.problems),
        ),
    )


@_planned("CONTEXT_BUILT")
def context(t: Table) -> facts.ContextFacts:
    """Memory, facts and policy, as far as they can be had; what cannot is told, never made up."""
    reach = t.intent.scope.project_id
    policy, no_policy, _ = had(lambda: t.policy)
    again = policy.max_retries if policy is not None else 0
    memory, no_memory, damaged = had(lambda: t.world.memories.pack(t.intent.objective.goal, reach), again)
    found, no_facts, _ = had(lambda: t.world.scanner.scan(reach, t.intent.scope.repo_root), again)
    seen = facts.ContextFacts(
        memory=memory is not None,
        memories=len(memory.memories) if memory is not None else 0,
        threshold=memory.threshold if memory is not None else 1,
        facts=len(found.facts) if found is not None else 0,
        policy=policy is not None,
    )
    if found is not None and not found.facts:
        no_facts = "; ".join(
            ("the scan has found nothing it knows: see `steersman facts`", *found.bounds.unread)
        )
    if memory is None or found is None or policy is None or no_facts or seen.memories < seen.threshold:
        pack = failure.context_failure(
            t.stated(t.intent.id, t.registry),
            memory=no_memory,
            damaged=damaged,
            memories=seen.memories,
            threshold=seen.threshold,
            facts=no_facts,
            policy=no_policy,
        )
        return msgspec.structs.replace(seen, failure_ref=t.keep(pack)[0])
    bundle = bundled(memory, found, policy)
    ref, digest = t.keep(bundle)
    named = plan_id(lineage(t.intent, t.registry, bundle, COORDINATOR))
    return msgspec.structs.replace(seen, plan_id=named, bundle_ref=ref, bundle_digest=digest)


@_planned("RULES_EVALUATED")
def adjudicate(t: Table) -> facts.RulesFacts:
    """Every rule on every planned command, with the scope that was answered; the plan's risk, and advice on models."""
    decisions = _ruled(t)
    risk = assess(t.intent, t.registry, decisions, t.bundle)
    routing = advise(t.intent, t.registry, t.policy)
    never = forbidden(t.intent, t.registry, t.policy)
    commands = [c.command_id for c in t.intent.planned_commands]
    ref, digest = t.keep(decisions)
    found = facts.RulesFacts(
        commands=len(commands),
        decided=len(decisions),
        undecidable=sum(d.undecidable for d in decisions),
        conflicts=sum(bool(d.conflict) for d in decisions),
        hard_denies=sum(d.hard for d in decisions),
        soft_denies=sum(d.decision == "deny" and not d.hard for d in decisions),
        unexplained=sum(d.decision == "deny" and not d.reason.strip() for d in decisions),
        violations=sum(a.violation for a in routing),
        forbidden=len(never),
        overall_risk=risk.overall_risk,
        decisions_ref=ref,
        decisions_digest=digest,
        risk_ref=t.keep(risk)[0],
        routing_ref=t.keep(routing)[0],
    )
    wrong = (
        found.undecidable,
        found.conflicts,
        found.hard_denies,
        found.unexplained,
        found.violations,
        never,
    )
    about = t.about._replace(risk=risk.overall_risk)
    return msgspec.structs.replace(
        found,
        failure_ref=t.why(
            any(wrong) or found.decided != found.commands,
            lambda: failure.rules_failure(
                about, decisions, routing, never, commands, t.registry, t.bundle.facts.bounds.unread
            ),
        ),
    )


def _ruled(t: Table) -> tuple[RuleDecision, ...]:
    """What holds of each command. Of an answer that contradicts a rule only what ends the run is kept: it does not hold.

    A command that was denied stays denied, whatever has been answered since."""
    if t.settled is None:
        return _adjudicated(t, t.intent)
    known = {answer.question_id for answer in t.settled.answers}
    said = replies.round_answers(t.pack, _answers(t), t.policy, "")
    broken = tuple(answer for answer in said if answer.question_id not in known)
    tried = msgspec.structs.replace(t.settled, answers=(*t.settled.answers, *broken))
    against = objections(t.inputs, tried, lambda left: _adjudicated(t, left))
    ends = {id_: d for id_, d in against.items() if d.hard or d.undecidable or d.conflict}
    denied = {d.command_id: d for d in t.decisions if d.decision == "deny"}
    now = _adjudicated(t, judged_scope(t.intent, chosen_by(t.inputs, t.settled)))
    return tuple({**ends, **denied}.get(d.command_id, d) for d in now)


def _adjudicated(t: Table, intent: ExecutionIntent) -> tuple[RuleDecision, ...]:
    """What all rules of the registry say about an intent's commands."""
    rules = tuple(r for r in t.registry.all_usable("rule") if isinstance(r, Rule))
    return adjudicated(intent, t.registry, t.bundle, compile_rules(rules), t.effective)


@_planned("GRAPH_DRAFTED")
def draft(t: Table) -> facts.GraphFacts:
    """The graph before anybody has answered, and what is not known."""
    made = graph.draft(t.inputs)
    questions = uncertainties.find(t.inputs, made)
    chosen = t.chosen(questions)
    found = faults(made, t.inputs)
    wrong = (*found.cycles, *found.unmapped, *found.unassigned, *found.unsupported)
    return msgspec.structs.replace(
        _counted(t, made, found),
        uncertainties=len(questions),
        askable=(len(chosen.pack.questions) if chosen.pack else 0) + len(chosen.over),
        uncertainties_ref=t.keep(questions)[0],
        failure_ref=t.why(wrong, lambda: failure.graph_failure(t.about, found)),
    )


@_planned("QUESTIONS_EMITTED")
def emit(t: Table) -> facts.QuestionFacts:
    """The questions of one round, within what policy and budget leave; and what is told if nobody ever answers."""
    chosen = t.chosen(t.questions)
    asked = chosen.pack.questions if chosen.pack is not None else ()
    ref, digest = t.keep(chosen.pack) if chosen.pack is not None else ("", "")
    wrong = (*chosen.over, *chosen.unevidenced, *chosen.undefaulted, *chosen.unfit)
    silence = failure.answer_failure(t.about, questions=asked)
    pack = failure.question_failure(t.about, chosen) if wrong or not asked else silence
    return facts.QuestionFacts(
        asked=len(asked),
        unevidenced=len(chosen.unevidenced),
        undefaulted=len(chosen.undefaulted),
        unfit=len(chosen.unfit),
        over=len(chosen.over),
        consumed=chosen.consumed,
        pack_ref=ref,
        pack_digest=digest,
        failure_ref=t.keep(pack)[0],
    )


@_planned("AWAITING_ANSWERS")
def weigh(t: Table) -> facts.AnswerFacts:
    """What was said held against what was asked and against the rules; what nobody has said takes its default."""
    if t.call.given("choice") == "defaults":
        return _weighed(t)
    raw = _pack_given(t)
    problems = replies.problems(t.pack, raw)
    if problems:
        missing = _missing(t.pack, raw)
        return facts.AnswerFacts(
            problems=len(problems) - missing,
            unanswered=missing,
            left_ms=t.left_ms(),
            problems_ref=t.keep(problems)[0],
        )
    return _weighed(t)


def _answers(t: Table) -> tuple[Answer, ...]:
    """What a person has answered; who takes every default has answered that; nothing where nobody has in time."""
    if t.call.given("choice") != "defaults":
        return t.read("answers", AnswerPack).answers
    return replies.default_answers(t.pack, t.policy) if t.call.given("person", "") else ()


def _missing(pack: QuestionPack, raw: Any) -> int:
    """How many of the problems are questions that have to be answered and are not."""
    try:
        given = msgspec.convert(raw, AnswerPack)
    except msgspec.ValidationError:
        return 0
    return len(replies.unanswered(pack, given.answers))


def _pack_given(t: Table) -> Any:
    """An answer pack as it was given; nothing that can be read is nothing that was said."""
    try:
        return msgspec.json.decode(t.call.payloads.get(t.call.given("answers", "")))
    except msgspec.DecodeError:
        return None


def _weighed(t: Table) -> facts.AnswerFacts:
    def object_to(settled: Settled) -> dict[str, RuleDecision]:
        return objections(t.inputs, settled, lambda left: _adjudicated(t, left))

    person = t.call.given("person", "")
    found = replies.weigh(t.pack, _answers(t), t.policy, object_to, person=person, before=t.settled)
    return facts.AnswerFacts(
        conflicts=len(found.conflicts),
        blocked=len(found.blocked),
        weighed=len(found.settled.answers),
        settled_ref=t.keep(found.settled)[0],
        conflicts_ref=t.keep(found.conflicts)[0] if found.conflicts else "",
        failure_ref=t.why(
            found.conflicts or found.blocked,
            lambda: failure.answer_failure(
                t.about, conflicts=found.conflicts, blocked=found.blocked, questions=t.pack.questions
            ),
        ),
    )


@_planned("GRAPH_FINALIZED")
def finalize(t: Table) -> facts.GraphFacts:
    """Defaults for whatever nobody has answered, and the graph with all of it worked in."""
    held = replies.defaults(t.questions, t.inputs.plan_id, t.policy, t.settled)
    made = graph.finalize(t.inputs, held.settled)
    rest = remaining(t.inputs, held.settled, lambda left: _adjudicated(t, left))
    if rest.decisions != t.inputs.decisions:
        t.inputs = t.inputs._replace(decisions=rest.decisions)
        made = graph.finalize(t.inputs, held.settled)
    found = faults(made, t.inputs)
    ref, digest = t.keep(rest.decisions)
    return msgspec.structs.replace(
        _counted(t, made, found),
        overall_risk=rest.risk.overall_risk,
        risk_ref=t.keep(rest.risk)[0],
        blocked=len(held.blocked),
        ruled_out=len(rest.ruled_out),
        emptied=len(rest.emptied),
        alone=len(rest.alone),
        decisions_ref=ref,
        decisions_digest=digest,
        settled_ref=t.keep(held.settled)[0],
        failure_ref=t.why(
            held.blocked or found.all() or rest.any(),
            lambda: failure.finalize_failure(t.about, found, held.blocked, t.questions, rest),
        ),
    )


def _counted(t: Table, made: ExecutionGraph, found: Faults) -> facts.GraphFacts:
    ref, digest = t.keep(made)
    return facts.GraphFacts(
        nodes=len(made.nodes),
        cycles=len(found.cycles),
        unmapped=len(found.unmapped),
        unassigned=len(found.unassigned),
        unsupported=len(found.unsupported),
        incomplete=len(found.incomplete),
        placeholders=len(found.placeholders),
        graph_ref=ref,
        graph_digest=digest,
    )


@_planned("REVIEW_PACK_BUILT")
def pack(t: Table) -> facts.ReviewFacts:
    """Impact, budgets, reviews and the way back."""
    settled = _settled(t)
    made = review.review_pack(t.inputs, t.graph, settled, t.routing)
    found = review.review_faults(t.inputs, made, settled)
    ref, digest = t.keep(made)
    return facts.ReviewFacts(
        uncovered=len(found.uncovered),
        over=tuple(b.name for b in found.over),
        unjustified=len(found.unjustified),
        pack_ref=ref,
        pack_digest=digest,
        failure_ref=t.why(any(found), lambda: failure.review_failure(t.about, found)),
    )


def _settled(t: Table) -> Settled:
    if t.settled is None:
        raise UserError("the run has settled nothing: plan again")
    return t.settled


@_planned("FROZEN_OUTPUTS")
def freeze(t: Table) -> facts.FreezeFacts:
    """Every output as bytes, written, read back and held against the manifest; the signed statement lies beside them."""
    outputs = _outputs(t)
    files = freezing.frozen(outputs, drawn(outputs))
    malformed = freezing.malformed(files)
    gaps = freezing.lineage_gaps(outputs.graph, outputs.inputs.registry.snapshot())
    wrong: tuple[Problem, ...] = ()
    unwritten = ""
    if not malformed and not gaps:
        try:
            wrong = _laid_down(t, files)
        except WorkspaceError as error:
            unwritten = clip(printable(str(error)), 1000)
    manifest = files[freezing.MANIFEST]
    return facts.FreezeFacts(
        files=len(files),
        unmatched=len(wrong) + bool(unwritten),
        untraced=len(gaps),
        malformed=len(malformed),
        manifest_ref=t.call.payloads.put(manifest.decode()),
        manifest_digest=sha256(manifest).hexdigest(),
        signed=not unwritten and not malformed and not gaps,
        failure_ref=t.why(
            malformed or gaps or wrong or unwritten,
            lambda: failure.freeze_failure(
                t.about, malformed=malformed, unmatched=wrong, untraced=gaps, unwritten=unwritten
            ),
        ),
    )


def _outputs(t: Table) -> freezing.Outputs:
    return freezing.Outputs(
        inputs=t.inputs,
        intent=t.raw,
        report=t.read("report", PrecheckReport),
        routing=t.routing,
        graph=t.graph,
        packs=tuple(
            msgspec.json.decode(t.call.payloads.get(ref), type=QuestionPack)
            for ref in t.call.given("packs", ())
        ),
        settled=_settled(t),
        review=t.read("review", ReviewPack),
    )


def _laid_down(t: Table, files: dict[str, bytes]) -> tuple[Problem, ...]:
    """Writes the plan with its envelope, reads it back, and says what is not as it should be."""
    place = t.call.payloads.get(t.call.given("out", "")) or t.world.plans.place(t.call.run)
    said = attest.statement(files)
    keyid, signature = t.world.sign(attest.pae(attest.PAYLOAD_TYPE, said))
    sealed = attest.envelope(said, keyid, signature)
    t.world.plans.write(place, {**files, attest.ENVELOPE: sealed})
    there = t.world.plans.read(place)
    lost = () if there.pop(attest.ENVELOPE, None) == sealed else (attest.unsigned(),)
    return (*lost, *verify(there))
