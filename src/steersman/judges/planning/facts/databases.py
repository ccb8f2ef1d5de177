"""Databases: tools that change a schema step by step, and the steps themselves."""

from collections.abc import Iterator

from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source, below

_KNOWN = {"alembic.ini": "alembic", "knexfile.js": "knex", "knexfile.ts": "knex", "diesel.toml": "diesel",
          "drizzle.config.ts": "drizzle", "drizzle.config.js": "drizzle", "sqitch.conf": "sqitch", "dbt_project.yml": "dbt",
          "liquibase.properties": "liquibase", "flyway.conf": "flyway", "flyway.toml": "flyway", "schema.rb": "active-record",
          "ormconfig.json": "typeorm"}  # fmt: skip
_PROVIDER = later(r"""\s{0,20}provider\s{0,20}=\s{0,20}["'](\w{1,40})["']""")
_DJANGO = later(r"class Migration\(migrations\.Migration\)")


def known(source: Source) -> Iterator[Finding]:
    """A file that one tool alone has."""
    yield Finding("database", _KNOWN[source.name.casefold()], root=source.folder)


def prisma(source: Source) -> Iterator[Finding]:
    """Which database a schema of Prisma is for: the provider of its data source."""
    after = source.line_with("datasource")
    for number, line in enumerate(source.lines, 1):
        found = _PROVIDER.match(line[:400])
        if found is not None and 0 < after < number:
            yield Finding("database", "prisma", found[1], root=source.folder).at(number)
            return


def steps(source: Source) -> Iterator[Finding]:
    """A step in SQL, in a folder of steps."""
    if any(line.strip() for line in source.lines):
        yield Finding("database", "migrations", "sql", root=source.folder)


def django(source: Source) -> Iterator[Finding]:
    """The first step of a Django application."""
    for number, line in enumerate(source.lines, 1):
        if _DJANGO.match(line):
            yield Finding("database", "migrations", "django", root=source.folder).at(number)


def rails(source: Source) -> Iterator[Finding]:
    """A step of Active Record."""
    line = source.line_with("ActiveRecord::Migration")
    if line:
        yield Finding("database", "migrations", "active-record", root=source.folder).at(line)


READERS = (
    Reader(" ".join(_KNOWN), known),
    Reader("schema.prisma", prisma),
    Reader("*.sql", steps, below("migrations", "migration", "migrate")),
    Reader("0001_*.py", django, below("migrations")),
    Reader("*.rb", rails, below("migrate")),
)
