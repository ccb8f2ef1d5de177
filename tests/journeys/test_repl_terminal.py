"""A whole task at the prompt in a real terminal: typed, completed, cancelled, gone on with, accepted, delivered."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.command_launcher import PYTHON
from tests.support.sample_project import RIGHT_CODE, Project
from tests.support.task_project import (
    DETOUR_PHASES,
    TASK_PLAN,
    configure_tasks,
    delivered_code,
    detour_crew,
    read_document,
    task_phases,
    write_crew,
)

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux, a terminal of its own")
SECONDS = 60.0


class Terminal:
    """A terminal with the prompt in it."""

    def __init__(self, project: Project, place: Path) -> None:
        self._socket = place / "tmux"
        env = [f"{name}={value}" for name, value in {**project.env, "TERM": "xterm-256color"}.items()]
        argv = ("env", "-i", *env, PYTHON, "-m", "steersman", "repl")
        size = ("-x", "150", "-y", "60")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "s", *size, "-c", str(project.repo), *argv)

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *words], capture_output=True, timeout=20, check=False
        )
        return done.stdout.decode()

    def seen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "s")

    def until(self, *words: str) -> None:
        """Waits until the prompt is there with these words in its first line."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            lines = [line for line in self.seen().splitlines() if line.strip()]
            at = next((n for n in reversed(range(len(lines))) if lines[n].startswith(">")), 0)
            if at and all(word in lines[at - 1] for word in words):
                return
            time.sleep(0.1)
        raise AssertionError(f"{words} never came:\n{self.seen()}")

    def on_screen(self, words: str) -> None:
        """Waits for words anywhere."""
        end = time.monotonic() + SECONDS
        while words not in self.seen():
            assert time.monotonic() < end, f"{words} never came:\n{self.seen()}"
            time.sleep(0.1)

    def type(self, text: str, *keys: str) -> None:
        if text:
            self.tmux("send-keys", "-t", "s", "-l", text)
        self.tmux("send-keys", "-t", "s", *(keys or ("Enter",)))

    def close(self) -> None:
        self.tmux("kill-server")


@pytest.fixture
def terminal(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    slow = {
        **detour_crew(),
        "planner": [{"mode": "proposal", "sleep": "60", "process": "yes", "reply": TASK_PLAN}],
    }
    configure_tasks(project, slow)
    opened = Terminal(project, tmp_path_factory.mktemp("t"))
    yield opened
    opened.close()


def test_a_whole_task_in_a_terminal(project: Project, terminal: Terminal) -> None:
    """No letter does anything while agents work, Ctrl-C brings the prompt back, and nothing is lost; back to codegen by tests,
    back to planning by review; what was typed before a prompt was there answers nothing; a yes, and it is delivered."""
    terminal.until("no task yet")
    terminal.type("/plan Fix add")
    terminal.on_screen("Ctrl-C stop")
    terminal.type("/abode")  # no letter does anything to a run that somebody works at
    terminal.type("", "C-c", "C-c", "C-c")
    terminal.until("planning:work (working)")
    write_crew(project, detour_crew())
    terminal.type("/next")
    terminal.until("planning:ready", "/next→plan_review")
    terminal.on_screen(
        "planning  planning_converged · planner/scripted"
    )  # the steps stay when the pane is gone
    terminal.type("/review p", "Tab")
    terminal.on_screen("> /review plan")
    terminal.type("")
    terminal.until("plan_review:ready", "/next→codegen")
    for word, phase, leads in (
        ("/codegen", "codegen", "review"),
        ("/review code", "review", "test"),
        ("/test", "test", "codegen"),
        ("/next", "codegen", "review"),
        ("/review code", "review", "planning"),
        ("/next", "planning", "plan_review"),
        ("/review plan", "plan_review", "codegen"),
        ("/codegen", "codegen", "review"),
        ("/review code", "review", "test"),
        ("/test", "test", "accept"),
    ):
        terminal.type(word)
        terminal.until(f"{phase}:ready", f"/next→{leads}")
    terminal.type("", "/next", "Enter", "/approve", "Enter", "/next --override blind", "Enter")  # in one go
    terminal.on_screen(
        "these lines were typed too early and not carried out: /approve, /next --override blind"
    )
    terminal.until("accept:decide", "/accept")
    terminal.type("/approve \\")
    terminal.type("looks right")
    terminal.on_screen("accept exactly this? [y/N]:")
    terminal.type("y")
    terminal.until("done (accepted)")
    terminal.type("", "C-d")
    run = project.only_run()
    assert task_phases(project, run) == DETOUR_PHASES
    assert delivered_code(project, run) == RIGHT_CODE
    assert read_document(project, run, "accept/decision.json")["reason"] == "looks right"
    assert read_document(project, run, "accept/decision.json")["overrides"] == []
    assert '"/plan Fix add"' in (project.state / "repl-history").read_text()
