"""Documentation: what a project says to people and to agents."""

import re
from collections.abc import Iterator
from itertools import pairwise

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, is_exactly_in
from steersman.judges.patterns import lazy_pattern

_PAGE_NAMES = "readme contributing security changelog changes history architecture code_of_conduct support governance agents claude"
_SITE_GENERATORS = {"mkdocs.yml": "mkdocs", "mkdocs.yaml": "mkdocs", "docusaurus.config.js": "docusaurus", "docusaurus.config.ts": "docusaurus",
          "book.toml": "mdbook", "antora.yml": "antora", ".readthedocs.yml": "read-the-docs", ".readthedocs.yaml": "read-the-docs",
          "_config.yml": "jekyll", "typedoc.json": "typedoc", "doxyfile": "doxygen"}  # fmt: skip
_MARKDOWN_HEADING = lazy_pattern(r"#{1,3}[ \t]{1,5}(\S.{0,300})")
_HEADING_UNDERLINE = lazy_pattern(
    r"(?:={3,200}|-{3,200})[ \t]{0,20}"
)  # under a line that is thereby a heading
_PAGE_ENDINGS = ("", ".md", ".rst", ".txt", ".adoc", ".markdown")


def read_documentation_page(source: ProjectSource) -> Iterator[FactFinding]:
    """A page by its customary name, with its first heading."""
    name = source.name.casefold().partition(".")[0]
    for number, (line, following) in enumerate(pairwise([*source.lines, ""]), 1):
        heading = _MARKDOWN_HEADING.match(line[:400])
        title = (
            heading[1]
            if heading is not None
            else line[:400]
            if _HEADING_UNDERLINE.fullmatch(following)
            else ""
        )
        if re.search(r"\w", title):
            yield FactFinding("documentation", name, title.strip(), root=source.folder).at(number)
            return
    yield FactFinding("documentation", name, root=source.folder)


def read_site_config(source: ProjectSource) -> Iterator[FactFinding]:
    """A site that is built from pages."""
    yield FactFinding("documentation", _SITE_GENERATORS[source.name.casefold()], root=source.folder)


def read_sphinx_config(source: ProjectSource) -> Iterator[FactFinding]:
    """Sphinx's settings are a program with a common name."""
    line = source.line_with("extensions") or source.line_with("html_theme")
    if line:
        yield FactFinding("documentation", "sphinx", root=source.folder).at(line)


DOCUMENTATION_READERS = (
    FactReader(
        " ".join(f"{name}{ending}" for name in _PAGE_NAMES.split() for ending in _PAGE_ENDINGS),
        read_documentation_page,
        is_exactly_in(".", ".github", "docs"),
    ),
    FactReader(" ".join(_SITE_GENERATORS), read_site_config),
    FactReader("conf.py", read_sphinx_config, is_exactly_in("docs", "doc", "docs/source", "doc/source")),
)
