"""Rules that hold (001 §2, §4, §7–§9): no answer and no milder rule buys a deny back, and who answered is on record."""

import json

import pytest
from tests.support.plan_project import PLANNED_FILE, PlanProject

ASKED = [
    "RECEIVED", "PRECHECKED", "CONTEXT_BUILT", "RULES_EVALUATED", "GRAPH_DRAFTED", "QUESTIONS_EMITTED", "AWAITING_ANSWERS",
]  # fmt: skip
IN_SOURCE = 'intent.files.exists(f, f.startsWith("src/chandler/"))'


@pytest.fixture
def plans(shop_project):
    return PlanProject(shop_project)


def edit(value):
    """The planned command that edits files."""
    return next(c for c in value["planned_commands"] if c["command_id"] == "cmd_edit_files")


def frozen(done, name):
    with open(f"{done.plan}/{name}", encoding="utf-8") as file:
        return json.load(file)


def log(done, kind):
    data = done.plans.project.call("audit", "tape", done.run, "--as", "auditlog", "--json").json()
    return [e for e in data["entries"] if e["event_type"] == kind]


def no_conflict(done):
    """The guard of every weighing of answers, as the tape has it."""
    guards = [g for s in done.tape()["states"] for g in s["guards_evaluated"]]
    return [g["passed"] for g in guards if g["guard_name"] == "answers do not conflict with rule decisions"]


def test_section_7_an_answer_that_breaks_a_rule_re_enters_rules_evaluated(plans):
    """§7: an answer that a hard rule denies goes back to RULES_EVALUATED and is ABORTED there; one that satisfies the
    rule is no conflict."""
    plans.rule("rule_story_files", "deny", "block", IN_SOURCE)
    name = plans.write(plans.intent(scoped=False))
    broken = plans.answered(plans.plan(name).run, "text", text=PLANNED_FILE)
    assert (broken.code, broken.states()) == (1, [*ASKED, "AWAITING_ANSWERS", "RULES_EVALUATED", "ABORTED"])
    assert no_conflict(broken) == [False]
    assert (broken.failure["failure_type"], broken.failure["cause"]) == ("red_line_violation", "rule_denied")
    assert "rule_story_files" in json.dumps(broken.failure)
    assert len(log(broken, "conflict_detected")) == 1
    kept = plans.answered(plans.plan(name).run, "text", text="docs/")
    assert (kept.state, no_conflict(kept)) == ("DONE", [True])
    assert kept.states().count("RULES_EVALUATED") == 1


@pytest.mark.parametrize("words", ["src/", "src", "src/chandler", "."])
def test_section_7_a_folder_answer_touches_what_a_rule_names_in_it(plans, words):
    """§7: an answer that is broader than a deny does not pass it, however it is written."""
    plans.rule("rule_story_files", "deny", "block", IN_SOURCE)
    broken = plans.answered(plans.plan(plans.write(plans.intent(scoped=False))).run, "text", text=words)
    assert (broken.state, broken.failure["cause"]) == ("ABORTED", "rule_denied")


def test_section_8_the_whole_project_is_judged_and_weighed_as_such(plans):
    """§7, §8: the answer whole_project breaks a deny about any file, and where none does it makes the risk graver."""
    name = plans.write(plans.intent(scoped=False))
    risk = {}
    for word, text in (("text", "docs/"), ("whole_project", "")):
        done = plans.answered(plans.plan(name).run, word, text=text)
        assert done.state == "DONE", done.failure
        risk[word] = frozen(done, "risk_assessment.json")
    assert (risk["text"]["overall_risk"], risk["whole_project"]["overall_risk"]) == ("medium", "high")
    assert "anything in the project may be changed" in {f["what"] for f in risk["whole_project"]["factors"]}
    plans.rule("rule_story_files", "deny", "block", IN_SOURCE)
    broken = plans.answered(plans.plan(name).run, "whole_project")
    assert (broken.state, broken.failure["cause"]) == ("ABORTED", "rule_denied")


