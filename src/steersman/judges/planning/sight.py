"""Whether what somebody has written is what a reader sees: in a goal, an intent, an answer.

Decided by what Unicode says of a character, not by a list of known tricks. In sentences stay the joiners and variation
selectors that scripts and emoji need, where they stand behind such a character, and the spaces that typesetters use.
**Invariant:** a name that this passes has no character without a shape of its own but the space; a sentence shows
everything that it is kept with.
"""

import unicodedata

from steersman.judges.text import printable, visible

# Format characters, controls, surrogates, private and unassigned ones, separators: nobody sees them as they are.
_SHAPELESS = frozenset({"Cf", "Cc", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
# Letters and marks that Unicode has ignored where they are shown (Default_Ignorable_Code_Point).
_IGNORED = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF),
)  # fmt: skip
# Characters with a shape that is blank: a pattern of Braille without dots, an object's place, a note without a head, fillers.
_BLANK = frozenset("\u2800\ufffc\U0001d159\U00013441\U00013442\U00016fe4")
_IN_SENTENCES = frozenset("\n\r\t\u00a0\u202f\u3000")  # line ends, and spaces of typesetters
_JOINERS = frozenset("\u200c\u200d")
_SELECTORS = frozenset(map(chr, range(0xFE00, 0xFE10)))
_KEYCAP = "\u20e3"


def why_unseen(said: str) -> str:
    """Why a reader would not see what a sentence says; empty where it is plain."""
    if said.strip() and not visible(said):
        return "has nothing in it that anybody could see"
    plain = said.replace("\r", "")
    around = zip(f" {plain}", plain, f"{plain[1:]} ", strict=False)
    hidden = next((char for before, char, after in around if _hides(before, char, after)), "")
    return _told(hidden) if hidden or _overpainted(plain) else ""


def why_unnamed(name: str) -> str:
    """Why a reader would not see which file, directory or module a name is of; empty where it is plain."""
    if name.isascii() and name.isprintable():
        return ""
    if name.strip() and not visible(name):
        return "has nothing in it that anybody could see"
    hidden = next((char for char in name if not _shown(char)), "")
    return _told(hidden) if hidden or _overpainted(name) else ""


def _told(char: str) -> str:
    which = f" (U+{ord(char):04X})" if char else ""
    return f"holds characters that nobody sees or that reorder text{which}"


def _shown(char: str) -> bool:
    """Whether a character has a shape of its own, or is the plain space."""
    if char.isascii():
        return char.isprintable()
    ignored = any(first <= ord(char) <= last for first, last in _IGNORED)
    return not ignored and char not in _BLANK and unicodedata.category(char) not in _SHAPELESS


def _hides(before: str, char: str, after: str) -> bool:
    """Whether a character of a sentence is not seen; what is newer than the tables is taken for what it may be."""
    if _shown(char) or char in _IN_SENTENCES:
        return False
    if char in _JOINERS:
        return before.isascii()
    if char in _SELECTORS:
        return before.isascii() and after != _KEYCAP
    return unicodedata.category(char) != "Cn" or printable(char) != char


def _overpainted(said: str) -> bool:
    """More marks on one letter than any script uses."""
    shown = "".join(char for char in said if _shown(char))
    return printable(shown) != shown
