"""Every rule of sections 3 to 7 of specification 002, by its identifier, with the test that holds the machine to it."""

import json
import shlex
from collections.abc import Callable

import msgspec
from msgspec.structs import replace
from tests.specifications import task as spec
from tests.specifications.documents import name_wording
from tests.support.simulated_task import (
    SimulatedTask,
    failed_agent_facts,
    inspection_facts,
    task_at,
    task_payload,
)
from tests.support.summaries import summary_of
from tests.support.task_table_errors import TASK_STATES, row_target

from steersman.contracts.commands import CommandResult
from steersman.contracts.facts import CheckFacts
from steersman.kernel.definition import Origin
from steersman.kernel.machine import row_source_states
from steersman.kernel.step import (
    EventOccurrence,
    StepRefused,
    StepTaken,
    legal_events,
    name_facts,
    override_guard,
    take_step,
)
from steersman.kernel.tape import Entry
from steersman.machines.task import MACHINE
from steersman.machines.task.documents.opinions import build_code_review, build_plan_review
from steersman.machines.task.documents.plan import infer_plan_files
from steersman.machines.task.documents.schemas import AcceptanceCriterion, PlanFlaw, PlannedFile, TaskPlan
from steersman.machines.task.documents.suites import build_task_test_report as report_of
from steersman.machines.task.files import build_task_state, describe_unreadable_state
from steersman.machines.task.package import PACKAGE
from steersman.machines.task.replies import CodeReviewerReply, PlanReviewerReply
from steersman.machines.task.table import E
from steersman.views.run_summary import GuardOverride

SHA, TREE = "a" * 64, "b" * 40
RULES: dict[tuple[str, str], str] = {}  # section and rule -> the test
Test = Callable[..., None]


def rule(section: str, identifier: str) -> Callable[[Test], Test]:
    """Says which rule of the transcription a test is about."""

    def keep(test: Test) -> Test:
        RULES[section, identifier] = test.__name__
        return test

    return keep


LOOKS = {p.name: d.job.name for p in MACHINE.states.values() for d in p.work if d.job.does == "task_inspect"}


def led(phase, known=(), **says):
    """Where a look at the disk leads: the event, the phase, its step; by default everything is well."""
    here = task_at(phase, step="inspect", **dict(known))
    happened = name_facts(MACHINE, here, LOOKS[phase], replace(inspection_facts(here.context, phase), **says))
    taken = take_step(MACHINE, here, happened)
    assert isinstance(taken, StepTaken)
    return happened.event.name, taken.to, taken.context.step


def damaged(phase, name):
    """The same where one file is not there, and where it is garbage."""
    here = task_at(phase).context.artifacts
    return [led(phase, seen={**here, name: found}, damaged=1) for found in ("", "garbage")]


# ── 3.1 to 3.3: the plan ────────────────────────────────────────────────────────────────────────────────────────────


@rule("3.1", "plan_exists")
def test_without_a_plan_nothing_is_reviewed():
    """§3.1: missing or garbage, the phase is not left; recorded nowhere, it is not overridden either."""
    assert led("planning")[:2] == ("planning_succeeded", "plan_review")
    assert set(damaged("planning", "planning/planning.ai.json")) == {
        ("documents_damaged", "planning", "damaged")
    }
    assert led("planning", seen={})[1:] == ("planning", "damaged")
    without = {n: d for n, d in task_at("planning").context.artifacts.items() if "planning.ai" not in n}
    assert isinstance(
        override_guard(MACHINE, task_at("planning", step="ready", artifacts=without), "plan_review", "why"),
        StepRefused,
    )


@rule("3.1", "no_blocking_question")
def test_a_blocking_question_keeps_the_plan():
    """§3.1: one is enough, and a person is asked."""
    assert led("planning", blocking=1) == ("questions_open", "planning", "questions")


