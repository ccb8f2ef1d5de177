"""Bad input: each a clear error of its own exit code, without a traceback, and nothing is lost."""

import json
import os
import shutil
from pathlib import Path

import apsw
import pytest
from tests.support.cases import for_each_case
from tests.support.sample_project import (
    UNIT_CHECK,
    WRONG_CODE,
    CommandResult,
    Project,
    change_story,
    roundtable_story,
)

pytestmark = pytest.mark.usefixtures("project_snapshots")


def one_line(said: CommandResult, code: int, *parts: str) -> None:
    """An error of one line on standard error that names what is wrong and the fix."""
    assert said.code == code, said
    lines = [line for line in said.err.splitlines() if line.startswith(("steersman: ", "refused: "))]
    assert len(lines) == 1, said.err
    for part in parts:
        assert part in said.err


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_machine(project: Project) -> None:
    """The machines there are are named; nothing is created."""
    project.prepare(roundtable_story())
    one_line(project.call("run", "x", "--as", "nonsense"), 2, "no machine 'nonsense'", "roundtable")
    one_line(project.call("machine", "show", "nonsense"), 2, "roundtable")
    assert project.call("runs", "--json").json() == []


def test_an_unknown_run(project: Project) -> None:
    """Every command that takes a run says where to find one."""
    one_line(project.call("show", "261116-nothing"), 2, "nothing has been run", 'steersman run "…"')
    project.run(roundtable_story(mode="proposal"))
    for words in (
        ["show"],
        ["why"],
        ["approve"],
        ["abort"],
        ["resume"],
        ["report"],
        ["audit", "verify"],
        ["watch"],
    ):
        one_line(project.call(*words, "999999-zzzzzz"), 2, "no run '999999-zzzzzz'", "steersman runs --all")


def test_a_prefix_that_fits_two_runs(project: Project) -> None:
    """An ambiguous prefix lists what it could be."""
    first = project.run(roundtable_story(mode="proposal")).json()["run"]
    second = project.call("run", "again", "--json").json()["run"]
    one_line(project.call("show", first[:5]), 2, first, second, "write more of it")


def test_events_that_may_not_happen(project: Project) -> None:
    """Each is refused with what is legal now, and the refusal is on tape; the run is where it was."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    for event, why in (
        ("nonsense", "roundtable has no event 'nonsense'"),
        ("tests_passed", "comes from an effect, never from a person"),
        ("start_coder", "comes from the machine, never from a person"),
        ("merge_granted", "comes from an answer to a gate, never from a person"),
        ("task_received", "no row accepts task_received in finalize now"),
    ):
        data = {"task_ref": "p-x"} if event == "task_received" else {}
        result = project.call("send", run, event, "--data", json.dumps(data), "--json")
        one_line(result, 4, why, "task_followup_received, aborted_by_operator")
        told = result.json()
        assert (told["result"], told["exit_code"]) == ("refused", 4)
        refused = [e for e in project.entries(run) if e["kind"] == "refused"][-1]
        assert (refused["event"], refused["seq"]) == (event, told["seq"])
        assert "task_followup_received" in refused["legal"]
    assert project.call("approve", run).code == 0


def test_data_that_does_not_fit(project: Project) -> None:
    """What an event carries is held against its contract; what is no JSON never gets that far."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    one_line(
        project.call("send", run, "task_followup_received", "--data", "{"), 2, "--data is not a JSON object"
    )
    one_line(
        project.call("send", run, "task_followup_received", "--data", "[]"), 2, "--data is not a JSON object"
    )
    result = project.call("send", run, "task_followup_received", "--data", '{"choice": 7}')
    one_line(result, 4, "does not fit")


# ── steersman.toml and the script ───────────────────────────────────────────────────────────────────────────────────


@for_each_case(
    ("text", "parts"),
    [
        ('deliver = "nowhere"', ("line 2", "deliver")),
        ("chekcs = 1", ("line 2", "chekcs")),
        ("deliver = ", ("line 2",)),
        ("[budget]\nusd = -1", ("line 3", "budget.usd")),
    ],
)
def test_a_broken_configuration(project: Project, text: str, parts: tuple[str, ...]) -> None:
    """The error names file, line and field; nothing is created."""
    (project.repo / "steersman.toml").write_text(f"version = 1\n{text}\n")
    result = project.call("run", "x")
    assert result.code == 2, result
    for part in ("steersman.toml", *parts):
        assert part in result.err
    assert project.call("runs", "--json").json() == []
    assert project.call("doctor").code == 1


