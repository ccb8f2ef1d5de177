"""Whole plans from the command line on a real small repository (001; its flows, its failure branches, its red lines)."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
from tests.support.plan_project import PLANNED_FILE, PlanProject

SCHEMAS = Path(__file__).resolve().parents[3] / "docs" / "reference" / "schemas"

STRAIGHT = [
    "RECEIVED", "PRECHECKED", "CONTEXT_BUILT", "RULES_EVALUATED", "GRAPH_DRAFTED", "GRAPH_FINALIZED", "REVIEW_PACK_BUILT",
    "FROZEN_OUTPUTS", "DONE",
]  # fmt: skip
ASKED = [*STRAIGHT[:5], "QUESTIONS_EMITTED", "AWAITING_ANSWERS"]


@pytest.fixture
def plans(shop_project):
    return PlanProject(shop_project)


# ── the three modes ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_full_auto_goes_straight_through(plans):
    """§6, §Red Line #2: in full_auto nobody is asked; the plan is frozen, whole, signed, and nothing of it was executed."""
    name = plans.write(plans.intent(mode="full_auto"))
    done = plans.plan(name, "--out", "plan")
    assert (done.code, done.state, done.states()) == (0, "DONE", STRAIGHT)
    verified = plans.project.call("plan", "verify", "plan", "--json").json()
    assert (verified["whole"], verified["signature"]) == (True, "holds, by this project's key")
    assert plans.project.git("status", "--porcelain", "--", "src").strip() == ""
    assert done.summary["questions_asked"] == 0
    assert plans.project.call("audit", "verify", done.run).code == 0
    assert plans.project.call("audit", "replay", done.run).code == 0


def test_interactive_asks_and_goes_on_with_the_answers(plans):
    """§6–§8: an intent that names no scope raises a question; the answer is in the plan, with who gave it."""
    waits = plans.plan(plans.write(plans.intent(scoped=False)))
    assert (waits.code, waits.status, waits.states()) == (3, "waiting for you", ASKED)
    shown = plans.project.call("show", waits.run)
    assert "What shall hold?" in shown.out
    done = plans.answered(waits.run, "text", text=PLANNED_FILE)
    assert (done.code, done.state) == (0, "DONE")
    assert done.summary["questions_asked"] == 1
    with open(f"{done.plan}/settled_questions.json", encoding="utf-8") as file:
        (answer,) = json.load(file)["answers"]
    assert (answer["answer"], answer["text"], answer["provided_by"]) == ("text", PLANNED_FILE, "human")
    entries = plans.project.call("audit", "tape", done.run, "--json").out.splitlines()
    assert [json.loads(e)["actor"] for e in entries if '"answers_given"' in e] == ["person:ann"]


def test_semi_auto_asks_blockers_only(plans):
    """§6: in semi_auto only blockers are asked; what is less takes its default, and the plan says so."""
    plans.rule("rule_story_soft", "deny", "warn")
    waits = plans.plan(plans.write(plans.intent(mode="semi_auto", scoped=False)))
    assert waits.status == "waiting for you"
    (gate,) = plans.project.call("gates", "--json").json()
    assert gate["job"] == "answers"
    done = plans.answered(waits.run, "text", text=PLANNED_FILE)
    assert (done.code, done.state) == (0, "DONE")
    assert (done.summary["questions_asked"], done.summary["questions_defaulted"]) == (1, 1)
    told = waits.tape()
    assert {d["outcome"] for d in told["decisions"] if d["decision_type"] == "question_emission"} == {
        "blocker"
    }


# ── rules ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_hard_deny_aborts(plans):
    """§4: a deny of severity block ends the run as a red line, with the rule's reason; the alert is raised."""
    plans.rule("rule_story_hard", "deny", "block")
    done = plans.plan(plans.write(plans.intent(mode="full_auto")))
    assert (done.code, done.state) == (1, "ABORTED")
    assert (done.failure["failure_type"], done.failure["cause"]) == ("red_line_violation", "rule_denied")
    assert "a story says so" in json.dumps(done.failure)
    assert any("planned_commands" in c for c in done.changes())
    log = plans.project.call("audit", "tape", done.run, "--as", "auditlog", "--json").json()
    assert [e["event_type"] for e in log["entries"] if e["critical"]][-1] == "run_failed"
    result = plans.project.call("plan", "explain", done.run)
    assert result.out.startswith("ALERT, a red line")


