"""A delivery that fails: it is said, it is no success to a script, and it can be tried again."""

import os
import subprocess

import pytest
from tests.support.sample_project import (
    RIGHT_CODE,
    STEERSMAN_COMMAND,
    UNIT_TESTS,
    Project,
    roundtable_crew,
    roundtable_story,
)

pytestmark = pytest.mark.usefixtures("project_snapshots")


def test_a_failed_delivery_is_told_and_repeated(project: Project) -> None:
    """With a branch in its way the run ends with 1 and says what to type; out of its way, that delivers."""
    project.prepare(roundtable_story())
    project.git("branch", "steersman")
    first = project.call("run", "Fix add", "--mode", "implementation")
    run = project.only_run()
    again = f"steersman send {run} delivery_requested"
    assert first.code == 1, first
    assert "the delivery failed" in first.out
    assert again in first.out
    why = project.call("why", run).out
    assert "the delivery failed: " in why
    assert again in why

    still = project.call("send", run, "delivery_requested", "--json")
    assert (still.code, still.json()["exit_code"]) == (1, 1)
    project.git("branch", "-D", "steersman")
    done = project.call("send", run, "delivery_requested")
    assert done.code == 0, done
    assert f"delivered as steersman/{run}" in done.out
    assert "delivery failed" not in project.call("why", run).out
    assert "a + b" in project.git("show", f"steersman/{run}:calc.py")
    assert project.call("send", run, "delivery_requested").code == 4
    assert project.call("audit", "verify", run).code == 0


def test_a_branch_that_moves_after_the_approval_voids_it(project: Project) -> None:
    """The change is checked on the branch as it is now, and the gate of the merge is asked once more, for that tree."""
    run = project.run(roundtable_story(deliver="merge")).json()["run"]
    (project.repo / "other.txt").write_text("x = 1\n")
    project.git("add", "-A")
    project.git("commit", "-qam", "meanwhile")
    asked = project.call("approve", run)
    assert (asked.code, "has moved" in asked.out) == (3, True)
    assert "a + b" not in project.git("show", "main:calc.py")
    assert (
        project.call("approve", run).code == 3
    )  # checked again on the new base: the merge is asked for again
    assert project.call("approve", run).code == 0
    assert "a + b" in project.git("show", "main:calc.py")
    assert project.git("show", "main:other.txt").strip() == "x = 1"
    tree = project.git("log", "-1", "--format=%T %(trailers:key=Steersman-Tree,valueonly)", "main").split()
    assert tree[0] == tree[1]


@pytest.mark.parametrize("mode", ["proposal", "implementation"])
def test_commits_that_were_reset_away_do_not_come_back(project: Project, mode: str) -> None:
    """The gate lists them, whether they went before the work or before the merge; the change alone goes on."""
    project.prepare(roundtable_story(deliver="merge"))
    for name in ("kept", "regretted"):
        (project.repo / f"{name}.txt").write_text("x\n")
        project.git("add", "-A")
        project.git("commit", "-qm", f"Add what is {name}")
    gone = project.git("rev-parse", "main").strip()
    run = project.call("run", "Fix add", "--mode", mode, "--json").json()["run"]
    project.git("reset", "-q", "--hard", "HEAD~1")
    asked = project.call("approve", run)
    if mode == "implementation":  # the approval of the merge is void
        assert (asked.code, "has moved" in asked.out) == (3, True)
        asked = project.call("approve", run)
    assert asked.code == 3
    shown = project.call("gates", run).out
    assert "The branch no longer has commits that this change was made on." in shown
    assert f"│ {gone[:7]} Add what is regretted\n" in shown
    assert "Add what is kept" not in shown
    assert project.git("log", "-1", "--format=%s", "main").strip() == "Add what is kept"

    assert project.call("approve", run).code == 3  # it was checked there; now the merge is asked for
    assert project.call("gates", run, "--json").json()[0]["job"] == "merge"
    assert project.call("approve", run).code == 0
    assert "a + b" in project.git("show", "main:calc.py")
    assert project.git("ls-tree", "--name-only", "main", "kept.txt", "regretted.txt").split() == ["kept.txt"]
    assert gone not in project.git("rev-list", "main").split()
    assert (project.repo / "kept.txt").exists()
    assert not (project.repo / "regretted.txt").exists()
    assert project.git("status", "--porcelain", "--untracked-files=no") == ""


