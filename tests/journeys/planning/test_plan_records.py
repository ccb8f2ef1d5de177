"""What is said about a planning run afterwards: its tape, its audit log, its summary and its failure, each as it was."""

import json
import os
import time

import pytest
from tests.support.command_launcher import CommandCall
from tests.support.plan_project import PlanProject

from steersman.judges.planning.intent import compute_intent_checksum


@pytest.fixture
def plans(shop_project):
    return PlanProject(shop_project)


def audit(plans, run):
    """The run's audit log."""
    return plans.project.call("audit", "tape", run, "--as", "auditlog", "--json").json()["entries"]


def failing(plans, cause):
    """A plan that fails in PRECHECKED for one reason."""
    value, more = plans.intent(mode="full_auto"), ()
    match cause:
        case "checksum_mismatch":
            value["title"] = "Another title than the sealed one"
        case "version_drift":
            value["evidence_refs"] = [r.replace("@1.", "@7.") for r in value["evidence_refs"]]
            value["audit"]["checksum"] = compute_intent_checksum(value)
        case "policy_invalid":
            more = ("--policy", plans.policy(mode="full_auto", question_budget=3))
    return plans.plan(plans.write(value, seal=cause == "policy_invalid"), *more)


@pytest.mark.parametrize("cause", ["checksum_mismatch", "version_drift", "policy_invalid"])
def test_a_failed_precheck_is_never_called_passed(plans, cause):
    """§2, §Audit Requirements: whatever PRECHECKED stopped at, the decision on tape says failed and why; it is counted."""
    done = failing(plans, cause)
    assert (done.state, done.failure["failed_at_state"]) == ("BLOCKED", "PRECHECKED")
    assert done.failure["cause"] == cause
    tape = done.tape()
    (decision,) = tape["decisions"]
    assert (decision["decision_type"], decision["outcome"]) == ("policy_check", "failed")
    assert done.failure["message"] in decision["rationale"]
    assert tape["metadata"]["decisions"] == 1


def test_a_registry_that_cannot_be_read_is_a_failed_precheck(plans):
    """§2: the report knows the intent alone; a broken registry fails the precheck as well."""
    name = plans.write(plans.intent(mode="full_auto"))
    plans.content("rule", {"id": "rule_story", "when": 7})
    done = plans.plan(name)
    (decision,) = done.tape()["decisions"]
    assert (done.state, decision["outcome"]) == ("BLOCKED", "failed")


def test_a_passed_precheck_is_called_passed(plans):
    """§2: and so is one after which the run goes on; every decision of the run is counted."""
    tape = plans.plan(plans.write(plans.intent(mode="full_auto"))).tape()
    assert [d["outcome"] for d in tape["decisions"] if d["decision_type"] == "policy_check"] == ["passed"]
    assert tape["metadata"]["decisions"] == len(tape["decisions"])


def test_log_and_tape_never_contradict_each_other_about_a_guard(plans):
    """§Audit Requirements: a name that both have has one answer in both."""
    done = plans.plan(
        plans.write({**plans.intent(mode="full_auto"), "title": "Not the sealed one"}, seal=False)
    )
    lines = [json.loads(e) for e in plans.project.call("audit", "tape", done.run, "--json").out.splitlines()]
    steps = [e for e in lines if e["kind"] in ("created", "transition")]
    told = [e["record"] for e in audit(plans, done.run) if e["event_type"] == "state_transition"]
    for step, record in zip(steps, told, strict=True):
        for name, held in step.get("guards", {}).items():
            assert record["guards"].get(name, held) == held
    assert told[-1]["guards"]["checksum matches"] is False
    assert told[-1]["guards"]["I1: no execution payload"] is True


# ── risk ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("stated", "told"),
    [("critical", "critical"), ("medium", "medium"), ("dire", "unknown"), (None, "unknown")],
)
def test_a_risk_that_nobody_has_assessed_is_never_called_low(plans, stated, told):
    """§12, §Red Line #3: a run that is blocked before its risk is worked out tells the risk that is stated, else that it
    is unknown."""
    value = plans.intent()
    value["risk"]["overall"] = stated
    for command in value["planned_commands"]:
        command["risk_level"] = "low"
    value["planned_commands"] = [c for c in value["planned_commands"] if c["command_id"] == "cmd_read_code"]
    if stated is None:
        del value["risk"]["overall"]
    done = plans.plan(plans.write(value, seal=False), "--policy", "full_auto")
    assert (done.state, done.failure["failed_at_state"]) == ("BLOCKED", "PRECHECKED")
    assert (done.failure["risk"], done.summary["overall_risk"]) == (told, told)