def test_nobody_plays_a_role(project: Project) -> None:
    """Without a crew the error says what to write."""
    one_line(project.call("run", "x"), 2, "no agent has the roles coder, reviewer, tester", "[roles.coder]")
    assert project.call("runs", "--json").json() == []


def test_a_script_that_is_not_there_or_broken(project: Project) -> None:
    """A crew's script is read before anything starts; its problems name the line."""
    project.prepare(roundtable_story())
    (project.place / "crew.yaml").write_text("version: 1\ncoder:\n  - sey: hello\n")
    result = project.call("run", "x")
    assert result.code == 2, result
    assert "crew.yaml, line 3" in result.err
    (project.place / "crew.yaml").unlink()
    one_line(project.call("run", "x"), 2, "cannot read the script")


GARBAGE = ["\x1b[2Japprove", '{"decision": "approve"}',  # tests/judges/test_reply.py has many more
           '{"decision":"approve","summary":"read","must_fix":[],"nice_to_have":[],"tests":[],"security":[],"nonce":"x"}']  # fmt: skip


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
def test_a_reviewer_that_answers_garbage(project: Project, text: str) -> None:
    """Garbage is asked again with its problems, a bounded number of times, and is never an approval."""
    story = change_story(
        roundtable_story(retries=1), "crew", "reviewer", to=[{"mode": "implementation", "raw": text}]
    )
    result = project.run(story)
    assert result.code == 1, result
    assert result.json()["outcome"] == "review_schema_invalid"
    asked = [e for e in project.entries(result.json()["run"]) if e["kind"] == "effect_started"]
    assert [e["retry"]["retry_reason"] for e in asked] == ["reply_invalid"]
    assert "\x1b" not in project.call("show", result.json()["run"]).out


def test_a_coder_that_edits_outside_its_tree(project: Project) -> None:
    """A script that names a path outside the tree is refused before anything starts."""
    story = change_story(roundtable_story(), "crew", "coder", 1, "edit", 0, "write", to="../../escaped.py")
    project.prepare(story)
    result = project.call("run", "x", "--mode", "implementation")
    assert result.code == 2, result
    assert not list(project.place.rglob("escaped.py"))


# ── the store ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_corrupt_database(project: Project) -> None:
    """A store that is no database is named with the next step, and left as it is."""
    project.run(roundtable_story(mode="proposal"))
    for name in ("store.db-wal", "store.db-shm"):
        (project.state / name).unlink(missing_ok=True)
    (project.state / "store.db").write_bytes(b"this is no database" * 1000)
    for words in (["runs"], ["show", "2"], ["run", "x"], ["audit", "verify"], ["resume"]):
        one_line(project.call(*words), 5, "store.db", "steersman doctor")
    assert (project.state / "store.db").read_bytes().startswith(b"this is no database")
    assert project.call("doctor").code == 5


@pytest.mark.parametrize("left", [b"", b"x"])
def test_an_emptied_database(project: Project, left: bytes) -> None:
    """A store that was cut to nothing is no new store: it is named with the next step, and left as it is."""
    project.run(roundtable_story(mode="proposal"))
    for name in ("store.db-wal", "store.db-shm"):
        (project.state / name).unlink(missing_ok=True)
    (project.state / "store.db").write_bytes(left)
    for words in (["runs"], ["run", "x"], ["audit", "verify"]):
        one_line(project.call(*words), 5, "store.db", "restore it from a backup")
    assert (project.state / "store.db").read_bytes() == left


