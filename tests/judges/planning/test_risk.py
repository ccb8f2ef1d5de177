"""Risk and routing: what speaks for danger, with what shows it, and which model the policy leaves (001 §4)."""

import msgspec
from tests.support.cases import for_each_case
from tests.support.raw_intents import raw_content
from tests.support.rule_contexts import BUILT_IN_REGISTRY, decide_commands, fact_bundle, plan_commands

from steersman.contracts.planning.decisions import RiskAssessment
from steersman.contracts.planning.policy import POLICY_PRESETS, ModelRules
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.risk import assess_plan_risk
from steersman.judges.planning.routing import advise_models

READY = ("language/python", "test_command/pytest", "ci/github", "lock_file/uv")
LOW = {"risk__overall": "low"}


def assessed(intent, known, registry=BUILT_IN_REGISTRY) -> RiskAssessment:
    return assess_plan_risk(intent, registry, decide_commands(intent, known, registry=registry), known)


def said(risk):
    return [(factor.risk, factor.what) for factor in risk.factors]


def test_reading_is_harmless():
    """A plan that only reads is as dangerous as its author says, and no more."""
    risk = assessed(plan_commands("cmd_read_code", **LOW), fact_bundle(*READY))
    assert (risk.overall_risk, risk.stated_risk) == ("low", "low")
    assert said(risk) == [("low", "the intent says: it is the login")]
    assert (
        assessed(plan_commands("cmd_read_code", risk__overall="critical"), fact_bundle()).overall_risk
        == "critical"
    )


@for_each_case(
    ("changed", "facts", "complete", "overall", "what"),
    [
        ({}, READY, True, "medium", "cmd_edit_files is medium"),
        ({"planned_commands__0__risk_level": "high"}, READY, True, "high", "cmd_edit_files is high"),
        ({"planned_commands__0__effects": ["read"]}, READY, True, "medium", "is stated as read at medium"),
        ({}, (*READY, "secret_file/.env"), True, "medium", "hold secrets"),
        ({}, ("ci/github",), True, "medium", "something is written, and the project has no test command"),
        ({}, ("test_command/make",), True, "medium", "nothing builds the project"),
        ({}, READY, False, "medium", "not complete: too many files"),
    ],
)
def test_factors(changed, facts, complete, overall, what):
    """Each thing that speaks for danger is named once, with what shows it."""
    risk = assessed(plan_commands("cmd_edit_files", **LOW, **changed), fact_bundle(*facts, complete=complete))
    assert risk.overall_risk == overall
    assert sum(what in w for _, w in said(risk)) == 1, said(risk)
    assert all(factor.evidence_refs for factor in risk.factors)


def test_a_review_makes_it_graver():
    """A command that a rule wants looked at counts by the rule's severity, one that destroys as high at least."""
    risk = assessed(plan_commands("cmd_delete_files", **LOW), fact_bundle(*READY))
    assert risk.overall_risk == "high"
    told = [what.partition(":")[0].partition(";")[0] for _, what in said(risk) if what.startswith("cmd_")]
    assert sorted(told) == ["cmd_delete_files", "cmd_delete_files destroys", "cmd_delete_files is high"]
    assert risk.requires_review == ("architecture", "security")


def test_what_is_left_out_is_no_danger():
    """A command that the rules exclude is no part of the plan's risk or reviews."""
    secret = fact_bundle(*READY, "secret_file/.env")
    risk = assessed(plan_commands("cmd_read_logs", **LOW), secret)
    assert not any("cmd_read_logs" in what for _, what in said(risk))


def test_no_way_back_is_told():
    """A destroying command says how it is undone, or that nobody knows."""
    burn = raw_content(
        "command", "cmd_burn", effects=["write"], risk_level="low", phases=["implementation"],
        destructive=True,
    )  # fmt: skip
    registry = Registry((burn,))
    risk = assessed(plan_commands("cmd_burn", registry=registry), fact_bundle(*READY), registry)
    assert ("high", "cmd_burn destroys; no way back is known") in said(risk)


def test_unknown_content_is_passed_over():
    """Risk is worked out for whatever the registry has, and never fails on what it has not."""
    intent = plan_commands(
        "cmd_read_code", selected_workflows=[{"workflow_id": "wf_none", "phases": ["review"]}]
    )
    assert assessed(intent, fact_bundle(*READY)).requires_review == ("security",)
    empty = Registry(())
    known = fact_bundle(*READY)
    denied = decide_commands(plan_commands("cmd_nowhere"), known, registry=BUILT_IN_REGISTRY)
    allowed = tuple(msgspec.structs.replace(d, decision="allow") for d in denied)
    assert assess_plan_risk(plan_commands("cmd_nowhere"), empty, allowed, known).overall_risk == "medium"