@rule("3.1", "scope_exists_or_is_inferred")
def test_a_plan_has_a_scope():
    """§3.1: none that counts keeps the plan; missing or garbage it is damage; the default is what the plan itself names."""
    assert led("planning", files=0)[:2] == ("scope_missing", "planning")
    assert {to for _, to, _ in damaged("planning", "plan.files.json")} == {"planning"}
    plan = TaskPlan(
        task_id="r", round=1, title="t", brief="b", requirements=("r",),
        acceptance_criteria=(AcceptanceCriterion(id="AC1", description="c"),),
        file_plan=(PlannedFile(path="src/a.py", intent="update"),),
    )  # fmt: skip
    inferred = infer_plan_files(plan)
    assert inferred is not None
    assert (inferred.inferred, [f.path for f in inferred.files]) == (True, ["src/a.py"])
    assert infer_plan_files(msgspec.structs.replace(plan, file_plan=())) is None


@rule("3.2", "review_says_ok")
def test_a_plan_that_is_not_ok_is_not_built():
    """§3.2: ok has to be true."""
    assert led("plan_review")[:2] == ("review_ok", "codegen")
    assert led("plan_review", ok=False)[:2] == ("review_needs_changes", "planning")


@rule("3.2", "review_does_not_block")
def test_a_blocked_plan_is_not_built():
    """§3.2: blocked speaks against it, whatever ok says."""
    assert led("plan_review", ok=True, blocked=True)[:2] == ("review_blocked", "planning")


def opinion(decision, *issues):
    return PlanReviewerReply(
        nonce="n", decision=decision, summary="s", blocking_issues=issues, suggestions=()
    )


def judged(*opinions, flaws=()):
    """Where a plan goes that these have judged."""
    made = build_plan_review("r", 1, SHA, dict(zip("abc", opinions, strict=False)), {}, flaws)
    return led("plan_review", ok=made.ok, blocked=made.blocked, decision=made.decision)[1]


@rule("3.3", "one_reviewer_blocks")
def test_one_reviewer_sends_a_plan_back():
    """§3.3: the first, the last or the only one; nobody is outvoted."""
    fine, changes, blocks = opinion("accept"), opinion("needs_changes", "x"), opinion("blocked", "x")
    assert judged(fine, fine, fine) == "codegen"
    for one in (changes, blocks, opinion("accept", "but this")):
        assert {judged(one), judged(one, fine, fine), judged(fine, fine, one)} == {"planning"}


@rule("3.3", "plan_has_structural_flaw")
def test_a_flaw_sends_a_plan_back():
    """§3.3: an error that steersman itself finds, however content the reviewers are; a warning does not."""
    for severity, to in (("error", "planning"), ("warning", "codegen")):
        flaw = PlanFlaw(id="DEPENDS_CYCLE", severity=severity, message="a circle")
        assert judged(opinion("accept"), flaws=(flaw,)) == to


# ── 3.4 to 3.7: the change ──────────────────────────────────────────────────────────────────────────────────────────


@rule("3.4", "patch_exists")
def test_without_a_patch_nothing_is_reviewed():
    """§3.4: empty, missing or garbage."""
    assert led("codegen")[:2] == ("codegen_completed", "review")
    assert led("codegen", patch=0)[1] == "codegen"
    assert {to for _, to, _ in damaged("codegen", "code/diff.patch")} == {"codegen"}


@rule("3.4", "generated_files_exist")
def test_without_its_files_nothing_is_reviewed():
    """§3.4: no copy at all, or copies that are not what was recorded."""
    assert led("codegen", copies=0)[1] == "codegen"
    for name in ("code/files", "code/files.json"):
        assert {to for _, to, _ in damaged("codegen", name)} == {"codegen"}


@rule("3.5", "files_outside_the_plan")
def test_a_change_outside_the_plan_goes_back_to_it():
    """§3.5: by the git diff, or because the coder says so."""
    assert led("codegen", outside=1)[:2] == ("scope_mismatch", "planning")
    assert led("codegen", {"coder_status": "scope_mismatch"})[:2] == ("scope_mismatch", "planning")


