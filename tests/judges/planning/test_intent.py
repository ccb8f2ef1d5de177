"""What is looked at before anything is planned: every guard of 001 §2 passing and failing, every red line."""

import copy

import pytest
from tests.support.cases import for_each_case
from tests.support.raw_intents import (
    INTERACTIVE_POLICY,
    PLAIN_INTENT,
    RAW_ITEMS,
    RAW_REGISTRY,
    change_raw_intent,
    pin_intent,
    raw_content,
    raw_intent,
    seal_raw_intent,
    set_field,
)

from steersman.contracts.planning.documents import planning_document_schema
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import POLICY_PRESETS
from steersman.judges.planning.intent import (
    compute_intent_checksum,
    has_matching_checksum,
    intent_checksum_bytes,
)
from steersman.judges.planning.policy import find_policy_problems
from steersman.judges.planning.precheck import (
    collect_precheck_problems,
    count_precheck_facts,
    describe_checksum_problem,
    find_dangling_pins,
    find_intent_references,
    find_unusable_references,
    has_passed_precheck,
    precheck_intent,
)
from steersman.judges.planning.precheck import seal_intent as seal
from steersman.judges.planning.red_lines import find_stricter_mode, gravest_stated_risk, reported_stated_risk
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.schema_errors import convert_valid_document
from steersman.judges.planning.semantics import find_intent_remarks


def check(raw, policy=INTERACTIVE_POLICY, registry=RAW_REGISTRY):
    return precheck_intent(raw, policy, registry)


def broken(report):
    return [c.red_line for c in report.red_lines if not c.passed]


def fields(problems):
    return [p.field for p in problems]


# ── guards of PRECHECKED ────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_passes():
    """001 §2: all guards satisfied lead on."""
    report = check(raw_intent())
    assert has_passed_precheck(report)
    assert collect_precheck_problems(report) == ()
    assert count_precheck_facts(report, raw_intent(), INTERACTIVE_POLICY).mode == "interactive"


def test_guard_schema():
    """001 §2 guard 1, "Intent schema valid": an unknown field and a missing one, both told at once."""
    raw = set_field(set_field(raw_intent(), "surplus", 1), "title", ...)
    report = check(raw)
    assert not report.schema_valid
    assert {"surplus", "title"} <= set(fields(report.schema_problems))
    assert not has_passed_precheck(report)
    assert count_precheck_facts(report, raw, INTERACTIVE_POLICY).schema_problems == 2


def test_guard_checksum():
    """001 §2 guard 2, "Checksum matches": one changed word does not."""
    report = check(set_field(raw_intent(), "title", "Fix the logon"))
    assert report.schema_valid
    assert not report.checksum_matches
    assert report.checksum_expected == compute_intent_checksum(
        set_field(raw_intent(), "title", "Fix the logon")
    )
    assert not has_passed_precheck(report)


def test_guard_red_lines():
    """001 §2 guard 3, "All red lines (I1-I5) satisfied": all five are in every report."""
    assert [c.red_line for c in check({}).red_lines] == ["I1", "I2", "I3", "I4", "I5"]


def test_guard_registry_missing():
    """001 §2 guard 4, "exists in registry": an id that nobody has is missing, and breaks I5."""
    raw = change_raw_intent("planned_commands.0.command_id", "cmd_nowhere")
    assert broken(check(change_raw_intent("selected_workflows.0.workflow_id", "wf_nowhere"))) == ["I5"]
    report = check(raw)
    assert [r.id for r in report.references if r.found == "missing"] == ["cmd_nowhere"]
    assert broken(report) == ["I5"]
    assert count_precheck_facts(report, raw, INTERACTIVE_POLICY).missing == 1
    assert not has_passed_precheck(report)


def test_guard_registry_inactive():
    """001 §2 guard 4, "is active/frozen": deprecated content cannot be planned with, frozen content can."""
    raw = change_raw_intent("selected_workflows.0", {"workflow_id": "wf_old", "phases": ["review"]})
    report = check(raw)
    assert count_precheck_facts(report, raw, INTERACTIVE_POLICY).inactive == 1
    assert not has_passed_precheck(report)
    frozen = Registry(_with("wf_old", "frozen"))
    raw = seal_raw_intent(
        pin_intent(
            set_field(PLAIN_INTENT, "selected_workflows.0", {"workflow_id": "wf_old", "phases": ["review"]}),
            frozen,
        )
    )
    assert has_passed_precheck(check(raw, registry=frozen))


