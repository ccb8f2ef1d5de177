"""Documentation: what a project says to people and to agents."""

import re
from collections.abc import Iterator
from itertools import pairwise

from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source, at_top

_PAGES = "readme contributing security changelog changes history architecture code_of_conduct support governance agents claude"
_SITES = {"mkdocs.yml": "mkdocs", "mkdocs.yaml": "mkdocs", "docusaurus.config.js": "docusaurus", "docusaurus.config.ts": "docusaurus",
          "book.toml": "mdbook", "antora.yml": "antora", ".readthedocs.yml": "read-the-docs", ".readthedocs.yaml": "read-the-docs",
          "_config.yml": "jekyll", "typedoc.json": "typedoc", "doxyfile": "doxygen"}  # fmt: skip
_HEADING = later(r"#{1,3}[ \t]{1,5}(\S.{0,300})")
_RULE = later(r"(?:={3,200}|-{3,200})[ \t]{0,20}")  # under a line that is thereby a heading
_ENDINGS = ("", ".md", ".rst", ".txt", ".adoc", ".markdown")


def page(source: Source) -> Iterator[Finding]:
    """A page by its customary name, with its first heading."""
    name = source.name.casefold().partition(".")[0]
    for number, (line, following) in enumerate(pairwise([*source.lines, ""]), 1):
        found = _HEADING.match(line[:400])
        title = found[1] if found is not None else line[:400] if _RULE.fullmatch(following) else ""
        if re.search(r"\w", title):
            yield Finding("documentation", name, title.strip(), root=source.folder).at(number)
            return
    yield Finding("documentation", name, root=source.folder)


def site(source: Source) -> Iterator[Finding]:
    """A site that is built from pages."""
    yield Finding("documentation", _SITES[source.name.casefold()], root=source.folder)


def sphinx(source: Source) -> Iterator[Finding]:
    """Sphinx's settings are a program with a common name."""
    line = source.line_with("extensions") or source.line_with("html_theme")
    if line:
        yield Finding("documentation", "sphinx", root=source.folder).at(line)


READERS = (
    Reader(
        " ".join(f"{name}{ending}" for name in _PAGES.split() for ending in _ENDINGS),
        page,
        at_top(".", ".github", "docs"),
    ),
    Reader(" ".join(_SITES), site),
    Reader("conf.py", sphinx, at_top("docs", "doc", "docs/source", "doc/source")),
)