@rule("3.5", "plan_lacks_essentials")
@rule("6", "poor_plan_to_plan_review")
def test_a_plan_that_cannot_be_built_is_reviewed_again():
    """§3.5, §6: the coder says what is missing."""
    assert led("codegen", {"coder_status": "plan_unclear"})[:2] == ("plan_unclear", "plan_review")


def of_code(decision, *issues, plan=()):
    return CodeReviewerReply(
        nonce="n", decision=decision, summary="s", blocking_issues=issues, plan_issues=plan, suggestions=()
    )


def reviewed(*opinions):
    """Where a change goes that these have judged."""
    made = build_code_review("r", 1, TREE, SHA, dict(zip("abc", opinions, strict=False)), {})
    return led("review", ok=made.ok, decision=made.decision)[1]


@rule("3.6", "no_blocking_issue")
def test_a_blocking_issue_keeps_a_change_from_its_tests():
    """§3.6: one of several is enough, and so is no opinion at all or one about another tree."""
    assert reviewed(of_code("approve"), of_code("approve")) == "test"
    assert reviewed(of_code("approve"), of_code("needs_changes", "x")) == "codegen"
    assert reviewed(of_code("approve", "but this")) == "codegen"
    assert reviewed() == "codegen"
    assert led("review", tree="t0")[1] == "codegen"


@rule("3.6", "or_a_person_overrides")
def test_a_blocking_issue_can_be_overridden():
    """§3.6: by a person, with a reason, where the review has said what it says."""
    waits = task_at("review", step="ready", says={"ok": False, "decision": "needs_changes"})
    step = override_guard(MACHINE, waits, "test", "I accept the risk")
    assert isinstance(step, StepTaken)
    assert (step.to, step.waived) == ("test", "I accept the risk")
    assert isinstance(override_guard(MACHINE, waits, "test", " "), StepRefused)


@rule("3.7", "code_issues_to_codegen")
def test_issues_of_the_code_go_to_the_coder():
    """§3.7: whoever has them."""
    assert reviewed(of_code("needs_changes", "x")) == "codegen"


@rule("3.7", "plan_issues_to_planning")
@rule("6", "misaligned_plan_to_planning")
def test_issues_of_the_plan_go_to_the_planner():
    """§3.7, §6: before issues of the code, when one reviewer says that the plan is wrong."""
    assert reviewed(of_code("plan_flawed", plan=("p",))) == "planning"
    assert reviewed(of_code("needs_changes", "x"), of_code("plan_flawed", plan=("p",))) == "planning"


# ── 3.8 to 3.12: tests, decision, revert ────────────────────────────────────────────────────────────────────────────


@rule("3.8", "complete_tests_go_on")
def test_what_passed_is_decided_about():
    """§3.8: complete is, when every suite ran on this tree and passed (§3.9 has the others)."""
    assert led("test")[:2] == ("tests_complete", "accept")
    assert led("test", tree="t0")[1] == "codegen"


def suites(*kinds):
    """Where a change goes whose suites failed, by kind."""
    programs = {"test": "pytest", "lint": "ruff", "static": "mypy"}
    ran = [
        CommandResult(
            name=kind,
            argv=(program,),
            source="project",
            verdict="failed" if kind in kinds else "passed",
            exit_code=int(kind in kinds),
            tests=3 if kind == "test" else None,
        )
        for kind, program in programs.items()
    ]
    facts = CheckFacts(tree=TREE, passed=3 - len(kinds), failed=len(kinds), tests=3)
    made = report_of("r", 1, TREE, ran, facts, ("lint", "static"), ())
    assert [s.kind for s in made.suites] == list(programs)
    return led("test", overall_pass=made.overall_pass)[:2]


@rule("3.9", "suite_fails")
@rule("6", "failed_tests_to_codegen")
def test_a_suite_that_fails_goes_to_the_coder():
    """§3.9, §6: one is enough; a report that is missing or garbage goes nowhere."""
    assert suites() == ("tests_complete", "accept")
    assert suites("test") == ("test_failures", "codegen")
    assert {to for _, to, _ in damaged("test", "test/report.json")} == {"test"}


