"""Outside text inside our own Markdown and Mermaid: quoted, never interpreted.

**Invariant:** no text adds a heading, a row, a link, a tag, a formula, a state or an edge of its own.
"""

import re

from steersman.judges.text import clip_text, printable_line, printable_text

MAX_QUOTED_LENGTH = 6_000  # characters of one text that a report shows
MAX_INLINE_LENGTH = 1_000  # of one text within a line
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}  # @: nobody is called by a report
# The dot and the colon only where they make an address: nothing is a link that was not one of ours.
_MARKUP = re.compile(r"[\\`*_{}\[\]()#|~!$&<>@]|(?<=www)\.|:(?=//)")
_UNSAFE_LABEL_CHARS = re.compile(r"[^\w .,()/+*=|?!'’·…–≤≥→-]")
_RESERVED_NODE_NAMES = frozenset(
    ["state", "note", "end", "direction", "class", "classdef", "style", "click", "as", "default", "accdescr",
     "acctitle", "hide", "scale", "statediagram", "any_state"]
)  # fmt: skip


def quote_block(words: str) -> list[str]:
    """Outside text as an indented block: Markdown shows it and obeys nothing in it."""
    return [
        f"    {line}" for line in printable_text(clip_text(words.strip(), MAX_QUOTED_LENGTH)).splitlines()
    ]


def quote_inline(words: str) -> str:
    """Outside text within a line of ours."""
    return _MARKUP.sub(
        lambda m: _ENTITIES.get(m[0], f"\\{m[0]}"),
        printable_line(" ".join(clip_text(words, MAX_INLINE_LENGTH).split())),
    )


def quote_cell(words: str) -> str:
    """Outside text within a table."""
    return quote_inline(words) or "–"


def diagram_label(words: str) -> str:
    """Words on a diagram: what could mean something there is written out."""
    safe_text = _UNSAFE_LABEL_CHARS.sub(
        lambda m: _spell_label_sign(m[0]), printable_line(" ".join(words.split()))
    )
    return safe_text.strip() or "(nothing)"


def _spell_label_sign(char: str) -> str:
    return {":": " ", ";": ",", "#": ""}.get(char, f"(U+{ord(char):04X})")


def diagram_node(name: str) -> str:
    """A name as a node of a diagram: itself where it can be one, else spelled by its code points."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _RESERVED_NODE_NAMES:
        return name
    return "n_" + "_".join(f"{ord(char):x}" for char in clip_text(name, 100))
