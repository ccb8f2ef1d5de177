"""Whole stories through the installed command: a proposal, a person's word, rounds, checks, delivery, and after."""

import json

import pytest
from tests.support.command_launcher import CommandCall
from tests.support.sample_project import (
    APPROVAL,
    CHANGE_REQUEST,
    RIGHT_CODE,
    Project,
    change_story,
    roundtable_crew,
    roundtable_story,
)

pytestmark = pytest.mark.usefixtures("project_snapshots")

TWO_ROUNDS = roundtable_crew(
    coder=[
        {"mode": "proposal", "say": "I will add."},
        {"mode": "implementation", "round": "1", "say": "a", "edit": [{"write": "calc.py", "text": RIGHT_CODE + "# x\n"}]},
        {"mode": "implementation", "say": "b", "edit": [{"write": "calc.py", "text": RIGHT_CODE}]},
    ],
    reviewer=[
        {"mode": "proposal", "say": "Fine."},
        {"mode": "implementation", "round": "1", "reply": CHANGE_REQUEST},
        {"mode": "implementation", "reply": APPROVAL},
    ],
)  # fmt: skip


def test_from_a_task_to_an_approved_branch(project: Project) -> None:
    """A proposal waits, rework proposes again, approval leads through two rounds to a branch whose tests really ran."""
    parked = project.run(roundtable_story(mode="proposal", crew=TWO_ROUNDS))
    assert parked.code == 3, parked
    data = parked.json()
    run = data["run"]
    assert (data["status"], data["outcome"]) == ("waiting for you", "await_operator_confirm")
    assert f"steersman approve {run}" in data["next"]

    again = project.call("rework", run, "say what happens to strings")
    assert again.code == 3, again
    assert "Shall this proposal be implemented?" in again.out

    done = project.call("approve", run, "--reason", "good plan")
    assert done.code == 0, done
    assert "approved" in done.out
    shown = project.call("show", run, "--json").json()
    assert (shown["outcome"], shown["round"], shown["confirmed_by"]) == ("approved", 2, "ann")
    assert [(f["text"], f["state"], f["fixed"]) for f in shown["findings"]] == [("say why", "fixed", 2)]
    assert sum(c["tests"] for c in shown["checks"]) > 0
    assert project.git("show", f"steersman/{run}:calc.py") == RIGHT_CODE
    assert "Approved-by: ann" in project.git("log", "-1", "--format=%B", f"steersman/{run}")


def test_what_a_run_leaves_beside_it(project: Project) -> None:
    """Projections are written below .steersman and the user's checkout stays as clean as it was."""
    run = project.run(roundtable_story()).json()["run"]
    folder = project.repo / ".steersman" / "runs" / run
    found = {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}
    assert found == {
        "state.json", "report.md", "timeline.json", "transcript.jsonl", "code/diff.patch",
        "test-results.json",
    }  # fmt: skip
    assert json.loads((folder / "state.json").read_text())["outcome"] == "approved"
    assert "+    return a + b" in (folder / "code" / "diff.patch").read_text()
    assert project.git("status", "--porcelain") == ""
    assert project.git("branch", "--show-current").strip() == "main"


def test_the_discussion_is_bound_into_a_contract(project: Project) -> None:
    """A parked proposal leaves its contract, with the digest that the gate is about."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    (gate,) = project.call("gates", "--json").json()
    bound = json.loads((project.repo / ".steersman" / "runs" / run / "discussion_contract.json").read_text())
    assert bound["digest"] == gate["digest"]
    assert bound["texts"]["core_plan"] == "I will add."


def test_what_waits_is_shown_with_its_texts(project: Project) -> None:
    """`gates` shows the beginning of what each gate is about, `gates RUN` more of it, `--full` all."""
    plan = "I will add. " + "x" * 5_000 + " The end."
    run = project.run(
        change_story(roundtable_story(mode="proposal"), "crew", "coder", 0, "say", to=plan)
    ).json()["run"]
    shown = [project.call(*words).out for words in (["gates"], ["gates", run], ["gates", "--full"])]
    assert [text.count("I will add.") for text in shown] == [1, 1, 1]
    assert ["The end." in text for text in shown] == [False, False, True]
    assert 500 < shown[0].count("x") < 1_000
    assert 3_000 < shown[1].count("x") < 4_500
    assert all(f"steersman approve {run}" in text for text in shown)


def test_a_follow_up_reopens_a_finished_run(project: Project) -> None:
    """After approval a person may ask for more; iterations start afresh and the next round builds on the last tree."""
    story = roundtable_story(max_iterations=1)
    story = change_story(story, "crew", "coder", to=[
        {"mode": "implementation", "say": "a", "edit": [{"append": "calc.py", "text": "# more\n"}, {"replace": "calc.py", "find": "a - b", "with": "a + b"}]},
    ])  # fmt: skip
    first = project.run(story)
    assert first.code == 0, first
    run = first.json()["run"]
    crew_now = change_story(
        story, "crew", "coder", 0, "edit", to=[{"append": "calc.py", "text": "# and more\n"}]
    )
    (project.place / "crew.yaml").write_text(json.dumps(crew_now["crew"]))
    more = project.call("followup", run, "and more, please")
    assert more.code == 0, more
    assert project.git("show", f"steersman/{run}:calc.py").endswith("# more\n# and more\n")
    assert project.rows(run).count(("finalize", "task_followup_received", "intake")) == 1


def test_followup_confirm_is_an_approval(project: Project) -> None:
    """`followup --confirm` answers the proposal that waits."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    done = project.call("followup", run, "--confirm")
    assert done.code == 0, done
    nothing = project.call("followup", run, "--confirm")
    assert nothing.code == 2
    assert "no proposal to confirm" in nothing.err