def _with(id_, status):
    from msgspec.structs import replace

    return tuple(
        i._replace(content=replace(i.content, status=status)) if i.content.id == id_ else i for i in RAW_ITEMS
    )


def test_guard_drift():
    """001 §2 guard 5, "No version drift": content that changed since the intent was sealed, and content without a pin."""
    newer = Registry(
        (
            *RAW_ITEMS,
            raw_content(
                "command", "cmd_read", version="1.1.0", effects=["read"], risk_level="low",
                phases=["analysis"],
            ),
        ),
    )  # fmt: skip
    report = check(raw_intent(), registry=newer)
    assert [(r.id, r.found) for r in report.references if r.found != "usable"] == [("cmd_read", "drifted")]
    assert count_precheck_facts(report, raw_intent(), INTERACTIVE_POLICY).drifted == 1
    assert not has_passed_precheck(report)
    bare = seal_raw_intent(copy.deepcopy(PLAIN_INTENT))
    report = check(bare)
    assert {r.found for r in report.references} == {"unpinned"}
    assert count_precheck_facts(report, bare, INTERACTIVE_POLICY).drifted == 5


def test_a_pinned_rule_is_a_reference():
    """001 §2 "workflow/agent/command/rule IDs": a rule that an intent pins has to be there, as pinned."""
    raw = raw_intent()
    raw["evidence_refs"].append("registry://rule/rule_none@1.0.0#0123456789ab")
    report = check(seal_raw_intent(raw))
    assert [(r.kind, r.found) for r in report.references if r.found != "usable"] == [("rule", "missing")]
    assert not has_passed_precheck(report)


def test_cited_content_is_a_reference():
    """001 §2, Red Line #5: what evidence cites of the registry is there, active and of that version, by field and fix."""
    raw = raw_intent()
    raw["planned_commands"][0]["evidence_refs"] = [
        "registry://command/cmd_read", "registry://command/cmd_read@9.0.0", "registry://workflow/wf_old", "rule://rule_none",
    ]  # fmt: skip
    report = check(seal_raw_intent(raw))
    at = "planned_commands[0].evidence_refs"
    cited = {r.field: r.found for r in report.references if r.field.startswith(at)}
    assert list(cited.values()) == ["usable", "drifted", "inactive", "missing"]
    (drifted,) = find_unusable_references(report, "drifted")
    assert (drifted.field, drifted.fix) == (f"{at}[1]", "cite registry://command/cmd_read@1.0.0")
    assert broken(report) == ["I5"]


def test_all_guards_are_looked_at():
    """001 §2: one failure hides no other."""
    raw = set_field(
        set_field(set_field(raw_intent(), "title", ...), "planned_commands.0.command_id", "cmd_nowhere"),
        "scope.shell",
        "ls",
    )
    report = check(raw, {"mode": "full_auto"})
    assert not report.schema_valid
    assert not report.checksum_matches
    assert report.execution_payload
    assert report.policy_problems
    assert broken(report) == ["I1", "I5"]
    assert {r.found for r in report.references} == {"usable", "missing"}


# ── red lines ───────────────────────────────────────────────────────────────────────────────────────────────────────


@for_each_case(
    "path", ["execute", "scope.shell", "planned_commands.1.RUN", "constraints.lock_scope.Sub-Process"]
)
def test_i1_payload(path):
    """RED LINE #1, "If execute or similar fields detected": at any depth."""
    report = check(change_raw_intent(path, "ls"))
    assert broken(report) == ["I1"]
    assert len(report.execution_payload) == 1
    assert count_precheck_facts(report, {}, {}).payload == 1
    assert count_precheck_facts(report, {}, {}).broken == ()


def test_i1_execution_is_forbidden():
    """RED LINE #1: an intent that does not say so breaks it too, and its schema with it."""
    report = check(change_raw_intent("constraints.execution", "allowed"))
    assert broken(report) == ["I1"]
    assert not report.schema_valid
    assert report.execution_payload == ()


