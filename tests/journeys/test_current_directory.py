"""What a command leaves in the directory it is called in: nothing, wherever that is."""

import os
from pathlib import Path

import pytest
from tests.support.command_launcher import CommandCall
from tests.support.sample_project import Project

COMMANDS = (
    "", "--help", "--version", "nonsense", "doctor", "runs --json", "gates", "show", "why", "report", "resume", "tasks list", "machine list",
    "machine check coordinator", "machine show roundtable", "registry list", "memory list", "chat threads", "check command pytest", "audit verify",
    "intent check none.json", "plan none.json", "run x",
)  # fmt: skip


def list_files(folder: Path) -> list[str]:
    """Every path below a folder, but for what git keeps for itself."""
    return sorted(str(path) for path in folder.rglob("*") if ".git" not in path.relative_to(folder).parts)


@pytest.mark.parametrize("inside", ["an empty folder", "a repository"])
def test_commands_leave_nothing_in_the_current_directory(project: Project, inside: str) -> None:
    """Before a project is set up every command only looks, answers or refuses."""
    place = project.repo if inside == "a repository" else project.place / "empty"
    place.mkdir(exist_ok=True)
    before, of_git = list_files(place), os.listdir(project.repo / ".git")
    for words in COMMANDS:
        done = project.launch(CommandCall(words.split(), place, project.env))
        assert b"Traceback" not in done.stderr, done
        assert list_files(place) == before, words
    assert os.listdir(project.repo / ".git") == of_git