def test_a_soft_deny_leaves_the_command_out_with_its_reason(plans):
    """§4: a soft deny excludes the command; the phase has others, so that the plan goes on and says what is missing."""
    plans.rule("rule_story_soft", "deny", "warn", scope={"commands": ["cmd_open_draft_pull_request"]})
    done = plans.plan(plans.write(plans.intent(mode="full_auto")), "--out", "plan")
    assert done.state == "DONE"
    with open(plans.project.repo / "plan" / "review_pack.json", encoding="utf-8") as file:
        review = json.load(file)
    assert "cmd_open_draft_pull_request" not in {a["command_id"] for a in review["actions"]}
    (left,) = [e for e in review["excluded"] if "cmd_open_draft_pull_request" in e]
    assert "a story says so" in left


def test_rules_that_contradict_each_other_abort(plans):
    """§13: a deny and an allow of severity block about the same command have no order."""
    plans.rule("rule_story_no", "deny", "block")
    plans.rule("rule_story_yes", "allow", "block")
    done = plans.plan(plans.write(plans.intent(mode="full_auto")))
    assert (done.state, done.failure["failure_type"]) == ("ABORTED", "red_line_violation")
    assert "rule_story_no" in json.dumps(done.failure)


def test_a_rule_that_cannot_be_decided_blocks(plans):
    """§4: an error while a rule is decided is no answer."""
    plans.rule("rule_story_broken", "warn", "warn", when="command.files / 0 == 1")
    done = plans.plan(plans.write(plans.intent(mode="full_auto")))
    assert (done.state, done.code) == ("BLOCKED", 1)
    (told,) = done.failure["problems"]
    assert told["field"] == ".steersman/registry/rules/rule_story_broken.yaml: when"
    assert told["line"] > 0
    assert "divide by zero. Its condition: command.files / 0 == 1" in told["message"]
    assert done.changes() == {"rule.when", told["field"]}
    assert f"{told['field']} (line {told['line']})" in plans.project.call("plan", "explain", done.run).out


def test_what_the_policy_forbids_blocks(plans):
    """§12: a policy that prohibits an operation blocks, and both the command and the policy's field are named."""
    policy = plans.policy(
        mode="full_auto", question_budget=0, constraints={"forbidden_operations": ["cmd_edit_files"]}
    )
    done = plans.plan(plans.write(plans.intent(mode="full_auto")), "--policy", policy)
    assert (done.state, done.failure["failure_type"]) == ("BLOCKED", "policy_violation")
    assert "policy.constraints.forbidden_operations" in json.dumps(done.failure)


def test_a_policy_that_cannot_be_used_is_told_by_its_own_fields(plans):
    """§12: no field of the policy reads like one of the intent."""
    policy = plans.policy(mode="full_auto", constraints={"forbidden_operations": ["deploi"]})
    done = plans.plan(plans.write(plans.intent(mode="full_auto")), "--policy", policy)
    assert done.failure["cause"] == "policy_invalid"
    assert {p["field"] for p in done.failure["problems"]} == {
        "policy.question_budget", "policy.constraints.forbidden_operations[0]",
    }  # fmt: skip
    assert done.changes() == {"policy", *(p["field"] for p in done.failure["problems"])}


def test_a_model_that_the_policy_forbids_aborts(plans):
    """§13: routing only advises; where the policy leaves no model to advise, the run is aborted."""
    policy = plans.policy(
        mode="full_auto", question_budget=0, models={"placements": ["local"], "allowed": ["none-such"]}
    )
    done = plans.plan(plans.write(plans.intent(mode="full_auto")), "--policy", policy)
    assert (done.state, done.failure["cause"]) == ("ABORTED", "routing_violation")


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fix_that_changes_nothing_is_none(plans):
    """§8: where rules deny everything that writes, reading the code is no implementation: asked about, or BLOCKED."""
    plans.rule("rule_story_frozen", "deny", "error", scope={"effects": ["write"]})
    done = plans.plan(plans.write(plans.intent(mode="full_auto")))
    assert (done.state, done.failure["failed_at_state"]) == ("BLOCKED", "GRAPH_FINALIZED")
    assert "wf_bug_fix/implementation" in json.dumps(done.failure)
    waits = plans.plan(plans.write(plans.intent()))
    assert waits.state == "AWAITING_ANSWERS"
    pack = plans.project.call("plan", "answer", waits.run, "--template", "--json").json()
    assert "" in [a["answer"] for a in pack["answers"]]  # its default would end the run
    by_hand = plans.answers(waits.run, stop=("by_hand", ""))
    assert by_hand.state == "DONE", by_hand.failure


