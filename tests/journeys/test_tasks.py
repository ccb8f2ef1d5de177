"""Tasks through plain commands and through the prompt: a whole one with its ways back, overrides, files, questions."""

import json
import shutil
import subprocess
import sys

import apsw
import pytest
from tests.support.command_launcher import CommandCall
from tests.support.sample_project import RIGHT_CODE, CommandResult, Project, roundtable_story
from tests.support.task_project import (
    CODE_CHANGES_WANTED,
    CODE_PLAN_FLAWED,
    DETOUR_PHASES,
    PLAN_ACCEPTED,
    TASK_PLAN,
    coder_step,
    configure_tasks,
    delivered_code,
    detour_crew,
    prompt_banners,
    read_document,
    task_crew,
    task_phases,
    write_crew,
)

pytestmark = pytest.mark.usefixtures("project_snapshots")


def typed(project: Project, *lines: str, words=("repl",)) -> CommandResult:
    """A sitting whose entries come from a pipe."""
    feed = "".join(f"{line}\n" for line in lines).encode()
    done = project.launch(CommandCall(words, project.repo, project.env, feed))
    return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())


def begun(project: Project, script=None, *options: str) -> str:
    configure_tasks(project, script or task_crew())
    assert project.call("tasks", "new", "Fix add", *options).code == 3
    return project.only_run()


def now(project: Project) -> tuple[str, str]:
    (task,) = project.call("tasks", "list", "--json").json()
    return task["phase"], task["step"]


def words_of(project: Project) -> list[str]:
    (task,) = project.call("tasks", "list", "--json").json()
    return [way["word"] for way in task["next"]]


def went_on(project: Project, run: str, times: int) -> None:
    """So many phases further, in one sitting."""
    done = typed(project, *["/next"] * times, words=("repl", run))
    assert (done.code, done.err) == (0, ""), done


# ── a whole task ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_whole_task_by_commands(project: Project):
    """From a task to a delivered commit, one phase at a time, back to codegen by its tests and to planning by its review."""
    run = begun(project, detour_crew(), "--step")
    for _ in DETOUR_PHASES[2:]:
        assert project.call("tasks", "next", run).code == 3
    assert now(project) == ("accept", "decide")
    done = project.call("tasks", "accept", run, "--reason", "looks right")
    assert done.code == 0, done
    assert task_phases(project, run) == DETOUR_PHASES
    assert delivered_code(project, run) == RIGHT_CODE
    assert read_document(project, run, "accept/decision.json")["reason"] == "looks right"
    assert read_document(project, run, "review/code-review.json")["round"] == 3
    assert project.call("audit", "verify", run).code == 0


def test_a_whole_task_at_the_prompt(project: Project):
    """The same with the specification's own words, typed; the prompt says each time where it is and where next leads."""
    configure_tasks(project, detour_crew())
    there = ("/review plan", "/codegen", "/review code", "/test")
    back = ("/next", "/review code", "/next", *there)
    result = typed(project, "/plan Fix add", *there, *back, "/accept good", "/accept good", "y", "/quit")
    run = project.only_run()
    assert result.code == 0, result
    shown_first, _, decided = result.out.partition(
        "nothing is accepted yet: /accept good accepts exactly this\n"
    )
    assert (shown_first.count("all of it: "), decided.count("all of it: ")) == (1, 1), result
    assert '"schema_version"' not in result.out
    assert task_phases(project, run) == DETOUR_PHASES, result
    assert delivered_code(project, run) == RIGHT_CODE
    shown = prompt_banners(result.out)
    assert shown[5].startswith("test:ready (waiting for you) · /next→codegen"), shown
    assert shown[7].startswith("review:ready (waiting for you) · /next→planning"), shown
    assert shown[-1].startswith("done (accepted)"), shown
    assert read_document(project, run, "accept/decision.json")["reason"] == "good"