# ── canceled ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_answers_come_from_standard_input_as_intents_do(plans):
    """`plan answer RUN -` takes what it is sent, says where it stood, and says what to send where nothing comes."""
    plans.rule("rule_story_soft", "deny", "warn")
    waits = plans.plan(plans.write(plans.intent()), "--policy", plans.policy())
    project = plans.project
    template = project.call("plan", "answer", waits.run, "--template").out.encode()

    def sent(data):
        return project.launch(
            CommandCall(("plan", "answer", waits.run, "-"), project.repo, project.env, data)
        )

    empty = sent(b"")
    assert (empty.returncode, b"standard input is empty: send answers" in empty.stderr) == (2, True)
    wrong = sent(template.replace(b"leave_out", b"perhaps"))
    assert (wrong.returncode, b"standard input was not taken" in wrong.stderr) == (4, True)
    assert sent(template).returncode == 0


def test_a_canceled_plan_says_so_everywhere(plans):
    """§Audit Requirements: a run that a person stops while it waits is closed on both forms and in its summary, by whom
    and when; nothing says that it waits, or names a gate of an earlier round."""
    plans.rule("rule_story_soft", "deny", "warn")
    waits = plans.plan(plans.write(plans.intent()), "--policy", plans.policy())
    plans.answered(waits.run, "include")
    assert waits.tape()["failure_info"] is None  # nothing has failed while it waits
    assert plans.project.call("abort", waits.run, "--reason", "wrong goal").code == 0
    result = plans.project.call("plan", "explain", waits.run)
    assert (result.code, result.out.strip()) == (
        1,
        "canceled by ann in AWAITING_ANSWERS: wrong goal; there is no plan",
    )
    late = plans.project.call("plan", "answer", waits.run, "--template")
    assert late.code == 4
    assert f"run {waits.run} was canceled by ann" in late.err
    tape = waits.tape()
    assert (tape["final_state"], tape["failure_info"]) == ("canceled", None)
    assert tape["completed_at"] >= tape["states"][-1]["timestamp"]
    last = audit(plans, waits.run)[-1]
    assert (last["event_type"], last["operator"], last["critical"]) == ("run_failed", "person:ann", False)
    assert last["record"] == {"final_state": "canceled", "message": "wrong goal"}
    folder = plans.project.repo / ".steersman" / "runs" / waits.run
    summary = json.loads((folder / "run_summary.json").read_text())
    assert (summary["final_state"], summary["questions_asked"]) == ("canceled", 1)
    assert "ann" in summary["failure"]
    assert not (folder / "failure_pack.json").exists()


# ── folders ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_no_file_in_a_plan_is_a_change(plans):
    """§10: a link or a pipe in place of a file is neither followed nor waited for; what was added is to be removed."""
    assert plans.plan(plans.write(plans.intent(mode="full_auto")), "--out", "plan").state == "DONE"
    folder = plans.project.repo / "plan"
    (folder / "plan.md").rename(folder / "mine.md")
    (folder / "plan.md").symlink_to("mine.md")
    (folder / "policy.json").unlink()
    os.mkfifo(folder / "policy.json")
    data = plans.project.call("plan", "verify", "plan", "--json").json()
    told = {p["field"]: p for p in data["problems"]}
    assert (data["exit_code"], told["plan.md"]["message"][:15]) == (1, "It was changed:")
    assert told["mine.md"]["fix"] == "Remove it."
    assert "policy.json" in told


def test_refused_answers_move_no_deadline(plans):
    """§7: the time for answers runs from the moment the questions went out, however often something else is said."""
    waits = plans.plan(
        plans.write(plans.intent(scoped=False)), "--policy", plans.policy(timeout_seconds=3600)
    )
    (first,) = plans.project.call("gates", waits.run, "--json").json()
    began = time.monotonic()
    for _ in range(2):
        time.sleep(0.1)
        passed = time.monotonic() - began  # by so much at least it would be later if time began anew
        plans.project.call("answer", waits.run, "answer")
        (now,) = plans.project.call("gates", waits.run, "--json").json()
        assert now["id"] != first["id"]
        assert "problems" in now["shown"]
        assert abs(now["due"] - first["due"]) < passed * 1000
    assert plans.answered(waits.run, "whole_project").state == "DONE"
