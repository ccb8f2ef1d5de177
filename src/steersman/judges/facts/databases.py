"""Databases: tools that change a schema step by step, and the steps themselves."""

from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, is_anywhere_below
from steersman.judges.patterns import lazy_pattern

_DATABASE_TOOL_FILES = {"alembic.ini": "alembic", "knexfile.js": "knex", "knexfile.ts": "knex", "diesel.toml": "diesel",
          "drizzle.config.ts": "drizzle", "drizzle.config.js": "drizzle", "sqitch.conf": "sqitch", "dbt_project.yml": "dbt",
          "liquibase.properties": "liquibase", "flyway.conf": "flyway", "flyway.toml": "flyway", "schema.rb": "active-record",
          "ormconfig.json": "typeorm"}  # fmt: skip
_PRISMA_PROVIDER = lazy_pattern(r"""\s{0,20}provider\s{0,20}=\s{0,20}["'](\w{1,40})["']""")
_DJANGO_MIGRATION = lazy_pattern(r"class Migration\(migrations\.Migration\)")


def read_database_tool_file(source: ProjectSource) -> Iterator[FactFinding]:
    """A file that one tool alone has."""
    yield FactFinding("database", _DATABASE_TOOL_FILES[source.name.casefold()], root=source.folder)


def read_prisma_schema(source: ProjectSource) -> Iterator[FactFinding]:
    """Which database a schema of Prisma is for: the provider of its data source."""
    datasource_line = source.line_with("datasource")
    for number, line in enumerate(source.lines, 1):
        match = _PRISMA_PROVIDER.match(line[:400])
        if match is not None and 0 < datasource_line < number:
            yield FactFinding("database", "prisma", match[1], root=source.folder).at(number)
            return


def read_sql_migration(source: ProjectSource) -> Iterator[FactFinding]:
    """A step in SQL, in a folder of steps."""
    if any(line.strip() for line in source.lines):
        yield FactFinding("database", "migrations", "sql", root=source.folder)


def read_django_migration(source: ProjectSource) -> Iterator[FactFinding]:
    """The first step of a Django application."""
    for number, line in enumerate(source.lines, 1):
        if _DJANGO_MIGRATION.match(line):
            yield FactFinding("database", "migrations", "django", root=source.folder).at(number)


def read_rails_migration(source: ProjectSource) -> Iterator[FactFinding]:
    """A step of Active Record."""
    line = source.line_with("ActiveRecord::Migration")
    if line:
        yield FactFinding("database", "migrations", "active-record", root=source.folder).at(line)


DATABASE_READERS = (
    FactReader(" ".join(_DATABASE_TOOL_FILES), read_database_tool_file),
    FactReader("schema.prisma", read_prisma_schema),
    FactReader("*.sql", read_sql_migration, is_anywhere_below("migrations", "migration", "migrate")),
    FactReader("0001_*.py", read_django_migration, is_anywhere_below("migrations")),
    FactReader("*.rb", read_rails_migration, is_anywhere_below("migrate")),
)