def test_what_is_accepted_is_shown_before_the_yes(project: Project):
    """Diff, verdicts, evidence, overrides and digests come before the question; without a yes nothing is decided."""
    run = begun(project)
    assert typed(project, "/approve", "/quit").out.count("nothing was decided") == 1  # a command is no yes
    result = typed(project, "/accept", "n", "/quit")
    for words in (
        "+    return a + b",
        "reviewer (scripted): approve: ok",
        "unit: passed, 1 test: python3 -m unittest -q",
        "overrides:\n  none",
        read_document(project, run, "state.json")["artifacts"]["code/diff.patch"][:16],
        "nothing was decided",
    ):
        assert words in result.out, words
    assert now(project) == ("accept", "decide")
    digest = next(line for line in result.out.splitlines() if line.startswith("all of it: ")).split()[-1]
    assert project.call("tasks", "accept", run, "--digest", "0" * 64).code == 4
    assert project.call("tasks", "accept", run, "--digest", digest).code == 0


# ── the grammar ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_word_skips_a_phase(project: Project):
    """A phase's word that does not fit says where the task is and what fits; nothing happens to the run."""
    run = begun(project, None, "--step")
    before = len(project.entries(run))
    words = (
        "/codegen", "/review code", "/test", "/accept", "/revert", "/restore", "/adopt", "/retry",
        "/answer yes",
    )  # fmt: skip
    options = (
        "/next now", '/next --override "', '/next --override "x" --from test', "/next --to test",
        "/next --override x --to nowhere",
    )  # fmt: skip
    result = typed(
        project, *words, "/nonsense", "/review", *options, "/redo codegen", "/redo revert", "/quit"
    )
    assert result.code == 4
    assert result.err.count("the task is in planning (ready, waiting for you)") == len(words) + 1
    assert result.err.count("legal now: /next; /next --override; words; /redo planning") == len(words) + 1
    assert "codegen cannot be done again now" in result.err
    assert "a revert is not done again: /revert takes the change back, with a reason" in result.err
    assert "an override needs a reason" in result.err
    assert result.err.count('/next takes nothing, or --override "reason", and with that --to phase') == 3
    assert "--to which phase? One of planning" in result.err
    assert len(project.entries(run)) == before
    late = project.call("tasks", "accept", run)
    assert (late.code, f"steersman tasks next {run}" in late.err) == (4, True)
    legal = f'legal: tasks next {run} | tasks next {run} --override "why" | tasks say {run} "…" | tasks redo {run} planning'
    assert legal in project.call("tasks").out


def test_a_phase_done_again_says_what_it_goes_by(project: Project):
    """`/codegen` in codegen builds again from the same plan; what was reused is named with its digest; words are heard."""
    run = begun(project, None, "--step")
    result = typed(project, "/review plan", "/codegen", "/codegen keep it short", "/redo", "/quit")
    plan = read_document(project, run, "state.json")["artifacts"]["planning/planning.ai.json"]
    assert result.out.count(f"codegen again; reused: planning/planning.ai.json {plan[:12]}") == 2, result
    assert [e["event"] for e in project.entries(run) if e.get("event", "").startswith("redo")] == [
        "redo_codegen"
    ] * 2
    assert now(project) == ("codegen", "ready")


def test_many_tasks(project: Project):
    """`/new` begins another, `/switch` goes back, `/tasks` marks the current one; free text begins the first."""
    configure_tasks(project, task_crew())
    result = typed(project, "Fix add", "/new Fix add again", "/tasks", "/quit")
    first, second = (task["run"] for task in reversed(project.call("tasks", "list", "--json").json()))
    assert f"* {second}  planning:ready" in result.out
    assert f"  {first}  planning:ready" in result.out
    typed(project, f"/switch {first}", "/next", "/quit", words=("repl", second))
    told = {task["run"]: task["phase"] for task in project.call("tasks", "list", "--json").json()}
    assert told == {first: "plan_review", second: "planning"}


def test_free_text_goes_to_the_planner(project: Project):
    """In planning it plans again; a backslash makes one entry of two lines."""
    run = begun(project, None, "--step")
    typed(project, "mind negative \\", "numbers", "/quit")
    (heard,) = [e for e in project.entries(run) if e.get("event") == "words_given"]
    assert now(project) == ("planning", "ready")
    assert heard["data"]["text"].startswith("p-")


def test_another_machine_has_its_own_words(project: Project):
    """A roundtable at the prompt: its gate's choices, none of a task's phases."""
    story = roundtable_story(mode="proposal")
    project.prepare(story)
    project.call("run", "Fix add", "--json")
    run = project.only_run()
    result = typed(
        project, "/codegen", "free words", "/status", "/approve fine", "/quit", words=("repl", run)
    )
    assert "a roundtable has no /codegen" in result.err
    assert "takes no free text" in result.err
    assert project.call("runs", "--json").json()[0]["outcome"] == "approved", result
    assert prompt_banners(result.out)[-1].endswith("(approved) · /followup /revert"), result