def test_writes_are_not_answered_away_where_something_has_to_change(plans):
    """§7: the scope's `leave_out` would leave a fix that changes nothing; it is no answer there."""
    waits = plans.plan(plans.write(plans.intent(scoped=False)))
    refused = plans.answers(waits.run, stop=("leave_out", ""))
    assert (refused.code, "leave_out is not an answer" in refused.said.err) == (4, True)


def test_everything_is_no_list_of_files(plans):
    """A deletion names its files: the whole project, a folder, or a folder without its slash is none, and is asked about."""
    spec = plans.project.call("registry", "show", "cmd_delete_files", "--json").json()["content"]
    more = {"command_id": spec["id"], "intent": "Delete what nobody uses.", "effects": spec["effects"],
            "risk_level": spec["risk_level"], "evidence_refs": ["fact://language/python"]}  # fmt: skip
    policy = plans.policy(risk_profile="aggressive", constraints={"allow_destructive": True})
    for name in (".", "src/", "src/chandler", "./", "././src", "src//chandler", "src/./chandler"):
        value = plans.intent()
        value["planned_commands"].append(more)
        value["risk"]["overall"] = "high"
        value["scope"]["targets"]["files"] = [name]
        done = plans.plan(plans.write(value), "--policy", policy)
        assert done.state in ("ABORTED", "BLOCKED"), name
        told = "rule_delete_only_what_is_named" if done.state == "ABORTED" else "is another way to write"
        assert told in json.dumps(done.failure), name
    value = plans.intent()
    value["scope"]["targets"]["files"] = ["."]
    waits = plans.plan(plans.write(value))
    assert waits.state == "AWAITING_ANSWERS"
    done = plans.answers(waits.run, stop=("text", PLANNED_FILE))
    assert done.state == "DONE", done.failure
    assert f"- file {PLANNED_FILE}" in plans.project.call("plan", "explain", done.run).out


def test_time_runs_out_and_the_defaults_hold(plans):
    """§7: without an answer in time every question takes its tagged default, and the tape says that nobody answered."""
    plans.rule("rule_story_soft", "deny", "warn", scope={"commands": ["cmd_open_draft_pull_request"]})
    done = plans.plan(plans.write(plans.intent()), "--policy", plans.policy(timeout_seconds=1))
    assert done.state == "DONE", done.failure
    assert done.summary["questions_defaulted"] >= 1
    entries = [
        json.loads(e) for e in plans.project.call("audit", "tape", done.run, "--json").out.splitlines()
    ]
    (answered,) = [e for e in entries if e.get("event") == "answers_given"]
    assert answered["data"]["timed_out"] is True
    assert ("actor" in answered, answered["why"]) == (False, "no answer came in time")  # steersman itself


def test_time_runs_out_without_a_fallback(plans):
    """§7: a policy without auto_fallback blocks instead of taking defaults."""
    policy = plans.policy(timeout_seconds=1, auto_fallback=False)
    done = plans.plan(plans.write(plans.intent(scoped=False)), "--policy", policy)
    assert (done.state, done.code) == ("BLOCKED", 1)
    assert done.failure["failed_at_state"] == "AWAITING_ANSWERS"
    assert "policy.auto_fallback" in done.changes()


def test_a_review_that_only_the_answers_call_for_is_not_passed_over(plans):
    """§8: a rule that speaks only about the scope that was answered stops the plan, whatever was approved before."""
    looks = {"decision": "require_review", "reason": "a story says so"}
    plans.rule("rule_arch", "require_review", "warn", then={**looks, "review": ["architecture"]})
    plans.rule(
        "rule_payments", "require_review", "block", 'intent.files.exists(f, f.startsWith("src/chandler/"))',
        then={**looks, "review": ["security"]},
    )  # fmt: skip
    waits = plans.plan(plans.write(plans.intent(scoped=False)))
    done = plans.answers(waits.run, stop=("text", PLANNED_FILE), keep_with_review=("approve", ""))
    assert done.state == "BLOCKED"
    assert "rule_payments" in json.dumps(done.failure)
    assert done.failure["cause"] == "rest_denied"