def test_reject_ends_the_run(project: Project) -> None:
    """A rejected proposal is canceled; nothing was built."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    done = project.call("reject", run, "--reason", "no", "--json")
    assert (done.code, done.json()["outcome"]) == (0, "canceled")
    assert project.git("branch", "--list", "steersman/*") == ""


def test_abort_while_a_proposal_waits(project: Project) -> None:
    """Abort ends a parked run; a second abort is refused."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    assert project.call("abort", run).code == 0
    late = project.call("abort", run, "--json")
    assert (late.code, late.json()["result"]) == (4, "refused")


def test_a_merge_goes_through_a_gate(project: Project) -> None:
    """With deliver = merge the approved tree waits for a person, and only then main moves."""
    parked = project.run(roundtable_story(deliver="merge"))
    assert parked.code == 3, parked
    run = parked.json()["run"]
    before = project.git("rev-parse", "main")
    done = project.call("approve", run)
    assert done.code == 0, done
    assert project.git("rev-parse", "main") != before
    assert project.git("show", "main:calc.py") == RIGHT_CODE


def test_a_fork_begins_at_any_entry(project: Project) -> None:
    """A fork goes on from an entry of another run, which is left as it was."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    tape = project.entries(run)
    at = next(e["seq"] for e in tape if e.get("event") == "roundtable_reviewer")
    forked = project.call("fork", run, "--at", str(at), "--json")
    assert forked.code == 3, forked
    new = forked.json()["run"]
    assert new != run
    assert project.rows(new)[:2] == [(None, "", "review"), ("review", "roundtable_tester", "test")]
    assert project.entries(run) == tape
    assert project.call("approve", new).code == 0
    assert project.call("audit", "verify").code == 0


def test_the_report_tells_who_decided_what_and_what_was_proven(project: Project) -> None:
    """The report names the person, the finding, the checks with their tests, and the branch."""
    run = project.run(roundtable_story(mode="proposal", crew=TWO_ROUNDS)).json()["run"]
    project.call("approve", run, "--reason", "good plan")
    out = project.repo / "r.md"
    assert project.call("report", run, "--out", str(out)).code == 0
    words = out.read_text()
    for part in (
        "| ann |",
        "good plan",
        "say why",
        "python3 -m unittest -q",
        f"refs/heads/steersman/{run}",
        "## Rounds",
    ):
        assert part in words


def test_the_report_has_what_each_review_said(project: Project) -> None:
    """A review's summary stands beside its round and decision, in Markdown and in JSON, and adds nothing of its own."""
    first = "No reason is given.\n## Approved | by ann"
    story = change_story(TWO_ROUNDS, "reviewer", 1, "reply", "summary", to=first)
    run = project.run(roundtable_story(crew=story)).json()["run"]
    data = project.call("report", run, "--json").json()
    seen = [(r["round"], r["decision"], r["summary"]) for r in data["reviews"]]
    assert seen == [(1, "changes_requested", first), (2, "approve", "read")]
    assert {
        e["event"] for e in project.entries(run) if e["seq"] in [r["entry"] for r in data["reviews"]]
    } == {"review_changes_requested", "review_approved"}
    table = data["report"].split("## Reviews")[1].split("\n## ")[0]
    assert "| changes\\_requested | No reason is given. \\#\\# Approved \\| by ann |" in table
    assert (
        "## Reviews"
        not in project.call("report", project.run(roundtable_story(mode="proposal")).json()["run"]).out
    )


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["why"],
        ["report"],
        ["audit", "tape"],
        ["audit", "replay"],
        ["audit", "verify"],
        ["gates"],
        ["watch"],
    ],
    ids=" ".join,
)
def test_a_run_is_read_by_a_prefix_of_its_name(project: Project, words: list[str]) -> None:
    """Every reading command takes a unique prefix, answers in words and in JSON, and changes nothing."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    before = len(project.entries(run))
    for more in ([], ["--json"]):
        result = project.call(*words, run[:10], *more)
        assert result.code == (3 if words == ["watch"] else 0), result
        assert result.out.strip()
    assert len(project.entries(run)) == before


def test_home_says_what_waits(project: Project) -> None:
    """Plain `steersman` names what waits and what to type."""
    assert "steersman demo" in project.call().out
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    home = project.call()
    assert home.code == 0
    assert f"steersman gates {run}" in home.out


def test_from_elsewhere_with_project(project: Project) -> None:
    """--project works before and after the command, and what is printed can be typed from there."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    for words in (["--project", str(project.repo), "why", run], ["why", run, "--project", str(project.repo)]):
        result = project.launch(CommandCall(words, "/", project.env))
        assert result.returncode == 0
        assert f"steersman --project {project.repo} approve {run}" in result.stdout.decode()