# ── overrides ───────────────────────────────────────────────────────────────────────────────────────────────────────


def refused(project: Project, run: str, *more: str, reason: str = "I accept the risk") -> str:
    """Why an override is refused; nothing but the refusal is on tape."""
    before = project.entries(run)
    done = project.call("tasks", "next", run, "--override", reason, *more)
    assert done.code == 4, done
    after = project.entries(run)[len(before) :]
    assert {e["kind"] for e in after} <= {"refused", "claimed"}
    return next((e["why"] for e in after if e["kind"] == "refused"), done.err)


def test_overrides_that_are_refused(project: Project):
    """Without a reason, to a phase that does not follow, into done, in a task that is done, in one that was stopped."""
    run = begun(project, None, "--step")
    assert "needs a reason" in refused(project, run, reason="\u200b ")
    assert "codegen does not follow planning" in refused(project, run, "--to", "codegen")
    assert "an override into done is not possible" in refused(project, run, "--to", "done")
    went_on(project, run, 5)
    assert now(project) == ("accept", "decide")
    assert "an override into done is not possible" in refused(project, run)
    assert "revert does not follow accept by an edge that may be waived" in refused(
        project, run, "--to", "revert"
    )
    assert project.call("tasks", "accept", run).code == 0
    assert "an override into done is not possible" in refused(project, run)


def test_a_task_that_was_stopped_is_not_overridden(project: Project):
    """A canceled run has its end."""
    run = begun(project, None, "--step")
    assert project.call("abort", run).code == 0
    assert "the run is over: canceled" in refused(project, run)


def test_no_override_in_place_of_an_answer(project: Project):
    """While the plan asks, and while a document is damaged."""
    asks = task_crew(planner=[{"mode": "proposal", "round": "1", "json": json.dumps(_blocking())}, {"mode": "proposal", "reply": TASK_PLAN}])  # fmt: skip
    run = begun(project, asks, "--step")
    assert now(project) == ("planning", "questions")
    assert "next --override" not in words_of(project)
    assert refused(project, run) == "questions waits for an answer, and nothing is waived in place of one"
    wrong = project.call("tasks", "answer", run, '{"q-none": "yes"}')
    assert (wrong.code, "q-none" in wrong.err) == (2, True)
    first, second = (
        q["id"]
        for q in read_document(project, run, "planning/planning.ai.json")["questions"]
        if q["blocking"]
    )
    for given, missing in (
        ("{}", f"{first}: "),
        (json.dumps({first: "left"}), f"{second}: "),
        ("{", "is no JSON"),
    ):
        part = project.call("tasks", "answer", run, given)
        assert (part.code, missing in part.err) == (2, True), part
    assert project.call("tasks", "answer", run).code == 2  # nobody is there to be asked
    typed(project, "yes, both", "/quit")
    assert now(project) == ("planning", "ready")
    assert read_document(project, run, "planning/planning.ai.json")["round"] == 2
    (project.repo / ".steersman" / "runs" / run / "plan.files.json").unlink()
    assert project.call("tasks", "next", run).code == 3
    assert now(project) == ("planning", "damaged")
    assert "waits for an answer" in refused(project, run)


def test_no_override_past_what_nobody_has_looked_at(project: Project):
    """A change to the tests themselves: at the evidence gate, and before it, where the phase has only just been over."""
    plan = {
        **TASK_PLAN,
        "files": [*TASK_PLAN["files"], {"path": "pytest.ini", "intent": "create", "summary": "settings"}],
    }
    both = {
        **coder_step(),
        "edit": [{"write": "calc.py", "text": RIGHT_CODE}, {"write": "pytest.ini", "text": "[pytest]\n"}],
    }
    run = begun(project, task_crew(planner=[{"mode": "proposal", "reply": plan}], coder=[both]), "--step")
    went_on(project, run, 4)
    assert now(project) == ("test", "ready")
    assert "what it does to the tests was accepted" in refused(project, run)
    assert "/next→evidence" in typed(project, "/quit").out
    went_on(project, run, 1)
    assert now(project) == ("test", "evidence")
    assert refused(project, run) == "evidence waits for an answer, and nothing is waived in place of one"
    (gate,) = project.call("gates", run, "--json").json()
    assert gate["why"] == "pytest.ini: pytest loads it."
    digest = gate["digest"][:8]
    result = typed(
        project, "/approve", "/accept-evidence", f"/accept-evidence {digest} the hooks were wrong", "/quit"
    )
    assert f"/accept-evidence {digest}" in result.out
    assert "approve does not accept questioned results" in result.out + result.err
    assert now(project) == ("accept", "decide")
    done = project.call("tasks", "accept", run)
    assert "what it does to the tests was accepted by ann: the hooks were wrong" in done.out
    (seen,) = read_document(project, run, "accept/decision.json")["evidence"]
    assert (seen["person"], seen["reason"]) == ("ann", "the hooks were wrong")