@pytest.mark.parametrize("late", [True, False], ids=["nobody answers", "a person takes them"])
def test_section_7_a_hard_deny_that_a_default_brings_about_is_aborted(plans, late):
    """§4, §7: a default that a hard rule denies ends the run as a typed answer does, whoever let it take effect."""
    plans.rule("rule_story_tested", "deny", "block", '!("cmd_write_tests" in intent.commands)')
    value = plans.intent()
    tests = next(c for c in value["planned_commands"] if c["command_id"] == "cmd_write_tests")
    tests["evidence_refs"] = ["fact://language/cobol"]
    policy = plans.policy(timeout_seconds=1) if late else plans.policy()
    done = plans.plan(plans.write(value), "--policy", policy)
    done = done if late else plans.defaults(done.run)
    assert (done.code, done.states()) == (1, [*ASKED, "AWAITING_ANSWERS", "RULES_EVALUATED", "ABORTED"])
    assert (done.failure["failure_type"], done.failure["cause"]) == ("red_line_violation", "rule_denied")


def test_section_7_a_soft_conflict_is_asked_again_three_times(plans):
    """§7, §Loop Detection: an answer that a soft rule denies does not hold and its question comes back; another answer
    leads on, and the fourth conflict blocks with its details."""
    plans.rule("rule_story_files", "deny", "warn", IN_SOURCE)
    name = plans.write(plans.intent(scoped=False))
    now = plans.plan(name, "--policy", plans.policy())
    for round_ in (2, 3, 4):
        now = plans.answered(now.run, "text", text=PLANNED_FILE)
        assert (now.state, now.states().count("RULES_EVALUATED")) == ("AWAITING_ANSWERS", round_)
    end = plans.answered(now.run, "text", text=PLANNED_FILE)
    assert (end.code, end.state, end.failure["cause"]) == (1, "BLOCKED", "answers_conflict")
    assert "rule_story_files" in json.dumps(end.failure)
    again = plans.answered(plans.plan(name, "--policy", plans.policy()).run, "text", text=PLANNED_FILE)
    done = plans.answered(again.run, "text", text="docs/")
    assert (done.state, no_conflict(done)) == ("DONE", [False, True])
    assert "cmd_edit_files" in {a["command_id"] for a in frozen(done, "review_pack.json")["actions"]}
    packs = [e["record"]["packs"] for e in log(done, "question_emitted")]
    assert (len(packs), packs[0] != packs[1], len(log(done, "conflict_resolved"))) == (2, True, 1)


def test_section_7_an_answer_that_leaves_out_what_a_rule_needs_is_a_conflict(plans):
    """§7: leaving one command out breaks a rule about another; only that answer is asked for again, and a command that
    was denied stays out, also where the answers that hold would please its rule."""
    plans.rule("rule_story_tested", "deny", "warn", '!("cmd_write_tests" in intent.commands)')
    plans.rule("rule_story_open", "deny", "warn", "size(intent.files) == 0", scope={"commands": ["cmd_lint"]})
    value = plans.intent(scoped=False)
    tests = next(c for c in value["planned_commands"] if c["command_id"] == "cmd_write_tests")
    tests["evidence_refs"] = ["fact://language/cobol"]
    waits = plans.plan(plans.write(value), "--policy", plans.policy())
    again = plans.answers(waits.run, stop=("text", PLANNED_FILE))
    assert (again.state, no_conflict(again)) == ("AWAITING_ANSWERS", [False])
    done = plans.answered(again.run, "accept_without")
    assert (done.state, no_conflict(done)) == ("DONE", [False, True])
    assert [c["rule_id"] for c in frozen(done, "settled_questions.json")["conflicts"]] == [
        "rule_story_tested"
    ]
    review = frozen(done, "review_pack.json")
    assert [e.startswith("cmd_lint: denied: rule_story_open") for e in review["excluded"]] == [True]