def test_an_answer_pack_that_cannot_be_taken_changes_nothing(plans):
    """§7: a broken, incomplete or foreign pack is refused with all its problems; the questions stay open."""
    waits = plans.plan(plans.write(plans.intent(scoped=False)))
    for value in (
        {},
        {
            "question_pack_id": "questions_" + "0" * 16,
            "answers": [{"question_id": "q_" + "0" * 16, "answer": "yes"}],
        },
    ):
        (plans.project.repo / "answers.json").write_text(json.dumps(value))
        result = plans.project.call("plan", "answer", waits.run, "answers.json")
        assert result.code == 4
        assert "answers" in result.err
    assert plans.project.call("gates").out.count(waits.run) >= 1
    assert plans.answered(waits.run, "text", text=PLANNED_FILE).state == "DONE"


def test_no_slip_with_a_template_ends_a_run(plans):
    """§7: a template proposes no answer that ends the run; left as it is, it is refused by the question's name with what
    may be said; so is `text` beside another answer. What is asked stands in it."""
    waits = plans.plan(plans.write(plans.intent(scoped=False)))
    template = plans.project.call("plan", "answer", waits.run, "--template").out
    (answer,) = json.loads(template)["answers"]
    assert answer["answer"] == ""
    assert "whole_project: " in json.loads(template)["questions"][answer["question_id"]]
    for given in ({}, {"text": "src/"}, {"answer": "stop", "text": "src/"}):
        value = {**json.loads(template), "answers": [answer | given]}
        (plans.project.repo / "answers.json").write_text(json.dumps(value))
        result = plans.project.call("plan", "answer", waits.run, "answers.json")
        assert result.code == 4
        assert "answers[0]" in result.err
    assert plans.answered(waits.run, "text", text=PLANNED_FILE).state == "DONE"


def test_a_default_that_blocks_stops_a_plan_that_may_not_ask(plans):
    """DESIGN: full_auto with an uncertainty whose default is to stop is BLOCKED, and says what to name."""
    done = plans.plan(plans.write(plans.intent(mode="full_auto", scoped=False)))
    assert (done.state, done.failure["failed_at_state"]) == ("BLOCKED", "GRAPH_FINALIZED")
    assert "scope" in json.dumps(done.failure["recovery_suggestions"])


# ── what blocks before anything is planned ──────────────────────────────────────────────────────────────────────────


def changed(value, *path, to):
    at = value
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = to
    return value


