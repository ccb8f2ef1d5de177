"""Each built-in rule where it fires and, with one thing changed, where it is asked and does not (001 §4).

No condition could be another one unseen: with it, or with any part of it, always or never true, a fixture here ends otherwise.
"""

import re
from typing import Any, NamedTuple

from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.raw_intents import raw_content
from tests.support.rule_contexts import BUILT_IN_REGISTRY, decide_commands, fact_bundle, plan_commands

from steersman.contracts.planning.content import RegistryRule
from steersman.contracts.planning.policy import POLICY_PRESETS, ExecutionPolicy, PolicyConstraints
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.rule_evidence import compile_rules

READY = ("language/python", "test_command/pytest", "ci/github", "lock_file/uv", "package/click")
ASKS: ExecutionPolicy = POLICY_PRESETS["interactive"]
RELEASE = {"selected_workflows": [{"workflow_id": "wf_release", "phases": ["validation", "release"]}]}
MIGRATION = {
    "selected_workflows": [{"workflow_id": "wf_data_migration", "phases": ["release", "operations"]}]
}
REVIEWED = {"risk__requires_review": ["release", "security"]}
OWNED = (*READY, "ownership/CODEOWNERS")
EFFECTS, RISK = "planned_commands__0__effects", "planned_commands__0__risk_level"
BURN = {"effects": ["write"], "risk_level": "low", "phases": ["implementation"]}


class Shown(NamedTuple):
    """A setting in which a rule fires, what is decided there, and single changes with which the rule is silent."""

    rule: str
    command: str
    setting: dict[str, Any]
    decides: tuple[str, bool]  # and whether a deny is hard
    silent: tuple[dict[str, Any], ...]


SHOWN = (
    Shown("rule_production_needs_release_review", "cmd_deploy_production", RELEASE, ("deny", True),
          (REVIEWED,)),
    Shown("rule_deploy_is_reviewed", "cmd_build",
          {**RELEASE, EFFECTS: ["read", "deploy"], RISK: "medium"}, ("require_review", False),
          ({RISK: "low"},)),
    Shown("rule_release_needs_ci", "cmd_deploy_staging", {**RELEASE, "facts": ("test_command/make",)}, ("deny", True),
          ({"facts": ("test_command/make", "ci/gitlab")},)),
    Shown("rule_production_after_staging", "cmd_deploy_production", {**RELEASE, **REVIEWED}, ("require_review", False),
          ({"beside": ("cmd_deploy_staging",)},)),
    Shown("rule_destructive_is_reviewed", "cmd_burn",
          {"own": {**BURN, "destructive": True, "rollback": "Light it again"}}, ("require_review", False),
          ({"own": {**BURN, "destructive": False, "rollback": "Light it again"}},)),
    Shown("rule_destructive_needs_way_back", "cmd_burn", {"own": {**BURN, "destructive": True}}, ("deny", True),
          ({"own": {**BURN, "destructive": True, "rollback": "Light it again"}}, {"own": BURN})),
    Shown("rule_delete_only_what_is_named", "cmd_delete_files", {"scope__targets__files": []}, ("deny", True),
          ({"scope__targets__files": ["old.py"]},)),
    *(Shown("rule_delete_only_what_is_named", "cmd_delete_files", {"scope__targets__files": ["old.py", name]}, ("deny", True),
            ({"scope__targets__files": ["old.py"]},)) for name in (".", "./", "src/", "src/**", "**", "docs")),
    Shown("rule_writes_need_tests", "cmd_edit_files", {"facts": ("language/python",)}, ("require_review", False),
          ({"facts": ("language/python", "test_command/pytest")}, {"scope__targets__areas": ["docs"]})),
    Shown("rule_writes_are_verified", "cmd_edit_files", {}, ("warn", False),
          ({"beside": ("cmd_lint",)}, {"policy": replace(ASKS, require_verification=False)})),
    Shown("rule_dependency_needs_lock_file", "cmd_add_dependency", {"facts": ("test_command/pytest",)},
          ("require_review", False),
          ({"facts": ("test_command/pytest", "lock_file/uv")},)),
    Shown("rule_many_files", "cmd_edit_files", {"budgets__max_files": 101}, ("warn", False),
          ({"budgets__max_files": 100},
           {"policy": replace(ASKS, constraints=PolicyConstraints(allow_bulk_changes=True))})),
    Shown("rule_owned_infrastructure", "cmd_edit_files", {"facts": OWNED, "scope__targets__areas": ["infra"]},
          ("require_review", False),
          ({"facts": READY}, {"scope__targets__areas": ["docs"]},
           {"risk__requires_review": ["architecture", "security"]})),
    Shown("rule_migration_needs_data_review", "cmd_generate_migration", {"facts": (*READY, "database/postgres")},
          ("require_review", False),
          ({"facts": READY},)),
    Shown("rule_migration_needs_data_review", "cmd_generate_migration", {EFFECTS: ["read", "write", "data"]},
          ("require_review", False),
          ({EFFECTS: ["read", "write"]},)),
    Shown("rule_backup_before_migration", "cmd_apply_migration", MIGRATION, ("deny", True),
          ({"beside": ("cmd_back_up_database",)},)),
    Shown("rule_no_data_beside_secrets", "cmd_read_logs", {"facts": (*READY, "secret_file/.env")}, ("deny", False),
          ({"facts": READY},)),
    Shown("rule_network_in_validation", "cmd_run_integration_tests", {EFFECTS: ["read", "network"]},
          ("warn", False),
          ({EFFECTS: ["read", "network", "deploy"]},)),
    Shown("rule_security_is_reviewed", "cmd_scan_secrets", {EFFECTS: ["read", "security", "write"]},
          ("require_review", False),
          ({EFFECTS: ["read", "security"]},)),
    Shown("rule_security_is_reviewed", "cmd_scan_secrets", {RISK: "high"}, ("require_review", False),
          ({RISK: "low"}, {RISK: "medium"})),
    Shown("rule_security_is_reviewed", "cmd_scan_secrets", {RISK: "critical"}, ("require_review", False),
          ({RISK: "low"},)),
    Shown("rule_critical_needs_people", "cmd_deploy_production", {**REVIEWED, "policy": POLICY_PRESETS["semi_auto"]},
          ("deny", True),
          ({"policy": ASKS},)),
    Shown("rule_high_risk_is_reviewed", "cmd_rotate_secret", {"risk__requires_review": []},
          ("require_review", False),
          ({"risk__requires_review": ["security"]},)),
    Shown("rule_machine_written_intent", "cmd_deploy_staging", {"audit__source": "imported"}, ("deny", False),
          ({"status": "approved"}, {"audit__source": "human"})),
    Shown("rule_understated_command", "cmd_edit_files", {"beside": ("cmd_lint",), RISK: "low"}, ("warn", False),
          ({RISK: "medium"},)),
    Shown("rule_reading_is_free", "cmd_read_code", {}, ("allow", False),
          ({EFFECTS: ["read", "network"]},)),
)  # fmt: skip
RULES: dict[str, RegistryRule] = {rule.id: rule for rule in BUILT_IN_REGISTRY.all_usable("rule")}