def test_a_legal_override_is_seen_ever_after(project: Project):
    """A blocking review is waived with a reason: in the list, in `show`, in what is accepted, in the decision."""
    unhappy = task_crew(
        reviewer=[
            {"mode": "proposal", "reply": PLAN_ACCEPTED},
            {"mode": "implementation", "reply": CODE_CHANGES_WANTED},
        ]
    )
    run = begun(project, unhappy, "--step")
    went_on(project, run, 3)
    assert now(project) == ("review", "ready")
    result = typed(
        project, "/status", "/next --override I accept the risk of skipping review --to test", "/quit"
    )
    assert "/next→codegen" in result.out
    assert now(project) == ("test", "ready")
    went_on(project, run, 1)
    reason = "I accept the risk of skipping review"
    (seen,) = project.call("show", run, "--json").json()["overrides"]
    assert (seen["person"], seen["source"], seen["to"], seen["reason"]) == ("ann", "review", "test", reason)
    done = project.call("tasks", "accept", run)
    assert f"review → test by ann: {reason}" in done.out
    assert [o["reason"] for o in read_document(project, run, "accept/decision.json")["overrides"]] == [reason]
    assert [o["reason"] for o in read_document(project, run, "state.json")["overrides"]] == [reason]
    assert reason in project.call("report", run).out


def test_a_task_that_stands_still(project: Project):
    """Sent back too often it waits: `/retry` looks again, an override goes on, a changed crew goes on by itself."""
    flawed = task_crew(
        reviewer=[
            {"mode": "proposal", "reply": PLAN_ACCEPTED},
            {"mode": "implementation", "reply": CODE_PLAN_FLAWED},
        ]
    )
    run = begun(project, flawed)
    assert now(project) == ("review", "stuck")
    assert {"retry", "next --override", "redo review"} <= set(words_of(project))
    why = "The plan itself is wrong (too often to go back by itself): "
    waive = f'steersman tasks next {run} --override "why"'
    for words in (("gates", run), ("show", run), ("why", run), ("tasks",)):
        output = project.call(*words).out
        assert why in output, output
        assert "negative numbers are not planned" in output
        assert waive.removeprefix("steersman ") in output
        assert f"tasks redo {run} review" in output
    write_crew(project, task_crew())
    result = typed(project, "/review code", "/quit")  # there is a gate that asks to try again: it looks again
    assert result.code == 0
    assert project.call("tasks", "redo", run, "review").code == 3
    assert now(project) == ("accept", "decide")


# ── files changed by hand ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["restore", "adopt"])
def test_a_plan_changed_by_hand(project: Project, how: str):
    """It is named and not trusted: put back, or taken over; then the task goes on with what was chosen."""
    run = begun(project, None, "--step")
    place = project.repo / ".steersman" / "runs" / run / "planning" / "planning.ai.json"
    recorded = place.read_bytes()
    mine = recorded.replace(b"add must add", b"add must add, always")
    place.write_bytes(mine)
    assert "NOT as recorded" in project.call("tasks", "show", run).out
    asked = project.call("tasks", "next", run)
    assert (asked.code, "planning/planning.ai.json" in asked.out) == (3, True), asked
    late = project.call("tasks", "next", run)
    assert (late.code, f"steersman tasks {how} {run}" in late.err) == (4, True), late
    assert project.call("tasks", how, run).code == 3
    assert now(project) == ("planning", "ready")
    assert place.read_bytes() == (recorded if how == "restore" else mine)
    result = typed(project, "/next", "/show planning/planning.ai.json", "/quit")
    assert now(project) == ("plan_review", "ready")
    assert ("always" in result.out) == (how == "adopt")