BROKEN = {
    "missing id": (("planned_commands", 0, "command_id"), "cmd_not_there", "BLOCKED", "planned_commands[0]"),
    "target elsewhere": (("scope", "repo_root"), "docs", "BLOCKED", "scope.targets.files[0]"),
    "wrong type": (("budgets", "max_files"), "many", "BLOCKED", "budgets.max_files"),
    "unknown field": (("colour",), "blue", "BLOCKED", "colour"),
    "full_auto that asks": (("interaction", "question_budget"), 5, "BLOCKED", "interaction.question_budget"),
    "no evidence": (("planned_commands", 0, "evidence_refs"), [], "BLOCKED", "planned_commands[0].evidence_refs"),
    "fabrication": (("constraints", "no_fabrication"), False, "BLOCKED", "constraints.no_fabrication"),
    "high risk alone": (("risk", "overall"), "critical", "BLOCKED", "interaction.mode"),
    "execution allowed": (("constraints", "execution"), "allowed", "ABORTED", "constraints.execution"),
    "payload on top": (("run",), "make test", "ABORTED", "run"),
    "payload deep": (("scope", "targets", "Shell-Script"), ["rm"], "ABORTED", "scope.targets"),
    "payload in a list": (("selected_agents", 0, "exec"), {}, "ABORTED", "selected_agents[0]"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN, ids=lambda c: c.replace(" ", "-"))
def test_an_intent_that_may_not_be_planned(plans, case):
    """§2, §Red Lines (§Red Line #5 among them): each broken field ends in its state, with a FailurePack that names the field to change."""
    path, value, state, field = BROKEN[case]
    name = plans.write(changed(plans.intent(mode="full_auto"), *path, to=value), seal=False)
    plans.project.call("intent", "seal", name)  # as far as it can be
    done = plans.plan(name)
    assert (done.code, done.state) == (1, state)
    assert done.states()[-2:] == ["PRECHECKED", state]
    assert any(field in c for c in done.changes()), done.changes()
    kind = "red_line_violation" if state == "ABORTED" else done.failure["failure_type"]
    assert done.failure["failure_type"] == kind
    guards = done.tape()["states"][-1]["guards_evaluated"]
    assert len(guards) == 14
    assert not all(g["passed"] for g in guards)


def test_a_changed_intent_breaks_its_checksum(plans):
    """§2: one changed word without a new seal is BLOCKED, and the way out is the seal."""
    value = plans.intent(mode="full_auto")
    done = plans.plan(plans.write(changed(value, "description", to="something else"), seal=False))
    assert (done.state, done.failure["cause"]) == ("BLOCKED", "checksum_mismatch")
    assert "intent seal" in json.dumps(done.failure["recovery_suggestions"])


def test_content_that_drifted_blocks(plans):
    """§2: what the registry holds now is not what the intent was sealed with: BLOCKED, with the command to look at it."""
    name = plans.write(plans.intent(mode="full_auto"))
    shown = plans.project.call("registry", "show", "cmd_edit_files", "--json").json()
    body = {k: v for k, v in shown.get("content", shown).items() if k != "exit_code"}
    plans.content("command", {
        **body, "version": "9.0.0", "lineage": {"introduced_in": "story", "supersedes": ["cmd_edit_files@1.0.0"]},
        "description": "Another one.",
    })  # fmt: skip
    done = plans.plan(name)
    assert done.state == "BLOCKED", done.told
    assert "drift" in done.failure["cause"]
    assert "registry diff" in json.dumps(done.failure["recovery_suggestions"])
    (told,) = [p for p in done.failure["problems"] if "cmd_edit_files" in p["message"]]
    assert told["field"].startswith("planned_commands[")
    assert told["field"] in done.changes()


def test_a_broken_registry_blocks_and_names_the_file(plans):
    """§2: nothing can be held against a registry that cannot be read; what is wrong with it is named."""
    name = plans.write(plans.intent(mode="full_auto"))
    folder = plans.project.repo / ".steersman" / "registry" / "rules"
    folder.mkdir(parents=True)
    (folder / "half.yaml").write_text("id: [")
    done = plans.plan(name)
    assert (done.state, done.failure["cause"]) == ("BLOCKED", "registry_broken")
    assert "half.yaml" in json.dumps(done.failure["problems"])
    guards = {g["guard_name"]: g["passed"] for g in done.tape()["states"][-1]["guards_evaluated"]}
    assert [name for name, fine in guards.items() if not fine] == [
        "the registry can be read and fits itself",
        "valid",
    ]
    assert ".steersman/registry" in done.changes()
    value = json.loads((plans.project.repo / name).read_text())
    aborted = plans.plan(plans.write(changed(value, "run", to="make"), seal=False))
    assert aborted.state == "ABORTED"


def test_an_intent_for_another_project_is_refused(plans):
    """A project that says what it is called takes no intent for another one."""
    name = plans.write(plans.intent(mode="full_auto"))
    (plans.project.repo / "steersman.toml").write_text('version = 1\nproject = "ship"\n')
    done = plans.plan(name)
    assert (done.state, done.failure["cause"]) == ("BLOCKED", "schema_invalid")
    assert "scope.project_id" in done.changes()
    checked = plans.project.call("intent", "check", name)
    assert checked.code == 4
    assert "this project is called ship" in checked.out
    assert plans.intent(mode="full_auto")["scope"]["project_id"] == "ship"


def test_a_root_that_is_no_folder_has_no_facts(plans):
    """§3: facts come from the part of the project that the intent is about."""
    value = changed(plans.intent(mode="full_auto", scoped=False), "scope", "repo_root", to="nowhere")
    done = plans.plan(plans.write(value))
    assert (done.state, done.failure["cause"]) == ("BLOCKED", "facts_unavailable")
    assert "scope.repo_root" in done.changes()


def test_content_that_is_not_active_blocks(plans):
    """§2: a draft of the registry is there and may not be used."""
    plans.content("command", {
        "id": "cmd_story", "status": "draft", "effects": ["read"], "risk_level": "low", "phases": ["analysis"],
    })  # fmt: skip
    value = plans.intent(mode="full_auto")
    value["planned_commands"].append({**value["planned_commands"][0], "command_id": "cmd_story"})
    done = plans.plan(plans.write(value))
    assert (done.state, done.failure["failure_type"]) == ("BLOCKED", "missing_registry")
    assert f"planned_commands[{len(value['planned_commands']) - 1}].command_id" in done.changes()


def test_a_workflow_that_goes_in_circles_blocks(plans):
    """§5: a cycle is named with its path."""
    phases = [
        {"phase": "analysis", "purpose": "a", "role": "architect", "after": ["implementation"]},
        {"phase": "implementation", "purpose": "b", "role": "coder", "after": ["analysis"]},
    ]
    plans.content("workflow", {"id": "wf_circle", "phases": phases})
    value = plans.intent(mode="full_auto")
    value["selected_workflows"] = [{"workflow_id": "wf_circle", "phases": ["analysis", "implementation"]}]
    done = plans.plan(plans.write(value))
    assert done.state == "BLOCKED"
    told = json.dumps(done.failure)
    assert "analysis" in told
    assert "implementation" in told


def test_a_budget_that_does_not_suffice_blocks(plans):
    """§9: a plan that changes more files than the intent allows is BLOCKED, and the budget is named."""
    value = changed(plans.intent(mode="full_auto"), "budgets", "max_files", to=1)
    done = plans.plan(plans.write(value))
    assert (done.state, done.failure["failed_at_state"]) == ("BLOCKED", "REVIEW_PACK_BUILT")
    assert any("max_files" in c for c in done.changes())


def test_more_to_ask_than_may_be_asked_blocks(plans):
    """§6: blockers over the budget end the run; the budget is named."""
    value = changed(plans.intent(scoped=False), "interaction", "question_budget", to=1)
    value["planned_commands"][0]["evidence_refs"] = ["scan://ev000000000000"]
    done = plans.plan(plans.write(value), "--policy", plans.policy())
    assert (done.state, done.failure["cause"]) == ("BLOCKED", "question_budget_exceeded")
    assert any("question_budget" in c for c in done.changes())


def test_no_memory_blocks(shop_project):
    """§3: without a memory there is no plan; the command that adds one is named."""
    plans = PlanProject(shop_project, remembers=False)
    done = plans.plan(plans.write(plans.intent(mode="full_auto")))
    assert (done.state, done.failure["failed_at_state"]) == ("BLOCKED", "CONTEXT_BUILT")
    assert "memory add" in json.dumps(done.failure["recovery_suggestions"])


# ── the tape ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def fits(document, name):
    """Whether a document is as its published schema says."""
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    given = {k: v for k, v in document.items() if k != "exit_code"}
    return jsonschema_rs.is_valid(schema, given)


@pytest.mark.parametrize("ends", ["DONE", "BLOCKED", "ABORTED"])
def test_every_transition_is_in_both_forms(plans, ends):
    """§Audit Requirements, §Implementation Notes: from, to, trigger, guards, outputs, time and duration of every transition, also of a run that
    failed; decisions with their rationale; both forms fit their schemas, and a red line is a critical line."""
    value = plans.intent(mode="full_auto")
    match ends:
        case "BLOCKED":
            value["budgets"]["max_files"] = 1
        case "ABORTED":
            plans.rule("rule_story_hard", "deny", "block")
    done = plans.plan(plans.write(value))
    assert done.state == ends
    tape, entries = done.tape(), plans.project.call("audit", "tape", done.run, "--json").out.splitlines()
    steps = [e for e in map(json.loads, entries) if e["kind"] in ("created", "transition")]
    assert fits(tape, "coordinator-run-tape")
    assert [(s["from_state"], s["to_state"], s["trigger"]) for s in tape["states"]] == [
        (e.get("from") or "INIT", e["to"], e["event"]) for e in steps
    ]
    for recorded, step in zip(tape["states"], steps, strict=True):
        assert len(recorded["guards_evaluated"]) == len(step.get("guards", {}))
        assert recorded["timestamp"]
        assert recorded["duration_ms"] >= 0
    assert tape["rule_evaluations"]
    assert {d["decision_type"] for d in tape["decisions"]} >= {
        "policy_check", "rule_adjudication", "risk_assessment", "model_routing",
    }  # fmt: skip
    assert all(d["rationale"] for d in tape["decisions"])
    assert (tape["failure_info"] is None) == (ends == "DONE")
    log = plans.project.call("audit", "tape", done.run, "--as", "auditlog", "--json").json()
    assert fits(log, "audit-log")
    assert len([e for e in log["entries"] if e["event_type"] == "state_transition"]) == len(steps)
    assert len([e for e in log["entries"] if e["event_type"] == "red_line_check"]) == 5
    assert any(e["critical"] for e in log["entries"]) == (ends == "ABORTED")
    folder = plans.project.repo / ".steersman" / "runs" / done.run
    assert fits(json.loads((folder / "run_summary.json").read_text()), "coordinator-run-summary")
    assert (folder / "failure_pack.json").exists() == (ends != "DONE")


# ── around it ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_goal_in_words_is_enough(plans):
    """For people in a hurry: a goal is drafted, checked and planned in one go."""
    result = plans.project.call("plan", "Fix the discount", "--policy", "interactive")
    assert result.code == 3, result.err
    assert "QUESTIONS_EMITTED → AWAITING_ANSWERS" in result.out


def test_the_planner_is_not_given_tasks(plans):
    """`run --as coordinator` is refused with the command to use; a plan's report says what was planned."""
    result = plans.project.call("run", "Fix it", "--as", "coordinator")
    assert result.code == 2
    assert "steersman plan" in result.err
    done = plans.plan(plans.write(plans.intent(mode="full_auto")))
    output = plans.project.call("report", done.run).out
    assert "## Plan" in output
    assert "## Evidence" not in output


def test_what_cannot_be_planned_at_all_is_told_and_leaves_no_run(plans):
    """A file that is not there, garbage, an unknown policy, a place that is taken: one line, exit 2, no run."""
    name = plans.write(plans.intent(mode="full_auto"))
    (plans.project.repo / "garbage.json").write_text("{")
    (plans.project.repo / "taken").mkdir()
    (plans.project.repo / "taken" / "mine.txt").write_text("mine")
    for words in (
        ["nowhere.json"],
        ["garbage.json"],
        [""],
        [name, "--policy", "nope"],
        [name, "--out", "taken"],
        [name, "--out", ".git/plan"],
        [name, "--out", ".steersman/registry/plan"],
        [name, "--out", str(plans.project.state / "plan")],
        ["-"],
    ):
        result = plans.project.call("plan", *words)
        assert result.code in (2, 4), words
        assert "Traceback" not in result.err
        assert result.err.strip()
    assert plans.project.call("runs", "--all", "--json").json() == []


def test_any_changed_byte_is_found(plans):
    """§10: a change of any file of a frozen plan, a missing one and one too many are found and named."""
    plans.plan(plans.write(plans.intent(mode="full_auto")), "--out", "plan")
    folder = plans.project.repo / "plan"
    for file in sorted(folder.iterdir()):
        whole = file.read_bytes()
        file.write_bytes(whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:])
        result = plans.project.call("plan", "verify", "plan")
        assert result.code == 1, file.name
        assert file.name in result.err
        file.write_bytes(whole)
    (folder / "plan.md").rename(plans.project.repo / "gone")
    assert "plan.md" in plans.project.call("plan", "verify", "plan").err
    (plans.project.repo / "gone").rename(folder / "plan.md")
    (folder / "extra.json").write_text("{}")
    assert "extra.json" in plans.project.call("plan", "verify", "plan").err
    (folder / "extra.json").unlink()
    assert plans.project.call("plan", "verify", "plan").code == 0