def test_phases_bring_their_reviews():
    """A selected phase that somebody has to look at is among the reviews; one that is not selected is not."""
    data = [{"workflow_id": "wf_data_migration", "phases": ["analysis", "design"]}]
    assert assessed(
        plan_commands("cmd_read_code", selected_workflows=data), fact_bundle(*READY)
    ).requires_review == ("data", "security")
    early = [{"workflow_id": "wf_data_migration", "phases": ["analysis"]}]
    assert assessed(
        plan_commands("cmd_read_code", selected_workflows=early), fact_bundle(*READY)
    ).requires_review == ("security",)


# ── routing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CODER = [{"agent_id": "agent_coder", "role": "coder", "responsibilities": ["the change"]}]
OPERATOR = [{"agent_id": "agent_operator", "role": "operator", "responsibilities": ["the logs"]}]


def policy(**models):
    return msgspec.structs.replace(POLICY_PRESETS["interactive"], models=ModelRules(**models))


def advised(intent, **models):
    (advice,) = advise_models(intent, BUILT_IN_REGISTRY, policy(**models))
    return advice


def test_first_choice():
    """The first model of the registry that the policy leaves is advised, with the next as fallback."""
    advice = advised(plan_commands("cmd_edit_files", "cmd_commit", selected_agents=CODER))
    assert (advice.model, advice.placement, advice.fallback) == ("codex", "cloud", "claude")
    assert (advice.tokens, advice.micro_usd) == (120_000, 480_000)
    assert advice.reason == "the first choice of agent_coder for 2 planned actions"
    assert not advice.violation


def test_the_policy_narrows():
    """Placement and names of models are the policy's to narrow."""
    intent = plan_commands("cmd_edit_files", selected_agents=CODER)
    local = advised(intent, placements=("local",))
    assert (local.model, local.fallback, local.micro_usd) == ("local", "", 0)
    assert local.reason == "the first that the policy leaves of agent_coder for 1 planned action"
    assert advised(intent, allowed=("claude",)).model == "claude"


def test_sensitive_work():
    """Data and security effects in an agent's phases narrow the placement further."""
    intent = plan_commands("cmd_read_logs", selected_agents=OPERATOR)
    advice = advised(intent, sensitive=("cloud",))
    assert (advice.sensitive, advice.model) == (True, "claude")
    assert "data or security" in advice.reason
    plain = plan_commands("cmd_search_code", selected_agents=OPERATOR)
    assert (advised(plain, sensitive=("cloud",)).sensitive, advised(plain).model) == (False, "local")


def test_a_violation():
    """Where the policy leaves no model for an agent that has some, the advice is a violation; it decides nothing."""
    advice = advised(plan_commands("cmd_read_logs", selected_agents=OPERATOR), sensitive=())
    assert (advice.violation, advice.model, advice.placement, advice.micro_usd) == (True, "", "", 0)
    assert advice.reason.startswith("the policy leaves none of the 3 models of agent_operator")


def test_no_models_and_no_agent():
    """An agent without models is no violation; one that the registry has not is passed over; each is advised once."""
    bare = raw_content("agent", "agent_bare", role="x", phases=["analysis"], capabilities=["y"])
    twice = [{"agent_id": id_, "role": "x", "responsibilities": ["z"]} for id_ in ("agent_bare", "agent_none", "agent_bare")]  # fmt: skip
    (advice,) = advise_models(
        plan_commands("cmd_read_code", selected_agents=twice), Registry((bare,)), policy()
    )
    assert (advice.violation, advice.model, advice.tokens) == (False, "", 20_000)
    assert "names no model" in advice.reason


def test_figures_fit_their_contract():
    """Tokens and cost stay within what a document counts to."""
    dear = {"model": "dear", "placement": "cloud", "micro_usd_per_million_tokens": 1_000_000_000}
    agent = raw_content(
        "agent", "agent_dear", role="x", phases=["implementation"], capabilities=["y"], models=[dear],
        tokens_per_action=2_000_000,
    )  # fmt: skip
    chosen = [{"agent_id": "agent_dear", "role": "x", "responsibilities": ["z"]}]
    (advice,) = advise_models(
        plan_commands("cmd_edit_files", selected_agents=chosen), Registry((agent,)), policy()
    )
    assert advice.micro_usd == 1_000_000_000
