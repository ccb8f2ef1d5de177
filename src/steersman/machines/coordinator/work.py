"""What each state of a planning run asks for: inputs of jobs, as values. Nothing here decides when they run."""

from typing import Any

from steersman.machines.coordinator.context import Context


def precheck(c: Context) -> dict[str, Any]:
    return {**_given(c), "mode": c.mode}


def build_context(c: Context) -> dict[str, Any]:
    return {**_given(c), "report": c.report_ref}


def adjudicate(c: Context) -> dict[str, Any]:
    return {**_decided(c), **_said(c), "settled": c.settled_ref}


def draft(c: Context) -> dict[str, Any]:
    return {**_decided(c), "settled": c.settled_ref, "conflicts": c.conflicts_ref, "consumed": c.consumed}


def emit(c: Context) -> dict[str, Any]:
    asked = {"uncertainties": c.uncertainties_ref, "consumed": c.consumed, "round": c.round + 1}
    return {**_decided(c), **asked, "settled": c.settled_ref}


def ask_people(c: Context) -> dict[str, Any]:
    shown = {"questions": c.pack_ref, "problems": c.problems_ref, "conflicts": c.conflicts_ref}
    return {
        "digest": c.pack_digest,
        "choices": ["answer", "defaults", "stop"],
        "shown": {name: ref for name, ref in shown.items() if ref},
        "after_ms": c.left_ms or c.wait_ms,
        "default": c.fallback,
    }


def weigh(c: Context) -> dict[str, Any]:
    return {**_decided(c), **_said(c), "settled": c.settled_ref, "wait_ms": c.wait_ms}


def finalize(c: Context) -> dict[str, Any]:
    return {**_decided(c), "uncertainties": c.uncertainties_ref, "settled": c.settled_ref, "round": c.round}


def review(c: Context) -> dict[str, Any]:
    return {**_decided(c), "settled": c.settled_ref, "routing": c.routing_ref}


def freeze(c: Context) -> dict[str, Any]:
    made = {
        "settled": c.settled_ref,
        "report": c.report_ref,
        "routing": c.routing_ref,
        "packs": c.packs,
        "review": c.review_ref,
        "out": c.out_ref,
    }
    return {**_decided(c), **made}


def _said(c: Context) -> dict[str, Any]:
    return {"pack": c.pack_ref, "choice": c.said, "person": c.answered_by, "answers": c.answers_ref}


def _given(c: Context) -> dict[str, Any]:
    return {"intent": c.intent_ref, "policy": c.policy_ref, "registry": c.registry}


def _known(c: Context) -> dict[str, Any]:
    return {**_given(c), "bundle": c.bundle_ref, "plan": c.plan_id, "intent_id": c.intent_id}


def _decided(c: Context) -> dict[str, Any]:
    made = {"decisions": c.decisions_ref, "risk": c.risk_ref, "graph": c.graph_ref, "mode": c.mode}
    return {**_known(c), **made}
