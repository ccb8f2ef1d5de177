"""What a planning run knows, and what each event changes in it.

Documents are payload names with the digests of their canonical bytes. **Invariant:** no state, event or row is named
here; a document is never opened here.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.planning.facts import (
    AnswerFacts,
    ContextFacts,
    FreezeFacts,
    GraphFacts,
    PrecheckFacts,
    QuestionFacts,
    ReviewFacts,
    RulesFacts,
)
from steersman.errors import UserError
from steersman.kernel.definition import GateAnswer
from steersman.kernel.ops import Log, Op


class IntentReceived(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person's intent, and the policy it is planned under."""

    intent_ref: str
    policy_ref: str
    person: str = ""


class CoordinatorContext(msgspec.Struct, kw_only=True):
    """The run's knowledge."""

    # fixed at creation
    mode: Literal["interactive", "semi_auto", "full_auto"]
    fallback: Literal["defaults", "stop"] = "defaults"
    wait_ms: Annotated[int, Meta(ge=1000)] = 604_800_000
    task_ref: str
    config_ref: str = ""
    intent_ref: str
    policy_ref: str
    out_ref: str = ""  # where the frozen plan goes; empty: beside the run
    # memory: set by rows, followed exactly by the check
    answers: str = "none"
    # what the states have brought
    intent_id: str = ""
    plan_id: str = ""
    registry: str = ""  # the digest of the registry that holds for the whole run
    report_ref: str = ""
    bundle_ref: str = ""
    decisions_ref: str = ""
    risk_ref: str = ""
    routing_ref: str = ""
    graph_ref: str = ""
    uncertainties_ref: str = ""
    pack_ref: str = ""
    pack_digest: str = ""
    packs: list[str] = []  # the packs of all rounds
    said: str = ""  # the choice at the last gate
    answered_by: str = ""  # the person who has made it; empty: no answer came in time
    answers_ref: str = ""  # what a person has said to the last one
    problems_ref: str = ""  # why it was not taken
    left_ms: int = 0  # of the time for answers, after one was not taken; 0: all of it
    conflicts_ref: str = ""
    settled_ref: str = ""
    review_ref: str = ""
    manifest_ref: str = ""
    manifest_digest: str = ""
    failure_ref: str = ""
    detail_ref: str = ""
    consumed: int = 0  # of the question budget
    round: int = 0  # of asking
    nodes: int = 0
    overall_risk: str = ""
    outputs: dict[str, str] = {}  # by document: the digest of its bytes
    answered: Log = Log()


def upcast_add_time_left(context: dict[str, Any]) -> dict[str, Any]:
    """From version 1, in which refused answers restarted the time for answers."""
    return {**context, "left_ms": 0}


def upcast_add_answered_by(context: dict[str, Any]) -> dict[str, Any]:
    """From version 2, in which an answer had no name of a person."""
    return {**context, "answered_by": ""}


COORDINATOR_FIXED_FIELDS = (
    "mode",
    "fallback",
    "wait_ms",
    "task_ref",
    "config_ref",
    "intent_ref",
    "policy_ref",
    "out_ref",
)


def begin_coordinator(request: dict[str, Any]) -> tuple[IntentReceived, CoordinatorContext]:
    """What the first event carries, and the context of a new run."""
    fixed_values = {name: request[name] for name in COORDINATOR_FIXED_FIELDS if name in request}
    try:
        context = msgspec.convert(fixed_values, CoordinatorContext)
    except msgspec.ValidationError as error:
        raise UserError(
            f"coordinator cannot begin like this ({error}): give it an intent with `steersman plan`"
        ) from error
    return IntentReceived(context.intent_ref, context.policy_ref, request.get("person", "")), context


def fold_precheck_facts(_c: CoordinatorContext, facts: PrecheckFacts) -> tuple[Op, ...]:
    return (
        ("set", "intent_id", facts.intent_id),
        ("set", "registry", facts.registry),
        ("set", "report_ref", facts.report_ref),
        *_output_digest_ops("precheck_report", facts.report_digest),
        *_failure_ref_ops(facts),
    )


def fold_context_facts(_c: CoordinatorContext, facts: ContextFacts) -> tuple[Op, ...]:
    return (
        ("set", "bundle_ref", facts.bundle_ref),
        ("set", "plan_id", facts.plan_id),
        *_output_digest_ops("context_bundle", facts.bundle_digest),
        *_failure_ref_ops(facts),
    )