@rule("3.9", "linter_fails")
def test_a_linter_that_fails_goes_to_the_coder():
    """§3.9: each of them counts as much as a test."""
    assert suites("lint") == suites("static") == ("test_failures", "codegen")


@rule("3.10", "decision_is_accepted")
def test_only_an_accepted_change_is_done():
    """§3.10: of the five exits one alone leads to done, by way of the delivery."""
    exits = {}
    for decision in (
        "accepted",
        "changes_requested",
        "review_requested",
        "replan_requested",
        "revert_requested",
    ):
        _, to, at_step = led("accept", {"decision": decision}, decision=decision)
        exits[decision] = (to, at_step if to == "accept" else "")
    assert exits == {
        "accepted": ("accept", "deliver"), "changes_requested": ("codegen", ""),
        "review_requested": ("review", ""), "replan_requested": ("planning", ""),
        "revert_requested": ("revert", ""),
    }  # fmt: skip
    assert SimulatedTask().advance_to("done").snapshot.context.outcome == "accepted"


@rule("3.10", "decision_is_recorded")
def test_a_decision_that_is_not_on_disk_is_none():
    """§3.10: what was answered and what is on disk have to be the same; missing or garbage nothing is delivered."""
    for said, found in (
        ("accepted", "revert_requested"),
        ("changes_requested", "accepted"),
        ("accepted", ""),
    ):
        assert led("accept", {"decision": said}, decision=found)[1:] == ("accept", "damaged")
    for seen in ("", "garbage"):
        known = task_at("accept").context.artifacts
        told = led(
            "accept", {"decision": "accepted"}, decision="accepted",
            seen={**known, "accept/decision.json": seen}, damaged=1,
        )  # fmt: skip
        assert told[1:] == ("accept", "damaged")


@rule("3.11", "reversal_is_requested")
def test_a_reversal_is_asked_for():
    """§3.11: it is an answer to the decision, recorded like any other."""
    task = SimulatedTask().advance_to("accept", "decide")
    task.advance("decide", choice="revert").advance("record")
    assert task.advance().position[0] == "revert"


@rule("3.11", "regression_is_found")
def test_a_regression_that_is_found_later_reopens_the_decision():
    """§3.11: who finds one after the delivery reopens the decision, and takes the change back."""
    task = SimulatedTask().advance_to("done")
    task.tell("redo_accept")
    assert task.position == ("accept", "decide")
    task.advance("decide", choice="revert")
    assert task.advance_to("done").context.outcome == "reverted"


@rule("3.12", "revert_ends")
def test_what_was_taken_back_is_over():
    """§3.12: revert leads to done, and it has its outcome there."""
    assert led("revert", {"delivered": "yes"})[:2] == ("revert_recorded", "done")
    assert "done" in MACHINE.settled


# ── 4: state.json ───────────────────────────────────────────────────────────────────────────────────────────────────


def state_of(phase, **known):
    """`state.json` of a task that is there."""
    here = task_at(phase, **known)
    shown = summary_of(PACKAGE, here, "Fix add", (), text=lambda _: "")
    return build_task_state(here, shown, legal_events(MACHINE, here.state, Origin.PERSON, here.context))


@rule("4", "file_has_the_phase")
def test_state_json_has_the_phase():
    """§4: each of the eight."""
    assert [state_of(phase).phase for phase in spec.STATES] == list(spec.STATES)


@rule("4", "file_has_the_actors")
def test_state_json_has_the_actors():
    """§4: the example of the page, in our words for how far a phase is."""
    found = msgspec.to_builtins(state_of("planning", step="comment", round=3).actors)
    assert found["planning"] == {"round": 3, "status": "workshop"}
    assert found["plan_review"] == {"status": "pending"}
    assert found["review"] == found["test"] == {"status": None}
    assert state_of("codegen", step="ready").actors["codegen"].status == "ready"


