"""What a project is, in a few plain sentences: the first thing that is remembered of it."""

from collections.abc import Iterator

from steersman.contracts.planning.context import Fact, FactKind, FactPack
from steersman.judges.planning.facts.checks import checks_of
from steersman.judges.planning.facts.finding import TOP
from steersman.judges.text import clip

_NAMED: tuple[tuple[FactKind, str], ...] = (
    ("package", "Its packages"),
    ("framework", "It uses"),
    ("database", "It keeps data with"),
    ("ci", "It is checked by"),
    ("container", "Its containers"),
    ("infrastructure", "Its infrastructure"),
    ("ownership", "Who owns what stands in"),
    ("licence", "Its licence"),
)
_MOST = 8  # names in one sentence


def about(pack: FactPack) -> str:
    """The sentences; also a project of which nothing is known has one."""
    return clip(" ".join(_sentences(pack)), 2_000)


def _sentences(pack: FactPack) -> Iterator[str]:
    languages = sorted((f for f in pack.facts if f.kind == "language"), key=_size)
    said = ", ".join(f"{f.name} ({f.value})" for f in languages[:_MOST])
    yield (
        f"{pack.project_id} is written in {said}." if said else f"Of {pack.project_id} no language is known."
    )
    for kind, words in _NAMED:
        names = list(dict.fromkeys(f.name for f in pack.facts if f.kind == kind))
        if names:
            more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
            yield f"{words}: {', '.join(names[:_MOST])}{more}."
    checks = checks_of(pack.facts)
    if checks:
        yield f"It is tested by: {'; '.join(' '.join(argv) for argv in checks.values())}."
    built = [" ".join(f.argv) for f in pack.facts if f.kind == "build_command" and f.root == TOP]
    if built:
        yield f"It is built by: {'; '.join(built[:_MOST])}."


def _size(language: Fact) -> tuple[int, str]:
    """The most files first."""
    return -int(language.value.partition(" ")[0]), language.name
