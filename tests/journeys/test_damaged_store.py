"""A store that can be opened and does not hold what it should: exit 5 with the next step, and the other runs go on."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
from tests.support.command_launcher import CommandCall
from tests.support.sample_project import Project, roundtable_story

LISTING = ("", "runs", "gates")
OF_A_RUN = ("show", "why", "report", "audit verify", "audit replay", "audit export", "resume", "abort")

WHOLE_STORE = {
    "an older version": "PRAGMA user_version=2", "no version": "PRAGMA user_version=0",
    "no head": "DROP TABLE head", "no inbox": "DROP TABLE inbox", "no budget": "DROP TABLE budget",
    "another name": "ALTER TABLE quarantine RENAME TO q2",
}  # fmt: skip
ONE_RUN = {
    "a gate": "UPDATE gate SET body='{{' WHERE run=?",
    "a gate's digest": "UPDATE gate SET digest=CAST(x'ff00' AS TEXT) WHERE run=?",
    "numbers": "UPDATE head SET seq='abc', created='x', at='y' WHERE run=?",
    "a title": "UPDATE head SET title=x'ff00', status='zzz', state='nowhere' WHERE run=?",
    "a title's text": "UPDATE head SET title=CAST(x'ff00' AS TEXT) WHERE run=?",
    "an inbox": "INSERT INTO inbox(run, kind, body, at) VALUES(?, 'event', 'junk', 1)",
    "an empty inbox item": "INSERT INTO inbox(run, kind, body, at) VALUES(?, 'event', '{}', 1)",
    "a budget": "INSERT INTO budget VALUES(?, 'tokens', 'x', 0, NULL)"
    " ON CONFLICT(run, name) DO UPDATE SET spent='x'",
}
UNLISTED = (
    "an empty inbox item",
    "a budget",
)  # a list reads neither: who drives the run or asks the doctor is told


class Fleet(NamedTuple):
    """A project with two runs that wait; the state directory is as it was for every case."""

    project: Project
    damaged: str
    whole: str

    def damage(self, sql: str) -> None:
        db = apsw.Connection(str(self.project.state / "store.db"))
        db.execute(sql, (self.damaged,) if "?" in sql else ())
        db.close()

    def speak(self, *commands: str) -> dict[str, tuple[int, str, str]]:
        """What each command says, one after the other."""
        said = {}
        for command in commands:
            done = self.project.launch(CommandCall(command.split(), self.project.repo, self.project.env))
            said[command] = (done.returncode, done.stdout.decode(), done.stderr.decode())
        for command, (code, _, err) in said.items():
            assert code != 70, (command, err)
            assert "Traceback" not in err, (command, err)
        return said

    def of(self, run: str) -> tuple[str, ...]:
        return tuple(f"{command} {run}" for command in OF_A_RUN)


@pytest.fixture(scope="module")
def made(projects: Callable[[], Project], tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, Path]:
    project = projects()
    damaged = project.run(roundtable_story(mode="proposal")).json()["run"]
    whole = project.call("run", "again", "--mode", "proposal", "--json").json()["run"]
    kept = tmp_path_factory.mktemp("kept") / "state"
    shutil.copytree(project.state, kept, symlinks=True)
    return Fleet(project, damaged, whole), kept


@pytest.fixture
def fleet(made: tuple[Fleet, Path]) -> Fleet:
    fleet, kept = made
    state = fleet.project.state
    shutil.rmtree(state)
    shutil.copytree(kept, state, symlinks=True)
    return fleet


@pytest.mark.parametrize("sql", WHOLE_STORE.values(), ids=WHOLE_STORE.keys())
def test_tables_that_are_not_what_they_should_be(fleet: Fleet, sql: str) -> None:
    """No command begins its work; each names the store and the next step, the doctor included."""
    fleet.damage(sql)
    results = fleet.speak(*LISTING, "doctor", *fleet.of(fleet.damaged))
    for command, (code, out, err) in results.items():
        assert code == 5, (command, out, err)
        assert "store.db" in out + err, command
        assert "restore it from a backup" in out + err, command
    assert "FIX  store:" in results["doctor"][1]


@pytest.mark.parametrize("what", ONE_RUN)
def test_one_run_that_cannot_be_read(fleet: Fleet, what: str) -> None:
    """The run is named with the next step; lists and the doctor go on, and so does the other run."""
    fleet.damage(ONE_RUN[what])
    goes_on = f"approve {fleet.whole}" if what == "a gate" else f"why {fleet.whole}"
    results = fleet.speak(*LISTING, "doctor", *fleet.of(fleet.damaged), f"show {fleet.whole}", goes_on)
    for command in LISTING:
        code, out, err = results[command]
        assert code == 0, (command, err)
        assert fleet.whole in out, command
    (line,) = [line for line in results["runs"][1].splitlines() if line.startswith(fleet.damaged)]
    assert (line.split()[1] == "broken") is (what not in UNLISTED)
    assert results["doctor"][0] == 5
    assert f"FIX  run {fleet.damaged}:" in results["doctor"][1]
    refused = [
        err for command in fleet.of(fleet.damaged) if results[command][0] == 5 for err in results[command][2:]
    ]
    assert any(f"run {fleet.damaged}" in err and f"audit verify {fleet.damaged}" in err for err in refused), (
        results
    )
    assert results[f"resume {fleet.damaged}"][0] == 5, results
    assert results[f"show {fleet.whole}"][0] == results[goes_on][0] == 0


def test_a_definition_that_cannot_be_read(fleet: Fleet) -> None:
    """What decided a run is part of its evidence: replay and export say that it is gone, the doctor finds it."""
    fleet.damage("UPDATE definition SET body='junk'")
    results = fleet.speak(f"audit replay {fleet.damaged}", f"audit export {fleet.damaged}", "doctor", "runs")
    assert [code for code, _, _ in results.values()] == [5, 5, 5, 0], results
    assert "FIX" in results["doctor"][1]


def test_a_newer_store(fleet: Fleet) -> None:
    """The one thing that helps is a newer steersman: no backup is asked for."""
    fleet.damage("PRAGMA user_version=99")
    results = fleet.speak("runs", "doctor")
    for code, out, err in results.values():
        assert code == 5
        assert "upgrade steersman" in out + err
        assert "backup" not in out + err