@rule("4", "file_is_read")
def test_state_json_is_read_and_not_believed():
    """§4: any program can read it; the tape has the last word, and a corrupt file is reported (DESIGN.md)."""
    now = state_of("codegen")
    assert "made from the tape" in now.note
    assert describe_unreadable_state(msgspec.json.encode(now)) == ""
    assert "could not be read" in describe_unreadable_state(b"{")


@rule("4", "artifacts_are_looked_at")
@rule("5", "look_before_suggesting")
def test_every_suggestion_follows_a_look_at_the_disk():
    """§4, §5.2: no gate that suggests to go on is opened but by a look, and after the answer there is another one."""
    suggesting = [r for r in MACHINE.rows if r.sets.get("step") == "ready"]
    looks = {e.name for n in MACHINE.namings.values() if n.subject.does == "task_inspect" for _, e in n.pairs}
    assert suggesting
    assert {r.on.name for r in suggesting} <= looks
    confirmed = [r for r in MACHINE.rows if r.on is E.next_requested]
    assert {r.sets["step"] for r in confirmed} == {"confirmed"}
    for phase in spec.STATES[:5]:
        planned = [
            d.job.does
            for d in MACHINE.states[phase].work
            if d.when.test(task_at(phase, step="confirmed").context, None)
        ]
        assert planned == ["task_inspect"]


@rule("4", "next_states_are_determined")
def test_state_json_says_what_may_come():
    """§4: exactly what a person may do there."""
    for phase in spec.STATES:
        assert set(state_of(phase).next) == {
            e.name
            for e in MACHINE.events.values()
            if e.origin is Origin.PERSON
            and isinstance(
                take_step(MACHINE, task_at(phase), EventOccurrence(e, task_payload(e.name), Origin.PERSON)),
                StepTaken,
            )
        }


@rule("4", "file_is_updated")
def test_state_json_follows_every_step():
    """§4: along a whole task each step has its own state.json, and all of it is from the tape."""
    task, seen = SimulatedTask(pace="step"), []
    while task.state != "done":
        here = task.snapshot
        made = build_task_state(here, summary_of(PACKAGE, here, "t", (), text=lambda _: ""), ())
        assert (made.phase, made.step, made.entries) == (*task.position, here.seq)
        seen.append(made.digest)
        task.advance()
    assert len(set(seen)) == len(seen) > 30


# ── 5: invariants ───────────────────────────────────────────────────────────────────────────────────────────────────


@rule("5", "no_phase_is_skipped")
def test_no_row_skips_a_phase():
    """§5.1: no row leads further than to the next phase but the two that leave accept (tests of skipping: everything else)."""
    order = spec.ORDER
    far = {
        (s, row_target(r, s))
        for r in MACHINE.rows
        for s in row_source_states(r, TASK_STATES)
        if s is not None and order[row_target(r, s)] > order[s] + 1
    }
    assert far == {("accept", "done")}


@rule("5", "transitions_are_idempotent")
def test_a_phase_again_is_safe():
    """§5.3: done twice from the same inputs it lays down the same and leads to the same place."""
    for phase in spec.STATES[:5]:
        task = SimulatedTask(pace="step").advance_to(phase, "ready")
        before = (dict(task.context.artifacts), task.context.tree)
        task.tell(f"redo_{phase}")
        task.advance_to(phase, "ready")
        turned = (dict(task.context.artifacts), before[1] if phase == "codegen" else task.context.tree)
        assert turned == before


@rule("5", "terminal_states")
@rule("5", "done_goes_no_further")
def test_done_does_not_advance():
    """§5.4: neither an event of its work, nor words, nor an override."""
    for name, event in MACHINE.events.items():
        if not name.startswith("redo_"):
            assert isinstance(
                take_step(MACHINE, task_at("done"), EventOccurrence(event, task_payload(name), event.origin)),
                StepRefused,
            )
    assert all(
        isinstance(override_guard(MACHINE, task_at("done"), to, "why"), StepRefused) for to in spec.STATES
    )