def test_i1_words_in_values_are_words():
    """RED LINE #1: prose may speak of shells."""
    assert has_passed_precheck(
        check(change_raw_intent("objective.goal", "execute the shell script: bash run.sh; eval this"))
    )


def _full_auto(budget=0, asking="never"):
    raw = set_field(
        PLAIN_INTENT,
        "interaction",
        {"mode": "full_auto", "question_budget": budget, "question_policy": asking},
    )
    return seal_raw_intent(pin_intent(raw))


def test_i2_full_auto_never_asks():
    """RED LINE #2: full_auto with a budget or with a way of asking."""
    assert has_passed_precheck(check(_full_auto()))
    assert fields(check(_full_auto(budget=1)).red_lines[1].details) == ["interaction.question_budget"]
    assert fields(check(_full_auto(asking="blockers_only")).red_lines[1].details) == [
        "interaction.question_policy"
    ]
    assert broken(check(_full_auto(budget=False))) == ["I2"]


@pytest.mark.parametrize("risk", ["high", "critical"])
def test_i3_high_risk_is_never_full_auto(risk):
    """RED LINE #3: by the intent's own mode, and by the policy's."""
    grave = set_field(_full_auto(), "risk.overall", risk)
    assert broken(check(seal_raw_intent(grave))) == ["I3"]
    asked = change_raw_intent("risk.overall", risk)
    assert has_passed_precheck(check(asked))
    strict = {**INTERACTIVE_POLICY, "mode": "full_auto", "question_budget": 0}
    assert broken(check(asked, strict)) == ["I3"]
    assert count_precheck_facts(check(asked, strict), asked, strict).broken == ("I3",)


def test_i3_counts_commands():
    """RED LINE #3: nobody talks a dangerous command down to get it past."""
    ship = {**PLAIN_INTENT["planned_commands"][0], "command_id": "cmd_ship", "risk_level": "low"}
    raw = seal_raw_intent(
        pin_intent(
            set_field(
                set_field(PLAIN_INTENT, "planned_commands.0", ship),
                "interaction",
                _full_auto()["interaction"],
            )
        )
    )
    assert broken(check(raw)) == ["I3"]
    assert gravest_stated_risk(raw, RAW_REGISTRY) == "critical"
    stated = set_field(_full_auto(), "planned_commands.0.risk_level", "high")
    assert broken(check(seal_raw_intent(stated))) == ["I3"]
    assert gravest_stated_risk({}, RAW_REGISTRY) == "low"


@for_each_case(
    ("risk", "told"),
    [
        ({"overall": "low"}, "low"),
        ({"overall": "high"}, "high"),
        ({"overall": 3}, "unknown"),
        (None, "unknown"),
    ],
)
def test_a_risk_that_is_not_stated_is_told_as_unknown(risk, told):
    """§Red Line #3: for telling, what nobody states is not low."""
    assert reported_stated_risk({"risk": risk}, RAW_REGISTRY) == told


def test_i4_evidence():
    """RED LINE #4: a planned command for which nothing speaks."""
    for refs in ([], [" "], [3], "fact://x/y", None):
        assert "I4" in broken(check(change_raw_intent("planned_commands.0.evidence_refs", refs)))
    assert "I4" in broken(check(change_raw_intent("planned_commands.0.evidence_refs", ...)))
    assert "I4" in broken(check({"planned_commands": ["cmd_read"]}))


@for_each_case("name", ["no_fabrication", "registry_only"])
@for_each_case("value", [False, 1, "true", None, ...])
def test_i5_constraints(name, value):
    """RED LINE #5: both sentences are there and true."""
    assert broken(check(change_raw_intent(f"constraints.{name}", value))) == ["I5"]


def test_i5_no_id_at_all():
    """RED LINE #5: what is no id cannot be in a registry."""
    raw = set_field(raw_intent(), "selected_agents.0.agent_id", 7)
    assert broken(check(raw)) == ["I5"]
    assert "agent" not in {
        r.kind
        for r in find_intent_references(
            set_field(raw, "selected_agents", [{"agent_id": "Not An Id"}]), RAW_REGISTRY
        )
        if r.found != "usable"
    }


# ── what can go wrong beyond ────────────────────────────────────────────────────────────────────────────────────────