@pytest.mark.parametrize("tables", [("head",), ("head", "entry", "snapshot")])
def test_a_deleted_run(project: Project, tables: tuple[str, ...]) -> None:
    """A run that somebody took out of the store is found by verifying every run, and by its name or a prefix."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    assert project.call("audit", "anchor", run).code == 0
    db = apsw.Connection(str(project.state / "store.db"))
    for table in tables:
        db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))  # noqa: S608  a constant
    db.close()
    for words in ([], [run], [run[:-1]]):
        result = project.call("audit", "verify", *words)
        assert (result.code, run in result.out) == (5, True), result
    assert project.call("audit", "verify", "nobody").code == 2


def test_a_deleted_store(project: Project) -> None:
    """A store that is gone while its anchors are kept is no new project: every anchored run is named as missing."""
    runs = [project.run(roundtable_story(mode="proposal")).json()["run"]]
    runs.append(project.call("run", "again", "--json").json()["run"])
    for run in runs:
        assert project.call("audit", "anchor", run).code == 0
    for left in project.state.glob("store.db*"):
        left.unlink()
    result = project.call("audit", "verify")
    assert result.code == 5
    assert all(f"run {run}: not intact, first at entry 1" in result.out for run in runs)
    assert "restore it from a backup" in result.err
    assert [v["ok"] for v in project.call("audit", "verify", "--json").json()] == [False, False]
    assert project.call("audit", "verify", runs[0]).code == 5
    assert project.call("audit", "verify", "nobody").code == 2
    doctor = project.call("doctor")
    assert doctor.code == 5
    assert all(f"FIX  run {run}: an anchor names it" in doctor.out for run in runs)
    listed = project.call("runs")
    assert "nothing has been run" not in listed.out
    assert all(run in listed.err for run in runs)
    assert not (project.state / "store.db").exists()


def test_a_run_that_only_its_anchor_remembers(project: Project) -> None:
    """A store without a run that an anchor vouches for: the listing and the doctor say so, too."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    assert project.call("audit", "anchor", run).code == 0
    assert project.call("runs").err == ""
    db = apsw.Connection(str(project.state / "store.db"))
    for table in ("head", "entry", "snapshot"):
        db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))  # noqa: S608  a constant
    db.close()
    assert f"the store lacks what anchors vouch for: {run}" in project.call("runs").err
    assert f"FIX  run {run}" in project.call("doctor").out


def test_a_junk_signing_key(project: Project) -> None:
    """An outcome that cannot be anchored has happened all the same: the command says both, and how to anchor it later."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    (project.state / "anchor.key").write_bytes(b"junk")
    result = project.call("abort", run)
    assert result.code == 0
    assert "anchor.key is no signing key any more: restore it from a backup" in result.err
    assert f"steersman audit anchor {run}" in result.err
    one_line(project.call("audit", "anchor", run), 2, "restore it from a backup")


def test_a_hand_in_the_store(project: Project) -> None:
    """An approval forged with the account's own rights is told as not on tape; a trigger is named, and exit 5 with it."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    db = apsw.Connection(str(project.state / "store.db"))
    db.execute("UPDATE gate SET answer = 'approve', person = 'Ann'")
    db.execute(
        "INSERT INTO inbox(run, kind, body, at) SELECT run, 'answer', json_object('gate', id, 'choice', 'approve', "
        "'person', 'Ann', 'digest', digest), 1 FROM gate"
    )
    result = project.call("audit", "verify", run)
    assert result.code == 0
    assert "waiting to be taken: approve by Ann, not yet on tape, so no anchor speaks for it" in result.out
    assert "an answer, event or abort that another program of this account put into the inbox" in result.out
    data = project.call("audit", "verify", "--json").json()
    assert [len(v["waiting"]) for v in data] == [1]
    assert data[0]["beyond"]
    db.execute("CREATE TRIGGER hand AFTER INSERT ON entry BEGIN DELETE FROM gate; END")
    db.close()
    result = project.call("audit", "verify")
    assert result.code == 5
    assert "there is a trigger hand" in result.out


def test_a_store_from_a_newer_version(project: Project) -> None:
    """A newer store is refused with the advice to upgrade, and left as it is."""
    project.run(roundtable_story(mode="proposal"))
    db = apsw.Connection(str(project.state / "store.db"))
    db.pragma("user_version", 99)
    db.close()
    for words in (["runs"], ["run", "x"]):
        one_line(project.call(*words), 5, "newer steersman", "upgrade")


@pytest.mark.parametrize("broken_first", [True, False])
def test_a_run_whose_tape_is_broken_does_not_stop_the_others(project: Project, broken_first: bool) -> None:
    """One broken run is put aside with its reason, wherever it stands in a list; listing and the others go on."""
    runs = [
        project.run(roundtable_story(mode="proposal")).json()["run"],
        project.call("run", "again", "--json").json()["run"],
    ]
    broken, whole = sorted(runs, reverse=not broken_first)
    db = apsw.Connection(str(project.state / "store.db"))
    db.execute("UPDATE entry SET body = ? WHERE run = ? AND seq = 3", (b"{}", broken))
    db.close()
    gates = project.call("gates")
    assert gates.code == 0, gates
    assert "(this text cannot be read: " in gates.out
    assert f"steersman approve {whole}" in gates.out
    one_line(project.call("show", broken), 5, "quarantined", f"steersman audit verify {broken}")
    assert project.call("audit", "verify", broken).code == 5
    listed = {h["run"]: h["status"] for h in project.call("runs", "--json").json()}
    assert listed == {broken: "broken", whole: "waiting for you"}
    assert project.call("approve", whole).code == 0
    assert project.call("doctor").code == 5