def _blocking() -> dict:
    asked = ("Negative numbers too?", True), ("Fractions?", True), ("Which style?", False)
    return {**TASK_PLAN, "questions": [{"text": text, "blocking": blocking} for text, blocking in asked]}


def test_an_agent_overrides_nothing(project: Project):
    """Whatever works for a run: no override, no deed, no sitting; refused, and on tape where it can be."""
    run = begun(project, None, "--step")
    inside = {"STEERSMAN_EFFECT": f"{run}:1:1"}
    for words in (
        ("next", run, "--override", "trust me"),
        ("next", run),
        ("redo", run, "planning"),
        ("say", run, "go"),
    ):
        result = project.call("tasks", *words, fresh=True, **inside)
        assert (result.code, "an agent never speaks for a person" in result.err) == (4, True), result
    assert project.call("repl", fresh=True, **inside).code == 4
    assert project.call("tasks", "new", "another", fresh=True, **inside).code == 4
    assert [e["kind"] for e in project.entries(run) if e["kind"] in ("refused", "override")] == [
        "refused"
    ] * 4
    assert now(project) == ("planning", "ready")


def test_an_override_does_not_spend_what_is_not_there(project: Project):
    """The reviewers of the next phase are held at the budget's gate, and that gate is not overridden."""
    configure_tasks(project, task_crew(), more="[budget]\nturns = 3\n")
    assert project.call("tasks", "new", "Fix add", "--step").code == 3
    run = project.only_run()
    went_on(project, run, 2)
    assert now(project) == ("codegen", "ready")
    assert project.call("tasks", "next", run, "--override", "in a hurry").code == 3
    assert words_of(project)[:2] == ["raise", "stop"]
    assert now(project)[0] == "review"
    assert refused(project, run) == "budget waits for an answer, and nothing is waived in place of one"
    assert project.call("answer", run, "raise", "--turns", "9").code == 3
    assert now(project) == ("review", "ready")


def test_what_can_be_completed(project: Project):
    """Commands of the machine, phases that can be done again, runs and documents."""
    run = begun(project, None, "--step")
    code = (
        "import json, sys; from steersman.wiring import SERVICES; from steersman.faces.cli.context import CommandContext;"
        "from steersman.faces.repl.session import ReplSession;"
        "s = ReplSession(CommandContext(SERVICES, None, as_json=False));"
        "print(json.dumps([s.completions(t) for t in json.loads(sys.argv[1])]))"
    )
    typed_so_far = [
        "/re", "/redo ", "/review ", "/switch ", "/show plan", "/next ", "/help ac", "/plan x y", "words",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(typed_so_far)], cwd=project.repo, env=project.env,
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert json.loads(done.stdout) == [
        ["/review", "/revert", "/redo", "/restore", "/retry", "/rework", "/reject", "/resume"],
        ["planning"],
        ["plan", "code"],
        [run],
        ["plan.files.json", "planning/planning.ai.json"],
        ["--override"],
        ["accept", "accept-evidence"],
        [],
        [],
    ]


