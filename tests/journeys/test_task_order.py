"""Tasks that come after others: each begins when the change of those before it is in the branch, or when a person says why not."""

import pytest
from tests.support.command_launcher import CommandCall
from tests.support.sample_project import RIGHT_CODE, CommandResult, Project
from tests.support.task_project import (
    coder_step,
    configure_tasks,
    prompt_banners,
    read_document,
    task_crew,
    task_phases,
    write_crew,
)

pytestmark = pytest.mark.usefixtures("project_snapshots")

SECOND = RIGHT_CODE + "\n\ndef twice(a):\n    return add(a, a)\n"


def begun(project: Project, *words: str, code: int = 3) -> str:
    """A new task, driven until it waits."""
    result = project.call("tasks", "new", *words, "--json")
    assert result.code == code, result
    return result.json()["run"]


def listed(project: Project, run: str) -> dict:
    return next(task for task in project.call("tasks", "list", "--json").json() if task["run"] == run)


def test_it_begins_on_what_the_other_has_left(project: Project):
    """Nobody plans before the first is accepted; whoever accepts it is told who waits; then it stands on that very commit."""
    configure_tasks(project, task_crew(), deliver="merge")
    first = begun(project, "Fix add")
    second = begun(project, "Add twice", "--after", first[:10])
    assert task_phases(project, second) == ["planning"]
    here = listed(project, second)
    assert (here["step"], here["status"], here["after"]) == ("waiting", "waiting for you", [first])
    assert [way["word"] for way in here["next"]][:2] == ["next", "begin"]
    why = f"{first} is not accepted but in accept, under way"
    for words in (("why", second), ("tasks",), ("show", second)):
        assert why in project.call(*words).out
    result = project.call("gates", second)
    assert (
        f"{first} is not accepted but in accept, under way: see `steersman tasks show {first}`" in result.out
    )
    assert project.call("tasks", "next", second).code == 3  # it looks again, and nothing has changed
    assert listed(project, second)["step"] == "waiting"

    done = project.call("tasks", "accept", first)
    assert "| ann | accepted the change | `" in project.call("report", first).out.partition("## Delivered")[2]
    assert done.code == 0, done
    assert f"task {second} waits for this one" in done.out
    assert f"steersman tasks next {second}" in done.out
    write_crew(project, task_crew(coder=[coder_step(SECOND)]))
    assert project.call("tasks", "next", second).code == 3
    assert project.call("tasks", "accept", second).code == 0
    assert (project.repo / "calc.py").read_text() == SECOND
    assert project.git("rev-parse", "main~1").strip() in project.git("log", "-1", "--format=%H", f"--grep=Steersman-Run: {first}")  # fmt: skip
    events = [e.get("event") for e in project.entries(second) if e["kind"] == "transition"]
    assert (events.count("others_missing"), events.count("others_there")) == (2, 1)
    assert "base_moved" not in events


def test_a_branch_is_waited_for_until_somebody_merges_it(project: Project):
    """Accepted is not enough: what was delivered as a branch has to be merged, in whatever commits, and the task says so."""
    configure_tasks(project, task_crew())
    first = begun(project, "Fix add")
    assert project.call("tasks", "accept", first).code == 0
    second = begun(project, "Add twice", "--after", first)
    result = project.call("why", second)
    assert listed(project, second)["step"] == "waiting", result
    shown = project.call("gates", second).out
    assert f"{first} is accepted and delivered as steersman/{first}, but main does not have its change: merge it there" in shown  # fmt: skip
    project.git("merge", "-q", "--squash", f"steersman/{first}")
    project.git("commit", "-qm", "in a commit of their own")
    write_crew(project, task_crew(coder=[coder_step(SECOND)]))
    assert project.call("tasks", "next", second).code == 3
    assert listed(project, second)["phase"] == "accept"
    (based,) = [e["data"]["base"] for e in project.entries(second) if e.get("event") == "others_there"]
    assert based == project.git("rev-parse", "main").strip()


