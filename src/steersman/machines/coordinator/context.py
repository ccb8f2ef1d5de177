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


class Context(msgspec.Struct, kw_only=True):
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
    answered_by: str = ""  # the person who has made it; empty: nobody has in time
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


def with_time_left(context: dict[str, Any]) -> dict[str, Any]:
    """From version 1, in which refused answers began the time for answers anew."""
    return {**context, "left_ms": 0}


def with_person(context: dict[str, Any]) -> dict[str, Any]:
    """From version 2, in which nobody's name stood beside an answer."""
    return {**context, "answered_by": ""}


FIXED = ("mode", "fallback", "wait_ms", "task_ref", "config_ref", "intent_ref", "policy_ref", "out_ref")


def begin(request: dict[str, Any]) -> tuple[IntentReceived, Context]:
    """What the first event carries, and the context of a new run."""
    given = {name: request[name] for name in FIXED if name in request}
    try:
        context = msgspec.convert(given, Context)
    except msgspec.ValidationError as error:
        raise UserError(
            f"coordinator cannot begin like this ({error}): give it an intent with `steersman plan`"
        ) from error
    return IntentReceived(context.intent_ref, context.policy_ref, request.get("person", "")), context


def prechecked(_c: Context, e: PrecheckFacts) -> tuple[Op, ...]:
    return (
        ("set", "intent_id", e.intent_id),
        ("set", "registry", e.registry),
        ("set", "report_ref", e.report_ref),
        *_output("precheck_report", e.report_digest),
        *_failed(e),
    )


def context_built(_c: Context, e: ContextFacts) -> tuple[Op, ...]:
    return (
        ("set", "bundle_ref", e.bundle_ref),
        ("set", "plan_id", e.plan_id),
        *_output("context_bundle", e.bundle_digest),
        *_failed(e),
    )


def adjudicated(_c: Context, e: RulesFacts) -> tuple[Op, ...]:
    return (
        ("set", "decisions_ref", e.decisions_ref),
        ("set", "risk_ref", e.risk_ref),
        ("set", "routing_ref", e.routing_ref),
        ("set", "overall_risk", e.overall_risk),
        *_output("rule_decisions", e.decisions_digest),
        *_failed(e),
    )


def drafted(_c: Context, e: GraphFacts) -> tuple[Op, ...]:
    return (("set", "uncertainties_ref", e.uncertainties_ref), *_graph(e))


def finalized(_c: Context, e: GraphFacts) -> tuple[Op, ...]:
    """The rules were asked once more about what is left, and its risk was worked out: the plan shows both."""
    now = _told(decisions_ref=e.decisions_ref, risk_ref=e.risk_ref)
    risk: tuple[Op, ...] = (("set", "overall_risk", e.overall_risk),) if e.risk_ref else ()
    told = _output("rule_decisions", e.decisions_digest)
    return (("set", "settled_ref", e.settled_ref), *now, *risk, *told, *_graph(e))


def _graph(e: GraphFacts) -> tuple[Op, ...]:
    return (
        ("set", "graph_ref", e.graph_ref),
        ("set", "nodes", e.nodes),
        *_output("execution_graph", e.graph_digest),
        *_failed(e),
    )


def emitted(c: Context, e: QuestionFacts) -> tuple[Op, ...]:
    """A round of asking begins: what was said to the round before is kept in what is settled."""
    return (
        ("set", "pack_ref", e.pack_ref),
        ("set", "pack_digest", e.pack_digest),
        ("set", "packs", [*c.packs, e.pack_ref] if e.pack_ref else c.packs),
        ("set", "consumed", e.consumed),
        ("add", "round", 1),
        ("set", "answers_ref", ""),
        ("set", "problems_ref", ""),
        ("set", "left_ms", 0),
        *_output("question_pack", e.pack_digest),
        *_failed(e),
    )


def answered(_c: Context, e: GateAnswer) -> tuple[Op, ...]:
    said = {"choice": e.choice, "text": e.text, "person": e.person, "timed_out": e.timed_out}
    who = "" if e.timed_out else e.person or "unknown"
    return (
        ("set", "said", e.choice),
        ("set", "answered_by", who),
        ("set", "answers_ref", e.text),
        ("append", "answered", said),
    )


def weighed(_c: Context, e: AnswerFacts) -> tuple[Op, ...]:
    return (
        ("set", "problems_ref", e.problems_ref),
        ("set", "left_ms", e.left_ms),
        ("set", "conflicts_ref", e.conflicts_ref),
        *_told(settled_ref=e.settled_ref),
        *_failed(e),
    )


def packed(_c: Context, e: ReviewFacts) -> tuple[Op, ...]:
    return (("set", "review_ref", e.pack_ref), *_output("review_pack", e.pack_digest), *_failed(e))


def frozen(_c: Context, e: FreezeFacts) -> tuple[Op, ...]:
    return (
        ("set", "manifest_ref", e.manifest_ref),
        ("set", "manifest_digest", e.manifest_digest),
        *_output("manifest", e.manifest_digest),
        *_failed(e),
    )


def _output(name: str, digest: str) -> tuple[Op, ...]:
    return (("put", "outputs", name, digest),) if digest else ()


def _failed(e: Any) -> tuple[Op, ...]:
    """Why there would be no plan if the run ended here; the next state that brings something says it anew."""
    return (("set", "failure_ref", e.failure_ref), ("set", "detail_ref", e.detail_ref))


def _told(**refs: str) -> tuple[Op, ...]:
    return tuple(("set", name, ref) for name, ref in refs.items() if ref)