def test_a_plan_without_its_signature_or_with_another_key_is_not_trusted(plans, tmp_path):
    """§10: without the signed statement nobody says that these are the files; elsewhere the maker's key is asked for."""
    plans.plan(plans.write(plans.intent(mode="full_auto")), "--out", "../plan")
    folder = plans.project.place / "plan"
    key = plans.project.state / "anchor.pub"
    elsewhere = plans.project.call(
        "plan", "verify", "../plan", "--json", XDG_STATE_HOME=str(tmp_path / "other")
    )
    assert (elsewhere.code, elsewhere.json()["signature"]) == (1, "by a key that is not known here")
    given = plans.project.call(
        "plan", "verify", "../plan", "--key", str(key), "--json", XDG_STATE_HOME=str(tmp_path / "other")
    )
    assert (given.code, given.json()["signature"]) == (0, "holds, by the given key")
    (tmp_path / "wrong.pub").write_text("AAAA\n")
    assert plans.project.call("plan", "verify", "../plan", "--key", str(tmp_path / "wrong.pub")).code == 2
    (folder / "plan.dsse.json").unlink()
    bare = plans.project.call("plan", "verify", "../plan", "--json")
    assert (bare.code, bare.json()["signature"], bare.json()["whole"]) == (1, "missing", False)


