"""PHP projects: composer.json, PHPUnit, PHPStan, PHP_CodeSniffer."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.reading import json_of, table, text_at
from steersman.judges.planning.facts.stacks import depends
from steersman.judges.planning.facts.tasks import task

_TOOLS: dict[str, tuple[FactKind, tuple[str, ...]]] = {
    "phpunit": ("test_command", ("vendor/bin/phpunit",)),
    "phpstan": ("type_command", ("vendor/bin/phpstan", "analyse")),
    "phpcs": ("lint_command", ("vendor/bin/phpcs",)),
    "psalm": ("type_command", ("vendor/bin/psalm",)),
}


def composer(source: Source) -> Iterator[Finding]:
    """All that composer.json names."""
    whole = json_of(source.text)
    if text_at(whole, "name"):
        yield Finding("package", text_at(whole, "name"), text_at(whole, "version"), root=source.folder).at(
            source.line_of("name")
        )
    after = source.line_of("scripts")
    for name in table(whole, "scripts"):
        yield from task(source, "composer", name, ("composer", name), source.line_of(name, after))
    for group in ("require", "require-dev"):
        for dependency, wanted in table(whole, group).items():
            yield from depends(source, "php", dependency, str(wanted), source.line_of(dependency))


def own_file(source: Source) -> Iterator[Finding]:
    """A file that is there for one tool alone; the tool is named by its first word."""
    name = source.name.casefold().lstrip(".").partition(".")[0]
    kind, argv = _TOOLS[name]
    yield command(source, kind, name, argv)


READERS = (
    Reader("composer.json", composer),
    Reader("phpunit.xml phpunit.xml.dist phpunit.dist.xml phpstan.neon phpstan.neon.dist phpstan.dist.neon "
           "phpcs.xml phpcs.xml.dist .phpcs.xml psalm.xml psalm.xml.dist", own_file),
)  # fmt: skip
