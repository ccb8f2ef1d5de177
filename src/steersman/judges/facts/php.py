"""PHP projects: composer.json, PHPUnit, PHPStan, PHP_CodeSniffer."""

from collections.abc import Iterator

from steersman.contracts.planning.context import FactKind
from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.reading import get_manifest_table, get_manifest_text, parse_manifest_json
from steersman.judges.facts.stacks import dependency_findings
from steersman.judges.facts.tasks import task_findings

_PHP_TOOLS: dict[str, tuple[FactKind, tuple[str, ...]]] = {
    "phpunit": ("test_command", ("vendor/bin/phpunit",)),
    "phpstan": ("type_command", ("vendor/bin/phpstan", "analyse")),
    "phpcs": ("lint_command", ("vendor/bin/phpcs",)),
    "psalm": ("type_command", ("vendor/bin/psalm",)),
}


def read_composer_json(source: ProjectSource) -> Iterator[FactFinding]:
    """All that composer.json names."""
    document = parse_manifest_json(source.text)
    if get_manifest_text(document, "name"):
        yield FactFinding(
            "package",
            get_manifest_text(document, "name"),
            get_manifest_text(document, "version"),
            root=source.folder,
        ).at(source.line_of("name"))
    scripts_line = source.line_of("scripts")
    for name in get_manifest_table(document, "scripts"):
        yield from task_findings(
            source, "composer", name, ("composer", name), source.line_of(name, scripts_line)
        )
    for group in ("require", "require-dev"):
        for dependency, version in get_manifest_table(document, group).items():
            yield from dependency_findings(
                source, "php", dependency, str(version), source.line_of(dependency)
            )


def read_php_tool_file(source: ProjectSource) -> Iterator[FactFinding]:
    """A file that is there for one tool alone; the tool is named by its first word."""
    name = source.name.casefold().lstrip(".").partition(".")[0]
    kind, argv = _PHP_TOOLS[name]
    yield command_finding(source, kind, name, argv)


PHP_READERS = (
    FactReader("composer.json", read_composer_json),
    FactReader("phpunit.xml phpunit.xml.dist phpunit.dist.xml phpstan.neon phpstan.neon.dist phpstan.dist.neon "
           "phpcs.xml phpcs.xml.dist .phpcs.xml psalm.xml psalm.xml.dist", read_php_tool_file),
)  # fmt: skip