def test_a_person_says_why_it_begins_without(project: Project):
    """With a reason it begins, and the reason stays; without one, by an override, words or a redo it does not."""
    configure_tasks(project, task_crew())
    first = begun(project, "Fix add")
    second = begun(project, "Add twice", "--after", first)
    for words, code in (
        (("begin", second), 4),
        (("begin", second, "--reason", " "), 4),
        (("next", second, "--override", "I am in a hurry"), 4),
        (("say", second, "use twice as a name"), 3),
        (("redo", second, "planning", "quickly"), 3),
    ):
        result = project.call("tasks", *words)
        assert result.code == code, result
        assert listed(project, second)["step"] == "waiting", result
        assert task_phases(project, second) == ["planning"]
    for reason in ((), ("--reason", " ")):
        result = project.call("answer", second, "begin", *reason)
        assert (result.code, "needs a reason" in result.err) == (4, True), result
    same = f'tasks next {second} | tasks begin {second} --reason "why" | '
    assert f"legal: {same}" in project.call("tasks").out
    result = project.call("tasks", "begin", second, "--reason", "they have nothing in common")
    assert result.code == 3, result
    assert listed(project, second)["phase"] == "accept"
    reason = "without the others: they have nothing in common"
    (legal,) = (line for line in project.call("tasks").out.splitlines() if f"tasks accept {second}" in line)
    ways = legal.strip().removeprefix("legal: ").split(" | ")
    assert sorted(ways) == sorted(set(ways))
    assert f'tasks redo {second} codegen "what to change"' in ways
    typed = [line for line in project.call("why", second).out.splitlines() if f"redo {second} review" in line]
    assert len(typed) == 1
    waived = f"planning → planning by ann: {reason}"
    for words in (("gates", second), ("why", second), ("tasks", "show", second)):
        assert waived in project.call(*words).out
    for words in (("show", second), ("report", second), ("tasks", "accept", second)):
        assert reason in project.call(*words).out
    (waived,) = read_document(project, second, "accept/decision.json")["overrides"]
    assert (waived["person"], waived["reason"]) == ("ann", reason)
    assert listed(project, second)["overrides"] == 1


def test_what_can_never_be_accepted_is_not_waited_for(project: Project):
    """No run, a run of another machine, or one that was aborted cannot come first; one that is aborted later is named."""
    configure_tasks(project, task_crew())
    first = begun(project, "Fix add")
    second = begun(project, "Add twice", "--after", first)
    assert project.call("abort", first).code == 0
    assert project.call("tasks", "next", second).code == 3
    assert f"{first} is not accepted but in accept, canceled: it has ended for good" in project.call("gates", second).out  # fmt: skip
    for other, why in ((first, "will never be accepted"), ("nobody", "nobody"), ("", "")):
        result = project.call("tasks", "new", "Third", "--after", other)
        assert result.code == 2, result
        assert why in result.err
    project.git("checkout", "-q", "--detach")
    result = project.call("tasks", "new", "Third", "--after", second)
    assert (result.code, "--after needs a branch" in result.err) == (2, True)
    project.git("checkout", "-q", "main")
    result = project.call("run", "Third", "--after", second)
    assert (result.code, "use --as task" in result.err) == (2, True)


def test_at_the_prompt(project: Project):
    """`/new --after RUN words` begins one, the prompt says what it waits for, and `/begin reason` has it begin."""
    configure_tasks(project, task_crew())
    first = begun(project, "Fix add")
    feed = f"/new --after {first[:8]} Add twice\n/begin\n/begin they differ\n/quit\n".encode()
    done = project.launch(CommandCall(("repl",), project.repo, project.env, feed))
    told = CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert told.code == 4, told  # of the first that was refused
    assert "needs a reason" in told.err
    seen = prompt_banners(told.out)
    assert seen[1].startswith("planning:waiting (waiting for you) · /next /begin"), seen
    assert seen[3].startswith("planning:ready (waiting for you) · /next→plan_review"), seen


@pytest.mark.parametrize("undone", [True, False], ids=["reverted", "not reverted"])
def test_a_change_that_was_taken_back_is_missing(project: Project, undone: bool):
    """A task that is accepted and taken back by hand is not there; as long as it is not taken back, it is."""
    configure_tasks(project, task_crew(), deliver="merge")
    first = begun(project, "Fix add")
    assert project.call("tasks", "accept", first).code == 0
    if undone:
        project.git("revert", "--no-edit", "main")
    else:
        project.git("commit", "--allow-empty", "-qm", "nothing")
    write_crew(project, task_crew(coder=[coder_step(SECOND)]))
    second = begun(project, "Add twice", "--after", first)
    assert listed(project, second)["phase"] == ("planning" if undone else "accept")
