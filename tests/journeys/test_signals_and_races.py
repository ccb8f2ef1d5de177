"""A person's hands on a run that works: Ctrl-C, signals, other processes, races, and words from inside a run."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from test_task_kills import reached
from tests.support.sample_project import (
    STEERSMAN_COMMAND,
    UNIT_CHECK,
    Project,
    change_story,
    roundtable_story,
)

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self"), reason="looks for processes in /proc")

SLOW = change_story(
    change_story(roundtable_story(), "crew", "reviewer", 1, "sleep", to="60"),
    "crew",
    "reviewer",
    1,
    "process",
    to="yes",
)
QUICK = ("crew", "reviewer", 1, "sleep")
LONG = 50  # seconds; the reviewer thinks for longer


@pytest.fixture
def working(project: Project) -> Iterator[tuple[Project, subprocess.Popen[bytes], str]]:
    """A run whose reviewer thinks for a minute, driven by a process of its own."""
    project.prepare(SLOW)
    driver = project.start("run", "Fix add", "--mode", "implementation")
    try:
        _until(project, "review", driver)
        assert len(_agents_until(project, 1)) == 1
        yield project, driver, project.only_run()
    finally:
        driver.terminate()  # a clean stop takes its agents with it
        driver.communicate(timeout=LONG)


def _until(project: Project, state: str, driver: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + LONG
    while time.monotonic() < end and driver.poll() is None:
        if any(h["state"] == state for h in project.call("runs", "--json").json()):
            return
        time.sleep(0.05)
    driver.kill()
    raise AssertionError(f"no run got to {state}: {project.call('runs')} {driver.communicate()}")


def _entries_until(project: Project, run: str, kind: str) -> None:
    end = time.monotonic() + LONG
    while not any(e["kind"] == kind for e in project.entries(run)):
        assert time.monotonic() < end, f"no entry is {kind}: {project.entries(run)}"
        time.sleep(0.05)


def _agents_until(project: Project, *numbers: int) -> list[int]:
    """The same when there are so many, or after a while; one that is being started is two for a moment."""
    deadline = time.monotonic() + LONG
    while len(found := _agents(project)) not in numbers and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _agents(project: Project) -> list[int]:
    """The processes that work for the project's runs, by what they were started with."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                given = file.read()
            own = b"STEERSMAN_EFFECT=" in given and f"HOME={project.place}\0".encode() in given
        except OSError:
            continue
        found += [int(name)] if own else []
    return found


def _hurry(project: Project) -> None:
    (project.place / "crew.yaml").write_text(json.dumps(change_story(SLOW, *QUICK, to="0")["crew"]))


def test_one_interrupt_lets_go_and_nothing_is_lost(
    working: tuple[Project, subprocess.Popen[bytes], str],
) -> None:
    """Ctrl-C stops cleanly, says how to go on and exits 3; what ran is shown as possibly run twice; resume ends it."""
    project, driver, run = working
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate(timeout=LONG)
    assert driver.returncode == 3
    assert f"steersman resume {run}" in out.decode()
    assert "Traceback" not in err.decode()
    assert _agents(project) == []
    assert project.entries(run)[-1]["event"] == "start_reviewer"
    _hurry(project)
    done = project.call("resume")
    assert done.code == 0, done
    twice = project.call("show", run, "--json").json()["twice"]
    assert [(t["job"], t["starts"]) for t in twice] == [("review", 2)]


def test_two_interrupts_abort(working: tuple[Project, subprocess.Popen[bytes], str]) -> None:
    """A second Ctrl-C ends the run for good, with everything it had started."""
    project, driver, run = working
    driver.send_signal(signal.SIGINT)
    assert driver.stderr is not None
    assert any(b"Ctrl-C again aborts the run" in line for line in driver.stderr)
    driver.send_signal(signal.SIGINT)
    driver.communicate(timeout=LONG)
    assert driver.returncode == 1
    assert project.call("show", run, "--json").json()["outcome"] == "canceled"
    assert _agents(project) == []


def test_a_term_signal_lets_go_at_once(working: tuple[Project, subprocess.Popen[bytes], str]) -> None:
    """SIGTERM is a clean stop, which waits for no agent."""
    project, driver, run = working
    began = time.monotonic()
    driver.terminate()
    driver.communicate(timeout=LONG)
    assert time.monotonic() - began < 30  # the reviewer thinks for a minute
    assert driver.returncode == 3
    assert _agents(project) == []
    assert project.call("audit", "verify", run).code == 0


def test_abort_from_another_process(working: tuple[Project, subprocess.Popen[bytes], str]) -> None:
    """Abort reaches a run that another process drives; its driver ends it and nothing it started is alive."""
    project, driver, run = working
    result = project.call("abort", run, "--json")
    assert result.code == 0, result
    assert "process" in result.json()["driven_by"]
    driver.communicate(timeout=LONG)
    assert driver.returncode == 1
    assert _agents(project) == []
    assert project.rows(run)[-1] == ("review", "aborted_by_operator", "finalize")


def test_one_driver_per_run(working: tuple[Project, subprocess.Popen[bytes], str]) -> None:
    """A second driver is refused and told who drives; the run goes on."""
    project, driver, run = working
    before = project.entries(run)
    result = project.call("resume", run)
    assert result.code == 4
    assert str(driver.pid) in result.err
    assert project.entries(run) == before
    assert "drives it" in project.call("why", run).out


