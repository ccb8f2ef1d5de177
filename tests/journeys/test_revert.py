"""Taking a delivered change back, and delivering as a draft pull request, through the command line."""

import os

import pytest
from tests.support.fake_forge import FakeForge
from tests.support.sample_project import Project, roundtable_story

pytestmark = pytest.mark.usefixtures("project_snapshots")


def merged(project: Project) -> str:
    """A run whose change is merged into main."""
    run: str = project.run(roundtable_story(deliver="merge")).json()["run"]
    assert project.call("approve", run).code == 0
    assert "a + b" in project.git("show", "main:calc.py")
    return run


def test_a_merged_change_is_taken_back_once(project: Project) -> None:
    """A commit with trailers undoes it; a second time is refused with why; all of it is on tape."""
    run = merged(project)
    done = project.call("revert", run, "--reason", "breaks the import")
    assert done.code == 0, done
    assert "reverted by commit" in done.out
    assert "a - b" in project.git("show", "main:calc.py")
    assert "a - b" in (project.repo / "calc.py").read_text()
    assert project.git("status", "--porcelain", "--untracked-files=no") == ""
    said = project.git("log", "-1", "--format=%B", "main")
    delivered = project.git("rev-parse", "main~1").strip()
    assert said.startswith('Revert "Fix add"\n')
    for trailer in (f"Steersman-Run: {run}", "Reverted-by: ann", f"Steersman-Reverts: {delivered}"):
        assert trailer in project.git("interpret-trailers", "--parse", str(_file(project, said)))
    again = project.call("revert", run, "--json")
    assert again.code == 4
    assert "it is reverted already, by commit" in again.err
    events = [(e["kind"], e.get("event")) for e in project.entries(run)]
    assert ("transition", "reverted") in events
    assert ("refused", "revert_requested") in events
    assert "breaks the import" in project.call("report", run).out
    assert project.call("audit", "verify", run).code == 0
    assert project.call("audit", "replay", run).code == 0


def _file(project: Project, words: str) -> object:
    path = project.place / "message"
    path.write_text(words)
    return path