SENSELESS = [
    ("status", "superseded", "status"),
    ("title", "\u2800\u3164\u2800\u3164\u2800", "title"),
    ("objective.goal", "pay \u202eyap", "objective.goal"),
    ("selected_agents.1.agent_id", "agent_coder", "selected_agents[1].agent_id"),
    ("selected_workflows.0.phases", ["analysis", "analysis"], "selected_workflows[0].phases[1]"),
    ("selected_workflows.0.phases", ["analysis", "release"], "selected_workflows[0].phases[1]"),
    ("evidence_refs", ["file://etc/passwd"], "evidence_refs[0]"),
    ("planned_commands.1.evidence_refs", ["fact://a/b", "http://x"], "planned_commands[1].evidence_refs[1]"),
    ("risk.requires_review", [], "risk.requires_review"),
    ("constraints.lock_scope", {"mode": "files"}, "constraints.lock_scope.paths"),
    ("constraints.lock_scope", {"mode": "files", "paths": ["../x"]}, "constraints.lock_scope.paths[0]"),
    ("scope.targets.files", ["src/a.py", "/etc/passwd"], "scope.targets.files[1]"),
    ("scope.targets.files", ["a/../../b"], "scope.targets.files[0]"),
    ("scope.targets.files", ["C:\\x"], "scope.targets.files[0]"),
    ("scope.targets.files", ["src/.GIT/config"], "scope.targets.files[0]"),
    ("scope.targets.files", [".steersman/registry/rules/x.yaml"], "scope.targets.files[0]"),
    ("scope.targets.files", ["./steersman.toml"], "scope.targets.files[0]"),
    ("scope.targets.files", ["src//app.py"], "scope.targets.files[0]"),
    ("scope.targets.files", ["src/app.py", "././src"], "scope.targets.files[1]"),
    ("scope.targets.files", ["src/./app"], "scope.targets.files[0]"),
    ("scope.targets.modules", [".."], "scope.targets.modules[0]"),
    ("scope.targets.modules", ["app.prices", "/etc"], "scope.targets.modules[1]"),
    ("scope.targets.modules", ["..."], "scope.targets.modules[0]"),
    ("scope.repo_root", "./", "scope.repo_root"),
    ("constraints.lock_scope", {"mode": "files", "paths": ["src", ".git/"]}, "constraints.lock_scope.paths[1]"),
    ("constraints.lock_scope", {"mode": "files", "paths": ["docs/"]}, "scope.targets.files[0]"),
    ("constraints.lock_scope", {"mode": "none", "paths": ["docs/"]}, "constraints.lock_scope.paths"),
    ("constraints.lock_scope", {"mode": "task", "paths": ["src"]}, "constraints.lock_scope.paths"),
    ("scope.repo_root", "~/shop", "scope.repo_root"),
    ("scope.repo_root", ".git", "scope.repo_root"),
    ("scope.repo_root", ".steersman", "scope.repo_root"),
    ("scope.repo_root", "docs", "scope.targets.files[0]"),
    ("scope.targets.files", ["src/pri\u200dces.py"], "scope.targets.files[0]"),
    ("scope.targets.modules", ["pri\u3164ces"], "scope.targets.modules[0]"),
    ("title", "Fix pri\u200dces", "title"),
]  # fmt: skip


@for_each_case(("path", "value", "field"), SENSELESS)
def test_senseless(path, value, field):
    """001 §2 "Schema validation": what fits the form and makes no sense is told with its field, and stops the plan."""
    report = check(change_raw_intent(path, value))
    assert fields(report.schema_problems) == [field]
    assert report.schema_problems[0].fix
    assert not has_passed_precheck(report)


def test_a_lock_and_a_root_meet():
    """A lock on files that the plan cannot reach locks nothing; one that is wider than the root is fine."""
    raw = set_field(PLAIN_INTENT, "scope.repo_root", "src")
    for paths, told in ((["src", "docs"], ["constraints.lock_scope.paths[1]"]), (["."], [])):
        locked = set_field(raw, "constraints.lock_scope", {"mode": "files", "paths": paths})
        assert fields(check(seal_raw_intent(pin_intent(locked))).schema_problems) == told