def test_section_4_no_milder_decision_outweighs_a_deny(plans):
    """§4: beside a deny of any severity nothing milder counts; on a high command it is ABORTED, on another the command
    is left out with the reason, and no answer brings it back."""
    looks = {"decision": "require_review", "reason": "a story says so", "review": ["security"]}
    plans.rule("rule_story_no", "deny", "info", "size(intent.files) == 0")
    plans.rule("rule_story_yes", "allow", "error")
    plans.rule("rule_story_look", "require_review", "block", then=looks)
    plans.rule("rule_story_warn", "warn", "block")
    value = plans.intent(scoped=False)
    waits = plans.plan(plans.write(value), "--policy", plans.policy())
    assert waits.state == "AWAITING_ANSWERS"
    refused = plans.answered(waits.run, "include")
    assert (refused.code, "include is not an answer" in refused.said.err) == (4, True)
    pack = plans.project.call("plan", "answer", waits.run, "--template", "--json").json()
    asked = {a["question_id"]: pack["questions"][a["question_id"]] for a in pack["answers"]}
    words = {id_: "by_hand" if "by_hand: " in text else "leave_out" for id_, text in asked.items()}
    words |= {id_: "text" for id_, text in asked.items() if "whole_project: " in text}
    done = plans.say(waits.run, pack, words, PLANNED_FILE)  # with this scope the rule would be silent
    assert (done.state, no_conflict(done)) == ("DONE", [True])
    review = frozen(done, "review_pack.json")
    assert "cmd_edit_files" not in {a["command_id"] for a in review["actions"]}
    (left,) = [e for e in review["excluded"] if e.startswith("cmd_edit_files: ")]
    assert "rule_story_no (info, deny): a story says so" in left
    edit(value)["risk_level"] = "high"
    hard = plans.plan(plans.write(value), "--policy", plans.policy())
    assert (hard.state, hard.states()[-2], hard.failure["cause"]) == (
        "ABORTED", "RULES_EVALUATED", "rule_denied",
    )  # fmt: skip


def test_section_2_rule_references_are_checked_before_anything_is_planned(plans):
    """§2, §Red Line #5: a rule that evidence cites exists, is active and has that version; `intent check` tells each
    with field and fix, and the plan is BLOCKED in PRECHECKED."""
    plans.rule("rule_story_draft", "warn", "warn", status="draft")
    value = plans.intent(mode="full_auto")
    n = value["planned_commands"].index(edit(value))
    value["evidence_refs"] += ["rule://rule_reading_is_free@1.0.0", "rule://rule_gone"]
    at = len(value["evidence_refs"]) - 1
    edit(value)["evidence_refs"] += [
        "rule://rule_story_draft", "rule://rule_reading_is_free@9.0.0", "rule://No",
    ]  # fmt: skip
    first = len(edit(value)["evidence_refs"]) - 3
    name = plans.write(value)
    checked = plans.project.call("intent", "check", name, "--json").json()
    told = {p["field"]: (p["message"], p["fix"]) for p in checked["problems"]}
    assert (checked["exit_code"], len(told)) == (4, 4)
    assert "rule://rule_gone is nothing of the registry" in told[f"evidence_refs[{at}]"][0]
    draft, version, nothing = (
        told[f"planned_commands[{n}].evidence_refs[{m}]"] for m in range(first, first + 3)
    )
    assert "neither active nor frozen" in draft[0]
    assert ("names 9.0.0" in version[0], version[1]) == (True, "cite rule://rule_reading_is_free@1.0.0")
    assert "rule://No is nothing of the registry" in nothing[0]
    done = plans.plan(name)
    assert (done.state, done.failure["failed_at_state"]) == ("BLOCKED", "PRECHECKED")
    assert (done.failure["failure_type"], told.keys() <= done.changes()) == ("missing_registry", True)


def test_section_2_the_advice_about_a_reference_works(plans):
    """§2: a rule that was cited with another digest is to be cited anew, which sealing does not do; a pin of what the
    registry lacks is taken out by sealing, which says so."""
    gone = "registry://rule/rule_nope@1.0.0#0123456789ab"
    value = plans.intent()
    value["evidence_refs"] += ["rule://rule_reading_is_free@1.0.0#deadbeef0000", gone]
    name = plans.write(value, seal=False)
    sealed = plans.project.call("intent", "seal", name)
    assert (sealed.code, f"{gone} was taken out" in sealed.err) == (0, True), sealed
    (told,) = plans.project.call("intent", "check", name, "--json").json()["problems"]
    assert told["fix"] == "cite rule://rule_reading_is_free@1.0.0"
    value["evidence_refs"][-2:] = [told["fix"].removeprefix("cite ")]
    assert plans.project.call("intent", "check", plans.write(value)).code == 0