def test_a_change_is_taken_back_after_later_commits(project: Project) -> None:
    """What came after it stays."""
    run = merged(project)
    (project.repo / "other.py").write_text("x = 1\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "later")
    assert project.call("revert", run).code == 0
    assert "a - b" in project.git("show", "main:calc.py")
    assert project.git("show", "main:other.py") == "x = 1\n"


def test_a_change_that_was_built_upon_stays(project: Project) -> None:
    """The files are named, nothing is changed, and it can be tried again when the way is free."""
    run = merged(project)
    (project.repo / "calc.py").write_text("def add(a, b):\n    return b + a\n")
    project.git("commit", "-qam", "later")
    before = project.git("rev-parse", "main")
    result = project.call("revert", run)
    assert result.code == 1, result
    assert "nothing was changed" in result.out
    assert "later commits have changed the same lines of calc.py" in result.out
    assert project.call("revert", run, "--json").json()["exit_code"] == 1
    assert (project.git("rev-parse", "main"), project.git("status", "--porcelain", "-uno")) == (before, "")
    project.git("reset", "-q", "--hard", "HEAD~1")
    assert project.call("revert", run).code == 0


def test_a_branch_that_a_person_merged_is_taken_back(project: Project) -> None:
    """A change that was delivered as a branch is taken back from where somebody merged it; before that it is refused."""
    run = project.run(roundtable_story()).json()["run"]
    early = project.call("revert", run)
    assert early.code == 1
    assert "is not in main" in early.out
    project.git("merge", "-q", "--no-ff", "-m", "merge", f"steersman/{run}")
    assert project.call("revert", run).code == 0
    assert "a - b" in project.git("show", "main:calc.py")


def test_only_what_was_delivered_can_be_taken_back(project: Project) -> None:
    """A run that waits, or that was aborted, has nothing to take back; a branch that is not there is named."""
    run = project.run(roundtable_story(deliver="merge")).json()["run"]
    waits = project.call("revert", run)
    assert waits.code == 4
    assert "delivered nothing" in waits.err
    assert project.call("approve", run).code == 0
    wrong = project.call("revert", run, "--on", "no-such-branch")
    assert wrong.code == 1
    assert "there is no branch 'no-such-branch'" in wrong.out
    assert project.call("revert", run, "--on", "a b").code == 4


def test_uncommitted_work_stops_it(project: Project) -> None:
    """The person's own changes are not touched."""
    run = merged(project)
    (project.repo / "calc.py").write_text("mine\n")
    result = project.call("revert", run)
    assert result.code == 1
    assert "uncommitted changes" in result.out
    assert (project.repo / "calc.py").read_text() == "mine\n"


@pytest.fixture
def forge(project: Project) -> FakeForge:
    """gh on PATH, and a remote for the project."""
    project.git("init", "-q", "--bare", "-b", "main", str(project.place / "ann" / "calc.git"))
    project.git("remote", "add", "origin", str(project.place / "ann" / "calc.git"))
    fake = FakeForge(project.place / "forge", "gh")
    project.env["PATH"] = f"{fake.bin}{os.pathsep}{project.env['PATH']}"
    return fake


def test_a_draft_pull_request_carries_report_evidence_and_anchor(project: Project, forge: FakeForge) -> None:
    """The branch is at the remote, and the draft says what was proven on which tree, with a signed anchor."""
    done = project.run(roundtable_story(deliver="draft-pr"))
    run = done.json()["run"]
    assert done.code == 0, done
    (pull,) = forge.pulls
    assert done.json()["url"] == pull["html_url"]
    assert (pull["draft"], pull["base"], pull["title"]) == (True, "main", "Fix add")
    tree = project.git("rev-parse", f"steersman/{run}^{{tree}}").strip()
    body = pull["body"]
    for words in (f"`{run}`", f"`{tree}`", "checks passed", "## Evidence", '"signature"', f'"run":"{run}"'):
        assert words in body, words
    remote = project.place / "ann" / "calc.git"
    refs = project.git("--git-dir", str(remote), "for-each-ref", "--format=%(refname)").split()
    assert refs == [f"refs/heads/steersman/{run}"]
    assert pull["html_url"] in project.call("show", run).out
    assert project.call("audit", "verify", run).code == 0


def test_without_gh_the_branch_is_left_and_delivered_later(project: Project, forge: FakeForge) -> None:
    """Gone since the start, it is said to be missing; with it there, the delivery is repeated."""
    run = project.run(roundtable_story(deliver="draft-pr", mode="proposal")).json()["run"]
    project.env["PATH"] = project.env["PATH"].removeprefix(f"{forge.bin}{os.pathsep}")
    done = project.call("approve", run, "--json")
    assert (done.code, done.json()["exit_code"]) == (1, 1)
    why = project.call("why", run).out
    assert "needs gh or glab on PATH" in why
    assert f"The change is on the branch steersman/{run}" in why
    assert "a + b" in project.git("show", f"steersman/{run}:calc.py")
    project.env["PATH"] = f"{forge.bin}{os.pathsep}{project.env['PATH']}"
    assert project.call("send", run, "delivery_requested").code == 0
    assert len(forge.pulls) == 1


def test_a_draft_that_cannot_be_opened_is_told_before_any_money_is_spent(
    project: Project, forge: FakeForge
) -> None:
    """Without a remote `run` starts nothing and says the fix; `doctor` and `run --dry` say the same; with it all are content."""
    project.git("remote", "rename", "origin", "upstream")
    project.git("remote", "add", "other", "/elsewhere")
    fix = "git remote add origin <address>"
    story = roundtable_story(deliver="draft-pr")
    refused = project.run(story)
    assert refused.code == 2
    assert fix in refused.err
    assert project.call("runs", "--json").json() == []
    (finding,) = [f for f in project.call("doctor", "--json").json() if f["what"] == "delivery"]
    assert (finding["ok"], fix in finding["told"]) == (False, True)
    (problem,) = project.call("run", "x", "--dry", "--json").json()["problems"]
    assert fix in problem
    assert f"would not start: {problem}" in project.call("run", "x", "--dry").out
    assert project.call("run", "x", "--unattended").code == 4

    project.git("remote", "rename", "upstream", "origin")
    (finding,) = [f for f in project.call("doctor", "--json").json() if f["what"] == "delivery"]
    assert (finding["ok"], finding["told"]) == (True, "as draft-pr")
    assert project.call("run", "x", "--dry", "--json").json()["problems"] == []


def test_a_merge_needs_a_branch_to_begin_on(project: Project) -> None:
    """On a detached HEAD the run is refused at once, not when its change is approved."""
    project.prepare(roundtable_story(deliver="merge"))
    project.git("checkout", "-q", "--detach")
    refused = project.call("run", "Fix add", "--mode", "implementation")
    assert refused.code == 2
    assert "needs a branch to go into; start the run on one" in refused.err


def test_pruning_takes_the_working_trees_too(project: Project) -> None:
    """What was copied into a tree, and what agents left there, goes with the texts."""
    run = project.run(roundtable_story()).json()["run"]
    trees = project.state / "worktrees" / run
    assert trees.is_dir()
    assert project.call("audit", "prune", run, "--reason", "old", "--yes").code == 0
    assert not trees.exists()
    assert project.call("audit", "verify", run).code == 0