def test_sense_at_its_edges():
    """001 §2: what looks alike and is fine."""
    for path, value in (
        ("title", "مرحبا\u200cبكم"),
        ("description", "one\r\ntwo 👨\u200d👩\u200d👧"),
        ("constraints.lock_scope", {"mode": "files", "paths": ["src"]}),
        ("constraints.lock_scope", {"mode": "task"}),
        ("scope.targets.files", ["src/..hidden", ".github/ci.yml"]),
    ):
        assert has_passed_precheck(check(change_raw_intent(path, value))), path


def test_reading_needs_no_review():
    """FACTS, extra condition: write or deploy needs a review; reading does not."""
    raw = set_field(
        set_field(PLAIN_INTENT, "planned_commands", PLAIN_INTENT["planned_commands"][:1]),
        "risk.requires_review",
        [],
    )
    assert has_passed_precheck(check(seal_raw_intent(pin_intent(set_field(raw, "budgets.max_files", 0)))))


def test_effects_cannot_be_talked_away():
    """FACTS, extra condition: the registry's effects count too."""
    raw = set_field(
        set_field(PLAIN_INTENT, "planned_commands.1.effects", ["read"]), "risk.requires_review", []
    )
    report = check(seal_raw_intent(pin_intent(raw)))
    assert fields(report.schema_problems) == ["risk.requires_review"]


def test_remarks():
    """An intent that understates, renames or misplaces is told so; what follows is worked out by the planner."""
    assert find_intent_remarks(raw_intent(), RAW_REGISTRY) == ()
    low = set_field(
        set_field(PLAIN_INTENT, "planned_commands.1.effects", ["read"]),
        "planned_commands.1.risk_level",
        "low",
    )
    assert fields(find_intent_remarks(low, RAW_REGISTRY)) == [
        "planned_commands[1].effects",
        "planned_commands[1].risk_level",
    ]
    assert fields(
        find_intent_remarks(set_field(PLAIN_INTENT, "selected_agents.0.role", "boss"), RAW_REGISTRY)
    ) == ["selected_agents[0].role"]
    apart = set_field(PLAIN_INTENT, "selected_workflows.0.phases", ["analysis"])
    assert fields(find_intent_remarks(apart, RAW_REGISTRY)) == ["planned_commands[1].command_id"]
    assert find_intent_remarks({"selected_agents": [{}], "planned_commands": [{}]}, RAW_REGISTRY) == ()


# ── policies ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_policy_presets_are_fine():
    """The three policies by name have no problem."""
    import msgspec

    for policy in POLICY_PRESETS.values():
        assert check(raw_intent(), msgspec.to_builtins(policy)).policy_problems == ()


@for_each_case(
    ("change", "field"),
    [
        ({"mode": "full_auto"}, "question_budget"),
        ({"constraints": {"forbidden_operations": ["deploy", "cmd_ship", "cmd_shup"]}}, "constraints.forbidden_operations[2]"),
        ({"highest": "low"}, "highest"),
        ({"question_rules": {"allowed_types": ["decision_needed"]}}, "question_rules.allowed_types[0]"),
    ],
)  # fmt: skip
def test_policy_problems(change, field):
    """001 §12 "Policy": a policy that cannot be followed as it stands is a problem of its own."""
    raw = raw_intent()
    report = check(raw, {**INTERACTIVE_POLICY, **change})
    assert fields(report.policy_problems) == [field]
    assert count_precheck_facts(report, raw, INTERACTIVE_POLICY).policy_problems == 1
    assert not has_passed_precheck(report)


def test_no_policy_is_no_mild_policy():
    """A policy that is not there, or too deep to be read, is a problem."""
    deep = []
    for _ in range(100):
        deep = [deep]
    assert check(raw_intent(), None).policy_problems
    assert check(raw_intent(), {"mode": deep}).policy_problems


def test_stricter_mode():
    """Where intent and policy differ, the stricter mode; where neither says one, none."""
    assert find_stricter_mode(raw_intent(), {"mode": "semi_auto"}) == "semi_auto"
    assert find_stricter_mode({}, {"mode": "shy"}) is None
    assert count_precheck_facts(check({}, {}), {}, {}).mode == ""


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_checksum_covers_all_but_itself():
    """001 §2 "Checksum verification": any change but that of the checksum changes it; key order does not."""
    raw = raw_intent()
    assert compute_intent_checksum(set_field(raw, "audit.checksum", "f" * 64)) == compute_intent_checksum(raw)
    assert compute_intent_checksum(set_field(raw, "audit.created_by", "eve")) != compute_intent_checksum(raw)
    assert compute_intent_checksum(set_field(raw, "objective.non_goals", [])) != compute_intent_checksum(
        raw
    )  # a default that is written is written
    assert compute_intent_checksum(dict(reversed(raw.items()))) == compute_intent_checksum(raw)
    assert b"checksum" not in intent_checksum_bytes(raw)