def asked(shown: Shown, change: dict[str, Any], *rules: RegistryRule) -> Any:
    """What is decided about the command of a setting, with one change or none."""
    setting = {**shown.setting, **change}
    facts, policy = setting.pop("facts", READY), setting.pop("policy", ASKS)
    own, beside = setting.pop("own", None), setting.pop("beside", ())
    registry = (
        Registry((*BUILT_IN_REGISTRY.items, raw_content("command", shown.command, **own)))
        if own
        else BUILT_IN_REGISTRY
    )
    intent = plan_commands(shown.command, *beside, registry=registry, **setting)
    return decide_commands(intent, fact_bundle(*facts, policy=policy), *rules, registry=registry)[0]


def outcome(shown: Shown, change: dict[str, Any], *rules: RegistryRule) -> str:
    """What the rule of a setting says: a rule out of whose scope the command is says nothing at all."""
    return {said.rule_id: said.outcome for said in asked(shown, change, *rules).rules}[shown.rule]


def named(shown: Shown) -> str:
    return f"{shown.rule}-{shown.command}-{'-'.join(map(str, shown.setting))}"


@for_each_case("shown", SHOWN)
def test_a_built_in_rule_fires(shown):
    """Where it fires, and what all rules together then say."""
    decision = asked(shown, {})
    assert outcome(shown, {}) == "fired"
    assert (decision.decision, decision.hard, decision.undecidable) == (*shown.decides, False), (
        decision.reason
    )


@for_each_case("shown", SHOWN)
def test_with_one_thing_changed_it_is_silent(shown):
    """The same command in the rule's own scope, and one field of intent, facts, policy or entry another."""
    for change in shown.silent:
        assert len(change) == 1
        assert outcome(shown, change) == "silent", change


@for_each_case("name", RULES)
def test_no_part_of_a_condition_could_be_left_out(name):
    """With the condition, or a part of it, put to true or to false, at least one fixture of the rule ends otherwise."""
    fixtures = [(s, change) for s in SHOWN if s.rule == name for change in ({}, *s.silent)]
    truth = [outcome(*fixture) for fixture in fixtures]
    assert {"fired", "silent"} == {*truth}
    for when in mutants(RULES[name].when):
        mutant = replace(RULES[name], when=when)
        assert [outcome(*fixture, mutant) for fixture in fixtures] != truth, when


def mutants(when):
    """The condition as true, as false, and with each of its parts so."""
    parts = clauses(when)
    for word in ("true", "false"):
        yield word
        for n in range(0, len(parts), 2) if len(parts) > 1 else ():
            yield " ".join((*parts[:n], word, *parts[n + 1 :]))


def clauses(when):
    """The parts of a condition between its outermost `&&` and `||`, with those between them."""
    found, depth = [""], 0
    for piece in re.split(r"(&&|\|\||[()\[\]])", when):
        depth += (piece in ("(", "[")) - (piece in (")", "]"))
        if piece in ("&&", "||") and depth == 0:
            found += [piece, ""]
        else:
            found[-1] += piece
    return [part.strip() for part in found]


def test_conditions_come_apart_at_their_outermost_joints():
    """What is inside brackets stays whole."""
    assert clauses('!(a && b) || c in ["x", "y"]') == ["!(a && b)", "||", 'c in ["x", "y"]']
    assert list(mutants("a && b")) == ["true", "true && b", "a && true", "false", "false && b", "a && false"]


def test_every_built_in_rule_is_shown():
    """No built-in rule is left out of the cases above, and all of them compile."""
    assert {*RULES} == {shown.rule for shown in SHOWN}
    assert compile_rules(RULES.values()).problems == ()
