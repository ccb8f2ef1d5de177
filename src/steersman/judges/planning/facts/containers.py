"""Containers: images that are built, services that are composed, containers to develop in."""

import re
from collections.abc import Iterator

from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source
from steersman.judges.planning.facts.reading import yaml_of

_FROM = later(r"\s{0,20}FROM\s{1,10}(?:--platform=\S{1,80}\s{1,10})?(\S{1,200})", re.IGNORECASE)


def image(source: Source) -> Iterator[Finding]:
    """What an image is built from."""
    bases = [
        (n, found[1])
        for n, line in enumerate(source.lines, 1)
        if (found := _FROM.match(line[:600])) is not None
    ]
    if bases:
        first, last = bases[0][0], bases[-1][0]
        said = ", ".join(dict.fromkeys(base for _, base in bases))
        yield Finding("container", f"image:{source.path}", said, root=source.folder, first=first, last=last)


def compose(source: Source) -> Iterator[Finding]:
    """Services that are started together."""
    services = [line for line in yaml_of(source.lines) if len(line.path) == 2 and line.path[0] == "services"]
    if services:
        said = ", ".join(line.path[1] for line in services)
        yield Finding("container", f"compose:{source.path}", said, root=source.folder,
                      first=services[0].number, last=services[-1].number)  # fmt: skip


def devcontainer(source: Source) -> Iterator[Finding]:
    """A container to develop in."""
    yield Finding("container", f"devcontainer:{source.path}", root=source.folder)


READERS = (
    Reader("dockerfile containerfile dockerfile.* *.dockerfile", image),
    Reader("docker-compose*.yml docker-compose*.yaml compose.yml compose.yaml", compose),
    Reader("devcontainer.json .devcontainer.json", devcontainer),
)
