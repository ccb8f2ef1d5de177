"""What `audit verify` rejects is not driven, and what git has beyond a tape is noticed: through the command line."""

import shutil
from pathlib import Path

import apsw
from tests.support.sample_project import Project, roundtable_story


def change(project: Project, sql: str, *values: str) -> None:
    db = apsw.Connection(str(project.state / "store.db"))
    db.execute(sql, values)
    db.close()


def restore(project: Project, kept: Path) -> None:
    state = project.state
    shutil.rmtree(state)
    shutil.copytree(kept, state, symlinks=True)


def test_a_store_that_was_rolled_back_with_its_anchors_is_noticed(project: Project, tmp_path: Path) -> None:
    """The copied store fits itself; the trees and the branch that came later are in git, and each ref is named. What a
    person has removed from git is gone, not tampered with; commits that a person adds to the branch are theirs."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    kept = tmp_path / "kept"
    shutil.copytree(project.state, kept, symlinks=True)
    assert project.call("approve", run).code == 0
    assert project.call("audit", "verify", run).code == 0

    later = tmp_path / "later"
    shutil.copytree(project.state, later, symlinks=True)
    shutil.copytree(project.repo, tmp_path / "repo later", symlinks=True)
    restore(project, kept)
    result = project.call("audit", "verify", run)
    assert result.code == 5
    for ref in (f"refs/heads/steersman/{run}", f"refs/steersman/{run}/delivery-", f"refs/steersman/{run}/implementation-1-"):  # fmt: skip
        assert ref in result.out, result.out
    assert "the store was rolled back" in result.out
    before = project.entries(run)
    for words in (("approve", run), ("resume", run)):
        stopped = project.call(*words)
        assert (stopped.code, "the store was rolled back" in stopped.err) == (5, True), stopped
    assert project.entries(run) == before
    assert project.call("resume", run, "--despite-verify", "I restored a backup").code == 0
    assert any(e.get("event") == "delivered" for e in project.entries(run))

    shutil.rmtree(project.repo)
    shutil.copytree(tmp_path / "repo later", project.repo, symlinks=True)
    restore(project, later)
    project.git("switch", "-q", f"steersman/{run}")
    (project.repo / "more.txt").write_text("mine\n")
    project.git("add", "more.txt")
    project.git("commit", "-qm", "go on from there")
    result = project.call("audit", "verify", run)
    assert (result.code, f"branch steersman/{run} is no longer at the delivered commit" in result.out) == (
        0,
        True,
    )
    project.git("switch", "-q", "main")
    project.git("branch", "-qD", f"steersman/{run}")
    result = project.call("audit", "verify", run)
    assert result.code == 0
    assert f"gone from git: the branch steersman/{run}" in result.out


def test_a_run_that_verify_rejects_is_driven_only_on_a_persons_word(project: Project) -> None:
    """A forged answer is named by `verify`, refused on tape by the driver, and the run goes on. A changed snapshot, head
    or gate is not driven over: exit 5 with the record and the way on, which is on tape with person and reason."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    forged = "INSERT INTO inbox(run, kind, body, at) SELECT run, 'answer', json_object('gate', id, 'choice', 'approve', 'digest', digest, 'person', 'Mallory'), 1 FROM gate"
    change(project, forged)
    result = project.call("audit", "verify", run)
    assert (result.code, "but its row has none" in result.out) == (5, True), result
    assert project.call("resume", run).code == 3
    refused = project.entries(run)[-1]
    assert (refused["kind"], refused["actor"]) == ("refused", "person:Mallory")
    assert "but its row has none" in refused["why"]
    assert project.call("audit", "verify", run).code == 0

    change(project, "UPDATE gate SET body=json_set(body, '$.choices', json('[\"approve\"]'))")
    change(project, "UPDATE head SET title='another' WHERE run=?", run)
    before = project.entries(run)
    for words in (("resume", run), ("approve", run)):
        stopped = project.call(*words)
        assert (stopped.code, "does not say what the tape gives" in stopped.err) == (5, True), stopped
        assert f"steersman resume {run} --despite-verify" in stopped.err
    assert project.entries(run) == before
    assert project.call("resume", run, "--despite-verify", " ").code == 2
    went = project.call("resume", run, "--despite-verify", "the disk was full")
    assert went.code == 3, went
    note = next(e for e in project.entries(run) if e.get("event") == "driven_despite_verify")
    assert (note["actor"], note["why"]) == ("person:ann", "the disk was full")
    assert "by ann: the disk was full" in project.call("show", run).out
    assert project.call("approve", run).code == 0


def test_a_ref_of_ours_that_the_tape_has_not_made_is_a_finding(project: Project) -> None:
    """A pin that was moved, or that no entry can have made, is named. One that is gone is told, and is no finding."""
    run = project.run(roundtable_story()).json()["run"]
    under = f"refs/steersman/{run}"
    listed = project.git("for-each-ref", "--format=%(refname) %(objectname)", f"{under}/")
    refs = dict(line.split() for line in listed.splitlines())
    delivery, built = (next(r for r in refs if kind in r) for kind in ("/delivery-", "/implementation-"))
    base, asked = project.git("rev-parse", "main").strip(), built.rpartition("-")[2]
    tree = project.git("rev-parse", f"{refs[built]}^{{tree}}").strip()
    stray = project.git("commit-tree", "-m", "stray", tree).strip()
    assert project.call("audit", "verify", run).code == 0

    start = f"{under}/start-{base[:16]}"
    moved = [(ref, to) for ref in (delivery, built, start) for to in (stray, tree)]
    names = (f"bogus-{asked}", f"implementation-1-2-{asked}", f"implementation-2-1-{asked}", "implementation-1-1-1",
             f"rebased-{asked}", f"start-{stray[:16]}", "start-", "delivery-0123456789abcdef")  # fmt: skip
    for ref, to in (*moved, *((f"{under}/{name}", stray) for name in names), (f"{under}/delivery-0", refs[delivery])):  # fmt: skip
        project.git("update-ref", ref, to)
        result = project.call("audit", "verify", run)
        assert (result.code, f"{ref} names {to[:12]}, which this tape has not made" in result.out) == (5, True), (ref, result)  # fmt: skip
        project.git("update-ref", *((ref, refs[ref]) if ref in refs else ("-d", ref)))
    project.git("update-ref", "-d", built)
    project.git("update-ref", "-d", f"{under}/start-{refs[built][:16]}")
    result = project.call("audit", "verify", run)
    assert (result.code, f"gone from git: the tree {refs[built][:12]} that entry" in result.out) == (
        0,
        True,
    ), result


def test_a_run_with_a_changed_text_is_driven_only_on_a_persons_word(project: Project) -> None:
    """A text that is not what its name says stops the run as `audit verify` does; an accepted one stays accepted."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    ref = next(e["data"]["prompt_ref"] for e in project.entries(run) if "prompt_ref" in (e.get("data") or {}))
    change(project, "UPDATE payload SET body=CAST(upper(CAST(body AS TEXT)) AS BLOB) WHERE ref=?", ref)
    stopped = project.call("approve", run)
    assert (stopped.code, "does not have the digest in its name" in stopped.err) == (5, True), stopped
    assert project.call("resume", run, "--despite-verify", "nobody reads it again").code == 0
    assert any(e.get("event") == "delivered" for e in project.entries(run))
    assert project.call("audit", "verify", run).code == 5