@rule("5", "redo_reopens")
def test_done_is_reopened_by_a_redo():
    """§5.4: and only from where it may go on: a plan, a change, the decision."""
    reopened = {
        name: step.to
        for name in MACHINE.events
        if isinstance(
            step := take_step(
                MACHINE,
                task_at("done", outcome="accepted", delivered="yes"),
                EventOccurrence(MACHINE.events[name], task_payload(name), MACHINE.events[name].origin),
            ),
            StepTaken,
        )
    }
    assert reopened == {"redo_planning": "planning", "redo_codegen": "codegen", "redo_accept": "accept"}


# ── 6 and 7: signals, overrides ─────────────────────────────────────────────────────────────────────────────────────


@rule("6", "signals_decide")
def test_signals_decide_and_prose_does_not():
    """§6: each word of a contract leads to one place, whatever the summary says; an agent that broke is no signal."""
    signals = {
        judged(opinion(word, *issues)) for word, issues in (("needs_changes", ("x",)), ("blocked", ("x",)))
    }
    assert signals == {"planning"}
    kind = msgspec.json.schema(PlanReviewerReply)["$defs"]["PlanReviewerReply"]["properties"]["decision"]
    assert set(kind["enum"]) == {"accept", "needs_changes", "blocked"}
    task = SimulatedTask().advance_to("plan_review", "work")
    task.finish("review_plan", failed_agent_facts())
    assert task.position == ("plan_review", "broken")


@rule("7", "reason_is_recorded")
@rule("7", "override_is_in_transcript")
def test_an_override_is_an_entry_with_its_reason():
    """§7: who, why, from where to where; the transcript is every entry of the tape, and so has it."""
    task = SimulatedTask(pace="step").advance_to("review", "ready")
    task.waive("test", "I accept the risk of skipping review")
    entry: Entry = task.entries[-1][0]
    assert (entry.kind, entry.actor, entry.source, entry.to) == ("override", "person:ann", "review", "test")
    assert entry.why == "I accept the risk of skipping review"
    line = json.loads(msgspec.json.encode(entry))
    assert (line["kind"], line["why"]) == ("override", entry.why)
    shown = summary_of(PACKAGE, task.snapshot, "t", [e for e, _ in task.entries], text=lambda _: "")
    assert shown.overrides == (GuardOverride(entry.seq, "ann", "review", "test", entry.why),)
    for blank in ("", " \t\n"):
        assert isinstance(
            override_guard(MACHINE, task_at("review", step="ready"), "test", blank), StepRefused
        )


@rule("7", "target_is_reachable")
def test_only_the_next_phase_is_overridden_into():
    """§7: a direct successor in the diagram that is neither the end nor an answer, and where there is something to go on with."""
    allowed = {
        (source, to)
        for source in spec.STATES
        for to in spec.STATES
        if isinstance(override_guard(MACHINE, task_at(source, step="ready"), to, "why"), StepTaken)
    }
    assert allowed == set(spec.FORWARD)
    assert allowed <= {(source, to) for source, _, to in spec.DIAGRAM}


@rule("7", "example")
def test_the_example_is_what_is_typed():
    """§7: the prompt reads the page's own example as a word, an option and a reason."""
    from steersman.faces.repl.vocabulary import split_repl_entry
    from steersman.machines.task.words import TASK_WORDS

    example = '/next --override "I accept the risk of skipping review"'
    assert name_wording(example, spec.WORDINGS) == "example"
    word, rest = split_repl_entry(example)
    assert TASK_WORDS[word].help
    assert shlex.split(rest) == ["--override", "I accept the risk of skipping review"]


# ── the list itself ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_rule_of_the_specification_has_a_test():
    """Every rule that is transcribed of sections 3 to 7 has its test, section by section, and no test has another."""
    print(f"{len(RULES)} rules of sections 3 to 7, {len(set(RULES.values()))} tests")
    assert set(RULES) == set(spec.RULES)
    assert all(name in globals() for name in RULES.values())