# ── what is left ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_full_auto_does_not_take_a_high_risk(plans):
    """§Red Line #3: the plan's own risk counts, whatever the author has stated."""
    made = plans.intent("--workflow", "wf_data_migration", mode="full_auto")
    done = plans.plan(plans.write(made))
    assert (done.state, done.code) == ("BLOCKED", 1)
    assert "interaction.mode" in done.changes()


def test_a_plan_with_nothing_in_it_is_none(plans):
    """§8: where all evidence leads nowhere every command is left out, and that is no plan."""
    value = plans.intent(mode="full_auto")
    for command in value["planned_commands"]:
        command["evidence_refs"] = ["answer://q_nobody_said_this"]
    done = plans.plan(plans.write(value))
    assert (done.state, done.failure["cause"]) == ("BLOCKED", "evidence_unfound")
    assert "No command is left" in json.dumps(done.failure["problems"])


def test_endless_nesting_is_refused_at_once(plans):
    """A small file of a hundred thousand brackets costs neither memory nor a traceback."""
    for name, text in (("lists.json", "[" * 100_000), ("maps.json", '{"a":' * 40_000)):
        (plans.project.place / name).write_text(text)
        for words in (("intent", "check"), ("plan",)):
            result = plans.project.call(*words, f"../{name}", timeout=20)
            assert result.code in (2, 4), result
            assert "Traceback" not in result.err


