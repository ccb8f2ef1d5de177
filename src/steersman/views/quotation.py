"""Quotes outside text inside our Markdown and Mermaid, so that it is never interpreted.

**Invariant:** outside text adds no heading, row, link, tag, formula, state or edge.
"""

import re

from steersman.judges.text import clip_text, printable_line, printable_text

MAX_QUOTED_LENGTH = 6_000  # characters of one text that a report shows
MAX_INLINE_LENGTH = 1_000  # of one text within a line
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}  # @: a report mentions no account
# A dot or colon is escaped only where it would make a link.
_MARKUP = re.compile(r"[\\`*_{}\[\]()#|~!$&<>@]|(?<=www)\.|:(?=//)")
_UNSAFE_LABEL_CHARS = re.compile(r"[^\w .,()/+*=|?!'’·…–≤≥→-]")
_RESERVED_NODE_NAMES = frozenset(
    ["state", "note", "end", "direction", "class", "classdef", "style", "click", "as", "default", "accdescr",
     "acctitle", "hide", "scale", "statediagram", "any_state"]
)  # fmt: skip


def quote_block(words: str) -> list[str]:
    """Quotes outside text as an indented block, which Markdown shows as it is."""
    return [
        f"    {line}" for line in printable_text(clip_text(words.strip(), MAX_QUOTED_LENGTH)).splitlines()
    ]


def quote_inline(words: str) -> str:
    """Quotes outside text within a line of ours."""
    return _MARKUP.sub(
        lambda m: _ENTITIES.get(m[0], f"\\{m[0]}"),
        printable_line(" ".join(clip_text(words, MAX_INLINE_LENGTH).split())),
    )


def quote_cell(words: str) -> str:
    """Quotes outside text within a table cell."""
    return quote_inline(words) or "–"


def diagram_label(words: str) -> str:
    """Returns text for a diagram; characters with a meaning there are spelled out."""
    text = _UNSAFE_LABEL_CHARS.sub(lambda m: _spell_label_sign(m[0]), printable_line(" ".join(words.split())))
    return text.strip() or "(nothing)"


def _spell_label_sign(char: str) -> str:
    return {":": " ", ";": ",", "#": ""}.get(char, f"(U+{ord(char):04X})")


def diagram_node(name: str) -> str:
    """Returns a diagram node for a name: the name itself where it can be one, else its code points."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _RESERVED_NODE_NAMES:
        return name
    return "n_" + "_".join(f"{ord(char):x}" for char in clip_text(name, 100))
