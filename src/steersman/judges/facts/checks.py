"""Which of the commands that a project's files name are its checks."""

from collections.abc import Iterable

from steersman.contracts.commands import Argv
from steersman.contracts.planning.context import ProjectFact
from steersman.judges.ecosystems import ECOSYSTEMS
from steersman.judges.facts.finding import PROJECT_TOP

# What only wraps other runners counts where nothing else does.
_WRAPPING_RUNNERS = ("make", "just", "task", "tox", "nox", "make:check")


def select_detected_checks(facts: Iterable[ProjectFact]) -> dict[str, Argv]:
    """The checks at the top of a project, by the name of their runner."""
    test_commands = {
        fact.name: fact.argv for fact in facts if fact.kind == "test_command" and fact.root == PROJECT_TOP
    }
    preferences = (line for ecosystem in ECOSYSTEMS for line in ecosystem.preferred_runners)
    names = [next((name for name in line if name in test_commands), "") for line in preferences]
    if not any(names):
        names = [next((name for name in _WRAPPING_RUNNERS if name in test_commands), "")]
    return {name: test_commands[name] for name in names if name}
