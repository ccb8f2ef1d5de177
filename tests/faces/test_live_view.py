"""The live view in a real terminal: what it shows, and its keys."""

import json
import os
import pty
import select
import time
from pathlib import Path

import pytest
from tests.support.sample_project import (
    STEERSMAN_COMMAND,
    UNIT_TESTS,
    WRONG_CODE,
    Project,
    change_story,
    roundtable_story,
)

SLOW = change_story(
    change_story(roundtable_story(), "crew", "reviewer", 1, "sleep", to="60"),
    "crew",
    "reviewer",
    1,
    "process",
    to="yes",
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose reviewer takes a minute."""
    template = tmp_path / "template"
    template.mkdir()
    (template / "calc.py").write_text(WRONG_CODE)
    (template / "test_calc.py").write_text(UNIT_TESTS)
    made = Project(tmp_path, template)
    made.git("init", "-q", "-b", "main")
    made.prepare(SLOW)
    return made


def _terminal(project: Project, until: str, key: bytes, *words: str) -> tuple[int, str]:
    """Runs a command in a terminal, presses a key when `until` is to be seen, and gives exit code and screen."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(project.repo)
        env = {**project.env, "TERM": "xterm-256color", "COLUMNS": "110", "LINES": "40"}
        os.execve(STEERSMAN_COMMAND[0], [*STEERSMAN_COMMAND, *words], env)  # noqa: S606  the child of a pty
    seen, pressed, end = b"", False, time.monotonic() + 90
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.05)[0]:
            try:
                part = os.read(fd, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
        if not pressed and until in seen.decode("utf-8", "replace"):
            os.write(fd, key)
            pressed = True
    else:
        os.kill(pid, 9)
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return os.waitstatus_to_exitcode(status), seen.decode("utf-8", "replace")


RUN = ("run", "Fix add", "--mode", "implementation")


def test_the_pane_shows_who_works_and_a_aborts(project: Project) -> None:
    """State, round, worker, budget, findings and keys are in sight; `a` ends the run."""
    code, seen = _terminal(project, "reviewer · review", b"a", *RUN)
    assert code == 1, seen
    for part in (
        "review for",
        "round 1 of 3",
        "reviewer · review",
        "turns: 1",
        "0 open, 0 fixed",
        "d detach",
    ):
        assert part in seen
    assert project.call("runs", "--json").json()[0]["outcome"] == "canceled"


def test_ctrl_c_in_the_terminal_lets_go(project: Project) -> None:
    """The terminal's own Ctrl-C reaches nothing but the driver: the run is let go whole."""
    code, seen = _terminal(project, "reviewer · review", b"\x03", *RUN)
    assert code == 3, seen
    assert "nothing is lost" in seen
    (run,) = project.call("runs", "--json").json()
    assert (run["status"], run["state"]) == ("working", "review")


def test_d_leaves_the_run_to_the_background(project: Project) -> None:
    """`d` hands the run to a driver of its own, which a watcher in another terminal can follow."""
    code, seen = _terminal(project, "reviewer · review", b"d", *RUN)
    assert code == 0, seen
    run = project.only_run()
    try:
        code, seen = _terminal(project, "looks away", b"\x03", "watch", run)
        assert code == 0, seen
        assert "reviewer · review" in seen
    finally:
        assert project.call("abort", run).code == 0


def test_outside_text_stays_text(project: Project) -> None:
    """A task with escapes and markup is shown as it is written, not obeyed."""
    story = change_story(SLOW, "crew", "reviewer", 1, "sleep", to="0")
    (project.place / "crew.yaml").write_text(json.dumps(story["crew"]))
    task = "[red]x[/red]\x1b]0;owned\x07"
    code, seen = _terminal(project, "never", b"", "run", task, "--mode", "implementation")
    assert code == 0, seen
    assert "\x1b]0;owned" not in seen
    assert "[red]x[/red]\\x1b]0;owned" in seen