@pytest.mark.parametrize("words", [["show"], ["audit", "verify"], ["approve"]], ids=" ".join)
def test_a_run_that_is_whole_again(project: Project, words: list[str]) -> None:
    """Bytes put back, or a quarantine that nobody's tape deserved: whoever reads the run lifts it, says so once, and all agree."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    db = apsw.Connection(str(project.state / "store.db"))
    [(body,)] = db.execute("SELECT body FROM entry WHERE run = ? AND seq = 3", (run,))
    db.execute("UPDATE entry SET body = ? WHERE run = ? AND seq = 3", (b"{}", run))
    assert project.call("show", run).code == 5
    assert project.call("audit", "verify", run).code == 5
    assert project.call("runs", "--json").json()[0]["status"] == "broken"
    db.execute("UPDATE entry SET body = ? WHERE run = ? AND seq = 3", (body, run))
    db.close()
    told = f"run {run} was put aside (entry 3"
    first = project.call(*words, run)
    assert first.code == 0
    assert told in first.err
    assert project.call("runs", "--json").json()[0]["status"] != "broken"
    assert f"run {run}" not in project.call("doctor").out
    assert told not in project.call("show", run).err


@pytest.mark.parametrize("words", [["run", "x"], ["runs"]], ids=" ".join)
def test_a_disk_that_cannot_be_written(project: Project, words: list[str]) -> None:
    """Where no store can be made the error says so; the repository is left alone."""
    project.prepare(roundtable_story())
    for place in ("/proc/nowhere", str(project.repo / "calc.py")):
        result = project.call(*words, XDG_STATE_HOME=place)
        if words == ["runs"]:
            assert result.code == 0
        else:
            command = result.err.splitlines()[-1].split()[1:]
            one_line(project.call(*command, XDG_STATE_HOME=place), 5, "trust.json")
    assert (project.repo / "calc.py").read_text() == WRONG_CODE
    assert project.git("status", "--porcelain") == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_store_that_became_read_only(project: Project) -> None:
    """A store whose directory became read-only is named, and what is in it stays."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    project.state.chmod(0o500)
    try:
        one_line(project.call("approve", run), 5, "store.db")
    finally:
        project.state.chmod(0o700)
    assert project.call("approve", run).code == 0


# ── git ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_git(project: Project, tmp_path: Path) -> None:
    """Without git the error says what to install; what has been run can still be read."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    bare = tmp_path / "bin"
    bare.mkdir()
    one_line(project.call("run", "x", PATH=str(bare)), 2, "git was not found", "install git")
    assert project.call("show", run, PATH=str(bare)).code == 0
    assert project.call("demo", PATH=str(bare)).code == 2


def test_no_repository_and_no_commit(project: Project) -> None:
    """Where there is no repository, or no commit yet, the error says what to type."""
    project.prepare(roundtable_story())
    shutil.rmtree(project.repo / ".git")
    one_line(project.call("run", "x"), 2, "git init")
    project.git("init", "-q", "-b", "main")
    one_line(project.call("run", "x"), 2, "no commit yet")


def test_a_base_that_is_not_there(project: Project) -> None:
    """A branch that does not exist is named; nothing is created."""
    project.prepare(roundtable_story())
    file = project.repo / "steersman.toml"
    file.write_text(file.read_text().replace("version = 1", 'version = 1\nbase = "nowhere"'))
    one_line(project.call("run", "x"), 2, "no commit called 'nowhere'")
    assert project.call("runs", "--json").json() == []


def test_a_dirty_repository(project: Project) -> None:
    """Uncommitted work is no part of a run, is said to be so, and is untouched afterwards."""
    project.prepare(roundtable_story())
    (project.repo / "calc.py").write_text("half a thought")
    (project.repo / "new.py").write_text("another")
    result = project.call("run", "Fix add", "--mode", "implementation", "--json")
    assert result.code == 0, result
    assert "uncommitted changes" in result.err
    assert (project.repo / "calc.py").read_text() == "half a thought"
    run = result.json()["run"]
    assert project.git("diff", "--name-only", "main", f"steersman/{run}").split() == ["calc.py"]


# ── usage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@for_each_case(
    ("words", "part"),
    [
        (["rnu", "x"], "Did you mean `run`?"),
        (["run"], "a run needs a task"),
        (["run", ""], "needs a task"),
        (["run", "\u200b"], "needs a task"),
        (["run", "x", "--mode", "other"], "--mode"),
        (["run", "x", "--max-iterations", "0"], "--max-iterations"),
        (["audit"], "Missing command"),
        (["audit", "verfy"], "Did you mean `verify`?"),
        (["--project", "/nowhere", "runs"], "not a directory"),
        (["report"], "Missing argument"),
    ],
)
def test_wrong_usage(project: Project, words: list[str], part: str) -> None:
    """Wrong usage is exit 2, one line, with the way to help; in JSON too when asked for."""
    one_line(project.call(*words), 2, part)
    result = project.call(*words, "--json")
    assert result.code == 2
    if result.out:
        assert json.loads(result.out)["exit_code"] == 2


def test_words_that_nobody_can_see(project: Project) -> None:
    """What asks for a change or for more has words; a reason without any leaves none on the tape."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    one_line(project.call("rework", run, "\u200b"), 2, "rework needs words")
    one_line(project.call("followup", run, "\u3164"), 2, "either words or --confirm")
    assert project.call("reject", run, "--reason", "\u2060").code == 0
    assert not any("2060" in (e.get("why") or "") for e in project.entries(run))


