"""What the jobs of a task are given: names of payloads and recorded digests, never a text, never something that is not there."""

import pytest
from tests.support.cases import for_each_case
from tests.support.simulated_task import ALL_DOCUMENTS, SimulatedTask, task_context

from steersman.kernel.definition import Job
from steersman.machines.shared.tree_fragments import tree_setup_input
from steersman.machines.task import MACHINE, work
from steersman.machines.task.context import inspection_digest

DOCUMENTS = ("record", "inspect", "restore", "adopt", "look_at_base")


def inputs(c):
    """Every input of every job, as its phase would give it: (phase, job, key) -> input."""
    found = {}
    for phase in MACHINE.states.values():
        for do in phase.work:
            given = do.each(c) if do.each is not None else [("", do.give(c))]
            found |= {(phase.name, do.job.name, key): told for key, told in given}
    return found


FULL = task_context(
    planners=["lead", "second", "third"], plan_reviewers=["one", "two"], code_reviewers=["two"],
    comments={"second": {"reply": "p-second"}}, plan_opinions={"one": {"reply": "p-one"}}, code_opinions={},
    draft={"reply": "p-draft"}, answers=[{"text": "p-answer", "plan": "d"}], notes=["p-note", ""],
    sessions={"lead": "s-1"}, told_ref="p-told", bounds_ref="p-bounds", baseline_ref="p-base",
    instructions_ref="p-instructions", round=2, turn=3,
)  # fmt: skip


def test_every_job_has_an_input_for_everything_it_needs():
    """Each job of each phase is given something, also when the task knows next to nothing."""
    bare = MACHINE.begin({"task_ref": "p-task"})[2]
    known, little = inputs(FULL), inputs(bare)
    assert {(phase, job) for phase, job, _ in known} >= {(phase, job) for phase, job, _ in little}
    for told in (*known.values(), *little.values()):
        assert told
    assert {job for _, job, _ in known} == set(MACHINE.jobs)


@pytest.mark.parametrize("c", [FULL, MACHINE.begin({"task_ref": "p-task"})[2]], ids=["full", "bare"])
def test_no_text_is_named_that_is_not_there(c):
    """What an agent is given to read, or a person is shown, has a name; nothing is named emptily."""
    for told in inputs(c).values():
        assert all(told.get("texts", {}).values())
        assert all(told.get("shown", {}).values())
        assert set(told.get("said", ())) <= set(told.get("texts", {}))


def test_who_is_asked_together_is_asked_once():
    """Those who have answered are not asked again; each of the others is, by role."""
    keys = {(job, key) for _, job, key in inputs(FULL) if key}
    assert keys == {("comment", "third"), ("review_plan", "two"), ("review_code", "two")}


@for_each_case(
    ("job", "contract", "mode"),
    [
        ("draft", "task_planner", "proposal"),
        ("comment", "plan_comment", "proposal"),
        ("review_plan", "plan_reviewer", "proposal"),
        ("code", "task_coder", "implementation"),
        ("review_code", "code_reviewer", "implementation"),
    ],
)
def test_agents_answer_with_a_contract(job, contract, mode):
    """Each role has a contract of its own; only the coder writes, and everybody works on the recorded commit."""
    told = next(given for (_, name, _), given in inputs(FULL).items() if name == job)
    assert (told["contract"], told["mode"], told["commit"], told["base"]) == (contract, mode, "c1", "c0")
    assert told.get("writes", False) == (job == "code")
    assert told["round"] == (3 if mode == "implementation" else 2)
    assert told["texts"]["note_1"] == "p-answer"
    assert told["texts"]["note_2"] == "p-note"
    assert told["said"] == ["task", "note_1", "note_2"]
    assert told.get("session") == ("s-1" if job == "draft" else None)


@for_each_case("job", [j for j in MACHINE.jobs.values() if j.name.startswith(DOCUMENTS)])
def test_whatever_touches_files_knows_every_recorded_one(job: Job):
    """Digests and payloads of everything that was laid down, whichever phase it is of."""
    for (_, name, _), told in inputs(FULL).items():
        if name == job.name:
            assert set(told["artifacts"]) == set(ALL_DOCUMENTS)
            assert set(told["documents"]) == set(ALL_DOCUMENTS) - {"code/files"}


def test_a_task_without_a_change_stands_on_its_base():
    """Before anything was coded the commit is the base's."""
    bare = task_context(commit="", tree="", artifacts={}, documents={})
    assert tree_setup_input(bare) == {"commit": "c0"}
    assert work.plan_draft_input(bare)["commit"] == "c0"
    assert work.code_record_input(bare)["commit"] == "c0"
    assert work.crew_run_input(bare)["task_ref"] == "p-task"
    assert (work.crew_run_input(bare)["base_commit"], work.crew_run_input(bare)["base_tree"]) == ("c0", "t0")


def test_what_is_delivered_says_on_whose_word():
    """Who decided, who accepted the evidence of this very tree, and which plan it was."""
    c = task_context(decided_by="ann", accepted_by="bob", accepted_tree="t1")
    told = work.task_delivery_input(c)
    assert (told["confirmed_by"], told["accepted_by"], told["contract"]) == (
        "ann", "bob", c.artifacts["planning/planning.ai.json"],
    )  # fmt: skip
    assert work.task_delivery_input(task_context(accepted_by="bob", accepted_tree="t0"))["accepted_by"] == ""


def test_a_gate_is_about_what_was_seen():
    """Another digest on disk, another tree or another word in a document is another question."""
    c = task_context(seen={"a": "1"}, says={"ok": True})
    others = [
        task_context(seen={"a": "2"}, says={"ok": True}),
        task_context(seen={"a": "1"}),
        task_context(seen={"a": "1"}, says={"ok": True}, tree="t2"),
    ]
    digests = {inspection_digest(c), *(inspection_digest(other) for other in others)}
    assert len(digests) == 4
    for ask in (
        work.next_phase_gate_input,
        work.retry_gate_input,
        work.plan_questions_gate_input,
        work.damage_gate_input,
    ):
        assert ask(c)["digest"] == inspection_digest(c)


def test_only_what_is_known_of_a_prompt_is_asked_for():
    """Every prompt that an agent's input names is a file of this machine."""
    from importlib.resources import files

    there = {p.name.removesuffix(".md") for p in (files("steersman.machines.task") / "prompts").iterdir()}
    asked = {told["prompt"] for told in inputs(FULL).values() if "prompt" in told}
    assert asked == there


def test_the_work_of_a_phase_starts_however_it_was_entered():
    """By its event, by a redo or by an override: the same jobs are planned."""
    went = SimulatedTask(pace="step").advance_to("review", "work")
    waived = SimulatedTask(pace="step").advance_to("codegen", "ready")
    waived.waive("review")
    again = SimulatedTask(pace="step").advance_to("review", "ready")
    again.tell("redo_review")
    assert went.open_jobs() == waived.open_jobs() == again.open_jobs() == ["review_code"]
