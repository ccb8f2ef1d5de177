"""Outside text inside our own Markdown and Mermaid: quoted, never interpreted.

**Invariant:** no text adds a heading, a row, a link, a tag, a formula, a state or an edge of its own.
"""

import re

from steersman.judges.text import clip, one_line, printable

QUOTED = 6_000  # characters of one text that a report shows
INLINE = 1_000  # of one text within a line
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}  # @: nobody is called by a report
# The dot and the colon only where they make an address: nothing is a link that was not one of ours.
_MARKUP = re.compile(r"[\\`*_{}\[\]()#|~!$&<>@]|(?<=www)\.|:(?=//)")
_PLAIN = re.compile(r"[^\w .,()/+*=|?!'’·…–≤≥→-]")
_RESERVED = frozenset(
    ["state", "note", "end", "direction", "class", "classdef", "style", "click", "as", "default", "accdescr",
     "acctitle", "hide", "scale", "statediagram", "any_state"]
)  # fmt: skip


def block(words: str) -> list[str]:
    """Outside text as an indented block: Markdown shows it and obeys nothing in it."""
    return [f"    {line}" for line in printable(clip(words.strip(), QUOTED)).splitlines()]


def inline(words: str) -> str:
    """Outside text within a line of ours."""
    return _MARKUP.sub(
        lambda m: _ENTITIES.get(m[0], f"\\{m[0]}"), one_line(" ".join(clip(words, INLINE).split()))
    )


def cell(words: str) -> str:
    """Outside text within a table."""
    return inline(words) or "–"


def label(words: str) -> str:
    """Words on a diagram: what could mean something there is written out."""
    said = _PLAIN.sub(lambda m: _sign(m[0]), one_line(" ".join(words.split())))
    return said.strip() or "(nothing)"


def _sign(char: str) -> str:
    return {":": " ", ";": ",", "#": ""}.get(char, f"(U+{ord(char):04X})")


def node(name: str) -> str:
    """A name as a node of a diagram: itself where it can be one, else spelled by its code points."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _RESERVED:
        return name
    return "n_" + "_".join(f"{ord(char):x}" for char in clip(name, 100))
