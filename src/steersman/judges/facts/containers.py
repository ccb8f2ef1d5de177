"""Containers: images that are built, services that are composed, containers to develop in."""

import re
from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource
from steersman.judges.facts.reading import parse_yaml_lines
from steersman.judges.patterns import lazy_pattern

_FROM_INSTRUCTION = lazy_pattern(
    r"\s{0,20}FROM\s{1,10}(?:--platform=\S{1,80}\s{1,10})?(\S{1,200})", re.IGNORECASE
)


def read_image_file(source: ProjectSource) -> Iterator[FactFinding]:
    """What an image is built from."""
    bases = [
        (n, match[1])
        for n, line in enumerate(source.lines, 1)
        if (match := _FROM_INSTRUCTION.match(line[:600])) is not None
    ]
    if bases:
        first_line, last_line = bases[0][0], bases[-1][0]
        base_names = ", ".join(dict.fromkeys(base for _, base in bases))
        yield FactFinding(
            "container",
            f"image:{source.path}",
            base_names,
            root=source.folder,
            first=first_line,
            last=last_line,
        )


def read_compose_file(source: ProjectSource) -> Iterator[FactFinding]:
    """Services that are started together."""
    services = [
        line for line in parse_yaml_lines(source.lines) if len(line.path) == 2 and line.path[0] == "services"
    ]
    if services:
        service_names = ", ".join(line.path[1] for line in services)
        yield FactFinding("container", f"compose:{source.path}", service_names, root=source.folder,
                      first=services[0].number, last=services[-1].number)  # fmt: skip


def read_devcontainer(source: ProjectSource) -> Iterator[FactFinding]:
    """A container to develop in."""
    yield FactFinding("container", f"devcontainer:{source.path}", root=source.folder)


CONTAINER_READERS = (
    FactReader("dockerfile containerfile dockerfile.* *.dockerfile", read_image_file),
    FactReader("docker-compose*.yml docker-compose*.yaml compose.yml compose.yaml", read_compose_file),
    FactReader("devcontainer.json .devcontainer.json", read_devcontainer),
)