def buried(value, levels):
    """The intent with something to execute at the bottom of so many levels, its own being the first."""
    inner = {"exec": "rm"}
    for _ in range(levels - 2):
        inner = {"a": inner}
    return {**value, "extra": inner}


def test_payload_is_found_as_deep_as_anything_is_read(plans):
    """RED LINE #1: at the last level a key aborts the run; a level deeper nothing is read or run."""
    done = plans.plan(plans.write(buried(plans.intent(), 32), seal=False))
    assert (done.state, done.failure["cause"]) == ("ABORTED", "execution_payload")
    before = plans.project.call("runs", "--json").json()
    name = plans.write(buried(plans.intent(), 33), seal=False)
    for words in (("plan",), ("intent", "check"), ("intent", "seal")):
        result = plans.project.call(*words, name)
        assert (result.code, "nested deeper than 32 levels" in result.err) == (4, True), result
    assert plans.project.call("runs", "--json").json() == before


def test_a_run_is_explained_as_its_folder_is(plans):
    """`plan explain RUN` shows the whole plan from the tape: what `plan explain DIR` shows of the frozen files."""
    done = plans.plan(plans.write(plans.intent(mode="full_auto")), "--out", "one")
    by_run, by_folder = (plans.project.call("plan", "explain", what) for what in (done.run, "one"))
    assert (by_run.code, by_run.out) == (0, by_folder.out)
    assert {"## Bounds", "## Steps", "## Lineage"} <= set(by_run.out.splitlines())
    assert f"- file {PLANNED_FILE}" in by_run.out


def test_two_plans_are_compared_by_their_inputs(plans):
    """`plan diff` says which input made the difference, and what of the plan changed."""
    value = plans.intent(mode="full_auto")
    plans.plan(plans.write(value), "--out", "one")
    value["planned_commands"] = [
        c for c in value["planned_commands"] if c["command_id"] != "cmd_open_draft_pull_request"
    ]
    value["scope"]["targets"]["files"] = ["src/", "tests/"]
    value["budgets"]["max_files"] = 400
    value["risk"] |= {"overall": "medium", "requires_review": [*value["risk"]["requires_review"], "cost"]}
    plans.plan(plans.write(value), "--out", "two")
    data = plans.project.call("plan", "diff", "one", "two", "--json").json()
    assert data["same"] is False
    assert "intent_checksum" in data["inputs"]
    assert "cmd_open_draft_pull_request: no longer planned" in data["plan"]
    assert {f"files, no longer: {PLANNED_FILE}", "files, newly: src/", "files, newly: tests/"} <= set(
        data["plan"]
    )
    assert any(line.startswith("budget max_files: ") and line.endswith("→ 400") for line in data["plan"])
    assert any(line.startswith("reviews, newly: cost in review") for line in data["plan"])
    assert plans.project.call("plan", "diff", "one", "one").code == 0