def fold_rule_facts(_c: CoordinatorContext, facts: RulesFacts) -> tuple[Op, ...]:
    return (
        ("set", "decisions_ref", facts.decisions_ref),
        ("set", "risk_ref", facts.risk_ref),
        ("set", "routing_ref", facts.routing_ref),
        ("set", "overall_risk", facts.overall_risk),
        *_output_digest_ops("rule_decisions", facts.decisions_digest),
        *_failure_ref_ops(facts),
    )


def fold_graph_draft(_c: CoordinatorContext, facts: GraphFacts) -> tuple[Op, ...]:
    return (("set", "uncertainties_ref", facts.uncertainties_ref), *_graph_ops(facts))


def fold_final_graph(_c: CoordinatorContext, facts: GraphFacts) -> tuple[Op, ...]:
    """The rules were asked once more about what is left, and its risk was worked out: the plan shows both."""
    now = _set_known_refs(decisions_ref=facts.decisions_ref, risk_ref=facts.risk_ref)
    risk: tuple[Op, ...] = (("set", "overall_risk", facts.overall_risk),) if facts.risk_ref else ()
    decision_ops = _output_digest_ops("rule_decisions", facts.decisions_digest)
    return (("set", "settled_ref", facts.settled_ref), *now, *risk, *decision_ops, *_graph_ops(facts))


def _graph_ops(facts: GraphFacts) -> tuple[Op, ...]:
    return (
        ("set", "graph_ref", facts.graph_ref),
        ("set", "nodes", facts.nodes),
        *_output_digest_ops("execution_graph", facts.graph_digest),
        *_failure_ref_ops(facts),
    )


def fold_question_pack(context: CoordinatorContext, facts: QuestionFacts) -> tuple[Op, ...]:
    """A round of asking begins: what was said to the round before is kept in what is settled."""
    return (
        ("set", "pack_ref", facts.pack_ref),
        ("set", "pack_digest", facts.pack_digest),
        ("set", "packs", [*context.packs, facts.pack_ref] if facts.pack_ref else context.packs),
        ("set", "consumed", facts.consumed),
        ("add", "round", 1),
        ("set", "answers_ref", ""),
        ("set", "problems_ref", ""),
        ("set", "left_ms", 0),
        *_output_digest_ops("question_pack", facts.pack_digest),
        *_failure_ref_ops(facts),
    )


def fold_gate_answers(_c: CoordinatorContext, answer: GateAnswer) -> tuple[Op, ...]:
    answer_record = {
        "choice": answer.choice,
        "text": answer.text,
        "person": answer.person,
        "timed_out": answer.timed_out,
    }
    person = "" if answer.timed_out else answer.person or "unknown"
    return (
        ("set", "said", answer.choice),
        ("set", "answered_by", person),
        ("set", "answers_ref", answer.text),
        ("append", "answered", answer_record),
    )


def fold_weighed_answers(_c: CoordinatorContext, facts: AnswerFacts) -> tuple[Op, ...]:
    return (
        ("set", "problems_ref", facts.problems_ref),
        ("set", "left_ms", facts.left_ms),
        ("set", "conflicts_ref", facts.conflicts_ref),
        *_set_known_refs(settled_ref=facts.settled_ref),
        *_failure_ref_ops(facts),
    )


def fold_review_pack(_c: CoordinatorContext, facts: ReviewFacts) -> tuple[Op, ...]:
    return (
        ("set", "review_ref", facts.pack_ref),
        *_output_digest_ops("review_pack", facts.pack_digest),
        *_failure_ref_ops(facts),
    )


def fold_frozen_plan(_c: CoordinatorContext, facts: FreezeFacts) -> tuple[Op, ...]:
    return (
        ("set", "manifest_ref", facts.manifest_ref),
        ("set", "manifest_digest", facts.manifest_digest),
        *_output_digest_ops("manifest", facts.manifest_digest),
        *_failure_ref_ops(facts),
    )


def _output_digest_ops(name: str, digest: str) -> tuple[Op, ...]:
    return (("put", "outputs", name, digest),) if digest else ()


def _failure_ref_ops(facts: Any) -> tuple[Op, ...]:
    """Why there would be no plan if the run ended here; the next state that brings something replaces it."""
    return (("set", "failure_ref", facts.failure_ref), ("set", "detail_ref", facts.detail_ref))


def _set_known_refs(**refs: str) -> tuple[Op, ...]:
    return tuple(("set", name, ref) for name, ref in refs.items() if ref)