@for_each_case("raw", [None, [], "x", {}, {"audit": 3}, {"audit": {"checksum": "0" * 64, "n": 0.5}}])
def test_checksum_is_total(raw):
    """Whatever it is given, it answers; zeros never match."""
    assert len(compute_intent_checksum(raw)) == 64
    assert not has_matching_checksum(raw)


def test_known_fields_are_no_payload():
    """No field of an intent or a policy has a forbidden name."""
    from steersman.judges.planning.payload import is_execution_key

    for name in ("execution_intent", "execution_policy"):
        shapes = planning_document_schema(name)["$defs"].values()
        assert not [
            field for shape in shapes for field in shape.get("properties", {}) if is_execution_key(field)
        ]


def test_fitting():
    """A document without problems of form can be had as a value."""
    assert convert_valid_document(raw_intent(), ExecutionIntent, "execution_intent").id == "intent_fix_login"
    assert convert_valid_document({}, ExecutionIntent, "execution_intent") is None


# ── seals ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sealing_makes_it_pass():
    """A whole intent without pins passes once it is sealed, and sealing it again changes nothing."""
    now = seal(copy.deepcopy(PLAIN_INTENT), RAW_REGISTRY)
    assert has_passed_precheck(check(now))
    assert seal(now, RAW_REGISTRY) == now


def test_sealing_replaces_stale_pins():
    """Pins of what is named no more, or was pinned otherwise, go; everything else that was cited stays in its place."""
    raw = raw_intent()
    raw["evidence_refs"] = [
        "registry://command/cmd_read@0.9.0#0123456789ab",
        *raw["evidence_refs"],
        "registry://workflow/wf_gone@1.0.0#0123456789ab",
    ]
    assert seal(raw, RAW_REGISTRY) == raw_intent()
    assert find_dangling_pins(raw, RAW_REGISTRY) == (raw["evidence_refs"][-1],)


def test_sealing_leaves_other_problems():
    """A document of any form can be sealed; that makes it no better."""
    assert seal({"evidence_refs": 3, "audit": []}, RAW_REGISTRY)["evidence_refs"] == []
    assert not has_passed_precheck(check(seal({}, RAW_REGISTRY)))
    kept = seal(set_field(PLAIN_INTENT, "evidence_refs", [7, "fact://a/b"]), RAW_REGISTRY)["evidence_refs"]
    assert kept[:2] == [7, "fact://a/b"]


@pytest.mark.parametrize(("project", "wrong"), [("", []), ("shop", []), ("ship", ["scope.project_id"])])
def test_an_intent_for_another_project(project, wrong):
    """Held against the project's own name, where it has said one."""
    report = precheck_intent(raw_intent(), INTERACTIVE_POLICY, RAW_REGISTRY, project=project)
    assert fields(report.schema_problems) == wrong
    assert report.schema_valid is not bool(wrong)


def test_a_document_without_canonical_bytes_has_no_checksum_to_tell():
    """§2: a number with a fraction has no one form; nobody is told that the right checksum is a row of zeros."""
    report = check(set_field(PLAIN_INTENT, "budgets.max_files", 1.5))
    assert not report.checksum_matches
    assert "no canonical form" in describe_checksum_problem(report)
    assert "0000" not in describe_checksum_problem(report)
    assert describe_checksum_problem(check(set_field(PLAIN_INTENT, "title", "Another title"))).startswith(
        "is not the one of this document, "
    )


@pytest.mark.parametrize("name", ["p1", "Policy", "1st"])
def test_the_form_of_a_policys_id_is_told_with_its_length(name):
    """§2: whoever writes an id that is too short is told how long it has to be."""
    (told,) = find_policy_problems(
        {"policy_id": name, "mode": "interactive", "question_budget": 1}, RAW_REGISTRY
    )
    assert (told.field, "3 to 80" in told.fix) == ("policy_id", True)