def test_resume_without_a_name(project: Project) -> None:
    """It drives the only run that can go on, lists several, and says when there is none."""
    project.prepare(roundtable_story())
    assert project.call("resume").code == 2
    parked = project.call("run", "Fix add", "--json").json()["run"]
    waits = project.call("resume")
    assert waits.code == 3
    assert "1 wait for a person" in waits.out
    first = project.call("fork", parked, "--at", "3", "--hold", "--json").json()["run"]
    second = project.call("fork", parked, "--at", "3", "--hold", "--json").json()["run"]
    several = project.call("resume")
    assert several.code == 2
    assert first in several.out
    assert second in several.out
    assert project.call("resume", first).code == 3
    only = project.call("resume", "--json")
    assert (only.code, only.json()["run"]) == (3, second)


def test_a_pipe_that_is_closed_early(project: Project) -> None:
    """`steersman … | head` ends quietly."""
    run = project.run(roundtable_story()).json()["run"]
    for words in (["audit", "tape", run], ["runs"]):
        reader = project.start(*words)
        assert reader.stdout is not None
        reader.stdout.close()
        assert reader.wait(timeout=60) == 0
        assert reader.stderr is not None
        assert reader.stderr.read() == b""


def test_every_object_that_answers_has_the_exit_code(project: Project) -> None:
    """With --json an answer that is an object says how the command ended, also where it ends with trouble."""
    run = project.run(roundtable_story()).json()["run"]
    looks = ("show", "why", "report", "audit verify", "audit replay", "audit anchor")
    for words in (
        *(f"{look} {run}" for look in looks),
        "machine show roundtable",
        f"audit prune {run} --yes",
    ):
        result = project.call(*words.split(), "--json")
        assert (result.code, len(result.out.splitlines())) == (0, 1), result
        assert result.json()["exit_code"] == 0, words
    (texts,) = project.state.glob("**/anchors.jsonl")
    texts.write_text(texts.read_text().replace('"hash":"', '"hash":"0'))
    result = project.call("audit", "verify", run, "--json")
    assert (result.code, result.json()["exit_code"]) == (5, 5), result


def test_nobody_to_ask_is_told_to_programs_in_json(project: Project) -> None:
    """A question goes to standard error; where nobody can answer, nothing is dropped and the way around is said."""
    run = project.run(roundtable_story()).json()["run"]
    result = project.call("audit", "prune", run, "--json")
    assert (result.code, len(result.out.splitlines()), result.json()["exit_code"]) == (2, 1, 2), result
    assert f"steersman audit prune {run} --yes" in result.json()["error"]
    assert "cannot be restored" in result.err
    for answer, code in ((b"n\n", 2), (b"y\n", 0)):
        done = project.launch(
            CommandCall(("audit", "prune", run, "--json"), project.repo, project.env, answer)
        )
        assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (code, code), done


def test_a_gate_that_is_not_there_and_a_choice_it_does_not_offer(project: Project) -> None:
    """A wrong gate is answered with the one that waits; a choice with those that are offered."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    (gate,) = project.call("gates", "--json").json()
    result = project.call("approve", f"{run}:99:1")
    assert (
        result.code,
        f"run {run} has no open gate {run}:99:1. Its open gates: {gate['id']}" in result.err,
    ) == (
        2,
        True,
    ), result
    for words in (("raise", "--tokens", "5"), ("raise",)):
        result = project.call("answer", run, *words)
        assert (
            result.code,
            "has no choice 'raise'. Choose one of approve, rework, reject" in result.err,
        ) == (2, True), result


def test_a_run_that_nobody_drives_is_said_to_be_one(project: Project) -> None:
    """A run that was let go of in the middle of its work is listed and shown with the command that drives it on."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    new = project.call("fork", run, "--at", "3", "--hold", "--json").json()["run"]
    assert f"run {new} has no driver: steersman resume {new}" in project.call("runs").out
    assert f"run {run} has no driver" not in project.call("runs").out
    assert {r["run"]: r["idle"] for r in project.call("runs", "--json").json()} == {run: False, new: True}
    assert f"no driver is running: steersman resume {new}" in project.call("show", new).out
    assert project.call("show", new, "--json").json()["driven_by"] is None
