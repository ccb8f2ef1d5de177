"""What each state of a planning run asks for: inputs of jobs, as values. Nothing here decides when they run."""

from typing import Any

from steersman.machines.coordinator.context import CoordinatorContext


def precheck_input(context: CoordinatorContext) -> dict[str, Any]:
    return {**_intent_input_refs(context), "mode": context.mode}


def plan_context_input(context: CoordinatorContext) -> dict[str, Any]:
    return {**_intent_input_refs(context), "report": context.report_ref}


def adjudication_input(context: CoordinatorContext) -> dict[str, Any]:
    return {**_decided_input_refs(context), **_given_answer_refs(context), "settled": context.settled_ref}


def graph_draft_input(context: CoordinatorContext) -> dict[str, Any]:
    return {
        **_decided_input_refs(context),
        "settled": context.settled_ref,
        "conflicts": context.conflicts_ref,
        "consumed": context.consumed,
    }


def question_emission_input(context: CoordinatorContext) -> dict[str, Any]:
    round_refs = {
        "uncertainties": context.uncertainties_ref,
        "consumed": context.consumed,
        "round": context.round + 1,
    }
    return {**_decided_input_refs(context), **round_refs, "settled": context.settled_ref}


def answers_gate_input(context: CoordinatorContext) -> dict[str, Any]:
    shown_refs = {
        "questions": context.pack_ref,
        "problems": context.problems_ref,
        "conflicts": context.conflicts_ref,
    }
    return {
        "digest": context.pack_digest,
        "choices": ["answer", "defaults", "stop"],
        "shown": {name: ref for name, ref in shown_refs.items() if ref},
        "after_ms": context.left_ms or context.wait_ms,
        "default": context.fallback,
    }


def answer_weighing_input(context: CoordinatorContext) -> dict[str, Any]:
    return {
        **_decided_input_refs(context),
        **_given_answer_refs(context),
        "settled": context.settled_ref,
        "wait_ms": context.wait_ms,
    }


def final_graph_input(context: CoordinatorContext) -> dict[str, Any]:
    return {
        **_decided_input_refs(context),
        "uncertainties": context.uncertainties_ref,
        "settled": context.settled_ref,
        "round": context.round,
    }


def review_pack_input(context: CoordinatorContext) -> dict[str, Any]:
    return {**_decided_input_refs(context), "settled": context.settled_ref, "routing": context.routing_ref}


def plan_freeze_input(context: CoordinatorContext) -> dict[str, Any]:
    output_refs = {
        "settled": context.settled_ref,
        "report": context.report_ref,
        "routing": context.routing_ref,
        "packs": context.packs,
        "review": context.review_ref,
        "out": context.out_ref,
    }
    return {**_decided_input_refs(context), **output_refs}


def _given_answer_refs(context: CoordinatorContext) -> dict[str, Any]:
    return {
        "pack": context.pack_ref,
        "choice": context.said,
        "person": context.answered_by,
        "answers": context.answers_ref,
    }


def _intent_input_refs(context: CoordinatorContext) -> dict[str, Any]:
    return {"intent": context.intent_ref, "policy": context.policy_ref, "registry": context.registry}


def _context_input_refs(context: CoordinatorContext) -> dict[str, Any]:
    return {
        **_intent_input_refs(context),
        "bundle": context.bundle_ref,
        "plan": context.plan_id,
        "intent_id": context.intent_id,
    }


def _decided_input_refs(context: CoordinatorContext) -> dict[str, Any]:
    decision_refs = {
        "decisions": context.decisions_ref,
        "risk": context.risk_ref,
        "graph": context.graph_ref,
        "mode": context.mode,
    }
    return {**_context_input_refs(context), **decision_refs}