def test_the_report_names_the_delivered_tree_and_who_let_it_through(project: Project) -> None:
    """Confirmation, evidence gate and merge gate, each with who and what of; variants stand apart from the evidence.
    The evidence gate is answered by its own verb with its digest alone; the others are not answered by that."""
    more = UNIT_TESTS + "\n    def test_more(self):\n        self.assertEqual(add(1, 1), 2)\n"
    edits = {"calc.py": RIGHT_CODE, "test_calc.py": more, "pytest.ini": "[pytest]\n"}
    coder = [
        {"mode": "proposal", "say": "I will."},
        {"mode": "implementation", "say": "done", "edit": [{"write": n, "text": t} for n, t in edits.items()]},
    ]  # fmt: skip
    run = project.run(
        roundtable_story(mode="proposal", deliver="merge", crew=roundtable_crew(coder=coder))
    ).json()["run"]
    asked = [project.call("gates", run, "--json").json()[0]["digest"]]
    assert project.call("approve", run, STEERSMAN_PERSON="bea").code == 3
    asked.append(project.call("gates", run, "--json").json()[0]["digest"])
    line = f"accept-evidence {run} {asked[-1][:8]}"
    for words in (("approve", run), ("accept-evidence", run), ("accept-evidence", run, "12345678"), ("accept-evidence", run, asked[-1][:7]), ("answer", run, "approve", "--digest", asked[-1])):  # fmt: skip
        refused = project.call(*words)
        assert (refused.code, line in refused.err) == (4, True), (words, refused)
        assert "pytest.ini: pytest loads it." in refused.err
    shown = project.call("show", run).out
    assert "pytest.ini: pytest loads it." in shown
    assert line in shown
    accepted = project.call("accept-evidence", run, asked[-1][:8], STEERSMAN_PERSON="cleo")
    gate = "cleo: accept-evidence · gate "
    assert (accepted.code, gate in accepted.out) == (3, True), accepted
    assert " · pytest.ini: pytest loads it." in accepted.out
    refused = project.call("accept-evidence", run, asked[-1][:8])
    assert (refused.code, f"approve {run}" in refused.err) == (4, True)
    asked.append(project.call("gates", run, "--json").json()[0]["digest"])
    assert project.call("approve", run, STEERSMAN_PERSON="dora").code == 0
    output = project.call("report", run).out
    tree = project.git("rev-parse", "main^{tree}").strip()
    assert asked[1:] == [tree, tree]
    delivered = output.split("## Delivered\n")[1].split("\n## ")[0]
    assert f"tree `{tree}`" in delivered
    for person, what, digest in zip(
        ("bea", "cleo", "dora"),
        ("confirmed the proposal", "accepted the evidence at its gate", "approved the merge at its gate"),
        asked,
        strict=True,
    ):
        assert f"| {person} | {what} | `{digest}` |" in delivered, delivered
    evidence = output.split("## Evidence\n")[1].split("\n## ")[0]
    own, _, variants = evidence.partition("### Variants of the tree\n")
    assert f"on tree `{tree}`, which was delivered." in own
    assert own.count("| unit | passed |") == 1
    assert "old tests" not in own
    assert "| unit \\(old tests\\) | passed | 0 | 1 |" in variants


def test_the_report_says_where_nobody_was_asked(project: Project) -> None:
    """A branch of its own, and no gate on the way: the report says so in place of a name."""
    run = project.run(roundtable_story()).json()["run"]
    output = project.call("report", run).out
    assert "The checks passed, and no gate asked a person." in output
    assert "Variants of the tree" not in output


def test_a_declined_merge_is_no_failure(project: Project) -> None:
    """Who keeps the change on its branch has had their way: exit code 0."""
    run = project.run(roundtable_story(deliver="merge")).json()["run"]
    assert project.call("answer", run, "reject").code == 0


def test_an_export_that_nobody_reads_ends_quietly(project: Project) -> None:
    """`audit export RUN | head -c 10`: no word on stderr, exit code 0."""
    run = project.run(roundtable_story()).json()["run"]
    reads, writes = os.pipe()
    os.close(reads)
    try:
        words = [*STEERSMAN_COMMAND, "audit", "export", run]
        done = subprocess.run(
            words, cwd=project.repo, env=project.env, stdout=writes, stderr=subprocess.PIPE, check=False, timeout=60
        )  # fmt: skip
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (0, b"")
