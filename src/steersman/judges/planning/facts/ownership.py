"""Who answers for which part: CODEOWNERS in the places where forges look, OWNERS, MAINTAINERS."""

from collections.abc import Iterator

from steersman.judges.planning.facts.finding import Finding, Reader, Source, at_top

_LONGEST = 2_000


def codeowners(source: Source) -> Iterator[Finding]:
    """Rules that name an owner."""
    rules = [number for number, line in enumerate(source.lines, 1) if _is_rule(line[:_LONGEST])]
    if rules:
        yield Finding("ownership", "codeowners", f"{len(rules)} rules", first=rules[0], last=rules[-1])


def _is_rule(line: str) -> bool:
    """A pattern and somebody behind it: a name with an @, or an address."""
    return not line.startswith(("#", "[")) and any("@" in word for word in line.split()[1:])


def owners(source: Source) -> Iterator[Finding]:
    """A list of people for the folder it lies in."""
    people = [
        n for n, line in enumerate(source.lines, 1) if line.strip() and not line.lstrip().startswith("#")
    ]
    if people:
        name = source.name.casefold().partition(".")[0]
        yield Finding(
            "ownership", name, f"{len(people)} lines", root=source.folder, first=people[0], last=people[-1]
        )


READERS = (
    Reader("codeowners", codeowners, at_top(".", ".github", "docs", ".gitlab")),
    Reader("owners owners_aliases maintainers maintainers.md maintainers.txt", owners),
)