def test_section_8_risk_is_recalculated_after_answers(plans):
    """§8: leaving a grave command out makes the plan's risk smaller, on the tape and in the plan; accepting it does not."""
    value = plans.intent()
    value["risk"]["overall"] = "low"
    more = next(c for c in value["planned_commands"] if c["command_id"] == "cmd_open_draft_pull_request")
    more["risk_level"] = "high"
    name, policy = plans.write(value), plans.policy()
    for word, risk in (("leave_out", "medium"), ("accept_risk", "high")):
        waits = plans.plan(name, "--policy", policy)
        (before,) = [d for d in waits.tape()["decisions"] if d["decision_type"] == "risk_assessment"]
        done = plans.answered(waits.run, word)
        (after,) = [d for d in done.tape()["decisions"] if d["decision_type"] == "risk_assessment"]
        assert (before["outcome"], after["outcome"]) == ("high", risk)
        assert (done.summary["overall_risk"], frozen(done, "risk_assessment.json")["overall_risk"]) == (
            risk,
            risk,
        )


def test_section_9_a_risk_is_shown_by_more_than_the_intent(plans):
    """§9: no factor cites the intent itself, and a risk for which nothing else speaks is BLOCKED."""
    value = plans.intent()
    done = plans.plan(plans.write(value))
    factors = frozen(done, "risk_assessment.json")["factors"]
    assert any(f["what"].startswith("the intent says: ") for f in factors)
    for factor in factors:
        assert factor["evidence_refs"]
        assert not any(ref.startswith("intent://") for ref in factor["evidence_refs"])
    wish = f"intent://{value['id']}/objective"
    for part in (value, *value["planned_commands"]):
        part["evidence_refs"] = [wish]
    value["risk"] |= {"overall": "critical", "drivers": ["a feeling"]}
    blocked = plans.plan(plans.write(value))
    assert (blocked.state, blocked.failure["cause"]) == ("BLOCKED", "risk_unjustified")
    assert "a feeling" in json.dumps(blocked.failure["problems"])


def test_section_7_answers_are_recorded_as_the_persons(plans):
    """§7, §Audit Requirements: who answers, who leaves a question to its default and who takes all defaults is named on
    the tape, in both forms and in the plan; nobody is said to be late who was not."""
    plans.rule("rule_story_soft", "deny", "warn", scope={"commands": ["cmd_open_draft_pull_request"]})
    value = plans.intent(scoped=False)
    name, policy = plans.write(value), plans.policy()
    partly = plans.plan(name, "--policy", policy)
    pack = plans.project.call("plan", "answer", partly.run, "--template", "--json").json()
    (scope,) = [a["question_id"] for a in pack["answers"] if not a["answer"]]
    done = plans.say(partly.run, pack, {scope: "text"}, PLANNED_FILE)
    answers = frozen(done, "settled_questions.json")["answers"]
    assert {(a["provided_by"], a["answered_by"]) for a in answers} == {("human", "ann"), ("fallback", "ann")}
    (given,) = [s for s in done.tape()["states"] if s["trigger"] == "answers_given"]
    assert given["actor"] == "person:ann"
    (record,) = log(done, "answer_received")
    assert (record["operator"], record["record"]["person"], record["record"]["timed_out"]) == (
        "person:ann", "ann", False,
    )  # fmt: skip
    assert "no answer came in time" not in plans.project.call("audit", "tape", done.run).out
    value["scope"]["targets"]["files"] = [PLANNED_FILE]
    taken = plans.defaults(plans.plan(plans.write(value), "--policy", policy).run)
    (answer,) = frozen(taken, "settled_questions.json")["answers"]
    assert (answer["answer"], answer["provided_by"], answer["answered_by"]) == ("leave_out", "human", "ann")
    assert "human ann" in plans.project.call("plan", "explain", taken.run).out