def test_what_hands_put_among_the_files_of_a_task_is_told_everywhere(project: Project):
    """Planted documents and a state made up by hand: named where it waits and when it is done, shown as what they are; what
    completes a revert that was asked for ends well, by whatever word."""
    configure_tasks(project, task_crew(), deliver="merge")
    assert project.call("tasks", "new", "Fix add", "--step").code == 3
    run = project.only_run()
    folder = project.repo / ".steersman" / "runs" / run
    for name in ("accept/decision.json", "planning/extra.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text('{"decision": "accepted"}')
    assert "accept/decision.json  NOT on record" in project.call("tasks", "show", run).out
    shown = project.call("tasks", "show", run, "accept/decision.json")
    assert (shown.code, "is not on record: steersman did not write it" in shown.err) == (0, True)
    asked = project.call("tasks", "next", run).out
    assert "accept/decision.json is not on record" in asked
    assert "planning/extra.json is not on record" in asked
    restored = project.call("tasks", "restore", run).out
    assert "moved aside: planning/extra.json, now aside/1/planning/extra.json" in restored
    went_on(project, run, 5)
    assert project.call("tasks", "accept", run).code == 0
    right = (folder / "state.json").read_bytes()
    assert read_document(project, run, "state.json")["step"] == ""
    (folder / "state.json").write_text('{"phase": "planning"}')
    again = f"`steersman tasks restore {run}` writes it again"
    for words in (("show", run), ("why", run), ("tasks", "list")):
        result = project.call(*words)
        assert ("state.json could not be read" in result.out, again in result.out) == (True, True), result
    assert "state.json  could not be read" in project.call("tasks", "show", run).out
    shown = project.call("tasks", "show", run, "state.json")
    assert (json.loads(shown.out)["phase"], "this is what the tape says" in shown.err) == ("done", True)
    assert (folder / "state.json").read_text() == '{"phase": "planning"}'  # whoever looks changes nothing
    done = project.call("tasks", "restore", run)
    assert (done.code, "steersman wrote it again" in done.out) == (0, True), done
    assert (folder / "state.json").read_bytes() == right
    assert project.call("tasks", "restore", run).code == 4
    assert "/plan is not next, and another task is begun by /new" in typed(project, "/plan more", "/quit").err
    shutil.rmtree(folder)
    assert project.call("tasks", "revert", run).code == 3
    last = project.call("tasks", "restore", run)
    assert (last.code, f"run {run}: reverted" in last.out) == (0, True), last


def test_nothing_of_a_task_lies_behind_a_link(project: Project):
    """`.steersman` as a link: no run begins there; put in place meanwhile it is named with what helps, and left alone."""
    configure_tasks(project, task_crew())
    ours, aside = project.repo / ".steersman", project.place / "aside"
    aside.mkdir()
    ours.symlink_to(aside)
    result = project.call("tasks", "new", "Fix add", "--step")
    assert (result.code, ".steersman is a link" in result.err, "Replace it with a directory" in result.err) == (
        2, True, True,
    )  # fmt: skip
    assert (list(aside.iterdir()), project.call("runs", "--json").json()) == ([], [])
    ours.unlink()
    assert project.call("tasks", "new", "Fix add", "--step").code == 3
    ours.rename(aside / "moved")
    ours.symlink_to(aside / "moved")
    before = sorted(str(path) for path in aside.rglob("*"))
    said = project.call("tasks", "next", project.only_run())
    assert "planning/planning.ai.json is a link, and links are not followed: .steersman is a link" in said.out
    assert "remove the link that stands in the place of a folder" in said.out
    late = project.call("tasks", "restore", project.only_run())
    assert "remove the link (what it leads to stays) and try again" in late.out
    assert sorted(str(path) for path in aside.rglob("*")) == before
    ours.unlink()
    (aside / "moved").rename(ours)
    assert project.call("tasks", "restore", project.only_run()).code == 3
    assert now(project) == ("planning", "ready")


def test_approve_shows_what_it_accepts(project: Project):
    """The word of every other gate accepts a task's change too, and shows exactly that first, as `tasks accept` does."""
    run = begun(project)
    result = project.call("approve", run, "--reason", "fine")
    assert result.code == 0, result
    shown = result.out.partition("approve · gate")[0]
    assert all(
        word in shown for word in ("the change:", "verdicts:", "evidence:", "overrides:", "all of it: ")
    )


def test_a_task_that_cannot_be_read_stops_no_other(project: Project):
    """It is listed as broken; the prompt says so, and another task can be gone to and worked on."""
    broken = begun(project, None, "--step")
    assert project.call("tasks", "new", "Fix add again", "--step").code == 3
    whole = next(t["run"] for t in project.call("tasks", "list", "--json").json() if t["run"] != broken)
    store = apsw.Connection(str(project.state / "store.db"))
    store.execute("UPDATE entry SET body=x'00' WHERE run=? AND seq=2", (broken,))
    store.execute("DELETE FROM snapshot WHERE run=?", (broken,))
    store.close()
    told = {t["run"]: (t["status"], t["waits"]) for t in project.call("tasks", "list", "--json").json()}
    assert told[whole][0] == "waiting for you"
    assert (told[broken][0], f"audit verify {broken}" in told[broken][1]) == ("broken", True)
    result = typed(project, "/status", f"/switch {whole}", "/next", "/quit", words=("repl", broken))
    assert (result.code, "quarantined" in result.err) == (5, True), result
    assert "plan_review:ready" in result.out
