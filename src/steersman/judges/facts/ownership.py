"""Who answers for which part: CODEOWNERS in the places where forges look, OWNERS, MAINTAINERS."""

from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, is_exactly_in

_MAX_OWNER_LINE = 2_000


def read_codeowners(source: ProjectSource) -> Iterator[FactFinding]:
    """Rules that name an owner."""
    rules = [
        number for number, line in enumerate(source.lines, 1) if _is_codeowners_rule(line[:_MAX_OWNER_LINE])
    ]
    if rules:
        yield FactFinding("ownership", "codeowners", f"{len(rules)} rules", first=rules[0], last=rules[-1])


def _is_codeowners_rule(line: str) -> bool:
    """A pattern and somebody behind it: a name with an @, or an address."""
    return not line.startswith(("#", "[")) and any("@" in word for word in line.split()[1:])


def read_owners_file(source: ProjectSource) -> Iterator[FactFinding]:
    """A list of people for the folder it lies in."""
    owner_lines = [
        n for n, line in enumerate(source.lines, 1) if line.strip() and not line.lstrip().startswith("#")
    ]
    if owner_lines:
        name = source.name.casefold().partition(".")[0]
        yield FactFinding(
            "ownership",
            name,
            f"{len(owner_lines)} lines",
            root=source.folder,
            first=owner_lines[0],
            last=owner_lines[-1],
        )


OWNERSHIP_READERS = (
    FactReader("codeowners", read_codeowners, is_exactly_in(".", ".github", "docs", ".gitlab")),
    FactReader("owners owners_aliases maintainers maintainers.md maintainers.txt", read_owners_file),
)