def test_a_killed_driver_is_replaced(working: tuple[Project, subprocess.Popen[bytes], str]) -> None:
    """After kill -9 what the dead driver had started is stopped without anyone asking, and the run can go on."""
    project, driver, run = working
    driver.kill()
    driver.communicate(timeout=LONG)
    assert _agents_until(project, 0) == []
    assert "can be resumed" in project.call().out
    _hurry(project)
    done = project.call("resume", run)
    assert done.code == 0
    assert "review was interrupted and is begun again (start 2): it may have run twice" in done.out
    assert "attempt" not in done.out
    assert project.call("show", run, "--json").json()["outcome"] == "approved"
    assert _agents(project) == []
    assert project.call("audit", "verify", run).code == 0


def test_a_stopped_driver_is_taken_over(working: tuple[Project, subprocess.Popen[bytes], str]) -> None:
    """`resume --take-over` goes around an owner that is stopped; when that one wakes up its writes are void."""
    project, driver, run = working
    driver.send_signal(signal.SIGSTOP)
    try:
        assert project.call("resume", run).code == 4
        _hurry(project)
        done = project.call("resume", run, "--take-over", "--json")
        assert (done.code, done.json()["outcome"]) == (0, "approved")
    finally:
        driver.send_signal(signal.SIGCONT)
    driver.communicate(timeout=LONG)
    assert driver.returncode != 0
    assert project.call("show", run, "--json").json()["outcome"] == "approved"
    assert project.call("audit", "verify", run).code == 0


def test_watch_follows_another_process(working: tuple[Project, subprocess.Popen[bytes], str]) -> None:
    """`watch` shows what another process does and leaves the run alone."""
    project, driver, run = working
    looked = project.call("watch", run, "--for", "1")
    assert looked.code == 3
    assert "build → review" in looked.out
    watcher = project.start("watch", run)
    driver.send_signal(signal.SIGINT)
    out, _ = watcher.communicate(timeout=LONG)
    assert watcher.returncode == 3
    assert f"steersman resume {run}" in out.decode()


def test_detach_returns_when_the_driver_has_started(project: Project) -> None:
    """`run --detach` prints the run's id and leaves, as its help says; the driver ends the run, its words in a log."""
    told = " ".join(project.call("run", "--help").out.split())
    assert "drive it in the background; returns when its driver has started." in told
    assert "at once" not in told
    project.prepare(change_story(roundtable_story(), *QUICK, to="3"))
    result = project.call("run", "Fix add", "--mode", "implementation", "--detach", "--json", fresh=True)
    returned = time.time() * 1000
    assert result.code == 0, result
    run = result.json()["run"]
    assert "no driver is running" not in project.call("why", run).out
    followed = project.call("watch", run)
    assert followed.code == 0, followed
    assert project.entries(run)[-1]["at"] > returned
    log = project.read_log(str(project.state / "logs" / f"{run}.log"), f" audit verify {run}\n")
    assert "approved" in log


def test_a_gate_is_answered_once(project: Project) -> None:
    """Of several answers at the same moment one wins; the others are told who, with exit 4."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    racers = [project.start("approve", run, STEERSMAN_PERSON=name) for name in ("ben", "eve", "kim")]
    codes = []
    for racer in racers:
        _, err = racer.communicate(timeout=60)
        codes.append(racer.returncode)
        assert racer.returncode == 0 or "is answered already" in err.decode(), err
    assert sorted(codes) == [0, 4, 4]
    assert project.rows(run).count(("finalize", "task_followup_received", "intake")) == 1
    late = project.call("approve", run)
    assert late.code == 4
    assert "chose approve" in late.err


def test_an_agent_never_speaks_for_a_person(project: Project) -> None:
    """An approval from inside a run's process tree is refused, on tape, even with a cleared environment."""
    run = project.run(roundtable_story(mode="proposal")).json()["run"]
    marked = {**project.env, "STEERSMAN_EFFECT": f"{run}:2:1"}
    clean = [f"{k}={v}" for k, v in project.env.items()]
    inner = ["env", "-i", *clean, *STEERSMAN_COMMAND, "approve", run]
    said = subprocess.run(
        [sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))", *inner],
        cwd=project.repo, env=marked, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert said.returncode == 4, said
    assert "an agent never speaks for a person" in said.stderr.decode()
    refused = [e for e in project.entries(run) if e["kind"] == "refused"]
    assert [e["event"] for e in refused] == ["approve"]
    assert project.call("gates", run, "--json").json()[0]["answer"] == ""
    assert project.call("approve", run).code == 0


def test_an_owner_that_wakes_up_leaves_its_successor_alone(project: Project) -> None:
    """A driver that was taken over and wakes up finds its writes void, and stops nothing that is not its own."""
    # Slow on the changed tree alone: the base tree is checked first.
    slow = ["python3", "-c", "import calc, time; time.sleep(8 * (calc.add(2, 3) == 5))"]
    project.prepare(roundtable_story(checks={"slow": slow, "unit": UNIT_CHECK}, max_iterations=1))
    old = project.start("run", "Fix add", "--mode", "implementation")
    try:
        while not reached(project, "test"):  # its check is being run, for eight seconds only
            assert old.poll() is None, old.communicate()
            time.sleep(0.02)
        old.send_signal(signal.SIGSTOP)
        run = project.only_run()
        new = project.start("resume", run, "--take-over", "--json")
        _entries_until(project, run, "claimed")
        old.send_signal(signal.SIGCONT)
        output = old.communicate(timeout=LONG)
        assert old.returncode == 4, output
        out, err = new.communicate(timeout=LONG)
        assert new.returncode == 0, (out, err)
    finally:
        old.kill()
        old.wait()
    assert ("test", "tests_failed", "iterate") not in project.rows(run)