def test_there_is_no_flag_that_approves(project: Project) -> None:
    """`run` takes no word that would answer its own gate."""
    for flag in ("--yes", "--approve", "--confirm", "--auto"):
        assert project.call("run", "x", flag).code == 2


def test_unattended_looks_first(project: Project) -> None:
    """`--unattended` refuses to start what would stop halfway, and names the gates that will wait."""
    one_line(project.call("run", "x", "--unattended"), 4, "no agent has the roles coder, reviewer, tester")
    assert project.call("runs", "--json").json() == []
    project.prepare(roundtable_story())
    result = project.call("run", "Fix add", "--unattended")
    assert result.code == 3, result
    assert "gates that will wait for you: confirm" in result.out


def test_dry_creates_nothing(project: Project) -> None:
    """`--dry` tells gates, calls, checks and budget, and leaves no trace."""
    project.prepare(roundtable_story(deliver="merge", budget={"turns": 9}, retries=1))
    data = project.call("run", "x", "--dry", "--max-iterations", "4", "--json").json()
    moves = ["moving", "recheck", "rewrite"]  # of the branch that it is to be merged into
    assert data["gates"] == ["confirm", "evidence", "merge", *moves, "budget"]
    assert (data["agent_calls"], data["agent_attempts"]) == (3 + 3 * 4, 2 * (3 + 3 * 4))
    assert data["checks"] == {"unit": ["python3", "-m", "unittest", "-q"]}
    assert data["budget"] == {"turns": 9}
    assert not (project.state / "store.db").exists()
    assert not (project.repo / ".steersman").exists()


def test_dry_says_what_decides_about_each_check(project: Project) -> None:
    """The folder of a check, an exit code that is enough, and a check that runs no tests are shown."""
    project.prepare(roundtable_story(checks={"unit": UNIT_CHECK, "lint": ["true"]}))
    toml = (project.repo / "steersman.toml").read_text()
    extra = '[checks.deep]\nrun = ["make", "test"]\ncwd = "packages/a"\nexit_code_is_enough = true\n'
    (project.repo / "steersman.toml").write_text(f'no_tests = ["lint"]\n{toml}{extra}')
    data = project.call("run", "x", "--dry", "--json").json()
    assert data["checks"] == {"unit": UNIT_CHECK, "lint": ["true"], "deep": ["make", "test"]}
    plain = {"cwd": "", "exit_code_is_enough": False, "no_tests": False}
    assert data["check_options"] == {
        "unit": plain,
        "lint": {**plain, "no_tests": True},
        "deep": {**plain, "cwd": "packages/a", "exit_code_is_enough": True},
    }
    shown = project.call("run", "x", "--dry").out
    assert (
        "    unit: python3 -m unittest -q\n"
        "    lint: true\n"
        "      runs no tests: it proves nothing by itself (no_tests)\n"
        "    deep: make test\n"
        "      in the folder packages/a\n"
        "      its exit code is enough: no test is counted (exit_code_is_enough)\n"
    ) in shown
    assert max(map(len, shown.splitlines())) <= 80
