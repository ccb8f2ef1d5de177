"""The checks of a project by its facts, and a few sentences that describe the project: the first memory of it."""

from collections.abc import Iterable, Iterator

from steersman.contracts.commands import Argv
from steersman.contracts.planning.context import FactKind, FactPack, ProjectFact
from steersman.judges.ecosystems import ECOSYSTEMS
from steersman.judges.facts.finding import PROJECT_TOP
from steersman.judges.text import clip_text

_SENTENCE_OPENINGS: tuple[tuple[FactKind, str], ...] = (
    ("package", "Its packages"),
    ("framework", "It uses"),
    ("database", "It keeps data with"),
    ("ci", "It is checked by"),
    ("container", "Its containers"),
    ("infrastructure", "Its infrastructure"),
    ("ownership", "Who owns what stands in"),
    ("licence", "Its licence"),
)
_MAX_NAMES_PER_SENTENCE = 8  # names in one sentence


def summarize_project(pack: FactPack) -> str:
    """The sentences; also a project of which nothing is known has one."""
    return clip_text(" ".join(_project_sentences(pack)), 2_000)


def _project_sentences(pack: FactPack) -> Iterator[str]:
    languages = sorted((f for f in pack.facts if f.kind == "language"), key=_language_sort_key)
    language_names = ", ".join(f"{f.name} ({f.value})" for f in languages[:_MAX_NAMES_PER_SENTENCE])
    yield (
        f"{pack.project_id} is written in {language_names}."
        if language_names
        else f"Of {pack.project_id} no language is known."
    )
    for kind, words in _SENTENCE_OPENINGS:
        names = list(dict.fromkeys(f.name for f in pack.facts if f.kind == kind))
        if names:
            remainder = (
                f" and {len(names) - _MAX_NAMES_PER_SENTENCE} more"
                if len(names) > _MAX_NAMES_PER_SENTENCE
                else ""
            )
            yield f"{words}: {', '.join(names[:_MAX_NAMES_PER_SENTENCE])}{remainder}."
    checks = select_detected_checks(pack.facts)
    if checks:
        yield f"It is tested by: {'; '.join(' '.join(argv) for argv in checks.values())}."
    commands = [" ".join(f.argv) for f in pack.facts if f.kind == "build_command" and f.root == PROJECT_TOP]
    if commands:
        yield f"It is built by: {'; '.join(commands[:_MAX_NAMES_PER_SENTENCE])}."


def _language_sort_key(language: ProjectFact) -> tuple[int, str]:
    """The most files first."""
    return -int(language.value.partition(" ")[0]), language.name


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
