"""A delivery that fails: it is said, it is no success to a script, and it can be tried again."""

import os
import subprocess

from voyage import STEERSMAN, Project, story


def test_a_failed_delivery_is_told_and_repeated(project: Project) -> None:
    """With a branch in its way the run ends with 1 and says what to type; out of its way, that delivers."""
    project.prepare(story())
    project.git("branch", "steersman")
    first = project.call("run", "Fix add", "--mode", "implementation")
    run = project.only()
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
    run = project.run(story(deliver="merge")).json()["run"]
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


def test_a_declined_merge_is_no_failure(project: Project) -> None:
    """Who keeps the change on its branch has had their way: exit code 0."""
    run = project.run(story(deliver="merge")).json()["run"]
    assert project.call("answer", run, "reject").code == 0


def test_an_export_that_nobody_reads_ends_quietly(project: Project) -> None:
    """`audit export RUN | head -c 10`: no word on stderr, exit code 0."""
    run = project.run(story()).json()["run"]
    reads, writes = os.pipe()
    os.close(reads)
    try:
        words = [*STEERSMAN, "audit", "export", run]
        done = subprocess.run(
            words, cwd=project.repo, env=project.env, stdout=writes, stderr=subprocess.PIPE, check=False, timeout=60
        )  # fmt: skip
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (0, b"")
