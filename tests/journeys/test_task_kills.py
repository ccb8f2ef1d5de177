"""A task whose command is killed: the next command takes it up; the proof kills twenty times on one task's way."""

import os
import signal
import time

from tests.support.sample_project import RIGHT_CODE, Project
from tests.support.task_project import (
    TASK_PLAN,
    coder_step,
    configure_tasks,
    delivered_code,
    task_crew,
    task_phases,
    write_crew,
)

from steersman.adapters.process import program_runner
from steersman.adapters.storage.sqlite.reader import SqliteJournalReader
from steersman.adapters.storage.sqlite.store import SqliteJournal

LONG = {"process": "yes", "sleep": "600"}


def reached(project: Project, state: str) -> bool:
    """Whether the only run is there, with an agent at work."""
    stores = list(project.place.glob("state/steersman/*/store.db"))
    if not stores:
        return False
    reader = SqliteJournalReader(stores[0])
    try:
        heads = reader.heads()
        return bool(heads) and heads[0].state == state and bool(program_runner.alive(f"{heads[0].run}:"))
    except Exception:  # a store that is just being made
        return False
    finally:
        reader.close()


def killed_in(project: Project, state: str, *words: str) -> None:
    """The command, killed once an agent of this phase is at work; it would be for a long time."""
    command = project.start(*words)
    while not reached(project, state):
        assert command.poll() is None, command.communicate()
        time.sleep(0.02)
    os.kill(command.pid, signal.SIGKILL)
    command.communicate()


def test_killed_while_an_agent_works(project: Project):
    """Twice, in two phases: `tasks next` stops what is left, begins it again, and the change is delivered once."""
    configure_tasks(project, task_crew(planner=[{"mode": "proposal", "reply": TASK_PLAN, **LONG}]))
    killed_in(project, "planning", "tasks", "new", "Fix add")
    write_crew(project, task_crew(coder=[coder_step(**LONG)]))
    killed_in(project, "codegen", "tasks", "next", project.only_run())
    write_crew(project, task_crew())
    run = project.only_run()
    assert project.call("tasks", "next", run).code == 3
    assert project.call("tasks", "accept", run).code == 0
    assert task_phases(project, run) == [
        "planning", "plan_review", "codegen", "review", "test", "accept", "done",
    ]  # fmt: skip
    assert delivered_code(project, run) == RIGHT_CODE
    assert project.git("rev-list", "--count", f"main..steersman/{run}").strip() == "1"
    again = [e["retry"]["retry_reason"] for e in project.entries(run) if e["kind"] == "effect_started"]
    assert again == ["interrupted"] * 2
    assert program_runner.alive(f"{run}:") == []
    assert project.call("audit", "verify", run).code == 0


def test_killed_between_an_answer_and_its_step(project: Project):
    """The answer is kept: the same command once more goes on with it, and does not ask for it again."""
    configure_tasks(project, task_crew())
    assert project.call("tasks", "new", "Fix add", "--step").code == 3
    run = project.only_run()
    journal = SqliteJournal(project.state / "store.db")
    (gate,) = journal.gates(run)
    said = {"choice": "approve", "person": "ann", "digest": gate.digest}
    assert journal.answer(gate.id, gate.digest, said, 1) is not None
    journal.close()
    assert project.call("tasks", "next", run).code == 3
    assert task_phases(project, run) == ["planning", "plan_review"]
