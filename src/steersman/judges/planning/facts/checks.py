"""Which of the commands that a project's files name are its checks."""

from collections.abc import Iterable

from steersman.contracts.commands import Argv
from steersman.contracts.planning.context import Fact
from steersman.judges.planning.facts.finding import TOP

# Of each line the first that is there; what only wraps other runners counts where nothing else does.
_RUNNERS = (
    ("pytest", "django", "unittest"), ("npm", "pnpm", "yarn", "bun"), ("deno",), ("go",), ("cargo",), ("maven", "gradle", "sbt"),
    ("dotnet",), ("rspec", "rake"), ("phpunit", "composer"), ("mix",), ("swift",), ("flutter", "dart"), ("stack", "cabal"),
)  # fmt: skip
_WRAPPERS = ("make", "just", "task", "tox", "nox", "make:check")


def checks_of(facts: Iterable[Fact]) -> dict[str, Argv]:
    """The checks at the top of a project, by the name of their runner."""
    there = {fact.name: fact.argv for fact in facts if fact.kind == "test_command" and fact.root == TOP}
    found = [next((name for name in line if name in there), "") for line in _RUNNERS]
    if not any(found):
        found = [next((name for name in _WRAPPERS if name in there), "")]
    return {name: there[name] for name in found if name}
